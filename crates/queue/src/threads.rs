//! Queues among threads (and interrupt handlers) of one program whose slots hold their own state. Items of any type;
//! the memory is an array or, with `alloc`, a boxed slice. The algorithm is in `slots`.

use core::marker::PhantomData;

use crate::ends::{Ends, Queue, sealed::Sealed};
use crate::slots::{FaultModel, Memory, Run, Side, TryError, View};
use crate::storage::{Line, Storage};
use crate::sync::{AtomicU64, Cell, OBSERVE};
use crate::word::Phase;

/// Slots side by side, several in a cache line: the highest throughput.
#[derive(Debug)]
pub struct Compact;

/// Each slot on a cache line of its own: giving back an item does not invalidate the line of the next one. The lowest
/// latency of an item that is waited for.
#[derive(Debug)]
#[repr(align(64))]
pub struct OwnLine;

/// A slot: its state, then the item. `A` says how slots are aligned.
pub struct Slot<T, A = Compact> {
    state: AtomicU64,
    item: Cell<T>,
    _aligned: [A; 0],
}

#[cfg(feature = "alloc")]
impl<T, A> Slot<T, A> {
    pub(crate) fn new() -> Self {
        Slot { state: AtomicU64::new(0), item: Cell::new(), _aligned: [] }
    }
}

// SAFETY: an item is used by one thread at a time, as the states say; it moves between threads, so it must be `Send`.
unsafe impl<T: Send, A> Sync for Slot<T, A> {}

impl<T, A> Memory for Slot<T, A> {
    type Item = T;
    const FAULT_MODEL: FaultModel = FaultModel::Threads;

    #[inline(always)]
    fn state(&self) -> &AtomicU64 {
        &self.state
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(&self, item: T) {
        // SAFETY: the caller has claimed the slot.
        unsafe { self.item.write(item) };
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(&self) -> T {
        // SAFETY: the caller has acquired the slot and reads it once.
        unsafe { self.item.read() }
    }
}

/// Names a type only: the items are in the slots, whose `Send` and `Sync` apply.
type Named<T> = PhantomData<fn() -> T>;

/// A queue whose slots carry their state. `P` and `C` say how many produce and consume, `S` where the slots lie.
pub struct Slotted<T, P, C, S, A = Compact> {
    claim: Line<AtomicU64>,
    take: Line<AtomicU64>,
    ends: Ends,
    slots: S,
    sides: Named<(T, P, C, A)>,
}

impl<T, P: Side, C: Side, S: Storage<Slot<T, A>>, A> Slotted<T, P, C, S, A> {
    #[cfg(feature = "alloc")]
    pub(crate) fn with_slots(slots: S) -> Self {
        assert!(slots.cells().len().is_power_of_two(), "storage is made with a power of two cells");
        Slotted {
            claim: Line(AtomicU64::new(0)),
            take: Line(AtomicU64::new(0)),
            ends: Ends::new(),
            slots,
            sides: PhantomData,
        }
    }

    fn view(&self) -> View<Slot<T, A>> {
        let cells = self.slots.cells();
        // SAFETY: 1. The storage holds a power of two slots and does not move while an end refers to the queue. 2. All
        // access goes through views.
        unsafe { View::new(cells.as_ptr(), cells.len(), &raw const self.claim.0, &raw const self.take.0) }
    }
}

impl<T, P, C, const N: usize, A> Slotted<T, P, C, [Slot<T, A>; N], A> {
    /// An empty queue of `N` slots in place, usable in a `static`. `N` is a power of two.
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two(), "a queue has a power of two slots") };
        // SAFETY: a queue of zeros is an empty one: all indices 0, no ends, every slot free in lap 0, no item.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }
}

impl<T, P, C, const N: usize, A> Default for Slotted<T, P, C, [Slot<T, A>; N], A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P, C, S, A> core::fmt::Debug for Slotted<T, P, C, S, A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slotted").finish_non_exhaustive()
    }
}

/// The private state of an end: the slots, and its position when its side is [`Single`](crate::Single). On separate
/// cache lines: an end is written at every operation, and the two ends may be neighbours in memory.
#[repr(align(128))]
pub struct SlottedEnd<M> {
    view: View<M>,
    position: u64,
}

impl<M> Clone for SlottedEnd<M> {
    fn clone(&self) -> Self {
        SlottedEnd { view: self.view, position: self.position }
    }
}

impl<T, P, C, S, A> Sealed for Slotted<T, P, C, S, A> {}

impl<T, P: Side, C: Side, S: Storage<Slot<T, A>>, A> Queue for Slotted<T, P, C, S, A> {
    type Item = T;
    type Producers = P;
    type Consumers = C;
    type ProducerLocal = SlottedEnd<Slot<T, A>>;
    type ConsumerLocal = SlottedEnd<Slot<T, A>>;

    fn producer(&self) -> SlottedEnd<Slot<T, A>> {
        SlottedEnd { view: self.view(), position: 0 }
    }

    fn consumer(&self) -> SlottedEnd<Slot<T, A>> {
        SlottedEnd { view: self.view(), position: 0 }
    }

    fn ends(&self) -> Option<&Ends> {
        Some(&self.ends)
    }

    fn max_insert(&self) -> usize {
        self.slots.cells().len()
    }

    #[inline(always)]
    fn claim(local: &mut SlottedEnd<Slot<T, A>>, count: u64) -> Result<Run, TryError> {
        local.view.claim::<P, C>(&mut local.position, 0, count)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(local: &SlottedEnd<Slot<T, A>>, position: u64, item: T) {
        // SAFETY: claimed, says the caller.
        unsafe { local.view.write(position, item) };
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn publish(local: &mut SlottedEnd<Slot<T, A>>, run: Run) {
        // SAFETY: claimed and written, says the caller.
        unsafe { local.view.publish(run) };
    }

    #[inline(always)]
    fn acquire(local: &mut SlottedEnd<Slot<T, A>>, wanted: u64) -> Result<Run, TryError> {
        local.view.acquire::<P, C>(&mut local.position, 0, wanted)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(local: &SlottedEnd<Slot<T, A>>, position: u64) -> T {
        // SAFETY: acquired, says the caller, and read once.
        unsafe { local.view.read(position) }
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn give_back(local: &mut SlottedEnd<Slot<T, A>>, run: Run) {
        // SAFETY: acquired and read, says the caller.
        unsafe { local.view.give_back(run) };
    }
}

impl<T, A> Drop for Slot<T, A> {
    fn drop(&mut self) {
        // Pairs with PUBLISH in `View::publish`, should the last end have been dropped on another thread.
        if crate::word::Word(self.state.load(OBSERVE)).phase() == Some(Phase::Full) {
            // SAFETY: the slot is full, and `&mut self` excludes other readers.
            drop(unsafe { self.item.read() });
        }
    }
}
