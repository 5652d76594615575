//! What one end of the dense queue does: the algorithm of `indexed`, apart from who owns the memory.

use super::ahead::{LINE, Use, ask, per_line};
use super::slots::{Refusal, Run};
use super::sync::{AtomicU64, Cell, GIVE_BACK, OBSERVE, PUBLISH};

/// What an end knows for itself. On lines of its own: an end is written at every operation, and the two ends may have
/// been made side by side.
#[repr(align(128))]
pub struct Lane<T> {
    pub(crate) cells: *const Cell<T>,
    pub(crate) tail: *const AtomicU64,
    pub(crate) head: *const AtomicU64,
    pub(crate) mask: u64,
    /// The producer's tail, the consumer's head.
    mine: u64,
    /// What the other's index was when last looked at.
    theirs: u64,
}

// SAFETY: the pointers lead into a queue that the end keeps alive and that may be used from any thread when items may
// move between threads.
unsafe impl<T: Send> Send for Lane<T> {}
// SAFETY: as above; through a shared reference an end only lets its owner look.
unsafe impl<T: Send> Sync for Lane<T> {}

impl<T> Lane<T> {
    /// How many items beyond a run lie those that are asked for with it: eight lines, the best of 1 to 32 between near
    /// processors and between far ones (`bench/queue`).
    const AHEAD: u64 = if size_of::<T>() == 0 { u64::MAX / 2 } else { (8 * LINE / size_of::<T>()) as u64 };

    /// An end at the beginning.
    ///
    /// # Safety
    /// `cells` points to `capacity` cells, a power of two; all three outlive the end; there is one producing and one
    /// consuming end.
    pub(crate) unsafe fn new(
        cells: *const Cell<T>,
        capacity: usize,
        tail: *const AtomicU64,
        head: *const AtomicU64,
    ) -> Self {
        Lane { cells, tail, head, mask: capacity as u64 - 1, mine: 0, theirs: 0 }
    }

    #[inline(always)]
    pub(crate) fn cell(&self, position: u64) -> &Cell<T> {
        // SAFETY: masked to an index below the number of cells.
        unsafe { &*self.cells.add((position & self.mask) as usize) }
    }

    #[inline(always)]
    fn index(&self, index: *const AtomicU64) -> &AtomicU64 {
        // SAFETY: promised to `new`.
        unsafe { &*index }
    }

    /// Asks for as many items as a run of `count` has, farther on, if all of them are known to be ours: lines that the other
    /// end is still at work on are left alone.
    #[inline(always)]
    fn ask_ahead(&self, count: u64, end: u64, purpose: Use) {
        let first = self.mine.wrapping_add(count).wrapping_add(Self::AHEAD);
        if end.wrapping_sub(self.mine) >= Self::AHEAD.saturating_add(count.saturating_mul(2)) {
            for offset in (0..count).step_by(per_line::<T>()) {
                ask(self.cell(first.wrapping_add(offset)), purpose);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn claim(&mut self, count: u64) -> Result<Run, Refusal> {
        if self.mine + count - self.theirs > self.mask + 1 {
            // Pairs with GIVE_BACK in `give_back`: what we overwrite has been read.
            self.theirs = self.index(self.head).load(OBSERVE);
            if self.mine + count - self.theirs > self.mask + 1 {
                return Err(Refusal::NotReady);
            }
        }
        self.ask_ahead(count, self.theirs + self.mask + 1, Use::Write);
        Ok(Run { first: self.mine, count })
    }

    /// # Safety
    /// The run was claimed, and all of it written.
    #[inline(always)]
    pub(crate) unsafe fn publish(&mut self, run: Run) {
        self.mine = run.first + run.count;
        // Pairs with OBSERVE in `acquire`: the items are written before they are seen.
        self.index(self.tail).store(self.mine, PUBLISH);
    }

    #[inline(always)]
    pub(crate) fn acquire(&mut self, wanted: u64) -> Result<Run, Refusal> {
        if self.theirs - self.mine < wanted {
            // Pairs with PUBLISH in `publish`: we see the items written before.
            self.theirs = self.index(self.tail).load(OBSERVE);
            if self.theirs == self.mine {
                return Err(Refusal::NotReady);
            }
        }
        self.ask_ahead(wanted, self.theirs, Use::Read);
        Ok(Run { first: self.mine, count: wanted.min(self.theirs - self.mine) })
    }

    /// # Safety
    /// The run was acquired, and all of it read.
    #[inline(always)]
    pub(crate) unsafe fn give_back(&mut self, run: Run) {
        self.mine = run.first + run.count;
        // Pairs with OBSERVE in `claim`: the items are read before they are overwritten.
        self.index(self.head).store(self.mine, GIVE_BACK);
    }
}
