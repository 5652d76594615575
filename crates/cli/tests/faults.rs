//! Fault reports: `qj run` on each engine and a built executable print the same text, except for the line of the
//! source, which an executable does not have.

mod support;

use support::Folder;

/// A program with a fault of every kind but deadlock, chosen by its input, and a part of the report on each.
const FAULTS: &str = r#"memory manual;
type t = bytes[<=4];
pool t 2;
channel i: int external out shared = "text:-";
channel c(int);
extern fn nowhere(int) -> int;
process p[2] {
  if (int(@) == 1) {
    in(i, $n);
    var a = n - n, b: bytes[<=9] = "abcdef", x: #array[3] of int = #[0; 3];
    if (n == 1) { assert(a == 1, "a \"%d\" is one"); }
    if (n == 2) { for k in 0..9 { x[k] = 1; } }
    if (n == 3) { a = 1 / a; }
    if (n == 4) { alt { out(c, 1 / a) { } } }
    if (n == 5) { for k in 0..9 { var y: t = "y"; assert(y.len == 1); } }
    if (n == 6) { var s: bytes[<=3] = b; assert(s.len == 6); }
    if (n == 7) { var y: t = "a"; unlink(y); unlink(y); }
    if (n == 8) { alt { when (a == 1) out(c, 1) { } } }
    if (n == 9) { a = nowhere(1); }
    assert(x[0] + a > 99);
  }
}
process q { idle in(c, _); }
"#;
const SAID: [&str; 9] = [
    "fault[assert]: the assertion is false: a \"%d\" is one, in process `p[1]`\n  --> a.esp:11",
    "fault[bounds]",
    "fault[div]: division by zero, in process `p[1]`\n",
    "fault[div]: division by zero, in process `p[1]`, channel `c`\n",
    "no free object of `t`, in process `p[1]`",
    "fault[range]",
    "fault[memory]: use of an object whose count is 0",
    "fault[alt]",
    "nothing supplies the extern function `nowhere`",
];

/// Programs with different deadlocks, and a part of the report on each.
const DEADLOCKS: [(&str, &str); 7] = [
    (
        "channel a(int);\nchannel b(int);\nprocess P { in(a, $x); out(b, x); }\n\
         process Q { alt { in(b, $x) { out(a, x); } } }\n",
        "      for `P` to write `b`\n",
    ),
    (
        "channel a(int);\nprocess P { out(a, 1); out(a, 2); }\nprocess Q { in(a, _); }\n",
        "      for a process to read `a`, and none can\n",
    ),
    (
        "channel a(int) external out;\nchannel b(int);\nprocess P { in(a, $x); out(b, x); }\nprocess Q { in(b, _); }\n",
        "      for `a`, which the environment has closed\n",
    ),
    (
        "type t = bytes[<=4];\npool t 1;\nchannel a(t) external out;\nprocess P { in(a, _); }\n",
        "      for `a`, which the environment has closed, or for a free object to hold its messages\n",
    ),
    (
        "channel a(int) shared;\nchannel b(int);\nprocess P[9] { in(a, $x); out(b, x); }\n\
         process Q { var done = false; while (!done) { in(b, _); } out(a, 1); }\n",
        " and 4 more are blocked forever, channel `a`\n",
    ),
    (
        "type t = bytes[<=4];\npool t 1;\nchannel c(int);\n\
         process p { var a: t = \"a\"; alt { when (free(t) > 0) in(c, _) { } } assert(a.len == 1); }\n\
         process q { out(c, 1); }\n",
        "for a guard that stays false",
    ),
    (
        "channel a(int) shared;\nchannel b(int) shared;\nchannel c(int) shared;\nprocess p[2] {\n  var n = int(@);\n\
         alt {\n  when (n == 1) in(a, 1) { }\n  when (n == 0) in(b, _) { }\n  in(a, 2) { }\n  when (n > 5) out(c, 3) { }\n\
         when (n > 5) after (1 s) { } when (n > 5) in(a, _) { }\n  }\n}\nprocess q { in(c, _); out(a, 1); out(a, 2); out(b, 1); }\n",
        "  `p[0]` waits at a.esp:8:3\n      for `q` to write `b`\n\
         \x20 `p[0]` waits at a.esp:9:3\n      for `q` to write `a`\n\
         \x20 `p[1]` waits at a.esp:7:3\n      for `q` to write `a`\n\
         \x20 `p[1]` waits at a.esp:9:3\n      for `q` to write `a`\n\
         \x20 `q` waits at a.esp:14:13\n      for `p[0]` or `p[1]` to write `c`\n",
    ),
];

