//! The queue of one producer and one consumer whose indices say what is full, so that items lie side by side without a
//! state: the least memory, and the fastest fill and drain on one processor. Figure 1 of "Threads in the Synthesis
//! kernel" with two changes: each end keeps a copy of the other's index and reads the real one only when the copy says
//! full or empty, and indices count on instead of wrapping, so that no slot stays empty.
//!
//! ```text
//!   tail | ...      written by the producer, read by the consumer when it has seen all it knew of
//!   head | ...      written by the consumer, read by the producer when it has filled all it knew of
//!   item 0 | item 1 | ... | item capacity-1
//! ```
//!
//! An item that is waited for costs two line transfers (index and item), in the queues of `slots` one.

use core::marker::PhantomData;

use crate::ends::{Ends, Queue};
use crate::lane::Lane;
use crate::slots::{Refusal, Run, Single};
use crate::storage::{Line, Storage};
use crate::sync::{AtomicU64, Cell, OBSERVE};

/// One item's memory.
#[repr(transparent)]
pub struct Place<T>(Cell<T>);

#[cfg(feature = "alloc")]
impl<T> Place<T> {
    pub(crate) fn new() -> Self {
        Place(Cell::new())
    }
}

// SAFETY: an item is used by one thread at a time, as the indices say; it moves between threads, so it must be `Send`.
unsafe impl<T: Send> Sync for Place<T> {}

/// A queue of one producer and one consumer whose indices say what is full. `S` says where the items lie.
pub struct Indexed<T, S: Storage<Place<T>>> {
    tail: Line<AtomicU64>,
    head: Line<AtomicU64>,
    ends: Ends,
    places: S,
    /// Only a name: the items are in the places, which say what threads may do with them.
    item: PhantomData<fn() -> T>,
}

impl<T, S: Storage<Place<T>>> Indexed<T, S> {
    #[cfg(feature = "alloc")]
    pub(crate) fn with_places(places: S) -> Self {
        assert!(places.cells().len().is_power_of_two(), "storage is made with a power of two cells");
        Indexed {
            tail: Line(AtomicU64::new(0)),
            head: Line(AtomicU64::new(0)),
            ends: Ends::new(),
            places,
            item: PhantomData,
        }
    }

    fn own(&self) -> Lane<T> {
        let cells = self.places.cells();
        // SAFETY: 1. The storage holds a power of two places, each of which is a cell, and does not move while an end
        // refers to the queue. 2. `split` gives each end away once.
        unsafe { Lane::new(cells.as_ptr().cast(), cells.len(), &raw const self.tail.0, &raw const self.head.0) }
    }
}

impl<T, const N: usize> Indexed<T, [Place<T>; N]> {
    /// An empty queue of `N` places in place, usable in a `static`. `N` is a power of two.
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two(), "a queue has a power of two slots") };
        // SAFETY: a queue of zeros is an empty one: both indices 0, no ends, no item.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }
}

impl<T, const N: usize> Default for Indexed<T, [Place<T>; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Storage<Place<T>>> core::fmt::Debug for Indexed<T, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Indexed").finish_non_exhaustive()
    }
}

impl<T, S: Storage<Place<T>>> Queue for Indexed<T, S> {
    type Item = T;
    type Producers = Single;
    type Consumers = Single;
    type ProducerOwn = Lane<T>;
    type ConsumerOwn = Lane<T>;

    fn producer(&self) -> Lane<T> {
        self.own()
    }

    fn consumer(&self) -> Lane<T> {
        self.own()
    }

    fn ends(&self) -> Option<&Ends> {
        Some(&self.ends)
    }

    fn longest_insert(&self) -> usize {
        self.places.cells().len()
    }

    #[inline(always)]
    fn claim(own: &mut Lane<T>, count: u64) -> Result<Run, Refusal> {
        own.claim(count)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(own: &Lane<T>, position: u64, item: T) {
        // SAFETY: claimed, says the caller.
        unsafe { own.cell(position).write(item) };
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn publish(own: &mut Lane<T>, run: Run) {
        // SAFETY: claimed and written, says the caller.
        unsafe { own.publish(run) };
    }

    #[inline(always)]
    fn acquire(own: &mut Lane<T>, wanted: u64) -> Result<Run, Refusal> {
        own.acquire(wanted)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(own: &Lane<T>, position: u64) -> T {
        // SAFETY: acquired, says the caller, and read once.
        unsafe { own.cell(position).read() }
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn give_back(own: &mut Lane<T>, run: Run) {
        // SAFETY: acquired and read, says the caller.
        unsafe { own.give_back(run) };
    }
}

impl<T, S: Storage<Place<T>>> Drop for Indexed<T, S> {
    fn drop(&mut self) {
        // Pairs with PUBLISH and GIVE_BACK, should the ends have been dropped on other threads.
        let (head, tail) = (self.head.0.load(OBSERVE), self.tail.0.load(OBSERVE));
        let mut rest = Rest { own: self.own(), head, tail };
        while let Some(item) = rest.next() {
            drop(item);
        }
    }
}

/// What nobody took. Dropped with the queue, also when the drop of one item panics.
struct Rest<T> {
    own: Lane<T>,
    head: u64,
    tail: u64,
}

impl<T> Rest<T> {
    fn next(&mut self) -> Option<T> {
        if self.head == self.tail {
            return None;
        }
        self.head += 1;
        // SAFETY: between head and tail lie items that nobody took, and nobody else will; this one is counted as taken.
        Some(unsafe { self.own.cell(self.head - 1).read() })
    }
}

impl<T> Drop for Rest<T> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
