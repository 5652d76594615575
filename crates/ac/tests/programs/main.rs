//! The C and C++ programs of tests/c, compiled as users compile them, with their expected output next to them; the
//! mistakes and their messages; what the objects may not ask for; what the tools say. Each test is a table.

mod budgets;
mod build;
mod machines;
mod mistakes;
mod servers;

use build::{Program, library, run};
use quaject_test_support::{Effort, tool};

const C: &[&str] = &[
    "nest",
    "order",
    "sync",
    "figure1",
    "section53",
    "remote",
    "words",
    "converted",
    "scope",
    "few_stacks",
    "failing",
    "thc_sync",
    "reach",
    "aligned",
    "ended",
    "room",
    "numbers",
    "jumps",
    "punctual",
];
const LEVELS: &[&str] = &["-O0", "-O2"];

/// Every program, both compilers, two levels: the same output.
#[test]
fn programs_print_what_they_should() {
    for compiler in ["gcc", "clang"] {
        for level in Effort::wanted().pick(&LEVELS[1..], LEVELS, LEVELS) {
            for name in C {
                let mut program = Program::new(compiler, name).flags(&[level, "-std=gnu11"]);
                if compiler == "clang" {
                    program =
                        program.flags(&["-fblocks", "-Wno-deprecated-non-prototype", "-Wno-unknown-warning-option"]);
                }
                program.check();
            }
        }
    }
}

/// Options that change frames: the copied frame of a body and the switches must not care.
#[test]
fn frames_of_every_shape() {
    let shapes: &[&[&str]] = &[
        &["-O3", "-march=native"],
        &["-Os", "-fstack-protector-all", "-fno-omit-frame-pointer"],
        &["-O2", "-DQJ_AC_EAGER"],
        &["-O2", "-DQJ_AC_NO_INLINE_SWITCH", "-fcf-protection"],
        &["-O2", "-fPIC", "-fno-plt"],
    ];
    // glibc's check of jumps, which must not take another stack for a frame that has ended.
    Program::new("gcc", "jumps").flags(&["-O2", "-D_FORTIFY_SOURCE=2"]).check();
    Program::new("clang", "jumps").flags(&["-O2", "-D_FORTIFY_SOURCE=2"]).check();
    let shapes = Effort::wanted().pick(&shapes[..1], shapes, shapes);
    for flags in shapes {
        for name in ["nest", "section53", "reach", "aligned"] {
            Program::new("gcc", name).flags(flags).check();
            Program::new("clang", name).flags(flags).flags(&["-fblocks"]).check();
        }
    }
}

#[test]
fn cpp_tasks_and_exceptions() {
    for compiler in ["g++", "clang++"] {
        for level in Effort::wanted().pick(&LEVELS[1..], LEVELS, LEVELS) {
            Program::new(compiler, "exceptions").flags(&[level, "-std=c++17"]).check();
            Program::new(compiler, "handlers").flags(&[level, "-std=c++17"]).check();
            Program::new(compiler, "guard").flags(&[level, "-std=c++17"]).check();
        }
    }
}

#[test]
fn backtraces_end_where_they_should() {
    let flags = ["-O2", "-rdynamic", "-fno-optimize-sibling-calls"];
    Program::new("gcc", "backtrace").flags(&flags).check();
    Program::new("clang", "backtrace").flags(&flags).check();
}

/// The strictest options a user may have on: the headers are quiet under all of them.
#[test]
fn headers_are_quiet() {
    let source = "#include <quaject/ac.h>\n#include <quaject/thc.h>\n#include <quaject/thc_ipc.h>\n\
                  static void f(long a) { (void)a; }\n\
                  int g(void);\nint g(void) { DO_FINISH({ DO_FINISH({ ASYNC_CALL(f, 1L); }); }); return 0; }\n\
                  int h(void);\nint h(void) { FINISH_BEGIN(a) FINISH_BEGIN_NX(b) ASYNC_CALL(f, 1); FINISH_END(b) FINISH_END(a) return 0; }\n";
    for (compiler, language) in [("gcc", "c"), ("clang", "c"), ("g++", "c++"), ("clang++", "c++")] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let standard = if language == "c" { "-std=c11" } else { "-std=c++17" };
        let flags = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only", standard];
        let result = build::compile_text(compiler, language, source, &flags);
        assert!(result.status.success(), "{compiler}: {}", String::from_utf8_lossy(&result.stderr));
    }
}

