//! Random programs in other forms, fused and with random fast paths, on the interpreter and as C: each
//! behaviour is one of the program; if choices are unobservable, it is the same.

use quaject_differential::generate::generate;
use quaject_differential::interpret::{compile, interpret, profile};
use quaject_differential::machine::Compiler;
use quaject_differential::modes::{Mode, agree, transform};
use quaject_differential::prove::{Plan, prove};
use quaject_test_support::{Effort, tool};

/// Whether the seed's program has this form, or why the form is wrong.
fn check(seed: u64, mode: Mode) -> Result<bool, String> {
    let sample = generate(seed);
    let program = compile(&sample)?;
    let Some(made) = transform(seed, &program, mode)? else { return Ok(false) };
    let (plain, behaviour) = (interpret(&sample, &program)?, interpret(&sample, &made)?);
    agree(&sample, &program, &plain, &behaviour).map(|_| true)
}

fn interpreted(mode: Mode) {
    let first: u64 = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let (mut made, mut failures) = (0, Vec::new());
    let count = Effort::wanted().pick(400, 2_500, 200_000);
    for seed in first..first + count {
        match check(seed, mode) {
            Ok(has_form) => made += u64::from(has_form),
            Err(error) => failures.push((generate(seed).text(), seed, error)),
        }
    }
    failures.sort_by_key(|(source, _, _)| source.len());
    if let Some((source, seed, error)) = failures.first() {
        panic!("{} of {count} fail, {made} were made; the smallest, seed {seed}: {error}\n{source}", failures.len());
    }
    println!("{made} were made");
    assert!(made > count / 20, "only {made} of {count} programs have this form");
}

#[test]
fn fused_programs_preserve_behaviour() {
    interpreted(Mode::Automata);
}

#[test]
fn random_fast_paths_preserve_behaviour() {
    interpreted(Mode::FastPath);
}

/// Checks the seed's program with the fast path suggested for its profile; returns whether there is one.
fn check_suggested(seed: u64) -> Result<bool, String> {
    let sample = generate(seed);
    let program = compile(&sample)?;
    let profile = quaject_esp::Profile::new(&program, &profile(&sample, &program)?);
    let root = quaject_esp::File { name: "sample.esp".into(), bytes: sample.source.clone().into_bytes() };
    let mut source = quaject_esp::Source { root, fast_paths: Vec::new() };
    let Ok(suggestion) = quaject_esp::suggest(&source, &mut sample.loader(), &profile) else { return Ok(false) };
    source.root.bytes.extend(suggestion.text.bytes());
    let options =
        quaject_esp::Options { mode: quaject_esp::Mode::FastPath, ..quaject_esp::Options::new(quaject_esp::Emit::Ir) };
    let compiled = quaject_esp::compile(source, &mut sample.loader(), &options);
    let made = compiled.outputs.map_err(|_| format!("{}\n{:?}", suggestion.text, compiled.diagnostics))?.ir;
    let (plain, behaviour) = (interpret(&sample, &program)?, interpret(&sample, &made)?);
    agree(&sample, &program, &plain, &behaviour).map_err(|error| format!("{}\n{error}", suggestion.text))?;
    Ok(true)
}

#[test]
fn suggested_fast_paths_preserve_behaviour() {
    let count = Effort::wanted().pick(200, 1_200, 50_000);
    let mut suggested = 0;
    for seed in 0..count {
        match check_suggested(seed) {
            Ok(has_one) => suggested += u64::from(has_one),
            Err(error) => panic!("seed {seed}: {error}\n{}", generate(seed).text()),
        }
    }
    println!("{suggested} were suggested");
    assert!(suggested > count / 20, "only {suggested} of {count} programs have one");
}

#[test]
fn other_forms_in_c() {
    let Some(compiler) = tool(&["tcc", "cc", "gcc", "clang"]) else { return };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    for mode in [Mode::Direct, Mode::Automata, Mode::Auto, Mode::FastPath] {
        let compiler = Compiler::native(compiler, &["-w"]);
        let seeds = 0..Effort::wanted().pick(200, 1_200, 100_000);
        let found = prove(&Plan { seeds, batch: 200, workers, mode, compiler, patience: 20 });
        let smallest = found.failures.iter().map(|(seed, error)| (generate(*seed).text(), seed, error));
        if let Some((source, seed, error)) = smallest.min_by_key(|(source, _, _)| source.len()) {
            panic!("{mode:?}: {} failures; the smallest, seed {seed}: {error}\n{source}", found.failures.len());
        }
        assert!(found.unknown * 20 < found.programs, "{} of {} are not compared", found.unknown, found.programs);
    }
}
