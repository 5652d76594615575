//! Fast paths written in C: they preserve the behaviour of programs, on every engine and with gcc and clang, whether
//! the function completes the path, completes a part of it or declines; without the function, the general path runs.

mod support;

use quaject_test_support::tool;
use std::process::Command;
use support::Folder;

const ENGINES: [&str; 3] = ["interp", "c", "jit"];

const PAIRS: &str = "channel numberC(int) external out;\nchannel evenC(int);\nchannel pairC(int);\n\
    channel sumC(int) external in;\n\
    process read { while { in(numberC, $n); out(evenC, n); } }\n\
    process pair { while { in(evenC, $a); in(evenC, $b); out(pairC, a + b); } }\n\
    process write {\n  var total = 0, seen: #array of int = #[0; 4], next = 0;\n  while {\n    in(pairC, $p);\n\
    \x20   total += p;\n    seen[next & 3] = p;\n    next += 1;\n    out(sumC, total + seen[next & 3]);\n  }\n}\n";

/// The second number of a pair goes to the sum, a negative one never.
const PAIRS_PATH: &str = "fastpath second extern \"second_number\" {\n\
    \x20 process read { start numberC; exit numberC, evenC; }\n\
    \x20 process pair { start evenC/in@2; exit evenC/in@1, evenC/in@2; }\n\
    \x20 process write { start pairC; exit #sum, pairC; }\n}\n";

const PAIRS_C: &str = "#include \"program.h\"\n\
    uint32_t second_number(second_state *state, array_4_int32 *seen)\n{\n\
    \x20   int32_t p = state->pair_a + state->read_n;\n\
    \x20   if (state->read_n < 0) return 0;\n\
    \x20   if (state->read_n == 0) return 2;\n\
    \x20   state->write_total += p;\n\
    \x20   seen->at[state->write_next & 3] = p;\n\
    \x20   state->write_next += 1;\n\
    \x20   return 1;\n}\n";

/// With the label of the path's exit.
fn with_label(program: &str) -> String {
    program.replace("    out(sumC", "    #sum\n    out(sumC")
}

