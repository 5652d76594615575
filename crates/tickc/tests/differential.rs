//! Generated code computes what the same text compiled by gcc computes, on each machine: random expressions and
//! statement lists of every scalar type, smallest first, divided into cspecs at random places, with loops that are
//! unrolled and loops that are not.

mod support;

use quaject_test_support::{Effort, Random, quick_run, tool};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use support::{MACHINES, Machine, library, library_with, run, scratch, succeed, translated, with_headers};

/// Variables of the programs: their types and initial values.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("signed char", "vc", "-7"),
    ("unsigned char", "vb", "200"),
    ("short", "vs", "-30000"),
    ("unsigned short", "vt", "60000"),
    ("int", "vi", "-123456789"),
    ("unsigned", "vu", "4000000000u"),
    ("long", "vl", "-1234567890L"),
    ("unsigned long", "vw", "0xfedcba9876543210UL"),
    ("_Bool", "vz", "1"),
    ("float", "vf", "-2.75f"),
    ("double", "vd", "1234.5"),
];
const FLOATS: [&str; 2] = ["vf", "vd"];
/// Numbers that are put together from bytes.
const WHOLE_NUMBERS: [&str; 4] = [
    "(bytes[1] << 8 | bytes[2])",
    "((unsigned)bytes[3] << 24 | (unsigned)bytes[2] << 16 | (unsigned)bytes[1] << 8 | bytes[0])",
    "((unsigned long)bytes[4] | (unsigned long)bytes[5] << 8)",
    "(vu << 24 | (vu & 0xff00) << 8 | (vu >> 8 & 0xff00) | vu >> 24)",
];
const DIVISORS: [&str; 12] =
    ["1", "2", "3", "7u", "10", "13u", "641u", "1021", "1024", "65537u", "1000003", "2147483647"];

/// Whether an expression may be floating. Conversions from floating types to integers would be undefined out of range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Integer,
    Floating,
}

struct Generator {
    random: Random,
}

impl Generator {
    fn leaf(&mut self, class: Class) -> String {
        let dollar = if self.random.below(3) == 0 { "$" } else { "" };
        match (class, self.random.below(8)) {
            (Class::Integer, 0) => {
                self.random.pick(&["0", "1", "(-1)", "7", "'x'", "0x7fffffff", "3000000000u", "5L"]).to_owned()
            }
            (Class::Integer, 1) => format!("{dollar}record.{}", self.random.pick(&["a", "b", "c"])),
            (Class::Integer, 2) => match self.random.below(3) {
                0 => format!("array[{}]", self.random.below(4)),
                1 => format!("array[{} & 3]", VARIABLES[self.random.index(9)].1),
                _ => self.random.pick(&WHOLE_NUMBERS).to_owned(),
            },
            (Class::Integer, 3) => "pointer->b".to_owned(),
            (Class::Integer, _) => format!("{dollar}{}", VARIABLES[self.random.index(9)].1),
            (Class::Floating, 0) => self.random.pick(&["0.5", "2.0f", "(-1e3)"]).to_owned(),
            (Class::Floating, _) => format!("{dollar}{}", self.random.pick(&FLOATS)),
        }
    }

    /// An expression, which is a cspec of its own now and then.
    fn expression(&mut self, class: Class, depth: u64) -> String {
        if depth == 0 {
            return self.leaf(class);
        }
        let own = self.operation(class, depth);
        if self.random.below(6) == 0 { format!("{PART}{own}{END}") } else { own }
    }

