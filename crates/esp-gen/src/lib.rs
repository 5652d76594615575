//! Back ends for the flow IR: text and bytes out, nothing executed, nothing optimised beyond what the target needs.
//! [`layout`] says how values lie in C memory.
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod c;
mod common;
// A WebAssembly program cannot execute machine code that it writes.
#[cfg(not(target_family = "wasm"))]
pub mod jit;
pub mod layout;
pub mod promela;

pub use quaject_esp_exec::step::Checks;

/// The run-time header that generated C includes as `quaject/esp.h`.
pub const RUNTIME_HEADER: &str = include_str!("../include/quaject/esp.h");
