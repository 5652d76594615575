//! Asynchronous C for Rust: structured concurrency with cooperative tasks on their own stacks (Harris et al., "AC:
//! Composable Asynchronous IO for Native Languages", OOPSLA 2011; Quigley, "Extensions to Barrelfish Asynchronous C",
//! 2016). The scope does not end before all of its tasks have. The C interface is `include/quaject/ac.h`; this one adds
//! lifetimes and panics.
//!
//! A spawned task runs at once, on a stack of its own, until it first waits; then its parent continues. Tasks never
//! leave their thread, so they may borrow values that are not `Send`:
//!
//! ```
//! let mut log = std::cell::RefCell::new(Vec::new());
//! quaject_ac::scope(|scope| {
//!     scope.spawn(|| {
//!         log.borrow_mut().push("first, until it waits");
//!         let _ = quaject_ac::yield_now();
//!         log.borrow_mut().push("third");
//!     });
//!     log.borrow_mut().push("second");
//! });
//! assert_eq!(log.get_mut().len(), 3);
//! ```
//!
//! # What tasks share
//!
//! The tasks of a thread share its thread-locals, and a wait ([`yield_now`], [`sleep`], [`block_on`], [`Task::join`],
//! the end of a [`scope`]) lets others run. Do not wait while a value is installed in a thread-local for the time of a
//! call (scoped thread-locals, `LocalKey::set` with a restore): restores would run in another order than last in, first
//! out, and code that relies on that order to hand out references is unsound under tasks. Neither wait while a
//! destructor runs because of a panic: `std::thread::panicking()` is then true for the other tasks too, and a `Mutex`
//! that one of them unlocks is poisoned.

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The book's chapter, whose Rust blocks are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/async-c.md")]
struct Chapter;

mod future;
mod scope;
mod sys;

pub use future::{block_on, block_on_or_cancel};
pub use scope::{Canceled, Scope, Task, is_canceled, scope, shield, sleep, yield_now};
