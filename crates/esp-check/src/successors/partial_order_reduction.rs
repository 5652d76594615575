//! Partial-order reduction by persistent sets (Godefroid, "Partial-Order Methods for the Verification of Concurrent
//! Systems", 1996; Valmari's stubborn sets, 1990).
//!
//! The transitions of a set of instances are persistent if no instance outside of the set can interact with a member
//! before a member has moved. Such a set is the closure of one instance under dependency: what the instance can do in
//! its present component state, against everything the code of the others can ever do. The reduction preserves
//! deadlocks, faults and reachable code. The cycle proviso (ignoring problem) is the search's part: where the reduced
//! successors are all known, it takes the remaining transitions too.
//!
//! A state in which only the environment or the clock can act is quiescent, and some of its instances may be
//! deadlocked. The reduction must not skip such a state in favour of another message from the environment. So at least
//! one transition of the subset is the program's own: it stays enabled until a member of the set moves, and no state
//! before that is quiescent.

use super::SuccessorGenerator;
use crate::exploration_plan::SuccessorMode;
use crate::instance_set::{MAX_SET_INSTANCES, first_instances, instance_bit, participant_set};
use quaject_esp_exec::step::Step;

/// Whether a step waits for the environment or the clock.
pub(crate) fn waits_for_environment(step: Step) -> bool {
    match step {
        Step::FromEnvironment { .. } | Step::ToEnvironment { .. } | Step::After { .. } => true,
        Step::Communicate { .. } | Step::Local { .. } | Step::Else { .. } => false,
    }
}

impl SuccessorGenerator<'_> {
    /// Whether the state whose transitions were computed is quiescent: only the environment and the clock can act.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.enabled.iter().all(|transition| waits_for_environment(self.get(*transition).step))
    }

    /// Moves a persistent subset of the enabled transitions to the front and returns its size.
    pub(crate) fn persistent_subset(&mut self, state_vector: &[u32]) -> usize {
        self.persistent_subset_of(state_vector, &|_| true)
    }

    /// As [`Self::persistent_subset`]: a subset of eligible steps, or all.
    pub(crate) fn persistent_subset_of(&mut self, state_vector: &[u32], is_eligible: &dyn Fn(Step) -> bool) -> usize {
        let all = self.enabled.len();
        let plan = self.plan;
        if all >= 2 && plan.successor_mode == SuccessorMode::Monolithic {
            return self.persistent_subset_monolithic(is_eligible);
        }
        if all < 2 || plan.successor_mode != SuccessorMode::EagerLocal || plan.instances > MAX_SET_INSTANCES {
            return all;
        }
        let all_instances = first_instances(plan.instances);
        let mut ended = 0;
        for (instance, component) in state_vector[..plan.instances].iter().enumerate() {
            if self.cached_local(instance as u32, *component).ended {
                ended |= instance_bit(instance);
            }
        }
        let mut participant_sets = std::mem::take(&mut self.participant_sets);
        participant_sets.clear();
        participant_sets.extend(self.enabled.iter().map(|transition| participant_set(self.get(*transition).step)));
        // The instances that take part in a transition of the program's own.
        let steps = self.enabled.iter().map(|transition| self.get(*transition).step);
        let own = steps.filter(|step| !waits_for_environment(*step)).fold(0, |own, step| own | participant_set(step));
        if own == 0 {
            self.participant_sets = participant_sets;
            return all;
        }
        let mut best: Option<(usize, u128)> = None;
        // Instances whose closure has enabled transitions: a closure that contains one of them contains its closure and
        // is no smaller.
        let mut seeds = 0;
        for seed in 0..plan.instances {
            if ended & instance_bit(seed) != 0 {
                continue;
            }
            let Some(set) = self.dependency_closure(seed, state_vector, all_instances & !ended, seeds) else {
                continue;
            };
            let count = participant_sets.iter().filter(|participants| **participants & set != 0).count();
            if count > 0 {
                seeds |= instance_bit(seed);
            }
            let are_eligible = || {
                let mut chosen = self.enabled.iter().zip(&participant_sets).filter(|(_, own)| **own & set != 0);
                chosen.all(|(transition, _)| is_eligible(self.get(*transition).step))
            };
            if set & own != 0 && count < best.map_or(all, |(count, _)| count) && are_eligible() {
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

    /// The least set with this instance that is closed under dependency; none if it contains an instance of `without`.
    fn dependency_closure(&self, seed: usize, state_vector: &[u32], among: u128, without: u128) -> Option<u128> {
        let mut set = instance_bit(seed);
        let mut open = set;
        while open != 0 {
            let instance = open.trailing_zeros() as usize;
            open &= open - 1;
            let dependents = self.cached_local(instance as u32, state_vector[instance]).dependents & among & !set;
            if dependents & without != 0 {
                return None;
            }
            set |= dependents;
            open |= dependents;
        }
        Some(set)
    }
}
