//! Which moves of a state are enough: those of a set of instances that nobody outside the set can have to do with
//! before one of the set has moved (a persistent set, found from who can meet whom by their text). Deadlocks, faults and
//! reached code stay; a search must still take all moves where it would otherwise turn in a circle.

use crate::moves::Mover;
use crate::space::{MOST_IN_SETS, Stepping, bit};
use quaject_esp_ir::step::Step;

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

impl Mover<'_> {
    /// Puts moves that are enough to the front of those found, and returns how many they are.
    pub(crate) fn reduce(&mut self, numbers: &[u32]) -> usize {
        let all = self.found.len();
        let space = self.space;
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
        let mut movers: Vec<u128> = self.found.iter().map(|found| actors(self.get(*found).step)).collect();
        let mut best: Option<(usize, u128)> = None;
        let mut tried = ended;
        for seed in 0..space.instances {
            if tried & bit(seed) != 0 {
                continue;
            }
            let set = self.closure(seed, numbers, everybody & !ended);
            tried |= bit(seed);
            let count = movers.iter().filter(|actors| **actors & set != 0).count();
            if count > 0 && count < best.map_or(all, |(count, _)| count) {
                best = Some((count, set));
                if count == 1 {
                    break;
                }
            }
        }
        let Some((count, set)) = best else { return all };
        let mut front = 0;
        for at in 0..all {
            if movers[at] & set != 0 {
                self.found.swap(front, at);
                movers.swap(front, at);
                front += 1;
            }
        }
        debug_assert_eq!(front, count);
        count
    }

    /// The least set with this instance that concerns nobody else.
    fn closure(&self, seed: usize, numbers: &[u32], among: u128) -> u128 {
        let mut set = bit(seed);
        let mut open = set;
        while open != 0 {
            let instance = open.trailing_zeros() as usize;
            open &= open - 1;
            let concerned = self.info(instance as u32, numbers[instance]).concerns & among & !set;
            set |= concerned;
            open |= concerned;
        }
        set
    }
}
