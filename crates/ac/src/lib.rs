//! Asynchronous C for Rust: structured concurrency with cooperative tasks on their own stacks (Harris et al., "AC:
//! Composable Asynchronous IO for Native Languages", OOPSLA 2011; Quigley, "Extensions to Barrelfish Asynchronous C",
//! 2016). The scope does not end before all of its tasks have. The C interface is `include/quaject/ac.h`; this one adds
//! lifetimes and panics.
//!
//! A spawned task runs at once, on a stack of its own, until it first waits; then its parent continues. Tasks never
//! leave their thread, so they may borrow values that are not `Send`:
//!
//! ```
//! // SAFETY: no task of this program waits while a scoped thread-local is set.
//! let tasks = unsafe { quaject_ac::Tasks::new() };
//! let mut log = std::cell::RefCell::new(Vec::new());
//! tasks.scope(|scope| {
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
//! The tasks of a thread share its thread-locals, and a wait lets others run. So no task may wait while a value is
//! installed in a thread-local for the time of a call: restores would run in another order than last in, first out.
//! Some crates hand out references in safe code by relying on that order. That is the promise of [`Tasks::new`], the
//! only `unsafe` of the interface.
//!
//! They also share the count of panics behind [`std::thread::panicking`], by which a `Mutex` decides that it is
//! poisoned. In a destructor that runs because of a panic [`yield_now`], [`sleep`] and [`block_on_or_cancel`] therefore
//! return [`Canceled`] at once, without letting other tasks run. [`block_on`], [`Task::join`] and the end of a scope
//! with tasks do wait there: meanwhile `panicking()` is true for the other tasks too, and a `Mutex` that one of them
//! unlocks is poisoned. So a destructor should not wait by them while it `panicking()`.

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The book's chapter, whose Rust blocks are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/async-c.md")]
struct Chapter;

mod future;
mod memory;
mod scope;
mod sys;

pub use future::{block_on, block_on_or_cancel};
pub use memory::{stop, trim};
pub use scope::{Canceled, Scope, Task, Tasks, is_canceled, sleep, yield_now};
