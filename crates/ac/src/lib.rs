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
