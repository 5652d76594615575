//! Levels of thousands of states, which threads divide among them and hand each other: whatever their number, they find
//! the same states on the same ways.

use crate::support::{UNREDUCED, explore, model};
use quaject_esp_check::{Compaction, Limit, Limits, Options, Reduction, Verdict};

/// Every order of communications, by one thread; far more states than there are end the search.
const ORDERS: Options = Options {
    reduction: Reduction::Communications,
    limits: Limits { states: Some(1_000_000), ..UNREDUCED.limits },
    ..UNREDUCED
};

/// Philosophers, the first of whom is left-handed, and how often the last one may take up both forks.
fn philosophers(number: u32, most_meals: u32) -> String {
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
             if (int(@) == N - 1 && {most_meals} > 0) {{ meals += 1; assert(meals < {most_meals}); }}
             out(dropC, @fork[left]);
             out(dropC, @fork[right]);
           }}
         }}"
    )
}

#[test]
fn all_states_are_found_by_any_number_of_threads() {
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
fn a_shortest_run_is_found_by_any_number_of_threads() {
    let model = model(&philosophers(9, 3), None);
    for reduction in [Reduction::Communications, Reduction::On] {
        let mut lengths = Vec::new();
        for threads in [1, 2, 3, 7] {
            let report = explore(&model, &Options { threads, reduction, ..ORDERS });
            let Verdict::Violated(found) = report.verdict else { panic!("{threads} threads: {:?}", report.verdict) };
            assert_eq!(found.problem.name(), "assert", "{threads} threads");
            lengths.push(found.steps.len());
        }
        assert!(lengths.iter().all(|length| *length == lengths[0]), "{reduction:?}: {lengths:?}");
    }
}

/// In small levels, in levels that are divided, and between them.
#[test]
fn searches_by_any_number_of_threads_end_at_limits() {
    let model = model(&philosophers(9, 0), None);
    for threads in [1, 2, 3, 7] {
        for states in [0, 1, 2, 10, 250, 300, 1_000, 5_000, 10_000, 15_000, 19_000] {
            let limits = Limits { states: Some(states), ..ORDERS.limits };
            let report = explore(&model, &Options { threads, limits, ..ORDERS });
            assert_eq!(report.verdict, Verdict::Unfinished(Limit::States), "{threads} threads, {states} states");
            assert!(report.states > states, "{threads} threads, {states} states: {}", report.states);
        }
        let bytes = Limits { bytes: Some(200_000), ..ORDERS.limits };
        let report = explore(&model, &Options { threads, limits: bytes, ..ORDERS });
        assert_eq!(report.verdict, Verdict::Unfinished(Limit::Memory), "{threads} threads");
    }
}
