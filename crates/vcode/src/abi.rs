//! Where arguments go: the calling conventions of the machines, and conventions substituted by a client. Knows
//! register numbers, not encodings.

use crate::error::Error;
use crate::generated::{
    aarch64::Aarch64, alpha::Alpha, mips::Mips, ppc64le::Ppc64le, riscv64::Riscv64, sparc64::Sparc64, x86_64::X86_64,
};
use crate::machine::{Lists, Machine, Register};
use crate::registers::Set;
use crate::signature::{Signature, Type};

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
    /// Decides where the next argument travels: in a register of `args`, or in the bytes that it adds to the stack. Those of
    /// the machines are `x86_64::X86_64::CONVENTION.place` and so on; they take the registers of `args` in order.
    pub place: fn(&Lists, &Lists, &mut Counters, Type) -> Place,
    /// Whether a function must preserve the scratch registers too, as an interrupt handler must, and what else
    /// instructions change but the processor does not keep for a handler: HI and LO of MIPS, the condition register of Power.
    pub scratch: Scratch,
}

/// Who preserves the scratch registers that instructions use internally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// Nobody.
    Free,
    /// The function, in its prologue and epilogue, as an interrupt handler does. Such functions return nothing, may be
    /// entered on the stack of what they interrupt, and call functions of C. Of floating registers they preserve the eight
    /// bytes that doubles are in: who enters a handler that uses floats from code that uses vectors preserves those. On
    /// x86-64 the return address is in the red zone of what was interrupted: who enters steps over it before that.
    Preserved,
}

/// Where the arguments of a signature travel, all together.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) counters: Counters,
    /// Integer registers, by number.
    pub(crate) int: Set,
    /// Floating registers, by number.
    pub(crate) float: Set,
}

/// The most bytes of arguments on the stack.
const MAX_STACK: u32 = 1 << 20;

impl Convention {
    /// Whether functions can be written with this convention on `M`.
    pub(crate) fn check<M: Machine>(&self) -> Result<(), Error> {
        if !self.int.is_within(&M::INT) || !self.float.is_within(&M::FLOAT) {
            return Err(Error::RegisterTaken);
        }
        let (int, float) = (self.int.bit(M::RESULT.number()), self.float.bit(M::FLOAT_RESULT.number()));
        match self.scratch {
            Scratch::Free if self.int.preserved & int | self.float.preserved & float != 0 => {
                Err(Error::ResultPreserved)
            }
            Scratch::Free | Scratch::Preserved => Ok(()),
        }
    }

    /// Where arguments travel, if all can travel there: a client's `place` may say anything.
    pub(crate) fn places<M: Machine>(&self, signature: Signature<'_>) -> Result<Places, Error> {
        let mut places = Places::default();
        for ty in signature.types() {
            let ty = ty?;
            let before = places.counters.stack;
            let place = (self.place)(&self.int, &self.float, &mut places.counters, ty);
            let is_pair = ty == Type::D && M::LONG_BITS == 32;
            let possible = match place {
                Place::Int(number) => !is_pair && carries(&self.int, &mut places.int, number),
                Place::Float(number) => ty.is_float() && carries(&self.float, &mut places.float, number),
                Place::Pair(first, second) => {
                    is_pair && carries(&self.int, &mut places.int, first) && carries(&self.int, &mut places.int, second)
                }
                Place::Stack(at) => {
                    let size = if is_pair { 8 } else { M::LONG_BITS / 8 };
                    at.is_multiple_of(size)
                        && at >= before
                        && at.checked_add(size).is_some_and(|end| end <= places.counters.stack)
                }
            };
            if !possible || places.counters.stack > MAX_STACK {
                return Err(Error::Place);
            }
        }
        Ok(places)
    }

    /// Which of these registers outlive calls. Handlers call functions of C.
    pub(crate) fn lasting(&self, lists: &Lists, own: &Lists) -> Set {
        match self.scratch {
            Scratch::Free => lists.lasting,
            Scratch::Preserved => lists.lasting & lists.set_of(own.saved),
        }
    }
}

