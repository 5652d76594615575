//! Fusion preserves behaviour: every program of the flow IR's own tests runs in the same environment as written and
//! with all its processes fused. Schedule-independent programs must send the same messages and end alike.

use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_ir::ir::{ProcessId, Program};
use quaject_esp_ir::read::read;
use quaject_esp_ir::{text::print, verify::verify};
use quaject_esp_opt::fuse::fuse;
use quaject_esp_opt::groups::{self, fuse_all};
use quaject_esp_opt::limits::{CodeGrowth, LimitKind, Limits};
use quaject_esp_opt::refusal::Refusal;
use quaject_test_environment::{Script, act, by_channel, compile};
use std::path::{Path, PathBuf};

const BUDGET: u64 = 100_000;

fn run(program: &Program, text: &str) -> (Vec<String>, String) {
    let mut environment = Script::new(program, text);
    let mut interpreter = Interpreter::new(program, environment.checks).expect("test programs are small");
    let outcome = loop {
        let outcome = interpreter.run(&mut environment, BUDGET);
        if !act(&mut environment, &outcome) {
            break outcome;
        }
    };
    let outcome = match outcome {
        Outcome::Budget => "runs forever".to_string(),
        Outcome::Ended(status) => format!("ended with {status}"),
        Outcome::Faulted(report) => format!("fault {:?} at {:?}", report.fault, report.location.in_text()),
        Outcome::Quiescent(_) => "waits".to_string(),
    };
    (environment.log, outcome)
}

fn fused(program: &Program, text: &str) -> Result<Program, Refusal> {
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let checked = Script::new(program, text).checks == quaject_esp_exec::step::Checks::On;
    let fused = fuse(program, &all, checked, Limits::default())?.program;
    let errors: Vec<String> = verify(&fused).iter().map(|error| error.text(&fused)).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{}", print(&fused));
    Ok(fused)
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder of programs").map(|e| e.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "esp" || extension == "ir"));
    files.sort();
    files
}

