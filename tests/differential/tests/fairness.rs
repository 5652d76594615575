//! The fairness bounds that `--report` prints, against the worst waits in runs of both engines: in these
//! programs everything is always ready, so that only the schedule determines the order.

use quaject_differential::c::run;
use quaject_differential::environment::Script;
use quaject_differential::generate::{Outcome, Sample};
use quaject_differential::interpret::{compile, trace};
use quaject_differential::machine::Compiler;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::step::Step;
use quaject_esp_gen::c::{Options, Style, generate};
use quaject_test_support::tool;
use std::fmt::Write as _;

/// The number in the line of a program's report that begins with `words`.
fn printed(report: &str, words: &str) -> usize {
    let line = report.lines().find_map(|line| line.trim().strip_prefix(words));
    let line = line.unwrap_or_else(|| panic!("the report does not say `{words}`:\n{report}"));
    let number = line.split_whitespace().find_map(|word| word.parse().ok());
    number.expect("the line has a number")
}

/// A program, the line of the report that bounds it, and how the wait is counted in a trace.
struct Case {
    source: String,
    script: Script,
    words: &'static str,
    worst: fn(&[Step]) -> usize,
    /// The least worst wait of a conclusive run.
    at_least: usize,
}

fn case(source: String, words: &'static str, worst: fn(&[Step]) -> usize, at_least: usize) -> Case {
    Case { source, script: Script::default(), words, worst, at_least }
}

/// The longest stretch of `events` from one occurrence of a kind to the next, for any kind; the start counts as one.
fn longest_gap(events: impl Iterator<Item = u32>) -> usize {
    let events: Vec<u32> = events.collect();
    let mut worst = 0;
    let mut kinds = events.clone();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let mut last = 0;
        for (position, _) in events.iter().enumerate().filter(|(_, event)| **event == kind) {
            worst = worst.max(position + 1 - last);
            last = position + 1;
        }
    }
    worst
}

/// Turns of others between two of an instance, where every turn is one run of local code.
fn turns_between(trace: &[Step]) -> usize {
    let turns = trace.iter().filter_map(|step| match step {
        Step::Local { instance } => Some(*instance),
        _ => None,
    });
    longest_gap(turns) - 1
}

/// Runs of the alt of instance 0 from one in which a branch is taken to the next.
fn runs_between(trace: &[Step]) -> usize {
    longest_gap(trace.iter().filter_map(|step| match step {
        Step::Communicate { receiver: 0, receiver_branch, .. } => Some(*receiver_branch),
        Step::Communicate { sender: 0, sender_branch, .. } => Some(*sender_branch),
        Step::FromEnvironment { instance: 0, branch } | Step::ToEnvironment { instance: 0, branch } => Some(*branch),
        _ => None,
    }))
}

/// Other writers that communicate with instance 0 between two messages of a writer.
fn others_between(trace: &[Step]) -> usize {
    let served = trace.iter().filter_map(|step| match step {
        Step::Communicate { sender, receiver: 0, .. } => Some(*sender),
        _ => None,
    });
    longest_gap(served) - 1
}

/// Turns until a message that is present from the start is taken.
fn turns_until_seen(trace: &[Step]) -> usize {
    let turns = trace.iter().take_while(|step| !matches!(step, Step::FromEnvironment { .. }));
    // Without the first two: the turn of the instance that then waits, and the turn with the message.
    turns.filter(|step| matches!(step, Step::Local { .. })).count() - 2
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [2, 3, 5, 8, 33, 64, 65] {
        let yielding = format!("process p[{n}] {{ for i in 0..20 {{ yield; }} }}\n");
        cases.push(case(yielding, "a ready instance runs after at most", turns_between, n - 1));

        let port = format!(
            "channel c(int);\nprocess r {{ for i in 0..{} {{ in(c, _); }} exit(0); }}\n\
             process w[{n}] {{ while {{ out(c, int(@)); }} }}\n",
            20 * n
        );
        cases.push(case(port, "a writer waits for at most", others_between, n - 1));
    }
    for n in [2, 3, 5, 8, 33] {
        for direction in ["in", "out", "external"] {
            let mut channels = String::new();
            let mut branches = String::new();
            let mut partners = String::new();
            for k in 0..n {
                let (outside, own, other) = match direction {
                    "in" => ("", format!("in(c{k}, _)"), format!("out(c{k}, 0);")),
                    "out" => ("", format!("out(c{k}, 0)"), format!("in(c{k}, _);")),
                    _ => (" external in", format!("out(c{k}, 0)"), String::new()),
                };
                writeln!(channels, "channel c{k}(int){outside};").expect("writing to a string does not fail");
                write!(branches, "{own} {{ }} ").expect("writing to a string does not fail");
                if !other.is_empty() {
                    writeln!(partners, "process q{k} {{ while {{ {other} }} }}")
                        .expect("writing to a string does not fail");
                }
            }
            let rounds = 20 * n;
            let source = format!(
                "{channels}process p {{ for i in 0..{rounds} {{ alt {{ {branches}}} }} exit(0); }}\n{partners}"
            );
            cases.push(case(
                source,
                "a branch that can be taken each time its alt runs is taken within",
                runs_between,
                n,
            ));
        }
    }
    cases.push(Case {
        source: "channel wC(int) external out;\nextern fn more();\nprocess p { in(wC, _); exit(0); }\n\
                 process q { more(); while { yield; } }\n"
            .into(),
        script: Script { inputs: vec![("wC".into(), vec![vec![Datum::Int(1)]])], held: vec!["wC".into()] },
        words: "an external event is seen within",
        worst: turns_until_seen,
        at_least: 10,
    });
    cases
}

#[test]
fn no_wait_is_longer_than_reported() {
    let Some(compiler) = tool(&["tcc", "cc", "gcc", "clang"]) else { return };
    let compiler = Compiler::native(compiler, &["-w"]);
    let cases = cases();
    let samples: Vec<Sample> = cases
        .iter()
        .map(|case| Sample {
            seed: 0,
            source: case.source.clone(),
            files: Vec::new(),
            script: case.script.clone(),
            outcome: Outcome::Determined,
        })
        .collect();
    let programs: Vec<_> = samples.iter().map(|sample| compile(sample).expect("the program is right")).collect();
    let both: Vec<_> = samples.iter().zip(&programs).collect();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let c_run = run(&compiler, folder.path(), &both).expect("the C compiler accepts the programs");
    for ((case, (sample, program)), c_run) in cases.iter().zip(both).zip(c_run) {
        let options = Options { style: Style::SansIo, ..Options::default() };
        let bound = printed(&generate(program, &options).report.to_string(), case.words);
        let c_run = c_run.expect("the C program ends").trace;
        let interpreted = trace(sample, program).expect("the interpreter's run ends");
        for (engine, trace) in [("C", c_run), ("the interpreter", interpreted)] {
            let worst = (case.worst)(&trace);
            assert!(worst <= bound, "{engine}: {worst} exceeds the reported {bound}:\n{}", case.source);
            assert!(worst >= case.at_least, "{engine}: only {worst} of {bound}:\n{}", case.source);
        }
    }
}