    fn operation(&mut self, class: Class, depth: u64) -> String {
        let choice = self.random.below(14);
        let mut of = |own: Class| self.expression(own, depth - 1);
        if class == Class::Floating {
            return match choice {
                0..=7 => {
                    let (left, right) = (of(class), of(class));
                    format!("({left} {} {right})", ["+", "-", "*", "/"][choice as usize % 4])
                }
                8 => format!("((double){})", of(Class::Integer)),
                9 => format!("({} + {})", of(Class::Integer), of(class)),
                10 => format!("(-{})", of(class)),
                11 => format!("((float){})", of(class)),
                _ => format!("({} ? {} : {})", of(Class::Integer), of(class), of(class)),
            };
        }
        match choice {
            0..=3 => {
                let (left, right) = (of(class), of(class));
                format!("({left} {} {right})", ["+", "-", "*", "&", "|", "^"][self.random.index(6)])
            }
            4 => {
                let (left, right) = (of(class), of(class));
                let operator = self.random.pick(&["/", "%"]);
                match self.random.below(2) {
                    0 => format!("({left} {operator} (({right} & 15) + 1))"),
                    _ => format!("({left} {operator} {})", self.random.pick(&DIVISORS)),
                }
            }
            5 => format!("({} {} ({} & 31))", of(class), ["<<", ">>"][depth as usize % 2], of(class)),
            6 | 7 => {
                let own = if choice == 6 { Class::Floating } else { class };
                let (left, right) = (of(own), of(own));
                format!("({left} {} {right})", self.random.pick(&["<", "<=", ">", ">=", "==", "!="]))
            }
            8 => format!("({} && {})", of(class), of(class)),
            9 => format!("({} || {})", of(class), of(class)),
            10 => format!("({}{})", ["!", "~", "-"][depth as usize % 3], of(class)),
            11 => {
                let own = of(class);
                format!("(({}){own})", VARIABLES[self.random.index(9)].0)
            }
            12 => format!("identity({})", of(class)),
            _ => format!("({} ? {} : {})", of(class), of(class), of(class)),
        }
    }

    fn statement(&mut self, depth: u64) -> String {
        let target = self.random.pick(&["a", "b", "c", "d"]);
        let value = self.expression(Class::Integer, 2);
        match self.random.below(if depth == 0 { 4 } else { 8 }) {
            0 | 1 => format!("{target} = {value};"),
            2 => format!("{target} {}= {value};", self.random.pick(&["+", "-", "*", "^", "|", "&"])),
            // With a part that is the same in every iteration of a loop.
            3 => {
                let (other, factor) = (self.random.pick(&["a", "b", "c", "d"]), self.random.pick(&DIVISORS));
                format!("{target}++; {target} -= {other} * {factor} + {value};")
            }
            4 => format!("if ({value}) {} else {}", self.block(depth - 1), self.block(depth - 1)),
            5 => {
                // The loop is unrolled if `$` is in front of its counter.
                let dollar = self.random.pick(&["", "$"]);
                let (limit, body) = (self.random.below(4), self.block(depth - 1));
                format!("for (i{depth} = 0; i{depth} < {limit}; i{depth}++) {{ {body} a += {dollar}i{depth} * 3; }}")
            }
            6 => format!(
                "switch ({value} & 3) {{ case 0: {} break; case 2: {} default: {} }}",
                self.block(depth - 1),
                self.block(depth - 1),
                self.block(depth - 1)
            ),
            _ => format!("if (a < b && c) {}", self.block(depth - 1)),
        }
    }

    fn block(&mut self, depth: u64) -> String {
        let count = 1 + self.random.below(3);
        let statements: Vec<String> = (0..count).map(|_| self.statement(depth)).collect();
        format!("{{ {} }}", statements.join(" "))
    }
}

/// Around what becomes a cspec.
const PART: char = '\u{1}';
const END: char = '\u{2}';

/// The declarations of the cspecs of a text, and the text with their names.
fn composed(number: u64, text: &str) -> (String, String) {
    let (mut declarations, mut text) = (String::new(), text.to_owned());
    let mut parts: Vec<(String, String)> = Vec::new();
    while let Some(end) = text.find(END) {
        let start = text[..end].rfind(PART).expect("each end has a beginning");
        let tick = text[start + 1..end].to_owned();
        let mut plain = tick.replace('$', "");
        for (name, own) in parts.iter().rev() {
            plain = plain.replace(name.as_str(), own);
        }
        let name = format!("part{number}_{}_", parts.len());
        let _ = writeln!(declarations, "  __typeof__({plain}) cspec {name} = `({tick});");
        text.replace_range(start..end + 1, &name);
        parts.push((name, plain));
    }
    (declarations, text)
}

