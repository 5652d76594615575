//! Every mistake has a message that names it, and stops the process.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::build::{Program, run};
use quaject_test_support::tool;

const SIGABRT: i32 = 6;

/// The argument of tests/c/mistakes.c, and a part of its message.
const MISTAKES: &[(&str, &str)] = &[
    ("outside", "ASYNC outside of a DO_FINISH block"),
    ("outside-after", "ASYNC outside of a DO_FINISH block"),
    ("end-twice", "a DO_FINISH block ended twice, or in a task that did not open it"),
    ("end-in-wrong-order", "a DO_FINISH block ended while a block inside of it is still open"),
    ("end-in-wrong-task", "a DO_FINISH block ended while a block inside of it is still open"),
    ("left-open", "task 1 (without a name) ended inside a DO_FINISH block that it opened and did not close"),
    ("left-open-after-a-wait", "task 1 (without a name) ended inside a DO_FINISH block"),
    ("overflow", "stack overflow in task 1 (digger), in "),
    ("overflow-after-a-wait", "its stack has 60 KiB; raise `stack_bytes` or QJ_AC_STACK_KIB"),
    ("overflow-after-a-fault", "stack overflow in task 1 (digger), in "),
    ("overflow-by-a-buffer", "stack overflow in task 2 (without a name), in "),
    ("deadlock", "deadlock: every task waits (2 of them)"),
    ("deadlock-semaphore", "deadlock: every task waits (1 of them)"),
    ("deadlock-alone", "deadlock: the thread waits outside of all tasks, it has no task, and no timer"),
    (
        "yield-to-elsewhere",
        "a yield: task 1 (without a name) belongs to another thread; other threads may only schedule it",
    ),
    ("id-elsewhere", "qj_ac_id_set(): task 1 (without a name) belongs to another thread"),
    ("cancel-elsewhere", "CANCEL of a DO_FINISH block that is another thread's"),
    ("deadline-elsewhere", "a deadline of a DO_FINISH block that is another thread's"),
    ("semaphore-elsewhere", "what a task waits for was used by a thread that is not its own: task 2 (without a name)"),
    ("jump-sleep", "task 2 (without a name) was left by longjmp"),
    ("jump-semaphore", "task 2 (without a name) was left by longjmp"),
    ("jump-async", "task 2 (without a name) was left by longjmp"),
    ("jump-yield-to", "task 2 (without a name) was left by longjmp"),
    ("jump-return", "task 3 (without a name) was left by longjmp"),
    ("jump-end", "task 2 (without a name) was left by longjmp"),
    ("schedule-twice", "task 1 (without a name) was scheduled twice"),
    ("schedule-running", "task 0 (chief) was scheduled, but it is not suspended"),
    ("schedule-at-the-end", "was scheduled, but it waits for the end of a DO_FINISH block"),
    ("schedule-ended", "was scheduled, but it is not suspended"),
    ("lock-twice", "a task acquires a lock that it holds already"),
    ("release-what-is-not-held", "a task releases a lock that it does not hold"),
    ("receive-twice", "two tasks wait for requests of one channel"),
    ("receive-next-to-a-group", "two tasks wait for requests of one channel"),
    ("stack-bytes", "`stack_bytes` is 4611686018427387904; it may be at most 1099511627776"),
    ("thread-ends-in-a-task", "a thread ended in task 1 (without a name): it and the others would never end"),
    ("thread-ends-in-a-block", "a thread ended inside a DO_FINISH block: its tasks would never end"),
    ("group-twice", "an item is added to a group that it is in already"),
    ("stop-inside", "the thread's tasks are stopped inside a DO_FINISH block"),
    ("stacks-at-most", "out of stacks: 100 tasks wait, and `max_stacks` allows no more"),
    ("memory", "out of memory: no stack for another task, "),
    #[cfg(target_arch = "x86_64")]
    ("shadow-stack", "this thread has a shadow stack, and tasks return in another order than they were called; start "),
];

