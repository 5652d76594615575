//! Small random programs whose processes communicate without a common script: for engines that explore every order of
//! events. Unlike those of `generate`, most deadlock or fault.

use crate::environment::Script;
use crate::generate::{Outcome, Sample};
use fastrand::Rng;
use std::fmt::Write;

const TYPES: &[&str] = &["int", "u8", "bool", "i8", "u16", "u32", "pair", "what"];

struct Writer {
    rng: Rng,
    /// Types of the messages of each channel, and the process that reads it.
    channels: Vec<(Vec<&'static str>, usize)>,
    process: usize,
    text: String,
    fresh: u32,
    /// Names in scope, by type.
    scope: Vec<(String, &'static str)>,
}

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let processes = rng.usize(2..5);
    let channels = (0..rng.usize(1..5)).map(|_| {
        let types = (0..rng.usize(0..3)).map(|_| TYPES[rng.usize(0..TYPES.len())]).collect();
        (types, rng.usize(0..processes))
    });
    let channels = channels.collect();
    let mut writer = Writer { rng, channels, process: 0, text: String::new(), fresh: 0, scope: Vec::new() };
    writer.program(processes);
    writer.text
}

/// Likewise, as a sample without a script.
pub fn sample(seed: u64) -> Sample {
    let source = program(seed);
    Sample { seed, source, files: Vec::new(), script: Script::default(), outcome: Outcome::Open }
}

/// A program whose processes can wait at any operation forever, with a label before each operation, and how many
/// labels each has.
pub fn lively(seed: u64) -> (String, Vec<u32>) {
    let mut text = String::new();
    let mut labels = Vec::new();
    for line in program(seed).lines() {
        let bare = line.trim_start();
        if bare.starts_with("process ") {
            labels.push(0);
        }
        let operation = bare.strip_prefix("idle ").unwrap_or(bare);
        let is_statement = operation.ends_with(';') || operation == "alt {";
        if is_statement && ["in(", "out(", "alt {"].iter().any(|start| operation.starts_with(start)) {
            let label = labels.last_mut().expect("operations stand in processes");
            *label += 1;
            text += &format!("#{label} idle {operation}\n");
        } else {
            text += line;
            text.push('\n');
        }
    }
    (text, labels)
}

impl Writer {
    fn program(&mut self, processes: usize) {
        self.text.push_str("type pair = record { a: int, b: u8 };\n");
        self.text.push_str("type what = union { one: int, two: pair, none };\n");
        self.text.push_str("fn half(x: int) -> int { if (x > 4) return x / 2; return x; }\n");
        for (index, (types, _)) in self.channels.iter().enumerate() {
            writeln!(self.text, "channel c{index}({});", types.join(", ")).expect("writing to a string does not fail");
        }
        for process in 0..processes {
            self.process = process;
            self.scope = vec![("n".to_string(), "int"), ("k".to_string(), "u8")];
            writeln!(self.text, "process P{process} {{\n  var n = 0, k: u8 = 0;")
                .expect("writing to a string does not fail");
            let count = self.rng.u32(1..5);
            if self.rng.u32(0..3) == 0 {
                self.text.push_str("  while {\n");
                self.operation(1);
                self.statements(count, 1);
                self.text.push_str("  }\n");
            } else {
                self.statements(count + 1, 1);
            }
            self.text.push_str("}\n");
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        writeln!(self.text, "{}{text}", "  ".repeat(depth)).expect("writing to a string does not fail");
    }

    fn statements(&mut self, count: u32, depth: usize) {
        let names = self.scope.len();
        for _ in 0..count {
            match self.rng.u32(0..12) {
                0 => {
                    let value = self.int(2);
                    self.line(depth, &format!("n = {value};"));
                }
                1 => {
                    let value = self.value("u8", 2);
                    self.line(depth, &format!("k = {value};"));
                }
                2 if depth < 4 => {
                    let condition = self.condition();
                    self.line(depth, &format!("if ({condition}) {{"));
                    self.statements(2, depth + 1);
                    self.line(depth, "} else {");
                    self.statements(1, depth + 1);
                    self.line(depth, "}");
                }
                3 if depth < 4 => {
                    let name = self.name("step");
                    let end = self.rng.u32(1..4);
                    self.line(depth, &format!("for {name} in 0..{end} {{"));
                    self.scope.push((name, "int"));
                    self.statements(1, depth + 1);
                    self.scope.pop();
                    self.line(depth, "}");
                }
                4 if self.rng.u32(0..3) == 0 => {
                    let condition = self.condition();
                    self.line(depth, &format!("assert({condition});"));
                }
                5 if self.rng.u32(0..4) == 0 => self.line(depth, "yield;"),
                6 if self.rng.u32(0..8) == 0 => self.line(depth, "if (n > 3) exit(n);"),
                _ => self.operation(depth),
            }
        }
        self.scope.truncate(names);
    }

    fn name(&mut self, stem: &str) -> String {
        self.fresh += 1;
        format!("{stem}{}", self.fresh)
    }

    /// An `in`, `out` or `alt`.
    fn operation(&mut self, depth: usize) {
        if self.rng.u32(0..3) > 0 || depth > 3 {
            let (text, names) = self.communication();
            let idle = if self.rng.u32(0..5) == 0 { "idle " } else { "" };
            self.line(depth, &format!("{idle}{text};"));
            self.scope.extend(names);
            return;
        }
        self.line(depth, "alt {");
        for _ in 0..self.rng.u32(1..4) {
            let guard = match self.rng.u32(0..3) {
                0 => format!("when ({}) ", self.condition()),
                _ => String::new(),
            };
            let names = self.scope.len();
            let (text, added) = self.communication();
            self.line(depth + 1, &format!("{guard}{text} {{"));
            self.scope.extend(added);
            self.statements(1, depth + 2);
            self.line(depth + 1, "}");
            self.scope.truncate(names);
        }
        self.line(depth, "}");
    }

    /// An operation on some channel, and the names its pattern declares.
    fn communication(&mut self) -> (String, Vec<(String, &'static str)>) {
        let index = self.rng.usize(0..self.channels.len());
        let (types, reader) = self.channels[index].clone();
        if reader != self.process {
            let values: Vec<String> = types.iter().map(|ty| self.value(ty, 2)).collect();
            return (format!("out(c{index}{})", comma(&values)), Vec::new());
        }
        let mut names = Vec::new();
        let patterns: Vec<String> = types.iter().map(|ty| self.pattern(ty, &mut names)).collect();
        (format!("in(c{index}{})", comma(&patterns)), names)
    }

    fn pattern(&mut self, ty: &'static str, names: &mut Vec<(String, &'static str)>) -> String {
        match (self.rng.u32(0..8), ty) {
            (0, _) => "_".to_string(),
            (1, "int") => "n".to_string(),
            (1, "u8") => "k".to_string(),
            (2, "int") => "==n".to_string(),
            (3, "u8" | "u16") => self.rng.u32(0..3).to_string(),
            (2 | 3, "pair") => {
                let name = self.name("got");
                names.push((name.clone(), "int"));
                format!("{{ ${name}, _ }}")
            }
            (2, "what") => {
                let name = self.name("got");
                names.push((name.clone(), "int"));
                format!("one |> ${name}")
            }
            (3, "what") => {
                let name = self.name("got");
                names.push((name.clone(), "pair"));
                format!("two |> ${name}")
            }
            (4, "what") => "none |> {}".to_string(),
            (_, _) => {
                let name = self.name("got");
                names.push((name.clone(), ty));
                format!("${name}")
            }
        }
    }

    fn known(&mut self, ty: &str) -> Option<String> {
        let known: Vec<&String> = self.scope.iter().filter(|(_, known)| *known == ty).map(|(name, _)| name).collect();
        self.rng.choice(known).cloned()
    }

    fn value(&mut self, ty: &str, depth: u32) -> String {
        let simple = depth == 0 || self.rng.bool();
        match ty {
            "int" => self.int(depth),
            "bool" if simple => if self.rng.bool() { "true" } else { "false" }.to_string(),
            "bool" => self.condition(),
            "pair" => match self.known("pair") {
                Some(name) if simple => name,
                Some(_) | None => format!("{{ {}, {} }}", self.int(1), self.value("u8", 1)),
            },
            "what" => match self.rng.u32(0..3) {
                0 => format!("one |> {}", self.int(1)),
                1 => format!("two |> {}", self.value("pair", 0)),
                _ => "none |> {}".to_string(),
            },
            _ if simple => match self.known(ty) {
                Some(name) => name,
                None => self.rng.u32(0..4).to_string(),
            },
            _ => {
                let operator = ["+", "-", "*", "&", "^", "/", "%", ">>"][self.rng.usize(0..8)];
                let (a, b) = (self.int(depth - 1), self.rng.u32(0..4));
                format!("{ty}({a}) {operator} {b}")
            }
        }
    }

    fn int(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.u32(0..3) == 0 {
            return match self.known("int") {
                Some(name) if self.rng.bool() => name,
                Some(_) | None => self.rng.u32(0..5).to_string(),
            };
        }
        let (a, b) = (self.int(depth - 1), self.int(depth - 1));
        match self.rng.u32(0..9) {
            0 => format!("half({a})"),
            1 => {
                let ty = ["u8", "i8", "u16"][self.rng.usize(0..3)];
                format!("int({})", self.value(ty, depth - 1))
            }
            2 => format!("({} ? {a} : {b})", self.condition()),
            3 if self.rng.u32(0..4) == 0 => format!("({a} / {b})"),
            4 => format!("({a} - {b})"),
            5 => format!("({a} & {b})"),
            6 => match self.known("pair") {
                Some(name) => format!("{name}.a"),
                None => a,
            },
            7 => format!("({a} * {b})"),
            _ => format!("({a} + {b})"),
        }
    }

    fn condition(&mut self) -> String {
        let operator = ["<", ">", "==", "!=", "<=", ">="][self.rng.usize(0..6)];
        match self.rng.u32(0..5) {
            0 => format!("{} {operator} {}", self.value("u8", 0), self.rng.u32(0..3)),
            1 => format!("n {operator} {} && k < 5", self.int(1)),
            _ => format!("{} {operator} {}", self.int(1), self.int(0)),
        }
    }
}

/// The values of a message after its channel.
fn comma(values: &[String]) -> String {
    values.iter().map(|value| format!(", {value}")).collect()
}
