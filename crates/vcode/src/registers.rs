//! Registers, the register files of a machine, and their allocation by priority and class: a set of free registers per
//! file, and the order in which they are allocated.

/// Whether a register has to keep its value across calls ("VCODE" 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not preserved: a call may destroy its value.
    Temporary,
    /// Preserved across calls.
    Persistent,
}

/// A set of registers of one file, by position in the order of allocation.
pub(crate) type Set = u64;

/// A machine register.
pub trait Register: Copy + PartialEq + core::fmt::Debug + 'static {
    /// The register with this number.
    fn from_number(number: u8) -> Self;
    /// The number of this register.
    fn number(self) -> u8;
    /// The encoding of a stack slot below 2^31 as a value of this type, for virtual registers.
    #[doc(hidden)]
    fn on_stack(offset: u32) -> Self;
    /// The top bit is set for a stack slot; the other bits are then its offset.
    #[doc(hidden)]
    fn mark(self) -> u32;
}

/// The maximum number of allocatable registers of one file.
const MAX_REGISTERS: usize = 64;

/// The registers of one file, by number, in order of allocation.
///
/// Sets of registers are kept by position in that order, so that the first free one is found by a bit scan.
#[derive(Debug, Clone, Copy)]
pub struct RegisterFile {
    /// Registers a call may destroy.
    pub temp: &'static [u8],
    /// Registers a function must preserve.
    pub saved: &'static [u8],
    /// Registers that carry arguments; they may be in `temp` too.
    pub args: &'static [u8],
    /// All allocatable registers, by position.
    pub(crate) all: Set,
    /// Those in `saved`, by position.
    pub(crate) preserved: Set,
    /// Those in `saved` that carry no arguments, by position: their values survive calls.
    pub(crate) surviving: Set,
    /// Those in `args`, by number.
    pub(crate) argument_registers: Set,
    /// The number at each position: first `temp`, then `saved`.
    order: [u8; MAX_REGISTERS],
    /// The set of each number: empty for a register that is not allocatable.
    bits: [Set; MAX_REGISTERS],
}

impl RegisterFile {
    /// Lists of registers by number, below 64. [`Asm::begin_with`](crate::Asm::begin_with) says which are possible.
    ///
    /// # Panics
    /// If there are more than 64 registers, or a number is above 63.
    pub const fn new(temp: &'static [u8], saved: &'static [u8], args: &'static [u8]) -> RegisterFile {
        let (order, bits) = ([0; MAX_REGISTERS], [0; MAX_REGISTERS]);
        let mut file =
            RegisterFile { temp, saved, args, all: 0, preserved: 0, surviving: 0, argument_registers: 0, order, bits };
        let mut index = 0;
        while index < args.len() {
            file.argument_registers |= 1 << args[index];
            index += 1;
        }
        assert!(temp.len() + saved.len() <= MAX_REGISTERS, "there are not so many registers");
        let mut position = 0;
        while position < temp.len() + saved.len() {
            let bit = 1 << position;
            let number = if position < temp.len() {
                temp[position]
            } else {
                file.preserved |= bit;
                saved[position - temp.len()]
            };
            file.all |= bit;
            if file.preserved & bit != 0 && file.argument_registers >> number & 1 == 0 {
                file.surviving |= bit;
            }
            file.order[position] = number;
            file.bits[number as usize] = bit;
            position += 1;
        }
        file
    }

    /// Whether every register is allocatable in `own` too, and none is listed twice.
    pub(crate) fn is_within(&self, own: &RegisterFile) -> bool {
        let count = self.temp.len() + self.saved.len();
        let positions = self.order.iter().take(count).enumerate();
        positions.into_iter().all(|(position, number)| own.bit(*number) != 0 && self.bit(*number) == 1 << position)
            && self.args.iter().all(|number| own.bit(*number) != 0)
            && self.argument_registers.count_ones() as usize == self.args.len()
    }

    /// The set of one register; empty if it is not allocatable.
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

/// The allocation state of one register file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegisterState {
    /// The free registers.
    pub(crate) free: Set,
    /// The callee-saved registers that were allocated at some time.
    pub(crate) touched: Set,
    /// Temporaries that are used as persistent registers: saved around every call.
    pub(crate) saved_around_calls: Set,
}

/// An allocated register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) number: u8,
    /// A temporary that must be saved around calls.
    pub(crate) saved_around_calls: bool,
}

impl RegisterState {
    /// Allocates a register. In a leaf nothing destroys temporaries, so that they serve as persistent registers and
    /// come first. In other functions the `surviving` ones, which survive calls, come first; the result register cannot
    /// substitute for one of them, because restoring it would destroy the result.
    #[inline(always)]
    pub(crate) fn allocate(
        &mut self,
        file: &RegisterFile,
        class: Class,
        leaf: bool,
        result: u8,
        surviving: impl FnOnce() -> Set,
    ) -> Option<Allocated> {
        let temporary_first = class == Class::Temporary || leaf;
        let surviving = if temporary_first { 0 } else { self.free & surviving() };
        let others = if temporary_first { self.free } else { self.free & !file.bit(result) };
        let wanted = if surviving == 0 { others } else { surviving };
        if wanted == 0 {
            return None;
        }
        let bit = wanted & wanted.wrapping_neg();
        self.free ^= bit;
        self.touched |= bit & file.preserved;
        let saved_around_calls = !temporary_first && surviving == 0;
        if saved_around_calls {
            self.saved_around_calls |= bit;
        }
        Some(Allocated { number: file.at(bit.trailing_zeros()), saved_around_calls })
    }

    /// Allocates a particular register; false if it is in use or not allocatable.
    pub(crate) fn claim(&mut self, file: &RegisterFile, number: u8) -> bool {
        let bit = file.bit(number);
        if self.free & bit == 0 {
            return false;
        }
        self.free ^= bit;
        self.touched |= file.preserved & bit;
        true
    }

    /// Frees a register.
    pub(crate) fn free(&mut self, file: &RegisterFile, number: u8) {
        let bit = file.bit(number);
        self.free |= bit;
        self.saved_around_calls &= !bit;
    }

    /// Marks a register as taken, such as one in which a parameter arrives.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, file: &RegisterFile, number: u8) {
        self.free &= !file.bit(number);
    }
}
