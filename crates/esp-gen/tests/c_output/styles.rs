//! Each style of generated C with a `main` of its own, compiled by every available compiler with all warnings as
//! errors, and under sanitizers where they are available; the `main` prints what happened.

use crate::support::{STRICT, check, succeed, write};
use quaject_esp_gen::Checks;
use quaject_esp_gen::c::{Options, Style};
use quaject_test_support::{Effort, tool};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_examples_compile_without_a_warning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut folders = vec![root];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the examples are part of the repository") {
            let path = entry.expect("the examples can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "esp") {
                paths.push(path);
            }
        }
    }
    assert!(paths.len() >= 8, "{paths:?}");
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("the examples can be read");
    let texts: Vec<String> = paths.iter().map(read).collect();
    for (path, source) in paths.iter().zip(&texts) {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        // Nothing is imported here: programs that do, and the parts that others import, are for the command's tests.
        let is_part = texts.iter().any(|text| text.contains(&format!("import \"{name}\"")));
        if is_part || source.contains("\nimport \"") || source.starts_with("import \"") {
            continue;
        }
        for style in [Style::Poll, Style::Post { ring: 16 }, Style::SansIo] {
            let temporary = tempfile::tempdir().expect("a temporary folder can be made");
            write(temporary.path(), &name, source, &Options { style, ..Options::default() });
            for candidate in Effort::wanted().pick(&["gcc"][..], &["clang", "gcc"], &["clang", "gcc"]) {
                let Some(compiler) = tool(&[candidate]) else { continue };
                let mut compile = Command::new(compiler);
                // Some warnings come from the optimiser, which takes half a quick run's time.
                let form = Effort::wanted().pick(&["-fsyntax-only"][..], &["-O1", "-c"], &["-O1", "-c"]);
                compile.current_dir(temporary.path()).args(STRICT).arg("-I.").args(form).arg("program.c");
                succeed(&mut compile);
            }
        }
    }
}

const DOUBLE: &str = "channel i(int) external out;\nchannel o(int) external in;\n\
                      process p { while { in(i, $n); out(o, n + n); } }\n";

#[test]
fn poll_calls_the_functions_of_its_user() {
    check(
        DOUBLE,
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
static int next, room = 2;
bool i_ready(void) { return next < 4; }
void i_take(i_message *m) { m->v0 = next++; }
bool o_ready(void) { return room > 0; }
void o_put(const o_message *m) { room--; printf("%d\n", (int)m->v0); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    room = 10;
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    esp_close_i(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    return 0;
}
"#,
        "0\n2\nstatus 0\n4\n6\nstatus 0\nstatus 2\n",
    );
}

#[test]
fn values_of_a_message_have_the_names_that_the_channel_gives_them() {
    check(
        "type t = record { a: int };\npool t 2;\n\
         channel i(count: int, double: t, u8, v2: u8) external out;\n\
         channel o(sum: int, t, rest: u8) external in;\n\
         process p { while { in(i, $n, $r, $x, $y); out(o, n + r.a, r, x - y); } }\n",
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
static int next;
bool i_ready(void) { return next < 2; }
void i_take(i_message *m) { m->count = next++; m->double_.a = 40; m->v2_ = 9; m->v2 = 5; }
bool o_ready(void) { return true; }
void o_put(const o_message *m) { printf("%d %d %d\n", (int)m->sum, (int)m->v1.a, (int)m->rest); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    return 0;
}
"#,
        "40 40 4\n41 40 4\nstatus 0\n",
    );
}

/// Constants stand behind `case`, do not disturb members of the same name, and hold codes of every type.
#[test]
fn cases_of_enumerations_are_constants_of_the_environment() {
    check(
        "type code = enum u8 { ok, busy = 5, else unknown };
         type wide = enum u32 { low = 7, high = 0xffff_ffff, else rest };
         type inner = enum { a, b };
         type t = record { code_busy: code, seen: array[2] of wide };
         channel i(t) external out;
         channel o(code, wide) external in;
         channel internal(inner);
         process p { while { in(i, { $c, $w }); out(internal, inner.b); out(o, c, w[1]); } }
         process q { while { in(internal, _); } }
",
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
static int next;
bool i_ready(void) { return next < 2; }
void i_take(i_message *m)
{
    m->v0.code_busy = next == 0 ? code_ok : code_busy;
    m->v0.seen.at[0] = wide_low;
    m->v0.seen.at[1] = next++ == 0 ? wide_low : wide_high;
}
bool o_ready(void) { return true; }
void o_put(const o_message *m)
{
    switch (m->v0) {
    case code_ok: printf("ok"); break;
    case code_busy: printf("busy"); break;
    default: printf("?"); break;
    }
    printf(m->v1 == wide_high ? " high\n" : " low\n");
}
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
#ifdef inner_a
    return 1;
#endif
    return 0;
}
"#,
        "ok low\nbusy high\nstatus 0\n",
    );
}

#[test]
fn post_takes_messages_from_a_signal_handler_and_counts_what_it_drops() {
    check(
        DOUBLE,
        &Options { style: Style::Post { ring: 4 }, ..Options::default() },
        r#"#include "program.h"
#include <signal.h>
#include <stdio.h>
static int next;
static void interrupt(int number)
{
    i_message m = {0};
    (void)number;
    m.v0 = next++;
    (void)esp_post_i(&m);
}
bool o_ready(void) { return true; }
void o_put(const o_message *m) { printf("%d\n", (int)m->v0); }
int main(void)
{
    static esp_t t;
    int k;
    esp_init(&t);
    signal(SIGINT, interrupt);
    for (k = 0; k < 6; k++) {
        raise(SIGINT);
        signal(SIGINT, interrupt);
    }
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    raise(SIGINT);
    printf("status %d\n", (int)esp_step(&t, 0, 0, 0));
    printf("dropped %u\n", (unsigned)esp_dropped_i());
    return 0;
}
"#,
        "0\n2\n4\n6\nstatus 0\n12\nstatus 0\ndropped 2\n",
    );
}

