//! Refinement between programs whose conditions call pure extern functions: every table of answers is tried, and both
//! programs have the same one.

use crate::support::model;
use quaject_esp_check::{
    Limit, Limits, ObserverOutcome, Refinement, RefinementInput, RefinementVerdict, build_observer, refine,
};
use quaject_esp_ir::model::ModelProgram;

const FUNCTIONS: &str = "extern pure fn ok(u8) -> bool; channel c(u8) external out; channel d(u8) external in;";

/// A program compared with itself.
fn alone(model: &ModelProgram) -> RefinementInput<'_> {
    RefinementInput { specification: model, split_specification: &model.program, implementation: &model.program }
}

fn compared(specification: &str, implementation: &str, limits: &Limits) -> Refinement {
    let program = |body: &str| model(&format!("{FUNCTIONS}{body} model m {{ abstract range c.0 0..2; }}"), None);
    let (specification, implementation) = (program(specification), program(implementation));
    let input = RefinementInput { implementation: &implementation.program, ..alone(&specification) };
    refine(input, limits, &mut |_| {}).expect("the programs are small")
}

/// Messages that are `ok` are answered by `taken`, those with the condition by 3.
fn program(taken: u8, condition: &str) -> String {
    format!(
        "process p {{ while {{ alt {{ in(c, $x if ok(x)) {{ out(d, {taken}); }}
                                      in(c, $y if {condition}) {{ out(d, 3); }} }} }} }}"
    )
}

#[test]
fn every_answer_of_a_condition_is_compared() {
    let original = program(1, "!ok(y)");
    let same = compared(&original, &original, &Limits::default());
    assert_eq!(same.verdict, RefinementVerdict::Holds);
    assert!(same.spec_states > 0 && same.depth > 0);
    // Only a message that is `ok` shows the difference.
    let RefinementVerdict::Violated(found) = compared(&original, &program(2, "!ok(y)"), &Limits::default()).verdict
    else {
        panic!("a message that is `ok` is answered by 2 instead of 1")
    };
    assert!(!found.steps.is_empty(), "{:?}", found.mismatch);
}

#[test]
fn both_programs_have_the_same_answers() {
    // The original answers 1 if 0 is `ok`, the other one if it is not: each alone has the same messages.
    let text = |condition: &str| {
        format!(
            "process p {{ alt {{ in(c, $x if {condition}) {{ out(d, 1); }}
                                 in(c, $y if !{condition}) {{ out(d, 2); }} }} }}"
        )
    };
    let verdict = |condition: &str| compared(&text("ok(0)"), &text(condition), &Limits::default()).verdict;
    assert_eq!(verdict("ok(0)"), RefinementVerdict::Holds);
    assert!(matches!(verdict("!ok(0)"), RefinementVerdict::Violated(_)));
    assert!(matches!(verdict("ok(1)"), RefinementVerdict::Violated(_)));
}

#[test]
fn limits_are_those_of_all_tables_together() {
    let original = program(1, "!ok(y)");
    let all = compared(&original, &original, &Limits::default());
    let limits = Limits { states: Some((all.states + all.spec_states) / 2), ..Limits::default() };
    let part = compared(&original, &original, &limits);
    assert_eq!(part.verdict, RefinementVerdict::Unfinished(Limit::States));
}

/// The number of tables is exponential in that of the questions.
#[test]
fn too_many_tables_are_no_verdict() {
    let text = "process p { while { in(c, $x if ok(x)); out(d, 1); } } model m { abstract range c.0 0..13; }";
    let model = model(&format!("{FUNCTIONS}{text}"), None);
    let report = refine(alone(&model), &Limits::default(), &mut |_| {}).expect("the program is small");
    assert_eq!(report.verdict, RefinementVerdict::Unfinished(Limit::Answers));
    assert!(report.text(&model).contains("can answer in more than 4096 ways"), "{}", report.text(&model));
}

#[test]
fn an_observer_of_open_conditions_is_refused() {
    let text = format!("{FUNCTIONS}{} model m {{ abstract range c.0 0..2; }}", program(1, "!ok(y)"));
    let model = model(&text, None);
    let outcome = build_observer(alone(&model), &Limits::default()).expect("the program is small");
    assert!(matches!(outcome, ObserverOutcome::OpenFunction(_)), "{outcome:?}");
}
