//! Several threads, more than processors too: nothing lost, nothing twice, order per producer, inserts together.

use std::time::Instant;

use quaject_test_support::{Effort, HANG_TIMEOUT, Random};

use crate::kinds::{KINDS, Kind, Pop, Push, Users};

/// Producer, size of the insert, place in the insert, number of the item.
fn item(producer: u64, together: u64, place: u64, number: u64) -> u64 {
    producer << 48 | together << 40 | place << 32 | number
}

fn limit() -> Instant {
    Instant::now() + HANG_TIMEOUT
}

fn produce(mut end: Box<dyn Push>, producer: u64, count: u64, max: u64) {
    let (mut random, limit) = (Random(producer + 77), limit());
    let mut number = 0;
    while number < count {
        let together = (1 + random.below(max)).min(count - number);
        let items: Vec<u64> = (0..together).map(|place| item(producer, together, place, number + place)).collect();
        while !if together == 1 { end.push(items[0]) } else { end.push_all(&items) } {
            assert!(Instant::now() < limit, "no room");
            std::thread::yield_now();
        }
        number += together;
    }
}

/// Takes until `count` items have been taken by all consumers, and gives them in order.
fn consume(mut end: Box<dyn Pop>, taken: &std::sync::atomic::AtomicU64, count: u64, seed: u64) -> Vec<u64> {
    let (mut random, limit) = (Random(seed + 5), limit());
    let mut mine = Vec::new();
    while taken.load(std::sync::atomic::Ordering::Relaxed) < count {
        let before = mine.len();
        match random.below(2) {
            0 => mine.extend(end.pop()),
            1.. => mine.extend(end.pop_some(1 + random.below(5) as usize)),
        }
        if mine.len() == before {
            assert!(Instant::now() < limit, "no item for a minute");
            std::thread::yield_now();
        }
        taken.fetch_add((mine.len() - before) as u64, std::sync::atomic::Ordering::Relaxed);
    }
    mine
}

fn check(kind: &Kind, capacity: usize, producers: u64, consumers: u64, each: u64) {
    let max = (capacity as u64).min(4);
    let (push, pop) = (kind.make)(capacity);
    let mut pushes: Vec<_> = (1..producers).map(|_| push.twin()).collect();
    let mut pops: Vec<_> = (1..consumers).map(|_| pop.twin()).collect();
    pushes.push(push);
    pops.push(pop);
    let taken = std::sync::atomic::AtomicU64::new(0);
    let taken: Vec<Vec<u64>> = std::thread::scope(|scope| {
        for (producer, end) in pushes.into_iter().enumerate() {
            scope.spawn(move || produce(end, producer as u64, each, max));
        }
        let consumers: Vec<_> = (pops.into_iter().enumerate())
            .map(|(seed, end)| {
                scope.spawn({
                    let taken = &taken;
                    move || consume(end, taken, producers * each, seed as u64)
                })
            })
            .collect();
        consumers.into_iter().map(|consumer| consumer.join().expect("a consumer reports")).collect()
    });
    let name = format!("{} with {capacity} slots, {producers} to {consumers}", kind.name);
    for mine in &taken {
        let mut next = vec![0; producers as usize];
        for item in mine {
            let (producer, number) = ((item >> 48) as usize, item & 0xffff_ffff);
            assert!(number >= next[producer], "{name}: out of order");
            next[producer] = number + 1;
        }
    }
    if let [all] = &taken[..] {
        for (index, item) in all.iter().enumerate() {
            let place = item >> 32 & 0xff;
            assert!(place == 0 || all[index - 1] + (1 << 32) + 1 == *item, "{name}: an insert is torn apart");
        }
    }
    let mut all: Vec<u64> = taken.concat().into_iter().map(|item| item >> 48 << 32 | item & 0xffff_ffff).collect();
    all.sort_unstable();
    let expected: Vec<u64> = (0..producers).flat_map(|p| (0..each).map(move |number| p << 32 | number)).collect();
    assert!(all == expected, "{name}: lost or doubled items");
}

#[test]
fn nothing_is_lost_doubled_reordered_or_torn_apart() {
    let each = if cfg!(miri) { 8 } else { Effort::wanted().pick(1_000, 20_000, 1_000_000) };
    for kind in KINDS {
        let many = |users| if users == Users::Many { if cfg!(miri) { &[2][..] } else { &[1, 2, 4] } } else { &[1] };
        for &producers in many(kind.producers) {
            for &consumers in many(kind.consumers) {
                for capacity in if cfg!(miri) { &[2][..] } else { &[1, 2, 64] } {
                    check(kind, *capacity, producers, consumers, each / producers);
                }
            }
        }
    }
}
