//! What one end of the dense queue does: the algorithm of `indexed`, apart from who owns the memory.

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

    #[inline(always)]
    pub(crate) fn claim(&mut self, count: u64) -> Result<Run, Refusal> {
        if self.mine + count - self.theirs > self.mask + 1 {
            // Pairs with GIVE_BACK in `give_back`: what we overwrite has been read.
            self.theirs = self.index(self.head).load(OBSERVE);
            if self.mine + count - self.theirs > self.mask + 1 {
                return Err(Refusal::NotReady);
            }
        }
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
