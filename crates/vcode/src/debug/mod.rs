//! Registration of generated code with debuggers and profilers: GDB ([`gdb`]) and `perf` ([`perf`]). It happens after a
//! function is finished, so code generation without it has no cost.

mod bytes;
mod elf;
#[cfg(feature = "gdb")]
pub mod gdb;
pub mod perf;
mod unwind;

use std::vec::Vec;

use crate::asm::Code;
use crate::machine::Machine;

/// A finished function, as it is described to a tool.
#[derive(Debug, Clone, Copy)]
pub struct FunctionInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address.
    pub entry: usize,
    /// Its bytes: instructions, without the constants behind them.
    pub code: &'a [u8],
    /// How many of them are prologue: [`prologue_bytes`].
    pub prologue: usize,
    /// The files that lines are of, by their paths, at least one: that of the function comes first.
    pub sources: &'a [&'a str],
    /// Where the instructions came from, by offset.
    pub lines: &'a [Line],
}

impl FunctionInfo<'_> {
    /// The path of a file; of the function's if there is no such file.
    fn source(&self, number: usize) -> &str {
        self.sources.get(number).or(self.sources.first()).copied().unwrap_or_default()
    }
}

/// Where instructions came from, those up to the next one's.
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

/// How a function for machine `M` is unwound: a section `.eh_frame` with it alone. Given to `__register_frame` of libgcc in
/// the program that runs the function, exceptions and backtraces go through it, until `__deregister_frame`; both want the
/// bytes where they stay.
///
/// `None` if it is not known how frames of the machine are unwound: it is for x86-64, AArch64 and RISC-V 64.
pub fn call_frames<M: Machine>(described: &FunctionInfo<'_>) -> Option<Vec<u8>> {
    unwind::eh_frame::<M>(described)
}
