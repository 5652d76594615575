//! How processes become code: what is fused, what is excluded and why, and that faults name the processes as written.

mod support;

use quaject_test_support::{HANG_TIMEOUT, quick_run};
use std::process::Output;
use support::Folder;

const FORMS: [&str; 3] = ["interp", "c", "jit"];

/// The report on a fault, without the line of the source and its caret.
fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let said = said.find("fault[").map_or("", |start| &said[start..]);
    let is_source = |line: &str| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
    said.lines().filter(|line| !is_source(line)).fold(String::new(), |text, line| text + line + "\n")
}

/// Programs that fault, and their input.
const FAULTS: [(&str, &str); 15] = [
    // All wait for each other.
    (
        "channel a(int);\nchannel b(int);\nprocess P { in(a, $x); out(b, x); }\nprocess Q { in(b, $x); out(a, x); }\n",
        "",
    ),
    // The environment has no more messages.
    (
        "channel i(int) external out;\nchannel a(int);\nchannel o(int) external in;\n\
         process P { while { in(i, $x); out(a, x); } }\nprocess Q { while { in(a, $x); in(a, $y); out(o, x + y); } }\n",
        "1\n2\n3\n",
    ),
    // One of them waits at an idle point.
    (
        "channel i(int) external out;\nchannel a(int);\nchannel b(int);\n\
         process P { in(i, _); out(a, 1); while { idle in(b, _); } }\n\
         process Q { in(a, $x); alt { when (x > 1) in(a, _) { } when (x > 2) out(b, x) { } when (x == 1) in(a, 7) { } } }\n",
        "1\n",
    ),
    // Two groups, of which one continues for a while.
    (
        "channel a(int);\nchannel b(int);\nchannel c(int);\nchannel o(int) external in;\n\
         process P { in(a, $x); out(b, x); }\nprocess Q { in(b, $x); out(a, x); }\n\
         process R { out(c, 1); out(c, 2); }\nprocess S { while { idle in(c, $x); out(o, x); } }\n",
        "",
    ),
    (
        "channel i(int) external out;\nchannel a(int);\nprocess P { while { in(i, $x); out(a, x); } }\n\
         process Q { while {\n  in(a, $x);\n  assert(x < 2);\n} }\n",
        "1\n2\n",
    ),
    (
        "channel i(int) external out;\nchannel a(int);\nchannel o(int) external in;\n\
         process P { while { in(i, $x); out(a, 8 / x); } }\nprocess Q { while { in(a, $x); out(o, x); } }\n",
        "0\n",
    ),
    // In a function that one of them calls.
    (
        "fn half(x: int) -> int { return 8 / x; }\nchannel i(int) external out;\nchannel a(int);\n\
         process P { in(i, $x); out(a, half(x)); }\nprocess Q { in(a, $x); assert(x > 0); }\n",
        "0\n",
    ),
    // The locations where a message is made and where it is matched; the report names the channel.
    (
        "channel i(int) external out;\nchannel a(int);\nprocess P { in(i, $x); alt { out(a, 8 / x) { } } }\n\
         process Q { in(a, _); }\n",
        "0\n",
    ),
    (
        "channel i(int) external out;\nchannel a(int);\nprocess P { in(i, $x); out(a, x); }\n\
         process Q { in(a, $x if 8 / x > 1); }\n",
        "0\n",
    ),
    // Replicas, by their numbers.
    (
        "channel i(int) external out;\nchannel a(pid(W), int);\n\
         process P { while { in(i, $x); out(a, @W[x], x); } }\nprocess W[3] { while {\n  in(a, @, $x);\n  assert(x != 2);\n} }\n",
        "0\n1\n2\n",
    ),
    (
        "fn half(x: int) -> int { return 8 / x; }\nchannel i(int) external out;\nchannel a(pid(W), int);\n\
         process P { while { in(i, $x); out(a, @W[x], 1 - x); } }\n\
         process W[2] { var n = 0; while { in(a, @, $x); n += half(x); } }\n",
        "0\n1\n",
    ),
    // In a function that both call: by the second, where a message is matched, and where one is made.
    (
        "fn half(x: int) -> int { return 8 / x; }\nchannel i(int) external out;\nchannel a(int);\n\
         process P { in(i, $x); out(a, half(x)); }\nprocess Q { in(a, $x); assert(half(x) > 0); }\n",
        "9\n",
    ),
    (
        "fn half(x: int) -> int { return 8 / x; }\nchannel i(int) external out;\nchannel a(int);\nchannel b(int);\n\
         process P { in(i, $x if half(x) > 0); out(a, x); }\nprocess Q { in(a, $x if half(x - 1) > 0); out(b, x); }\n\
         process R { in(b, $x); }\n",
        "1\n",
    ),
    (
        "fn half(x: int) -> int { return 8 / x; }\nchannel i(int) external out;\nchannel a(int);\nchannel b(int);\n\
         process P { in(i, $x if half(x) > 0); out(a, x); }\nprocess Q { in(a, $x if half(x - 1) > 0); out(b, x); }\n\
         process R { in(b, $x); }\n",
        "0\n",
    ),
    (
        "fn half(x: int) -> int { return 8 / x; }\nfn both(x: int) -> int { return half(x) + half(x - 1); }\n\
         channel i(int) external out;\nchannel a(int);\nchannel b(int);\n\
         process P { in(i, $x); alt { out(a, both(x)) { } } }\n\
         process Q { in(a, $x); alt { out(b, both(x - 12)) { } } }\nprocess R { in(b, _); }\n",
        "2\n",
    ),
];

