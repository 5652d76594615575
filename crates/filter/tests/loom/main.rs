//! All interleavings and all C11 executions of small programs over what readers and the writer share, by loom: `sound`
//! compiles the epochs and the table as they are, each `weak_*` with one memory order taken away, and must be caught.

mod models;
mod sound;
mod weak_barrier;
mod weak_enter;
mod weak_leave;
mod weak_publish;

models::models!(sound, as_they_are);
models::models!(weak_barrier, unordered_pins);
models::models!(weak_enter, unordered_entering);
models::models!(weak_leave, unordered_leaving);
models::models!(weak_publish, unordered_publishing);

#[test]
fn what_a_pinned_reader_may_see_is_kept() {
    as_they_are::kept_while_pinned();
}

#[test]
fn memory_is_used_again_when_nobody_looks_at_it() {
    as_they_are::used_again();
}

#[test]
fn a_slot_is_given_to_another_key() {
    as_they_are::slot_given_on();
}

#[test]
fn a_key_that_moves_is_always_found() {
    as_they_are::key_moves();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn pins_without_barrier_are_caught() {
    unordered_pins::used_again();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn entering_without_order_is_caught() {
    unordered_entering::used_again();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn leaving_without_order_is_caught() {
    unordered_leaving::used_again();
}

#[test]
#[should_panic(expected = "has another's rank")]
fn publishing_without_order_is_caught() {
    unordered_publishing::slot_given_on();
}

#[test]
#[should_panic(expected = "was not found")]
fn showing_the_way_without_order_is_caught() {
    unordered_publishing::key_moves();
}
