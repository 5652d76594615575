//! Which moves of a state are enough: those of a set of instances that nobody outside the set can have to do with
//! before one of the set has moved (a persistent set, found from who can meet whom by their text). Deadlocks, faults and
//! reached code stay; a search must still take all moves where it would otherwise turn in a circle.
//!
//! Where the world and the clock alone could go on, the program rests until they do, and may be deadlocked in part. Such
//! a state must not be missed for another message, so that one move at least of those that are enough is the program's
//! own: it stays possible until somebody of the set moves, and no program rests before that.

use crate::moves::Mover;
use crate::space::{MOST_IN_SETS, Stepping, bit};
use quaject_esp_exec::step::Step;

/// Who takes part in a step.
pub(crate) fn actors(step: Step) -> u128 {
    match step {
        Step::Communicate { sender, receiver, .. } => bit(sender as usize) | bit(receiver as usize),
        Step::Local { instance }
        | Step::FromWorld { instance, .. }
        | Step::ToWorld { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => bit(instance as usize),
    }
}

/// Whether a step waits for the world or the clock.
pub(crate) fn is_of_the_world(step: Step) -> bool {
    match step {
        Step::FromWorld { .. } | Step::ToWorld { .. } | Step::After { .. } => true,
        Step::Communicate { .. } | Step::Local { .. } | Step::Else { .. } => false,
    }
}

impl Mover<'_> {
    /// Whether the program rests in the state whose moves were found: only the world and the clock could go on.
    pub(crate) fn rests(&self) -> bool {
        self.found.iter().all(|found| is_of_the_world(self.get(*found).step))
    }

    /// Puts moves that are enough to the front of those found, and returns how many they are.
    pub(crate) fn reduce(&mut self, numbers: &[u32]) -> usize {
        let all = self.found.len();
        let space = self.space;
        if all >= 2 && space.stepping == Stepping::Whole {
            return self.reduce_whole();
        }
        if all < 2 || space.stepping != Stepping::Settled || space.instances > MOST_IN_SETS {
            return all;
        }
        let everybody = if space.instances == MOST_IN_SETS { u128::MAX } else { bit(space.instances) - 1 };
        let mut ended = 0;
        for (slot, part) in numbers[..space.instances].iter().enumerate() {
            if self.info(slot as u32, *part).ended {
                ended |= bit(slot);
            }
        }
        let mut movers = std::mem::take(&mut self.movers);
        movers.clear();
        movers.extend(self.found.iter().map(|found| actors(self.get(*found).step)));
        // Those of whom the program itself can move one.
        let steps = self.found.iter().map(|found| self.get(*found).step);
        let own = steps.filter(|step| !is_of_the_world(*step)).fold(0, |own, step| own | actors(step));
        if own == 0 {
            self.movers = movers;
            return all;
        }
        let mut best: Option<(usize, u128)> = None;
        // Those whose sets somebody moves in: a set that holds one of them holds all of its set and is no better.
        let mut seeds = 0;
        for seed in 0..space.instances {
            if ended & bit(seed) != 0 {
                continue;
            }
            let Some(set) = self.closure(seed, numbers, everybody & !ended, seeds) else { continue };
            let count = movers.iter().filter(|actors| **actors & set != 0).count();
            if count > 0 {
                seeds |= bit(seed);
            }
            if set & own != 0 && count < best.map_or(all, |(count, _)| count) {
                best = Some((count, set));
                if count == 1 {
                    break;
                }
            }
        }
        let Some((count, set)) = best else {
            self.movers = movers;
            return all;
        };
        let mut front = 0;
        for at in 0..all {
            if movers[at] & set != 0 {
                self.found.swap(front, at);
                movers.swap(front, at);
                front += 1;
            }
        }
        debug_assert_eq!(front, count);
        self.movers = movers;
        count
    }

    /// The least set with this instance that concerns nobody else; nothing if one of `without` is in it.
    fn closure(&self, seed: usize, numbers: &[u32], among: u128, without: u128) -> Option<u128> {
        let mut set = bit(seed);
        let mut open = set;
        while open != 0 {
            let instance = open.trailing_zeros() as usize;
            open &= open - 1;
            let concerned = self.info(instance as u32, numbers[instance]).concerns & among & !set;
            if concerned & without != 0 {
                return None;
            }
            set |= concerned;
            open |= concerned;
        }
        Some(set)
    }
}
