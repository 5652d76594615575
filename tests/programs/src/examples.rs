//! The programs of `examples/`: `qj check` accepts every one, and those that have an expected output produce it on
//! every engine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_compiler, tool};

/// Every file of a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("examples are readable") {
        let path = entry.expect("examples are readable").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "esp") {
            found.push(path);
        }
    }
}

/// The programs of a folder without the files that others import.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    files(folder, found);
    let all: Vec<(PathBuf, String)> =
        found.iter().map(|path| (path.clone(), fs::read_to_string(path).expect("examples are readable"))).collect();
    found.retain(|path| {
        let name = path.file_name().expect("a file").to_string_lossy();
        let import = format!("import \"{name}\"");
        !all.iter().any(|(other, text)| other.parent() == path.parent() && text.contains(&import))
    });
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn every_example_produces_its_expected_output() {
    let mut command = Command::new(qj_binary());
    command.env("CC", quick_compiler());
    command.args(["test", "--engine", "interp", "--engine", "jit"]).arg(examples());
    if tool(&["cc"]).is_some() {
        command.args(["--engine", "c"]);
    }
    let output = command.output().expect("cargo built qj");
    let (report, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}{complaint}");
}

/// Every file by itself, so that editors can check it. Figure 2 has the text of its paper, which declares no functions.
#[test]
fn every_file_of_the_examples_checks() {
    let mut found = Vec::new();
    files(&examples(), &mut found);
    found.retain(|file| !file.ends_with("vmmc-send/figure2.esp"));
    assert!(found.len() > 50, "the examples have moved");
    for program in found {
        let output = Command::new(qj_binary()).arg("check").arg(&program).output().expect("cargo built qj");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{complaint}", program.display());
    }
}

/// The processes that a program has, each by its file and its name.
fn processes(program: &Path, found: &mut BTreeSet<(PathBuf, String)>) {
    let program = program.canonicalize().expect("examples are readable");
    for line in fs::read_to_string(&program).expect("examples are readable").lines() {
        if let Some(rest) = line.strip_prefix("process ") {
            let name = rest.split([' ', '[', '{']).next().expect("a name");
            found.insert((program.clone(), name.to_string()));
        } else if let Some(rest) = line.strip_prefix("import \"").filter(|rest| !rest.starts_with("std:")) {
            processes(&program.with_file_name(rest.split('"').next().expect("a file")), found);
        }
    }
}

/// Processes whose states are those of their data: stored messages, partial packets. The models of the broker replace
/// them by abstractions.
const UNEXPLORED: [&str; 3] = ["keeper of mqtt/router.esp", "router of mqtt/router.esp", "stream of mqtt/stream.esp"];

/// The maximum number of states of one model, on machines of any speed.
const MAX_STATES: &str = "100000000";

/// Every process of every other example is explored completely, in a program or in a model. Programs with `*model.esp`
/// files in their folder are explored by those: they are too large, or printed as in a paper.
#[test]
fn every_example_is_verified() {
    let mut found = Vec::new();
    programs(&examples(), &mut found);
    let is_model = |program: &Path| program.to_string_lossy().ends_with("model.esp");
    let modelled: BTreeSet<PathBuf> =
        found.iter().filter(|program| is_model(program)).map(|program| program.with_file_name("")).collect();
    found.retain(|program| is_model(program) || !modelled.contains(&program.with_file_name("")));
    // They differ in constants only; their processes are those of the TFTP server and the Modbus slave.
    found.retain(|program| !program.ends_with("chip/tftp.esp") && !program.ends_with("chip/modbus.esp"));
    // The patterns have a test of their own.
    let is_pattern = |program: &Path| program.starts_with(examples().join("patterns"));
    found.retain(|program| !is_pattern(program));

    let mut explored = BTreeSet::new();
    for program in found {
        let output = Command::new(qj_binary())
            .args(["verify", "--max-states", MAX_STATES])
            .arg(&program)
            .output()
            .expect("cargo built qj");
        let (report, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}:\n{report}{complaint}", program.display());
        let mut here = BTreeSet::new();
        processes(&program, &mut here);
        let all = if here.len() == 1 { "1 process".to_string() } else { format!("{} processes", here.len()) };
        let mut verdicts = report.lines().filter_map(|line| line.strip_prefix("no errors in ")).peekable();
        assert!(verdicts.peek().is_some(), "{}:\n{report}", program.display());
        // In a slice of a program the other processes are abstracted.
        if verdicts.any(|verdict| verdict == all || verdict.ends_with(&format!("({all})"))) {
            explored.extend(here);
        }
    }
    let (mut every, mut wanted) = (Vec::new(), BTreeSet::new());
    files(&examples(), &mut every);
    for file in every.iter().filter(|file| !is_pattern(file)) {
        processes(file, &mut wanted);
    }
    assert!(wanted.len() > 50, "the examples have moved");
    let left_out = wanted.difference(&explored).map(|(file, name)| {
        let folder = examples().canonicalize().expect("examples are readable");
        format!("{} of {}", name, file.strip_prefix(folder).expect("it is an example").display())
    });
    assert_eq!(left_out.collect::<Vec<_>>(), UNEXPLORED);
}
