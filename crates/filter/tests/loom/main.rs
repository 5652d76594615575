//! All interleavings and all C11 executions of small programs over what readers and the writer share, by loom: `sound`
//! compiles the epochs and the table as they are, each `weak_*` with one memory order taken away, and must be caught.

mod models;
mod sound;
mod weak_advance;
mod weak_barrier;
mod weak_give_back;
mod weak_publish;

models::models!(sound, as_they_are);
models::models!(weak_barrier, unordered_barriers);
models::models!(weak_advance, unordered_pinning);
models::models!(weak_give_back, unordered_unpinning);
models::models!(weak_publish, unordered_publishing);

#[test]
fn what_a_pinned_reader_may_see_is_kept() {
    as_they_are::kept_while_pinned();
}

#[test]
fn memory_is_reused_when_no_reader_uses_it() {
    as_they_are::reused();
}

#[test]
fn a_slot_is_reused_for_another_key() {
    as_they_are::slot_changes_key();
}

#[test]
fn a_key_that_moves_is_always_found() {
    as_they_are::key_moves();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn pins_without_barrier_are_caught() {
    unordered_barriers::reused();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn pinning_without_order_is_caught() {
    unordered_pinning::reused();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn unpinning_without_order_is_caught() {
    unordered_unpinning::reused();
}

#[test]
#[should_panic(expected = "has another's rank")]
fn publishing_without_order_is_caught() {
    unordered_publishing::slot_changes_key();
}

#[test]
#[should_panic(expected = "was not found")]
fn publishing_displacements_without_order_is_caught() {
    unordered_publishing::key_moves();
}
