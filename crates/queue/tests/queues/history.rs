//! Linearizability of short histories, by the method of Wing and Gong: is there an order of the operations, within the
//! times at which they ran, that a sequential queue explains?
//!
//! Operations that succeed are those of a first-in first-out queue. A refusal means "not now": it is exact when no
//! other operation was under way, and may otherwise stem from one that has claimed a slot and not finished with it.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use quaject_test_support::{Effort, Random};

use crate::kinds::{KINDS, Kind, Pop, Push, Users};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Did {
    Pushed(Vec<u64>),
    FoundNoRoomFor(usize),
    Popped(u64),
    FoundNothing,
}

#[derive(Clone, Debug)]
struct Operation {
    begin: u64,
    end: u64,
    did: Did,
}

/// Whether a queue of `capacity` explains the history, which must hold at most 64 operations.
fn is_linearizable(history: &[Operation], capacity: usize) -> bool {
    let overlapped = |index: usize| {
        let me = &history[index];
        history.iter().enumerate().any(|(other, o)| other != index && o.begin < me.end && me.begin < o.end)
    };
    let excused: Vec<bool> = (0..history.len()).map(overlapped).collect();
    let mut seen = HashSet::new();
    explain(history, &excused, capacity, 0, &VecDeque::new(), &mut seen)
}

fn explain(
    history: &[Operation],
    excused: &[bool],
    capacity: usize,
    done: u64,
    queue: &VecDeque<u64>,
    seen: &mut HashSet<(u64, VecDeque<u64>)>,
) -> bool {
    if done.count_ones() as usize == history.len() {
        return true;
    }
    if !seen.insert((done, queue.clone())) {
        return false;
    }
    let open = |index: &usize| done & (1 << index) == 0;
    // Only an operation that began before every open one ended can be the next.
    let first_end = (0..history.len()).filter(open).map(|index| history[index].end).min().expect("one is open");
    (0..history.len()).filter(open).filter(|index| history[*index].begin < first_end).any(|index| {
        let mut after = queue.clone();
        let possible = match &history[index].did {
            Did::Pushed(items) => {
                after.extend(items);
                after.len() <= capacity
            }
            Did::FoundNoRoomFor(count) => excused[index] || queue.len() + count > capacity,
            Did::Popped(item) => after.pop_front() == Some(*item),
            Did::FoundNothing => excused[index] || queue.is_empty(),
        };
        possible && explain(history, excused, capacity, done | 1 << index, &after, seen)
    })
}

/// Runs `operation` between two ticks of the clock all threads share.
fn timed(clock: &AtomicU64, operation: impl FnOnce() -> Did) -> Operation {
    let begin = clock.fetch_add(1, Ordering::SeqCst);
    let did = operation();
    Operation { begin, end: clock.fetch_add(1, Ordering::SeqCst), did }
}

fn linger(random: &mut Random) {
    for _ in 0..random.below(60) {
        std::hint::spin_loop();
    }
}

fn pushes(mut end: Box<dyn Push>, clock: &AtomicU64, thread: u64, mut random: Random) -> Vec<Operation> {
    let push = |number: u64| {
        linger(&mut random);
        let items: Vec<u64> = (0..1 + random.below(2)).map(|place| thread << 16 | number << 8 | place).collect();
        timed(clock, || match if items.len() == 1 { end.push(items[0]) } else { end.push_all(&items) } {
            true => Did::Pushed(items),
            false => Did::FoundNoRoomFor(items.len()),
        })
    };
    (0..4).map(push).collect()
}

fn pops(mut end: Box<dyn Pop>, clock: &AtomicU64, mut random: Random) -> Vec<Operation> {
    let pop = |_| {
        linger(&mut random);
        timed(clock, || end.pop().map_or(Did::FoundNothing, Did::Popped))
    };
    (0..5).map(pop).collect()
}

fn history(kind: &Kind, capacity: usize, seed: u64) -> Vec<Operation> {
    let count = |users| if users == Users::Many { 2 } else { 1 };
    let (push, pop) = (kind.make)(capacity);
    let mut producers: Vec<_> = (1..count(kind.producers)).map(|_| push.twin()).collect();
    let mut consumers: Vec<_> = (1..count(kind.consumers)).map(|_| pop.twin()).collect();
    producers.push(push);
    consumers.push(pop);
    let clock = &AtomicU64::new(0);
    std::thread::scope(|scope| {
        let random = |thread| Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (thread + 1));
        let mut threads = Vec::new();
        for (thread, end) in producers.into_iter().enumerate() {
            threads.push(scope.spawn(move || pushes(end, clock, thread as u64, random(thread as u64))));
        }
        for (thread, end) in consumers.into_iter().enumerate() {
            threads.push(scope.spawn(move || pops(end, clock, random(100 + thread as u64))));
        }
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread reports")).collect()
    })
}

#[test]
fn short_histories_are_linearizable() {
    let rounds = if cfg!(miri) { 1 } else { Effort::wanted().pick(100, 2_000, 200_000) };
    for kind in KINDS {
        for seed in 0..rounds {
            let history = history(kind, 2, seed);
            assert!(is_linearizable(&history, 2), "{}: {history:#?}", kind.name);
        }
    }
}

fn at(begin: u64, end: u64, did: Did) -> Operation {
    Operation { begin, end, did }
}

#[test]
fn wrong_histories_are_seen() {
    let reordered = [
        at(0, 1, Did::Pushed(vec![1])),
        at(2, 3, Did::Pushed(vec![2])),
        at(4, 5, Did::Popped(2)),
        at(6, 7, Did::Popped(1)),
    ];
    assert!(!is_linearizable(&reordered, 2));
    let doubled = [at(0, 1, Did::Pushed(vec![1])), at(2, 3, Did::Popped(1)), at(4, 5, Did::Popped(1))];
    assert!(!is_linearizable(&doubled, 2));
    let lost = [at(0, 1, Did::Pushed(vec![1])), at(2, 3, Did::FoundNothing)];
    assert!(!is_linearizable(&lost, 2));
    let torn = [
        at(0, 9, Did::Pushed(vec![1, 2])),
        at(0, 9, Did::Pushed(vec![3])),
        at(10, 11, Did::Popped(1)),
        at(12, 13, Did::Popped(3)),
    ];
    assert!(!is_linearizable(&torn, 4));
    let too_many = [at(0, 1, Did::Pushed(vec![1, 2])), at(2, 3, Did::Pushed(vec![3]))];
    assert!(!is_linearizable(&too_many, 2));
}

#[test]
fn a_refusal_during_another_operation_is_excused() {
    let overlapping = [at(0, 5, Did::Pushed(vec![1])), at(1, 2, Did::FoundNothing), at(6, 7, Did::Popped(1))];
    assert!(is_linearizable(&overlapping, 1));
}
