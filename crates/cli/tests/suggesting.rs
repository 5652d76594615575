//! `qj profile` and `qj fastpath suggest`: their output and their errors.

mod support;

use snapbox::str;
use support::Folder;

/// Adds up numbers two by two; a negative one, which is rare, ends the sum.
const PAIRS: &str = "channel numberC(int) external out;
channel pairC(int);
channel endC();
channel sumC(int) external in;
process pair {
  while {
    in(numberC, $a);
    if (a < 0) { out(endC); continue; }
    in(numberC, $b);
    out(pairC, a + b);
  }
}
process write {
  var total = 0;
  while {
    alt {
      in(pairC, $p) { total += p; }
      in(endC) { total = 0; }
    }
    out(sumC, total);
  }
}
";

/// The numbers 0 to 199, and a negative one at the end.
fn numbers() -> String {
    (0..200).map(|number| format!("{number}\n")).collect::<String>() + "-1\n"
}

#[test]
fn rare_branches_leave_the_path() {
    let folder = Folder::with(&[("pairs.esp", PAIRS), ("numbers", &numbers())]);
    let bound = "--bind numberC=text:numbers";
    folder.qj(&format!("profile pairs.esp {bound} -o pairs.profile")).assert().success().stderr_eq(str![[r#"
note: 101 rounds begin with `numberC/in@1` of `pair`; the most frequent, 100 times: the environment -> pair numberC/in@1, the environment -> pair numberC/in@2, pair pairC -> write pairC, write sumC -> the environment

"#]]);
    let suggested = folder.qj("fastpath suggest pairs.esp --profile pairs.profile -o pairs.fp").assert();
    suggested.success().stdout_eq("").stderr_eq(str![[r#"
note: fast path hotPath: pair, write: [..] states, [..] instructions
help: `qj run pairs.esp --mode fastpath --fast-paths pairs.fp`

"#]]);
    let text = std::fs::read_to_string(folder.path("pairs.fp")).expect("it was written");
    snapbox::assert_data_eq!(
        text,
        str![[r#"
fastpath hotPath {
  process pair  { statement numberC/in@1 as N, endC; start N; follows N*; }
  process write { statement pairC, endC; start pairC; exit pairC; }
}

"#]]
    );
    let plain = folder.qj(&format!("run pairs.esp {bound}")).assert().success().get_output().stdout.clone();
    for engine in ["interp", "c", "jit"] {
        let run = format!("run pairs.esp {bound} --mode fastpath --fast-paths pairs.fp --engine {engine}");
        let shown = folder.qj(&run).assert().success().get_output().stdout.clone();
        assert_eq!(shown, plain, "{engine}");
    }
    let json = folder.qj("fastpath suggest pairs.esp --profile pairs.profile --json").assert().success();
    let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).expect("it is JSON");
    assert_eq!(json["members"], serde_json::json!(["pair", "write"]));
    assert!(json["fastpath"].as_str().is_some_and(|text| text.starts_with("fastpath hotPath {")), "{json}");
}

#[test]
fn names_that_are_taken_are_not_used() {
    let program = format!("{PAIRS}const hotPath = 1;\nconst hotPath2 = hotPath;\n");
    let folder = Folder::with(&[("pairs.esp", &program), ("numbers", &numbers())]);
    folder.qj("profile pairs.esp --bind numberC=text:numbers -o p").assert().success();
    let suggested = folder.qj("fastpath suggest pairs.esp --profile p").assert().success();
    let text = String::from_utf8_lossy(&suggested.get_output().stdout).into_owned();
    assert!(text.starts_with("fastpath hotPath3 {\n"), "{text}");
}

#[test]
fn programs_without_a_suggestion() {
    let folder = Folder::with(&[("pairs.esp", PAIRS), ("none", ""), ("empty.esp", "process P { }\n")]);
    folder.qj("profile pairs.esp --bind numberC=text:none -o silent").assert().success().stderr_eq(str![[r#"
note: nothing was communicated

"#]]);
    folder.qj("fastpath suggest pairs.esp --profile silent").assert().code(1).stderr_eq(str![[r#"
error[H0204]: nothing was communicated in `silent`
help: profile a run with real input: `--bind CHANNEL=DRIVER:ARG`

"#]]);
    let foreign = std::fs::read_to_string(folder.path("silent")).expect("it was written");
    let foreign = foreign.replace("\"entry\": null", "\"entry\": {\"process\": \"pair\", \"statement\": \"noC\"}");
    std::fs::write(folder.path("foreign"), foreign).expect("a file can be written");
    folder.qj("fastpath suggest pairs.esp --profile foreign").assert().code(1).stderr_eq(str![[r#"
error[H0202]: `foreign` is of another program: `pairs.esp` has no `noC` in `pair`
help: make it with `qj profile pairs.esp -o foreign`

"#]]);
    folder.qj("fastpath suggest pairs.esp --profile pairs.esp").assert().code(1).stderr_eq(str![[r#"
error[H0202]: `pairs.esp` is not a profile: expected value at line 1 column 1
help: make it with `qj profile pairs.esp -o pairs.esp`

"#]]);
    folder.qj("fastpath suggest pairs.esp --profile nowhere").assert().code(1);
    folder.qj("fastpath suggest pairs.esp --profile silent -o silent").assert().code(2).stderr_eq(str![[r#"
error[H0105]: `silent` is the profile: it would be overwritten
help: give the output another name

"#]]);
    folder.qj("profile pairs.esp --seed 1 -o p").assert().code(2).stderr_eq(str![[r#"
error[H0103]: a profile records the reference schedule
help: leave out `--seed`

"#]]);
    folder.qj("profile pairs.esp -o pairs.esp").assert().code(2);
    assert!(!folder.path("p").exists(), "nothing is written of a run that did not begin");
}

#[test]
fn a_run_that_faults_has_a_profile() {
    let program = "channel i(int) external out;\nchannel c(int);\nprocess P { while { in(i, $x); out(c, x); } }\n\
                   process Q { while { in(c, $x); assert(x < 3); } }\n";
    let folder = Folder::with(&[("p.esp", program), ("in", "1\n2\n3\n4\n")]);
    folder.qj("profile p.esp --bind i=text:in -o p").assert().code(3);
    folder.qj("fastpath suggest p.esp --profile p").assert().success();
}
