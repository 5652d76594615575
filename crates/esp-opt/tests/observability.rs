//! The analysis of schedule independence finds possible faults in functions through all chains of calls.

use quaject_esp_opt::observability::ScheduleIndependence;
use quaject_test_environment::compile;
use std::path::Path;

/// Whether a program is schedule-independent in which two processes call the last of these functions and a third
/// outputs their results.
fn is_independent(functions: &str, last: &str) -> bool {
    let text = format!(
        "{functions}channel c(int); channel d(int); channel o(int) external in;\n\
         process P {{ out(c, {last}(1)); }}\nprocess Q {{ in(c, $x); out(d, {last}(x)); }}\nprocess R {{ in(d, $x); out(o, x); }}\n"
    );
    ScheduleIndependence::analyze(&compile(Path::new("test.esp"), &text), false).holds()
}

/// `count` functions, each of which calls the one before `calls` times; the first returns `first`.
fn chain(count: usize, calls: usize, first: &str) -> String {
    let mut text = format!("fn f0(x: int) -> int {{ return {first}; }}\n");
    for number in 1..count {
        let call = format!("f{}(x)", number - 1);
        text.push_str(&format!("fn f{number}(x: int) -> int {{ return {}; }}\n", vec![call; calls].join(" + ")));
    }
    text
}

#[test]
fn functions_that_may_fault_are_found_through_others() {
    for count in [1, 2, 3] {
        let last = format!("f{}", count - 1);
        assert!(is_independent(&chain(count, 1, "x + 1"), &last));
        assert!(!is_independent(&chain(count, 1, "10 / x"), &last));
    }
}

/// An analysis of every call would take 2 to the power of 40 steps.
#[test]
fn functions_that_are_called_repeatedly_are_analysed_once() {
    assert!(is_independent(&chain(40, 2, "x + 1"), "f39"));
    assert!(!is_independent(&chain(40, 2, "10 / x"), "f39"));
}

/// Call chains may be deeper than the stack.
#[test]
fn call_chains_may_be_thousands_deep() {
    assert!(is_independent(&chain(10_000, 1, "x + 1"), "f9999"));
}