/// Has a register carry an argument, if it may and carries no other.
fn carries(lists: &Lists, taken: &mut Set, number: u8) -> bool {
    let bit = 1_u64.checked_shl(u32::from(number)).unwrap_or(0);
    let is_free = lists.carriers & !*taken & bit != 0;
    *taken |= bit;
    is_free
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
    /// What the stack pointer lacks to the address it stands for (SPARC).
    const BIAS: u32 = 0;
    /// The least a call pushes for stack arguments, if it pushes anything.
    const HOME: u32 = 0;
    /// Bytes below the stack pointer that belong to whom an interrupt handler interrupts.
    const RED_ZONE: u32 = 0;
    /// Where in eight bytes of stack a float is.
    const SINGLE_AT: u32 = 0;
    /// How much higher the number of the register is in which a float travels than of the one it is used in (SPARC).
    const SINGLE_SHIFT: u8 = 0;
    /// Whether values of 32 bits must be extended before they leave the function.
    const EXTENDS: bool = false;
    /// The stack pointer modulo sixteen at entry.
    const MISALIGNED: u32;
    /// Bytes before a label site at which its instruction starts (x86).
    const SITE_BACK: usize;
    /// Bytes an emitted jump to the epilogue takes when it is the last thing.
    const JUMP_BYTES: usize;
    /// Whether a jump executes the instruction after it.
    const DELAY_SLOTS: bool;
    /// Instructions between a load and the first use of its result that the machine does not wait for by itself.
    const LOAD_DELAY: u32 = 0;
    /// Whether variadic functions want the number of floating arguments in the result register (x86-64).
    const COUNTS_FLOATS: bool;
    /// Whether words and data are stored least significant byte first.
    const LITTLE_ENDIAN: bool;
    /// Whether instructions on integers use the floating scratch register (Alpha, which divides there).
    const DIVIDES_IN_FLOATS: bool = false;
    /// Bytes reserved in front of the body for the prologue of the machine's own convention.
    const PROLOGUE: usize;
}

#[inline(always)]
fn next(list: &[u8], count: &mut u32) -> Option<u8> {
    let number = list.get(*count as usize).copied();
    *count += 1;
    number
}

#[inline(always)]
fn stack(counters: &mut Counters) -> Place {
    let at = counters.stack;
    counters.stack += 8;
    Place::Stack(at)
}

/// Integers and floats have their own registers; then the stack (System V x86-64, AAPCS64).
#[inline(always)]
fn separate(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    let register = if ty.is_float() {
        next(float.args, &mut counters.float).map(Place::Float)
    } else {
        next(int.args, &mut counters.int).map(Place::Int)
    };
    register.unwrap_or_else(|| stack(counters))
}

/// Like [`separate`], but floats that find no floating register use integer registers (RISC-V).
#[inline(always)]
fn overflow_to_int(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    if ty.is_float()
        && let Some(number) = next(float.args, &mut counters.float)
    {
        return Place::Float(number);
    }
    next(int.args, &mut counters.int).map_or_else(|| stack(counters), Place::Int)
}

/// Position decides; integers and floats have a register each per position (Alpha).
// A match on the kind, not a choice of list and of constructor: the compiler then folds all of it for a signature that
// it knows, and with it what registers are free.
#[inline(always)]
fn by_position(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    let register = if ty.is_float() {
        next(float.args, &mut counters.int).map(Place::Float)
    } else {
        next(int.args, &mut counters.int).map(Place::Int)
    };
    register.unwrap_or_else(|| stack(counters))
}

/// Position decides, and every position has its place on the stack (SPARC V9).
#[inline(always)]
fn by_slot(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    let at = counters.stack;
    counters.stack += 8;
    let list = if ty.is_float() { float.args } else { int.args };
    match list.get(at as usize / 8) {
        Some(number) if ty.is_float() => Place::Float(*number),
        Some(number) => Place::Int(*number),
        None => Place::Stack(at),
    }
}

/// Every position has its place on the stack and decides for integers; floats take one floating register after the
/// other, whatever their positions (Power, ELFv2).
#[inline(always)]
fn by_slot_and_count(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    let at = counters.stack;
    counters.stack += 8;
    let register = if ty.is_float() {
        next(float.args, &mut counters.float).map(Place::Float)
    } else {
        int.args.get(at as usize / 8).copied().map(Place::Int)
    };
    register.unwrap_or(Place::Stack(at))
}

