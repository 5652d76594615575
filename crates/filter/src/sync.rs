//! The atomics that readers and the writer share, and the memory orders by their roles: the names of `quaject-queue`'s
//! `sync.rs`. The model checker's tests compile `epoch.rs` and `table.rs` again with their own version of this file.
//! Knows neither.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex};

/// A word is handed to readers, which must see what was written before it. Pairs with [`OBSERVE`].
pub(crate) const PUBLISH: Ordering = Ordering::Release;
/// A reader is unpinned: all its reads are complete. Pairs with [`OBSERVE`].
pub(crate) const GIVE_BACK: Ordering = Ordering::Release;
/// A word of another thread is read. Pairs with [`PUBLISH`], [`GIVE_BACK`] and [`ADVANCE`].
pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
/// A word that no other thread depends on.
pub(crate) const OWN: Ordering = Ordering::Relaxed;
/// The epoch is advanced: observes, and publishes to the readers that see the new one. Pairs with [`OBSERVE`].
pub(crate) const MARK: Ordering = Ordering::AcqRel;
/// A fence between a store and a load: of two threads that each store, pass this fence and load the other's word, at
/// least one sees the other's store (store buffering). Pairs with itself.
pub(crate) const BARRIER: Ordering = Ordering::SeqCst;
/// A reader is pinned at a later epoch: its reads under the earlier one are complete. Pairs with [`OBSERVE`].
pub(crate) const ADVANCE: Ordering = Ordering::Release;

/// A number that the calling thread has and no other living one.
#[inline]
pub(crate) fn this_thread() -> u64 {
    std::thread_local! {
        static ADDRESS: u8 = const { 0 };
    }
    // A thread whose variables are destroyed pins no reader beyond its end.
    ADDRESS.try_with(|own| std::ptr::from_ref(own).addr() as u64).unwrap_or(0)
}
