//! The queue of one producer and one consumer for throughput: indices instead of states in the slots, so that items lie
//! densely. Figure 1 of "Threads in the Synthesis kernel" with two changes: each end keeps a copy of the other's index
//! and reads the real one only when the copy says full or empty, and indices count on instead of wrapping, so that no
//! slot stays empty.
//!
//! ```text
//!   tail | ...      written by the producer, read by the consumer when it has seen all it knew of
//!   head | ...      written by the consumer, read by the producer when it has filled all it knew of
//!   item 0 | item 1 | ... | item capacity-1
//! ```
//!
//! A message costs two line transfers (index and item) when the consumer waits for it, the queue of `slots` one.

use core::marker::PhantomData;

use crate::ends::{Ends, Queue};
use crate::slots::{Refusal, Run, Single};
use crate::storage::{Line, Storage};
use crate::sync::{AtomicU64, Cell, GIVE_BACK, OBSERVE, PUBLISH};

/// One item's memory.
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
    item: PhantomData<T>,
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

    fn own(&self) -> Own<T> {
        let cells = self.places.cells();
        let (tail, head) = (&raw const self.tail.0, &raw const self.head.0);
        Own { cells: cells.as_ptr(), tail, head, mask: cells.len() as u64 - 1, mine: 0, theirs: 0 }
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

/// What an end knows for itself. On lines of its own: an end is written at every operation, and the two ends may have
/// been made side by side.
#[repr(align(128))]
pub struct Own<T> {
    cells: *const Place<T>,
    tail: *const AtomicU64,
    head: *const AtomicU64,
    mask: u64,
    /// The producer's tail, the consumer's head.
    mine: u64,
    /// What the other's index was when last looked at.
    theirs: u64,
}

// SAFETY: the pointers lead into a queue that the end keeps alive and that may be used from any thread when items may
// move between threads.
unsafe impl<T: Send> Send for Own<T> {}

impl<T> Own<T> {
    #[inline(always)]
    fn place(&self, position: u64) -> &Cell<T> {
        // SAFETY: masked to an index below the number of cells.
        unsafe { &(*self.cells.add((position & self.mask) as usize)).0 }
    }

    #[inline(always)]
    fn index(&self, index: *const AtomicU64) -> &AtomicU64 {
        // SAFETY: the queue is alive and does not move as long as it has an end.
        unsafe { &*index }
    }
}

impl<T, S: Storage<Place<T>>> Queue for Indexed<T, S> {
    type Item = T;
    type Producers = Single;
    type Consumers = Single;
    type ProducerOwn = Own<T>;
    type ConsumerOwn = Own<T>;

    fn producer(&self) -> Own<T> {
        self.own()
    }

    fn consumer(&self) -> Own<T> {
        self.own()
    }

    fn ends(&self) -> Option<&Ends> {
        Some(&self.ends)
    }

    fn longest_insert(&self) -> usize {
        self.places.cells().len()
    }

    #[inline(always)]
    fn claim(own: &mut Own<T>, count: u64) -> Result<Run, Refusal> {
        if own.mine + count - own.theirs > own.mask + 1 {
            // Pairs with GIVE_BACK in `give_back`: what we overwrite has been read.
            own.theirs = own.index(own.head).load(OBSERVE);
            if own.mine + count - own.theirs > own.mask + 1 {
                return Err(Refusal::NotReady);
            }
        }
        Ok(Run { first: own.mine, count })
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(own: &Own<T>, position: u64, item: T) {
        // SAFETY: claimed, says the caller.
        unsafe { own.place(position).write(item) };
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn publish(own: &mut Own<T>, run: Run) {
        own.mine = run.first + run.count;
        // Pairs with OBSERVE in `acquire`: the items are written before they are seen.
        own.index(own.tail).store(own.mine, PUBLISH);
    }

    #[inline(always)]
    fn acquire(own: &mut Own<T>, wanted: u64) -> Result<Run, Refusal> {
        if own.theirs - own.mine < wanted {
            // Pairs with PUBLISH in `publish`: we see the items written before.
            own.theirs = own.index(own.tail).load(OBSERVE);
            if own.theirs == own.mine {
                return Err(Refusal::NotReady);
            }
        }
        Ok(Run { first: own.mine, count: wanted.min(own.theirs - own.mine) })
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(own: &Own<T>, position: u64) -> T {
        // SAFETY: acquired, says the caller, and read once.
        unsafe { own.place(position).read() }
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn give_back(own: &mut Own<T>, run: Run) {
        own.mine = run.first + run.count;
        // Pairs with OBSERVE in `claim`: the items are read before they are overwritten.
        own.index(own.head).store(own.mine, GIVE_BACK);
    }
}

impl<T, S: Storage<Place<T>>> Drop for Indexed<T, S> {
    fn drop(&mut self) {
        // Pairs with PUBLISH and GIVE_BACK, should the ends have been dropped on other threads.
        let (head, tail) = (self.head.0.load(OBSERVE), self.tail.0.load(OBSERVE));
        let own = self.own();
        for position in head..tail {
            // SAFETY: between head and tail lie items that nobody took, and with `&mut self` nobody will.
            drop(unsafe { own.place(position).read() });
        }
    }
}
