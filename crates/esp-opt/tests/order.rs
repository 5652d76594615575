//! Where the order in which processes run may be seen is found whatever functions call each other.

use quaject_esp_opt::order::Order;
use quaject_test_environment::compile;
use std::path::Path;

/// Whether the order cannot be seen where two processes ask the last of these functions, and a third shows what they send.
fn is_unseen(functions: &str, last: &str) -> bool {
    let text = format!(
        "{functions}channel c(int); channel d(int); channel o(int) external in;\n\
         process P {{ out(c, {last}(1)); }}\nprocess Q {{ in(c, $x); out(d, {last}(x)); }}\nprocess R {{ in(d, $x); out(o, x); }}\n"
    );
    Order::of(&compile(Path::new("test.esp"), &text), false).is_unseen()
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
fn functions_that_may_fault_are_found_behind_others() {
    for count in [1, 2, 3] {
        let last = format!("f{}", count - 1);
        assert!(is_unseen(&chain(count, 1, "x + 1"), &last));
        assert!(!is_unseen(&chain(count, 1, "10 / x"), &last));
    }
}

/// A look at every call would take 2 to the power of 40 looks.
#[test]
fn functions_that_are_called_again_and_again_are_looked_at_once() {
    assert!(is_unseen(&chain(40, 2, "x + 1"), "f39"));
    assert!(!is_unseen(&chain(40, 2, "10 / x"), "f39"));
}

/// No stack is as deep as functions may call each other.
#[test]
fn functions_may_call_each_other_thousands_deep() {
    assert!(is_unseen(&chain(10_000, 1, "x + 1"), "f9999"));
}
