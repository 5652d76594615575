//! The queue of one producer and one consumer in which two indices delimit the full cells, so that items lie side by
//! side without a state: the least memory, and the fastest fill and drain on one processor. Figure 1 of "Threads in the
//! Synthesis kernel" with two changes: each end caches the other's index and reads the shared one only when the cached
//! one says full or empty (as in MCRingBuffer, Lee et al. 2010); and indices do not wrap around, so that no slot stays
//! empty.
//!
//! ```text
//!   tail | ...      written by the producer, read by the consumer when its copy says empty
//!   head | ...      written by the consumer, read by the producer when its copy says full
//!   item 0 | item 1 | ... | item capacity-1
//! ```
//!
//! An item that is waited for costs two line transfers (index and item), in the queues of `slots` one.

use core::marker::PhantomData;

use crate::dense_end::DenseEnd;
use crate::ends::{Ends, Queue, sealed::Sealed};
use crate::slots::{Run, Single, TryError};
use crate::storage::{Line, Storage};
use crate::sync::{AtomicU64, Cell, OBSERVE};

/// One item's memory.
#[repr(transparent)]
pub struct ItemCell<T>(Cell<T>);

#[cfg(feature = "alloc")]
impl<T> ItemCell<T> {
    pub(crate) fn new() -> Self {
        ItemCell(Cell::new())
    }
}

// SAFETY: an item is used by one thread at a time, as the indices say; it moves between threads, so it must be `Send`.
unsafe impl<T: Send> Sync for ItemCell<T> {}

/// A queue of one producer and one consumer whose indices say what is full. `S` says where the items lie.
pub struct Indexed<T, S: Storage<ItemCell<T>>> {
    tail: Line<AtomicU64>,
    head: Line<AtomicU64>,
    ends: Ends,
    cells: S,
    /// Names the type only: the items are in the cells, whose `Send` and `Sync` apply.
    item: PhantomData<fn() -> T>,
}

impl<T, S: Storage<ItemCell<T>>> Indexed<T, S> {
    #[cfg(feature = "alloc")]
    pub(crate) fn with_cells(cells: S) -> Self {
        assert!(cells.cells().len().is_power_of_two(), "storage is made with a power of two cells");
        Indexed {
            tail: Line(AtomicU64::new(0)),
            head: Line(AtomicU64::new(0)),
            ends: Ends::new(),
            cells,
            item: PhantomData,
        }
    }

    fn local(&self) -> DenseEnd<T> {
        let cells = self.cells.cells();
        // SAFETY: 1. The storage holds a power of two cells and does not move while an end
        // refers to the queue. 2. `split` gives each end away once.
        unsafe { DenseEnd::new(cells.as_ptr().cast(), cells.len(), &raw const self.tail.0, &raw const self.head.0) }
    }
}

impl<T, const N: usize> Indexed<T, [ItemCell<T>; N]> {
    /// An empty queue of `N` cells in place, usable in a `static`. `N` is a power of two.
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two(), "a queue has a power of two slots") };
        // SAFETY: a queue of zeros is an empty one: both indices 0, no ends, no item.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }
}

impl<T, const N: usize> Default for Indexed<T, [ItemCell<T>; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Storage<ItemCell<T>>> core::fmt::Debug for Indexed<T, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Indexed").finish_non_exhaustive()
    }
}

impl<T, S: Storage<ItemCell<T>>> Sealed for Indexed<T, S> {}

impl<T, S: Storage<ItemCell<T>>> Queue for Indexed<T, S> {
    type Item = T;
    type Producers = Single;
    type Consumers = Single;
    type ProducerLocal = DenseEnd<T>;
    type ConsumerLocal = DenseEnd<T>;

    fn producer(&self) -> DenseEnd<T> {
        self.local()
    }

    fn consumer(&self) -> DenseEnd<T> {
        self.local()
    }

    fn ends(&self) -> Option<&Ends> {
        Some(&self.ends)
    }

    fn max_insert(&self) -> usize {
        self.cells.cells().len()
    }

    #[inline(always)]
    fn claim(local: &mut DenseEnd<T>, count: u64) -> Result<Run, TryError> {
        local.claim(count)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(local: &DenseEnd<T>, position: u64, item: T) {
        // SAFETY: claimed, says the caller.
        unsafe { local.cell(position).write(item) };
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn publish(local: &mut DenseEnd<T>, run: Run) {
        // SAFETY: claimed and written, says the caller.
        unsafe { local.publish(run) };
    }

    #[inline(always)]
    fn acquire(local: &mut DenseEnd<T>, wanted: u64) -> Result<Run, TryError> {
        local.acquire(wanted)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(local: &DenseEnd<T>, position: u64) -> T {
        // SAFETY: acquired, says the caller, and read once.
        unsafe { local.cell(position).read() }
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn give_back(local: &mut DenseEnd<T>, run: Run) {
        // SAFETY: acquired and read, says the caller.
        unsafe { local.give_back(run) };
    }
}

impl<T, S: Storage<ItemCell<T>>> Drop for Indexed<T, S> {
    fn drop(&mut self) {
        // Pairs with PUBLISH and GIVE_BACK, should the ends have been dropped on other threads.
        let (head, tail) = (self.head.0.load(OBSERVE), self.tail.0.load(OBSERVE));
        let mut remaining = Remaining { local: self.local(), head, tail };
        while let Some(item) = remaining.next() {
            drop(item);
        }
    }
}

/// The items that were not taken. Dropped with the queue, also when the drop of one item panics.
struct Remaining<T> {
    local: DenseEnd<T>,
    head: u64,
    tail: u64,
}

impl<T> Remaining<T> {
    fn next(&mut self) -> Option<T> {
        if self.head == self.tail {
            return None;
        }
        self.head += 1;
        // SAFETY: the items between head and tail were not taken, and no other user is left; this one is counted as
        // taken.
        Some(unsafe { self.local.cell(self.head - 1).read() })
    }
}

impl<T> Drop for Remaining<T> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
