//! The memory of generated programs: the report agrees with C's `sizeof`; slots whose live ranges do not overlap share
//! memory; loops promote values of the frame.

use crate::support::{STRICT, check, output, succeed, write};
use quaject_esp_gen::c::{Options, Output, Style};
use quaject_test_support::tool;
use std::process::Command;

/// A process that keeps one packet while it receives messages, answers them and wraps them.
const COURIER: &str = "type dataT = bytes[<=200];\n\
    type answerT = union { packet: record { from: u8, packet: dataT }, silence };\n\
    channel lateC(u8, dataT) external out;\nchannel jobC(dataT) external out;\n\
    channel sentC(dataT) external in;\nchannel answerC(answerT) external in;\n\
    process courier {\n  var packet: dataT = \"first\";\n  while {\n    alt {\n\
    in(lateC, $from, $late) {\n\
    if (from == 0) out(sentC, packet);\n\
    else if (from == 1) out(sentC, \"stranger\");\n\
    else out(answerC, packet |> { from, late });\n    }\n\
    in(jobC, packet) {\n\
    alt {\n      in(lateC, $other, $reply) {\n\
    if (other > 1) out(answerC, silence |> {});\n        else out(sentC, reply + packet);\n      }\n    }\n\
    out(sentC, packet);\n    }\n    }\n  }\n}\n";

fn frame_bytes(output: &Output, process: &str) -> u64 {
    let found = output.report.processes.iter().find(|report| report.name == process);
    found.expect("the process is in the report").frame_bytes
}

#[test]
fn slots_with_disjoint_live_ranges_share_memory() {
    let output = output("courier.esp", COURIER, &Options::default());
    // The packet, a reply, and both in sequence, in memory that they share with the answer.
    assert_eq!(frame_bytes(&output, "courier"), 816, "{}", output.header);
    // Debuggers show the variables of the frame by their names.
    for name in [" packet_s", " late_s", " reply_s"] {
        assert!(output.header.contains(name), "{name}: {}", output.header);
    }
}

#[test]
fn slots_that_share_memory_keep_their_contents_while_live() {
    check(
        COURIER,
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
#include <string.h>
static const struct { char kind; uint8_t from; const char *text; } script[] = {
    {'l', 0, "a"}, {'l', 1, "b"}, {'l', 7, "late"}, {'j', 0, "second"}, {'l', 0, "reply "}, {'l', 0, "c"},
    {'j', 0, "third"}, {'l', 9, "d"}, {'l', 8, "later"}, {'l', 0, "e"},
};
static unsigned at;
static bool next(char kind) { return at < sizeof script / sizeof *script && script[at].kind == kind; }
static void take(bytes_200 *data)
{
    data->length = (uint16_t)strlen(script[at].text);
    memcpy(data->data, script[at].text, data->length);
    at++;
}
bool lateC_ready(void) { return next('l'); }
void lateC_take(lateC_message *m) { m->v0 = script[at].from; take(&m->v1); }
bool jobC_ready(void) { return next('j'); }
void jobC_take(jobC_message *m) { take(&m->v0); }
bool sentC_ready(void) { return true; }
void sentC_put(const sentC_message *m) { printf("sent %.*s\n", (int)m->v0.length, (const char *)m->v0.data); }
bool answerC_ready(void) { return true; }
void answerC_put(const answerC_message *m)
{
    if (m->v0.tag == 1) printf("silence\n");
    else printf("%d %.*s\n", m->v0.as.packet.from, (int)m->v0.as.packet.packet.length,
                (const char *)m->v0.as.packet.packet.data);
}
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    return 0;
}
"#,
        "sent first\nsent stranger\n7 late\nsent reply second\nsent second\nsent second\nsilence\nsent third\n8 later\n\
         sent third\nstatus 0\n",
    );
}

/// One literal is compared with and copied, another one is changed.
const LITERALS: &str = "type dataT = bytes[<=200];\n\
    channel inC(dataT) external out;\nchannel outC(dataT) external in;\n\
    process p {\n  while {\n    in(inC, $data);\n\
    var name: dataT = \"a name\";\n    var changed: #bytes[<=200] = #\"other\";\n\
    if (data == name) { changed[0] = 65; data = name + freeze(changed); }\n\
    if (data == \"\") data = freeze(changed);\n    out(outC, data);\n  }\n}\n";

