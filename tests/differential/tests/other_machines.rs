//! Generated C on machines unlike those of servers: random programs, the regression tests and the programs of
//! `examples/`, big-endian on MIPS, and with an `int` of 16 bits and an alignment of 1 on AVR. The interpreter of this
//! machine is the oracle.

use quaject_differential::c::run;
use quaject_differential::compare::{Conformance, compare};
use quaject_differential::generate::{Outcome, Sample, generate};
use quaject_differential::interpret;
use quaject_differential::machine::Compiler;
use quaject_differential::modes::Mode;
use quaject_differential::prove::{Plan, prove};
use quaject_differential::repository::{compile, programs, script};
use quaject_esp_ir::ir::Program;
use quaject_test_support::Effort;
use std::path::{Path, PathBuf};

/// As many programs as fit in the flash and the memory of the AVR.
const BATCH: u64 = 6;

/// Random programs in a mode; almost all have their first possible run.
fn random_programs(compiler: &Compiler, mode: Mode, seeds: std::ops::Range<u64>, batch: u64) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let found = prove(&Plan { seeds, batch, workers, mode, compiler: compiler.clone(), patience: 20 });
    // A defect of avr-gcc, which gives up on some functions with numbers of 64 bits.
    let is_ours = |error: &str| !error.contains("unable to find a register to spill");
    if let Some((seed, error)) = found.failures.iter().find(|(_, error)| is_ours(error)) {
        panic!("seed {seed}, {mode:?}: {error}\n{}", generate(*seed).text());
    }
    let (failures, programs) = (found.failures.len() as u64, found.programs);
    assert!(failures * 20 <= programs, "{failures} of {programs} programs do not compile");
    assert!(programs > 0, "no program has the mode {mode:?}");
}

#[test]
fn random_programs_big_endian() {
    let Some(compiler) = Compiler::mips(&["-O1", "-w"]) else { return };
    let count = Effort::wanted().pick(20, 100, 20_000);
    random_programs(&compiler, Mode::Process, 0..count, 20);
    // Some of them can be fused.
    random_programs(&compiler, Mode::Automata, count..count + count / 2, 20);
}

#[test]
fn random_programs_on_16_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(compiler) = Compiler::avr(folder.path(), &["-std=gnu99", "-Os", "-w"]) else { return };
    let count = Effort::wanted().pick(36, 36, 20_000);
    random_programs(&compiler, Mode::Process, 0..count, BATCH);
    // Some of them can be fused.
    random_programs(&compiler, Mode::Automata, count..count + count / 2, BATCH);
}

/// Examples whose state or messages do not fit in 64 KiB, or whose code is too long for its branches; the C compiler or
/// the linker refuses them.
const TOO_LARGE_FOR_AVR: [&str; 6] = [
    "hdlc/frame.esp",
    "nat/nat.esp",
    "patterns/snapshot.esp",
    "ports/ports-model.esp",
    "ports/ports.esp",
    "tftp/client.esp",
];

/// What they send depends on how long the machine takes.
const TIMED: [&str; 4] =
    ["patterns/circuit-breaker.esp", "patterns/elevator.esp", "patterns/leaky-bucket.esp", "patterns/token-bucket.esp"];

/// Each example in the default mode, with its own input or random messages, behaves as on the interpreter.
fn examples(compiler: &Compiler, left_out: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths = Vec::new();
    programs(&root, &mut paths);
    paths.sort();
    let turns = Effort::wanted().pick(1, 1, 20);
    let mut wanted: Vec<(PathBuf, Vec<Sample>, Program)> = Vec::new();
    for path in paths.iter().step_by(Effort::wanted().pick(5, 5, 1)) {
        let name = path.strip_prefix(&root).expect("it is an example").display().to_string();
        let Some(program) = compile(path, quaject_esp::Mode::Auto) else { continue };
        if left_out.contains(&name.as_str()) || TIMED.contains(&name.as_str()) || program.processes.is_empty() {
            continue;
        }
        let sample = |turn: u64| Sample {
            seed: turn,
            source: String::new(),
            files: Vec::new(),
            // From the third on, scripts are random and have many messages.
            script: script(path, &program, if turn == 0 && path.with_extension("in").exists() { 0 } else { turn + 3 }),
            outcome: Outcome::Determined,
        };
        let samples = (0..turns).map(sample).filter(|sample| interpret::interpret(sample, &program).is_ok()).collect();
        wanted.push((path.clone(), samples, program));
    }
    let mut failures = Vec::new();
    let mut compared = 0;
    for (path, samples, program) in &wanted {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for sample in samples {
            let result = run(compiler, folder.path(), &[(sample, program)]).map(|mut results| results.remove(0));
            let conformance = result.and_then(|result| result).and_then(|c_run| compare(sample, program, &c_run));
            match conformance {
                Ok(Conformance::Same | Conformance::Allowed) => compared += 1,
                Err(error) => failures.push(format!("{}, input {}: {error}", path.display(), sample.seed)),
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n\n"));
    assert!(compared >= Effort::wanted().pick(5, 5, 40), "only {compared} runs were compared");
}

#[test]
fn examples_big_endian() {
    let Some(compiler) = Compiler::mips(&["-O0", "-w"]) else { return };
    examples(&compiler, &[]);
}

#[test]
fn examples_on_16_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(compiler) = Compiler::avr(folder.path(), &["-std=gnu99", "-Os", "-w"]) else { return };
    examples(&compiler, &TOO_LARGE_FOR_AVR);
}
