//! Each program of `programs/` has the same output and the same end in the kernel as on Linux; one makes random calls,
//! and is not run on Linux.

use crate::harness::{Linking, boot, compile, emulator, word};
use quaject_test_support::Effort;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const GREETING: &str = "good morning, \u{e4}&%";

/// What a program wrote, to standard output and standard error, and how it ended, as the kernel's log says it.
#[derive(PartialEq, Eq, Debug)]
struct Run {
    output: String,
    outcome: String,
}

fn run_on_linux(program: &Path, arguments: &[&str]) -> Run {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let written = folder.path().join("output");
    let work = folder.path().join("work");
    fs::create_dir(&work).expect("the folder can be written");
    // One description for both, so that what is written to them keeps its order.
    let output = File::create(&written).expect("the folder can be written");
    let errors = output.try_clone().expect("a descriptor is free");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&work).env_clear().env("GREETING", GREETING).stdin(Stdio::null());
    let status = command.stdout(output).stderr(errors).status().expect("the program has been compiled");
    let outcome = match (status.code(), status.signal()) {
        (Some(status), _) => format!("exited {status}"),
        (None, signal) => format!("killed {}", signal.expect("a process ends by exit or by a signal")),
    };
    let output = fs::read(&written).expect("it has been written");
    Run { output: String::from_utf8_lossy(&output).into_owned(), outcome }
}

fn run_in_kernel(emulator: &str, program: &Path, arguments: &[&str]) -> (Run, String) {
    // Linux tells the program the path by which it was started.
    let name = program.to_str().expect("temporary folders have names in UTF-8");
    let mut words = vec![word("arg", name), word("env", &format!("GREETING={GREETING}"))];
    words.extend(arguments.iter().map(|argument| word("arg", argument)));
    let machine = boot(emulator, &words.join(" "), Some(program));
    (Run { output: machine.console, outcome: machine.outcome }, machine.log)
}

/// Compares the program with each list of arguments, linked in each way.
fn check(name: &str, linkings: &[Linking], argument_lists: &[&[&str]]) {
    let Some(emulator) = emulator() else { return };
    for linking in linkings {
        let Some(compiler) = linking.compiler() else { continue };
        let folder = TempDir::new().expect("the temporary folder can be written");
        let program = compile(folder.path(), name, compiler, *linking);
        for arguments in argument_lists {
            let expected = run_on_linux(&program, arguments);
            let (actual, log) = run_in_kernel(emulator, &program, arguments);
            assert_eq!(actual, expected, "{name} {arguments:?} with {linking:?}; the kernel's log: {log}");
        }
    }
}

const BOTH: &[Linking] = &[Linking::Glibc, Linking::Musl];

#[test]
fn arguments_environment_and_status() {
    let all = [Linking::Glibc, Linking::GlibcRelocatable, Linking::Musl];
    check("hello", &all, &[&[], &["two words", "", "%20", "=&\u{fc}"]]);
}

#[test]
fn regular_files_and_directories() {
    check("files", BOTH, &[&[]]);
}

#[test]
fn devices() {
    check("devices", BOTH, &[&[]]);
}

#[test]
fn pipes() {
    check("pipes", BOTH, &[&[]]);
}

#[test]
fn bad_pointers() {
    check("bad_pointers", BOTH, &[&[]]);
}

/// Reads, writes and seeks by routines: every address and every length.
#[test]
fn descriptors() {
    check("descriptors", BOTH, &[&[]]);
}

#[test]
fn threads_that_block_in_pipes() {
    check("blocked", BOTH, &[&[]]);
}

#[test]
fn floating_point_of_threads() {
    check("floating", BOTH, &[&[]]);
}

#[test]
fn many_opens_need_no_more_memory_than_few() {
    let turns = Effort::wanted().pick("500", "2000", "1000000");
    check("many_opens", &[Linking::Musl], &[&[turns]]);
}

#[test]
fn memory() {
    check("memory", BOTH, &[&[]]);
}

#[test]
fn threads() {
    check("threads", BOTH, &[&[]]);
}

#[test]
fn signals() {
    check("signals", BOTH, &[&[]]);
}

#[test]
fn clocks() {
    check("clocks", BOTH, &[&[]]);
}

#[test]
fn alarms() {
    check("alarms", BOTH, &[&[]]);
}

/// The kernel survives what a program can ask for; its checks of overflow and of its own assertions are on.
#[test]
fn random_calls() {
    let Some(emulator) = emulator() else { return };
    let Some(compiler) = Linking::Musl.compiler() else { return };
    let folder = TempDir::new().expect("the temporary folder can be written");
    let program = compile(folder.path(), "random_calls", compiler, Linking::Musl);
    let seeds = Effort::wanted().pick(2, 8, 10_000);
    for seed in 0..seeds {
        let (run, log) = run_in_kernel(emulator, &program, &[&seed.to_string()]);
        assert_eq!(run.outcome, "exited 77", "seed {seed}: {log}");
    }
}

#[test]
fn ways_to_end() {
    let ways = [
        "return",
        "large",
        "abort",
        "null",
        "stack",
        "divide",
        "instruction",
        "pipe",
        "kill",
        "blocked fault",
        "first thread",
        "other thread",
    ];
    let lists: Vec<[&str; 1]> = ways.iter().map(|way| [*way]).collect();
    let lists: Vec<&[&str]> = lists.iter().map(|list| list.as_slice()).collect();
    check("endings", BOTH, &lists);
}
