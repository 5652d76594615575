//! Calls that are built at run time ("VCODE" 5.2): any number and kind of arguments, which are moved to the places that
//! the calling convention assigns. Does not know encodings.

use crate::abi::{Place, Places, Scratch};
use crate::asm::{Asm, Fixup, Label};
use crate::error::Error;
use crate::frame::Local;
use crate::machine::Machine;
use crate::registers::Register;
use crate::signature::{Signature, Type};

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum Argument<M: Machine> {
    /// An integer or pointer in a register.
    Reg(M::Reg),
    /// A float or double in a register.
    Float(M::Float),
    /// An integer or pointer constant. [`Error::Immediate`] if it does not fit its type, as a number with or without
    /// sign.
    Constant(i64),
    /// An integer or pointer in a local of the type long.
    Local(Local),
    /// A float or double in eight bytes of stack, as a whole floating register was stored there.
    FloatLocal(Local),
}

impl<M: Machine> Argument<M> {
    /// The argument after the stack pointer was lowered by `bytes`.
    fn raised(self, bytes: u32) -> Self {
        match self {
            Argument::Local(local) => Argument::Local(local.plus(bytes as i32)),
            Argument::FloatLocal(local) => Argument::FloatLocal(local.plus(bytes as i32)),
            Argument::Reg(_) | Argument::Float(_) | Argument::Constant(_) => self,
        }
    }
}

/// The callee.
#[derive(Debug, Clone, Copy)]
pub enum Target<M: Machine> {
    /// The function at this address.
    Address(usize),
    /// The function whose address is in this register.
    Reg(M::Reg),
    /// The function that is being written: recursion.
    Itself,
}

/// The most arguments in registers on any machine, with room for the target.
const MAX_MOVES: usize = 40;

/// A parallel move: moves between registers of one file that happen at once. It is emitted as a sequence of moves
/// (Rideau, Serpette, Leroy, "Tilting at windmills with Coq", 2008), with the transfer slot as the temporary of cycles.
struct ParallelMove {
    /// Source (`PARKED` for the transfer slot) and destination.
    pending: [(u8, u8); MAX_MOVES],
    count: usize,
}

/// Stands for the transfer slot as a source.
const PARKED: u8 = u8::MAX;

/// The parallel moves of the arguments of a call, one for each register file.
struct ArgumentMoves {
    int: ParallelMove,
    float: ParallelMove,
}

impl ParallelMove {
    fn new() -> Self {
        ParallelMove { pending: [(0, 0); MAX_MOVES], count: 0 }
    }

    fn push(&mut self, source: u8, destination: u8) -> Result<(), Error> {
        if source == destination {
            return Ok(());
        }
        let slot = self.pending.get_mut(self.count).ok_or(Error::Arguments)?;
        *slot = (source, destination);
        self.count += 1;
        Ok(())
    }

    /// The next move that destroys no source still needed; a cycle is broken by parking one source.
    fn next(&mut self) -> Option<Move> {
        let moves = &self.pending[..self.count];
        let (first, _) = *moves.first()?;
        let free = moves.iter().position(|(_, destination)| !moves.iter().any(|(source, _)| source == destination));
        let Some(index) = free else {
            for (source, _) in &mut self.pending[..self.count] {
                if *source == first {
                    *source = PARKED;
                }
            }
            return Some(Move::Park(first));
        };
        let (source, destination) = self.pending[index];
        self.count -= 1;
        self.pending[index] = self.pending[self.count];
        Some(if source == PARKED { Move::Unpark(destination) } else { Move::Copy(source, destination) })
    }
}

/// One step of a [`ParallelMove`].
#[derive(Debug, PartialEq, Eq)]
enum Move {
    /// From a register to a register.
    Copy(u8, u8),
    /// From a register to the transfer slot.
    Park(u8),
    /// From the transfer slot to a register.
    Unpark(u8),
}

