//! Queues without locks: one or many producers, one or many consumers, among threads, interrupt handlers or processes.
//! Knows nothing of what travels, and never blocks: callers choose how to wait.
//!
#![doc = include_str!("../README.md")]
#![no_std]

/// The book's chapter, whose Rust blocks are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/queues.md")]
struct Chapter;

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(all(feature = "std", not(target_os = "none")))]
extern crate std;

mod ahead;
mod bell;
mod buffered;
#[cfg(feature = "alloc")]
mod call;
mod ends;
#[cfg(feature = "alloc")]
mod exchange;
mod gather;
mod indexed;
mod lane;
#[cfg(all(feature = "std", target_os = "linux"))]
mod map;
mod queues;
pub mod shared;
mod signalling;
mod slots;
mod storage;
mod sync;
mod threads;
mod wait;
mod word;

pub use bell::Bell;
pub use buffered::{Packing, Unpacking};
#[cfg(feature = "alloc")]
pub use call::{Answerer, Caller, call};
pub use ends::{Consumer, Producer, Queue, Refused};
pub use gather::{FromLane, Gather};
pub use indexed::Indexed;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use map::Mapping;
pub use queues::*;
pub use signalling::Signalling;
pub use slots::{Multi, Refusal, Side, Single};
pub use threads::Slotted;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use wait::{Futex, wake};
pub use wait::{Spin, Stopped, StoppedWith, Wait};
#[cfg(all(feature = "std", not(target_os = "none")))]
pub use wait::{Until, Yield};