/// The report on the fault, without the line of the source and its caret.
fn words(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.find("fault[").map_or("", |start| &said[start..]);
    let is_source = |line: &str| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
    said.lines().filter(|line| !is_source(line)).fold(String::new(), |text, line| text + line + "\n")
}

/// Runs a program on each engine and as an executable, once for each input.
fn check(program: &str, cases: &[(String, &str)]) {
    let folder = Folder::with(&[("a.esp", program)]);
    // An undefined function is a weak symbol, which tcc does not support.
    let qj = |arguments: &str| match program.contains("extern fn") {
        true => folder.qj(arguments).env_remove("CC"),
        false => folder.qj(arguments),
    };
    qj("build --emit exe a.esp -o a.out").assert().success();
    for (input, expected) in cases {
        let run = |engine: &str| {
            let run = qj(&format!("run --engine {engine} a.esp")).stdin(input.as_str());
            words(&run.output().expect("qj runs"))
        };
        let executable = snapbox::cmd::Command::new(folder.path("a.out")).stdin(input.as_str());
        let executable = words(&executable.output().expect("the executable runs"));
        let interpreted = run("interp");
        assert!(interpreted.contains(expected), "{program}\n{interpreted}");
        assert_eq!(run("c"), interpreted, "{program}");
        assert_eq!(executable, interpreted, "{program}");
    }
}

const MESSAGES: &str = "type m = union { send: record { dest: int, size: u8 }, stop, to: array[2] of pid(P) };
channel inC(m, bytes[<=4], u64) external out;
channel outC(int) external in;
process P[3] { yield; }
process R { while { in(inC, _, $b, _); out(outC, b.len); } }
";

const MALFORMED: &[&str] = &[
    r#"send |> {7, 4096} "a" 1"#,
    r#"send |> {7, -1} "a" 1"#,
    r#"send |> {7, 40}"#,
    r#"send |> {7}"#,
    r#"send |> {}"#,
    r#"send |> {7, 8, 9}"#,
    r#"send |> {7 40}"#,
    r#"send |> {size: 1, size: 2}"#,
    r#"send |> {size: 1, 2}"#,
    r#"send |> {seize: 1, 2}"#,
    r#"send |> {dest: 1, size 2}"#,
    r#"send |> {007, 40}"#,
    r#"send |> {0x, 40}"#,
    r#"send |> {0b12, 40}"#,
    r#"send |> {_1, 40}"#,
    r#"send |> {1__0, 0xfff}"#,
    r#"send |> {'', 4}"#,
    r#"send |> {'ab', 4}"#,
    r#"send |> {'é', 4}"#,
    r#"send |> {'\q', 4}"#,
    r#"send |> {'a', '"#,
    r#"send |> {99999999999999999999, 4}"#,
    r#"send |> {999999999999999999999999999999999999999999999999, 4}"#,
    r#"send |> {-, 4}"#,
    r#"send |> {été, 4}"#,
    r#"sennd |> {7, 1}"#,
    r#"stop |> {1} "" 1"#,
    r#"stop"" 1"#,
    r#"stop "abcdef" 1"#,
    r#"stop "abc"#,
    r#"stop "a\q" 1"#,
    r#"stop "a\x4" 1"#,
    r#"stop abc 1"#,
    r#"stop "a" 18446744073709551616"#,
    r#"stop "a" maybe"#,
    r#"stop "a" a_word_that_is_longer_than_twenty_four_letters"#,
    r#"stop "a" 1 extra"#,
    r#"to |> [@P[0]] "" 1"#,
    r#"to |> [@P[0], @P[3]] "" 1"#,
    r#"to |> [@P[0], @P[-1]] "" 1"#,
    r#"to |> [@P, @Q] "" 1"#,
    r#"to |> [1, 2] "" 1"#,
    r#"to |> [@P; 3] "" 1"#,
    r#"to |> [@P, @P, @P] "" 1"#,
    r#"to [@P, @P] "" 1"#,
    "{",
    "?",
];

