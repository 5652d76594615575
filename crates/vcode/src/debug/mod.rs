//! Registration of generated code with debuggers and profilers: GDB ([`gdb`]) and `perf` ([`perf`]). It happens after a
//! function is finished, so code generation without it has no cost.

mod bytes;
mod effects;
mod elf;
#[cfg(feature = "gdb")]
pub mod gdb;
pub mod perf;
mod unwind;

use std::vec::Vec;

use crate::asm::Code;
use crate::machine::Machine;

/// The description of a finished function for a tool.
#[derive(Debug, Clone, Copy)]
pub struct FunctionInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address.
    pub entry: usize,
    /// Its bytes: instructions, without the constants behind them.
    pub code: &'a [u8],
    /// The length of the prologue: [`prologue_bytes`].
    pub prologue: usize,
    /// The paths of the source files, at least one: that of the function comes first.
    pub sources: &'a [&'a str],
    /// The line table, by offset.
    pub lines: &'a [Line],
}

impl FunctionInfo<'_> {
    /// The path of a file; of the function's if there is no such file.
    fn source(&self, number: usize) -> &str {
        self.sources.get(number).or(self.sources.first()).copied().unwrap_or_default()
    }
}

/// A row of the line table: the source of the instructions up to the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Bytes from the function's start: [`Asm::position`](crate::Asm::position) less the offset of the [`Code`].
    pub offset: usize,
    /// Which of the sources.
    pub source: usize,
    /// The line in it, from 1; 0 for instructions without a line.
    pub line: usize,
}

/// How many bytes of a function for machine `M`, of its own calling convention, come before its body.
pub fn prologue_bytes<M: Machine>(code: &Code) -> usize {
    M::PROLOGUE.saturating_sub(code.offset)
}

/// The call frame information of a function for machine `M`, as a section `.eh_frame`. After `__register_frame` of
/// libgcc in the program that runs the function, exceptions and backtraces unwind through it, until
/// `__deregister_frame`; the bytes must not move between the two.
pub fn call_frames<M: Machine>(described: &FunctionInfo<'_>) -> Vec<u8> {
    unwind::eh_frame::<M>(described)
}
