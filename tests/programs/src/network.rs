//! Shared by the tests of network programs: a network namespace, files to request, tools of the kernel's side.

use super::repository;
use quaject_test_support::qj::qj_binary;
use quaject_test_support::random::Random;
use quaject_test_support::{quick_compiler, tool};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The HTTP server on the kernel's TCP.
pub(super) const HTTP: &str = "examples/tcpip/kernel.esp";

pub(super) fn tools_are_there() -> bool {
    ["ip", "ping", "curl", "nc"].iter().all(|name| tool(&[name]).is_some())
}

/// A folder with files of these sizes, named after them.
pub(super) fn folder(sizes: &[usize]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for size in sizes {
        let mut random = Random(*size as u64 + 1);
        let content: Vec<u8> = (0..*size).map(|_| random.byte()).collect();
        fs::write(folder.path().join(size.to_string()), content).expect("the folder is writable");
    }
    folder
}

/// The kernel asks for the address of a neighbour three times, once a second, and then calls it unreachable. A program
/// on a busy machine may answer later. `patient DEVICE` lets it ask for minutes.
const PATIENT: &str = "patient() { for count in mcast_solicit ucast_solicit; do
    echo 600 > /proc/sys/net/ipv4/neigh/$1/$count; done; }; export -f patient";

/// Runs a script in a network namespace of its own and in this folder, with `patient`, `$QJ` and the programs of the
/// repository under these names.
pub(super) fn in_own_network(script: &str, folder: &Path, programs: &[(&str, &str)]) -> Output {
    Command::new("unshare")
        .args(["--net", "bash", "-c", &format!("{PATIENT}\n{script}")])
        .env("QJ", qj_binary())
        .env("CC", quick_compiler())
        .envs(programs.iter().map(|(name, path)| (name, repository(path))))
        .current_dir(folder)
        .output()
        .expect("every Linux has `unshare`")
}

/// Asserts that a script and its programs succeeded, and the output of the script.
pub(super) fn assert_output(output: &Output, expected: &str, what: &str) {
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {said}{complaint}");
    assert_eq!(said, expected, "{what}: {complaint}");
    assert!(!complaint.contains("fault["), "{what}: {complaint}");
}
