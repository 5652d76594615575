//! The calling conventions of the machines, and the check of conventions that a client substitutes.

use crate::abi::{Abi, Convention, Counters, Place, Places, Scratch, Variadic};
use crate::architecture::Architecture;
use crate::error::Error;
use crate::generated::{
    aarch64::Aarch64, alpha::Alpha, mips::Mips, ppc64le::Ppc64le, riscv64::Riscv64, sparc64::Sparc64, x86_64::X86_64,
};
use crate::registers::{Register, RegisterFile, Set};
use crate::signature::{Signature, Type, Types};

/// The most bytes of arguments on the stack.
const MAX_STACK: u32 = 1 << 20;

impl Convention {
    /// Checks that functions can be written with this convention on `M`.
    pub(crate) fn check<M: Architecture>(&self) -> Result<(), Error> {
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

    /// The locations of the arguments, checked, because a client's `place` may return invalid ones.
    pub(crate) fn places<M: Architecture>(&self, signature: Signature<'_>) -> Result<Places, Error> {
        let mut places = Places::default();
        let mut locations = self.locations(signature);
        loop {
            let before = locations.counters.stack;
            let Some(location) = locations.next() else { break };
            let (ty, place) = location?;
            places.counters = locations.counters;
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
}

impl Convention {
    /// The types of a signature with the locations of the arguments.
    #[inline]
    pub(crate) fn locations<'s>(&self, signature: Signature<'s>) -> Locations<'_, 's> {
        let variadic = if signature.is_variadic() { Variadic::Fixed } else { Variadic::No };
        Locations { convention: self, types: signature.types(), counters: Counters { variadic, ..Counters::default() } }
    }
}

/// Iterator over the arguments of a signature: types and locations.
pub(crate) struct Locations<'c, 's> {
    convention: &'c Convention,
    types: Types<'s>,
    counters: Counters,
}

impl Iterator for Locations<'_, '_> {
    type Item = Result<(Type, Place), Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let ty = match self.types.next()? {
            Ok(ty) => ty,
            Err(error) => return Some(Err(error)),
        };
        if self.types.is_rest() {
            // C promotes such a float to a double.
            if ty == Type::F {
                return Some(Err(Error::Signature));
            }
            self.counters.variadic = Variadic::Rest;
        }
        Some(Ok((ty, (self.convention.place)(&self.convention.int, &self.convention.float, &mut self.counters, ty))))
    }
}

/// Assigns an argument to a register; false if the register may not carry one or carries another.
fn carries(file: &RegisterFile, taken: &mut Set, number: u8) -> bool {
    let bit = 1_u64.checked_shl(u32::from(number)).unwrap_or(0);
    let is_free = file.argument_registers & !*taken & bit != 0;
    *taken |= bit;
    is_free
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
fn separate(int: &RegisterFile, float: &RegisterFile, counters: &mut Counters, ty: Type) -> Place {
    let register = if ty.is_float() {
        next(float.args, &mut counters.float).map(Place::Float)
    } else {
        next(int.args, &mut counters.int).map(Place::Int)
    };
    register.unwrap_or_else(|| stack(counters))
}

/// Like [`separate`], but floats that find no floating register, and those after `...`, use integer registers (RISC-V).
#[inline(always)]
fn overflow_to_int(int: &RegisterFile, float: &RegisterFile, counters: &mut Counters, ty: Type) -> Place {
    if ty.is_float()
        && counters.variadic != Variadic::Rest
        && let Some(number) = next(float.args, &mut counters.float)
    {
        return Place::Float(number);
    }
    next(int.args, &mut counters.int).map_or_else(|| stack(counters), Place::Int)
}

/// Position decides; integers and floats have a register each per position (Alpha).
// A match on the kind instead of a choice of list and constructor, so that the compiler folds it for a constant
// signature, together with the set of free registers.
#[inline(always)]
fn by_position(int: &RegisterFile, float: &RegisterFile, counters: &mut Counters, ty: Type) -> Place {
    let register = if ty.is_float() {
        next(float.args, &mut counters.int).map(Place::Float)
    } else {
        next(int.args, &mut counters.int).map(Place::Int)
    };
    register.unwrap_or_else(|| stack(counters))
}

/// Position decides, and every position has its place on the stack; floats after `...` are passed like integers (SPARC
/// V9).
#[inline(always)]
fn by_slot(int: &RegisterFile, float: &RegisterFile, counters: &mut Counters, ty: Type) -> Place {
    let at = counters.stack;
    counters.stack += 8;
    let in_float = ty.is_float() && counters.variadic != Variadic::Rest;
    let list = if in_float { float.args } else { int.args };
    match list.get(at as usize / 8) {
        Some(number) if in_float => Place::Float(*number),
        Some(number) => Place::Int(*number),
        None => Place::Stack(at),
    }
}

/// Every position has its place on the stack and decides for integers; floats take one floating register after the
/// other, whatever their positions; after `...` they are passed like integers (Power, ELFv2).
#[inline(always)]
fn by_slot_and_count(int: &RegisterFile, float: &RegisterFile, counters: &mut Counters, ty: Type) -> Place {
    let at = counters.stack;
    counters.stack += 8;
    let register = if ty.is_float() && counters.variadic != Variadic::Rest {
        next(float.args, &mut counters.float).map(Place::Float)
    } else {
        int.args.get(at as usize / 8).copied().map(Place::Int)
    };
    register.unwrap_or(Place::Stack(at))
}

/// Sixteen bytes of arguments travel in four integer registers, leading floats in two floating ones, unless the
/// function is variadic (MIPS o32).
#[inline(always)]
fn o32(int: &RegisterFile, float: &RegisterFile, counters: &mut Counters, ty: Type) -> Place {
    let size = if ty == Type::D { 8 } else { 4 };
    let at = counters.stack.next_multiple_of(size);
    counters.stack = at + size;
    if ty.is_float()
        && counters.int == 0
        && counters.variadic == Variadic::No
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

const fn convention<M: Architecture>(
    place: fn(&RegisterFile, &RegisterFile, &mut Counters, Type) -> Place,
) -> Convention {
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
    const EXTENDS_PARAMETERS: bool = true;
    const LITTLE_ENDIAN: bool = true;
    const TWO_OPERAND: bool = true;
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
    const EXTENDS_PARAMETERS: bool = true;
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