#[test]
fn faults_of_fused_processes_name_the_processes() {
    for (program, input) in FAULTS {
        let folder = Folder::with(&[("a.esp", program)]);
        let run = |arguments: &str| folder.qj(arguments).stdin(input).output().expect("qj runs");
        let plain = run("run a.esp");
        for mode in ["direct", "automata", "auto"] {
            for engine in FORMS {
                let fused = run(&format!("run a.esp --mode {mode} --engine {engine}"));
                assert_eq!(said(&fused), said(&plain), "{engine} {mode}: {program}");
                assert_eq!(fused.stdout, plain.stdout, "{engine} {mode}: {program}");
            }
        }
        folder.qj("build --emit exe --mode automata a.esp -o a.out").assert().success();
        let executable = snapbox::cmd::Command::new(folder.path("a.out")).stdin(input);
        let executable = executable.output().expect("the executable runs");
        assert_eq!(said(&executable), said(&plain), "executable: {program}");
        assert_eq!(executable.stdout, plain.stdout, "executable: {program}");
    }
}

/// Receivers that never wait again for their sender; all end with status 7 if the sender continues.
const RECEIVERS_THAT_GO_ON: [(&str, &str); 6] = [
    ("it yields", "channel c(int);\nprocess S { out(c, 1); exit(7); }\nprocess R { in(c, _); while { yield; } }\n"),
    (
        "it sends by a channel with two writers",
        "channel c(int);\nchannel g(int);\nprocess S { out(c, 1); exit(7); }\nprocess R { in(c, _); while { out(g, 1); } }\n\
         process W { out(g, 2); }\nprocess Q { while { in(g, _); } }\n",
    ),
    (
        "it receives by a channel with two writers",
        "channel c(int);\nchannel g(int);\nprocess S { out(c, 1); exit(7); }\nprocess R { in(c, _); while { in(g, _); } }\n\
         process W { while { out(g, 2); } }\nprocess Q { while { out(g, 3); } }\n",
    ),
    (
        "it sends, and is gone back to",
        "channel c(int);\nchannel g(int);\nprocess S { out(c, 1); exit(7); }\nprocess R { in(c, _); while { out(g, 1); } }\n\
         process Q { while { in(g, _); } }\n",
    ),
    (
        "it meets a writer that waits",
        "channel c(int);\nchannel g(int);\nprocess Q { while { out(g, 1); } }\nprocess S { out(c, 1); exit(7); }\n\
         process R { in(c, _); while { in(g, _); } }\n",
    ),
    (
        "it has called others, which go on too",
        "channel c(int);\nchannel d(int);\nprocess S { out(c, 1); exit(7); }\nprocess R { in(c, _); out(d, 1); while { yield; } }\n\
         process Q { in(d, _); while { yield; } }\n",
    ),
];

