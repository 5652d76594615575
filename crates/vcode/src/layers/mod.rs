//! Layers above the core, each of use alone: none costs anything where it is not used.

pub mod client;
mod division;
pub mod peephole;
pub mod schedule;
pub mod strength;
pub mod table;
pub mod virtual_registers;
