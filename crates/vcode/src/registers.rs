//! Register allocation by priority and class: a set of free registers per file, and the order to take them in.

use crate::machine::Lists;

/// What a register must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nothing: a call may destroy it.
    Temporary,
    /// Calls.
    Persistent,
}

/// A set of registers of one file, by position in the order of allocation.
pub(crate) type Set = u64;

/// The state of one register file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    /// Not handed out.
    pub(crate) free: Set,
    /// Callee-saved registers that were handed out at some time.
    pub(crate) touched: Set,
    /// Registers that stand in for those that outlive calls: saved around every call.
    pub(crate) standing: Set,
}

/// A register that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) number: u8,
    /// A temporary that must be saved around calls.
    pub(crate) stands_in: bool,
}

impl File {
    /// Takes a register. In a leaf nothing destroys temporaries, so they serve as persistent ones and come first.
    /// Elsewhere those come first that are `lasting`, which outlive calls; and the register of results cannot stand in for
    /// one of them: restoring it would destroy the result.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        lists: &Lists,
        class: Class,
        leaf: bool,
        result: u8,
        lasting: impl FnOnce() -> Set,
    ) -> Option<Taken> {
        let temporary_first = class == Class::Temporary || leaf;
        let lasting = if temporary_first { 0 } else { self.free & lasting() };
        let others = if temporary_first { self.free } else { self.free & !lists.bit(result) };
        let wanted = if lasting == 0 { others } else { lasting };
        if wanted == 0 {
            return None;
        }
        let bit = wanted & wanted.wrapping_neg();
        self.free ^= bit;
        self.touched |= bit & lists.preserved;
        let stands_in = !temporary_first && lasting == 0;
        if stands_in {
            self.standing |= bit;
        }
        Some(Taken { number: lists.at(bit.trailing_zeros()), stands_in })
    }

    /// Takes a particular register; false if it is taken or not ours to give.
    pub(crate) fn claim(&mut self, lists: &Lists, number: u8) -> bool {
        let bit = lists.bit(number);
        if self.free & bit == 0 {
            return false;
        }
        self.free ^= bit;
        self.touched |= lists.preserved & bit;
        true
    }

    /// Gives a register back.
    pub(crate) fn give(&mut self, lists: &Lists, number: u8) {
        let bit = lists.bit(number);
        self.free |= bit;
        self.standing &= !bit;
    }

    /// Marks a register as taken, such as one in which a parameter arrives.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, lists: &Lists, number: u8) {
        self.free &= !lists.bit(number);
    }
}
