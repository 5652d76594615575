//! The atomics that readers and the writer share, and the memory orders by the part they play. The model checker's tests
//! compile `epoch.rs` and `table.rs` again with their own version of this file. Knows neither.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex};

/// A word is shown: what was written before it must be seen by who sees it. Pairs with [`OBSERVE`].
pub(crate) const PUBLISH: Ordering = Ordering::Release;
/// A reader begins again: it has looked at everything it looked at before. Pairs with [`OBSERVE`].
pub(crate) const ENTER: Ordering = Ordering::Release;
/// A reader has looked at everything it will look at. Pairs with [`OBSERVE`].
pub(crate) const LEAVE: Ordering = Ordering::Release;
/// What another thread wrote is looked at. Pairs with [`PUBLISH`], [`ENTER`] and [`LEAVE`].
pub(crate) const OBSERVE: Ordering = Ordering::Acquire;
/// Of two threads that write, pass such a fence and read what the other writes, one sees the other's. Pairs with itself.
pub(crate) const BARRIER: Ordering = Ordering::SeqCst;
