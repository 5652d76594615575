//! Which moves of a state are enough: those of a set of instances that nobody outside the set can have to do with
//! before one of the set has moved (a persistent set, found from who can meet whom by their text). Deadlocks, faults and
//! reached code stay; a search must still take all moves where it would otherwise turn in a circle.
//!
//! Where the world and the clock alone could go on, the program rests until they do, and may be deadlocked in part. Such
//! a state must not be missed for another message, so that one move at least of those that are enough is the program's
//! own: it stays possible until somebody of the set moves, and no program rests before that.

use super::SuccessorGenerator;
use crate::exploration_plan::SuccessorMode;
use crate::instance_set::{MAX_SET_INSTANCES, first_instances, instance_bit, participant_set};
use quaject_esp_exec::step::Step;

/// Whether a step waits for the world or the clock.
pub(crate) fn waits_for_environment(step: Step) -> bool {
    match step {
        Step::FromEnvironment { .. } | Step::ToEnvironment { .. } | Step::After { .. } => true,
        Step::Communicate { .. } | Step::Local { .. } | Step::Else { .. } => false,
    }
}

impl SuccessorGenerator<'_> {
    /// Whether the program rests in the state whose moves were found: only the world and the clock could go on.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.enabled.iter().all(|found| waits_for_environment(self.get(*found).step))
    }

    /// Puts moves that are enough to the front of those found, and returns how many they are.
    pub(crate) fn reduce(&mut self, numbers: &[u32]) -> usize {
        let all = self.enabled.len();
        let plan = self.plan;
        if all >= 2 && plan.successor_mode == SuccessorMode::Monolithic {
            return self.reduce_monolithic();
        }
        if all < 2 || plan.successor_mode != SuccessorMode::EagerLocal || plan.instances > MAX_SET_INSTANCES {
            return all;
        }
        let all_instances = first_instances(plan.instances);
        let mut ended = 0;
        for (slot, component) in numbers[..plan.instances].iter().enumerate() {
            if self.cached_local(slot as u32, *component).ended {
                ended |= instance_bit(slot);
            }
        }
        let mut participant_sets = std::mem::take(&mut self.participant_sets);
        participant_sets.clear();
        participant_sets.extend(self.enabled.iter().map(|found| participant_set(self.get(*found).step)));
        // Those of whom the program itself can move one.
        let steps = self.enabled.iter().map(|found| self.get(*found).step);
        let own = steps.filter(|step| !waits_for_environment(*step)).fold(0, |own, step| own | participant_set(step));
        if own == 0 {
            self.participant_sets = participant_sets;
            return all;
        }
        let mut best: Option<(usize, u128)> = None;
        // Those whose sets somebody moves in: a set that holds one of them holds all of its set and is no better.
        let mut seeds = 0;
        for seed in 0..plan.instances {
            if ended & instance_bit(seed) != 0 {
                continue;
            }
            let Some(set) = self.dependency_closure(seed, numbers, all_instances & !ended, seeds) else { continue };
            let count = participant_sets.iter().filter(|participants| **participants & set != 0).count();
            if count > 0 {
                seeds |= instance_bit(seed);
            }
            if set & own != 0 && count < best.map_or(all, |(count, _)| count) {
                best = Some((count, set));
                if count == 1 {
                    break;
                }
            }
        }
        let Some((count, set)) = best else {
            self.participant_sets = participant_sets;
            return all;
        };
        let mut front = 0;
        for at in 0..all {
            if participant_sets[at] & set != 0 {
                self.enabled.swap(front, at);
                participant_sets.swap(front, at);
                front += 1;
            }
        }
        debug_assert_eq!(front, count);
        self.participant_sets = participant_sets;
        count
    }

    /// The least set with this instance that concerns nobody else; nothing if one of `without` is in it.
    fn dependency_closure(&self, seed: usize, numbers: &[u32], among: u128, without: u128) -> Option<u128> {
        let mut set = instance_bit(seed);
        let mut open = set;
        while open != 0 {
            let instance = open.trailing_zeros() as usize;
            open &= open - 1;
            let dependents = self.cached_local(instance as u32, numbers[instance]).dependents & among & !set;
            if dependents & without != 0 {
                return None;
            }
            set |= dependents;
            open |= dependents;
        }
        Some(set)
    }
}
