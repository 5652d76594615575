//! The queues under the tools that watch memory: ThreadSanitizer on C threads over one ring; in a full run by
//! `cargo xtask test` Miri on the Rust tests; and with `QJ_TEST=soak` ThreadSanitizer on them, which compiles the
//! standard library first. The last two need the nightly compiler.

use std::path::Path;
use std::process::{Command, Output};

use quaject_test_support::{Effort, tool};

fn assert_success(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn c_threads_race_nowhere() {
    let Some(compiler) = tool(&["clang"]) else { return };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("threads-{}", std::process::id()));
    let output = Command::new(compiler)
        .args(["-std=c11", "-O1", "-g", "-D_GNU_SOURCE", "-fsanitize=thread", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([&sources.join("include"), Path::new("-o"), &program, &sources.join("tests/c/threads.c")])
        .arg("-pthread")
        .output();
    assert_success(&output.expect("`tool` has started it"));
    let count: u64 = Effort::wanted().pick(500, 20_000, 1_000_000);
    for kind in 0..4 {
        let output = Command::new(&program).args([kind.to_string(), count.to_string()]).output();
        assert_success(&output.expect("the program was just made"));
    }
}

/// Cargo of the nightly compiler on this crate's thread tests, with results of its own; `None` unless `QJ_TEST` is one
/// of `efforts`: an unset variable does not ask for minutes of compiling. A machine without the compiler gets it from
/// rustup, and the test fails when that is not possible.
fn nightly(access: &str, efforts: &[&str], probe: &[&str]) -> Option<Command> {
    if !std::env::var("QJ_TEST").is_ok_and(|effort| efforts.contains(&effort.as_str())) {
        return None;
    }
    let has = || Command::new("cargo").arg("+nightly").args(probe).output().is_ok_and(|output| output.status.success());
    if !has() {
        let install = ["toolchain", "install", "nightly", "--profile", "minimal", "--component", "miri,rust-src"];
        assert_success(&Command::new("rustup").args(install).output().expect("rustup brings the nightly compiler"));
        assert!(has(), "the nightly compiler is installed and cannot {access}");
    }
    let mut command = Command::new("cargo");
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join(access);
    std::fs::create_dir_all(&results).expect("the folder for test files can be written");
    command.arg("+nightly").current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("CARGO_TARGET_DIR", &results).env("QJ_TEST", "quick").env_remove("RUSTUP_TOOLCHAIN");
    Some(command)
}

#[test]
fn miri_finds_nothing() {
    let Some(mut cargo) = nightly("miri", &["full", "soak"], &["miri", "--version"]) else { return };
    cargo.env("MIRIFLAGS", "-Zmiri-disable-isolation").args(["miri", "test", "--quiet", "--test", "queues"]);
    assert_success(&cargo.output().expect("just asked for its version"));
}

#[test]
fn rust_threads_race_nowhere() {
    let Some(mut cargo) = nightly("tsan", &["soak"], &["--version"]) else { return };
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // The standard library too, lest its own synchronisation go unseen.
    cargo.env("RUSTFLAGS", "-Zsanitizer=thread").args(["test", "--quiet", "-Zbuild-std", "--target", &target]);
    assert_success(&cargo.args(["--test", "queues"]).output().expect("just asked for its version"));
}
