//! In-place code generation at run time (Engler, "VCODE: A Retargetable, Extensible, Very Fast Dynamic Code Generation
//! System", PLDI 1996): a client calls one inline function per instruction of an idealised load-store machine, and the
//! function stores the machine words. There is no intermediate representation.
//!
//! The emitters, the decoder tables and the C header are generated from `machines/*.spec`: opcodes and fields are in
//! the specifications only; the addressing modes and prefixes of x86 are in `cursor.rs` and `decode/table.rs`. This
//! crate knows nothing of expressions or variables.
//!
#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(all(feature = "std", not(target_os = "none")))]
extern crate std;

mod abi;
mod allocate;
mod architecture;
mod asm;
#[cfg(all(feature = "c", not(target_os = "none")))]
mod c;
mod call;
mod conventions;
mod cursor;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub mod debug;
pub mod decode;
mod detect;
mod epilogue;
mod error;
mod extension;
mod external;
mod features;
#[cfg(all(feature = "std", not(target_os = "none")))]
pub mod fork;
mod frame;
#[rustfmt::skip]
mod generated;
mod instruction;
mod kind;
pub mod layers;
mod machine;
#[cfg(all(feature = "std", not(target_os = "none")))]
mod memory;
#[cfg(feature = "system")]
mod pack;
pub mod patch;
mod registers;
mod signature;
#[cfg(feature = "system")]
pub mod system;
#[cfg(all(feature = "std", not(target_os = "none")))]
pub mod text;
mod vector;

pub use abi::{Convention, Counters, Place, Scratch, Variadic};
pub use architecture::Architecture;
pub use asm::{Asm, Code, Label, Region, Workspace};
pub use call::{Argument, Target};
pub use error::Error;
pub use features::Features;
pub use frame::{Local, Param};
pub use generated::core::{Core, Extension, Vectors};
pub use generated::{aarch64, alpha, mips, ppc64le, riscv64, sparc64, x86_64};
pub use instruction::{Access, Family, Instruction, OperandKind, Value};
pub use kind::Kind;
pub use machine::Machine;
#[cfg(all(feature = "std", not(target_os = "none")))]
pub use memory::{Installed, Memory};
pub use registers::{Class, Register, RegisterFile};
pub use signature::{Signature, Type};
pub use vector::VectorMachine;

/// What macros of this crate expand to.
#[doc(hidden)]
pub use signature::compile_time as __private;

/// The machine this program runs on.
#[cfg(target_arch = "x86_64")]
pub use x86_64::X86_64 as Native;

/// The machine this program runs on.
#[cfg(target_arch = "aarch64")]
pub use aarch64::Aarch64 as Native;

/// The machine this program runs on.
#[cfg(target_arch = "riscv64")]
pub use riscv64::Riscv64 as Native;
