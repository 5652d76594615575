//! Messages for programs: with `--messages json` each line on standard error is an object, with `sarif` all are one
//! log.

mod support;

use serde_json::{Value, json};
use snapbox::cmd::Command;
use support::Folder;

const FAULTY: &str = "channel i(int) external out;\nchannel o(int) external in;\n\
                      process p { while { in(i, $n); out(o, 100 / n); } }\n";

/// The messages of a command, each one object with the keys that all of them have.
fn objects(command: Command) -> Vec<Value> {
    let output = command.output().expect("qj runs");
    let text = String::from_utf8(output.stderr).expect("messages are text");
    let objects = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")));
    let objects: Vec<Value> = objects.collect();
    for object in &objects {
        let severity = object["severity"].as_str().expect("each has a severity");
        assert!(object["message"].is_string() && object["labels"].is_array(), "{object}");
        assert!(object["code"].is_string() || ["note", "warning"].contains(&severity), "{object}");
    }
    objects
}

/// The results of the log of a command.
fn results(command: Command) -> Vec<Value> {
    let output = command.output().expect("qj runs");
    let log: Value = serde_json::from_slice(&output.stderr).expect("standard error is one document");
    assert_eq!(log["version"], "2.1.0");
    log["runs"][0]["results"].as_array().expect("there are results").clone()
}

#[test]
fn notes_and_faults_are_objects() {
    let folder = Folder::with(&[("a.esp", FAULTY)]);
    let found = objects(folder.qj("--messages json run --report a.esp").stdin("4\n0\n"));
    assert_eq!((&found[0]["severity"], &found[0]["message"]), (&json!("note"), &json!("mode: auto, the default")));
    let fault = found.last().expect("there is a fault");
    assert_eq!((&fault["code"], &fault["severity"]), (&json!("div"), &json!("fault")));
    assert_eq!((&fault["file"], &fault["line"], &fault["column"]), (&json!("a.esp"), &json!(3), &json!(39)));
    assert_eq!(fault["message"], "division by zero, in process `p`");
}

#[test]
fn a_deadlock_has_a_label_for_each_wait() {
    let program = "channel l(int);\nchannel r(int);\nprocess ping { out(l, 1); in(r, _); }\n\
                   process pong { out(r, 1); in(l, _); }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ["interp", "jit", "c"] {
        let found = objects(folder.qj(&format!("--messages json run --engine {engine} a.esp")));
        let [fault] = &found[..] else { panic!("{engine}: {found:?}") };
        assert_eq!((&fault["code"], &fault["line"]), (&json!("deadlock"), &json!(3)), "{engine}");
        let labels = fault["labels"].as_array().expect("there are labels");
        assert_eq!(labels[1]["message"], "`pong` waits for `ping` to read `r`", "{engine}");
        assert_eq!(labels[1]["line"], 4, "{engine}");
        assert!(fault["help"].is_string(), "{engine}");
    }
}

#[test]
fn every_command_writes_objects() {
    let refused = "channel i(int) external out;\nchannel c(int);\nchannel o(int) external in;\n\
                   process read { while { in(i, $n); out(c, n); } }\n\
                   process write { while { in(c, $n); #got out(o, n); } }\n\
                   fastpath sums extern \"sums\" {\n  process read { start i; }\n\
                   process write { start c; exit #got; }\n}\n";
    let folder = Folder::with(&[("a.esp", FAULTY), ("ugly.esp", "process  p { }\n"), ("refused.esp", refused)]);
    for (line, code, severity) in [
        ("run none.esp", json!("H0201"), "error"),
        ("run a.esp --bind x=text:-", json!("H0104"), "error"),
        ("run a.esp --seed 1 --adaptive", json!("H0103"), "error"),
        ("chekc a.esp", json!("H0101"), "error"),
        ("fmt --check ugly.esp", json!("H0203"), "error"),
        ("test .", json!("H0204"), "error"),
        ("explain E9999", json!("H0104"), "error"),
        ("profile a.esp -o p.profile", json!(null), "note"),
        ("build a.esp --emit ir --report -o a.ir", json!(null), "note"),
        ("run refused.esp --mode fastpath", json!(null), "warning"),
        ("check a.esp --verify", json!(null), "note"),
    ] {
        let found = objects(folder.qj(&format!("--messages json {line}")));
        let first = found.first().unwrap_or_else(|| panic!("{line} has no message"));
        assert_eq!((&first["code"], &first["severity"]), (&code, &json!(severity)), "{line}: {first}");
    }
}

#[test]
fn a_command_has_one_log() {
    let folder = Folder::with(&[("a.esp", FAULTY), ("b.esp", "process p { out(c, 1); }\n")]);
    std::fs::write(folder.path("c.esp"), "process {\n").expect("a file can be written");
    assert_eq!(results(folder.qj("--messages sarif check a.esp")), [] as [Value; 0]);
    let found = results(folder.qj("--messages sarif check b.esp none.esp c.esp"));
    let codes: Vec<&str> = found.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    assert!(codes.starts_with(&["E0208", "H0201", "E0201"]), "{codes:?}");
    let found = results(folder.qj("run --report a.esp --messages sarif").stdin("0\n"));
    let fault = found.last().expect("there is a fault");
    assert_eq!((&fault["ruleId"], &fault["level"]), (&json!("div"), &json!("error")));
    assert_eq!((&found[0]["level"], &found[0]["ruleId"]), (&json!("note"), &json!(null)));
    let found = results(folder.qj("run --messages=sarif --engine none a.esp"));
    assert_eq!((found.len(), &found[0]["ruleId"]), (1, &json!("H0101")));
}

#[test]
fn every_code_is_explained_and_unknown_ones_are_corrected() {
    let folder = Folder::with(&[]);
    let list = folder.qj("explain").assert().success();
    let list = String::from_utf8_lossy(&list.get_output().stdout).into_owned();
    for code in ["E0405", "W0901", "F0103", "P0001", "V0001", "H0201", "deadlock"] {
        let line = list.lines().find(|line| line.starts_with(code)).unwrap_or_else(|| panic!("{code} is not listed"));
        let title = line.strip_prefix(code).expect("found by it").trim();
        let explained = folder.qj(&format!("explain {}", code.to_lowercase())).assert().success();
        let text = String::from_utf8_lossy(&explained.get_output().stdout).into_owned();
        assert!(text.starts_with(&format!("# {code}: {title}\n\n")) && text.contains("\n```"), "{text}");
    }
    let unknown = folder.qj("explain P0999").assert().code(2);
    unknown.stderr_eq(
        "error[H0104]: there is no code `P0999`\nhelp: did you mean `P0001`, `P0002`, `P0003`, `P0101`, `P0102`? \
         `qj explain` lists all codes\n",
    );
}
