//! What the kernel is started with: programs and archives that it runs, and those that it refuses with a reason.

use crate::harness::{Linking, boot, compile, emulator, word};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn check_refusal(ramdisk: Option<&[u8]>, command_line: &str, reason: &str) {
    let Some(emulator) = emulator() else { return };
    let folder = TempDir::new().expect("the temporary folder can be written");
    let file = folder.path().join("ramdisk");
    let path = ramdisk.map(|bytes| {
        fs::write(&file, bytes).expect("the folder can be written");
        file.as_path()
    });
    let machine = boot(emulator, command_line, path);
    assert_eq!(machine.outcome, "refused", "{}", machine.log);
    assert!(machine.log.contains(reason), "{}", machine.log);
}

#[test]
fn what_is_no_program_is_refused() {
    check_refusal(None, "", "there is no initial ramdisk");
    check_refusal(Some(b"#!/bin/sh\n"), "arg=script", "`script` is not an ELF file");
    check_refusal(Some(b"\x7fELF and no more"), "arg=cut", "`cut` is not an ELF file");
    check_refusal(Some(b"070701 and no more"), "", "the archive ends within an entry");
    check_refusal(Some(&archive(&[("other", b"x")])), "", "`/init`: ");
}

#[test]
fn a_dynamic_program_is_refused_with_the_way_out() {
    // The test itself is linked with the C library of the system.
    let own = std::env::current_exe().expect("the test has been started from a file");
    let Some(emulator) = emulator() else { return };
    let machine = boot(emulator, "arg=test", Some(&own));
    assert_eq!(machine.outcome, "refused", "{}", machine.log);
    assert!(machine.log.contains("`test` is linked dynamically; link it with `-static`"), "{}", machine.log);
}

/// An archive of regular files, in the format newc.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, contents) in files.iter().chain([&("TRAILER!!!", &b""[..])]) {
        let fields = [1, 0o100_755, 0, 0, 1, 0, contents.len(), 0, 0, 0, 0, name.len() + 1, 0];
        bytes.extend_from_slice(b"070701");
        bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(contents);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

#[test]
fn a_program_runs_from_an_archive_and_sees_its_files() {
    let Some(emulator) = emulator() else { return };
    let Some(compiler) = Linking::Glibc.compiler() else { return };
    let folder = TempDir::new().expect("the temporary folder can be written");
    let program = compile(folder.path(), "show_file", compiler, Linking::Glibc);
    let program = fs::read(&program).expect("it has been compiled");
    let path = folder.path().join("archive");
    fs::write(&path, archive(&[("init", &program), ("etc/inner/motd", b"in the archive\n")])).expect("a file");
    let show = |command_line: &str| boot(emulator, command_line, Some(Path::new(&path)));
    let machine = show(&[word("arg", "/init"), word("arg", "/etc/inner/motd")].join(" "));
    assert_eq!(
        (machine.console.as_str(), machine.outcome.as_str()),
        ("in the archive\n", "exited 0"),
        "{}",
        machine.log
    );
    let machine = show(&[word("arg", "init"), word("arg", "/etc/none")].join(" "));
    assert_eq!(machine.outcome, "exited 2", "{}", machine.log);
}

#[test]
fn a_trace_names_each_call_also_those_that_are_not_implemented() {
    let Some(emulator) = emulator() else { return };
    let Some(compiler) = Linking::Musl.compiler() else { return };
    let folder = TempDir::new().expect("the temporary folder can be written");
    let program = compile(folder.path(), "unknown_calls", compiler, Linking::Musl);
    let machine = boot(emulator, "trace arg=unknown", Some(&program));
    assert_eq!(machine.outcome, "exited 0", "{}", machine.log);
    for line in ["writev(20) [1, ", "io_uring_setup is not implemented (ENOSYS)", "? is not implemented (ENOSYS)"] {
        assert!(machine.log.contains(line), "`{line}` is missing: {}", machine.log);
    }
    assert_eq!(machine.console, "both are ENOSYS\n");
}

#[test]
fn a_program_that_waits_for_itself_is_a_deadlock() {
    let Some(emulator) = emulator() else { return };
    let Some(compiler) = Linking::Musl.compiler() else { return };
    let folder = TempDir::new().expect("the temporary folder can be written");
    let program = compile(folder.path(), "deadlock", compiler, Linking::Musl);
    let machine = boot(emulator, "arg=deadlock", Some(&program));
    assert_eq!(machine.outcome, "deadlock", "{}", machine.log);
    assert!(machine.log.contains("deadlock: 1 thread(s) wait for ever"), "{}", machine.log);
}

/// What `show_file` writes of a path, and how it ends.
fn show(emulator: &str, program: &Path, path: &str) -> (String, String) {
    let words = [word("arg", "show_file"), word("arg", path)].join(" ");
    let machine = boot(emulator, &words, Some(program));
    (machine.console, machine.outcome)
}

#[test]
fn synthesised_code_can_be_looked_at() {
    let (Some(emulator), Some(compiler)) = (emulator(), Linking::Musl.compiler()) else { return };
    let folder = TempDir::new().expect("the temporary folder can be written");
    let program = compile(folder.path(), "show_file", compiler, Linking::Musl);
    let (all, outcome) = show(emulator, &program, "/proc/synth");
    assert_eq!(outcome, "exited 0");
    for part in ["\ngetpid: ", "\nread_pipe: ", "\nwrite_file: ", "\nswitch: ", "rep movsq", "wrgsbase", "sysretq"] {
        assert!(all.contains(part), "`{part}` is missing: {all}");
    }
    let (console, outcome) = show(emulator, &program, "/proc/self/fd/1/code");
    assert_eq!(outcome, "exited 0");
    assert!(console.starts_with("the general path\nthe general path\nno_position: "), "{console}");
    let (_, outcome) = show(emulator, &program, "/proc/self/fd/9/code");
    assert_eq!(outcome, "exited 2", "there is no such descriptor");
}
