//! Go's channel tests re-expressed (tests/go-chan/README.md has the table).

use super::{engines, repository, run_well};
use quaject_test_support::qj::qj_binary;
use std::process::Command;

/// Programs whose output has one order only.
const PROGRAMS: &[&str] = &[
    "doubleselect",
    "fifo",
    "goroutines",
    "nonblock",
    "select",
    "select2",
    "select3",
    "select4",
    "select6",
    "select7",
    "select8",
    "sendstmt",
    "sieve1",
    "zerosize",
];

fn expected(name: &str) -> String {
    let path = repository(&format!("tests/go-chan/{name}.out"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_engine_produces_the_output_that_go_requires() {
    for engine in engines() {
        for name in PROGRAMS {
            let output = run_well(engine, &format!("tests/go-chan/{name}.esp"), &["--checked"], b"");
            assert_eq!(String::from_utf8_lossy(&output), expected(name), "{name} on engine {engine}");
        }
    }
}

/// Go's guarantees hold for every scheduler.
#[test]
fn every_schedule_produces_the_output_that_go_requires() {
    for name in PROGRAMS.iter().filter(|name| !["nonblock", "select", "select3"].contains(name)) {
        for seed in 1..=5 {
            let seed = seed.to_string();
            let output = run_well("interp", &format!("tests/go-chan/{name}.esp"), &["--seed", &seed], b"");
            assert_eq!(String::from_utf8_lossy(&output), expected(name), "{name} with seed {seed}");
        }
    }
}

#[test]
fn directions_are_kept() {
    let output = Command::new(qj_binary())
        .args(["check", "--messages", "json"])
        .arg(repository("tests/go-chan/perm.esp"))
        .output()
        .expect("cargo built qj");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).expect("JSON is UTF-8");
    let found: String = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|diagnostic| diagnostic["severity"] == "error")
        .map(|diagnostic| {
            format!("{} {}\n", diagnostic["code"].as_str().expect("a code is a string"), diagnostic["line"])
        })
        .collect();
    let expected = std::fs::read_to_string(repository("tests/go-chan/perm.codes")).expect("the file is in the tree");
    assert_eq!(found, expected);
}
