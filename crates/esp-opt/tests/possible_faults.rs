//! Proofs that lengths, indices and slices do not fault: which statements are proved, which near misses are not, and
//! that no random program faults at a statement that was proved.

use fastrand::Rng;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_ir::ir::{Fault, ProcessId, Program};
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_opt::groups::fuse_if_schedule_independent;
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::observability::ScheduleIndependence;
use quaject_esp_opt::possible_faults::{FaultCause, PossibleFault, possible_faults};
use quaject_test_environment::{Script, by_channel, compile};
use quaject_test_support::Effort;
use std::path::Path;

const CHANNELS: &str = "channel bytesC(bytes[<=8]) external out; channel intC(int) external out;\n\
    channel c(bytes[<=8]); channel o(bytes[<=8]) external in;\n";

/// A program whose first process executes these statements for each message, and sends bytes to a second one.
fn program_of(statements: &str) -> String {
    format!(
        "{CHANNELS}process P {{ while {{ in(bytesC, $m); var r: #bytes[<=8] = thaw(m); {statements} }} }}\n\
         process Q {{ while {{ in(c, $q); out(o, q); }} }}\n"
    )
}

/// The possible faults of the first process: of the program as written, and after the passes, which find no more.
fn faults(text: &str) -> Vec<PossibleFault> {
    let written = compile(Path::new("test.esp"), text);
    let optimised = quaject_esp::optimise(written.clone(), false);
    let found = possible_faults(&optimised, ProcessId(0), false);
    let before = possible_faults(&written, ProcessId(0), false);
    assert!(found.iter().all(|fault| before.contains(fault)), "{found:?} {before:?}\n{text}");
    found
}

fn is_fused(text: &str) -> bool {
    let mut program = quaject_esp::optimise(compile(Path::new("test.esp"), text), false);
    let independence = ScheduleIndependence::analyze(&program, false);
    let attempts = fuse_if_schedule_independent(&mut program, false, Limits::default(), &independence);
    attempts.iter().any(|attempt| attempt.is_fused())
}

