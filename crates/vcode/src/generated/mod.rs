//! What `cargo xtask codegen` makes of `machines/*.spec`.

/// AArch64.
pub mod aarch64;
pub(crate) mod aarch64_table;
pub(crate) mod core;
/// RISC-V, 64 bits.
pub mod riscv64;
pub(crate) mod riscv64_table;
/// x86-64.
pub mod x86_64;
pub(crate) mod x86_64_table;
