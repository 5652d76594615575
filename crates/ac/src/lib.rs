//! Asynchronous C for Rust: start work that may wait, write it as straight-line code, and be sure that the enclosing
//! scope does not end before all of it has. The C face is `include/quaject/ac.h`; this one adds lifetimes and panics,
//! and knows nothing of how stacks are switched.
//!
//! A task runs on a stack of its own from the moment it is spawned until it first waits; then its parent goes on. Tasks
//! never leave their thread, so they may borrow what they like, `Send` or not:
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
