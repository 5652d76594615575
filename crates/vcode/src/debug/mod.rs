//! Makes generated code visible to debuggers and profilers: GDB ([`gdb`]), `perf` ([`perf`]). Everything here happens
//! after a function is finished, so code nobody looks at pays nothing.

mod elf;
#[cfg(feature = "gdb")]
pub mod gdb;
pub mod perf;
mod unwind;

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
    /// less the offset of the [`Code`](crate::Code).
    pub lines: &'a [(usize, usize)],
}

/// How many bytes of a function for this machine come before its body.
pub fn prologue_bytes(code: &crate::Code) -> usize {
    <crate::Native as crate::abi::Abi>::PROLOGUE.saturating_sub(code.offset)
}
