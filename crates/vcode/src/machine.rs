//! The instructions of which prologues, epilogues, calls and moves consist. The generated modules implement them for
//! each machine.

use crate::architecture::Architecture;
use crate::asm::{Asm, Label};
use crate::features::Features;

impl Features {
    /// The features of a machine by the bits of [`Features::bits`].
    pub fn of<M: Machine>(bits: u64) -> Features {
        Features::from_bits(bits & M::FEATURES.bits())
    }
}

/// A machine that code can be written for.
#[doc(hidden)]
pub trait Machine: Architecture {
    /// Lowers the stack pointer.
    fn enter(c: &mut Asm<'_, Self>, i: i64);
    /// Raises the stack pointer.
    fn leave(c: &mut Asm<'_, Self>, i: i64);
    /// Returns to the caller.
    fn return_(c: &mut Asm<'_, Self>);
    /// Copies the return address that `jal` left to a register.
    fn link(c: &mut Asm<'_, Self>, d: Self::Reg);
    /// Calls a function of this region by the convention.
    fn call_label(c: &mut Asm<'_, Self>, b: Label);
    /// Stores the return address relative to the stack pointer.
    fn save_link(c: &mut Asm<'_, Self>, i: i64);
    /// Loads the return address relative to the stack pointer.
    fn restore_link(c: &mut Asm<'_, Self>, i: i64);
    /// Stores the special registers that instructions change, up to 32 bytes, relative to the stack pointer; overwrites
    /// scratch registers.
    fn save_special(c: &mut Asm<'_, Self>, i: i64);
    /// Loads the special registers.
    fn restore_special(c: &mut Asm<'_, Self>, i: i64);
    /// Stores a register relative to the stack pointer.
    fn save(c: &mut Asm<'_, Self>, r: Self::Reg, at: i32);
    /// Loads a register relative to the stack pointer.
    fn restore(c: &mut Asm<'_, Self>, r: Self::Reg, at: i32);
    /// Stores a double relative to the stack pointer.
    fn save_float(c: &mut Asm<'_, Self>, r: Self::Float, at: i32);
    /// Loads a double relative to the stack pointer.
    fn restore_float(c: &mut Asm<'_, Self>, r: Self::Float, at: i32);
    /// Stores a float relative to the stack pointer.
    fn save_single(c: &mut Asm<'_, Self>, r: Self::Float, at: i32);
    /// Loads a float relative to the stack pointer.
    fn restore_single(c: &mut Asm<'_, Self>, r: Self::Float, at: i32);
    /// Copies a register.
    fn copy(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Copies a float.
    fn copy_single(c: &mut Asm<'_, Self>, d: Self::Float, s: Self::Float);
    /// Extends an int to a long.
    fn extend_int(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Extends an unsigned to a long.
    fn extend_unsigned(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Converts an int to a signed char, which is held as an int.
    fn to_char(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Converts an int to an unsigned char.
    fn to_unsigned_char(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Converts an int to a short.
    fn to_short(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Converts an int to an unsigned short.
    fn to_unsigned_short(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg);
    /// Copies a floating register.
    fn copy_float(c: &mut Asm<'_, Self>, d: Self::Float, s: Self::Float);
    /// Loads a constant.
    fn constant(c: &mut Asm<'_, Self>, d: Self::Reg, i: i64);
    /// Calls the function whose address is in a register.
    fn call_register(c: &mut Asm<'_, Self>, r: Self::Reg);
    /// Computes an address relative to the stack pointer.
    fn frame_address(c: &mut Asm<'_, Self>, d: Self::Reg, i: i64);
    /// Loads a long.
    fn load_long(c: &mut Asm<'_, Self>, d: Self::Reg, s: Self::Reg, at: i32);
    /// Loads a float.
    fn load_float(c: &mut Asm<'_, Self>, d: Self::Float, s: Self::Reg, at: i32);
    /// Loads a double.
    fn load_double(c: &mut Asm<'_, Self>, d: Self::Float, s: Self::Reg, at: i32);
    /// Jumps to a label.
    fn jump(c: &mut Asm<'_, Self>, b: Label);
    /// Jumps to the address in a register.
    fn jump_register(c: &mut Asm<'_, Self>, r: Self::Reg);
    /// Does nothing, for one instruction.
    fn nop(c: &mut Asm<'_, Self>);
}