const PROVED: &[&str] = &[
    // A length that was just set.
    "r.len = 5; r[3] = 7; out(c, freeze(r));",
    "r.len = 5; out(c, freeze(r)[1..4]);",
    "r = #\"abc\"; r[2] = 7; out(c, freeze(r));",
    "in(intC, $n); if (n >= 0 && n < 8) { r.len = n; out(c, freeze(r)); }",
    "in(intC, $n); if (n > 2 && n <= 8) { r.len = n; r[2] = 1; r[n - 1] = 1; out(c, freeze(r)); }",
    "if (m.len < 3) { r.len = 4; } else { r.len = 6; } r[3] = 1; out(c, freeze(r));",
    "if (m.len < 4) r.len = 4; r[3] = 1; out(c, freeze(r));",
    // A length that a branch has compared, with either outcome.
    "if (m.len > 2) out(c, m[1..]);",
    "if (m.len >= 4) { r[0] = m[3]; out(c, freeze(r)); }",
    "if (m.len == 7) out(c, m[2..7]);",
    "if (m.len != 0) out(c, m[1..]);",
    "if (m.len != 0) out(c, m[..m.len - 1]);",
    "if (2 < m.len) out(c, m[1..]);",
    "if (m.len <= 2) { out(c, m); } else { out(c, m[3..]); }",
    "if (m.len <= 2) continue; out(c, m[1..]);",
    "if (!(m.len > 2)) continue; out(c, m[1..]);",
    "if (m.len < 2 || m[1] == 0) continue; out(c, m[2..]);",
    "if (m.len == 3 || m.len == 5) out(c, m[3..]);",
    "in(intC, $i); if (0 <= i && i < 4 && m.len >= 4) { r[i] = 1; out(c, freeze(r)); }",
    "in(intC, $n); if (m.len >= 2 && (n & 3) < m.len) { r[n & 3] = 1; out(c, freeze(r)); }",
    // Ends that depend on the length.
    "out(c, m[0..m.len / 2]); out(c, m[m.len / 2..]); out(c, m[m.len >> 1..m.len]);",
    "if (m.len > 0) out(c, m[0..m.len - 1]);",
    "in(intC, $n); if (n >= 0 && n <= m.len) { out(c, m[..n]); out(c, m[n..]); }",
    "in(intC, $i); in(intC, $j); if (0 <= i && i <= j && j <= m.len) out(c, m[i..j]);",
    "in(intC, $i); in(intC, $n); if (i >= 0 && n >= 0 && i <= m.len && n <= m.len - i) out(c, m[i..i + n]);",
    // Loops over bytes.
    "var i = 0; while (i < m.len) { r[i] = m[i] + 1; i += 1; } out(c, freeze(r));",
    "for i in 0..m.len { r[i] = m[i]; } out(c, freeze(r));",
    "var n = m.len; while (n > 0) { n -= 1; r[n] = 0; } out(c, freeze(r));",
    "var i = 0; while (i + 1 < m.len) { r[i] = m[i + 1]; i += 1; } out(c, freeze(r));",
    "while (r.len > 0) { r[r.len - 1] = 1; r.len = r.len - 1; } out(c, freeze(r));",
    // Growth.
    "if (r.len < 8) r += \"x\"; out(c, freeze(r));",
    "while (r.len < 8) { r += \"x\"; } out(c, freeze(r));",
    "in(bytesC, $b); if (m.len + b.len <= 8) { r += b; out(c, freeze(r)); }",
    "in(bytesC, $b); if (b.len <= 8 - m.len) { r += b; out(c, freeze(r)); }",
    "r.len = 0; r += m; out(c, freeze(r));",
    // Parts of bytes.
    "if (m.len >= 8) { r[0..4] = m[4..8]; out(c, freeze(r)); }",
    "if (m.len >= 4) { r[1..3] = \"ab\"; out(c, freeze(r)); }",
    // The bytes are written, but their length is not, or is still known.
    "if (r.len > 2) { r[0] = 1; r[1..2] = \"a\"; out(c, freeze(r)[1..]); }",
    "if (r.len > 2) { in(bytesC, $b); out(c, freeze(r)[1..]); }",
    "assert(m.len <= 8); r.len = 3; assert(r.len == 3); out(c, m);",
];

