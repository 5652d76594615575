//! The simulated card, from single instructions to firmware on several nodes, against LLVM's tools and the host's C
//! compiler.

mod common;
mod decoder;
mod linker;
mod network;
mod programs;
mod timing;
