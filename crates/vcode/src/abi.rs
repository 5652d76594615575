//! Calling conventions, and the layout of frames: where arguments are passed, which registers calls preserve. Knows register
//! numbers, not encodings; the conventions of the machines are in `conventions.rs`.

use crate::registers::{Lists, Set};
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
    /// Decides where the next argument travels: in a register of `args`, or in the bytes that it adds to the stack. Those of
    /// the machines are `x86_64::X86_64::CONVENTION.place` and so on; they take the registers of `args` in order.
    pub place: fn(&Lists, &Lists, &mut Counters, Type) -> Place,
    /// Whether a function must preserve the scratch registers too, as an interrupt handler must, and what else
    /// instructions change but the processor does not keep for a handler: HI and LO of MIPS, the condition register of Power.
    pub scratch: Scratch,
}

/// Whether a function preserves the scratch registers that instructions use internally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scratch {
    /// It does not: an ordinary function.
    Free,
    /// It does, in its prologue and epilogue: an interrupt handler. Such a function returns nothing, may run on the stack of
    /// the interrupted code, and may call functions of C. Of a floating register it preserves the low eight bytes, which hold a
    /// double; if the interrupted code uses vectors, the caller of the handler preserves them. On x86-64 the return address
    /// would be in the red zone of the interrupted code: the caller lowers the stack pointer by [`Abi::RED_ZONE`] before.
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

impl Convention {
    /// Which of these registers outlive calls. Handlers call functions of C.
    pub(crate) fn surviving(&self, lists: &Lists, own: &Lists) -> Set {
        match self.scratch {
            Scratch::Free => lists.surviving,
            Scratch::Preserved => lists.surviving & lists.set_of(own.saved),
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
