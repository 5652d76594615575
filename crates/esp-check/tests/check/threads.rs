//! Searches by several threads: levels of thousands of states give the same states and depths for every number of
//! threads.

use crate::support::{UNREDUCED, explore, model};
use quaject_esp_check::{Compaction, Limit, Limits, Options, Reduction, Verdict};

/// Every order of communications, by one thread, with a generous state limit.
const ORDERS: Options = Options {
    reduction: Reduction::Communications,
    limits: Limits { states: Some(1_000_000), ..UNREDUCED.limits },
    ..UNREDUCED
};

/// Dining philosophers, the first of which is left-handed; `max_meals` limits the meals of the last one.
fn philosophers(number: u32, max_meals: u32) -> String {
    format!(
        "const N = {number};
         channel pickC(pid(fork)); channel dropC(pid(fork));
         process fork[N] {{ while {{ idle in(pickC, @); in(dropC, @); }} }}
         process philosopher[N] {{
           var left = int(@), right = (int(@) + 1) % N, meals = 0;
           if (int(@) == 0) {{ left = 1; right = 0; }}
           while {{
             out(pickC, @fork[left]);
             out(pickC, @fork[right]);
             if (int(@) == N - 1 && {max_meals} > 0) {{ meals += 1; assert(meals < {max_meals}); }}
             out(dropC, @fork[left]);
             out(dropC, @fork[right]);
           }}
         }}"
    )
}

#[test]
fn every_number_of_threads_finds_all_states() {
    let model = model(&philosophers(9, 0), None);
    for compaction in [Compaction::Off, Compaction::On] {
        for threads in [1, 2, 3, 7] {
            let report = explore(&model, &Options { threads, compaction, ..ORDERS });
            assert_eq!(report.verdict, Verdict::Holds, "{threads} threads");
            // Each fork is free, or held by one of two.
            assert_eq!(report.states, 3u64.pow(9), "{threads} threads, {compaction:?}");
            let alone = explore(&model, &Options { compaction, ..ORDERS });
            assert_eq!((report.transitions, report.depth), (alone.transitions, alone.depth), "{threads} threads");
        }
    }
}

#[test]
fn every_number_of_threads_finds_a_shortest_run() {
    let model = model(&philosophers(9, 3), None);
    for reduction in [Reduction::Communications, Reduction::On] {
        let mut lengths = Vec::new();
        for threads in [1, 2, 3, 7] {
            let report = explore(&model, &Options { threads, reduction, ..ORDERS });
            let Verdict::Violated(found) = report.verdict else { panic!("{threads} threads: {:?}", report.verdict) };
            assert_eq!(found.violation.name(), "assert", "{threads} threads");
            lengths.push(found.steps.len());
        }
        assert!(lengths.iter().all(|length| *length == lengths[0]), "{reduction:?}: {lengths:?}");
    }
}

/// Limits in sequential levels, in parallel levels, and between them.
#[test]
fn every_number_of_threads_respects_limits() {
    let model = model(&philosophers(9, 0), None);
    for threads in [1, 2, 3, 7] {
        for states in [0, 1, 2, 10, 250, 300, 1_000, 5_000, 10_000, 15_000, 19_000] {
            let limits = Limits { states: Some(states), ..ORDERS.limits };
            let report = explore(&model, &Options { threads, limits, ..ORDERS });
            assert_eq!(report.verdict, Verdict::Unfinished(Limit::States.into()), "{threads} threads, {states} states");
            assert!(report.states > states, "{threads} threads, {states} states: {}", report.states);
        }
        let bytes = Limits { bytes: Some(200_000), ..ORDERS.limits };
        let report = explore(&model, &Options { threads, limits: bytes, ..ORDERS });
        assert_eq!(report.verdict, Verdict::Unfinished(Limit::Memory.into()), "{threads} threads");
    }
}
