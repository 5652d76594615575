//! One end of the dense queue: the algorithm of `indexed`, independent of the owner of the memory.

use super::prefetch::{Access, LINE, per_line, prefetch};
use super::slots::{Run, TryError};
use super::sync::{AtomicU64, Cell, GIVE_BACK, OBSERVE, PUBLISH};

/// The private state of an end. On separate cache lines: an end is written at every operation, and the two ends may be
/// neighbours in memory.
#[repr(align(128))]
pub struct DenseEnd<T> {
    pub(crate) cells: *const Cell<T>,
    pub(crate) tail: *const AtomicU64,
    pub(crate) head: *const AtomicU64,
    pub(crate) mask: u64,
    /// The producer's tail, the consumer's head.
    own_index: u64,
    /// The other end's index when it was last read.
    peer_index: u64,
}

// SAFETY: the pointers lead into a queue that the end keeps alive and that may be used from any thread when items may
// move between threads.
unsafe impl<T: Send> Send for DenseEnd<T> {}
// SAFETY: as above; through a shared reference an end only allows reads.
unsafe impl<T: Send> Sync for DenseEnd<T> {}

impl<T> DenseEnd<T> {
    /// The distance in items from a run to the items that are prefetched with it: eight lines, the best of 1 to 32
    /// between near processors and between far ones (`bench/queue`).
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
        DenseEnd { cells, tail, head, mask: capacity as u64 - 1, own_index: 0, peer_index: 0 }
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

    /// Prefetches `count` items at the distance `AHEAD`, if all of them are known to belong to this end:
    /// lines that the other end still uses are not touched.
    #[inline(always)]
    fn prefetch_ahead(&self, count: u64, end: u64, access: Access) {
        let first = self.own_index.wrapping_add(count).wrapping_add(Self::AHEAD);
        if end.wrapping_sub(self.own_index) >= Self::AHEAD.saturating_add(count.saturating_mul(2)) {
            for offset in (0..count).step_by(per_line::<T>()) {
                prefetch(self.cell(first.wrapping_add(offset)), access);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn claim(&mut self, count: u64) -> Result<Run, TryError> {
        if self.own_index + count - self.peer_index > self.mask + 1 {
            // Pairs with GIVE_BACK in `give_back`: what we overwrite has been read.
            self.peer_index = self.index(self.head).load(OBSERVE);
            if self.own_index + count - self.peer_index > self.mask + 1 {
                return Err(TryError::NotReady);
            }
        }
        self.prefetch_ahead(count, self.peer_index + self.mask + 1, Access::Write);
        Ok(Run { first: self.own_index, count })
    }

    /// # Safety
    /// The run was claimed, and all of it written.
    #[inline(always)]
    pub(crate) unsafe fn publish(&mut self, run: Run) {
        self.own_index = run.first + run.count;
        // Pairs with OBSERVE in `acquire`: the items are written before they are seen.
        self.index(self.tail).store(self.own_index, PUBLISH);
    }

    #[inline(always)]
    pub(crate) fn acquire(&mut self, wanted: u64) -> Result<Run, TryError> {
        if self.peer_index - self.own_index < wanted {
            // Pairs with PUBLISH in `publish`: we see the items written before.
            self.peer_index = self.index(self.tail).load(OBSERVE);
            if self.peer_index == self.own_index {
                return Err(TryError::NotReady);
            }
        }
        self.prefetch_ahead(wanted, self.peer_index, Access::Read);
        Ok(Run { first: self.own_index, count: wanted.min(self.peer_index - self.own_index) })
    }

    /// # Safety
    /// The run was acquired, and all of it read.
    #[inline(always)]
    pub(crate) unsafe fn give_back(&mut self, run: Run) {
        self.own_index = run.first + run.count;
        // Pairs with OBSERVE in `claim`: the items are read before they are overwritten.
        self.index(self.head).store(self.own_index, GIVE_BACK);
    }
}
