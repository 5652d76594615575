//! Machine code in place: a client writes a function at run time by calling one inline function per instruction of an
//! idealised load-store machine; each call stores the machine words and nothing else.
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use quaject_vcode::{Asm, Core, Kind, Memory, Native, Param, Workspace};
//!
//! let memory = Memory::new(4096)?;
//! let mut workspace = Workspace::<Native>::new();
//! let mut arguments = [Param::NONE];
//! let mut asm = Asm::begin(memory.region(4096)?, &mut workspace, "%i", &mut arguments, Kind::Leaf)?;
//! let x = arguments[0].reg();
//! asm.addii(x, x, 1);
//! asm.reti(x);
//! let code = asm.end()?;
//! // SAFETY: the code takes an int and returns an int, and `memory` outlives the call.
//! let plus1: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(code.entry) };
//! assert_eq!(plus1(41), 42);
//! # }
//! # Ok::<(), quaject_vcode::Error>(())
//! ```
//!
//! The emitters, the decoder tables and the C header are generated from `machines/*.spec`; no encoding lives here. The
//! crate knows nothing of expressions or variables: there is no intermediate form.
#![no_std]

#[cfg(all(feature = "std", target_os = "linux"))]
extern crate std;

mod abi;
mod asm;
mod call;
mod cursor;
pub mod decode;
mod error;
mod frame;
mod generated;
mod machine;
#[cfg(all(feature = "std", target_os = "linux"))]
mod memory;
mod registers;
mod signature;

pub use abi::{Convention, Counters, Place, Scratch};
pub use asm::{Asm, Code, Label, Region, Workspace};
pub use call::{Argument, Target};
pub use error::Error;
pub use frame::{Kind, Local, Param};
pub use generated::core::Core;
pub use generated::{aarch64, alpha, mips, riscv64, sparc64, x86_64};
pub use machine::{Lists, Machine, Register};
#[cfg(all(feature = "std", target_os = "linux"))]
pub use memory::Memory;
pub use registers::Class;
pub use signature::{Signature, Type};

/// The machine this program runs on.
#[cfg(target_arch = "x86_64")]
pub use x86_64::X86_64 as Native;

/// The machine this program runs on.
#[cfg(target_arch = "aarch64")]
pub use aarch64::Aarch64 as Native;

/// The machine this program runs on.
#[cfg(target_arch = "riscv64")]
pub use riscv64::Riscv64 as Native;
