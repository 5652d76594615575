//! The peers, on the same workload: each function writes code into `bytes` and returns the address of its first
//! instruction, or writes it into memory of its own.

#[cfg(asmjit)]
pub mod asmjit;
pub mod cranelift;
pub mod dynasm;
#[cfg(tcc)]
pub mod tcc;