#[test]
fn direct_hand_off_does_not_starve_the_sender() {
    for (what, program) in RECEIVERS_THAT_GO_ON {
        let folder = Folder::with(&[("a.esp", program)]);
        for engine in FORMS {
            // A starving process would wait forever.
            let run = folder.qj(&format!("run a.esp --mode direct --engine {engine}")).timeout(HANG_TIMEOUT);
            let run = run.output().expect("qj runs");
            assert_eq!(run.status.code(), Some(7), "{what}, {engine}: {}", String::from_utf8_lossy(&run.stderr));
        }
    }
}

#[test]
fn the_report_says_which_channels_are_handed_over() {
    let program = "channel i(int) external out;\nchannel c(int);\nchannel g(int);\nchannel o(int) external in;\n\
        process S { while { in(i, $x); out(c, x); } }\nprocess R { while { in(c, $x); out(g, x); } }\n\
        process W { out(g, 2); }\nprocess Q { while { in(g, $x); out(o, x); } }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    let build = folder.qj("build a.esp --mode direct --emit c --report").output().expect("qj runs");
    let said = String::from_utf8_lossy(&build.stdout);
    assert!(said.contains("  c: direct\n  g: through the ready list, as several processes write it\n"), "{said}");
}

const PAIRS: &str = "channel i(int) external out;\nchannel c(int);\nchannel o(int) external in;\n\
    process read { while { in(i, $n); out(c, n); } }\n\
    process pair { while { in(c, $a); in(c, $b); out(o, a + b); } }\n\
    fastpath sums {\n  process read { statement i, c; start c; follows (i c)*; }\n\
    \x20 process pair { statement c/in@1 as first; start first; exit first; }\n}\n";

#[test]
fn auto_fuses_processes_within_the_limits() {
    let folder = Folder::with(&[("a.esp", PAIRS)]);
    for (growth, expected) in [
        ("", ["fused: read, pair: one process of ", "no fast path sums: `read` has been fused with others already"]),
        (" --growth 0", ["not fused: read, pair: more than 0 instructions", "fast path sums: read, pair: "]),
    ] {
        let report = folder.qj(&format!("build a.esp --emit c --mode auto{growth} --report -o out"));
        let report = report.output().expect("qj runs");
        let said = String::from_utf8_lossy(&report.stdout);
        assert!(expected.iter().all(|line| said.contains(line)), "{said}");
        for engine in FORMS {
            let run = folder.qj(&format!("run a.esp --mode auto{growth} --engine {engine}"));
            run.stdin("1\n2\n3\n4\n5\n6\n").assert().stdout_eq("3\n7\n11\n");
        }
    }
}

#[test]
fn auto_is_the_default_except_for_options_on_single_processes() {
    let path = "fastpath more { process read { statement i, c; start c; follows (i c)*; }\n\
        process pair { statement c/in@1 as first; start first; exit first; } }\n";
    let folder = Folder::with(&[("a.esp", PAIRS), ("more.fp", path)]);
    let auto = "mode: auto, the default\nfused: read, pair: one process of [..]\n\
        no fast path sums: `read` has been fused with others already\n";
    let paths = "mode: fastpath, because of `--fast-paths`\nfast path sums: entered [..]\n...\n";
    let process = |why: &str| format!("mode: process, as {why}\n");
    for (arguments, report) in [
        ("", auto),
        ("--engine c", auto),
        ("--growth 0", "[..]\nnot fused: read, pair: more than 0 instructions\nfast path sums: entered [..]\n...\n"),
        ("--fast-paths more.fp", paths),
        ("--engine interp", &process("`--engine interp` is the reference")),
        ("--seed 1", &process("`--seed` schedules the processes as written")),
        ("--record r.txt", &process("`--record` records the processes as written")),
        ("--mode process", &process("requested")),
    ] {
        let run = folder.qj(&format!("run a.esp --report {arguments}")).stdin("1\n2\n3\n4\n").assert().success();
        run.stdout_eq("3\n7\n").stderr_eq(report);
    }
    for form in ["c", "exe"] {
        let build = folder.qj(&format!("build a.esp --emit {form} --report -o {form}.out")).assert().success();
        build.stdout_eq(format!("{auto}\n...\n"));
    }
    let text =
        |arguments: &str| folder.qj(&format!("build a.esp --emit ir {arguments}")).output().expect("qj runs").stdout;
    assert!(text("") == text("--mode process") && text("") != text("--mode auto"));
}

