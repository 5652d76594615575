//! Real programs on every engine, compared with implementations that share no code with them: Go's channel tests
//! against the results Go's own tests demand, the protocol programs against libraries of the registries.

mod arduino;
mod chips;
mod deadlines;
mod embed;
mod examples;
mod filters;
mod generated_c;
mod go_chan;
mod hdlc;
mod line_editor;
mod malformed;
mod modbus;
mod mqtt;
mod nat;
mod network;
mod ping;
mod ports;
mod tcpip;
mod tftp;
mod uds;
mod usb;

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_compiler, tool};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The engines of `qj run` that this machine can use.
fn engines() -> Vec<&'static str> {
    let mut engines = vec!["interp", "jit"];
    engines.extend(tool(&["cc"]).map(|_| "c"));
    engines
}

/// A path of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Runs `qj run` on a program of the repository with `input` on standard input. The input is a file and the clock
/// moves only when the program rests, so that a slow machine does not look like silence on a line.
fn run(engine: &str, program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(input).and_then(|()| file.rewind()).expect("the temporary file is writable");
    Command::new(qj_binary())
        .env("CC", quick_compiler())
        .args(["run", "--clock", "virtual", "--engine", engine])
        .arg(repository(program))
        .args(arguments)
        .stdin(Stdio::from(file))
        .output()
        .expect("cargo built qj")
}

/// Runs the programs of a folder of tests on all engines in virtual time; the output of each must be that of its `.out`
/// file.
fn assert_stories(folder: &str) {
    let mut command = Command::new(qj_binary());
    command.env("CC", quick_compiler()).arg("test").arg(repository(folder));
    command.args(engines().iter().flat_map(|engine| ["--engine", engine]));
    let output = command.output().expect("cargo built qj");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a program that must end with status 0 and returns its standard output.
fn run_well(engine: &str, program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = run(engine, program, arguments, input);
    assert!(
        output.status.success(),
        "{program} on engine {engine} ended with {}:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A line that holds a byte string literal.
fn literal(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{hex}\"\n")
}
