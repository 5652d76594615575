//! `qj tickc`: objects, executables and C of programs in 'C, and errors at places of the source.

mod support;

use quaject_test_support::tool;
use serde_json::{Value, json};
use snapbox::cmd::Command;
use snapbox::str;
use std::fs;
use support::Folder;

/// A program with a header and a macro in a tick.
const POWER: &str = "\
#include <stdio.h>
#include \"power.h\"
int main(void) {
    int vspec x = param(int, 0);
    int cspec result = `1;
    for (int i = 0; i < POWER; i++) result = `(result * x);
    int (*f)(int) = (int (*)(int))compile(result, int);
    printf(\"%d\\n\", f(2));
    return 0;
}
";

/// `qj tickc` in a folder, with a compiler that knows GNU C.
fn tickc(folder: &Folder, arguments: &str) -> Command {
    folder.qj(&format!("tickc {arguments}")).env("CC", "gcc")
}

fn program() -> Option<Folder> {
    tool(&["gcc"])?;
    let folder = Folder::with(&[("power.tc", POWER)]);
    fs::create_dir(folder.path("include")).expect("the folder is ours");
    fs::write(folder.path("include/power.h"), "#define POWER 10\n").expect("the folder is ours");
    Some(folder)
}

fn runs(folder: &Folder, name: &str) -> String {
    let output = std::process::Command::new(folder.path(name)).output().expect("what was linked starts");
    String::from_utf8(output.stdout).expect("programs print text")
}

#[test]
fn an_executable_and_an_object_are_made() {
    let Some(folder) = program() else { return };
    tickc(&folder, "-I include power.tc --emit exe").assert().success().stdout_eq("").stderr_eq("");
    assert_eq!(runs(&folder, "power"), "1024\n");
    tickc(&folder, "-I include -g power.tc --emit exe -o other -l m").assert().success();
    assert_eq!(runs(&folder, "other"), "1024\n");
    tickc(&folder, "-I include power.tc").assert().success();
    let object = fs::read(folder.path("power.o")).expect("it was written");
    assert!(object.starts_with(b"\x7fELF"));
    tickc(&folder, "-D POWER=3 power.tc -I none --emit exe -o cube").assert().code(1).stdout_eq("").stderr_eq(str![[
        r#"
error[T0011]: power.h: No such file or directory
 --> power.tc:2:1
  |
2 | #include "power.h"
  | ^^^^^^^^^^^^^^^^^^

1 error; see `qj explain T0011`

"#
    ]]);
    assert!(!folder.path("cube").exists(), "an error leaves no output");
}

#[test]
fn the_c_goes_to_standard_output() {
    let Some(folder) = program() else { return };
    let output = tickc(&folder, "-I include power.tc --emit c").assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(text.starts_with("#include <quaject/tickc.h>\n") && text.contains("qjt_compile"), "{text}");
    tickc(&folder, "-I include power.tc --emit c -o power.c").assert().success().stdout_eq("");
    assert_eq!(fs::read_to_string(folder.path("power.c")).expect("it was written"), text);
}

#[test]
fn ticks_and_loops_are_reported() {
    let Some(folder) = program() else { return };
    let text = "void cspec f(int n) {\n  return `{ for (int i = 0; i < $n; i++) if ($n > 2) g();\n\
                for (int j = 0; j < 9; j += 2) for (int k = 0; k < $n; k++) f($(j + k));\n\
                for (int l = 0; l < 9; l++) g($n); };\n}\n";
    fs::write(folder.path("a.tc"), format!("void g();\n{text}")).expect("the folder is ours");
    tickc(&folder, "--report a.tc").assert().success().stdout_eq(str![[r#"
a.tc:3: tick of [..] nodes
a.tc:3: loop over `i` stays a loop: no operand of `$` depends on it
a.tc:3: condition is decided when the tick is evaluated
a.tc:4: loop over `j` is unrolled: operands of `$` depend on it
a.tc:4: loop over `k` is unrolled: operands of `$` depend on it
a.tc:5: loop over `l` stays a loop: no operand of `$` depends on it

"#]]);
    let limited = tickc(&folder, "--report --unroll-limit 8 a.tc").assert().success();
    limited.stdout_eq(str![[r#"
...
a.tc:3: loop over `i` is unrolled, up to 8 iterations and 16 KB
...
a.tc:5: loop over `l` stays a loop: it has more than 8 iterations

"#]]);
    assert!(!folder.path("a.o").exists(), "a report compiles nothing");
    tickc(&folder, "--report a.tc --emit c").assert().code(2).stderr_eq("error[H0103]: [..]\nhelp: [..]\n");
}

#[test]
fn errors_are_at_places_of_the_source() {
    let Some(folder) = program() else { return };
    let text =
        "#define SUM 1 + 2\nint cspec f(int *vspec p) {\n\tint n = SUM; /* x */ n = $n;\n\treturn `(p * 2);\n}\n";
    fs::write(folder.path("a.tc"), text).expect("the folder is ours");
    tickc(&folder, "a.tc").assert().code(1).stderr_eq(str![[r#"
error[T0001]: `$` outside of a tick expression
 --> a.tc:3:27
  |
3 |     int n = SUM; /* x */ n = $n;
  |                              ^
  |
  = help: put it into a tick expression, or leave it out

1 error; see `qj explain T0001`

"#]]);
    let text = text.replace("n = $n;", "void cspec v = `{\n\t}; v = `{};").replace("p * 2", "$(p * 2)");
    fs::write(folder.path("a.tc"), text).expect("the folder is ours");
    tickc(&folder, "a.tc").assert().code(1).stderr_eq(str![[r#"
error[T0011]: invalid operands to binary * [..]
 --> a.tc:5:2
  |
5 |     return `($(p * 2));
  |     ^^^^^^^^^^^^^^^^^^^

1 error; see `qj explain T0011`

"#]]);
    assert!(!folder.path("a.o").exists(), "an error leaves no output");
}

#[test]
fn errors_and_warnings_are_json_too() {
    let Some(folder) = program() else { return };
    let text = "int f(void) {\n  int n;\n  return 1;\n}\nint g(void) { return $1; }\n";
    fs::write(folder.path("a.tc"), text).expect("the folder is ours");
    let lines = |arguments: &str| -> Vec<Value> {
        let output = folder.qj(arguments).env("CC", "gcc").output().expect("qj runs");
        let text = String::from_utf8(output.stderr).expect("messages are text");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    };
    let found = lines("--messages json tickc a.tc");
    assert_eq!((&found[0]["code"], &found[0]["file"], &found[0]["line"]), (&json!("T0001"), &json!("a.tc"), &json!(5)));
    fs::write(folder.path("a.tc"), text.replace('$', "")).expect("the folder is ours");
    let found = lines("--messages json tickc a.tc --cflag=-Wall");
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&json!("T0012"), &json!("warning")));
    assert_eq!((&found[0]["line"], &found[0]["column"]), (&json!(2), &json!(7)));
}

#[test]
fn every_code_is_explained() {
    let folder = Folder::with(&[]);
    for explanation in quaject_tickc::EXPLANATIONS.iter() {
        folder.qj(&format!("explain {}", explanation.code)).assert().success().stdout_eq("...\n[..]text\n...\n");
    }
}

#[test]
fn missing_tools_and_files_are_reported() {
    let Some(folder) = program() else { return };
    tickc(&folder, "--cc no-such-compiler power.tc")
        .assert()
        .code(1)
        .stderr_eq("error[H0501]: cannot run the C compiler `no-such-compiler`: [..]\nhelp: install one, [..]\n");
    tickc(&folder, "none.tc").assert().code(1).stderr_eq("error[H0201]: cannot read `none.tc`: [..]\n...");
    tickc(&folder, "-").assert().code(2).stderr_eq("error[H0102]: [..]standard input\nhelp: [..]\n");
    tickc(&folder, "power.tc -l m").assert().code(2).stderr_eq("error[H0103]: `-l` has no meaning here\n...");
    tickc(&folder, "power.tc -o power.tc")
        .assert()
        .code(2)
        .stderr_eq("error[H0105]: `power.tc` is the program[..]\n...");
    tickc(&folder, "-I include power.tc -o include/power.h")
        .assert()
        .code(2)
        .stderr_eq("error[H0105]: `include/power.h` is part of the program[..]\n...");
    tickc(&folder, "-I include power.tc -o none/power.o")
        .assert()
        .code(1)
        .stderr_eq("error[H0201]: cannot write [..]\n");
    let undefined = "void none(void); int main(void) { none(); return 0; }\n";
    fs::write(folder.path("a.tc"), undefined).expect("the folder is ours");
    tickc(&folder, "a.tc --emit exe").assert().code(1).stderr_eq("error[H0502]: the C compiler `gcc` failed:\n...");
    assert!(!folder.path("a").exists(), "an error leaves no output");
}

#[test]
fn dependencies_are_listed_and_equal_outputs_stay() {
    let Some(folder) = program() else { return };
    let build = || tickc(&folder, "-I include power.tc -o power.o --depfile power.d --stamp stamp").assert().success();
    build();
    let rule = fs::read_to_string(folder.path("power.d")).expect("it was written");
    assert_eq!(rule, "stamp: \\\n  power.tc \\\n  include/power.h\n\ninclude/power.h:\n");
    let time = |name: &str| fs::metadata(folder.path(name)).and_then(|data| data.modified()).expect("it is there");
    let (object, stamp) = (time("power.o"), time("stamp"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    build();
    assert!(time("power.o") == object && time("stamp") > stamp);
    tickc(&folder, "-I include power.tc -o power.o").assert().success();
    assert!(time("power.o") > object, "without a stamp, the output has the time of the run");
    tickc(&folder, "power.tc --emit c --depfile x")
        .assert()
        .code(2)
        .stderr_eq("error[H0106]: `--depfile` needs[..]\n...");
}