#[test]
fn auto_takes_fast_paths_only_if_they_are_not_observable() {
    let program = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/differential/tests/fast-paths/member_is_on_the_ready_list_while_it_waits.esp"
    ));
    let folder = Folder::with(&[("a.esp", program)]);
    let run = |arguments: &str| folder.qj(&format!("run a.esp {arguments}")).output().expect("qj runs");
    let written = run("--mode process");
    for engine in ["", "--engine c"] {
        let unasked = run(engine);
        assert_eq!((&unasked.stderr, &unasked.stdout), (&written.stderr, &written.stdout), "{engine}");
    }
    // The path makes the difference, and the report names its exits.
    assert_ne!(run("--mode fastpath").stdout, written.stdout);
    let report = String::from_utf8(run("--report").stderr).expect("text");
    assert!(
        report.contains("\nno fast path go: `hold` acts on the environment, as another process does, at "),
        "{report}"
    );
}

#[test]
fn code_size_is_limited_by_default() {
    let frame = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hdlc");
    let folder = Folder::with(&[]);
    for (file, names) in [("frame.esp", "checksum, stuff"), ("deframe.esp", "unstuff, check")] {
        let report = |options: &str| {
            let build = folder.qj(&format!("build {frame}/{file} --emit c --report {options} -o out"));
            String::from_utf8_lossy(&build.output().expect("qj runs").stdout).into_owned()
        };
        let said = report("");
        let reason = "the fused code would be much larger than the separate processes";
        assert!(said.contains(&format!("not fused: {names}: {reason}\n")), "{said}");
        let said = report("--growth 8");
        assert!(said.contains(&format!("fused: {names}: one process of ")), "{said}");
    }
    // The thresholds of the default mode are for these, also where a byte is the end of the stream.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (number, end) in (1..=4).flat_map(|number| [(number, "-1"), (number, "192")]) {
        let file = format!("{root}/bench/filters-process/esp/program{number}.esp");
        let text = std::fs::read_to_string(file)
            .expect("it is there")
            .replace("../../../examples", &format!("{root}/examples"));
        let text = text.replace("const END = -1;", &format!("const END = {end};"));
        std::fs::write(folder.path("a.esp"), text).expect("a file can be written");
        let build = folder.qj("build a.esp --emit c --report -o out");
        let said = String::from_utf8_lossy(&build.output().expect("qj runs").stdout).into_owned();
        let lines: Vec<&str> = said.lines().take(3).collect();
        assert!(
            lines[1].starts_with("fused: read, ") && lines[1].contains(", write: ") && lines[2].is_empty(),
            "{said}"
        );
    }
}

