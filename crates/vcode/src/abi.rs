//! Calling conventions and the layout of frames: where arguments are passed, and which registers a call preserves. Uses
//! register numbers, not encodings; the conventions of the machines are in `conventions.rs`.

use crate::registers::{RegisterFile, Set};
use crate::signature::Type;

/// Where an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An integer register, by number; a float or double may be passed there too.
    Int(u8),
    /// A floating register, by number.
    Float(u8),
    /// Two integer registers, the first of which holds the part at the lower address.
    Pair(u8, u8),
    /// The stack, at this offset from the first stack argument.
    Stack(u32),
}

/// How many registers and stack bytes the arguments so far occupy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Integer registers.
    pub int: u32,
    /// Floating registers.
    pub float: u32,
    /// Bytes of stack.
    pub stack: u32,
    /// Where the next argument is in the call of a variadic function.
    pub variadic: Variadic,
}

/// Whether an argument is one of a variadic function, and on which side of the `...` of its prototype.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Variadic {
    /// The function is not variadic.
    #[default]
    No,
    /// Before the `...`.
    Fixed,
    /// Among the arguments that `...` stands for.
    Rest,
}

/// A calling convention. A client substitutes its own per function.
#[derive(Debug, Clone, Copy)]
pub struct Convention {
    /// Integer registers and their classes.
    pub int: RegisterFile,
    /// Floating registers and their classes.
    pub float: RegisterFile,
    /// Assigns the next argument to a register of `args`, or to stack bytes that it adds to the counters. The functions
    /// of the machines, such as `x86_64::X86_64::CONVENTION.place`, use the registers of `args` in order.
    pub place: fn(&RegisterFile, &RegisterFile, &mut Counters, Type) -> Place,
    /// Whether a function must also preserve the scratch registers and the special registers that instructions change
    /// (HI and LO of MIPS, the condition register of Power), as an interrupt handler must.
    pub scratch: Scratch,
}

/// Whether a function preserves the scratch registers that instructions use internally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// It does not: an ordinary function.
    Free,
    /// It does, in its prologue and epilogue: an interrupt handler. Such a function returns nothing, may run on the
    /// stack of the interrupted code, and may call functions of C. Of a floating register it preserves the low eight
    /// bytes, which hold a double; if the interrupted code uses vectors, the caller of the handler preserves them. On
    /// x86-64 the return address would be in the red zone of the interrupted code: the caller lowers the stack pointer
    /// by `Abi::RED_ZONE` before.
    Preserved,
}

/// The registers and stack bytes that the arguments of a signature occupy.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) counters: Counters,
    /// Integer registers, by number.
    pub(crate) int: Set,
    /// Floating registers, by number.
    pub(crate) float: Set,
}

impl Convention {
    /// Those of these registers that calls preserve. Handlers call functions of C.
    pub(crate) fn surviving(&self, file: &RegisterFile, own: &RegisterFile) -> Set {
        match self.scratch {
            Scratch::Free => file.surviving,
            Scratch::Preserved => file.surviving & file.set_of(own.saved),
        }
    }
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
    /// Bytes at the bottom of a frame that the convention reserves for the callee or the system.
    const BOTTOM: u32;
    /// The difference between the address that the stack pointer represents and its value (SPARC V9 stack bias).
    const BIAS: u32 = 0;
    /// The minimum size of the stack argument area of a call that has one (the home area of register arguments).
    const HOME: u32 = 0;
    /// Bytes below the stack pointer that interrupted code may still use.
    const RED_ZONE: u32 = 0;
    /// The offset of a float within its eight bytes of stack.
    const SINGLE_AT: u32 = 0;
    /// The number of the register in which a float is passed minus that of the register in which it is used (SPARC).
    const SINGLE_SHIFT: u8 = 0;
    /// Whether values of 32 bits must be extended before they leave the function.
    const EXTENDS: bool = false;
    /// Whether callers may leave the bits above a parameter of 8 or 16 bits undefined. Calls extend such an argument on
    /// every machine: most conventions require it, and it is what compilers rely on where the convention says nothing.
    const EXTENDS_PARAMETERS: bool = false;
    /// The stack pointer modulo sixteen at entry.
    const MISALIGNED: u32;
    /// The distance from the start of a jump to its label field (x86).
    const SITE_BACK: usize;
    /// The size of the jump to the epilogue, which is removed when it is the last instruction.
    const JUMP_BYTES: usize;
    /// Whether jumps have a delay slot.
    const DELAY_SLOTS: bool;
    /// The number of load delay slots, for machines without interlocks.
    const LOAD_DELAY: u32 = 0;
    /// Whether a call passes the number of floating register arguments in the result register, for variadic functions
    /// (x86-64).
    const COUNTS_FLOATS: bool;
    /// Whether words and data are stored least significant byte first.
    const LITTLE_ENDIAN: bool;
    /// Whether the target of an integer instruction is also its first source (x86).
    const TWO_OPERAND: bool = false;
    /// Whether instructions on integers use the floating scratch register (Alpha, which divides there).
    const DIVIDES_IN_FLOATS: bool = false;
    /// Bytes reserved in front of the body for the prologue of the machine's own convention.
    const PROLOGUE: usize;
}
