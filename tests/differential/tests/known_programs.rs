//! Programs on which the engines once differed; each file's name says what was wrong.

use quaject_differential::c::{Compiler, run};
use quaject_differential::compare::compare;
use quaject_differential::generate::{Outcome, Sample};
use quaject_differential::interpret::compile;
use quaject_test_support::tool;
use std::path::Path;

#[test]
fn known_programs() {
    let Some(compiler) = tool(&["cc", "gcc", "clang", "tcc"]) else { return };
    let compiler = Compiler { command: compiler.to_string(), options: vec!["-w".to_string()] };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let samples: Vec<Sample> = paths
        .iter()
        .map(|path| {
            let source = std::fs::read_to_string(path).expect("the program can be read");
            Sample { seed: 0, source, inputs: Vec::new(), outcome: Outcome::Open }
        })
        .collect();
    let compiled: Vec<_> = samples.iter().map(|sample| compile(sample).expect("the program is right")).collect();
    let programs: Vec<_> = samples.iter().zip(&compiled).collect();
    let temporary = tempfile::tempdir().expect("a temporary folder can be made");
    let results = run(&compiler, temporary.path(), &programs).expect("the C compiler accepts the programs");
    for ((path, (sample, program)), result) in paths.iter().zip(programs).zip(results) {
        let likeness = result.and_then(|ran| compare(sample, program, &ran));
        assert!(likeness.is_ok(), "{}: {}", path.display(), likeness.expect_err("it is not right"));
    }
}