/// What would need an executable stack does not compile, and the message says what to write instead.
#[test]
fn a_capturing_body_is_refused_by_name() {
    let source = "#include <quaject/ac.h>\nvoid g(int *);\n\
                  void f(int n) { DO_FINISH({ ASYNC(g(&n);); }); }\n";
    let cases: [(&str, &[&str], &str); 2] = [
        ("gcc", &["-O2"], "ASYNC_body_uses_local_variables__write_ASYNC_CALL_function_arguments"),
        ("clang", &["-O2"], "otherwise write ASYNC_CALL(function, arguments...)"),
    ];
    for (compiler, flags, expected) in cases {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let result = build::compile_text(compiler, "c", source, &[flags, &["-c"]].concat());
        let text = String::from_utf8_lossy(&result.stderr);
        assert!(!result.status.success(), "{compiler} accepts a capturing body");
        assert!(text.contains(expected), "{compiler}: {text}");
    }
}

/// A variable of the braces of DO_FINISH ends before its tasks: gcc says so, clang keeps it.
#[test]
fn a_variable_of_the_braces_is_reported_or_kept() {
    let trap = "DO_FINISH({ int x = 1; ASYNC_CALL(show, &x); x = 2; });";
    let before = "int x = 1; DO_FINISH({ ASYNC_CALL(show, &x); x = 2; });";
    for (body, expected) in [(trap, true), (before, false)] {
        let Some(compiler) = tool(&["gcc"]) else { break };
        let source = format!("#include <quaject/ac.h>\nvoid show(int *);\nvoid f(void) {{ {body} }}\n");
        for level in LEVELS {
            let result = build::compile_text(compiler, "c", &source, &["-c", level]);
            let text = String::from_utf8_lossy(&result.stderr);
            assert!(result.status.success(), "{text}");
            let name = "_of_a_task__declare_its_target_before_DO_FINISH";
            assert_eq!(
                text.contains(name) && text.contains("‘x’") || text.contains("'x'"),
                expected,
                "{level}: {text}"
            );
        }
    }
    Program::new("clang", "braces").flags(&["-O2"]).check();
}

/// What ASYNC_CALL cannot carry to another stack does not compile.
#[test]
fn what_does_not_travel_is_refused_by_name() {
    let cases = [
        ("ASYNC_CALL(pair, 1, 2);", None),
        ("ASYNC_CALL(nothing);", None),
        ("ASYNC_CALL(pair, 2.0, 2);", None),
        ("ASYNC_CALL(server, 1L);", None),
        ("ASYNC_CALL(pair, two, 2);", Some("incompatible type")),
        ("ASYNC_CALL(takes, three);", Some("ASYNC_CALL passes arguments of at most 16 bytes")),
        ("ASYNC_CALL(large, 1);", Some("ASYNC_CALL of a function that returns a large structure")),
        ("ASYNC_CALL(longest, 1);", Some("ASYNC_CALL of a function that returns a large structure")),
        ("ASYNC_CALL(seven, 1, 2, 3, 4, 5, 6, 7);", Some("ASYNC_CALL_takes_no_more_than_six_arguments")),
    ];
    for compiler in ["gcc", "clang"] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        // gcc would take what follows for unreachable.
        let noreturn = ("ASYNC_CALL(server, 1);", Some("ASYNC_CALL of a noreturn function: cast every argument"));
        for (line, expected) in cases.into_iter().chain((compiler == "gcc").then_some(noreturn)) {
            let source = format!(
                "#include <quaject/ac.h>\nstruct two {{ long a, b; }};\nstruct three {{ long a, b, c; }};\n\
                 struct two pair(long, long);\nvoid nothing(void);\nstatic struct two two;\nstatic struct three three;\nvoid takes(struct three);\nstruct three large(long);\n\
                 _Noreturn void server(long);\nlong double longest(long);\nvoid uses(void) {{ (void)two, (void)three; }}\n\
                 void seven(int, int, int, int, int, int, int);\nvoid f(void) {{ DO_FINISH({{ {line} }}); }}\n"
            );
            let result = build::compile_text(compiler, "c", &source, &["-Wall", "-Wextra", "-fsyntax-only"]);
            let text = String::from_utf8_lossy(&result.stderr);
            match expected {
                None => assert!(result.status.success() && text.is_empty(), "{compiler}: {line}: {text}"),
                Some(name) => {
                    assert!(!result.status.success(), "{compiler} accepts {line}");
                    assert!(text.contains(name), "{compiler}: {line}: {text}");
                }
            }
        }
    }
}

