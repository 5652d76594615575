//! The modules that `cargo xtask codegen` generates from `machines/*.spec`, one line each.

/// AArch64.
pub mod aarch64;
pub(crate) mod aarch64_table;
/// Alpha.
pub mod alpha;
pub(crate) mod alpha_table;
pub(crate) mod core;
pub(crate) mod instructions;
/// MIPS, big-endian, o32.
pub mod mips;
pub(crate) mod mips_table;
pub(crate) mod peephole;
/// Power, 64 bits, little-endian, ELFv2.
pub mod ppc64le;
pub(crate) mod ppc64le_table;
/// RISC-V, 64 bits.
pub mod riscv64;
pub(crate) mod riscv64_table;
/// SPARC V9.
pub mod sparc64;
pub(crate) mod sparc64_table;
pub(crate) mod virtual_registers;
/// x86-64.
pub mod x86_64;
#[cfg(feature = "system")]
pub(crate) mod x86_64_system;
pub(crate) mod x86_64_table;
