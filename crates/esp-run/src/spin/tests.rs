//! The conclusions from searches of Spin. No test runs Spin: the outcomes are given.

use super::verdict::Searches;
use super::{Incomplete, ReplayFailure, Search, Spin, SpinOutcome, SpinRefinement, SpinRefinementVerdict, SpinReport};
use quaject_esp_check::{Interrupt, Limits, Options, PathRecord, Reduction, Unfinished, Verdict};
use quaject_esp_exec::step::{Checks, Step};
use quaject_esp_gen::promela::{self, trail::Trail};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_lower::lower_model;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("nothing to import: {path}"))
    }
}

fn model(source: &str) -> ModelProgram {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("main.esp", source.to_string()));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("the program is wrong: {:?}", analysis.diagnostics));
    lower_model(&program, None, None, &sources)
}

/// Its first violation needs a branch of `pri alt` that the program does not take.
const PRIORITY: &str = "channel c();\nchannel d();\nprocess p { pri alt { in(c) { } in(d) { assert(false); } } }\n\
                        process q { alt { out(c) { } out(d) { } } }\n";

fn search(outcome: SpinOutcome) -> Search {
    Search {
        outcome,
        states: 7,
        transitions: 9,
        depth: 5,
        state_bytes: 16,
        entered: Vec::new(),
        compiling: Duration::from_millis(500),
        searching: Duration::from_millis(250),
    }
}

fn fault(steps: Vec<Step>) -> SpinOutcome {
    SpinOutcome::Fault(Trail { steps, ..Trail::default() })
}

/// The report that follows from a search for violations of safety with this outcome.
fn conclude(model: &ModelProgram, outcome: SpinOutcome, limits: Limits) -> SpinReport {
    let text = promela::generate(model, Checks::On, None).expect("Promela can express the model");
    let searches = Searches { search: search(outcome), property: None, properties: Vec::new() };
    let options = Options { limits, ..Options::default() };
    Spin::default().conclude(model, &text, searches, &options).expect("the trail can be replayed")
}

#[test]
fn a_trail_that_the_program_has_is_a_violation() {
    let model = model("process p { assert(false); }\n");
    let report = conclude(&model, fault(vec![Step::Local { instance: 0 }]), Limits::default());
    assert!(matches!(report.report.verdict, Verdict::Violated(_)), "{:?}", report.report.verdict);
    assert_eq!((&report.unreproduced, &report.incomplete), (&None, &None));
    assert!(report.text(&model).starts_with("error `assert` in 1 process\n"), "{}", report.text(&model));
    assert_eq!(report.record(&model, None).to_json()["engine"], "spin");
}

#[test]
fn a_trail_that_is_not_reproduced_leaves_the_verdict_open() {
    let model = model(PRIORITY);
    let interrupted = Limits { interrupt: Some(Interrupt(Arc::new(AtomicBool::new(true)))), ..Limits::default() };
    for (steps, limits, reason, name, first) in [
        (
            vec![Step::Else { instance: 0 }],
            Limits::default(),
            ReplayFailure::Infeasible,
            "spurious",
            "NOT VERIFIED: Spin's counterexample is spurious: the program has no such run",
        ),
        (
            vec![Step::Local { instance: 0 }],
            interrupted,
            ReplayFailure::Undecided,
            "unknown",
            "NOT VERIFIED: Spin's counterexample may be spurious: it was not replayed to its end on the program",
        ),
    ] {
        let report = conclude(&model, fault(steps), limits);
        assert_eq!(report.report.verdict, Verdict::Unfinished(Unfinished::EngineIncomplete));
        assert_eq!(report.unreproduced.as_ref().map(|trail| trail.reason), Some(reason));
        let wanted = format!(
            "{first}\nthe model over-approximates the program at main.esp:3:13: `pri alt` takes any branch\n\
             7 states; the built-in engine is exact here\n"
        );
        assert_eq!(report.text(&model), wanted);
        let json = report.record(&model, None).to_json();
        assert_eq!((&json["verdict"], &json["spuriousness"]), (&"unfinished".into(), &name.into()));
        assert_eq!(json["causes"][0], "main.esp:3:13: `pri alt` takes any branch");
    }
}