/// A program that compares so many texts, of which the first has this number; larger numbers have larger texts.
fn program(first: u64, count: u64) -> String {
    let mut text = String::from(
        "#include <stdio.h>\n#include <string.h>\nstatic int failures;\n\
         static int identity(int x) { return x; }\n\
         static struct record { int a; short b; unsigned char c; } record = {5, -6, 250}, *pointer = &record;\n\
         static int array[4] = {3, -1, 1 << 30, 0};\n\
         static unsigned char bytes[6] = {1, 0xfe, 0x83, 0x94, 5, 0xa6};\n",
    );
    for (ty, name, value) in VARIABLES {
        let _ = writeln!(text, "static {ty} {name} = {value};");
    }
    for number in first..first + count {
        let mut generator = Generator { random: Random(number * 2 + 1) };
        for _ in 0..8 {
            generator.random.next();
        }
        let size = 1 + number * 5 / (first + count);
        let (ty, tick, plain) = if number % 3 == 2 {
            let block = generator.block(size.min(3));
            let declared = "int i0, i1, i2, i3, a = 1; long b = 2; unsigned char c = 3; unsigned d = 4;";
            let body = format!("{{ {declared} {block} return a + b * 3 + c * 5 + d; }}");
            ("long", body.clone(), body)
        } else {
            let class = if number % 3 == 0 { Class::Integer } else { Class::Floating };
            let ty = if class == Class::Floating { "double" } else { "long" };
            let own = generator.expression(class, size);
            (ty, format!("({own})"), format!("{{ return {own}; }}"))
        };
        let plain = plain.replace(['$', PART, END], "");
        let (parts, tick) = composed(number, &tick);
        let _ = writeln!(
            text,
            "static {ty} plain{number}(void) {plain}\nstatic void check{number}(void) {{\n{parts}  {ty} wanted = plain{number}(), \
             found = (*compile(`{tick}, {ty}))();\n  if (memcmp(&wanted, &found, sizeof found) && wanted == wanted)\n    \
             printf(\"{number}: %.17g instead of %.17g\\n\", (double)found, (double)wanted), failures++;\n}}"
        );
    }
    text.push_str("int main(void) {\n");
    for number in first..first + count {
        let _ = writeln!(text, "  check{number}();");
    }
    text + "  return failures != 0;\n}\n"
}

/// Compares texts in batches, from which programs for a machine are made, at this level of the compiler.
fn compare(machine: &Machine, objects: &[PathBuf], level: &str, total: u64, folder: &Path) {
    let Some(compiler) = tool(&[machine.compiler]) else { return };
    for first in (0..total).step_by(BATCH as usize) {
        let source = folder.join(format!("random{first}.tc"));
        std::fs::write(&source, program(first, BATCH)).expect("files can be written");
        let translation = translated(compiler, &source, folder);
        let program = folder.join(format!("random{first}"));
        let mut command = with_headers(compiler);
        command.args([level, "-fwrapv", "-w"]).args(machine.linkage).arg(&translation).args(objects);
        succeed(command.args(["-lpthread", "-o"]).arg(&program));
        assert_eq!(run(&mut machine.command(&program)), "", "the texts are in {}", source.display());
        // So that a long run does not fill the disk.
        for file in [&source, &translation, &program] {
            std::fs::remove_file(file).expect("it was made");
        }
    }
}

/// The machine of the test.
const HOST: Machine = Machine { compiler: "gcc", emulator: "", linkage: &[] };
const BATCH: u64 = 40;
/// Two of three texts are expressions: a hundred thousand of them, and fifty thousand statement lists.
const SOAK: u64 = 150_000;

#[test]
fn generated_code_computes_what_gcc_computes() {
    let Some(compiler) = tool(&["gcc"]) else { return };
    let folder = scratch("differential");
    let objects = library(compiler, &folder);
    compare(&HOST, &objects, "-O1", Effort::wanted().pick(40, 200, SOAK), &folder);
}

#[test]
fn generated_code_computes_what_gcc_computes_on_other_machines() {
    if quick_run("random programs in 'C on other machines") {
        return;
    }
    for machine in MACHINES {
        let (Some(compiler), Some(_)) = (tool(&[machine.compiler]), tool(&[machine.emulator])) else { continue };
        let folder = scratch(&format!("differential-{}", machine.emulator));
        let objects = library(compiler, &folder);
        compare(machine, &objects, "-O0", Effort::wanted().pick(0, 40, SOAK), &folder);
    }
}

#[test]
fn the_runtime_is_clean_under_sanitizers() {
    let Some(compiler) = tool(&["gcc"]) else { return };
    let folder = scratch("sanitizers");
    let sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"];
    let objects = library_with(compiler, &sanitizers, &folder);
    let machine = Machine { linkage: &["-fsanitize=address,undefined"], ..HOST };
    compare(&machine, &objects, "-O1", Effort::wanted().pick(40, 80, 2000), &folder);
}
