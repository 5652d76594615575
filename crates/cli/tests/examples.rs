//! The programs of `examples/`: `qj check` accepts every one, and those that lie beside an expected output give it on
//! every engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use quaject_test_support::{quick_compiler, tool};

/// The programs in a folder; what they import from it is checked with them.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let before = found.len();
    for entry in fs::read_dir(folder).expect("examples are readable") {
        let path = entry.expect("examples are readable").path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "esp") {
            found.push(path);
        }
    }
    let texts: Vec<String> =
        found[before..].iter().map(|path| fs::read_to_string(path).expect("examples are readable")).collect();
    found.retain(|path| {
        let name = path.file_name().expect("a file").to_string_lossy();
        let import = format!("import \"{name}\";");
        path.parent() != Some(folder) || !texts.iter().any(|text| text.contains(&import))
    });
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn every_example_with_an_expected_output_gives_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qj"));
    command.env("CC", quick_compiler());
    command.args(["test", "--engine", "interp", "--engine", "jit"]).arg(examples());
    if tool(&["cc"]).is_some() {
        command.args(["--engine", "c"]);
    }
    let output = command.output().expect("cargo built qj");
    let (report, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}{complaint}");
}

#[test]
fn every_example_checks() {
    let mut found = Vec::new();
    programs(&examples(), &mut found);
    assert!(found.len() > 5, "the examples have moved");
    for program in found {
        let output =
            Command::new(env!("CARGO_BIN_EXE_qj")).arg("check").arg(&program).output().expect("cargo built qj");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{complaint}", program.display());
    }
}

#[test]
fn every_example_is_verified() {
    let mut found = Vec::new();
    programs(&examples(), &mut found);
    // Figure 2 stands as the paper printed it; its model is beside it. So are those of programs that
    // are too large whole; the chip's is the TFTP server's.
    let is_model = |program: &Path| program.to_string_lossy().ends_with("model.esp");
    found.retain(|program| !program.ends_with("vmmc-send/figure2.esp"));
    found.retain(|program| !program.ends_with("chip/tftp.esp"));
    found.retain(|program| is_model(program) || !program.with_file_name("model.esp").exists());
    let started = Instant::now();
    for program in found {
        let output = Command::new(env!("CARGO_BIN_EXE_qj"))
            .args(["verify", "--max-time", "60"])
            .arg(&program)
            .output()
            .expect("cargo built qj");
        let (report, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}:\n{report}{complaint}", program.display());
        assert!(report.starts_with("no errors in "), "{}:\n{report}", program.display());
    }
    let seconds = started.elapsed().as_secs();
    assert!(seconds < 120, "{seconds} s for all of them");
}
