//! The atomics of the queues, and the memory orders by their roles. The model checker's tests compile the queues a
//! second time with its own version of this file. Knows no queue.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A slot or index is handed to the other side, which must see what was written to the slot before. Pairs with
/// [`OBSERVE`].
pub(crate) const PUBLISH: Ordering = Ordering::Release;
/// A slot is given back: all reads of it are complete. Pairs with [`OBSERVE`].
pub(crate) const GIVE_BACK: Ordering = Ordering::Release;
/// The other side's state or index is read. Pairs with [`PUBLISH`], [`GIVE_BACK`] and [`ADVANCE`].
pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
/// A slot is marked as held: observes, and publishes to the ends that read the mark.
pub(crate) const MARK: Ordering = Ordering::AcqRel;
/// A fence between a store and a load: of two threads that each store, pass this fence and load the other's word, at
/// least one sees the other's store (store buffering). Pairs with itself.
pub(crate) const BARRIER: Ordering = Ordering::SeqCst;
/// A hint is advanced among processes: an end that follows it sees the states that moved it, and so does not mistake an
/// old state for a corrupt one. Pairs with [`OBSERVE`].
pub(crate) const ADVANCE: Ordering = Ordering::Release;
/// Orders nothing: a position that is only a hint, or a value that another access orders.
pub(crate) const HINT: Ordering = Ordering::Relaxed;

/// Memory of one item, which the states of slots or the indices give to one side at a time.
pub(crate) struct Cell<T>(core::cell::UnsafeCell<core::mem::MaybeUninit<T>>);

impl<T> Cell<T> {
    #[cfg(feature = "alloc")]
    pub(crate) fn new() -> Self {
        Cell(core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit()))
    }

    /// # Safety
    /// No other end uses the cell meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, item: T) {
        // SAFETY: the caller has the cell for itself; writing over uninitialised memory drops nothing.
        unsafe { (*self.0.get()).write(item) };
    }

    /// # Safety
    /// No other end uses the cell meanwhile, and it holds an item, which the caller takes.
    #[inline(always)]
    pub(crate) unsafe fn read(&self) -> T {
        // SAFETY: the caller promises an item and takes it.
        unsafe { (*self.0.get()).assume_init_read() }
    }
}
