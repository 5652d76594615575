//! Regression tests: programs on which the engines once differed; the name of each file describes the cause.

use quaject_differential::c::run;
use quaject_differential::compare::{Conformance, compare};
use quaject_differential::environment::Script;
use quaject_differential::generate::{Outcome, Sample};
use quaject_differential::interpret::{Local, compile, run_locally};
use quaject_differential::machine::Compiler;
use quaject_esp::{Emit, File, Loader, Mode, Options, Source};
use quaject_esp_exec::datum::{Datum, parse_message};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;
use quaject_esp_syntax::span::FileId;
use quaject_test_support::tool;
use std::path::Path;

/// The environment's script: the leading lines `// CHANNEL <- MESSAGE` and `// held CHANNEL`.
fn offered(source: &str, program: &Program) -> Script {
    let mut inputs: Vec<(String, Vec<Vec<Datum>>)> = Vec::new();
    let mut held = Vec::new();
    for line in source.lines().map_while(|line| line.strip_prefix("// ")) {
        if let Some(name) = line.strip_prefix("held ") {
            held.push(name.to_string());
            continue;
        }
        let (name, text) = line.split_once(" <- ").expect("the comment says what is offered");
        let channel =
            program.channels.iter().find(|channel| channel.name.as_str() == name).expect("the channel is there");
        let message = parse_message(program, &channel.payload, text).expect("the message fits the channel");
        match inputs.iter_mut().find(|(known, _)| known == name) {
            Some((_, messages)) => messages.push(message),
            None => inputs.push((name.to_string(), vec![message])),
        }
    }
    Script { inputs, held }
}

/// A program with the fast paths that it names, all of which can be made.
fn with_fast_paths(sample: &Sample) -> Result<Program, String> {
    let root = File { name: "sample.esp".into(), bytes: sample.source.clone().into_bytes() };
    let options = Options { mode: Mode::FastPath, ..Options::new(Emit::Ir) };
    let compiled = quaject_esp::compile(Source { root, fast_paths: Vec::new() }, &mut NoImports, &options);
    let outputs = compiled.outputs.map_err(|_| format!("{:?}", compiled.diagnostics))?;
    match outputs.path_attempts.iter().find(|attempt| attempt.result.is_err()) {
        Some(refused) => Err(refused.text(&outputs.ir)),
        None => Ok(outputs.ir),
    }
}

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("the programs import nothing".into())
    }
}

/// Every program of a folder has the same behaviour on every engine.
fn engines_agree(folder: &str, compile: impl Fn(&Sample) -> Result<Program, String>) {
    let Some(compiler) = tool(&["cc", "gcc", "clang", "tcc"]) else { return };
    let compiler = Compiler::native(compiler, &["-w"]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut samples: Vec<Sample> = paths
        .iter()
        .map(|path| {
            let source = std::fs::read_to_string(path).expect("the program can be read");
            Sample { seed: 0, source, files: Vec::new(), script: Script::default(), outcome: Outcome::Open }
        })
        .collect();
    let compiled: Vec<_> =
        samples.iter().map(|sample| compile(sample).unwrap_or_else(|error| panic!("{error}"))).collect();
    for (sample, program) in samples.iter_mut().zip(&compiled) {
        sample.script = offered(&sample.source, program);
    }
    let programs: Vec<_> = samples.iter().zip(&compiled).collect();
    let temporary = tempfile::tempdir().expect("a temporary folder can be made");
    let results = run(&compiler, temporary.path(), &programs).expect("the C compiler accepts the programs");
    for ((path, (sample, program)), result) in paths.iter().zip(programs).zip(results) {
        let [wanted, found] = [Local::Interpreted, Local::Native]
            .map(|local| run_locally(sample, program, Checks::Off, local, 20_000_000));
        assert_eq!(found, wanted, "{}", path.display());
        if program.paths.is_empty() {
            let optimised = quaject_esp::optimise(program.clone(), false);
            for local in [Local::Interpreted, Local::Native] {
                let found = run_locally(sample, &optimised, Checks::Off, local, 20_000_000);
                assert_eq!(found, wanted, "{}, optimised", path.display());
            }
        }
        let conformance = result.and_then(|c_run| compare(sample, program, &c_run));
        assert_eq!(conformance, Ok(Conformance::Same), "{}", path.display());
    }
}

#[test]
fn known_programs() {
    engines_agree("programs", compile);
}

#[test]
fn known_fast_paths() {
    engines_agree("fast-paths", with_fast_paths);
}
