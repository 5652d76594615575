//! `qj replay` of a counterexample in a terminal: the screen after each key.

mod support;

use quaject_test_support::tool;
use std::io::Write;
use std::num::NonZero;
use std::process::{Command, Stdio};
use support::Folder;

/// Rows and columns.
const SCREEN: (NonZero<u16>, NonZero<u16>) = (NonZero::new(40).unwrap(), NonZero::new(100).unwrap());

const PROGRAM: &str = "channel ask(int);
channel reply(int);
channel more(int);
process client {
  var number = 7;
  out(ask, number);
  number += 1;
  in(reply, $answer);
  out(more, answer);
}
process server {
  var seen = 0, last: #array of int = #[0; 2];
  while {
    in(ask, $n);
    last[seen] = n;
    seen += 1;
    if (seen == 1) in(more, _);
    out(reply, last[0]);
  }
}
";

/// The screen after these keys.
fn screen(folder: &Folder, keys: &str) -> String {
    let qj = snapbox::cmd::cargo_bin!("qj");
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!("stty rows 40 cols 100; {} replay wrong.qjt", qj.display()))
        .arg("/dev/null")
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(format!("{keys}q").as_bytes()).expect("keys are taken");
    let output = child.wait_with_output().expect("it ends");
    drop(stdin);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (shown, _) = text.split_once("\x1b[?1049l").unwrap_or_else(|| panic!("the screen is not left:\n{text}"));
    let mut terminal = vt100::Parser::new(SCREEN.0, SCREEN.1, 0);
    terminal.process(shown.as_bytes());
    terminal.screen().contents()
}

#[test]
fn a_run_is_stepped_through_forwards_and_backwards() {
    let Some(_) = tool(&["script"]) else { return };
    let folder = Folder::with(&[("wrong.esp", PROGRAM)]);
    folder.qj("verify wrong.esp --trace wrong.qjt").assert().code(1);

    let start = screen(&folder, "");
    assert!(start.starts_with("step 0 of 1"), "{start}");
    assert!(start.contains("client  at wrong.esp:6:3 waits for server to read ask"), "{start}");

    let end = screen(&folder, "n");
    for shown in [
        "step 1 of 1",
        ">   1  client -> server: ask(7)",
        "*client  at wrong.esp:8:3 waits for server to write reply",
        "number = 8",
        "*server  at wrong.esp:17:20 waits for client to write more",
        "seen = 1",
        "last = [7, 0]",
        "fault `deadlock`",
    ] {
        assert!(end.contains(shown), "no `{shown}`:\n{end}");
    }

    assert_eq!(screen(&folder, "np"), start, "back at the start");
    assert_eq!(screen(&folder, "\x1b[C\x1b[D\x1b[F"), end, "keys of the cursor");
    assert_eq!(screen(&folder, "nnnn"), end, "there is nothing after the end");
    assert_eq!(screen(&folder, "ppp"), start, "nor before the start");
}

#[test]
fn without_a_terminal_a_run_is_printed() {
    let folder = Folder::with(&[("wrong.esp", PROGRAM)]);
    folder.qj("verify wrong.esp --trace wrong.qjt").assert().code(1);
    let printed = folder.qj("replay wrong.qjt").assert().code(3);
    let text = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    assert!(text.starts_with("   1  client -> server: ask(7)"), "{text}");
}

#[test]
fn a_quick_check_finds_a_near_violation_and_ends_on_an_infinite_state_space() {
    let infinite = "channel c(u64) external in; process p { var n: u64 = 0; while { out(c, n); n += 1; } }";
    let folder = Folder::with(&[("wrong.esp", PROGRAM), ("infinite.esp", infinite)]);
    let assert = folder.qj("check --verify infinite.esp").assert().code(0);
    // It does not count as verified.
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("note: infinite.esp: not verified in 100 ms"), "{said}");
    folder.qj("check --verify wrong.esp").assert().code(1);
}

#[test]
fn one_file_keeps_the_run_of_one_model() {
    let folder = Folder::with(&[("p.esp", &format!("{PROGRAM}\nmodel a {{ }}\nmodel b {{ }}\n"))]);
    for option in ["--trace p.qjt", "--chart p.svg"] {
        let assert = folder.qj(&format!("verify p.esp {option}")).assert().code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(said.contains("choose one with `--model`: `a`, `b`"), "{said}");
        folder.qj(&format!("verify p.esp --model b {option}")).assert().code(1);
    }
}

#[test]
fn a_run_that_the_program_does_not_have_is_spurious() {
    let program = "channel c(u8);
process p { var on = true; while { if (on) out(c, 1); else out(c, 3); } }
process q { while { in(c, $x); assert(x < 3); } }
model m { abstract forget p.on; }
";
    let folder = Folder::with(&[("p.esp", program)]);
    let said = |arguments: &str, code: i32| {
        let assert = folder.qj(arguments).assert().code(code);
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    };
    let because = "SPURIOUS: no run of the program itself has this violation; `forget p.on` over-approximates here";
    assert!(said("verify p.esp --trace p.qjt", 5).ends_with(&format!("{because}\n")));
    assert!(said("replay p.qjt", 3).ends_with(&format!("{because}\n")));
    let json: serde_json::Value = serde_json::from_str(&said("verify p.esp --json", 5)).expect("it is JSON");
    assert_eq!(json["spuriousness"], "spurious");
    assert_eq!(json["causes"], serde_json::json!(["forget p.on"]));
    let real = program.replace("var on = true", "var on = false");
    let folder = Folder::with(&[("p.esp", &real)]);
    let assert = folder.qj("verify p.esp --json").assert().code(1);
    let json: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).expect("it is JSON");
    assert_eq!(json["spuriousness"], "real");
    let plain = real.replace("abstract forget p.on;", "");
    let folder = Folder::with(&[("p.esp", &plain)]);
    let assert = folder.qj("verify p.esp --json").assert().code(1);
    let json: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).expect("it is JSON");
    assert_eq!(json["spuriousness"], serde_json::Value::Null);
}

#[test]
fn a_quick_check_ends_within_a_long_step() {
    let local = "process p { var n: u64 = 1; while (n > 0) { n = n + 1; } }";
    let condition = "channel c(u64); fn f(x: u64) -> u64 { var n = x; while (n > 0) { n = n + 1; } return n; }
        process p { out(c, 1); } process q { in(c, $x if f(x) > 0); }";
    let outcomes = "extern fn f() -> u8;
        process p { var n: u32 = 0; for i in 0..4 { n = n * 3 + u32(f()); } assert(n < 100000); }";
    let folder = Folder::with(&[("a.esp", local), ("b.esp", condition), ("c.esp", outcomes)]);
    let assert = folder.qj("check --verify a.esp b.esp c.esp").assert().code(0);
    let notes = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(notes.matches("not verified in 100 ms; `qj verify` searches longer").count(), 3, "{notes}");
}

#[test]
fn a_quick_check_finds_local_code_that_does_not_terminate() {
    let local = "process p { var n: u64 = 1; while (n > 0) { n = n | 1; } }";
    let condition = "channel c(u64); fn f(x: u64) -> u64 { var n = x; while (n > 0) { n = n | 1; } return n; }
        process p { out(c, 1); } process q { in(c, $x if f(x) > 0); }";
    let folder = Folder::with(&[("a.esp", local), ("b.esp", condition)]);
    for file in ["a.esp", "b.esp"] {
        let assert = folder.qj(&format!("check --verify {file}")).assert().code(1);
        let verdict = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        assert!(verdict.contains("does not terminate"), "{verdict}");
    }
}
