//! Programs in 'C, translated, compiled and run: on this machine with each compiler, and on the others under QEMU.

mod support;

use quaject_test_support::{Effort, quick_run, tool};
use quaject_tickc::{RUNTIME_EXPLANATIONS, RuntimeCode};
use std::path::Path;
use std::process::Command;
use support::{FOLDER, MACHINES, library, run, scratch, succeed, translated, with_headers};

/// The programs, by their names in the folder.
const PROGRAMS: &[&str] = &["basics", "aggregates"];

#[test]
fn programs_run_with_every_compiler() {
    let folder = scratch("host");
    for compiler in ["gcc", "clang"] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let objects = library(compiler, &folder);
        let levels: &[&str] = Effort::wanted().pick(&["-O1"], &["-O0", "-O2"], &["-O0", "-O1", "-O2", "-Os"]);
        for name in PROGRAMS {
            let source = translated(compiler, Path::new(&format!("{FOLDER}/tests/programs/{name}.tc")), &folder);
            for level in levels {
                let program = folder.join(format!("{name}-{compiler}{level}"));
                let mut command = with_headers(compiler);
                command.args([level, "-Wall", "-Wextra", "-Werror"]).arg(&source).args(&objects);
                succeed(command.args(["-lm", "-lpthread", "-o"]).arg(&program));
                assert_eq!(run(&mut Command::new(&program)), "OK\n", "{name}, {compiler} {level}");
            }
        }
    }
}

/// The program of the README: it ends with 0 if what it makes is right.
#[test]
fn the_example_of_the_readme_runs() {
    let Some(compiler) = tool(&["cc"]) else { return };
    let folder = scratch("readme");
    let example = include_str!("../README.md").split_once("```c\n").and_then(|(_, rest)| rest.split_once("```"));
    let source = folder.join("readme.tc");
    std::fs::write(&source, example.expect("the README has a program").0).expect("files can be written");
    let program = folder.join("readme");
    let mut command = with_headers(compiler);
    command.arg("-O1").arg(translated(compiler, &source, &folder)).args(library(compiler, &folder));
    succeed(command.args(["-lpthread", "-o"]).arg(&program));
    run(&mut Command::new(&program));
}

#[test]
fn programs_run_on_other_machines() {
    if quick_run("programs in 'C on other machines") {
        return;
    }
    let folder = scratch("machines");
    for machine in MACHINES {
        let (Some(compiler), Some(emulator)) = (tool(&[machine.compiler]), tool(&[machine.emulator])) else { continue };
        let objects = library(compiler, &folder);
        for name in PROGRAMS {
            let source = translated(compiler, Path::new(&format!("{FOLDER}/tests/programs/{name}.tc")), &folder);
            let program = folder.join(format!("{name}-{emulator}"));
            let mut command = with_headers(compiler);
            command.arg("-O1").args(machine.linkage).arg(&source).args(&objects);
            succeed(command.args(["-lm", "-lpthread", "-o"]).arg(&program));
            assert_eq!(run(&mut machine.command(&program)), "OK\n", "{name}, {emulator}");
        }
    }
}

/// What `errors.tc` prints: the line of the special function, the code, and the cause.
const ERRORS: &str = "\
errors.tc:34: T0104: the system gives no memory for code
errors.tc:41: T0101: jump() to a label that is spliced nowhere in the function
errors.tc:42: T0102: a label is spliced twice: make one for each place
errors.tc:49: T0103: a tick uses a variable of a function that has returned: take its value with `$`, or make it static
errors.tc:51: T0103: a tick uses a variable of a function that has returned: take its value with `$`, or make it static
errors.tc:62: T0106: a vspec of another function: it belongs to the next compile() after local() or param()
errors.tc:64: T0107: a parameter is missing: param() was called for a higher number, and not for it
errors.tc:66: T0107: param() has given a parameter two types
errors.tc:68: T0107: param() with a number that is not from 0 to 31, or with the type of a struct: pass a pointer to it
errors.tc:75: T0108: jump() to a cspec that label() has not made
errors.tc:76: T0108: push() to what push_init() has not made, or of more than 32 arguments
errors.tc:76: T0108: an argument list of push_init() is used as code: pass it to apply()
errors.tc:80: T0109: free_code() of an address that compile() has not returned, or twice
errors.tc:81: T0110: `return` of a struct, or without a value, in a function with a result
errors.tc:87: T0111: cspecs are composed to a tree that is too deep for the stack: assign parts to variables
errors.tc:88: T0105: a function is too long: divide it, or unroll fewer loops
";

#[test]
fn errors_of_the_runtime_have_a_place_and_a_code() {
    let folder = scratch("errors");
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O2")] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let objects = library(compiler, &folder);
        let source = translated(compiler, Path::new(&format!("{FOLDER}/tests/programs/errors.tc")), &folder);
        let program = folder.join(format!("errors-{compiler}{level}"));
        let mut command = with_headers(compiler);
        command.args([level, "-Wno-return-local-addr"]).arg(&source).args(&objects);
        succeed(command.args(["-lpthread", "-o"]).arg(&program));
        assert_eq!(run(&mut Command::new(&program)), ERRORS, "{compiler} {level}");
    }
    for code in RuntimeCode::ALL.map(RuntimeCode::name) {
        assert!(ERRORS.contains(code), "{code} has no test");
        assert!(RUNTIME_EXPLANATIONS.iter().any(|own| own.code == code), "{code} has no explanation");
    }
}
