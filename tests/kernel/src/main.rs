//! The kernel under QEMU: programs whose output and status have to be those that they have on Linux, and the kernel's
//! own protections and reports.
//!
//! `command.rs` asks `qj kernel`; `harness.rs` builds the image and starts machines; `programs.rs` compares;
//! `protection.rs` provokes faults; `starting.rs` gives the kernel what it must refuse.
#![forbid(unsafe_code)]

mod command;
mod harness;
mod programs;
mod protection;
mod starting;
