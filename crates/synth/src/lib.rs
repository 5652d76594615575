//! The run-time of a kernel whose code is synthesised (Massalin, "Synthesis: An Efficient Implementation of Fundamental
//! Operating System Services", 1992): a program writes a routine for the case at hand, such as a read of this pipe,
//! when the case arises, and executes it from then on.
//!
//! ```text
//! arena     executable memory, mapped twice; freed blocks wait for a grace period
//! routine   code in a block of the arena, with the places where it may fault     builder: one under construction
//! template  a routine that is copied for each object, and the addresses in it
//! constant  routines that return a number
//! stream    routines that read and write: null, a file in memory, a pipe       entry: how they are entered and left
//! gate      a routine whose first instruction is replaced while a thread waits
//! ready     switch routines that are linked by jumps: an executable ready queue
//! gauge     counts of events          quantum   time slices from rates
//! ```
//!
//! The routines of a kernel and those of a test differ in their [`Entry`](entry::Entry) only. Nothing here knows an
//! operating system or allocates memory; every failure to allocate is a value.
//!
#![doc = include_str!("../README.md")]
#![no_std]

pub mod arena;
pub mod builder;
pub mod constant;
pub mod copy;
pub mod entry;
mod error;
pub mod gate;
pub mod gauge;
pub mod grace;
pub mod quantum;
pub mod ready;
pub mod routine;
pub mod stream;
pub mod template;

pub use arena::Arena;
pub use builder::Builder;
pub use error::Error;
pub use routine::Routine;
pub use template::{Address, Template};