/// Programs whose output depends on the schedule, and the report on them.
const ORDERS: [(&str, &str); 8] = [
    (
        "process P { out(o, 1); out(c, 1); out(o, 2); }\nprocess Q { out(o, 3); in(c, _); out(o, 4); }\n",
        "acts on the environment, as another process does, at a.esp:4:13: the order in which processes run can be seen",
    ),
    (
        "channel p(int) external in;\nprocess P { out(o, 1); out(c, 1); }\nprocess Q { out(p, 3); in(c, _); }\n",
        "acts on the environment, as another process does, at",
    ),
    (
        "process P[3] { out(c, int(@)); }\nprocess Q { for k in 0..3 { in(c, $x); out(o, x); } }\n",
        "not fused: P, Q: `P` uses a channel that others use in the same direction",
    ),
    (
        "channel d(int);\nprocess P { out(c, 1); out(c, 2); }\nprocess R { out(d, 3); out(d, 4); }\n\
         process Q { for k in 0..4 { alt { in(c, $x) { out(o, x); } in(d, $x) { out(o, x); } } } }\n",
        "`Q` takes whichever comes first at a.esp:6:",
    ),
    (
        "process P { alt { after (1 ms) { } } out(c, 1); }\nprocess Q { in(c, $x); out(o, x); }\n",
        "`P` has an `after` at a.esp:3:",
    ),
    (
        "process P { var n = 0; while { alt { out(c, n) { break; } else { n += 1; } } } }\n\
         process Q { in(c, $x); out(o, x); }\n",
        "`P` has an `else` at a.esp:3:",
    ),
    // Whether the pool is exhausted.
    (
        "type boxT = record { n: int };\npool boxT 2;\nchannel d(boxT);\nchannel a(int);\n\
         process P { out(d, {1}); out(d, {2}); in(a, $s); out(c, s); }\n\
         process R { in(d, $x); var s = x.n; in(d, $y); s += y.n; out(a, s); }\nprocess Q { in(c, $x); out(o, x); }\n",
        "`P` allocates from a pool of which other processes may hold objects at a.esp:7:",
    ),
    // The amount of output before a fault.
    (
        "process P { for k in 0..5 { out(c, k); assert(k < 3); } }\nprocess Q { while { idle in(c, $x); out(o, x); } }\n",
        "`P` may fault, as an assertion may fail, while another process acts on the environment or may fault at a.esp:3:",
    ),
];

#[test]
fn fusion_that_changes_the_order_needs_an_option() {
    for (processes, reason) in ORDERS {
        let folder = Folder::with(&[("a.esp", &format!("channel c(int);\nchannel o(int) external in;\n{processes}"))]);
        let report = folder.qj("build a.esp --emit c --report -o out").output().expect("qj runs");
        let said = String::from_utf8_lossy(&report.stdout);
        assert!(said.contains(reason) && !said.contains("\nfused") && !said.starts_with("fused"), "{said}");
        let plain = folder.qj("run a.esp --mode process --engine interp").output().expect("qj runs");
        for engine in ["c", "jit"] {
            let run = folder.qj(&format!("run a.esp --engine {engine}")).output().expect("qj runs");
            assert_eq!((&run.stdout, run.status), (&plain.stdout, plain.status), "{engine}: {processes}");
        }
        let asked = folder.qj("build a.esp --emit c --mode automata --report -o out").output().expect("qj runs");
        let said = String::from_utf8_lossy(&asked.stdout);
        assert!(said.contains("fused: "), "{said}");
    }
}

/// Two senders and two receivers, each of which takes from its own: computations for a message that the other
/// one does not take are removed with it.
#[test]
fn messages_that_one_receiver_does_not_take_are_for_the_other() {
    let program = "channel i(pid(w), int) external out;\nchannel o(int) external in;\nchannel c(pid(r), int);\n\
        process w[2] { var bit = 0, used = 0, line = int(@); while { alt {\n\
        when (used < 2) in(i, @, $x) { used += 1; bit = x; }\n\
        when (used > 0) out(c, @r[line], bit) { used -= 1; } } } }\n\
        process r[2] { while { in(c, @, $y); out(o, y); } }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    folder
        .qj("build a.esp --emit c --mode automata --report -o out")
        .assert()
        .success()
        .stdout_eq("excluded: r: [..]\nfused: w: [..]\n...\n");
}

#[test]
fn auto_knows_that_loops_over_bytes_do_not_fault() {
    let program = "channel i(bytes[<=9]) external out;\nchannel c(int);\nchannel o(int) external in;\n\
        process P { while { in(i, $d); for k in 0..d.len { out(c, int(d[k])); } } }\n\
        process Q { while { in(c, $x); out(o, x); } }\n";
    // They can for other types, and for shorter values.
    let other = program.replace("for k in 0..d.len", "in(i, $e); for k in 0..e.len");
    let shorter = program
        .replace("out(c, int(d[k]));", "out(c, int(d[k])); d = \"\";")
        .replace("in(i, $d);", "in(i, $e); d = e;");
    let shorter = shorter.replace("process P {", "process P { var d: bytes[<=9] = \"\";");
    let folder = Folder::with(&[("a.esp", program), ("b.esp", &other), ("c.esp", &shorter)]);
    let report = |file: &str| {
        let build = folder.qj(&format!("build {file} --emit c --mode auto --report -o out")).output().expect("qj runs");
        String::from_utf8_lossy(&build.stdout).into_owned()
    };
    assert!(report("a.esp").starts_with("fused: P, Q: "), "{}", report("a.esp"));
    for file in ["b.esp", "c.esp"] {
        assert!(report(file).starts_with("not fused: P, Q: `P` may fault"), "{}", report(file));
    }
}

