//! Queues without locks whose operations never block: one or many producers, one or many consumers, among threads,
//! interrupt handlers or processes. An operation that is not possible returns [`TryError::NotReady`], and callers
//! choose how to wait.
//!
//! With one producer and one consumer every operation is wait-free. With many, the queue is not lock-free in the strict
//! sense (Herlihy, Shavit): as in Vyukov's MPMC queue and `rte_ring`, a producer that is preempted between claim and
//! publication delays the items behind its own.
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

mod batching;
mod bell;
#[cfg(feature = "alloc")]
mod call;
#[cfg(feature = "alloc")]
mod call_cell;
mod dense_end;
mod ends;
mod fan_in;
mod indexed;
#[cfg(all(feature = "std", target_os = "linux"))]
mod map;
mod prefetch;
mod queues;
pub mod shared;
mod signalling;
mod slots;
mod storage;
mod sync;
mod threads;
mod wait;
mod word;

pub use batching::{BatchingConsumer, BatchingProducer};
pub use bell::Bell;
#[cfg(feature = "alloc")]
pub use call::{Caller, Responder, call};
pub use ends::{Consumer, Producer, Queue, TryPushError};
pub use fan_in::{FanIn, FromLane};
pub use indexed::Indexed;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use map::Mapping;
pub use queues::*;
pub use signalling::Signalling;
pub use slots::{Multi, Side, Single, TryError};
pub use threads::Slotted;
#[cfg(all(feature = "std", target_os = "linux"))]
pub use wait::{Futex, wake};
pub use wait::{PushWaitError, Spin, Wait, WaitError};
#[cfg(all(feature = "std", not(target_os = "none")))]
pub use wait::{Until, Yield};
