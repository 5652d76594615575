//! Boxes in the space of the numbers that filters compare: what a filter allows, and the part of the space that a node of
//! the tree covers.

/// The most numbers of a box.
pub(super) const NUMBERS: usize = 8;

/// What a filter allows, from low to high in each number.
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

/// Where a node is: in each number, the first, and how many bits count from there.
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
