//! `qj kernel`: output, status, reports and errors.

use crate::harness::{Linking, compile, emulator, image};
use quaject_test_support::qj::qj_binary;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with compiled programs.
fn programs(names: &[&str]) -> Option<TempDir> {
    emulator()?;
    let compiler = Linking::Musl.compiler()?;
    let folder = TempDir::new().expect("the temporary folder can be written");
    for name in names {
        compile(folder.path(), name, compiler, Linking::Musl);
    }
    Some(folder)
}

fn qj(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(qj_binary());
    command.args(["kernel"]).args(arguments).current_dir(folder);
    command.env("QJ_KERNEL", image()).env("NO_COLOR", "1").output().expect("`qj` has been built")
}

/// The output, the errors and the status.
fn texts(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn output_arguments_environment_and_status_are_the_program_s() {
    let Some(folder) = programs(&["hello"]) else { return };
    let run = qj(folder.path(), &["run", "--env", "GREETING=h\u{e9} there", "./hello", "--timeout", "a b"]);
    let (output, errors, status) = texts(&run);
    let expected = "argument 1: [--timeout]\nargument 2: [a b]\nenvironment: h\u{e9} there\nto standard error\n";
    assert_eq!((output.as_str(), status), (expected, Some(7)), "{errors}");
    assert_eq!(errors, "");
}

#[test]
fn a_signal_is_a_status_and_a_report() {
    let Some(folder) = programs(&["endings"]) else { return };
    let (output, errors, status) = texts(&qj(folder.path(), &["run", "./endings", "null"]));
    assert_eq!((output.as_str(), status), ("null\n", Some(139)), "{errors}");
    assert!(errors.contains("kernel: thread 2 of `./endings`: signal 11: a fault at "), "{errors}");
    assert!(errors.contains("\nrsp ") || errors.contains("kernel: rsp "), "{errors}");
}

#[test]
fn a_trace_and_a_deadlock_are_reported() {
    let Some(folder) = programs(&["deadlock"]) else { return };
    let (_, errors, status) = texts(&qj(folder.path(), &["run", "--trace", "./deadlock"]));
    assert_eq!(status, Some(123), "{errors}");
    assert!(errors.contains("kernel: [2] read(0) [3, ") && errors.contains("error[H0506]: every thread"), "{errors}");
}

#[test]
fn a_limit_ends_a_program_that_does_not_end() {
    let Some(folder) = programs(&["spin"]) else { return };
    let (_, errors, status) = texts(&qj(folder.path(), &["run", "--timeout", "1", "./spin"]));
    assert_eq!(status, Some(124), "{errors}");
    assert!(errors.contains("error[H0301]: the program runs for more than 1 s"), "{errors}");
}

#[test]
fn what_cannot_run_is_an_error_with_a_way_out() {
    let Some(folder) = programs(&[]) else { return };
    fs::write(folder.path().join("script"), "#!/bin/sh\n").expect("the folder can be written");
    let (_, errors, status) = texts(&qj(folder.path(), &["run", "script"]));
    assert_eq!(status, Some(126), "{errors}");
    assert!(errors.contains("`script` is not an ELF file") && errors.contains("error[H0202]"), "{errors}");
    let (_, errors, status) = texts(&qj(folder.path(), &["run", "nothing"]));
    assert_eq!((errors.contains("error[H0201]: cannot read `nothing`"), status), (true, Some(1)), "{errors}");
    let (_, errors, status) = texts(&qj(folder.path(), &["run", "--kernel", "nothing", "script"]));
    assert_eq!((errors.contains("error[H0201]: cannot read `nothing`"), status), (true, Some(1)), "{errors}");
    // Not the kernel: QEMU has no way to start it.
    let (_, errors, status) = texts(&qj(folder.path(), &["run", "--kernel", "script", "script"]));
    assert_eq!((errors.contains("error[H0502]: QEMU ended"), status), (true, Some(125)), "{errors}");
    let mut command = Command::new(qj_binary());
    command.args(["kernel", "run", "script"]).current_dir(folder.path()).env("PATH", "").env("QJ_KERNEL", image());
    let (_, errors, status) = texts(&command.output().expect("`qj` has been built"));
    assert_eq!((errors.contains("error[H0501]: cannot run `qemu-system-x86_64`"), status), (true, Some(1)), "{errors}");
}

/// The numbers do not depend on the computer: two runs agree.
#[test]
fn instructions_are_counted_and_the_same_each_time() {
    let Some(folder) = programs(&["hello"]) else { return };
    let run = || texts(&qj(folder.path(), &["count", "--json", "./hello"]));
    let (output, counts, status) = run();
    assert_eq!((output.as_str(), status), ("environment: no greeting\nto standard error\n", Some(7)), "{counts}");
    let line = counts.lines().find(|line| line.contains("\"set_tid_address\"")).expect("musl makes this call");
    assert!(line.contains("\"calls\":1,") && line.contains("\"switched\":0"), "{line}");
    let again = run();
    assert_eq!(again.1.lines().find(|line| line.contains("\"set_tid_address\"")), Some(line));
    let (_, table, _) = texts(&qj(folder.path(), &["count", "./hello"]));
    assert!(table.starts_with("call ") && table.contains("\nset_tid_address "), "{table}");
}
