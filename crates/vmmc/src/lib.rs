//! A simulated programmable network card and the network between several: processor, linker, DMA engines, crossbar.
//! Reads and writes nothing but what it is given; knows no protocol.
//!
//! [`link`] makes an [`Image`] of objects, a [`Network`] runs one on the card of each node, and [`Card`] is what the
//! host of a node sees. [`lanai`] is the processor by itself, and [`Memory`] what it needs for programs that only
//! compute.

#![forbid(unsafe_code)]

mod card;
pub mod lanai;
mod link;
mod memory;
mod network;
mod processor;

pub use card::{Card, CardState, Interrupt};
pub use link::{Image, LinkError, LinkErrorCause, ObjectFile, link};
pub use memory::Memory;
pub use network::{MIN_LATENCY_CYCLES, Network, NetworkFaults, NetworkOptions};
pub use processor::{
    AccessError, Bus, Fault, FaultCause, Flow, MAX_OVERRUN_CYCLES, Processor, RETURN_ADDRESS, Stop, Width,
};

/// The C source of what compiled code calls on LANai, where it has no instruction: to be compiled with each program by
/// `clang --target=lanai -ffreestanding -O2 -c`.
pub const RUNTIME_SOURCE: &str = include_str!("../firmware/runtime.c");

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