impl<M: Machine> Asm<'_, M> {
    /// Calls a function. Its result is then in [`Asm::result`] or [`Asm::float_result`], until the next call.
    /// Temporaries do not survive, except those that are used as persistent registers and saved around
    /// calls.
    ///
    /// Arguments of 8 and 16 bits are extended from the low bits of their registers. A function that returns a type of
    /// 8 or 16 bits may leave the bits above it undefined: convert the result with `cvi2c`, `cvi2uc`, `cvi2s` or
    /// `cvi2us`.
    ///
    /// # Errors
    /// [`Error::Signature`] and [`Error::Arguments`] if the arguments do not match the signature; [`Error::Immediate`]
    /// if a constant does not fit its type; [`Error::Place`] if a convention of the client assigns an invalid location.
    /// Nothing is written then, and the error is not recorded.
    pub fn call<'s>(
        &mut self,
        signature: impl Into<Signature<'s>>,
        target: Target<M>,
        arguments: &[Argument<M>],
    ) -> Result<(), Error> {
        let signature = signature.into();
        let places = self.check_arguments(signature, arguments)?;
        self.note_call();
        self.touch(&places);
        let pushed = match places.counters.stack {
            0 => 0,
            bytes => (M::OUTGOING + bytes.max(M::HOME)).next_multiple_of(16),
        };
        let transfer = self.transfer() + pushed as i32;
        self.save_around_call(M::save, M::save_float);
        if pushed != 0 {
            M::enter(self, i64::from(pushed));
        }
        let floats_in_registers = self.place_arguments(signature, target, arguments, pushed, transfer)?;
        self.finish_arguments(signature)?;
        if let Target::Address(address) = target {
            M::constant(self, M::SCRATCH, register_value::<M>(Type::P, address as i64));
        }
        if M::COUNTS_FLOATS && (floats_in_registers > 0 || signature.is_variadic()) {
            M::constant(self, M::RESULT, floats_in_registers);
        }
        match target {
            Target::Itself => M::call_label(self, Label::ENTRY),
            Target::Address(_) | Target::Reg(_) => M::call_register(self, M::SCRATCH),
        }
        if pushed != 0 {
            M::leave(self, i64::from(pushed));
        }
        self.save_around_call(M::restore, M::restore_float);
        Ok(())
    }

    /// The locations of the arguments, after a check that their types match the signature.
    fn check_arguments(&self, signature: Signature<'_>, arguments: &[Argument<M>]) -> Result<Places, Error> {
        let places = self.f.convention.places::<M>(signature)?;
        let mut arguments = arguments.iter();
        for ty in signature.types() {
            let ty = ty?;
            let argument = arguments.next();
            let is_float = match argument {
                Some(Argument::Float(_) | Argument::FloatLocal(_)) => true,
                Some(Argument::Reg(_) | Argument::Constant(_) | Argument::Local(_)) => false,
                None => return Err(Error::Arguments),
            };
            if is_float != ty.is_float() {
                return Err(Error::Arguments);
            }
            if let Some(Argument::Constant(constant)) = argument
                && !constant_fits(ty, M::LONG_BITS, *constant)
            {
                return Err(Error::Immediate);
            }
        }
        if arguments.next().is_some() {
            return Err(Error::Arguments);
        }
        Ok(places)
    }

    /// Moves the arguments of a call to the locations of the convention, and a target in a register to the scratch
    /// register; returns the number of floats in registers.
    fn place_arguments(
        &mut self,
        signature: Signature<'_>,
        target: Target<M>,
        arguments: &[Argument<M>],
        pushed: u32,
        transfer: i32,
    ) -> Result<i64, Error> {
        let mut moves = ArgumentMoves { int: ParallelMove::new(), float: ParallelMove::new() };
        if let Target::Reg(register) = target {
            moves.int.push(register.number(), M::SCRATCH.number())?;
        }
        // First the stack, which may need the scratch register; then the registers of each file as one parallel move;
        // then moves between the files, and constants, whose destinations are no longer the source of a move.
        let floats_in_registers = self.store_stack_arguments(signature, arguments, pushed, &mut moves)?;
        while let Some(step) = moves.int.next() {
            match step {
                Move::Copy(source, destination) => {
                    M::copy(self, M::Reg::from_number(destination), M::Reg::from_number(source));
                }
                Move::Park(source) => M::save(self, M::Reg::from_number(source), transfer),
                Move::Unpark(destination) => M::restore(self, M::Reg::from_number(destination), transfer),
            }
        }
        self.load_int_arguments(signature, arguments, pushed, transfer)?;
        while let Some(step) = moves.float.next() {
            match step {
                Move::Copy(source, destination) => {
                    M::copy_float(self, M::Float::from_number(destination), M::Float::from_number(source));
                }
                Move::Park(source) => M::save_float(self, M::Float::from_number(source), transfer),
                Move::Unpark(destination) => M::restore_float(self, M::Float::from_number(destination), transfer),
            }
        }
        for (location, argument) in self.f.convention.locations(signature).zip(arguments) {
            let (_, place) = location?;
            if let (Place::Float(number), Argument::FloatLocal(local)) = (place, argument.raised(pushed)) {
                M::restore_float(self, M::Float::from_number(number), local.offset);
            }
        }
        Ok(floats_in_registers)
    }

    /// Stores the arguments that are passed on the stack and collects the moves of those that stay in their register
    /// file; returns the number of floats in floating registers.
    fn store_stack_arguments(
        &mut self,
        signature: Signature<'_>,
        arguments: &[Argument<M>],
        pushed: u32,
        moves: &mut ArgumentMoves,
    ) -> Result<i64, Error> {
        let mut floats_in_registers = 0;
        for (location, argument) in self.f.convention.locations(signature).zip(arguments) {
            let (ty, place) = location?;
            match (place, *argument) {
                (Place::Stack(at), argument) => {
                    let argument = argument.raised(pushed);
                    self.store_argument(ty, (M::BIAS + M::OUTGOING + at) as i32, argument)?
                }
                (Place::Int(number), Argument::Reg(register)) if !ty.is_float() => {
                    moves.int.push(register.number(), number)?
                }
                (Place::Float(number), Argument::Float(register)) => {
                    moves.float.push(register.number(), number)?;
                    floats_in_registers += 1;
                }
                (Place::Float(_), Argument::FloatLocal(_)) => floats_in_registers += 1,
                (Place::Int(_) | Place::Pair(..), Argument::Float(_) | Argument::FloatLocal(_)) if ty.is_float() => {}
                (Place::Int(_), Argument::Constant(_) | Argument::Local(_)) if !ty.is_float() => {}
                (Place::Int(_) | Place::Float(_) | Place::Pair(..), _) => return Err(Error::Arguments),
            }
        }
        Ok(floats_in_registers)
    }

    /// Loads the integer registers that get constants, locals, or floats of the other register file.
    fn load_int_arguments(
        &mut self,
        signature: Signature<'_>,
        arguments: &[Argument<M>],
        pushed: u32,
        transfer: i32,
    ) -> Result<(), Error> {
        for (location, argument) in self.f.convention.locations(signature).zip(arguments) {
            let (ty, place) = location?;
            let argument = self.loaded_to_cross(place, argument.raised(pushed));
            match (place, argument) {
                (Place::Int(number), Argument::Constant(constant)) => {
                    M::constant(self, M::Reg::from_number(number), register_value::<M>(ty, constant));
                }
                (Place::Int(number), Argument::Local(local)) => {
                    M::restore(self, M::Reg::from_number(number), local.offset);
                }
                (Place::Int(number), Argument::Float(register)) => {
                    if ty == Type::F {
                        M::save_single(self, register, transfer);
                    } else {
                        M::save_float(self, register, transfer);
                    }
                    M::restore(self, M::Reg::from_number(number), transfer);
                }
                (Place::Pair(first, second), Argument::Float(register)) => {
                    M::save_float(self, register, transfer);
                    M::restore(self, M::Reg::from_number(first), transfer);
                    M::restore(self, M::Reg::from_number(second), transfer + 4);
                }
                (Place::Int(_) | Place::Float(_) | Place::Stack(_) | Place::Pair(..), _) => {}
            }
        }
        Ok(())
    }

    /// A tail call: the frame of this function is released before the jump, and the callee returns to the caller of
    /// this function. It may end a leaf. All its arguments travel in registers.
    ///
    /// # Errors
    /// Those of [`Asm::call`], and [`Error::Arguments`] for [`Target::Itself`] (jump to a label instead), or if one
    /// would be passed on the stack or in a register that this function preserves. [`Error::RegisterTaken`] in a
    /// function that preserves the scratch registers: the target needs one. Nothing is written then, and the error does
    /// not stick.
    pub fn tail_call<'s>(
        &mut self,
        signature: impl Into<Signature<'s>>,
        target: Target<M>,
        arguments: &[Argument<M>],
    ) -> Result<(), Error> {
        let signature = signature.into();
        let convention = self.f.convention;
        match convention.scratch {
            Scratch::Preserved => return Err(Error::RegisterTaken),
            Scratch::Free => {}
        }
        if let Target::Itself = target {
            return Err(Error::Arguments);
        }
        self.check_arguments(signature, arguments)?;
        for location in convention.locations(signature) {
            let (_, place) = location?;
            let arrives = match place {
                Place::Int(number) => convention.int.bit(number) & convention.int.preserved == 0,
                Place::Float(number) => convention.float.bit(number) & convention.float.preserved == 0,
                Place::Pair(first, second) => convention.int.set_of(&[first, second]) & convention.int.preserved == 0,
                Place::Stack(_) => false,
            };
            if !arrives {
                return Err(Error::Arguments);
            }
        }
        let transfer = self.transfer();
        let floats_in_registers = self.place_arguments(signature, target, arguments, 0, transfer)?;
        self.finish_arguments(signature)?;
        match target {
            Target::Address(address) => {
                M::constant(self, M::SECOND_SCRATCH, register_value::<M>(Type::P, address as i64));
            }
            Target::Reg(_) if M::SCRATCH != M::SECOND_SCRATCH => M::copy(self, M::SECOND_SCRATCH, M::SCRATCH),
            Target::Reg(_) | Target::Itself => {}
        }
        if M::COUNTS_FLOATS && (floats_in_registers > 0 || signature.is_variadic()) {
            M::constant(self, M::RESULT, floats_in_registers);
        }
        self.f.tail = Some(0);
        self.f.needs_general_path = true;
        M::jump(self, Label::TAIL);
        Ok(())
    }

    /// Extends arguments that are shorter than a register.
    fn finish_arguments(&mut self, signature: Signature<'_>) -> Result<(), Error> {
        for location in self.f.convention.locations(signature) {
            let (ty, place) = location?;
            match place {
                Place::Int(number) => self.extend(ty, M::Reg::from_number(number), M::Reg::from_number(number)),
                Place::Float(number) if M::SINGLE_SHIFT != 0 && ty == Type::F => {
                    let from = M::Float::from_number(number);
                    M::copy_single(self, M::Float::from_number(number + M::SINGLE_SHIFT), from);
                }
                Place::Float(_) | Place::Pair(..) | Place::Stack(_) => {}
            }
        }
        Ok(())
    }

    /// Extends a shorter value as the convention requires: one of 8 or 16 bits to an int, an int to a long on some
    /// machines.
    fn extend(&mut self, ty: Type, d: M::Reg, s: M::Reg) {
        match ty {
            Type::I if M::EXTENDS => M::extend_int(self, d, s),
            Type::U if M::EXTENDS => M::extend_unsigned(self, d, s),
            Type::C | Type::Uc | Type::S | Type::Us => self.extend_narrow(ty, d, s),
            Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => {}
        }
    }

    /// Extends the low 8 or 16 bits of a register to an int, if the type is that narrow.
    #[inline]
    pub(crate) fn extend_narrow(&mut self, ty: Type, d: M::Reg, s: M::Reg) {
        match ty {
            Type::C => M::to_char(self, d, s),
            Type::Uc => M::to_unsigned_char(self, d, s),
            Type::S => M::to_short(self, d, s),
            Type::Us => M::to_unsigned_short(self, d, s),
            Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => {}
        }
    }

    /// Begins a local procedure, which `jal(label)` calls: binds the label and copies the return address to a register.
    /// `jr(link)` returns. A procedure has the registers, variables and stack of its function, which must be of
    /// [`Kind::Calls`](crate::Kind::Calls); control must not reach its beginning otherwise.
    pub fn procedure(&mut self, label: Label, link: M::Reg) {
        self.f.note_label(Fixup::PROCEDURE, label);
        self.f.needs_general_path = true;
        self.bind(label);
        M::link(self, link);
    }

    /// The register of an integer or pointer result of a call.
    pub fn result(&self) -> M::Reg {
        M::RESULT
    }

    /// The register of a float or double result of a call.
    pub fn float_result(&self) -> M::Float {
        M::FLOAT_RESULT
    }

    /// Loads a float in a local that is passed in integer registers.
    fn loaded_to_cross(&mut self, place: Place, argument: Argument<M>) -> Argument<M> {
        match (place, argument) {
            (Place::Int(_) | Place::Pair(..), Argument::FloatLocal(local)) => {
                M::restore_float(self, M::FLOAT_SCRATCH, local.offset);
                Argument::Float(M::FLOAT_SCRATCH)
            }
            (Place::Int(_) | Place::Pair(..) | Place::Float(_) | Place::Stack(_), argument) => argument,
        }
    }

    fn store_argument(&mut self, ty: Type, at: i32, argument: Argument<M>) -> Result<(), Error> {
        match argument {
            Argument::Float(register) if ty == Type::F => M::save_single(self, register, at + M::SINGLE_AT as i32),
            Argument::Float(register) if ty == Type::D => M::save_float(self, register, at),
            Argument::Reg(register) if !ty.is_float() && (M::EXTENDS || ty.is_narrow()) => {
                M::copy(self, M::SECOND_SCRATCH, register);
                self.extend(ty, M::SECOND_SCRATCH, M::SECOND_SCRATCH);
                M::save(self, M::SECOND_SCRATCH, at);
            }
            Argument::Reg(register) if !ty.is_float() => M::save(self, register, at),
            Argument::Constant(constant) if !ty.is_float() => {
                M::constant(self, M::SECOND_SCRATCH, register_value::<M>(ty, constant));
                M::save(self, M::SECOND_SCRATCH, at);
            }
            Argument::Local(local) if !ty.is_float() => {
                M::restore(self, M::SECOND_SCRATCH, local.offset);
                self.extend(ty, M::SECOND_SCRATCH, M::SECOND_SCRATCH);
                M::save(self, M::SECOND_SCRATCH, at);
            }
            Argument::FloatLocal(local) if ty.is_float() => {
                M::restore_float(self, M::FLOAT_SCRATCH, local.offset);
                return self.store_argument(ty, at, Argument::Float(M::FLOAT_SCRATCH));
            }
            Argument::Float(_)
            | Argument::Reg(_)
            | Argument::Constant(_)
            | Argument::Local(_)
            | Argument::FloatLocal(_) => return Err(Error::Arguments),
        }
        Ok(())
    }

    /// Stores or loads the temporaries that are used as callee-saved registers and saved around calls.
    fn save_around_call(&mut self, int: fn(&mut Self, M::Reg, i32), float: fn(&mut Self, M::Float, i32)) {
        let (ints, floats) = (self.f.int.saved_around_calls, self.f.float.saved_around_calls);
        if ints | floats == 0 {
            return;
        }
        let area = self.caller_save_area();
        let convention = self.f.convention;
        for number in (0..32_u8).filter(|number| ints & convention.int.bit(*number) != 0) {
            int(self, M::Reg::from_number(number), area + 8 * i32::from(number));
        }
        for number in (0..32_u8).filter(|number| floats & convention.float.bit(*number) != 0) {
            float(self, M::Float::from_number(number), area + 8 * (32 + i32::from(number)));
        }
    }
}

