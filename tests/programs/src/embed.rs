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
    fs::create_dir_all(to.join(name)).expect("the scratch folder is ours");
    fs::copy(from.join("slip.esp"), to.join("slip.esp")).expect("the example is part of the repository");
    for entry in fs::read_dir(from.join(name)).expect("the example is part of the repository") {
        let path = entry.expect("the example is readable").path();
        let file = path.file_name().expect("entries have names");
        fs::copy(&path, to.join(name).join(file)).expect("the scratch folder is ours");
    }
    to.join(name)
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
