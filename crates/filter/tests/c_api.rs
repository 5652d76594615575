//! `quaject/filter.h`: a program in C against the static library, by both compilers under their sanitizers; and the
//! header in C++.
#![cfg(target_os = "linux")]

use quaject_test_support::{quick_run, tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

/// The static library, built as Cargo's users do.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .current_dir(SOURCES)
            .args(["rustc", "--quiet", "--lib", "--crate-type", "staticlib", "--features", "c"])
            .args(["--message-format", "json-render-diagnostics"])
            .output()
            .expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = messages.split('"');
        words.find(|word| word.ends_with("libquaject_filter.a")).expect("cargo says what it built").into()
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn c_programs_use_everything() {
    if quick_run("a static library for C") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("filter-{compiler}-{}", std::process::id()));
        run(Command::new(compiler)
            .args([
                "-std=c11",
                "-g",
                "-O1",
                "-D_GNU_SOURCE",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
            ])
            .args(["-Wall", "-Wextra", "-Werror", "-I"])
            .args([&Path::new(SOURCES).join("include"), &Path::new(SOURCES).join("tests/c/filter.c"), library()])
            .args(["-lgcc_s", "-lpthread", "-lm", "-ldl", "-o"])
            .arg(&program));
        assert_eq!(run(&mut Command::new(&program)), "ok\n", "{compiler}");
    }
}

/// Children of a program with threads have code of their own.
#[test]
fn forked_workers_are_independent() {
    if quick_run("a static library for C") {
        return;
    }
    let Some(compiler) = tool(&["gcc"]) else { return };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("filter-fork-{}", std::process::id()));
    run(Command::new(compiler)
        .args(["-std=c11", "-g", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([&Path::new(SOURCES).join("include"), &Path::new(SOURCES).join("tests/c/fork.c"), library()])
        .args(["-lgcc_s", "-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program));
    assert_eq!(run(&mut Command::new(&program)), "ok\n");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    for (compiler, standard) in [("gcc", "-std=c99"), ("g++", "-std=c++11"), ("clang++", "-std=c++17")] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let language = if standard.starts_with("-std=c++") { "c++" } else { "c" };
        run(Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
            .arg(Path::new(SOURCES).join("include"))
            .args(["-include", "quaject/filter.h", "-x", language, "/dev/null"]));
    }
}