const REFUSED: &[(&str, FaultCause)] = &[
    // The bytes are written between the comparison and the access.
    ("in(bytesC, $b); if (r.len > 2) { r = thaw(b); out(c, freeze(r)[1..]); }", FaultCause::Slice),
    ("if (r.len > 2) { r.len = 0; out(c, freeze(r)[1..]); }", FaultCause::Slice),
    ("if (r.len > 2) { r = #\"\"; r[0] = 1; out(c, freeze(r)); }", FaultCause::Index),
    ("in(intC, $n); if (r.len > 2) { if (n > 3) r.len = 0; r[1] = 1; out(c, freeze(r)); }", FaultCause::Index),
    ("var s = m; if (s.len > 2) { in(bytesC, s); out(c, s[1..]); }", FaultCause::Slice),
    ("var s = m; if (s.len > 2) { for t in 0..4 { out(c, s[1..]); s = s[1..]; } }", FaultCause::Slice),
    ("var s = m; if (s.len > 2) { alt { in(bytesC, s) { out(c, s[1..]); } } }", FaultCause::Slice),
    ("var i = 0; while (i < r.len) { r.len = r.len - 1; r[i] = 0; i += 1; } out(c, freeze(r));", FaultCause::Index),
    ("r.len = 5; for t in 0..3 { r[3] = 1; r.len = 2; } out(c, freeze(r));", FaultCause::Index),
    ("if (m.len < 3) { r.len = 4; } else { r.len = 3; } r[3] = 1; out(c, freeze(r));", FaultCause::Index),
    // The wrong bytes, outcome, end or bound.
    ("in(bytesC, $b); if (b.len > 2) out(c, m[1..]);", FaultCause::Slice),
    ("if (m.len > 2) { out(c, m); } else { out(c, m[1..]); }", FaultCause::Slice),
    ("if (m.len > 2 || m.len == 0) out(c, m[1..]);", FaultCause::Slice),
    ("if (m.len >= 4) { r[4] = 1; out(c, freeze(r)); }", FaultCause::Index),
    ("if (m.len == 7) out(c, m[2..8]);", FaultCause::Slice),
    ("r.len = 5; r[5] = 7; out(c, freeze(r));", FaultCause::Index),
    ("in(intC, $n); if (n <= m.len) out(c, m[..n]);", FaultCause::Slice),
    ("in(intC, $n); if (n >= 0) out(c, m[..n]);", FaultCause::Slice),
    ("in(intC, $i); in(intC, $j); if (0 <= i && j <= m.len) out(c, m[i..j]);", FaultCause::Slice),
    ("in(intC, $i); in(intC, $n); if (i >= 0 && n >= 0 && i + n <= m.len) out(c, m[i..i + n]);", FaultCause::Slice),
    ("out(c, m[0..m.len - 1]);", FaultCause::Slice),
    ("out(c, m[0..m.len / 2 + 1]);", FaultCause::Slice),
    ("in(intC, $i); if (m.len > 0) { r[i % m.len] = 1; out(c, freeze(r)); }", FaultCause::Index),
    ("if (8 / m.len > 2) out(c, m);", FaultCause::Divisor),
    ("var i = 0; while (i < m.len) { i += 1; r[i] = 0; } out(c, freeze(r));", FaultCause::Index),
    ("var i = 0; while (i <= m.len) { r[i] = 0; i += 1; } out(c, freeze(r));", FaultCause::Index),
    ("if (r.len < 8) r += \"xy\"; out(c, freeze(r));", FaultCause::Length),
    ("r += m; out(c, freeze(r));", FaultCause::Length),
    ("in(intC, $n); if (n <= 8) { r.len = n; out(c, freeze(r)); }", FaultCause::Length),
    ("in(intC, $n); if (n >= 0 && n < 10) { r.len = n; out(c, freeze(r)); }", FaultCause::Length),
    ("if (m.len >= 8) { r[0..4] = m[4..7]; out(c, freeze(r)); }", FaultCause::SliceLength),
    // Not proved as yet: a remainder by a length is not known to be positive.
    ("in(intC, $i); if (m.len > 0 && i >= 0) { r[i % m.len] = 1; out(c, freeze(r)); }", FaultCause::Index),
    ("assert(m.len > 2); out(c, m);", FaultCause::Assertion),
];

#[test]
fn provable_lengths_are_proved() {
    let unproved = PROVED.iter().map(|statements| program_of(statements)).filter_map(|text| {
        let found = faults(&text);
        (!found.is_empty() || !is_fused(&text)).then(|| format!("{found:?}\n{text}"))
    });
    let unproved: Vec<String> = unproved.collect();
    assert!(unproved.is_empty(), "{} of {}:\n{}", unproved.len(), PROVED.len(), unproved.join("\n"));
}

#[test]
fn near_misses_are_not_proved() {
    for (statements, cause) in REFUSED {
        let text = program_of(statements);
        let found: Vec<FaultCause> = faults(&text).iter().map(|fault| fault.cause).collect();
        assert!(!found.is_empty() && found.iter().all(|found| found == cause), "{found:?}\n{text}");
        assert!(!is_fused(&text), "{text}");
    }
}

/// Random statements about three `bytes` and two numbers, with loops and joins.
struct Generator {
    rng: Rng,
    loops: u32,
}

