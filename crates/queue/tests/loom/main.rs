//! All interleavings and all C11 executions of small programs over the algorithms, by loom. `sound` compiles the
//! algorithm's files with loom's atomics; each `weak_*` does so with one memory order taken away, and must be caught,
//! by the text of its panic: with contention loom may also die of its branch limit, which proves nothing.

mod models;
mod sound;
mod weak_barrier;
mod weak_give_back;
mod weak_publish;

models::models!(sound, as_they_are);
models::models!(weak_publish, unordered_publishing);
models::models!(weak_give_back, unordered_giving_back);
models::models!(weak_barrier, unordered_bells);

#[test]
fn one_producer_one_consumer() {
    as_they_are::one_to_one();
}

#[test]
fn one_producer_one_consumer_dense() {
    as_they_are::dense();
}

#[test]
fn many_producers_insert_several_at_once() {
    as_they_are::many_to_one::<as_they_are::Threads>();
}

#[test]
fn many_producers_of_many_processes_insert_several_at_once() {
    as_they_are::many_to_one::<as_they_are::Processes>();
}

#[test]
fn many_consumers() {
    as_they_are::one_to_many::<as_they_are::Threads>();
}

#[test]
fn many_consumers_of_many_processes() {
    as_they_are::one_to_many::<as_they_are::Processes>();
}

#[test]
fn many_producers_and_many_consumers() {
    as_they_are::many_to_many::<as_they_are::Threads>();
}

#[test]
fn many_producers_and_many_consumers_of_many_processes() {
    as_they_are::many_to_many::<as_they_are::Processes>();
}

#[test]
fn no_wake_up_is_lost() {
    as_they_are::bells();
}

#[test]
fn calls_and_answers() {
    as_they_are::calls();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn calls_without_order_are_caught() {
    unordered_publishing::calls();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn publishing_without_order_is_caught() {
    unordered_publishing::one_to_one();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn publishing_indices_without_order_is_caught() {
    unordered_publishing::dense();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn publishing_without_order_is_caught_among_many() {
    unordered_publishing::one_to_many::<unordered_publishing::Threads>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn giving_back_without_order_is_caught() {
    unordered_giving_back::one_to_one();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn giving_back_indices_without_order_is_caught() {
    unordered_giving_back::dense();
}

#[test]
#[should_panic(expected = "slept through it")]
fn bells_without_barrier_are_caught() {
    unordered_bells::bells();
}
