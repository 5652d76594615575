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

/// A set of registers of one file, by number.
pub(crate) type Set = u64;

/// The state of one register file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    /// Not handed out.
    pub(crate) free: Set,
    /// Callee-saved registers that were handed out at some time.
    pub(crate) touched: Set,
    /// Temporaries that stand in for callee-saved registers: saved around every call.
    pub(crate) standing: Set,
}

/// The set of the registers in a list.
pub(crate) const fn set_of(list: &[u8]) -> Set {
    let mut set = 0;
    let mut index = 0;
    while index < list.len() {
        set |= 1 << list[index];
        index += 1;
    }
    set
}

/// A register that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) number: u8,
    /// A temporary that must be saved around calls.
    pub(crate) stands_in: bool,
}

impl File {
    #[inline(always)]
    fn first_free(&self, list: &[u8]) -> Option<u8> {
        list.iter().copied().find(|number| self.free & (1 << number) != 0)
    }

    /// Takes a register. In a leaf nothing destroys temporaries, so they serve as persistent ones and come first.
    #[inline(always)]
    pub(crate) fn take(&mut self, lists: &Lists, class: Class, leaf: bool) -> Option<Taken> {
        let temporary_first = class == Class::Temporary || leaf;
        let (first, second) = if temporary_first { (lists.temp, lists.saved) } else { (lists.saved, lists.temp) };
        let number = self.first_free(first).or_else(|| self.first_free(second))?;
        self.free &= !(1 << number);
        let saved = lists.preserved & (1 << number) != 0;
        self.touched |= lists.preserved & (1 << number);
        let stands_in = class == Class::Persistent && !leaf && !saved;
        if stands_in {
            self.standing |= 1 << number;
        }
        Some(Taken { number, stands_in })
    }

    /// Takes a particular register; false if it is taken or not ours to give.
    pub(crate) fn claim(&mut self, lists: &Lists, number: u8) -> bool {
        if self.free & (1 << number) == 0 {
            return false;
        }
        self.free &= !(1 << number);
        self.touched |= lists.preserved & (1 << number);
        true
    }

    /// Gives a register back.
    pub(crate) fn give(&mut self, lists: &Lists, number: u8) {
        self.free |= lists.all & (1 << number);
        self.standing &= !(1 << number);
    }
}