impl Generator {
    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.rng.usize(..texts.len())]
    }

    fn bytes(&mut self) -> &'static str {
        self.pick(&["r", "r", "s", "t"])
    }

    fn number(&mut self) -> String {
        match self.rng.u32(..9) {
            0 | 1 => self.rng.u32(..8).to_string(),
            _ => self.variable(),
        }
    }

    /// A number that is not a constant: the compiler reports constants that are always outside.
    fn variable(&mut self) -> String {
        match self.rng.u32(..7) {
            0 | 1 => self.pick(&["i", "j"]).to_string(),
            2 => format!("{}.len", self.bytes()),
            3 => format!("{}.len - {}", self.bytes(), self.rng.u32(1..3)),
            4 => format!("{}.len / {}", self.bytes(), self.rng.u32(1..4)),
            5 => format!("{} + {}", self.pick(&["i", "j"]), self.rng.u32(1..3)),
            _ => format!("({} & {})", self.pick(&["i", "j"]), self.rng.u32(1..8)),
        }
    }

    fn condition(&mut self) -> String {
        let comparison = |this: &mut Generator| {
            let left = if this.rng.bool() { format!("{}.len", this.bytes()) } else { this.number() };
            format!("{left} {} {}", this.pick(&["<", "<=", ">", ">=", "==", "!="]), this.number())
        };
        let first = comparison(self);
        match self.rng.u32(..6) {
            0 => format!("{first} || {}", comparison(self)),
            1..=3 => format!("{first} && {}", comparison(self)),
            _ => first,
        }
    }

    /// An access that a comparison before may prove.
    fn guarded(&mut self) -> String {
        let (b, of) = (self.bytes(), self.bytes());
        let k = self.rng.u32(..8);
        match self.rng.u32(..8) {
            0 => format!("if ({of}.len > {k}) {b}[{k}] = 1;"),
            1 => format!("if (0 <= i && i < {of}.len) {{ {} {b}[i] = u8(i); }}", self.simple()),
            2 => format!("if (0 <= i && i <= j && j <= {of}.len) {{ {} out(c, freeze({b})[i..j]); }}", self.simple()),
            3 => format!("{b}.len = {k}; {} {of}[{}] = 2;", self.simple(), k.saturating_sub(1)),
            4 => format!("if ({of}.len < 8) {{ {} {b} += \"x\"; }}", self.simple()),
            5 => format!("if ({of}.len + {b}.len <= 8) {{ {} {of} += freeze({b}); }}", self.simple()),
            6 => format!("if (i >= 0 && j >= 0 && i <= {of}.len && j <= {of}.len - i) out(c, freeze({b})[i..i + j]);"),
            _ => format!("i = 0; while (i < {of}.len) {{ {b}[i] = u8(j); i += 1; }}"),
        }
    }

    fn simple(&mut self) -> String {
        let (b, from) = (self.bytes(), self.bytes());
        match self.rng.u32(..16) {
            0 => format!("{b}.len = {};", self.number()),
            1 => format!("{b} = thaw(freeze({from}));"),
            2 => format!("{b} = thaw(freeze({from})[{}..{}]);", self.number(), self.variable()),
            3 => format!("{b} = thaw(freeze({from})[{}..]);", self.number()),
            4 => format!("{b} = #\"{}\";", &"abcdefgh"[..self.rng.usize(..9)]),
            5 => format!("{b} += freeze({from});"),
            6 => format!("{b}[{}] = u8(j);", self.number()),
            7 => format!("i = int({b}[{}]);", self.number()),
            8 => format!(
                "{b}[{}..{}] = freeze({from})[{}..{}];",
                self.number(),
                self.number(),
                self.number(),
                self.number()
            ),
            9 => "in(bytesC, b); r = thaw(b);".to_string(),
            10 => "in(intC, i);".to_string(),
            11 => format!("{} = {};", self.pick(&["i", "j"]), self.number()),
            12 => format!("out(c, freeze({b}));"),
            _ => format!("i = j; j = {};", self.number()),
        }
    }

    fn statements(&mut self, depth: u32) -> String {
        let mut text = String::new();
        for _ in 0..self.rng.u32(1..4) {
            let statement = match self.rng.u32(..10) {
                0 | 1 if depth > 0 => format!("if ({}) {{ {} }}", self.condition(), self.statements(depth - 1)),
                2 if depth > 0 => {
                    let (first, second) = (self.statements(depth - 1), self.statements(depth - 1));
                    format!("if ({}) {{ {first} }} else {{ {second} }}", self.condition())
                }
                3 if depth > 0 => {
                    self.loops += 1;
                    let k = self.loops;
                    let (condition, body) = (self.condition(), self.statements(depth - 1));
                    format!("var k{k} = 0; while (k{k} < 3 && ({condition})) {{ k{k} += 1; {body} }}")
                }
                4 if depth > 0 => format!("if ({}) continue;", self.condition()),
                5 | 6 => self.guarded(),
                _ => self.simple(),
            };
            text += &statement;
            text += " ";
        }
        text
    }

    fn program(&mut self) -> String {
        let statements = self.statements(3);
        program_of(&format!(
            "in(intC, $i0); in(intC, $j0); var i = i0, j = j0; var b = m; var s: #bytes[<=8] = #\"\", t: #bytes[<=8] = thaw(m); \
             {statements} out(c, freeze(r));"
        ))
    }
}