/// What a run prints, and its status.
fn run(folder: &Folder, arguments: &str, input: &str) -> (String, String, Option<i32>) {
    let output = folder.qj(arguments).stdin(input).output().expect("qj runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn every_engine_calls_the_function() {
    let program = with_label(PAIRS);
    let folder = Folder::with(&[("a.esp", &program), ("a.fp", PAIRS_PATH), ("a.c", PAIRS_C)]);
    let wrong = PAIRS_C.replace("+= p;\n", "+= p + 1;\n");
    std::fs::write(folder.path("wrong.c"), wrong).expect("a file can be written");
    for length in 0..9 {
        let numbers = [1, 2, 3, 0, 5, -6, 7, 8, 0];
        let input: String = numbers[..length].iter().map(|number| format!("{number}\n")).collect();
        let plain = run(&folder, "run a.esp", &input);
        for engine in ENGINES {
            let manual = format!("run a.esp --mode fastpath --fast-paths a.fp --extern a.c --engine {engine}");
            assert_eq!(run(&folder, &manual, &input), plain, "{engine}: {input}");
        }
        // The function adds a pair that ends in a positive number.
        let wrong = run(&folder, "run a.esp --mode fastpath --fast-paths a.fp --extern wrong.c", &input);
        assert_eq!(wrong == plain, length < 2, "{input}: {wrong:?}");
    }
}

#[test]
fn figure_2_by_hand() {
    let path = "fastpath onePage extern \"one_page\" {\n\
        \x20 process hostRequest { start hostSendRequestC ? (size == 4096); exit translateReplyC, translateReplyC; }\n\
        \x20 process translateAddress { start translateRequestC; exit #2, translateReplyC/out@2; }\n\
        \x20 process networkSend { start dataSendC; exit dataSendC, networkSendC; }\n}\n";
    let code = "#include \"program.h\"\n\
        uint32_t one_page(onePage_state *state)\n{\n\
        \x20   int32_t at = state->hostRequest_virtualAddress;\n\
        \x20   if (at % 4096 != 0) return 0;\n\
        \x20   state->translateAddress_virtualAddress = at;\n\
        \x20   state->translateAddress_size = 4096;\n\
        \x20   if (translationUnavailable(at)) return 1;\n\
        \x20   state->networkSend_packet = preparePacket(translate(at), 4096);\n\
        \x20   return 2;\n}\n";
    let program = concat!(
        include_str!("../../../examples/vmmc-send/figure2.esp"),
        include_str!("../../../examples/vmmc-send/functions.esp")
    );
    let help = include_str!("../../../examples/vmmc-send/help.c");
    let folder = Folder::with(&[("a.esp", program), ("a.fp", path), ("a.c", code), ("help.c", help)]);
    for requests in ["", "0 4096\n8192 12288\n4096 0\n-8192 4096\n4096 4096\n", "0 4096\n3 4096\n0 4096\n"] {
        std::fs::write(folder.path("requests"), requests).expect("a file can be written");
        let bound = "--extern help.c --bind hostSendRequestC=text:requests";
        let plain = run(&folder, &format!("run a.esp {bound}"), "");
        for engine in ENGINES {
            let manual = format!("run a.esp --mode fastpath --fast-paths a.fp --extern a.c {bound} --engine {engine}");
            assert_eq!(run(&folder, &manual, ""), plain, "{engine}: {requests}");
        }
    }
}

const STREAM: &str = "channel i(int) external out;\nchannel c(int);\nchannel o(int) external in;\n\
    process read { while { in(i, $n); out(c, n); } }\n\
    process sum { var total = 0; while { in(c, $n); if (n < 0) { total = 0; } total += n; out(o, total); } }\n\
    fastpath stream extern \"stream\" {\n  process read { start i; exit i; }\n  process sum { start c; exit c; }\n}\n";

/// A function that communicates with the environment as long as possible, and the environment.
const STREAM_C: &str = r#"#include "a.h"
#include <stdio.h>
static int next, rounds, calls, room = 7;
static const int numbers[] = {1, 2, -3, 4, 5, 6, -1, -1, 8, 9, 10, 11};
bool i_ready(void) { return next < 12; }
void i_take(i_message *m) { m->v0 = numbers[next++]; }
bool o_ready(void) { return room > 0; }
void o_put(const o_message *m) { room--; printf("%d\n", (int)m->v0); }
#ifdef MANUAL
uint32_t stream(stream_state *state)
{
    calls++;
    for (;;) {
        o_message sum;
        i_message number;
        if (state->read_n < 0 || !o_ready()) return 0;
        state->sum_total += state->read_n;
        sum.v0 = state->sum_total;
        o_put(&sum);
        rounds++;
        if (!i_ready()) return 1;
        i_take(&number);
        state->read_n = number.v0;
    }
}
#endif
int main(void)
{
    static esp_t t;
    int k;
    esp_init(&t);
    for (k = 0; k < 3; k++) {
        esp_status status = esp_step(&t, 0, 0, 0);
        printf("status %d\n", (int)status);
        room += 3;
    }
    fprintf(stderr, "%d calls, %d rounds\n", calls, rounds);
    return 0;
}
"#;

#[test]
fn the_function_communicates_with_the_environment() {
    let folder = Folder::with(&[("a.esp", STREAM), ("main.c", STREAM_C)]);
    folder.qj("build a.esp --emit c --style poll -o plain").assert().success();
    folder.qj("build a.esp --emit c --style poll --mode fastpath -o manual").assert().success();
    for candidate in ["gcc", "clang"] {
        let Some(compiler) = tool(&[candidate]) else { continue };
        let built = |form: &str, define: &[&str]| {
            let mut build = Command::new(compiler);
            build.current_dir(folder.path(form)).args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-I."]);
            let build = build.args(define).args(["-o", "a.out", "../main.c", "a.c"]).output().expect("it starts");
            assert!(build.status.success(), "{compiler}: {}", String::from_utf8_lossy(&build.stderr));
            Command::new(folder.path(form).join("a.out")).output().expect("it runs")
        };
        let (plain, manual) = (built("plain", &[]), built("manual", &["-DMANUAL"]));
        assert_eq!(manual.stdout, plain.stdout, "{compiler}: {}", String::from_utf8_lossy(&manual.stdout));
        assert_eq!(manual.stderr, b"4 calls, 6 rounds\n", "{compiler}");
    }
}

#[test]
fn without_the_function_the_general_path_runs() {
    let folder = Folder::with(&[("a.esp", STREAM)]);
    let note = "warning: no fast path stream: it is the C function `stream`, which can neither be analysed nor called here\n\
                help: give the file that defines `stream`: `--extern FILE.c`\n";
    for engine in ENGINES {
        let run = folder.qj(&format!("run a.esp --mode fastpath --engine {engine}"));
        run.stdin("1\n2\n").assert().success().stdout_eq("1\n3\n").stderr_eq(note);
    }
    folder.qj("run a.esp").stdin("1\n2\n").assert().success().stdout_eq("1\n3\n").stderr_eq("");
    folder.qj("verify --fastpath a.esp").assert().code(2).stderr_eq(
        "warning: no fast path stream: it is the C function `stream`, which can neither be analysed nor called here\n\
         error[H0204]: no fast path could be formed, so that nothing can be compared\n\
         help: the warnings above give the reasons; `qj build --report` has details\n",
    );
    let report = run(&folder, "build a.esp --emit c --mode fastpath --report -o out", "");
    assert!(report.0.starts_with("fast path stream: read, sum: the C function `stream`, which is not analysed\n"));
}

#[test]
fn paths_that_c_cannot_implement_are_reported() {
    let program = "type box = record of { a: int };\npool box 4;\nchannel i(int) external out;\nchannel c(box);\n\
        channel o(int) external in;\nprocess read { while { in(i, $n); out(c, { n }); } }\n\
        process write { while { in(c, $b); #got out(o, b.a); } }\n\
        fastpath boxes extern \"boxes\" {\n  process read { start i; }\n  process write { start c; exit #got; }\n}\n";
    let folder = Folder::with(&[("a.esp", program)]);
    let report = run(&folder, "build a.esp --emit c --mode fastpath --report -o out", "");
    let said = "no fast path boxes: `write` has a value at its exit that cannot be passed to C at a.esp:8:10\n";
    assert!(report.0.starts_with(said), "{report:?}");
}
