//! The atomics the queues are made of, and the memory orders by the part they play. The model checker's tests compile
//! the queues a second time with its own version of this file. Knows no queue.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A slot or index is handed to the other side: what was done to the slot before must be seen there. Pairs with
/// [`OBSERVE`].
pub(crate) const PUBLISH: Ordering = Ordering::Release;
/// A slot is given back: what was read from it was read before. Pairs with [`OBSERVE`].
pub(crate) const GIVE_BACK: Ordering = Ordering::Release;
/// The other side's state or index is looked at. Pairs with [`PUBLISH`] and [`GIVE_BACK`].
pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
/// A slot is marked as ours: observes, and publishes to those who look at the mark.
pub(crate) const MARK: Ordering = Ordering::AcqRel;
/// What was done before it is seen by whoever passes such a fence later. Pairs with itself.
pub(crate) const BARRIER: Ordering = Ordering::SeqCst;
/// A hint is moved on among processes: who follows it sees the marks that moved it, and so does not take an old state
/// for a lie. Pairs with [`OBSERVE`].
pub(crate) const ADVANCE: Ordering = Ordering::Release;
/// Positions that only say where to look; the states of the slots carry all that must be seen.
pub(crate) const HINT: Ordering = Ordering::Relaxed;

/// Memory of one item, which the states of slots or the indices give to one side at a time.
pub(crate) struct Cell<T>(core::cell::UnsafeCell<core::mem::MaybeUninit<T>>);

impl<T> Cell<T> {
    #[cfg(feature = "alloc")]
    pub(crate) fn new() -> Self {
        Cell(core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()))
    }

    /// # Safety
    /// Nobody else uses the cell meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, item: T) {
        // SAFETY: the caller has the cell for itself; writing over uninitialised memory drops nothing.
        unsafe { (*self.0.get()).write(item) };
    }

    /// # Safety
    /// Nobody else uses the cell meanwhile, and it holds an item, which the caller takes.
    #[inline(always)]
    pub(crate) unsafe fn read(&self) -> T {
        // SAFETY: the caller promises an item and takes it.
        unsafe { (*self.0.get()).assume_init_read() }
    }
}