/// A body without captures is a nested function, and asks for nothing.
#[test]
fn a_body_without_captures_compiles_with_gcc() {
    let Some(compiler) = tool(&["gcc"]) else { return };
    let source = "#include <quaject/ac.h>\nvoid g(int);\nvoid f(void) { DO_FINISH({ ASYNC(g(1);); }); }\n";
    let result = build::compile_text(compiler, "c", source, &["-O2", "-c", "-Wall", "-Wextra", "-Werror"]);
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
}

/// Every object of the library, and every program linked with it, has a stack that is not executable.
#[test]
fn no_object_asks_for_an_executable_stack() {
    if tool(&["readelf"]).is_none() {
        return;
    }
    let sections = run("readelf", &["-SW", library().to_str().expect("target folders are UTF-8")]);
    let objects = sections.matches("File: ").count();
    let notes = sections.lines().filter(|line| line.contains(".note.GNU-stack")).collect::<Vec<_>>();
    assert!(objects > 5, "{objects} objects");
    assert_eq!(notes.len(), objects, "an object says nothing about its stack");
    assert!(notes.iter().all(|line| !line.contains(" X ") && !line.contains("AX")), "{notes:?}");
    for name in C {
        let Some(program) = Program::new("gcc", name).flags(&["-O2"]).build() else { return };
        let headers = run("readelf", &["-lW", program.to_str().expect("target folders are UTF-8")]);
        let line = headers.lines().find(|line| line.contains("GNU_STACK")).expect("the linker writes GNU_STACK");
        assert!(line.contains(" RW ") && !line.contains("RWE"), "{name}: {line}");
    }
}

/// A program may use every name that does not begin as ours do.
#[test]
fn the_library_keeps_to_its_names() {
    if tool(&["nm"]).is_none() {
        return;
    }
    let symbols = run("nm", &["-g", "--defined-only", library().to_str().expect("target folders are UTF-8")]);
    let mut strangers: Vec<&str> = Vec::new();
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Weak ones give way to the program's.
        if let [_, kind, name] = words[..]
            && !name.starts_with("qj_ac_")
            && !["W", "V"].contains(&kind)
        {
            strangers.push(name);
        }
    }
    assert!(strangers.is_empty(), "{strangers:?}");
}

/// 4.2 KiB for a task that waits; a million of them where there is memory, guarded each.
#[test]
fn a_waiting_task_costs_a_page() {
    let Some(program) = Program::new("gcc", "memory").flags(&["-O2"]).build() else { return };
    let tasks = Effort::wanted().pick("5000", "20000", "1000000");
    let output = run(program.to_str().expect("target folders are UTF-8"), &[tasks]);
    let mut words = output.split_whitespace();
    assert_eq!(words.next(), Some(tasks));
    let bytes: u64 = words.nth(1).and_then(|word| word.parse().ok()).expect("`N tasks, B bytes each`");
    assert!((4000..=4300).contains(&bytes), "{output}");
}