#[test]
fn an_incomplete_search_states_its_limit() {
    let model = model("process p { }\n");
    for (incomplete, limit) in [
        (Incomplete::Time, "time"),
        (Incomplete::Memory, "memory"),
        (Incomplete::Depth, "depth"),
        (Incomplete::Interrupted, "interrupted"),
        (Incomplete::Exits, "engine"),
        (Incomplete::Broken("a message".into()), "broken"),
    ] {
        let report = conclude(&model, SpinOutcome::Unfinished(incomplete.clone()), Limits::default());
        assert_eq!(report.record(&model, None).limit.as_deref(), Some(limit));
        assert_eq!(report.incomplete, Some(incomplete));
    }
}

#[test]
fn a_report_covers_what_spin_was_asked_for() {
    let model = model("process p { }\n");
    let report = conclude(&model, SpinOutcome::NoViolation, Limits::default());
    assert_eq!(report.options.reduction, Reduction::On);
    let wanted = "no errors in 1 process\n7 states (partial-order reduction), 9 transitions, depth 5, 0.750 s, 0.0 MB\n\
                  covered: deadlock, assertions, bounds, division, overflow, ranges, pools, memory\n";
    assert_eq!(report.text(&model), wanted);
}

#[test]
fn a_search_for_a_violation_of_ltl_is_reported_without_reduction() {
    let model = model("process p { }\n");
    let text = promela::generate(&model, Checks::On, None).expect("Promela can express the model");
    let searches = Searches { search: search(SpinOutcome::NoViolation), property: Some(0), properties: Vec::new() };
    let report = Spin::default().conclude(&model, &text, searches, &Options::default()).expect("no trail is replayed");
    assert_eq!(report.options.reduction, Reduction::Off);
}

fn refinement(verdict: SpinRefinementVerdict) -> SpinRefinement {
    let path = |name: &str, is_entered| PathRecord { name: name.to_string(), is_entered, exits: None };
    SpinRefinement {
        verdict,
        states: 7,
        observer_states: 3,
        observer_steps: 1,
        elapsed: Duration::from_millis(750),
        paths: vec![path("first", true), path("second", false)],
        approximations: vec!["main.esp:3:13: `pri alt` takes any branch".to_string()],
        restrictions: vec!["`c.0` in 0..1".to_string()],
    }
}

#[test]
fn refinement_is_reported_with_its_coverage() {
    let model = model("process p { }\n");
    let sizes = "7 implementation states, 3 observer states with 1 visible step, 0.750 s\n";
    let coverage = "fast path `first`: entered\n\
                    fast path `second`: NEVER ENTERED in this environment, so its refinement is not known\n\
                    covered: every visible message and call; quiescence\n\
                    not covered: the state at each exit of a path; divergence\n\
                    assumed: `c.0` in 0..1\n";
    for (verdict, first, rest, name, limit) in [
        (
            SpinRefinementVerdict::Holds,
            "refinement holds: 1 process with fast paths has no trace that the original has not (Spin)\n",
            coverage,
            "holds",
            None,
        ),
        (
            SpinRefinementVerdict::Violated,
            "refinement violated: 1 process with fast paths has a trace that the original has not (Spin)\n\
             help: leave out `--engine spin` to see the run\n",
            "",
            "violated",
            None,
        ),
        (
            SpinRefinementVerdict::PossiblySpurious,
            "NOT VERIFIED: Spin's counterexample may be spurious\n\
             the model over-approximates the program at main.esp:3:13: `pri alt` takes any branch\n",
            "",
            "unfinished",
            None,
        ),
        (
            SpinRefinementVerdict::Unfinished(Incomplete::Time),
            "NOT VERIFIED: Spin has not compared all of 1 process: the time limit was reached\n",
            "",
            "unfinished",
            Some("time"),
        ),
    ] {
        let refinement = refinement(verdict);
        assert_eq!(refinement.text(&model), format!("{first}{sizes}{rest}"));
        let record = refinement.record(&model);
        assert_eq!((record.verdict, record.limit.as_deref()), (name, limit));
        assert!(!refinement.enters_every_path());
    }
}

#[test]
fn a_violation_of_an_over_approximation_may_be_spurious() {
    let approximations = ["main.esp:3:13: `pri alt` takes any branch".to_string()];
    let verdict = |approximations: &[String]| SpinRefinementVerdict::new(&fault(Vec::new()), approximations);
    assert_eq!(verdict(&[]), SpinRefinementVerdict::Violated);
    assert_eq!(verdict(&approximations), SpinRefinementVerdict::PossiblySpurious);
}
