//! What the functions of this crate need to know about a machine. Implemented by the generated modules.

use crate::abi::Abi;
use crate::asm::{Asm, Label};
use crate::features::Features;
use crate::registers::Set;

/// A machine register.
pub trait Register: Copy + PartialEq + core::fmt::Debug + 'static {
    /// The register with this number.
    fn from_number(number: u8) -> Self;
    /// The number of this register.
    fn number(self) -> u8;
    /// A value that is no register but stands for a place on the stack, below 2^31.
    #[doc(hidden)]
    fn on_stack(offset: u32) -> Self;
    /// Where the top bit tells whether it is no register; in the rest is its place on the stack then.
    #[doc(hidden)]
    fn mark(self) -> u32;
}

/// The most registers of one file that can be handed out.
const MAX_REGISTERS: usize = 64;

/// The registers of one file, by number, in order of allocation.
///
/// Sets of registers are kept by position in that order, so that the first free one is found by a bit scan.
#[derive(Debug, Clone, Copy)]
pub struct Lists {
    /// Registers a call may destroy.
    pub temp: &'static [u8],
    /// Registers a function must preserve.
    pub saved: &'static [u8],
    /// Registers that carry arguments; they may be in `temp` too.
    pub args: &'static [u8],
    /// All that can be handed out, by position.
    pub(crate) all: Set,
    /// Those in `saved`, by position.
    pub(crate) preserved: Set,
    /// Those in `saved` that carry no arguments, by position: what is in them outlives calls.
    pub(crate) lasting: Set,
    /// Those in `args`, by number.
    pub(crate) carriers: Set,
    /// The number at each position: first `temp`, then `saved`.
    order: [u8; MAX_REGISTERS],
    /// The set of each number: empty for those that are not handed out.
    bits: [Set; MAX_REGISTERS],
}

impl Lists {
    /// Lists of registers by number, below 64. [`Asm::begin_with`](crate::Asm::begin_with) says which are possible.
    ///
    /// # Panics
    /// If there are more than 64 registers, or a number is above 63.
    pub const fn new(temp: &'static [u8], saved: &'static [u8], args: &'static [u8]) -> Lists {
        let (order, bits) = ([0; MAX_REGISTERS], [0; MAX_REGISTERS]);
        let mut lists = Lists { temp, saved, args, all: 0, preserved: 0, lasting: 0, carriers: 0, order, bits };
        let mut index = 0;
        while index < args.len() {
            lists.carriers |= 1 << args[index];
            index += 1;
        }
        assert!(temp.len() + saved.len() <= MAX_REGISTERS, "there are not so many registers");
        let mut position = 0;
        while position < temp.len() + saved.len() {
            let bit = 1 << position;
            let number = if position < temp.len() {
                temp[position]
            } else {
                lists.preserved |= bit;
                saved[position - temp.len()]
            };
            lists.all |= bit;
            if lists.preserved & bit != 0 && lists.carriers >> number & 1 == 0 {
                lists.lasting |= bit;
            }
            lists.order[position] = number;
            lists.bits[number as usize] = bit;
            position += 1;
        }
        lists
    }

    /// Whether every register is handed out by `own` too, and none is named twice.
    pub(crate) fn is_within(&self, own: &Lists) -> bool {
        let count = self.temp.len() + self.saved.len();
        let positions = self.order.iter().take(count).enumerate();
        positions.into_iter().all(|(position, number)| own.bit(*number) != 0 && self.bit(*number) == 1 << position)
            && self.args.iter().all(|number| own.bit(*number) != 0)
            && self.carriers.count_ones() as usize == self.args.len()
    }

    /// The set of one register; empty if it is not handed out.
    #[inline(always)]
    pub(crate) fn bit(&self, number: u8) -> Set {
        self.bits[number as usize % MAX_REGISTERS]
    }

    /// The set of these registers.
    pub(crate) fn set_of(&self, numbers: &[u8]) -> Set {
        numbers.iter().fold(0, |set, number| set | self.bit(*number))
    }

    /// The set of the registers in a set of numbers.
    pub(crate) fn set_of_numbers(&self, numbers: Set) -> Set {
        (0..MAX_REGISTERS as u8)
            .filter(|number| numbers >> number & 1 != 0)
            .fold(0, |set, number| set | self.bit(number))
    }

    /// The register at a position.
    #[inline(always)]
    pub(crate) fn at(&self, position: u32) -> u8 {
        self.order[position as usize % MAX_REGISTERS]
    }
}

/// A machine that code can be written for.
#[doc(hidden)]
pub trait Machine: Abi + Sized + Copy + 'static {
    /// A register for integers and pointers.
    type Reg: Register;
    /// A register for floats and doubles.
    type Float: Register;
    /// The name of its specification.
    const NAME: &'static str;
    /// Bits of the type long.
    const LONG_BITS: u32;
    /// Every feature that a processor of the machine may have.
    const FEATURES: Features;
    /// Bytes each instruction that all machines have asks for before it writes, by number.
    const SPACE: &'static [u8];
    /// Its integer registers.
    const INT: Lists;
    /// Its floating registers.
    const FLOAT: Lists;
    /// The stack pointer.
    const STACK: Self::Reg;
    /// Free for use inside one instruction.
    const SCRATCH: Self::Reg;
    /// Free for immediates that do not fit.
    const SECOND_SCRATCH: Self::Reg;
    /// Free for use inside one floating instruction.
    const FLOAT_SCRATCH: Self::Float;
    /// Where functions return integers.
    const RESULT: Self::Reg;
    /// Where functions return floats and doubles.
    const FLOAT_RESULT: Self::Float;
    /// Whether calls leave the return address anywhere but on the stack.
    const LINKS: bool;
    /// Whether its instructions change more than the registers of the lists and the scratch registers.
    const HOLDS: bool;
    /// How far, in bytes, its short branches certainly reach; the largest number if it has no others.
    const REACH: u32;

    /// Lowers the stack pointer.
    fn enter(c: &mut Asm<'_, Self>, i: i64);
    /// Raises the stack pointer.
    fn leave(c: &mut Asm<'_, Self>, i: i64);
    /// Returns to the caller.
    fn return_(c: &mut Asm<'_, Self>);
    /// Stores the return address relative to the stack pointer.
    fn link(c: &mut Asm<'_, Self>, i: i64);
    /// Loads the return address relative to the stack pointer.
    fn unlink(c: &mut Asm<'_, Self>, i: i64);
    /// Stores what else instructions change, up to 32 bytes, relative to the stack pointer; by way of scratch registers.
    fn hold(c: &mut Asm<'_, Self>, i: i64);
    /// Loads it.
    fn release(c: &mut Asm<'_, Self>, i: i64);
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
    /// Writes a distance into the instruction at `site`; false if it does not reach.
    fn patch(kind: u8, site: &mut [u8; 4], distance: i64) -> bool;
}