/// Channels between threads and processes, as installed.
#[test]
fn channels_find_their_tasks() {
    Program::new("gcc", "ipc").flags(&["-O2"]).check();
    Program::new("clang", "ipc").flags(&["-O2"]).check();
    Program::new("gcc", "full").flags(&["-O2"]).check();
}

/// A sandbox may forbid what channels sleep by: with EPERM or, as an old kernel, with ENOSYS.
#[test]
fn channels_sleep_in_sandboxes() {
    for error in ["1", "38"] {
        let Some(output) = Program::new("gcc", "no_waitv").flags(&["-O2"]).output(&[error]) else { return };
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "error {error}: {} {complaints}", output.status);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_waker_leaves_a_thread_that_ends_alone() {
    Program::new("gcc", "waker").flags(&["-O2"]).check();
}

/// A peer may write anything anywhere into the memory it shares, at any time.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_malicious_peer_is_survived() {
    let rounds = Effort::wanted().pick("50", "1000", "100000");
    let flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", machines::NO_NULL];
    let Some(output) = Program::new("gcc", "malicious").flags(&flags).with_sources("x86_64").output(&[rounds]) else {
        return;
    };
    assert!(output.status.success(), "{} {}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// The server of a key-value store, then its client, dies before every store of the protocol.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_peer_may_die_at_every_store() {
    let steps = build::crate_folder().join("tests/c/step.h");
    let steps = steps.to_str().expect("the repository's path is UTF-8");
    Program::new("gcc", "ipc").flags(&["-O2", "-include", steps]).with_sources("x86_64").check();
}

/// The memory of free stacks goes back to the system, when asked for and after a while.
#[test]
fn free_stacks_are_given_back() {
    Program::new("gcc", "given_back").flags(&["-O2"]).check();
}

#[test]
fn a_contested_connection_stops_no_thread() {
    let program = Program::new("gcc", "contested").flags(&["-O2", "-Wl,--wrap=accept4"]);
    program.environment("QJ_AC_IO", "epoll").check();
}

#[test]
fn rounding_modes_are_tasks_own_if_asked_for() {
    for compiler in ["gcc", "clang"] {
        let program = Program::new(compiler, "rounding").flags(&["-O2", "-frounding-math"]);
        program.environment("QJ_AC_FLOAT", "own").check();
    }
    let Some(output) = Program::new("gcc", "rounding").flags(&["-O2", "-frounding-math"]).output(&["option"]) else {
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A write without a reader raises a signal only where no call can avoid it.
#[test]
fn writes_to_sockets_raise_no_signal() {
    for backend in ["io_uring", "epoll"] {
        Program::new("gcc", "sigpipe").flags(&["-O2"]).environment("QJ_AC_IO", backend).check();
    }
}

/// `qj_ac_close` under calls in progress.
#[test]
fn waits_for_closed_descriptors_end() {
    for backend in ["io_uring", "epoll"] {
        Program::new("gcc", "closed").flags(&["-O2"]).environment("QJ_AC_IO", backend).check();
    }
}

/// io_uring and epoll, and with reads and writes cut short at random.
#[test]
fn input_and_output_of_both_kinds() {
    let Some(path) = Program::new("gcc", "io").flags(&["-O2"]).build() else { return };
    let expected = std::fs::read_to_string(build::crate_folder().join("tests/c/io.out")).expect("it lies there");
    for (backend, faults) in [("io_uring", None), ("epoll", None), ("io_uring", Some("3")), ("epoll", Some("5"))] {
        let mut command = std::process::Command::new(&path);
        command.env("QJ_AC_IO", backend).envs(faults.map(|seed| ("QJ_AC_IO_FAULTS", seed)));
        let output = command.output().expect("the program starts");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{backend} {faults:?}: {} {complaints}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{backend} {faults:?}");
    }
}
