//! Where arguments go: the calling conventions of the six machines, and conventions substituted by a client. Knows
//! register numbers, not encodings.

use crate::generated::{aarch64::Aarch64, riscv64::Riscv64, x86_64::X86_64};
use crate::machine::{Lists, Machine};
use crate::signature::Type;

/// Where an argument travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An integer register, by number; a float or double may travel there too.
    Int(u8),
    /// A floating register, by number.
    Float(u8),
    /// Two integer registers, the first of which holds the part at the lower address.
    Pair(u8, u8),
    /// The stack, so many bytes from where arguments start.
    Stack(u32),
}

/// What has been handed out to the arguments so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Integer registers.
    pub int: u32,
    /// Floating registers.
    pub float: u32,
    /// Bytes of stack.
    pub stack: u32,
}

/// A calling convention. A client substitutes its own per function.
#[derive(Debug, Clone, Copy)]
pub struct Convention {
    /// Integer registers and their classes.
    pub int: Lists,
    /// Floating registers and their classes.
    pub float: Lists,
    /// Decides where the next argument travels.
    pub place: fn(&Lists, &Lists, &mut Counters, Type) -> Place,
    /// Whether a function must preserve the scratch registers too, as an interrupt handler must.
    pub scratch: Scratch,
}

/// Who preserves the scratch registers that instructions use internally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// Nobody.
    Free,
    /// The function, in its prologue and epilogue.
    Preserved,
}

/// The layout of frames on a machine, and its own convention.
#[doc(hidden)]
pub trait Abi {
    /// The convention of C.
    const CONVENTION: Convention;
    /// Bytes from the stack pointer at entry to the first stack argument.
    const INCOMING: u32;
    /// Bytes from the stack pointer at a call to the first stack argument.
    const OUTGOING: u32;
    /// Bytes at the bottom of a frame that are not the function's own.
    const BOTTOM: u32;
    /// The stack pointer modulo sixteen at entry.
    const MISALIGNED: u32;
    /// Bytes before a label site at which its instruction starts (x86).
    const SITE_BACK: usize;
    /// Bytes an emitted jump to the epilogue takes when it is the last thing.
    const JUMP_BYTES: usize;
    /// Whether a jump executes the instruction after it.
    const DELAY_SLOTS: bool;
    /// Whether variadic functions want the number of floating arguments in the result register (x86-64).
    const COUNTS_FLOATS: bool;
    /// Whether words and data are stored least significant byte first.
    const LITTLE_ENDIAN: bool;
    /// Bytes reserved in front of the body for the prologue.
    const PROLOGUE: usize;
}

fn next(list: &[u8], count: &mut u32) -> Option<u8> {
    let number = list.get(*count as usize).copied();
    *count += 1;
    number
}

fn stack(counters: &mut Counters) -> Place {
    let at = counters.stack;
    counters.stack += 8;
    Place::Stack(at)
}

/// Integers and floats have their own registers; then the stack (System V x86-64, AAPCS64).
fn separate(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    let register = if ty.is_float() {
        next(float.args, &mut counters.float).map(Place::Float)
    } else {
        next(int.args, &mut counters.int).map(Place::Int)
    };
    register.unwrap_or_else(|| stack(counters))
}

/// Like [`separate`], but floats that find no floating register use integer registers (RISC-V).
fn overflow_to_int(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    if ty.is_float()
        && let Some(number) = next(float.args, &mut counters.float)
    {
        return Place::Float(number);
    }
    next(int.args, &mut counters.int).map_or_else(|| stack(counters), Place::Int)
}

const fn convention<M: Machine>(place: fn(&Lists, &Lists, &mut Counters, Type) -> Place) -> Convention {
    Convention { int: M::INT, float: M::FLOAT, place, scratch: Scratch::Free }
}

impl Abi for X86_64 {
    const CONVENTION: Convention = convention::<Self>(separate);
    const INCOMING: u32 = 8;
    const OUTGOING: u32 = 0;
    const BOTTOM: u32 = 0;
    const MISALIGNED: u32 = 8;
    const SITE_BACK: usize = 1;
    const JUMP_BYTES: usize = 5;
    const DELAY_SLOTS: bool = false;
    const COUNTS_FLOATS: bool = true;
    const LITTLE_ENDIAN: bool = true;
    const PROLOGUE: usize = 64;
}

impl Abi for Riscv64 {
    const CONVENTION: Convention = convention::<Self>(overflow_to_int);
    const INCOMING: u32 = 0;
    const OUTGOING: u32 = 0;
    const BOTTOM: u32 = 0;
    const MISALIGNED: u32 = 0;
    const SITE_BACK: usize = 0;
    const JUMP_BYTES: usize = 4;
    const DELAY_SLOTS: bool = false;
    const COUNTS_FLOATS: bool = false;
    const LITTLE_ENDIAN: bool = true;
    const PROLOGUE: usize = 160;
}

impl Abi for Aarch64 {
    const CONVENTION: Convention = convention::<Self>(separate);
    const INCOMING: u32 = 0;
    const OUTGOING: u32 = 0;
    const BOTTOM: u32 = 0;
    const MISALIGNED: u32 = 0;
    const SITE_BACK: usize = 0;
    const JUMP_BYTES: usize = 4;
    const DELAY_SLOTS: bool = false;
    const COUNTS_FLOATS: bool = false;
    const LITTLE_ENDIAN: bool = true;
    const PROLOGUE: usize = 128;
}