/// Sixteen bytes of arguments travel in four integer registers, leading floats in two floating ones (MIPS o32).
#[inline(always)]
fn o32(int: &Lists, float: &Lists, counters: &mut Counters, ty: Type) -> Place {
    let size = if ty == Type::D { 8 } else { 4 };
    let at = counters.stack.next_multiple_of(size);
    counters.stack = at + size;
    if ty.is_float()
        && counters.int == 0
        && let Some(number) = next(float.args, &mut counters.float)
    {
        return Place::Float(number);
    }
    counters.int = 1;
    let word = at as usize / 4;
    match (int.args.get(word), int.args.get(word + 1)) {
        (Some(first), Some(second)) if ty == Type::D => Place::Pair(*first, *second),
        (Some(number), _) => Place::Int(*number),
        (None, _) => Place::Stack(at),
    }
}

const fn convention<M: Machine>(place: fn(&Lists, &Lists, &mut Counters, Type) -> Place) -> Convention {
    Convention { int: M::INT, float: M::FLOAT, place, scratch: Scratch::Free }
}

impl Abi for X86_64 {
    const CONVENTION: Convention = convention::<Self>(separate);
    const INCOMING: u32 = 8;
    const OUTGOING: u32 = 0;
    const BOTTOM: u32 = 0;
    const RED_ZONE: u32 = 128;
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

impl Abi for Mips {
    const CONVENTION: Convention = convention::<Self>(o32);
    const INCOMING: u32 = 0;
    const OUTGOING: u32 = 0;
    const BOTTOM: u32 = 16;
    const HOME: u32 = 16;
    const MISALIGNED: u32 = 0;
    const SITE_BACK: usize = 0;
    const JUMP_BYTES: usize = 4;
    const DELAY_SLOTS: bool = true;
    const COUNTS_FLOATS: bool = false;
    const LITTLE_ENDIAN: bool = false;
    const PROLOGUE: usize = 160;
}

impl Abi for Sparc64 {
    const CONVENTION: Convention = convention::<Self>(by_slot);
    const INCOMING: u32 = 2047 + 128;
    const OUTGOING: u32 = 128;
    const BOTTOM: u32 = 176;
    const BIAS: u32 = 2047;
    const HOME: u32 = 48;
    const SINGLE_AT: u32 = 4;
    const SINGLE_SHIFT: u8 = 1;
    const EXTENDS: bool = true;
    const MISALIGNED: u32 = 0;
    const SITE_BACK: usize = 0;
    const JUMP_BYTES: usize = 4;
    const DELAY_SLOTS: bool = true;
    const COUNTS_FLOATS: bool = false;
    const LITTLE_ENDIAN: bool = false;
    const PROLOGUE: usize = 128;
}

impl Abi for Alpha {
    const CONVENTION: Convention = convention::<Self>(by_position);
    const INCOMING: u32 = 0;
    const OUTGOING: u32 = 0;
    const BOTTOM: u32 = 0;
    const MISALIGNED: u32 = 0;
    const SITE_BACK: usize = 0;
    const JUMP_BYTES: usize = 4;
    const DELAY_SLOTS: bool = false;
    const DIVIDES_IN_FLOATS: bool = true;
    const COUNTS_FLOATS: bool = false;
    const LITTLE_ENDIAN: bool = true;
    const PROLOGUE: usize = 128;
}

impl Abi for Ppc64le {
    const CONVENTION: Convention = convention::<Self>(by_slot_and_count);
    const INCOMING: u32 = 32;
    const OUTGOING: u32 = 32;
    // Back chain, condition register, return address and table of contents; callees store into it.
    const BOTTOM: u32 = 32;
    const HOME: u32 = 64;
    // 288 bytes of the function, 224 of the system.
    const RED_ZONE: u32 = 512;
    const EXTENDS: bool = true;
    const MISALIGNED: u32 = 0;
    const SITE_BACK: usize = 0;
    const JUMP_BYTES: usize = 4;
    const DELAY_SLOTS: bool = false;
    const COUNTS_FLOATS: bool = false;
    const LITTLE_ENDIAN: bool = true;
    const PROLOGUE: usize = 192;
}
