//! One thread, random operations: every kind does what the forms of 1989 and a plain `VecDeque` do.

use std::collections::VecDeque;

use quaject_test_support::{Effort, Random};

use crate::forms_1989::{MpSc, SpSc};
use crate::kinds::KINDS;

#[test]
fn every_kind_agrees_with_the_model_and_the_forms_of_1989() {
    let rounds = if cfg!(miri) { 30 } else { Effort::wanted().pick(5_000, 50_000, 2_000_000) };
    for kind in KINDS {
        for capacity in if cfg!(miri) { &[2][..] } else { &[1, 2, 4, 8] } {
            let capacity = *capacity;
            let (mut push, mut pop) = (kind.make)(capacity);
            let (figure_1, figure_2) = (SpSc::new(capacity), MpSc::new(capacity));
            let mut model: VecDeque<u64> = VecDeque::new();
            let mut random = Random(0x9e37_79b9_7f4a_7c15 + capacity as u64);
            for round in 0..rounds {
                match random.below(4) {
                    0 => {
                        let fits = model.len() < capacity;
                        assert_eq!(push.push(round), fits, "{} {capacity}: push in round {round}", kind.name);
                        assert_eq!(figure_1.put(round), fits);
                        assert_eq!(figure_2.put(&[round]), fits);
                        model.extend(fits.then_some(round));
                    }
                    1 => {
                        let count = random.below(capacity as u64 + 1);
                        let items: Vec<u64> = (0..count).map(|offset| round << 8 | offset).collect();
                        let fits = model.len() + items.len() <= capacity;
                        assert_eq!(push.push_all(&items), fits, "{} {capacity}: push_all in {round}", kind.name);
                        assert_eq!(figure_2.put(&items), fits);
                        if fits {
                            items.iter().for_each(|item| assert!(figure_1.put(*item)));
                            model.extend(items);
                        }
                    }
                    2 => {
                        let expected = model.pop_front();
                        assert_eq!(pop.pop(), expected, "{} {capacity}: pop in round {round}", kind.name);
                        assert_eq!(figure_1.get(), expected);
                        assert_eq!(figure_2.get(), expected);
                    }
                    3.. => {
                        let max = random.below(capacity as u64 + 2) as usize;
                        let taken = pop.pop_some(max);
                        assert!(taken.len() <= max);
                        assert!(!taken.is_empty() || max == 0 || model.is_empty(), "{}: missed items", kind.name);
                        for item in taken {
                            assert_eq!(Some(item), model.pop_front(), "{} {capacity}: round {round}", kind.name);
                            assert_eq!(figure_1.get(), Some(item));
                            assert_eq!(figure_2.get(), Some(item));
                        }
                    }
                }
            }
        }
    }
}
