//! Single steps that do not end, or have too many outcomes: limits hold there too.

use crate::support::{explore, model};
use quaject_esp_check::{Limit, Limits, Options, Problem, Reduction, Report, Verdict};
use std::time::Duration;

const ENDLESS: &str = "process p { var n: u64 = 1; while (n > 0) { n = n | 1; } }";

fn within(text: &str, limits: Limits) -> Report {
    explore(&model(text, None), &Options { limits, ..Options::default() })
}

fn briefly(text: &str) -> Verdict {
    within(text, Limits { time: Some(Duration::from_millis(10)), ..Limits::default() }).verdict
}

#[test]
fn a_computation_without_end_is_found_or_cut_short() {
    let Verdict::Violated(found) = within(ENDLESS, Limits::default()).verdict else { panic!("it does not end") };
    assert!(matches!(found.problem, Problem::Endless { instance: 0, .. }), "{:?}", found.problem);
    assert_eq!(briefly(ENDLESS), Verdict::Unfinished(Limit::Time));
}

#[test]
fn a_condition_without_end_is_found_or_cut_short() {
    let text = "channel c(u64); fn f(x: u64) -> u64 { var n = x; while (n > 0) { n = n | 1; } return n; }
        process p { out(c, 1); } process q { in(c, $x if f(x) > 0); }";
    for reduction in [Reduction::On, Reduction::Communications, Reduction::Off] {
        let options = Options { reduction, ..Options::default() };
        let Verdict::Violated(found) = explore(&model(text, None), &options).verdict else { panic!("it does not end") };
        assert!(matches!(found.problem, Problem::Endless { .. }), "{:?}", found.problem);
    }
    assert_eq!(briefly(text), Verdict::Unfinished(Limit::Time));
}

#[test]
fn a_call_that_takes_long_ends() {
    let text = "fn f(x: u64) -> u64 { var n = x; while (n < 400000) { n += 1; } return n; }
        process p { var m = f(0) + f(1) + f(2) + f(3) + f(4); assert(m == 2000000); }";
    assert_eq!(within(text, Limits::default()).verdict, Verdict::Holds);
}

#[test]
fn a_step_with_too_many_outcomes_is_cut_short() {
    let text = "extern fn f() -> u8; process p { var n: u32 = 0; for i in 0..4 { n = n * 3 + f(); } assert(n != 7); }";
    let text = text.replace("n * 3 + f()", "n * 3 + u32(f())").replace("n != 7", "n < 100000");
    assert_eq!(briefly(&text), Verdict::Unfinished(Limit::Time));
    let little = Limits { bytes: Some(1_000_000), ..Limits::default() };
    assert_eq!(within(&text, little).verdict, Verdict::Unfinished(Limit::Memory));
}

#[test]
fn all_searches_share_the_time() {
    let text = "channel c(u32); process p { var n: u32 = 0; while { #1 out(c, n); n = (n + 1) % 50000; } }
        process q { while { in(c, _); } }
        model m { ltl \"[] <> p@L1\"; ltl \"[] (p@L1 -> <> p@L1)\"; ltl \"<> [] !(p@L1)\"; }";
    let started = std::time::Instant::now();
    assert_eq!(briefly(text), Verdict::Unfinished(Limit::Time));
    // Each takes longer than this by itself on any machine that is not busy.
    assert!(started.elapsed() < Duration::from_secs(5));
}
