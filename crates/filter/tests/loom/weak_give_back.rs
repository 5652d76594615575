//! The library's files with readers that are unpinned without order.
#![allow(unused, unreachable_pub, clippy::duplicate_mod, reason = "files of the library, compiled once per version")]

#[path = "../../src/epoch.rs"]
pub(crate) mod epoch;
#[path = "../../src/table.rs"]
pub(crate) mod table;

pub(crate) mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex};

    pub(crate) const PUBLISH: Ordering = Ordering::Release;
    pub(crate) const ADVANCE: Ordering = Ordering::Release;
    pub(crate) const GIVE_BACK: Ordering = Ordering::Relaxed;
    pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
    pub(crate) const MARK: Ordering = Ordering::AcqRel;
    pub(crate) const BARRIER: Ordering = Ordering::SeqCst;
    pub(crate) const OWN: Ordering = Ordering::Relaxed;

    pub(crate) fn this_thread() -> u64 {
        0
    }
}