#[test]
fn programs_of_the_flow_ir_behave_alike() {
    let mut table = String::new();
    let mut failures = Vec::new();
    for path in programs("../esp-exec/tests/programs") {
        let text = std::fs::read_to_string(&path).expect("a readable program");
        let name = path.file_stem().expect("a file").to_string_lossy().to_string();
        let program = match path.extension() {
            Some(extension) if extension == "esp" => compile(&path, &text),
            Some(_) | None => read(&text).expect("well-formed"),
        };
        match fused(&program, &text) {
            Err(refusal) => table.push_str(&format!("{name}: {refusal:?}\n")),
            Ok(fused) => {
                table.push_str(&format!("{name}: fused\n"));
                let ((log, outcome), (fused_log, fused_outcome)) = (run(&program, &text), run(&fused, &text));
                let same = by_channel(&log) == by_channel(&fused_log) && outcome == fused_outcome;
                let confluent = Script::new(&program, &text).confluent;
                if !same && (confluent || std::env::var("ALL").is_ok()) {
                    failures.push(format!("{name}:\n{log:?}\n{outcome}\nfused:\n{fused_log:?}\n{fused_outcome}"));
                }
            }
        }
    }
    if std::env::var("SHOW").is_ok() {
        println!("{table}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Nodes of the product of all processes.
fn nodes(text: &str) -> usize {
    let program = compile(Path::new("test.esp"), text);
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let fused = fuse(&program, &all, false, Limits::default()).expect("it can be fused");
    assert_eq!(verify(&fused.program).len(), 0, "{}", print(&fused.program));
    fused.nodes
}

/// A source of integers, `stages` processes that swap neighbours, and a sink.
fn swaps(stages: usize) -> String {
    let mut text = "channel in0(int) external out; channel last(int) external in;\n".to_string();
    for stage in 0..=stages {
        text.push_str(&format!("channel c{stage}(int);\n"));
    }
    text.push_str("process source { while { in(in0, $x); out(c0, x); if (x == -1) break; } }\n");
    for stage in 0..stages {
        let next = stage + 1;
        text.push_str(&format!(
            "process swap{stage} {{ while {{ in(c{stage}, $a); if (a == -1) break; in(c{stage}, $b);\n\
             if (b == -1) {{ out(c{next}, a); break; }} out(c{next}, b); out(c{next}, a); }} out(c{next}, -1); }}\n"
        ));
    }
    text.push_str(&format!(
        "process sink {{ var sum = 0; while {{ in(c{stages}, $x); if (x == -1) break; sum += x; }} out(last, sum); }}\n"
    ));
    text
}

#[test]
fn states_of_a_pipeline_are_linear_in_its_length() {
    let counts: Vec<usize> = (1..=20).map(|stages| nodes(&swaps(stages))).collect();
    assert_eq!(counts[..4], [22, 31, 40, 49]);
    let added = counts.windows(2).map(|pair| pair[1] - pair[0]).max().expect("there are several");
    println!("nodes of chains of 1 to 20 swaps: {counts:?}; a stage adds {added} at most");
    assert!(added <= 10, "{counts:?}");
}

/// Two processes communicate forever, further downstream than two others that communicate once.
#[test]
fn a_process_that_could_starve_is_served_first() {
    let text = "channel s(int); channel c(int); channel t(int); channel o(int) external in;\n\
        process a { while { out(c, 1); } }\nprocess f { out(s, 1); out(t, 7); }\n\
        process g { in(t, $x); out(o, x); }\nprocess b { in(s, _); while { in(c, _); } }\n";
    expect_test::expect![[r#"
        fused: a, f, g, b: one process of 6 instructions instead of 16; 11 states explored
    "#]]
    .assert_eq(&groups(text, "", Limits::default()));
    let (log, outcome) = run(&fused(&compile(Path::new("test.esp"), text), "").expect("it can be fused"), "");
    assert_eq!((log.len(), outcome.as_str()), (1, "runs forever"), "{log:?}");
    // A loop with a large trip count is treated as one that does not end.
    let text = text.replace("while { in(c, _); }", "for k in -1_000_000..4 { in(c, _); }");
    let (log, _) = run(&fused(&compile(Path::new("test.esp"), &text), "").expect("it can be fused"), "");
    assert_eq!(log.len(), 1, "{log:?}");
}

/// A counted loop starves no process, so that no process has to be served within it.
#[test]
fn a_counted_loop_needs_no_fairness() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/filters-process/esp/program3.esp");
    assert_eq!(nodes(&std::fs::read_to_string(path).expect("a readable program")), 146);
}

/// Unbounded counters are enumerated constant by constant at one control location; at others they are widened at once.
/// Enumeration everywhere would take more fuel than is allowed here.
#[test]
fn counters_are_enumerated_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/filters-process/esp/program3.esp");
    let program = compile(&path, &std::fs::read_to_string(&path).expect("a readable program"));
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let limits = Limits { fuel: 30_000, ..Limits::default() };
    assert_eq!(fuse(&program, &all, false, limits).map(|fused| fused.nodes), Ok(146));
}

/// Filters that may produce the end of the stream themselves: its reader leaves the stages before it blocked forever.
/// Their locations are not part of the state.
#[test]
fn in_band_ends_of_stream_are_fused() {
    for (program, expected) in [(2, 342), (3, 675)] {
        let file = format!("../../bench/filters-process/esp/program{program}.esp");
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a readable program");
        let in_band = text.replace("const END = -1;", "const END = 192;");
        assert_ne!(in_band, text);
        assert_eq!(nodes(&in_band), expected);
    }
}

/// The report on the end of a run.
fn end_report(program: &Program, text: &str) -> String {
    let mut environment = Script::new(program, text);
    let mut interpreter = Interpreter::new(program, environment.checks).expect("test programs are small");
    loop {
        let outcome = interpreter.run(&mut environment, BUDGET);
        if !act(&mut environment, &outcome) {
            return match outcome {
                Outcome::Faulted(report) => report.text(program),
                Outcome::Budget | Outcome::Ended(_) | Outcome::Quiescent(_) => format!("{outcome:?}"),
            };
        }
    }
}

/// Processes that are blocked forever are reported with their locations: a filter that ends early, because its
/// predecessor produced the end from another number, leaves that one at any of its operations.
#[test]
fn processes_blocked_forever_are_reported() {
    let text = "channel in0(int) external out; channel last(int) external in;\n\
        channel c0(int); channel c1(int); channel c2(int); channel c3(int);\n\
        process source { while { in(in0, $x); out(c0, x); if (x == 0) break; } }\n\
        process less { while { in(c0, $x); if (x == 0) break; out(c1, x - 1); } out(c1, 0); }\n\
        process twice { while { in(c1, $x); if (x == 0) break; out(c2, x); out(c2, x - 1); } out(c2, 9); out(c2, 0); }\n\
        process pairs { while { in(c2, $a); if (a == 0) break; in(c2, $b); if (b == 0) break;\n\
            out(c3, a - 2); } out(c3, 0); }\n\
        process sink { var sum = 0; while { in(c3, $x); if (x == 0) break; sum += x; } out(last, sum); }\n";
    let program = compile(Path::new("test.esp"), text);
    let fused = fused(&program, text).expect("it can be fused");
    let mut reports = std::collections::BTreeSet::new();
    for number in 0..5u32.pow(4) {
        let inputs = (0..4).map(|digit| number / 5u32.pow(digit) % 5);
        let script: String = inputs.map(|input| format!("; offer in0 {input}\n")).collect::<String>() + "; close in0\n";
        let report = end_report(&program, &script);
        assert_eq!(end_report(&fused, &script), report, "{script}");
        reports.insert(report);
    }
    assert!(reports.len() >= 6, "{reports:#?}");
}

/// An inert member is not reported if it is wakeable: a process that may still run has the other end in its code.
#[test]
fn a_wakeable_inert_member_is_not_reported() {
    let text = "channel i() external out; channel o(int) external in;\n\
        channel e(int); channel c(int); channel d(int);\n\
        process M1 { out(e, 1); out(c, 1); out(c, 2); }\nprocess N { in(e, $q); out(d, q); }\n\
        process M2 { in(d, _); in(d, _); }\nprocess R { in(c, $x); out(o, x); while { in(i); out(o, 9); } }\n";
    let same = |text: &str, script: &str| {
        let program = compile(Path::new("test.esp"), text);
        let report = end_report(&program, script);
        assert_eq!(end_report(&fused(&program, script).expect("it can be fused"), script), report, "{script}");
        report
    };
    let report = same(text, "");
    assert!(report.contains("`M2` waits") && !report.contains("`M1` waits"), "{report}");
    // Only inert members wait for others: of these, too, only some are reported.
    let text = text.replace("out(d, q); }", "out(d, q); out(d, q); }").replace("in(d, _); in(d, _); }", "in(d, _); }");
    let report = same(&text, "");
    assert!(report.contains("`N` waits") && !report.contains("`M1` waits"), "{report}");
}

/// Every location at which a member may be dead adds a branch to every deadlock report. That takes fuel, too.
#[test]
fn deadlock_reports_are_limited() {
    let fuse_of = |count: usize, fuel: usize| {
        let text = format!(
            "channel j(int) external out; channel o(int) external in; channel c(int);\n\
            process a {{ {} }}\nprocess b {{ in(j, $k); while {{ {} break; }} {} }}\n",
            (0..count).map(|number| format!("out(c, {number});\n")).collect::<String>(),
            "{ in(c, $x); if (x == k) break; }\n".repeat(count),
            "{ in(j, $y); out(o, y); }\n".repeat(count),
        );
        let program = compile(Path::new("test.esp"), &text);
        let limits = Limits { fuel, ..Limits::default() };
        fuse(&program, &[ProcessId(0), ProcessId(1)], false, limits).map(|fused| fused.nodes)
    };
    let fuel = Limits::default().fuel;
    assert!(fuse_of(5, fuel).is_ok(), "{:?}", fuse_of(5, fuel));
    let costliest = Some(ProcessId(1));
    let (kind, limit) = (LimitKind::Fuel, 8000);
    assert_eq!(fuse_of(60, limit), Err(Refusal::LimitExceeded { kind, limit, costliest }));
    // Before the report is emitted, not of the result.
    let (kind, limit) = (LimitKind::Instructions, 3872);
    assert_eq!(fuse_of(60, fuel), Err(Refusal::LimitExceeded { kind, limit, costliest }));
}

/// The open branch is between members, and the external branch has a false guard: a deadlock.
#[test]
fn a_wait_between_members_stays_open() {
    let text = "channel i(int) external out; channel a(int) external out; channel o(int) external in;\n\
        channel c(int); channel d(int);\n\
        process P { in(i, $x); out(d, x);\n\
            alt { when (x > 0) in(a, $y) { out(o, y); } in(c, $z) { out(o, z); } } }\n\
        process Q { in(d, $y); if (y > 100) out(c, y); }\n";
    let program = compile(Path::new("test.esp"), text);
    let fused = fused(&program, text).expect("it can be fused");
    for script in ["; offer i 0\n", "; offer i 1\n; close a\n", "; offer i 101\n; offer a 7\n"] {
        assert_eq!(end_report(&fused, script), end_report(&program, script), "{script}");
    }
    let report = end_report(&fused, "; offer i 0\n");
    assert!(report.contains("deadlock") && !report.contains("`a`"), "{report}");
}

/// The bodies of filters on a stream of integers that ends with -1; `FROM` and `TO` are replaced by their channels.
const FILTERS: &[(&str, &str)] = &[
    (
        "evener",
        "var odd = false; while { in(FROM, $b); if (b == -1) break; out(TO, b); odd = !odd; } if (odd) out(TO, 0);",
    ),
    (
        "swap",
        "while { in(FROM, $a); if (a == -1) break; in(FROM, $b); if (b == -1) { out(TO, a); break; } out(TO, b); out(TO, a); }",
    ),
    (
        "rle",
        "var count = 0, last = 0; while { in(FROM, $b); \
         if (count > 0 && (b != last || count == 255)) { out(TO, count); out(TO, last); count = 0; } \
         if (b == -1) break; last = b; count += 1; }",
    ),
    (
        "rld",
        "while { in(FROM, $n); if (n == -1) break; in(FROM, $v); if (v == -1) break; for k in 0..n & 7 { out(TO, v); } }",
    ),
    (
        "pes",
        "const KEY = \"\\x1f\\x2e\\x3d\\x4c\\x5b\\x6a\\x79\\x88\"; var at = 0; \
         while { in(FROM, $b); if (b == -1) break; out(TO, b ^ KEY[at]); at = (at + 1) % 8; }",
    ),
];

/// A source of bytes, these filters, and a sink that outputs every integer.
fn filters(chain: &[&str]) -> String {
    let mut text = "channel in0(u8) external out; channel result(int) external in; channel c0(int);\n\
        process source { var end = false; while { in(in0, $b); if (b == 255) break; out(c0, int(b)); } out(c0, -1); }\n"
        .to_string();
    for (stage, name) in chain.iter().enumerate() {
        let (_, body) = FILTERS.iter().find(|(filter, _)| filter == name).expect("a filter");
        let body = body.replace("FROM", &format!("c{stage}")).replace("TO", &format!("c{}", stage + 1));
        let next = stage + 1;
        text.push_str(&format!("channel c{next}(int); process {name}{stage} {{ {body} out(c{next}, -1); }}\n"));
    }
    let last = chain.len();
    text.push_str(&format!("process sink {{ while {{ in(c{last}, $x); out(result, x); if (x == -1) break; }} }}\n"));
    text
}

/// Every chain of up to two filters, and longer ones with many abstract states of a location: counters and ends of
/// streams that are known only in part. Each becomes one state machine with the same output.
#[test]
fn chains_of_filters_are_fused() {
    if quaject_test_support::quick_run("chains of filters") {
        return;
    }
    let mut chains: Vec<Vec<&str>> = vec![Vec::new()];
    for (first, _) in FILTERS {
        chains.push(vec![first]);
        chains.extend(FILTERS.iter().map(|(second, _)| vec![*first, *second]));
    }
    let long = [
        "evener rle swap pes",
        "evener pes rle",
        "evener swap rle rld swap",
        "rle rld swap pes",
        "evener pes rle rle",
        "swap pes rle rld",
    ];
    chains.extend(long.iter().map(|chain| chain.split(' ').collect()));
    let streams: [&[u8]; 7] = [&[], &[1], &[1, 1], &[1, 2], &[3, 3, 3], &[0, 0, 7, 7, 7, 2, 0, 1, 1], &[9; 300]];
    for chain in chains {
        let text = filters(&chain);
        // Some grow by more than the default limit of eight.
        let limits = Limits { growth: CodeGrowth::Factor(40), ..Limits::default() };
        for stream in streams {
            let offers: String = stream.iter().chain(&[255]).map(|byte| format!("; offer in0 {byte}\n")).collect();
            let report = groups(&text, &offers, limits);
            assert!(report.starts_with("fused: source") && report.lines().count() == 1, "{chain:?}: {report}");
        }
    }
}

#[test]
fn refusals_name_the_exceeded_limit() {
    let refusal = |text: &str, limits: Limits| {
        let program = compile(Path::new("test.esp"), text);
        let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
        fuse(&program, &all, false, limits).expect_err("it cannot be fused")
    };
    let none = Limits { nodes: 0, ..Limits::default() };
    let states = |refusal| matches!(refusal, Refusal::LimitExceeded { kind: LimitKind::States, limit: 0, .. });
    assert!(states(refusal(&swaps(1), none)));
    let instructions = |refusal| matches!(refusal, Refusal::LimitExceeded { kind: LimitKind::Instructions, .. });
    assert!(instructions(refusal(&swaps(1), Limits { instructions: 3, ..Limits::default() })));
    assert!(instructions(refusal(&swaps(1), Limits { instructions: 15, ..Limits::default() })));
    assert!(instructions(refusal(&swaps(1), Limits { growth: CodeGrowth::Factor(0), ..Limits::default() })));
    let fuel = |refusal| matches!(refusal, Refusal::LimitExceeded { kind: LimitKind::Fuel, .. });
    assert!(fuel(refusal(&swaps(1), Limits { fuel: 100, ..Limits::default() })));
    let instances = |refusal| matches!(refusal, Refusal::LimitExceeded { kind: LimitKind::Instances, limit: 2, .. });
    assert!(instances(refusal(&swaps(1), Limits { members: 2, ..Limits::default() })));
    let text = "type boxT = bytes[<=9]; pool boxT 1; channel c(int); process b { in(c, _); }\n\
        process a { alt { when (free(boxT) > 0) out(c, 1) { } } }";
    let what = "a guard that reads `free`";
    assert!(matches!(refusal(text, Limits::default()), Refusal::Unsupported { what: found, .. } if found == what));
}

/// The report on the groups of a program, whose behaviour is preserved.
fn groups(text: &str, script: &str, limits: Limits) -> String {
    let program = compile(Path::new("test.esp"), text);
    let mut fused = program.clone();
    let attempts = fuse_all(&mut fused, false, limits);
    assert_eq!(verify(&fused), [], "{}", print(&fused));
    let ((log, outcome), (fused_log, fused_outcome)) = (run(&program, script), run(&fused, script));
    assert_eq!((by_channel(&fused_log), fused_outcome), (by_channel(&log), outcome), "{}", print(&fused));
    attempts.iter().map(|attempt| attempt.text(&program) + "\n").collect()
}

/// A pipeline of `stages` processes between a source and a sink.
fn chain(stages: usize) -> String {
    let mut text = "channel i(int) external out; channel o(int) external in; channel c0(int);\n\
        process s { while { in(i, $x); out(c0, x); } }\n"
        .to_string();
    for stage in 0..stages {
        let next = stage + 1;
        text.push_str(&format!(
            "channel c{next}(int); process p{stage} {{ while {{ in(c{stage}, $x); out(c{next}, x + 1); }} }}\n"
        ));
    }
    text.push_str(&format!("process t {{ while {{ in(c{stages}, $x); out(o, x); }} }}\n"));
    text
}

const OFFERS: &str = "; offer i 1\n; offer i 2\n; offer i 3\n; close i\n";

#[test]
fn the_costliest_process_is_excluded() {
    // An instance of `ring` passes its token to any other: the orders in which they had it multiply.
    let text = "channel i(int) external out; channel k(int); channel a(int) shared; channel o(int) external in;\n\
        process pre { while { in(i, $x); out(k, x + 1); } }\nprocess mid { while { in(k, $x); out(a, x - x); } }\n\
        process ring[5] { var x = 0; while { alt { in(a, x) { out(o, x); } when (x > 0) out(a, x - 1) { } } } }\n";
    expect_test::expect![[r#"
        excluded: ring: together with the others, more than 1000 instructions
        fused: pre, mid: one process of 12 instructions instead of 11; 10 states explored
    "#]]
    .assert_eq(&groups(text, OFFERS, Limits::default()));
    // A smaller group has no costliest process and is not fused at all.
    let limits = Limits { growth: CodeGrowth::Factor(0), ..Limits::default() };
    expect_test::expect![[r#"
        excluded: s: together with the others, more than 0 instructions
        not fused: p0, t: more than 0 instructions
    "#]]
    .assert_eq(&groups(&chain(1), OFFERS, limits));
}

#[test]
fn conservative_growth_takes_little_code_and_time() {
    let conservative = Limits { growth: CodeGrowth::Conservative, ..Limits::default() };
    for stages in [1, 8, 28] {
        let report = groups(&chain(stages), OFFERS, conservative);
        assert!(report.starts_with("fused: s, p0") && report.lines().count() == 1, "{report}");
    }
    // Each state polls the environment in code of its own.
    let polls = "in(i, $y); ".repeat(3) + "{ " + &"alt { in(i, $z) { out(o, z); } } ".repeat(3) + "} ";
    let text = format!(
        "channel i(int) external out; channel j(int) external out; channel o(int) external in; channel c(int);\n\
         process a {{ while {{ {polls} out(c, y); }} }}\nprocess b {{ while {{ {} in(c, $x); }} }}\n",
        "in(j, _); ".repeat(4),
    );
    let text = text.replace("out(c, y)", "out(c, 1)").replace("in(i, $y)", "in(i, _)");
    let offers = "; offer i 1\n; offer i 2\n; offer j 1\n";
    assert_eq!(
        groups(&text, offers, conservative),
        "not fused: a, b: the fused code would be much larger than the separate processes\n"
    );
    assert!(groups(&text, offers, Limits::default()).starts_with("fused: a, b: "));
    // No process is excluded: the costliest one is known only after a complete exploration.
    let ring = "channel i(int) external out; channel k(int); channel a(int) shared; channel o(int) external in;\n\
        process pre { while { in(i, $x); out(k, x + 1); } }\nprocess mid { while { in(k, $x); out(a, x - x); } }\n\
        process ring[5] { var x = 0; while { alt { in(a, x) { out(o, x); } when (x > 0) out(a, x - 1) { } } } }\n";
    let program = compile(Path::new("test.esp"), ring);
    for fuel in [usize::MAX, 100] {
        let attempts = fuse_all(&mut program.clone(), false, Limits { fuel, ..conservative });
        let [attempt] = &attempts[..] else { panic!("{attempts:?}") };
        assert!(
            matches!(attempt.outcome, groups::FusionOutcome::Refused(Refusal::LimitExceeded { .. })),
            "{attempt:?}"
        );
    }
}

#[test]
fn unsupported_processes_are_excluded() {
    let polls = "alt { in(c2, $x) { out(c3, x + 1); } when (free(boxT) > 5) in(c2, _) { } }";
    let pool = "type boxT = bytes[<=9]; pool boxT 1;\n";
    let text = chain(5).replace("in(c2, $x); out(c3, x + 1);", polls) + pool;
    expect_test::expect![[r#"
        excluded: p2: `p2` has a guard that reads `free` at test.esp:5:39
        fused: s, p0, p1: one process of 18 instructions instead of 16; 19 states explored
        fused: p3, p4, t: one process of 20 instructions instead of 16; 19 states explored
    "#]]
    .assert_eq(&groups(&text, OFFERS, Limits::default()));
    // A process that shares a channel's end with one that is excluded, while the other end is in the group.
    let text = "channel i(int) external out; channel a(int); channel b(int); channel o(int) external in;\n\
        process p { while { in(i, $x); out(a, x); out(b, x); } }\n\
        process q { while { alt { in(b, $x) { out(a, 10 + x); } when (free(boxT) > 5) in(b, _) { } } } }\n\
        process r { while { in(a, $x); in(a, $y); out(o, x + y); } }\n";
    let text = &(text.to_string() + pool);
    expect_test::expect![[r#"
        excluded: q: `q` has a guard that reads `free` at test.esp:3:21
        not fused: p, r: processes outside of the group use channel `a`, too
    "#]]
    .assert_eq(&groups(text, OFFERS, Limits::default()));
}

#[test]
fn many_instances_are_divided() {
    let text = groups(&chain(60), OFFERS, Limits::default());
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.split_once(':').map(|(kind, _)| kind)).collect();
    assert!(kinds.iter().all(|kind| ["divided", "fused"].contains(kind)) && kinds.contains(&"divided"), "{text}");
    // Each of thousands of pairs costs as much as one pair.
    let pair = |number: usize| {
        format!(
            "channel c{number}(int); process a{number} {{ for k in 0..3 {{ out(c{number}, k); }} }}\n\
             process b{number} {{ for k in 0..3 {{ in(c{number}, _); }} }}\n"
        )
    };
    let pairs: String = (0..1000).map(pair).collect();
    let text = groups(&pairs, "", Limits::default());
    assert_eq!(text.lines().filter(|line| line.starts_with("fused")).count(), 1000, "{text}");
}
