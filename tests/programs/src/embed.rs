//! `examples/embed`: generated C as part of other programs, built by make and by CMake as their users would.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_run, tool};

/// Two packets with an escaped END and ESC, an empty one, one that is too long, and one without end.
fn stream() -> Vec<u8> {
    let mut bytes = vec![1, 2, 0xdb, 0xdc, 0xc0, 0xc0, 0xdb, 0xdd, 0xc0];
    bytes.extend([7; 300]);
    bytes.extend([0xc0, 9, 0xc0, 5]);
    bytes
}

/// The example, copied to where it may be built.
fn copied(name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/embed");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("embed-{name}"));
    if to.exists() {
        fs::remove_dir_all(&to).expect("the scratch folder is ours");
    }
    copy_folder(&from.join(name), &to.join(name));
    fs::copy(from.join("slip.esp"), to.join("slip.esp")).expect("the example is part of the repository");
    to.join(name)
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the scratch folder is ours");
    for entry in fs::read_dir(from).expect("the example is part of the repository") {
        let path = entry.expect("the example is readable").path();
        let copy = to.join(path.file_name().expect("entries have names"));
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            fs::copy(&path, copy).expect("the scratch folder is ours");
        }
    }
}

/// Runs a command that must succeed without output on standard error.
fn succeed(command: &mut Command) {
    let output = command.output().expect("the tool starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}{complaint}", String::from_utf8_lossy(&output.stdout));
    assert!(!complaint.contains("warning"), "{command:?}: {complaint}");
}

fn output_of(program: &Path) -> String {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built");
    child.stdin.take().expect("piped above").write_all(&stream()).expect("it reads everything");
    let output = child.wait_with_output().expect("it has been started");
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).expect("it writes text")
}

#[test]
fn make_builds_the_sans_io_decoder() {
    let (Some(make), Some(_)) = (tool(&["make"]), tool(&["cc"])) else { return };
    let folder = copied("make");
    succeed(Command::new(make).current_dir(&folder).arg(format!("QJ={}", qj_binary())));
    assert_eq!(output_of(&folder.join("slip")), "3: 01 02 c0\n1: db\n1: 09\n");
}

#[test]
fn cmake_builds_the_polling_decoder() {
    if quick_run("a CMake project") {
        return;
    }
    let (Some(cmake), Some(_)) = (tool(&["cmake"]), tool(&["cc"])) else { return };
    let folder = copied("cmake");
    let qj = format!("-DQJ={}", qj_binary());
    succeed(Command::new(cmake).current_dir(&folder).args(["-S", ".", "-B", "build", &qj]));
    succeed(Command::new(cmake).current_dir(&folder).args(["--build", "build"]));
    assert_eq!(output_of(&folder.join("build/slip")), "3\n1\n1\n");
}

/// Gives the example the crates of this repository by their path, and the versions of this build.
fn adapt(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the example has a manifest");
    let crates = root.join("crates").canonicalize().expect("the repository has crates");
    // Not of the workspace around the scratch folder.
    let text = text.replace("../../../crates", &crates.display().to_string()) + "\n[workspace]\n";
    fs::write(&manifest, text).expect("the folder is ours");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the repository has a lock file");
}

/// A build without the network, with a folder of its own for results.
fn cargo_build(folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-project");
    // Without colours, whatever the settings of the user are: messages are compared.
    cargo.current_dir(folder).args(["build", "--quiet", "--offline", "--color", "never"]);
    cargo.env("CARGO_TARGET_DIR", results);
    cargo
}

#[test]
fn cargo_builds_the_decoder_and_shows_the_errors_of_a_program() {
    if quick_run("a Cargo project") {
        return;
    }
    let Some(_) = tool(&["cc"]) else { return };
    let folder = copied("cargo");
    adapt(&folder);
    succeed(&mut cargo_build(&folder));
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-project/debug/slip-decoder");
    assert_eq!(output_of(&results), "3: 01 02 c0\n1: db\n1: 09\n");

    // The script runs again because the program has changed.
    let program = folder.with_file_name("slip.esp");
    let text = fs::read_to_string(&program).expect("it was copied");
    fs::write(&program, text.replace("in(byteC,", "in(byteD,")).expect("the folder is ours");
    let output = cargo_build(&folder).output().expect("cargo starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{complaint}");
    let line = complaint.lines().find(|line| line.contains("E0208")).unwrap_or_else(|| panic!("{complaint}"));
    let wanted =
        "error: slip-decoder@0.1.0: ../slip.esp:16:8: error[E0208]: no channel named `byteD` / help: did you mean";
    assert!(line.starts_with(wanted), "{line}");
}

/// The README of the crate shows the program of the example.
#[test]
fn the_readme_shows_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("the repository has it");
    let example = read("examples/embed/cargo/src/main.rs");
    assert!(read("crates/build/README.md").contains(&example), "crates/build/README.md shows another program");
}
