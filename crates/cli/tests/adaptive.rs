//! `qj run --adaptive`: it has the output of the interpreter, and forms, drops and forms fast paths again.

mod support;

use snapbox::str;
use support::Folder;

/// Two paths of a number to the sum; `CHOICE` selects the one in round i.
const WAYS: &str = "channel leftC(int);
channel rightC(int);
channel doneC(int);
channel workC(int);
channel sumC(int) external in;
const ROUNDS = 200000;
process source {
  var i = 0, x: u32 = 12345;
  while (i < ROUNDS) {
    x = (x ^ (x << 13)) & 0xffffffff;
    x = x ^ (x >> 17);
    x = (x ^ (x << 5)) & 0xffffffff;
    if (CHOICE) { out(leftC, i); } else { out(rightC, i); }
    i += 1;
  }
  out(doneC, i);
}
process route {
  while {
    alt {
      in(leftC, $n) { out(workC, n + 1); }
      in(rightC, $n) { out(workC, n * 3); }
    }
  }
}
process add {
  var sum = 0;
  while {
    alt {
      in(workC, $n) { sum = (sum + n) & 0xffffff; }
      in(doneC, $n) { out(sumC, sum + n); }
    }
  }
}
";

/// Communications of the program without a path: two a round, and two at the end.
const ALL: u64 = 400_002;

/// Compares the output of the program with that on the interpreter; returns the lines of the report.
fn adapted(choice: &str, options: &str) -> Vec<String> {
    let folder = Folder::with(&[("ways.esp", &WAYS.replace("CHOICE", choice))]);
    let wanted = folder.qj("run ways.esp").assert().success().get_output().stdout.clone();
    let found = folder.qj(&format!("run ways.esp --adaptive --report {options}")).assert().success();
    let found = found.get_output();
    assert_eq!(found.stdout, wanted, "{choice} {options}");
    String::from_utf8_lossy(&found.stderr).lines().map(str::to_string).collect()
}

/// The number after `after` in a report's line.
fn after(line: &str) -> u64 {
    let number = line.strip_prefix("adaptive: after ").and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("`{line}` begins with a number"))
}

#[test]
fn the_gain_is_recovered_after_the_hot_path_changes() {
    for options in ["", "--engine interp", "--checked"] {
        let report = adapted("i < ROUNDS / 2", options);
        let words: Vec<&str> = report.iter().filter_map(|line| line.split(": ").nth(2)?.split(' ').next()).collect();
        assert_eq!(words, ["formed", "dropped", "formed", "`hotPath2`"], "{report:#?}");
        // A path saves communications. Half of them are after the change; the scheduler does at most a fifth of those.
        let other_process = after(&report[3]) - after(&report[0]);
        assert!(other_process <= ALL / 2 / 5, "{other_process}: {report:#?}");
    }
}

#[test]
fn alternating_paths_become_one_fast_path_or_two() {
    let report = adapted("i % 2 == 0", "");
    assert_eq!(report.len(), 2, "formed once, and kept: {report:#?}");
    assert!(after(&report[1]) < ALL / 4, "{report:#?}");
    // Each path for 1000 rounds: outputs are equal with any fast paths, and attempts become rare.
    let report = adapted("i / 1000 % 2 == 0", "");
    assert!(report.len() <= 8, "{report:#?}");
}

#[test]
fn attempts_become_rare_for_unpredictable_programs() {
    // 4096 communications before the first attempt, then four times as many each time.
    let report = adapted("(x & 1) == 0", "");
    assert!(report.len() <= 8, "{report:#?}");
}

#[test]
fn small_inputs_and_large_ones() {
    let program = "channel i(int) external out;\nchannel o(int) external in;\nchannel c(int);\n\
                   process P { while { in(i, $x); out(c, x + 1); } }\n\
                   process Q { while { in(c, $x); if (x % 3 != 0) { out(o, x); } } }\n";
    for count in [0, 1, 2, 3, 20_000] {
        let lines: String = (0..count).map(|number| format!("{number}\n")).collect();
        let folder = Folder::with(&[("p.esp", program), ("in", &lines)]);
        let wanted = folder.qj("run p.esp --bind i=text:in").assert().success().get_output().stdout.clone();
        for engine in ["interp", "jit"] {
            let run = format!("run p.esp --bind i=text:in --adaptive --report --engine {engine}");
            let found = folder.qj(&run).assert().success().get_output().clone();
            assert_eq!(found.stdout, wanted, "{count} {engine}");
            let report = String::from_utf8_lossy(&found.stderr).into_owned();
            assert_eq!(report.contains("formed"), count == 20_000, "{count} {engine}: {report}");
        }
    }
}

#[test]
fn faults_are_reported_as_without_paths() {
    let program = "channel c(int);\nprocess P { var i = 0; while { out(c, i); i += 1; } }\n\
                   process Q { while { in(c, $x); assert(x < 50000); } }\n";
    let folder = Folder::with(&[("p.esp", program)]);
    let wanted = folder.qj("run p.esp").assert().code(3).get_output().stderr.clone();
    let found = folder.qj("run p.esp --adaptive").assert().code(3).get_output().stderr.clone();
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&wanted));
}

#[test]
fn a_program_without_a_possible_path_continues() {
    let program = "channel o(int) external in;\nprocess P { var i = 0; while (i < 20000) { out(o, i); i += 1; } }\n";
    let folder = Folder::with(&[("p.esp", program)]);
    let wanted = folder.qj("run p.esp").assert().success().get_output().stdout.clone();
    let found = folder.qj("run p.esp --adaptive --report").assert().success().get_output().clone();
    assert_eq!(found.stdout, wanted);
    let report = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(report.contains("no fast path: `P` does most, and communicates with no process often"), "{report}");
}

#[test]
fn incompatible_options_are_refused() {
    let folder = Folder::with(&[("p.esp", "process P { }\n"), ("p.fp", "")]);
    folder.qj("run p.esp --adaptive --engine c").assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--adaptive` and `--engine c` are incompatible: compiled C does not change
help: leave out `--engine`, or find paths with `qj profile` and `qj fastpath suggest`

"#]]);
    for mode in ["fastpath", "automata", "auto"] {
        folder.qj(&format!("run p.esp --adaptive --mode {mode}")).assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--adaptive` needs `--mode process`: it finds the fast paths itself
help: leave out `--mode`

"#]]);
    }
    for (options, complaint) in [
        ("--fast-paths p.fp", "error[H0103]: `--adaptive` finds the fast paths itself\n[..]\n"),
        ("--record r", "error[H0103]: `--adaptive` and `--record` are incompatible[..]\n[..]\n"),
        ("--seed 1", "error[H0103]: `--adaptive` and `--seed` are incompatible[..]\n[..]\n"),
    ] {
        folder.qj(&format!("run p.esp --adaptive {options}")).assert().code(2).stderr_eq(complaint);
    }
    assert!(!folder.path("r").exists(), "nothing is written of a run that did not begin");
    // Without it, `--report` describes how the processes were compiled.
    folder.qj("run p.esp --report").assert().success().stderr_eq(str![[r#"
mode: auto, the default
on its own: P: no channel leads to another process

"#]]);
    folder.qj("build p.esp --emit exe --adaptive").assert().code(2);
}
