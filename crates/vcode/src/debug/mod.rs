//! Makes generated code visible to debuggers and profilers: GDB ([`gdb`]), `perf` ([`perf`]). Everything here happens
//! after a function is finished, so code nobody looks at pays nothing.

mod elf;
#[cfg(feature = "gdb")]
pub mod gdb;
pub mod perf;
mod unwind;

use std::vec::Vec;

use crate::asm::Code;
use crate::machine::Machine;

/// A finished function, as tools are told of it.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address.
    pub entry: usize,
    /// Its bytes: instructions, without the constants behind them.
    pub code: &'a [u8],
    /// How many of them are prologue: [`prologue_bytes`].
    pub prologue: usize,
    /// The file that lines are of; whatever the instructions came from.
    pub source: &'a str,
    /// Offsets in the code and the line each came from, by offset. [`Asm::position`](crate::Asm::position) tells them,
    /// less the offset of the [`Code`].
    pub lines: &'a [(usize, usize)],
}

/// How many bytes of a function for machine `M`, of its own calling convention, come before its body.
pub fn prologue_bytes<M: Machine>(code: &Code) -> usize {
    M::PROLOGUE.saturating_sub(code.offset)
}

/// How a function for machine `M` is unwound: a section `.eh_frame` with it alone. Given to `__register_frame` of libgcc in
/// the program that runs the function, exceptions and backtraces go through it, until `__deregister_frame`; both want the
/// bytes where they stay.
///
/// `None` if it is not known how frames of the machine are unwound: it is for x86-64, AArch64 and RISC-V 64.
pub fn call_frames<M: Machine>(described: &Described<'_>) -> Option<Vec<u8>> {
    unwind::eh_frame::<M>(described)
}
