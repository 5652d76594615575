//! The system layer of x86-64: what kernels need and nothing portable stands for. System instructions, push and pop,
//! memory operands of arithmetic, data relative to gs, and rsp, r11 and r12 as operands.
//!
//! The emitters are methods of `Asm<'_, X86_64>`, each for one machine instruction (the [list]), generated from
//! `machines/system/x86_64.spec`. No emitter uses a scratch register. Operands are destination first; what writes
//! memory takes the value first, then base and displacement:
//!
//! ```
//! use quaject_vcode::system::{RAX, RBX, RDI, RSP};
//! use quaject_vcode::x86_64::X86_64;
//! use quaject_vcode::{Asm, Error, Kind, Param, Workspace};
//!
//! let mut bytes = [0; 256];
//! let mut workspace = Workspace::<X86_64>::new();
//! let mut asm = Asm::begin((&mut bytes[..]).into(), &mut workspace, "", &mut [Param::NONE; 0], Kind::Naked)?;
//! asm.push64(RBX);
//! asm.mov64_m(RBX, RDI, 16); // load
//! asm.add64_to_i(RBX, 8, 1); // the number that RBX + 8 points to
//! asm.mov64_m(RAX, RSP, 0);
//! asm.pop64(RBX);
//! asm.swapgs();
//! asm.sysretq();
//! assert_eq!(asm.end()?.length, 1 + 4 + 5 + 4 + 1 + 3 + 3);
//! # Ok::<(), Error>(())
//! ```
//!
//! [list]: https://github.com/quaject/quaject/blob/main/docs/vcode-system-x86_64.md

pub use crate::generated::x86_64_system::*;
pub use crate::pack::AnyRegister;
