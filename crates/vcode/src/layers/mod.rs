//! Optional layers above the core. Each is independent of the others, and has no cost where it is not used.

mod division;
pub mod peephole;
pub mod schedule;
pub mod strength;
pub mod table;
pub mod temporary_allocator;
pub mod virtual_registers;
