//! Everything that the ESP crates compute without an operating system, as one text: diagnostics, C, Promela, pictures,
//! runs of the interpreter, verdicts. The test compares the text that this library returns in WebAssembly with the one
//! that it returns on the machine that runs the test.

use quaject_diagnostic::{Color, human};
use quaject_esp::{
    Dump, Emit, Emitted, File, Limits, Loader, Mode, ModelSelection, Options, Outputs, Source, compile, graph, models,
    refinement_models, states,
};
use quaject_esp_check::{Compaction, Liveness, Reduction, RefinementInput, Symmetry, Timer, Verdict, chart, refine};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::{c, promela};

use quaject_esp_syntax::span::FileId;
use quaject_test_environment::{Script, act};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The limit on states of searches without partial-order reduction, so that an interpreter of WebAssembly ends in
/// seconds.
const MAX_UNREDUCED_STATES: u64 = 2_000;

/// The files that programs are made of.
const FILES: &[(&str, &str)] = &[
    ("frames.esp", include_str!("../../../examples/frames.esp")),
    ("rtu.esp", include_str!("../../../examples/modbus/rtu.esp")),
    ("slave.esp", include_str!("../../../examples/modbus/slave.esp")),
    ("figure2.esp", include_str!("../../../examples/vmmc-send/figure2.esp")),
    ("functions.esp", include_str!("../../../examples/vmmc-send/functions.esp")),
    ("send.esp", include_str!("../../../examples/vmmc-send/send.esp")),
    ("figure2-model.esp", include_str!("../../../examples/vmmc-send/figure2-model.esp")),
    ("figure5.fp", include_str!("../../../examples/vmmc-send/figure5.fp")),
    ("buggy.esp", include_str!("../../goker/etcd7492.buggy.esp")),
    ("fixed.esp", include_str!("../../goker/etcd7492.fixed.esp")),
    ("pipeline.esp", PIPELINE),
    ("starved.esp", STARVED),
    ("digits.esp", DIGITS),
    ("gate.esp", GATE),
    ("wrong.esp", WRONG),
];

/// A program with a script for the interpreter in its comments.
const PIPELINE: &str = "\
// offer textC \"ab\"
// later textC \"cde\"
// close textC
channel textC: bytes[<=8] external out;
channel byteC(u8);
channel sumC(int) external in;
process split {
  while { in(textC, $text); for i in 0..text.len { out(byteC, text[i]); } }
}
process sum {
  var total = 0;
  while { in(byteC, $byte); total += byte; out(sumC, total); }
}
";

/// One of two workers may wait for the lock forever.
const STARVED: &str = "\
channel lockC();
channel unlockC();
channel otherLockC();
process lock {
  while { alt { in(lockC) { in(unlockC); } in(otherLockC) { in(unlockC); } } }
}
process worker { while { out(lockC); out(unlockC); } }
process other { while { out(otherLockC); out(unlockC); } }
";

/// 4,096 states: enough that tables grow.
const DIGITS: &str = "\
channel tickC(int);
process digit[6] { var n = 0; while { out(tickC, n); n = (n + 1) % 4; } }
process sink { while { in(tickC, _); } }
";