#[test]
fn auto_knows_that_lengths_in_their_bounds_do_not_fault() {
    let program = "channel a(u8) external out;\nchannel m(bytes[<=8]);\nchannel o(bytes[<=8]) external in;\n\
        process p { var r: #bytes[<=8] = #\"\"; while { in(a, $x); LENGTH; out(m, freeze(r)); } }\n\
        process q { while { in(m, $y); out(o, y); } }\n";
    for (length, is_fused) in [
        ("r.len = 2", true),
        ("r.len = 8", true),
        ("r.len = int(x & 7)", true),
        ("if (x < 9) r.len = int(x)", true),
        ("var n = 64 / (1 + int(x & 7)); r.len = n & 7", true),
        ("r.len = int(x)", false),
        ("if (x < 10) r.len = int(x)", false),
        ("var n = 64 / int(x & 7); r.len = n & 7", false),
    ] {
        let folder = Folder::with(&[("a.esp", &program.replace("LENGTH", length))]);
        let build = folder.qj("build a.esp --emit c --mode auto --report -o out").output().expect("qj runs");
        let report = String::from_utf8_lossy(&build.stdout).into_owned();
        assert_eq!(report.starts_with("fused: p, q: "), is_fused, "{length}: {report}");
    }
}

#[test]
fn fused_processes_observe_timeouts() {
    let program = "channel i(int) external out = \"text:-\";\nchannel c(int);\nchannel o(int) external in = \"text:-\";\n\
        process s { while { in(i, $x); out(c, x); } }\n\
        process t { var quiet = 0; while { alt { in(c, $x) { out(o, x); }\n\
        after (60 ms) { quiet += 1; out(o, 100 + quiet); if (quiet == 2) exit(0); } } } }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in FORMS {
        for (input, output) in [("", "101\n102\n"), ("1\n", "1\n101\n102\n"), ("1\n2\n", "1\n2\n101\n102\n")] {
            let run = folder.qj(&format!("run a.esp --mode automata --engine {engine}")).stdin(input);
            run.timeout(HANG_TIMEOUT).assert().success().stdout_eq(output);
        }
    }
}

#[test]
fn batches_are_made_reported_and_excluded() {
    let row = "channel i(bytes[<=100]) external out;\nchannel c(int);\nchannel o(array[64] of u8) external in;\n\
        process read { in(i, $row); for at in 0..row.len { out(c, int(row[at])); } out(c, -1); }\n\
        process write { var all: #array of u8 = #[0; 64], n: u32 = 0; \
        while { in(c, $b); if (b < 0) break; all[n & 63] = u8(b ^ 9); n += 1; } out(o, freeze(all)); }\n";
    let folder = Folder::with(&[("row.esp", row), ("pairs.esp", PAIRS)]);
    let report = |arguments: &str| {
        let build = folder.qj(&format!("build {arguments} --emit c --mode automata --report -o out"));
        String::from_utf8_lossy(&build.output().expect("qj runs").stdout).into_owned()
    };
    assert!(report("row.esp").contains("unrolled: read_write: 16 elements in 16 iterations at row.esp:4:"));
    assert!(!report("row.esp --unroll off").contains("unrolled"));
    assert!(report("row.esp --checked").contains("not unrolled: read_write: overflow is checked at each operation"));
    let said = report("pairs.esp");
    assert!(said.contains("not unrolled: read_pair: "), "{said}");
}

