//! Limits within a single step: non-termination, and too many outcomes.

use crate::support::{explore, model};
use quaject_esp_check::{Interrupt, Limit, Limits, Options, Reduction, Report, Timer, Verdict, ViolationKind};
use quaject_test_support::{HANG_TIMEOUT, quick_run};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// It terminates, after more steps than the checker takes.
const LONG: &str = "process p { var n: u32 = 0, s: u32 = 1; while (n < 40000000) { s = s * 1664525 + n; n += 1; } }";
const NON_TERMINATING: &str = "process p { var n: u64 = 1; while (n > 0) { n = n | 1; } }";

fn now() -> Duration {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed()
}

fn within(text: &str, limits: Limits) -> Report {
    explore(&model(text, None), &Options { limits, ..Options::default() })
}

fn within_10_ms(text: &str) -> Verdict {
    within(text, Limits { timer: Some(Timer::limited(now, Duration::from_millis(10))), ..Limits::default() }).verdict
}

#[test]
fn a_non_terminating_computation_is_found() {
    let Verdict::Violated(found) = within(NON_TERMINATING, Limits::default()).verdict else {
        panic!("it does not end")
    };
    assert!(matches!(found.violation, ViolationKind::NonTermination { instance: 0, .. }), "{:?}", found.violation);
}

#[test]
fn long_computations_and_conditions_end_at_the_time_limit() {
    let condition = "channel c(u64); fn f(x: u64) -> u64 { var n = x; while (n < 40000000) { n += 1; } return n; }
        process p { out(c, 1); } process q { in(c, $x if f(x) > 0); }";
    for text in [LONG, condition] {
        assert_eq!(within_10_ms(text), Verdict::Unfinished(Limit::Time.into()));
    }
}

/// A computation that does not repeat a state may terminate.
#[test]
fn a_long_computation_is_no_violation() {
    if quick_run("67 million steps of local code") {
        return;
    }
    assert_eq!(within(LONG, Limits::default()).verdict, Verdict::Unfinished(Limit::LocalSteps.into()));
}