/// A property that holds, and one that does not.
const GATE: &str = "\
channel enterC();
channel leaveC();
process gate {
  var inside = 0;
  while {
    idle alt {
      when (inside < 2) in(enterC) { inside += 1; }
      when (inside > 0) in(leaveC) { inside -= 1; }
    }
  }
}
process visitor[3] { while { out(enterC); out(leaveC); } }
model room { ltl \"[] (gate:inside <= 2)\"; }
model alone { ltl \"[] (gate:inside <= 1)\"; }
";

const WRONG: &str = "channel c: int\nprocess p { out(d, 1); }\nprocess q { var n: u8 = 300; }\n";

/// The result of every operation on every program.
pub fn report() -> String {
    let mut text = String::new();
    write_all(&mut text).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String) -> std::fmt::Result {
    let wrong = quaject_esp::check(source("wrong.esp", &[]), &mut Imports);
    writeln!(text, "{}", human(&wrong.sources, &wrong.diagnostics, Color::Never))?;
    write_service(text, "slave.esp")?;
    for name in ["frames.esp", "slave.esp", "send.esp", "pipeline.esp"] {
        write_code(text, name)?;
    }
    write_run(text, "pipeline.esp")?;
    for name in [
        "frames.esp",
        "slave.esp",
        "figure2-model.esp",
        "buggy.esp",
        "fixed.esp",
        "starved.esp",
        "digits.esp",
        "gate.esp",
    ] {
        write_verdicts(text, name)?;
    }
    write_refinement(text, "figure2-model.esp", "figure5.fp")
}

/// What an editor would show of a program: its problems, and each place where it knows a name.
fn write_service(text: &mut String, name: &str) -> std::fmt::Result {
    struct Texts;
    impl quaject_esp_ide::Files for Texts {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            let file = FILES.iter().find(|(name, _)| *name == path).ok_or("no such file")?;
            Ok(file.1.as_bytes().to_vec())
        }
    }
    let mut workspace = quaject_esp_ide::Workspace::new(Box::new(Texts), quaject_esp_ide::Roots::default());
    workspace.set_text(name, content(name));
    writeln!(text, "== {name}: problems\n{:?}", workspace.refresh())?;
    for offset in (0..content(name).len() as u32).step_by(16) {
        if let Some(hover) = workspace.hover(name, offset) {
            writeln!(text, "{}", hover.text)?;
        }
        writeln!(text, "{:?}", workspace.completions(name, offset).first())?;
    }
    Ok(())
}

/// The C of each mode, and the pictures.
fn write_code(text: &mut String, name: &str) -> std::fmt::Result {
    let checked = quaject_esp::check(source(name, &[]), &mut Imports);
    let program = checked.program.expect("examples have no errors");
    writeln!(text, "== {name}: channels\n{}", graph(&program))?;
    for mode in [Mode::Process, Mode::Automata, Mode::Auto] {
        let outputs = compiled(name, mode, Emit::C(c::Options::default()));
        let Emitted::C(output) = outputs.emitted else { unreachable!("C was requested") };
        writeln!(text, "== {name}: C, {mode:?}\n{}\n{}", output.header, output.source)?;
        let picture = states(&outputs.ir, &outputs.path_attempts).unwrap_or_else(|reason| format!("{reason:?}"));
        writeln!(text, "== {name}: automaton, {mode:?}\n{picture}")?;
    }
    Ok(())
}

/// The log of the interpreter.
fn write_run(text: &mut String, name: &str) -> std::fmt::Result {
    let ir = compiled(name, Mode::Process, Emit::Ir).ir;
    let mut environment = Script::new(&ir, content(name));
    let mut interpreter = Interpreter::new(&ir, Checks::On).expect("examples are small");
    let outcome = loop {
        let outcome = interpreter.run(&mut environment, 1_000_000);
        if !act(&mut environment, &outcome) {
            break outcome;
        }
    };
    writeln!(text, "== {name}: run\n{}\n{outcome:?}", environment.log.join("\n"))
}

/// The verdicts of each model under each reduction, and what Spin would be given.
fn write_verdicts(text: &mut String, name: &str) -> std::fmt::Result {
    use quaject_esp_check::Options;
    let found = models(source(name, &[]), &mut Imports, &ModelSelection::default()).expect("no name is selected");
    let limits = |timer, states| quaject_esp_check::Limits {
        timer: Some(timer),
        states,
        ..quaject_esp_check::Limits::default()
    };
    let unlimited = Options { limits: limits(Timer::unlimited(counted_time), None), ..Options::default() };
    let few_states = limits(Timer::unlimited(counted_time), Some(MAX_UNREDUCED_STATES));
    let little_time = limits(Timer::limited(counted_time, Duration::from_millis(20)), None);
    let variants = [
        unlimited.clone(),
        Options { reduction: Reduction::Off, limits: few_states.clone(), ..Options::default() },
        Options { compaction: Compaction::On, symmetry: Symmetry::On, ..unlimited },
        Options { liveness: Liveness::StarvationFreedom, limits: few_states, ..Options::default() },
        Options { limits: little_time, ..Options::default() },
    ];
    for model in found.models.expect("examples have no errors") {
        for options in &variants {
            let mut reports = 0;
            let checked = quaject_esp_check::check(&model, options, &mut |_| reports += 1);
            let mut report = checked.expect("the model has all ranges");
            // Half the memory in a 32-bit address space.
            report.bytes = 0;
            writeln!(text, "== {name}: verdict, after {reports} reports\n{}", report.text(&model, options))?;
            if let Verdict::Violated(counterexample) = &report.verdict {
                writeln!(text, "{}", chart(&model, counterexample))?;
            }
        }
        match promela::generate(&model, Checks::On, None) {
            Ok(spin) => writeln!(text, "== {name}: Promela\n{}", spin.text)?,
            Err(refusals) => writeln!(text, "== {name}: no Promela\n{refusals:?}")?,
        }
    }
    Ok(())
}

/// Whether the program with fast paths refines the one without.
fn write_refinement(text: &mut String, name: &str, paths: &str) -> std::fmt::Result {
    let source = source(name, &[paths]);
    let compared = refinement_models(source, &mut Imports, &ModelSelection::default(), Limits::default())
        .expect("no name is selected");
    let plain = compared.modelled.models.expect("examples have no errors");
    for (model, fast) in plain.iter().zip(&compared.models.expect("examples have no errors")) {
        let input = RefinementInput {
            specification: model,
            split_specification: &fast.specification,
            implementation: &fast.implementation,
        };
        let mut report = refine(input, &quaject_esp_check::Limits::default(), &mut |_| {}).expect("it has all ranges");
        report.bytes = 0;
        writeln!(text, "== {name}: refinement\n{}", report.text(model))?;
    }
    Ok(())
}

fn compiled(name: &str, mode: Mode, emit: Emit) -> Outputs {
    let options = Options { mode, dump: Dump::default(), ..Options::new(emit) };
    compile(source(name, &[]), &mut Imports, &options).outputs.expect("examples have no errors")
}

fn source(name: &str, fast_paths: &[&str]) -> Source {
    let file = |name: &str| File { name: name.to_owned(), bytes: content(name).as_bytes().to_vec() };
    Source { root: file(name), fast_paths: fast_paths.iter().map(|name| file(name)).collect() }
}

fn content(name: &str) -> &'static str {
    FILES.iter().find(|(known, _)| *known == name).expect("every name is one of the table").1
}

struct Imports;

impl Loader for Imports {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        Ok((path.to_owned(), content(path).as_bytes().to_vec()))
    }
}

/// A clock that advances by a millisecond whenever it is read: searches read it at the same points on every machine.
fn counted_time() -> Duration {
    static READINGS: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the counter publishes no other data.
    Duration::from_millis(READINGS.fetch_add(1, Ordering::Relaxed))
}

/// The address of the report in the upper half, its length in the lower one. It is never freed.
// SAFETY: no other function of the module has this name.
#[cfg(target_family = "wasm")]
#[unsafe(no_mangle)]
pub extern "C" fn wasm_report() -> u64 {
    let text = report().leak();
    (text.as_ptr() as u64) << 32 | text.len() as u64
}