#[test]
fn options_without_meaning_are_refused() {
    let folder = Folder::with(&[("a.esp", PAIRS)]);
    let help = "error[H0103]: `--growth` has no meaning here\nhelp: it is for `--mode automata` and `--mode auto`\n";
    folder.qj("run a.esp --mode process --growth 3").assert().code(2).stderr_eq(help);
    folder.qj("run a.esp --seed 3 --growth 3").assert().code(2).stderr_eq(help);
    folder.qj("build a.esp --emit c --mode fastpath --growth 3").assert().code(2).stderr_eq(help);
    let help = help.replace("growth", "unroll");
    folder.qj("build a.esp --emit c --mode fastpath --batch auto").assert().code(2).stderr_eq(help);
    for mode in ["automata", "auto", "fastpath"] {
        folder.qj(&format!("run a.esp --mode {mode} --record r.txt")).assert().code(2).stderr_eq(
            "error[H0103]: `--record` needs `--mode process`: a recording counts the requests of processes to the environment\n\
             help: leave out `--mode`\n",
        );
        assert!(!folder.path("r.txt").exists());
    }
}

#[test]
fn a_run_reports_the_entries_and_exits_of_paths() {
    let folder = Folder::with(&[("a.esp", PAIRS)]);
    let said = |arguments: &str| {
        let run = folder.qj(&format!("run a.esp --mode fastpath {arguments}")).stdin("1\n2\n3\n4\n5\n6\n");
        let run = run.assert().success().stdout_eq("3\n7\n11\n").get_output().stderr.clone();
        String::from_utf8_lossy(&run).into_owned()
    };
    assert_eq!(said(""), "");
    let report = said("--report");
    assert_eq!(report, said("--report --engine interp"));
    let number = |line: &str, word: &str| -> u64 {
        let rest = &line[line.find(word).unwrap_or_else(|| panic!("{report}")) + word.len()..];
        rest[..rest.find(' ').expect("a word follows")].parse().unwrap_or_else(|_| panic!("{report}"))
    };
    let mut lines = report.lines();
    let entered = number(lines.next().expect("one path"), "fast path sums: entered ");
    let left: Vec<&str> = lines.collect();
    assert!(
        entered > 0 && left.iter().any(|line| line.contains("side exit: the environment is not ready for")),
        "{report}"
    );
    assert_eq!(left.iter().map(|line| number(line, "left ")).sum::<u64>(), entered, "{report}");
    let counted = folder.qj("run a.esp --mode fastpath --engine c --report").stdin("1\n2\n").assert().success();
    counted.stdout_eq("3\n").stderr_eq("fast path sums: read, pair: [..] states, [..] instructions\n...\n");
}

#[test]
fn fused_processes_are_drawn() {
    let folder = Folder::with(&[("a.esp", PAIRS)]);
    let graph = |arguments: &str| {
        let graph = folder.qj(&format!("graph a.esp {arguments}")).output().expect("qj runs");
        assert!(graph.status.success(), "{arguments}: {}", String::from_utf8_lossy(&graph.stderr));
        String::from_utf8_lossy(&graph.stdout).into_owned()
    };
    assert_eq!(graph(""), graph("--mode process"));
    assert_eq!(graph(""), graph("--mode direct"));
    let automata = graph("--mode automata");
    assert!(["read_pair", ">in i<", ">out o<"].iter().all(|word| automata.contains(word)), "{automata}");
    assert!(!automata.contains(">in c<"), "{automata}");
    let fast = graph("--mode fastpath");
    assert!(
        ["fast path sums", ">side exit: the environment", ">in i, else<"].iter().all(|word| fast.contains(word)),
        "{fast}"
    );
    let nothing = "error[H0204]: no process is fused, and there is no fast path to draw\n\
        help: `qj build --emit c --report` with this mode lists the reasons\n";
    folder.qj("graph a.esp --mode automata --growth 0").assert().code(1).stderr_eq(nothing);
}

