//! The algorithm's files whose giving back is relaxed.
#![allow(unused, unreachable_pub, clippy::duplicate_mod, reason = "files of the library, compiled once per version")]

#[path = "../../src/bell.rs"]
pub(crate) mod bell;
#[path = "../../src/call_cell.rs"]
pub(crate) mod call_cell;
#[path = "../../src/dense_end.rs"]
pub(crate) mod dense_end;
#[path = "../../src/prefetch.rs"]
pub(crate) mod prefetch;
#[path = "../../src/slots.rs"]
pub(crate) mod slots;
#[path = "../../src/word.rs"]
pub(crate) mod word;

pub(crate) mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    pub(crate) const PUBLISH: Ordering = Ordering::Release;
    pub(crate) const GIVE_BACK: Ordering = Ordering::Relaxed;
    pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
    pub(crate) const MARK: Ordering = Ordering::AcqRel;
    pub(crate) const BARRIER: Ordering = Ordering::SeqCst;
    pub(crate) const HINT: Ordering = Ordering::Relaxed;
    pub(crate) const ADVANCE: Ordering = Ordering::Release;

    pub(crate) use crate::models::Cell;
}
