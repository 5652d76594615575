//! The kinds of functions: what may be in them, and what is written around them.

/// Whether a function calls others, or has no frame at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It does not: parameters stay in their registers, all registers are persistent, a call is an error.
    Leaf,
    /// It may: parameters are moved to registers that survive calls.
    Calls,
    /// The code is exactly what the client emits, from the first byte of the region on: no prologue, no epilogue, no
    /// register is saved. Like a leaf otherwise. It ends as the client ends it: with a jump, a `ret` of the portable
    /// instructions, which returns to the caller at once, or what returns from an interrupt or a system call. What
    /// needs a frame is an error.
    Naked,
}