#[test]
fn mistakes_are_named_and_stop_the_process() {
    let Some(program) = Program::new("gcc", "mistakes").flags(&["-O1", "-Wno-infinite-recursion"]).build() else {
        return;
    };
    let fails = |mistake: &str, message: &str, variable: Option<(&str, &str)>| {
        let output = Command::new(&program).arg(mistake).envs(variable).output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.starts_with("quaject-ac: ") && text.contains(message), "{mistake}: {text}");
        assert_eq!(output.status.signal(), Some(SIGABRT), "{mistake}: {}", output.status);
    };
    for (mistake, message) in MISTAKES {
        fails(mistake, message, None);
    }
    // Optimised programs have no time for this question, but under the tools.
    fails("yield-direct-elsewhere", "a direct yield: task 1 ", Some(("QJ_AC_TRACE", "/dev/null")));
    if let Some(debugged) = Program::new("clang", "mistakes").flags(&["-O0", "-Wno-infinite-recursion"]).build() {
        let output = Command::new(&debugged).arg("yield-direct-elsewhere").output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.starts_with("quaject-ac: a direct yield: task 1 (without a name) belongs to another"), "{text}");
    }
    fails("stack-size", "QJ_AC_STACK_KIB is `x`; it must be a number of KiB", Some(("QJ_AC_STACK_KIB", "x")));
}

/// Where the kernel cannot install guards in page tables, its limit of mappings is the limit of tasks; the message
/// names the sysctl.
#[test]
fn too_many_guards_name_the_sysctl() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("Linux has the file");
    let limit: u64 = limit.trim().parse().expect("a number");
    if limit > 200_000 {
        return;
    }
    let program = Program::new("gcc", "mistakes").flags(&["-O1", "-Wno-infinite-recursion"]);
    let Some(output) = program.environment("QJ_AC_GUARD", "mapping").output(&["mappings"]) else { return };
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = format!("this kernel allows {limit} mappings, and a guarded stack takes two; raise it: sysctl -w ");
    assert!(text.contains(&expected), "{text}");
}

/// The numbers of a thread are many, and one too many is a mistake like the others.
#[test]
fn numbers_run_out_by_name() {
    let program = Program::new("gcc", "mistakes").flags(&["-O1", "-Wno-infinite-recursion"]);
    let Some(output) = program.output(&["ids"]) else { return };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.starts_with("all 65535 given\nquaject-ac: out of task numbers: all 65535 of this thread are in use"),
        "{text}"
    );
    assert_eq!(output.status.signal(), Some(SIGABRT), "{}", output.status);
}

/// What exhausted.c replaces by functions that may fail.
const WRAPPED: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "aligned_alloc",
    "free",
    "mmap",
    "munmap",
    "memfd_create",
    "eventfd",
    "epoll_create1",
];

/// Every request for memory or a descriptor fails once, one run each. The program waits, gets the documented error and
/// goes on, or does without; it uses nothing that it did not get, and returns what it got.
#[test]
fn no_request_for_memory_is_taken_for_granted() {
    let wraps = WRAPPED.iter().map(|function| format!("-Wl,--wrap={function}")).collect::<Vec<_>>();
    let flags = wraps.iter().map(String::as_str).chain(["-O1"]).collect::<Vec<_>>();
    let Some(program) = Program::new("gcc", "exhausted").flags(&flags).build() else { return };
    // The part, what serves its I/O, and how many requests it makes at least.
    for (part, backend, least) in
        [("channel", None, 11), ("io", Some("epoll"), 13), ("io", None, 11), ("numbers", None, 6)]
    {
        let run = |failing: &str| {
            let mut command = Command::new(&program);
            command.args([part, failing]).envs(backend.map(|backend| ("QJ_AC_IO", backend)));
            command.output().expect("the program starts")
        };
        let whole = run("-1");
        let text = String::from_utf8_lossy(&whole.stdout);
        let requests = text.strip_suffix(" requests, 0 refused\n").and_then(|count| count.parse::<u32>().ok());
        let requests = requests.unwrap_or_else(|| panic!("{part}: {text}{}", String::from_utf8_lossy(&whole.stderr)));
        assert!(requests >= least, "{part} makes {requests} requests");
        for failing in 0..requests {
            let output = run(&failing.to_string());
            let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{part}, request {failing}: {} {said}{complaint}", output.status);
        }
    }
}

/// No program that contains our objects is marked for shadow stacks, however its own were compiled.
#[test]
#[cfg(target_arch = "x86_64")]
fn no_program_is_marked_for_shadow_stacks() {
    if tool(&["readelf"]).is_none() {
        return;
    }
    let Some(program) = Program::new("gcc", "nest").flags(&["-O2", "-fcf-protection=full"]).build() else { return };
    let notes = run("readelf", &["-nW", program.to_str().expect("target folders are UTF-8")]);
    assert!(!notes.contains("SHSTK"), "{notes}");
}
