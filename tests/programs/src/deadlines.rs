//! Programs that wait until a moment do so whatever else arrives until then, on every engine and in every mode; the
//! patterns of `examples/patterns` are verified.

use std::fs;
use std::path::Path;
use std::process::Command;

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_compiler, tool};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Runs a program in virtual time on every engine and in every mode; returns the distinct results.
fn run_everywhere(program: &str) -> Vec<(Option<i32>, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program.esp");
    fs::write(&path, program).expect("the folder is new");
    let mut engines = vec!["interp", "jit"];
    if tool(&["cc"]).is_some() {
        engines.push("c");
    }
    let mut results: Vec<(Option<i32>, String)> = Vec::new();
    for engine in engines {
        for mode in ["process", "auto", "direct"] {
            if (mode, engine != "c") == ("direct", true) {
                continue;
            }
            let mut command = Command::new(qj_binary());
            command.env("CC", quick_compiler()).args(["run", "--clock", "virtual", "--engine", engine, "--mode", mode]);
            let output = command.arg(&path).output().expect("cargo built qj");
            let result = (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned());
            if !results.contains(&result) {
                results.push(result);
            }
        }
    }
    results
}

/// An acknowledgement of an old frame arrives every 150 ms, in time to extend a wait of 200 ms that restarts with it.
#[test]
fn stop_and_wait_gives_up_under_old_acknowledgements() {
    let sender = fs::read_to_string(Path::new(EXAMPLES).join("stop-and-wait.esp")).expect("an example");
    let inside =
        sender.replace(" external out = \"bytes:-\"", "").replace(" external in", "").replace(" external out", "");
    assert!(!inside.contains("external"), "the channels are internal");
    let program = inside
        + "process user { out(sendC, \"x\"); }\n\
           process receiver { while { in(frameC, _); } }\n\
           process noise { for i in 0..100 { alt { after (150 ms) { } } idle out(ackC, 1); } exit(9); }\n";
    assert_eq!(run_everywhere(&program), [(Some(1), String::new())]);
}

#[test]
fn durations_are_computed_alike_everywhere() {
    let program = "channel c(i64) external in = \"text:-\";
        const FOREVER = (9223372036854775807 s);
        process p {
          var start = now, one = (1 ms), n: i64 = 0;
          for i in 0..3 { n -= 1; one += one; }
          out(c, one / (1 us)); out(c, (n s) / (1 ms)); out(c, one * n / (1 us)); out(c, n * one / n / (1 us));
          out(c, FOREVER / (1 s)); out(c, (FOREVER + one) / (1 ns)); out(c, ((0 s) - FOREVER - FOREVER) / (1 ns));
          out(c, ((0 s) - FOREVER - FOREVER) / n / (1 ns)); out(c, (FOREVER * n) / (1 ns));
          var lowest = (0 s) - FOREVER - one; lowest -= one;
          out(c, lowest / (n + 2) / (1 ns)); out(c, lowest * (n + 2) / (1 ns)); out(c, (lowest - FOREVER) / (1 ns));
          alt { until (start + one) { } }
          out(c, (now - start) / (1 us));
          alt { until (start) { } after (FOREVER) { } }
          alt { after (start - now) { } }
          pri alt { until (start + FOREVER) { assert(false); } after (one) { } }
          out(c, (now - start) / (1 us));
          assert(now >= start && start < now && start + one != start && start + one - one == start);
          exit(0);
        }";
    let lines = [
        "8000",
        "-3000",
        "-24000",
        "8000",
        "9223372036",
        "9223372036854775807",
        "-9223372036854775808",
        "3074457345618258602",
        "-9223372036854775808",
        "9223372036854775807",
        "9223372036854775807",
        "-9223372036854775808",
        "8000",
        "16000",
    ];
    assert_eq!(run_everywhere(program), [(Some(0), lines.join("\n") + "\n")]);
}

#[test]
fn the_patterns_are_verified() {
    let mut programs: Vec<_> = fs::read_dir(Path::new(EXAMPLES).join("patterns"))
        .expect("a folder")
        .map(|entry| entry.expect("it is readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "esp"))
        .collect();
    programs.sort();
    assert!(programs.len() >= 4, "the patterns have moved");
    for program in programs {
        let output = Command::new(qj_binary()).arg("verify").arg(&program).output().expect("cargo built qj");
        let (report, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {report}{complaint}", program.display());
    }
}
