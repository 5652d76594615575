//! The state that the writer publishes to readers: the current snapshot, and the epochs that determine when an old one
//! may be dropped. Knows nothing of how a snapshot is built.

use crate::epoch::Epochs;
use crate::stage::Snapshot;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The part of a classifier that readers see.
pub(crate) struct Published {
    current: AtomicPtr<Snapshot>,
    /// The code of the snapshot's only chunk, if calling it is all that a classification needs; else null.
    entry: AtomicPtr<()>,
    pub(crate) epochs: Arc<Epochs>,
}

#[cfg(target_os = "linux")]
impl quaject_vcode::fork::ForkState for Epochs {
    fn prepare(self: Arc<Self>) -> Box<dyn FnOnce() + Send> {
        Box::new(move || self.unpin_other_threads())
    }
}

/// The epochs of a new classifier.
fn epochs() -> Arc<Epochs> {
    let epochs = Arc::new(Epochs::new());
    #[cfg(target_os = "linux")]
    {
        let state: Arc<dyn quaject_vcode::fork::ForkState> = epochs.clone();
        // Without the handler, readers of other threads stay pinned in a child: it reuses less memory.
        let _ = quaject_vcode::fork::register(Arc::downgrade(&state));
    }
    epochs
}

impl Published {
    /// Publishes an empty snapshot.
    pub(crate) fn new() -> Published {
        Published {
            current: AtomicPtr::new(Box::into_raw(Box::default())),
            entry: AtomicPtr::new(ptr::null_mut()),
            epochs: epochs(),
        }
    }

    /// Publishes a snapshot. Returns the old one, which readers may still use.
    pub(crate) fn replace(&self, snapshot: Snapshot) -> Box<Snapshot> {
        let entry = snapshot.entry();
        let new = Box::into_raw(Box::new(snapshot));
        // Pairs with the acquire in `snapshot`: everything in the snapshot is written before it is published.
        let old = self.current.swap(new, Ordering::AcqRel);
        // Pairs with the acquire in `entry`. The old entry is part of the old snapshot and is kept with it.
        self.entry.store(entry, Ordering::Release);
        // SAFETY: pointers in `current` were made by `Box::into_raw`, and this one has just been taken out.
        unsafe { Box::from_raw(old) }
    }

    /// The current snapshot.
    ///
    /// # Safety
    /// The reader is pinned, and stays so as long as the snapshot is used.
    #[inline]
    pub(crate) unsafe fn snapshot<'r>(&self) -> &'r Snapshot {
        // Pairs with the release in `replace`.
        let snapshot = self.current.load(Ordering::Acquire);
        // SAFETY: the reader is pinned, so the snapshot is dropped after its last use at the earliest.
        unsafe { &*snapshot }
    }

    /// The code that classifies a packet without the snapshot, or null.
    #[inline]
    pub(crate) fn entry(&self) -> *mut () {
        // Pairs with the release in `replace`.
        self.entry.load(Ordering::Acquire)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // SAFETY: pointers in `current` were made by `Box::into_raw`; no reader is left, because readers share this.
        drop(unsafe { Box::from_raw(*self.current.get_mut()) });
    }
}