#[test]
fn literals_are_constants_unless_they_change() {
    let output = output("literals.esp", LITERALS, &Options::default());
    let constants: Vec<&str> = output.source.lines().filter(|line| line.contains("static const bytes_200")).collect();
    assert_eq!(constants.len(), 2, "{constants:#?}");
    check(
        LITERALS,
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
#include <string.h>
static const char *const script[] = {"x", "a name", "", "a name"};
static unsigned at;
bool inC_ready(void) { return at < 4; }
void inC_take(inC_message *m)
{
    m->v0.length = (uint16_t)strlen(script[at]);
    memcpy(m->v0.data, script[at], m->v0.length);
    at++;
}
bool outC_ready(void) { return true; }
void outC_put(const outC_message *m) { printf("%.*s\n", (int)m->v0.length, (const char *)m->v0.data); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    return 0;
}
"#,
        "x\na nameAther\nother\na nameAther\nstatus 0\n",
    );
}

/// Waits of every kind: deadlines, guards, ports, replicas, a `pri alt`, values that are parked, wide and narrow.
const WAITS: &str = "type pairT = record { a: u64, b: u8 };\n\
    channel inC(pairT) external out;\nchannel outC(pairT, u64) external in;\nchannel askC(pid(server), pairT);\n\
    channel doneC(u8, u64);\n\
    process server[3] {\n  var own: pairT = { 0, 0 };\n  while {\n    in(askC, @, $pair);\n    own = { pair.a + own.a, pair.b };\n\
    out(doneC, own.b, own.a + 1);\n  }\n}\n\
    process front {\n  var sum: u64 = 0;\n  while {\n    pri alt {\n\
    in(doneC, $b, $a) { sum += a; out(outC, { a, b }, sum); }\n\
    when (sum < 100) in(inC, $pair) { out(askC, @server[pair.b % 3], pair); }\n\
    after (sum + 5 ms) { sum = 0; }\n    }\n  }\n}\n";

#[test]
fn the_report_agrees_with_sizeof() {
    let Some(compiler) = tool(&["gcc", "clang"]) else { return };
    for (name, source) in [("courier.esp", COURIER), ("waits.esp", WAITS)] {
        for style in [Style::Poll, Style::Post { ring: 4 }, Style::SansIo] {
            let options = Options { style, ..Options::default() };
            let folder = tempfile::tempdir().expect("a temporary folder can be made");
            write(folder.path(), name, source, &options);
            let mut facts = "#include \"program.h\"\n".to_string();
            for process in &output(name, source, &options).report.processes {
                let (name, bytes) = (&process.name, process.frame_bytes);
                facts += &format!("typedef char {name}_is_as_said[sizeof({name}_frame) == {bytes} ? 1 : -1];\n");
            }
            std::fs::write(folder.path().join("facts.c"), facts).expect("the folder is ours");
            let mut compile = Command::new(compiler);
            compile.current_dir(folder.path()).args(STRICT).args(["-I.", "-fsyntax-only", "facts.c"]);
            succeed(&mut compile);
        }
    }
}

/// A sum and a count that are live as long as the process, and a loop between two messages that changes them and has an
/// exit in its middle. Values that the loop does not change are live behind it.
const SUMS: &str = "channel inC(int) external out;\nchannel outC(int, int, int) external in;\n\
    process p {\n  var sum = 0, turns = 0;\n  while {\n    in(inC, $count);\n    for i in 0..count {\n\
    sum += i * count;\n    if (sum > 100) { sum = 1; break; }\n    turns += 1;\n    }\n\
    out(outC, sum, turns, count);\n  }\n}\n";

#[test]
fn loops_without_waits_promote_frame_values() {
    let output = output("sums.esp", SUMS, &Options::default());
    assert!(output.source.contains("_inside:"), "{}", output.source);
    check(
        SUMS,
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
static const int script[] = {0, 1, 2, 3, 9, 2, 0};
static unsigned at;
bool inC_ready(void) { return at < 7; }
void inC_take(inC_message *m) { m->v0 = script[at++]; }
bool outC_ready(void) { return true; }
void outC_put(const outC_message *m) { printf("%d %d %d\n", (int)m->v0, (int)m->v1, (int)m->v2); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    return 0;
}
"#,
        "0 0 0\n0 1 1\n2 3 2\n11 6 3\n1 10 9\n3 12 2\n3 12 0\nstatus 0\n",
    );
}

#[test]
fn loops_of_communicating_processes_promote_nothing() {
    let source = format!("{SUMS}channel moreC(int) external out;\nprocess q {{ while {{ in(moreC, $more); }} }}\n");
    let output = output("sums.esp", &source, &Options::default());
    assert!(!output.source.contains("_inside:"), "{}", output.source);
}