#[test]
fn the_program_is_printed_after_any_pass() {
    let folder = Folder::with(&[("a.esp", PAIRS)]);
    let dump = |arguments: &str| {
        let build = folder.qj(&format!("build a.esp --emit ir {arguments}")).output().expect("qj runs");
        assert!(build.status.success(), "{arguments}: {}", String::from_utf8_lossy(&build.stderr));
        String::from_utf8_lossy(&build.stdout).into_owned()
    };
    let lowered = dump("--dump lower");
    assert!(lowered.starts_with("== lower, round 1\nesp-ir 1\n") && !lowered.contains("== simplify-cfg"), "{lowered}");
    let all = dump("--mode auto --dump all");
    let iterated =
        ["simplify-cfg", "copy-prop", "const-fold", "gvn", "vrp", "strength-reduce", "rc-elim", "dse", "dce"];
    for pass in ["lower"].into_iter().chain(iterated) {
        assert!(all.contains(&format!("== {pass}, round 1\n")), "{pass}: {all}");
    }
    let place = |pass: &str| all.find(&format!("== {pass}, round 1\n")).unwrap_or_else(|| panic!("{pass}: {all}"));
    assert!(place("dce") < place("fuse") && place("fuse") < place("fast-paths"));
    assert!(place("fast-paths") < place("bounds-check-elim"));
    let two = dump("--dump ranges --dump dce");
    assert!(two.starts_with("== vrp") && two.contains("== dce") && !two.contains("== lower"), "{two}");
    let unknown = folder.qj("build a.esp --emit ir --dump folding").output().expect("qj runs");
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(2), "{said}");
    assert!(said.contains("possible values: lower, simplify-cfg, copy-prop, const-fold,"), "{said}");
    folder
        .qj("build a.esp --emit c --dump dead")
        .assert()
        .code(2)
        .stderr_eq("error[H0103]: `--dump` has no meaning here\nhelp: it is for `--emit ir`\n");
}

#[test]
fn unreachable_statements_of_a_fast_path_are_named() {
    let program = PAIRS.replace("follows (i c)*", "follows (c c)*");
    let folder = Folder::with(&[("a.esp", &program), ("b.esp", PAIRS)]);
    let run =
        |file: &str| folder.qj(&format!("run {file} --mode fastpath")).stdin("1\n2\n3\n4\n").output().expect("qj runs");
    let (unreachable, right) = (run("a.esp"), run("b.esp"));
    let said = String::from_utf8_lossy(&unreachable.stderr);
    let warnings = "warning: fast path sums: the statement of read at a.esp:4:35 is unreachable on the path\n\
        warning: fast path sums: the statement of pair at a.esp:5:24 is unreachable on the path\n";
    assert_eq!(said, warnings);
    assert_eq!(String::from_utf8_lossy(&right.stderr), "");
    assert_eq!(unreachable.stdout, right.stdout);
}

/// Programs of thousands of processes, and budgets of zero: compilation has bounded work and preserves the program.
#[test]
fn thousands_of_processes_and_no_budget_are_answered() {
    if quick_run("programs of a thousand processes") {
        return;
    }
    let count = 1_000;
    let channels: String = (0..=count).map(|number| format!("channel c{number}(int);\n")).collect();
    let middle: String = (0..count)
        .map(|number| format!("process p{number} {{ while {{ in(c{number}, $x); out(c{}, x + 1); }} }}\n", number + 1))
        .collect();
    let program = format!(
        "channel i(int) external out;\nchannel o(int) external in;\n{channels}\
         process first {{ while {{ in(i, $x); out(c0, x); }} }}\n{middle}\
         process last {{ while {{ in(c{count}, $x); out(o, x); }} }}\n"
    );
    let folder = Folder::with(&[("a.esp", &program)]);
    for mode in ["process", "direct", "automata", "automata --growth 0", "auto"] {
        let run = folder.qj(&format!("run a.esp --mode {mode} --engine jit"));
        run.stdin("1\n2\n").assert().success().stdout_eq("1001\n1002\n");
    }
    let report = folder.qj("build a.esp --mode auto --emit c --report -o out").output().expect("qj runs");
    let said = String::from_utf8_lossy(&report.stdout);
    assert!(said.contains("divided: ") && said.contains("fused: "), "{said}");
    let growth =
        folder.qj("build a.esp --mode automata --growth 0 --emit c --report -o out").output().expect("qj runs");
    let said = String::from_utf8_lossy(&growth.stdout);
    assert!(said.contains("more than 0 instructions") && !said.contains("\nfused: "), "{said}");
}
