//! The same programs on other machines under qemu-user, and under valgrind and the sanitizers.

use std::path::Path;

use crate::build::Program;
use quaject_test_support::{quick_run, tool};

/// Compilers of C and C++, qemu, machine, where its libraries are.
const MACHINES: &[(&str, &str, &str, &str, &str)] = &[
    ("aarch64-linux-gnu-gcc-12", "aarch64-linux-gnu-g++-12", "qemu-aarch64", "aarch64", "/usr/aarch64-linux-gnu"),
    ("riscv64-linux-gnu-gcc-12", "riscv64-linux-gnu-g++-12", "qemu-riscv64", "riscv64", "/usr/riscv64-linux-gnu"),
];

#[test]
fn other_machines_print_the_same() {
    if quick_run("programs under qemu-user") {
        return;
    }
    for (compiler, cpp, qemu, machine, libraries) in MACHINES {
        if tool(&[qemu]).is_none() || !Path::new(libraries).exists() {
            continue;
        }
        for name in ["nest", "order", "section53", "words", "converted", "scope", "reach", "aligned"] {
            let program = Program::new(compiler, name).flags(&["-O2"]).with_sources(machine);
            program.under(&[qemu, "-L", libraries]).check();
        }
        let program = Program::new(compiler, "rounding").flags(&["-O2", "-frounding-math"]).with_sources(machine);
        program.environment("QJ_AC_FLOAT", "own").under(&[qemu, "-L", libraries]).check();
        let flags = ["-O2", "-rdynamic", "-fno-optimize-sibling-calls"];
        let program = Program::new(compiler, "backtrace").flags(&flags).with_sources(machine);
        program.under(&[qemu, "-L", libraries]).check();
        // Exceptions through the switch of stacks, carried to the join, and handled by tasks that wait.
        for name in ["exceptions", "handlers"] {
            let program = Program::new(cpp, name).flags(&["-O2"]).with_sources(machine);
            program.under(&[qemu, "-L", libraries]).check();
        }
    }
}

/// Stacks are announced to valgrind: no error where there is none.
#[test]
fn valgrind_sees_the_stacks() {
    if quick_run("programs under valgrind") || tool(&["valgrind"]).is_none() {
        return;
    }
    for (compiler, name) in
        [("gcc", "order"), ("gcc", "sync"), ("gcc", "section53"), ("gcc", "aligned"), ("g++", "handlers")]
    {
        let program = Program::new(compiler, name).flags(&["-O1"]);
        program.under(&["valgrind", "--quiet", "--error-exitcode=9", "--exit-on-first-error=yes"]).check();
    }
}

/// gcc takes the flags of the addition that makes a thread-local's address, and GNU ld replaces the addition by a
/// `lea`, which sets none: checks of such addresses for null report what is not there.
pub(crate) const NO_NULL: &str = "-fno-sanitize=null";

/// The archive is not instrumented; it finds the sanitizers at run time.
#[test]
fn sanitizers_follow_the_switches() {
    if quick_run("programs under sanitizers") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let blocks: &[&str] = if compiler == "clang" { &["-fblocks"] } else { &[] };
        for sanitizer in ["-fsanitize=address,undefined", "-fsanitize=thread"] {
            // ThreadSanitizer has room for 8128 fibers; the nest is larger.
            let names: &[&str] = match (compiler, sanitizer) {
                ("gcc", "-fsanitize=thread") => &["order", "section53", "edges"],
                ("gcc", _) => &["order", "sync", "section53", "ipc", "io", "nest", "scope", "converted"],
                (_, "-fsanitize=thread") => &["order", "section53", "edges"],
                (_, _) => &["section53", "nest", "scope", "converted"],
            };
            for name in names {
                let flags = ["-O1", sanitizer, "-fno-sanitize-recover=all", NO_NULL];
                let program = Program::new(compiler, name).flags(&flags).flags(blocks);
                program.environment("ASAN_OPTIONS", "detect_stack_use_after_return=1").check();
            }
            let cpp = if compiler == "gcc" { "g++" } else { "clang++" };
            let flags = ["-O1", "-std=c++17", sanitizer, "-fno-sanitize-recover=all", NO_NULL];
            Program::new(cpp, "handlers").flags(&flags).check();
            if sanitizer.contains("address") {
                Program::new(cpp, "guard").flags(&flags).check();
            }
        }
    }
}

/// Two threads, each with tasks, over channels; and wakes from another thread: every store of the library is watched.
#[test]
fn threads_race_nowhere() {
    if quick_run("programs under ThreadSanitizer") {
        return;
    }
    for (name, arguments) in [("ipc", ["threads"]), ("remote", [""])] {
        // Without the calls at the beginnings and ends of functions: they assume that a function ends on the stack on
        // which it began, and the library's own do not.
        let flags = ["-O1", "-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0"];
        let program = Program::new("clang", name).flags(&flags).with_sources("x86_64");
        let Some(output) = program.output(&arguments) else { return };
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{name}: {} {complaints}", output.status);
    }
}