/// Objects are part of the state: here they alone change.
#[test]
fn a_state_does_not_repeat_while_an_object_changes() {
    let text = "type cellT = array[1] of u32; pool cellT 2;
        process p { var c: #cellT = #[0]; while (c[0] < 200000) { c[0] = c[0] + 1; } }";
    assert_eq!(within(text, Limits::default()).verdict, Verdict::Holds);
}

#[test]
fn a_state_repeats_after_a_long_period() {
    let text = "process p { var n: u16 = 0; while { n = n + 1; } }";
    let Verdict::Violated(found) = within(text, Limits::default()).verdict else { panic!("it does not end") };
    assert!(matches!(found.violation, ViolationKind::NonTermination { .. }), "{:?}", found.violation);
}

#[test]
fn a_non_terminating_condition_is_found() {
    let text = "channel c(u64); fn f(x: u64) -> u64 { var n = x; while (n > 0) { n = n | 1; } return n; }
        process p { out(c, 1); } process q { in(c, $x if f(x) > 0); }";
    for reduction in [Reduction::On, Reduction::Communications, Reduction::Off] {
        let options = Options { reduction, ..Options::default() };
        let Verdict::Violated(found) = explore(&model(text, None), &options).verdict else { panic!("it does not end") };
        assert!(matches!(found.violation, ViolationKind::NonTermination { .. }), "{:?}", found.violation);
    }
}

#[test]
fn a_long_call_terminates() {
    let text = "fn f(x: u64) -> u64 { var n = x; while (n < 400000) { n += 1; } return n; }
        process p { var m = f(0) + f(1) + f(2) + f(3) + f(4); assert(m == 2000000); }";
    assert_eq!(within(text, Limits::default()).verdict, Verdict::Holds);
}

#[test]
fn a_step_with_too_many_outcomes_ends_at_a_limit() {
    let text = "extern fn f() -> u8; process p { var n: u32 = 0; for i in 0..4 { n = n * 3 + f(); } assert(n != 7); }";
    let text = text.replace("n * 3 + f()", "n * 3 + u32(f())").replace("n != 7", "n < 100000");
    assert_eq!(within_10_ms(&text), Verdict::Unfinished(Limit::Time.into()));
    let little = Limits { bytes: Some(1_000_000), ..Limits::default() };
    assert_eq!(within(&text, little).verdict, Verdict::Unfinished(Limit::Memory.into()));
}

#[test]
fn all_searches_share_the_time_limit() {
    let text = "channel c(u32); process p { var n: u32 = 0; while { #1 out(c, n); n = (n + 1) % 50000; } }
        process q { while { in(c, _); } }
        model m { ltl \"[] <> p@L1\"; ltl \"[] (p@L1 -> <> p@L1)\"; ltl \"<> [] !(p@L1)\"; }";
    let started = std::time::Instant::now();
    assert_eq!(within_10_ms(text), Verdict::Unfinished(Limit::Time.into()));
    // Without a limit, each search takes longer.
    assert!(started.elapsed() < HANG_TIMEOUT);
}

/// A process whose `x` goes through 0, 1 and 2, and a property of it.
fn counts(property: &str) -> String {
    format!(
        "channel c(); process p {{ var x = 0; while {{ out(c); x = (x + 1) % 3; }} }} process q {{ while {{ in(c); }} }}
        model m {{ ltl \"{property}\"; }}"
    )
}

fn joined(numbers: std::ops::Range<u32>, sign: &str, part: &dyn Fn(u32) -> String) -> String {
    numbers.map(part).collect::<Vec<_>>().join(sign)
}

#[test]
fn the_automaton_of_a_property_ends_at_a_limit() {
    // The negation has 2 to the 20 combinations of postponed goals.
    let pair = |number| format!("([] (p:x != {}) || <> (p:x >= {number}))", number + 3);
    let text = counts(&format!("!({})", joined(0..20, " && ", &pair)));
    let started = Instant::now();
    let limits = Limits { timer: Some(Timer::limited(now, Duration::from_millis(100))), ..Limits::default() };
    assert_eq!(within(&text, limits).verdict, Verdict::Unfinished(Limit::Time.into()));
    assert!(started.elapsed() < HANG_TIMEOUT, "{:?}", started.elapsed());
    let little = Limits { bytes: Some(300_000), ..Limits::default() };
    assert_eq!(within(&text, little).verdict, Verdict::Unfinished(Limit::Memory.into()));
    let wish = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            wish.store(true, Ordering::Relaxed);
        });
        let interrupted = Limits { interrupt: Some(Interrupt(Arc::clone(&wish))), ..Limits::default() };
        assert_eq!(within(&text, interrupted).verdict, Verdict::Unfinished(Limit::Interrupted.into()));
    });
}

#[test]
fn many_fairness_conditions_are_cheap() {
    let started = Instant::now();
    let fair = |count| joined(0..count, " && ", &|number| format!("[] <> (p:x == {number})"));
    for count in [10, 60] {
        assert_eq!(within(&counts(&format!("!({})", fair(count))), Limits::default()).verdict, Verdict::Holds);
        let report = within(&counts(&fair(count)), Limits::default());
        assert!(matches!(report.verdict, Verdict::Violated(_)), "{count}");
    }
    for property in [fair(3), format!("({}) -> [] <> (p:x == 3)", fair(10))] {
        assert_eq!(within(&counts(&property), Limits::default()).verdict, Verdict::Holds, "{property}");
    }
    assert!(started.elapsed() < HANG_TIMEOUT, "{:?}", started.elapsed());
}

#[test]
fn a_property_may_have_more_than_64_goals() {
    for (least, holds) in [(3, true), (2, false)] {
        let goal = |number| format!("!((p:x < {}) U (p:x == {}))", 5 + number % 2, least + number / 2);
        for count in [1, 63, 64, 65, 100] {
            let report = within(&counts(&joined(0..count, " && ", &goal)), Limits::default());
            assert_eq!(report.verdict == Verdict::Holds, holds, "{count} from {least}: {:?}", report.verdict);
        }
    }
}