/// How a program ends with these inputs, and what it has sent.
fn run(program: &Program, seed: u64) -> (Vec<String>, Option<(Fault, quaject_esp_ir::ir::Location)>) {
    let mut rng = Rng::with_seed(seed);
    let mut environment = Script::new(program, "");
    let channel =
        |name: &str| program.channels.iter().position(|channel| channel.name == name).expect("it is declared");
    for _ in 0..24 {
        let bytes = (0..rng.usize(..9)).map(|_| rng.u8(..)).collect();
        environment.offers[channel("bytesC")].push_back(vec![Datum::Bytes(bytes)]);
        environment.offers[channel("intC")].push_back(vec![Datum::Int(i128::from(rng.i32(-2..12)))]);
    }
    let mut interpreter = Interpreter::new(program, environment.checks).expect("test programs are small");
    let outcome = interpreter.run(&mut environment, 100_000);
    let fault = match outcome {
        Outcome::Faulted(report) => Some((report.fault, report.location.in_text())),
        Outcome::Budget | Outcome::Quiescent(_) | Outcome::Ended(_) => None,
    };
    (environment.log, fault)
}

#[test]
fn what_is_proved_does_not_fault() {
    let (mut statements, mut unproved, mut faulted, mut fused_programs) = (0, 0, 0, 0);
    for seed in 0..Effort::wanted().pick(300, 3_000, 300_000) {
        let text = Generator { rng: Rng::with_seed(seed), loops: 0 }.program();
        let written = compile(Path::new("test.esp"), &text);
        let optimised = quaject_esp::optimise(written.clone(), false);
        let independence = ScheduleIndependence::analyze(&optimised, false);
        let mut fused = optimised.clone();
        let attempts = fuse_if_schedule_independent(&mut fused, false, Limits::default(), &independence);
        let is_fused = attempts.iter().any(|attempt| attempt.is_fused());
        assert_eq!(verify(&fused), [], "{}", print(&fused));
        fused_programs += u32::from(is_fused);
        let possible = [&written, &optimised].map(|program| possible_faults(program, ProcessId(0), false));
        statements += text.matches(['[', '+']).count();
        unproved += possible[1].len();
        for input in 0..8 {
            for (program, possible) in [&written, &optimised].into_iter().zip(&possible) {
                let (_, fault) = run(program, input);
                faulted += u32::from(fault.is_some());
                if let Some((fault, location)) = fault {
                    let is_expected = possible.iter().any(|possible| possible.location.in_text() == location);
                    assert!(is_expected, "seed {seed}: fault {fault:?} at {location:?} was excluded\n{text}");
                }
            }
            if is_fused {
                let ((log, fault), (fused_log, fused_fault)) = (run(&written, input), run(&fused, input));
                assert_eq!((by_channel(&log), fault), (by_channel(&fused_log), fused_fault), "seed {seed}\n{text}");
            }
        }
    }
    println!("{unproved} of about {statements} are not proved; {faulted} runs faulted; {fused_programs} are fused");
    assert!(faulted > 100 && fused_programs > 5, "the programs do not test the analysis");
}
