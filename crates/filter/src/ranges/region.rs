//! Boxes in the space of the numbers that filters compare: the values that a filter allows, and the region of a node of
//! the tree.

/// The most numbers of a box.
pub(super) const NUMBERS: usize = 8;

/// The values that a filter allows: a range in each number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    pub(super) low: [u32; NUMBERS],
    pub(super) high: [u32; NUMBERS],
}

impl Bounds {
    #[cfg(test)]
    pub(super) fn has(&self, numbers: &[u32; NUMBERS]) -> bool {
        (0..NUMBERS).all(|at| (self.low[at]..=self.high[at]).contains(&numbers[at]))
    }
}

/// The region of a node: in each number, the lowest value and the number of free bits.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) first: [u32; NUMBERS],
    pub(super) bits: [u32; NUMBERS],
}

impl Region {
    pub(super) fn last(&self, number: usize) -> u32 {
        self.first[number] | ones(self.bits[number])
    }
}

/// A word whose lowest `bits` bits are ones.
pub(super) fn ones(bits: u32) -> u32 {
    u32::MAX.checked_shr(32 - bits).unwrap_or(0)
}