#[test]
fn sans_io_keeps_instances_apart_under_a_prefix() {
    check(
        "channel i(int) external out;\nchannel o(int) external in;\n\
         process p { var sum = 0; while { in(i, $n); sum += n; out(o, sum); } }\n",
        &Options { style: Style::SansIo, prefix: Some("sum".into()), ..Options::default() },
        r#"#include "program.h"
#include <stdio.h>
static int feed(sum_t *t, int n)
{
    sum_i_message in_message = {0};
    sum_o_message out_message = {0};
    sum_input in = {0};
    sum_output out = {0};
    size_t taken = 0;
    in_message.v0 = n;
    in.i.messages = &in_message;
    in.i.count = 1;
    out.head.taken = &taken;
    out.o.messages = &out_message;
    out.o.capacity = 1;
    while (sum_step(t, &in, &out, 0) == ESP_AGAIN) { }
    return taken == 1 && out.o.count == 1 ? (int)out_message.v0 : -1;
}
int main(void)
{
    static sum_t a, b;
    sum_init(&a);
    sum_init(&b);
    printf("%d", feed(&a, 1));
    printf(" %d", feed(&b, 10));
    printf(" %d", feed(&a, 2));
    b = a;
    printf(" %d", feed(&b, 100));
    printf(" %d\n", feed(&a, 3));
    return 0;
}
"#,
        "1 10 3 103 6\n",
    );
}

#[test]
fn interfaces_are_functions_per_pattern() {
    check(
        "type sendT = record { dest: int, size: int };\ntype requestT = union { send: sendT, eos };\n\
         channel userC: requestT external out;\nchannel wireC(bool, int) external in;\n\
         external interface userReq(out userC) { Send(send |> { $dest, $size }), Eos(eos |> {}) }\n\
         external interface wire(in wireC) { Even(true, $n), Odd(false, $n) }\n\
         process p { while { alt { in(userC, send |> { $d, $s }) { out(wireC, s == 4, d + s); } \
         in(userC, eos |> {}) { out(wireC, false, 0); } } } }\n",
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
bool wireIsReady(void) { return true; }
void wireEven(int32_t n) { printf("even %d\n", (int)n); }
void wireOdd(int32_t n) { printf("odd %d\n", (int)n); }
int main(void)
{
    static esp_t t;
    esp_init(&t);
    printf("%d\n", userReqIsReady());
    userReqSend(3, 4);
    printf("%d\n", userReqIsReady());
    esp_step(&t, 0, 0, 0);
    userReqEos();
    esp_step(&t, 0, 0, 0);
    printf("%d\n", userReqIsReady());
    return 0;
}
"#,
        "1\n0\neven 7\nodd 0\n1\n",
    );
}

/// A `main` for a program without external channels: steps once and prints the status and the fault.
const FAULT: &str = r#"#include "program.h"
#include <stdio.h>
int main(void)
{
    static esp_t t;
    esp_status status;
    esp_fault_report fault;
    esp_init(&t);
    status = esp_step(&t, 0, 0, 0);
    fault = esp_fault(&t);
    printf("%d fault %u line %u\n", (int)status, (unsigned)fault.code, (unsigned)fault.place.line);
    return 0;
}
"#;

#[test]
fn an_unlink_too_many_is_a_fault() {
    let program = "memory manual;\ntype t = bytes[<=4];\npool t 2;\n\
                   process p {\n  var b: t = \"a\";\n  unlink(b);\n  unlink(b);\n}\n";
    check(program, &Options::default(), FAULT, "3 fault 7 line 7\n");
}

#[test]
fn overflow_is_a_fault_only_if_checked() {
    let program = "process p {\n  var n = 1;\n  for i in 0..40 {\n    n = n * 2;\n  }\n  assert(n == 0);\n}\n";
    check(program, &Options::default(), FAULT, "2 fault 0 line 0\n");
    check(program, &Options { checks: Checks::On, ..Options::default() }, FAULT, "3 fault 4 line 4\n");
}

#[test]
fn an_endless_computation_returns_to_its_caller() {
    let talking = "channel c(int);\nprocess p { while { out(c, 1); } }\nprocess q { while { in(c, _); } }\n";
    let yielding = "process p { while { yield; } }\n";
    let next_to_a_timer = "process p { while { yield; } }\nprocess q { alt { after (1 s) { exit(1); } } }\n";
    for program in [talking, yielding, next_to_a_timer] {
        check(program, &Options::default(), FAULT, "1 fault 0 line 0\n");
    }
}

#[test]
fn places_are_those_of_the_first_open_operation() {
    check(
        "channel a(int) shared;\nchannel b(int) shared;\n\
         process p[2] {\n  alt {\n    when (int(@) == 1) in(a, _) { }\n    in(b, _) { }\n  }\n}\n\
         process q { in(a, _);\n}\nprocess r { }\n\
         process s { if (int(@) == 99) { out(a, 1); out(b, 1); } }\n",
        &Options::default(),
        r#"#include "program.h"
#include <stdio.h>
int main(void)
{
    static esp_t t;
    esp_pid k;
    esp_init(&t);
    printf("%d\n", (int)esp_step(&t, 0, 0, 0));
    for (k = 0; k < 4; k++) {
        esp_location place = esp_place(&t, k);
        printf("%u:%u %d\n", (unsigned)place.line, (unsigned)place.column, (int)place.channel);
    }
    return 0;
}
"#,
        "3\n6:5 1\n5:5 0\n9:13 0\n0:0 -1\n",
    );
}