/// The debugger's script finds every task, whatever it does and however it left its registers.
#[test]
fn gdb_lists_the_tasks() {
    if quick_run("a program under gdb") || tool(&["gdb"]).is_none() {
        return;
    }
    let script = crate::build::crate_folder().join("gdb/quaject-ac.py");
    let source = format!("source {}", script.display());
    let commands = [source.as_str(), "break stop_here", "run", "qj-tasks", "qj-task 1", "continue"];
    let mut runner = vec!["gdb", "-batch", "-nx"];
    runner.extend(commands.iter().flat_map(|command| ["-ex", command]));
    let expected = [
        "  root  called    in main  root",
        "     1  waits     in waits_for_semaphore  patient",
        "     2  runnable  in yields_inline",
        "     3  runnable  in yields_once",
        "     4  waits     in waits_for_its_block",
        "     5  waits     in waits_for_semaphore  patient",
        "     6  called    in starts_one_that_runs",
        "     7  runs      in stop_here",
        "in waits_for_semaphore () at ",
        "exited normally]",
    ];
    // In a trace all contexts are where the library itself looks for them.
    for (compiler, trace) in [("gcc", ""), ("clang", ""), ("gcc", "/dev/null")] {
        let program =
            Program::new(compiler, "debugged").flags(&["-O2"]).under(&runner).environment("QJ_AC_TRACE", trace);
        let Some(output) = program.output(&[]) else { continue };
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        for line in expected {
            assert!(text.contains(line), "{compiler} {trace}: gdb does not print {line:?}:\n{text}{errors}");
        }
    }
}

/// A block of FINISH_BEGIN is no argument of a macro: a debugger stops at each of its lines, in order.
#[test]
fn gdb_steps_through_a_block_line_by_line() {
    if quick_run("a program under gdb") || tool(&["gdb"]).is_none() {
        return;
    }
    let commands = std::iter::once("break body").chain(["run"]).chain(["next"; 12]);
    let mut runner = vec!["gdb", "-batch", "-nx"];
    runner.extend(commands.flat_map(|command| ["-ex", command]));
    for compiler in ["gcc", "clang"] {
        let program = Program::new(compiler, "stepped").flags(&["-O0"]).under(&runner);
        let Some(output) = program.output(&[]) else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let mut seen: Vec<u32> = Vec::new();
        for mark in text.split("/* step ").skip(1) {
            let step = mark.split(' ').next().and_then(|number| number.parse().ok()).expect("`/* step N */`");
            // The clean-up at the end belongs to the line of the beginning.
            if !seen.contains(&step) {
                seen.push(step);
            }
        }
        assert_eq!(seen, (1..=11).collect::<Vec<_>>(), "{compiler}: {text}");
    }
}

/// What orders threads are the messages between them, which ThreadSanitizer is shown; and a race is still reported.
#[test]
fn messages_order_threads_for_thread_sanitizer() {
    if quick_run("programs under ThreadSanitizer") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let program = Program::new(compiler, "edges_channel").flags(&["-O1", "-fsanitize=thread"]);
        program.check();
        let Some(output) = program.output(&["races"]) else { continue };
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("WARNING: ThreadSanitizer: data race"), "{compiler}: {text}");
    }
}

/// The trace is what Chrome and Perfetto read: an array of events, as many ends as beginnings for every task.
#[test]
fn the_trace_is_balanced() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace.json");
    let program = Program::new("gcc", "debugged").flags(&["-O2"]);
    let program = program.environment("QJ_AC_TRACE", file.to_str().expect("target folders are UTF-8"));
    let Some(output) = program.output(&[]) else { return };
    assert!(output.status.success(), "{}", output.status);
    let text = std::fs::read_to_string(&file).expect("the trace is written");
    assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"), "{text}");
    let count = |phase: &str| text.matches(&format!("\"ph\":\"{phase}\"")).count();
    assert!(count("B") > 10 && text.contains("\"name\":\"patient\""), "{text}");
    assert!(count("B") - count("E") <= 1, "{text}");
    slices_do_not_overlap(&text);
}

/// The tasks of different threads are on different lines, although their numbers are equal.
#[test]
fn the_trace_separates_threads() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("threads.json");
    let program = Program::new("gcc", "ipc").flags(&["-O2"]);
    let program = program.environment("QJ_AC_TRACE", file.to_str().expect("target folders are UTF-8"));
    let Some(output) = program.output(&["threads"]) else { return };
    assert!(output.status.success(), "{}", output.status);
    let text = std::fs::read_to_string(&file).expect("the trace is written");
    assert!(text.contains("\"name\":\"quaject-ac, thread "), "several threads have tasks");
    slices_do_not_overlap(&text);
}

/// A trace ends with the process that has begun it, though tasks go on.
#[test]
fn the_trace_ends_once() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("exit.json");
    let path = file.to_str().expect("target folders are UTF-8");
    for flags in [&["-O2"][..], &["-O1", "-fsanitize=address"]] {
        Program::new("gcc", "at_exit").flags(flags).environment("QJ_AC_TRACE", path).check();
        let Ok(text) = std::fs::read_to_string(&file) else { return };
        assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"), "{text}");
        assert_eq!(text.matches("\n]\n").count(), 1);
        slices_do_not_overlap(&text);
    }
}

/// On each line of a trace a slice ends before the next begins.
fn slices_do_not_overlap(trace: &str) {
    let mut running = std::collections::HashSet::new();
    for event in trace.lines() {
        let (Some(start), Some(end)) = (event.find("\"pid\""), event.find(",\"ts\"")) else { continue };
        let line = &event[start..end];
        let in_turn = if event.contains("\"ph\":\"B\"") { running.insert(line) } else { running.remove(line) };
        assert!(in_turn, "{event}");
    }
}