#[test]
fn malformed_messages_are_refused_in_the_same_words_everywhere() {
    let folder = Folder::with(&[("a.esp", MESSAGES)]);
    folder.qj("build --emit exe a.esp -o a.out").assert().success();
    for line in MALFORMED {
        let said = |output: std::io::Result<std::process::Output>| {
            let output = output.expect("the program runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{line}: {said}");
            // Only `qj` prints a code, which it can explain.
            let title = "error[H0406]: ";
            let (at, length) =
                said.find(title).map_or((said.find("error: "), "error: ".len()), |at| (Some(at), title.len()));
            said[at.expect("an error is reported") + length..].to_string()
        };
        let input = format!("{line}\n");
        let interpreted = said(folder.qj("run a.esp").stdin(input.as_str()).output());
        assert!(interpreted.contains("standard input:1:") && interpreted.contains(": expected "), "{interpreted}");
        let executable = snapbox::cmd::Command::new(folder.path("a.out")).stdin(input.as_str());
        assert_eq!(said(executable.output()), interpreted, "{line}");
    }
}

#[test]
fn faults_have_the_same_words_everywhere() {
    let cases: Vec<_> = SAID.iter().enumerate().map(|(index, said)| (format!("{}\n", index + 1), *said)).collect();
    check(FAULTS, &cases);
}

#[test]
fn deadlocks_have_the_same_words_everywhere() {
    for (program, said) in DEADLOCKS {
        check(program, &[(String::new(), said)]);
    }
}

/// More branches than one word has bits, and an earlier wait.
#[test]
fn a_deadlock_names_the_open_branches_of_a_long_alt() {
    let closed = "    when (n == 1) in(a, _) { }\n".repeat(40);
    let program = format!(
        "channel a(int);\nchannel b(int);\nprocess p {{\n  var n = 0;\n  alt {{ out(b, 0) {{ }} when (n == 1) in(a, 0) {{ }} }}\n  \
         alt {{\n{closed}    in(a, 1) {{ }}\n{closed}    when (n == 0) in(a, 2) {{ }}\n  }}\n}}\n\
         process q {{ in(b, _); in(b, _); out(a, 1); }}\n"
    );
    let said = "  `p` waits at a.esp:47:5\n      for `q` to write `a`\n  `p` waits at a.esp:88:5\n      \
                for `q` to write `a`\n  `q` waits";
    check(&program, &[(String::new(), said)]);
}

const IMPROPER: &str = r#"type m = union { send: array[2] of bytes[<=4], stop };
extern fn data() -> bytes[<=4];
extern fn tag() -> m;
extern fn part() -> m;
extern fn id() -> pid(P);
extern fn argument(#bytes[<=4]);
channel i(int) external out;
process P {
  var b: #bytes[<=4] = #"";
  in(i, $n);
  if (n == 1) b = thaw(data());
  if (n == 2) { var a = tag(); assert(a == (stop |> {})); }
  if (n == 3) { var a = part(); assert(a == (stop |> {})); }
  if (n == 4) { var a = id(); assert(a == @); }
  if (n == 5) argument(b);
  b[b.len - 1] = 1;
}
"#;

const IMPROPER_C: &str = "#include <stdint.h>
struct bytes { uint8_t length[2]; uint8_t data[4]; };
struct m { uint8_t tag, unused; struct bytes send[2]; };
void data(struct bytes *to) { to->length[0] = 5; to->length[1] = 0; }
void tag(struct m *to) { to->tag = 2; }
void part(struct m *to) { to->tag = 0; to->send[0].length[0] = to->send[0].length[1] = 0; data(&to->send[1]); }
uint32_t id(void) { return 1; }
void argument(struct bytes *to) { data(to); }
";

#[test]
fn what_c_gives_is_a_value_of_its_type_or_a_fault() {
    let folder = Folder::with(&[("a.esp", IMPROPER), ("a.c", IMPROPER_C)]);
    folder.qj("build --emit exe --extern a.c a.esp -o a.out").assert().success();
    for (number, line) in (1..).zip(11..=15) {
        let input = format!("{number}\n");
        let place =
            format!("fault[range]: a length or number does not fit its place, in process `P`\n  --> a.esp:{line}");
        for engine in ["interp", "c", "jit"] {
            let run = folder.qj(&format!("run --engine {engine} --extern a.c a.esp")).stdin(input.as_str());
            let said = words(&run.output().expect("qj runs"));
            assert!(said.contains(&place), "{number}, {engine}: {said}");
        }
        let executable = snapbox::cmd::Command::new(folder.path("a.out")).stdin(input.as_str());
        let said = words(&executable.output().expect("the executable runs"));
        assert!(said.contains(&place), "{number}, executable: {said}");
    }
}
