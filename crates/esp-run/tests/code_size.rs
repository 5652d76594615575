//! Code bytes of a report: every byte has one owner, and code added to a process is that process's.

use quaject_esp_gen::c::{Options, Owner, Style};
use quaject_esp_ir::ir::Program;
use quaject_esp_lower::lower;
use quaject_esp_run::{CodeSizes, SIZE_FLAGS, measure};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("nothing to import: {path}"))
    }
}

fn program(source: &str) -> Program {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("program.esp", source.to_string()));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("the program is wrong: {:?}", analysis.diagnostics));
    lower(&program, &sources)
}

fn sizes(source: &str, style: Style, flags: &[&str]) -> CodeSizes {
    measure(&program(source), &Options { style, ..Options::default() }, flags).expect("the C is compiled and measured")
}

const STYLES: [Style; 3] = [Style::Poll, Style::Post { ring: 4 }, Style::SansIo];

/// Two processes, several writers and a function, with more code in the second process.
fn pair(more: &str) -> String {
    format!(
        "channel i(int) external out;\nchannel o(int) external in;\nchannel c(int);\n\
         fn twice(n: int) -> int {{ return n * 2; }}\n\
         process first {{ while {{ in(i, $n); out(c, twice(n)); }} }}\n\
         process second {{ var sum = 0; while {{ in(c, $n); sum += n; {more} out(o, sum); }} }}\n\
         process third[3] {{ out(c, twice(int(@))); }}\n"
    )
}

#[test]
fn every_byte_of_code_has_an_owner() {
    for style in STYLES {
        for source in ["", "process p { }\n", "process p { while { yield; } }\n", &pair("")] {
            let sizes = sizes(source, style, SIZE_FLAGS);
            assert_eq!(sizes.bytes.values().sum::<u64>(), sizes.text_bytes, "{style:?}: {source}");
            assert!(sizes.text_bytes > 0);
        }
    }
    let sizes = sizes(&pair(""), Style::SansIo, SIZE_FLAGS);
    assert!(sizes.compiler.ends_with("`-std=gnu99 -Os`"), "{}", sizes.compiler);
    for process in 0..3 {
        assert!(sizes.of(Owner::Process(process)) > 20, "{sizes:?}");
    }
}

#[test]
fn code_added_to_a_process_is_its_own() {
    // Without optimisation: a compiler that puts values elsewhere because of it changes other code as well.
    let flags = ["-std=gnu99", "-O0"];
    let more = "for k in 0..3 { if (sum > k) sum = sum * 3 + k; }".repeat(4);
    let more = more.as_str();
    // Jumps across the added code take some bytes more.
    const JUMPS: u64 = 16;
    for style in STYLES {
        let (before, after) = (sizes(&pair(""), style, &flags), sizes(&pair(more), style, &flags));
        let grown = after.of(Owner::Process(1)) - before.of(Owner::Process(1));
        assert!(grown > 20 * JUMPS, "{style:?}: {before:?} {after:?}");
        for owner in [Owner::Process(0), Owner::Process(2), Owner::Function(0), Owner::Scheduler] {
            let others = after.of(owner).abs_diff(before.of(owner));
            assert!(others <= JUMPS, "{style:?}: {owner:?} {before:?} {after:?}");
        }
    }
    let (before, after) = (sizes(&pair(""), Style::Poll, SIZE_FLAGS), sizes(&pair(more), Style::Poll, SIZE_FLAGS));
    assert!(after.of(Owner::Process(1)) > before.of(Owner::Process(1)) + 10, "{before:?} {after:?}");
}

/// Runs the program on a stack that is filled with a pattern, and prints how many bytes of it have changed.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const PAINTED_STACK: &str = r#"
#include "program.h"
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { SIZE = 65536, PATTERN = 0xa5 };
static unsigned char stack[SIZE] __attribute__((aligned(64)));
static ucontext_t here, there;
static esp_t program;

static esp_status nothing(esp_t *t, const esp_input *in, esp_output *out, esp_time now)
{
    (void)t, (void)now;
    *out->head.taken = in->i.count;
    return ESP_SLEEP;
}

static esp_status (*volatile entry)(esp_t *, const esp_input *, esp_output *, esp_time) = RUN ? esp_step : nothing;

static void body(void)
{
    static const i_message one = {7};
    static o_message room[4];
    static esp_input in;
    static esp_output out;
    static size_t taken;
    in.i.messages = &one;
    in.i.count = 1;
    out.head.taken = &taken;
    out.o.messages = room;
    out.o.capacity = 4;
    entry(&program, &in, &out, 0);
    if (taken != 1) stack[0] = 0;
}

int main(void)
{
    int used = 0;
    memset(stack, PATTERN, SIZE);
    esp_init(&program);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = SIZE;
    there.uc_link = &here;
    makecontext(&there, body, 0);
    swapcontext(&here, &there);
    while (used < SIZE && stack[used] == PATTERN) used++;
    printf("%d\n", SIZE - used);
    return 0;
}
"#;

/// The stack of a step is at most that of the report, and not much less; the report has the frames of `-fstack-usage`.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn the_stack_of_the_report_is_that_of_a_run() {
    let (Some(gcc), true) = (quaject_test_support::tool(&["gcc"]), std::env::var_os("CC").is_none()) else { return };
    let program = program(&pair("sum ^= twice(n) / (n | 1);"));
    let options = Options { style: Style::SansIo, ..Options::default() };
    let names = ["esp_step", "esp_init", "nothing"].map(str::to_string);
    // gcc does not count what a function without calls has in the red zone.
    let flags = [SIZE_FLAGS, &["-mno-red-zone"]].concat();
    let stacks = quaject_esp_run::measure_stack(&program, &options, &flags, &names).expect("gcc writes a call graph");
    let step = stacks[0].clone().expect("each program has it");
    assert_eq!(stacks[2], None);

    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("the folder is ours");
    let generated = quaject_esp_gen::c::generate(&program, &options);
    std::fs::create_dir(folder.path().join("quaject")).expect("the folder is ours");
    write("quaject/esp.h", quaject_esp_gen::RUNTIME_HEADER);
    write("program.h", &generated.header);
    write("program.c", &generated.source);
    write("main.c", PAINTED_STACK);
    let run = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        let output = command.current_dir(folder.path()).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it writes text")
    };
    run(gcc, &["-std=gnu99", "-Os", "-mno-red-zone", "-fstack-usage", "-I.", "-c", "program.c"]);
    let used = |run_step: &str| -> u64 {
        run(gcc, &["-std=gnu99", "-Os", "-no-pie", run_step, "-I.", "-o", "main", "main.c", "program.o"]);
        run("./main", &[]).trim().parse().expect("it prints a number")
    };
    // The function in place of the step has a return address.
    let measured = used("-DRUN=1") - used("-DRUN=0") + 8;
    assert!(measured <= step.bytes, "{measured} bytes were used, {step:?}");
    assert!(2 * measured > step.bytes, "{measured} bytes were used, {step:?}");

    let frames = std::fs::read_to_string(folder.path().join("program.su")).expect("gcc has written it");
    let frame = |line: &str| -> Option<u64> { line.split('\t').nth(1)?.parse().ok() };
    let all: u64 = frames.lines().filter_map(frame).sum();
    let own = frames.lines().find(|line| line.contains(":esp_step\t")).and_then(frame).expect("it is in the file");
    assert!(own <= step.bytes && step.bytes <= all, "{step:?}, {frames}");
}