/// Whether a constant fits a type, as a number with or without sign: none of its bits is lost.
fn constant_fits(ty: Type, long_bits: u32, constant: i64) -> bool {
    let bits = 8 * ty.bytes(long_bits);
    bits == 64 || (-1 << (bits - 1)..1 << bits).contains(&constant)
}

/// What a register must hold to pass a constant as this type.
fn register_value<M: Machine>(ty: Type, constant: i64) -> i64 {
    match ty {
        Type::C => i64::from(constant as i8),
        Type::Uc => i64::from(constant as u8),
        Type::S => i64::from(constant as i16),
        Type::Us => i64::from(constant as u16),
        // Registers of machines that do not extend such values to a long hold them sign-extended, or in any way.
        Type::U if M::EXTENDS => i64::from(constant as u32),
        Type::I | Type::U => i64::from(constant as i32),
        Type::L | Type::Ul | Type::P if M::LONG_BITS == 32 => i64::from(constant as i32),
        Type::L | Type::Ul | Type::P | Type::F | Type::D => constant,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// Runs the moves on a register file that holds its own numbers; every destination must get its source.
    fn check(moves: &[(u8, u8)]) {
        let mut queue = ParallelMove::new();
        for (source, destination) in moves {
            queue.push(*source, *destination).expect("there is room for the test");
        }
        let mut file: Vec<u8> = (0..16).collect();
        let mut parked = 0;
        while let Some(step) = queue.next() {
            match step {
                Move::Copy(source, destination) => file[destination as usize] = file[source as usize],
                Move::Park(source) => parked = file[source as usize],
                Move::Unpark(destination) => file[destination as usize] = parked,
            }
        }
        for (source, destination) in moves {
            assert_eq!(file[*destination as usize], *source, "{moves:?}");
        }
    }

    #[test]
    fn chains_cycles_and_fans_of_moves_happen_at_once() {
        check(&[]);
        check(&[(1, 1)]);
        check(&[(1, 2), (2, 3)]);
        check(&[(1, 2), (2, 1)]);
        check(&[(1, 2), (2, 3), (3, 1), (1, 4), (5, 6), (6, 5)]);
        check(&[(1, 2), (1, 3), (1, 4)]);
    }

    #[test]
    fn random_moves_happen_at_once() {
        let mut state = 1_u32;
        for _ in 0..2000 {
            let mut destinations: Vec<u8> = (0..16).collect();
            let mut moves = Vec::new();
            for _ in 0..8 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let destination = destinations.swap_remove((state >> 24) as usize % destinations.len());
                moves.push(((state >> 16) as u8 % 16, destination));
            }
            check(&moves);
        }
    }
}
