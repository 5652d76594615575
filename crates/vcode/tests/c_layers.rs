//! `quaject/vcode-layers.h`: C programs against the static library, by both compilers under their sanitizers; the bytes
//! of random programs for every machine compared with those of the Rust layers; exceptions that go through its
//! functions; functions for other machines under emulation.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]

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
        words.find(|word| word.ends_with("libquaject_vcode.a")).expect("cargo says what it built").into()
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Where a test puts a file.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layers-{name}-{}", std::process::id()))
}

/// Compiles a program of `tests/c/layers` with the library, under sanitizers.
fn program(compiler: &str, language: &[&str], source: &str) -> PathBuf {
    let program = scratch(&format!("{source}-{compiler}"));
    run(Command::new(compiler)
        .args(language)
        .args(["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .args([&Path::new(SOURCES).join("include"), &Path::new(SOURCES).join("tests/c/layers").join(source)])
        .args(["-x", "none"])
        .arg(library())
        .args(["-lgcc_s", "-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program));
    program
}

#[test]
fn c_programs_use_everything() {
    if quick_run("a static library for C") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let program = program(compiler, &["-std=c11"], "use.c");
        assert_eq!(run(&mut Command::new(&program)), "ok\n", "{compiler}");
    }
}

#[test]
fn the_header_is_one_of_cpp_too() {
    for (compiler, standard) in
        [("gcc", "-std=c11"), ("clang", "-std=c11"), ("g++", "-std=c++17"), ("clang++", "-std=c++17")]
    {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let language = if standard.starts_with("-std=c++") { "c++" } else { "c" };
        let include = Path::new(SOURCES).join("include");
        // Alone, and with the other interface of vcode before it.
        for first in ["quaject/vcode-layers.h", "quaject/vcode.h"] {
            run(Command::new(compiler)
                .args([standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
                .arg(&include)
                .args(["-include", first, "-include", "quaject/vcode-layers.h", "-x", language, "/dev/null"]));
        }
        // It does not need C++17, which the other one does.
        let standard = standard.replace("c++17", "c++11");
        run(Command::new(compiler)
            .args([&standard, "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only", "-I"])
            .arg(&include)
            .args(["-include", "quaject/vcode-layers.h", "-x", language, "/dev/null"]));
    }
}
