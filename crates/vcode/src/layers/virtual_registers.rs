//! Virtual registers: their number is unlimited, and those without a machine register are in stack slots.
//!
//! Allocation is one-pass and final: a virtual register gets its location, a machine register or a stack slot, when it
//! is created, and keeps it until it is released. So control flow and calls need no treatment: a value has one location
//! at every point of the function. A client allocates the most used values first, and uses [`Virtual::cold_reg`] for
//! rarely used ones. Instructions are those of [`Core`]; an operand in a stack slot is loaded to one of three
//! temporaries, which are reserved when registers run out.
//!
//! No heap is used: a virtual register is a value, and released slots are listed in memory of the client.

use crate::asm::{Asm, Code, Fixup, Label};
use crate::call::{Argument, Target};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::frame::{Local, Param};
use crate::generated::core::Core;
use crate::machine::Machine;
use crate::registers::{Class, Register};
use crate::signature::{Signature, Type};

/// The registers of each file that are reserved for operands on the stack.
const TEMPORARIES: usize = 3;

/// A virtual register. `R` is the register of the machine that it may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualReg<R> {
    /// A register, or the encoding of a stack slot, so that a virtual register is not larger than a machine register.
    pub(crate) register: R,
}

const ON_STACK: u32 = 1 << 31;

/// Whether none of the registers whose marks were joined is on the stack.
#[inline(always)]
pub(crate) fn in_registers(marks: u32) -> bool {
    marks & ON_STACK == 0
}

impl<R: Register> VirtualReg<R> {
    /// The machine register it is in, if it is in one.
    pub fn register(self) -> Option<R> {
        in_registers(self.register.mark()).then_some(self.register)
    }

    /// A virtual register that is this machine register, which the client took itself.
    pub const fn fixed(register: R) -> Self {
        VirtualReg { register }
    }

    /// Its place on the stack, if it is there.
    fn slot(self) -> Option<i32> {
        (!in_registers(self.register.mark())).then_some((self.register.mark() & !ON_STACK) as i32)
    }
}

/// The reserved registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Temporaries<M: Machine> {
    int: [M::Reg; TEMPORARIES],
    float: [M::Float; TEMPORARIES],
}

impl<M: Machine> Temporaries<M> {
    pub(crate) fn load(self, c: &mut Asm<'_, M>, v: VirtualReg<M::Reg>, index: usize) -> M::Reg {
        let Some(slot) = v.slot() else { return v.register };
        M::restore(c, self.int[index], slot);
        self.int[index]
    }

    pub(crate) fn load_float(self, c: &mut Asm<'_, M>, v: VirtualReg<M::Float>, index: usize) -> M::Float {
        let Some(slot) = v.slot() else { return v.register };
        M::restore_float(c, self.float[index], slot);
        self.float[index]
    }

    pub(crate) fn target(self, v: VirtualReg<M::Reg>, index: usize) -> M::Reg {
        v.register().unwrap_or(self.int[index])
    }

    pub(crate) fn target_float(self, v: VirtualReg<M::Float>, index: usize) -> M::Float {
        v.register().unwrap_or(self.float[index])
    }

    pub(crate) fn store(self, c: &mut Asm<'_, M>, v: VirtualReg<M::Reg>, from: M::Reg) {
        if let Some(slot) = v.slot() {
            M::save(c, from, slot);
        }
    }

    pub(crate) fn store_float(self, c: &mut Asm<'_, M>, v: VirtualReg<M::Float>, from: M::Float) {
        if let Some(slot) = v.slot() {
            M::save_float(c, from, slot);
        }
    }
}

/// The part of an assembler's state that out-of-line code changes and returns by value.
pub(crate) struct Detached {
    cursor: Cursor,
    last_return: Fixup,
    forward: Fixup,
}

impl Detached {
    /// The state of `asm`. `left` bytes must still be free, because the client reserved them for the following
    /// instructions; so the compiler knows how many are left whether or not the out-of-line code ran.
    pub(crate) fn by<M: Machine>(asm: &mut Asm<'_, M>, left: usize) -> Detached {
        asm.left = 0;
        asm.space(left);
        Detached { cursor: asm.cursor, last_return: asm.last_return, forward: asm.forward }
    }
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum VirtualArgument<M: Machine> {
    /// An integer or pointer.
    Reg(VirtualReg<M::Reg>),
    /// A float or double.
    Float(VirtualReg<M::Float>),
    /// An integer or pointer constant.
    Constant(i64),
}

/// The callee.
#[derive(Debug, Clone, Copy)]
pub enum VirtualTarget<M: Machine> {
    /// The function at this address.
    Address(usize),
    /// The function whose address is in this register.
    Reg(VirtualReg<M::Reg>),
    /// The function that is being written.
    Itself,
}

/// The most arguments of a call.
const MAX_ARGUMENTS: usize = 32;

/// Whether the temporaries of a register file are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reserve {
    /// Not yet: registers are left.
    Open,
    /// They are: a new virtual register gets a stack slot, unless a register was released.
    Taken,
}

/// A function under construction with virtual registers. The instructions are the methods of [`Core`].
#[derive(Debug)]
pub struct Virtual<'f, 'a, M: Machine> {
    pub(crate) asm: Asm<'a, M>,
    temporaries: Temporaries<M>,
    int: Reserve,
    float: Reserve,
    slots: &'f mut [u32],
    free_slots: usize,
}

impl<'f, 'a, M: Machine> Virtual<'f, 'a, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    /// Wraps a function under construction. `slots` is memory for the list of released stack slots; slots beyond its
    /// length are not reused.
    pub fn new(asm: Asm<'a, M>, slots: &'f mut [u32]) -> Self {
        let temporaries = Temporaries { int: [M::RESULT; TEMPORARIES], float: [M::FLOAT_RESULT; TEMPORARIES] };
        Virtual { asm, temporaries, int: Reserve::Open, float: Reserve::Open, slots, free_slots: 0 }
    }

    /// A virtual register for an integer or pointer. A call may destroy one of [`Class::Temporary`].
    #[inline]
    pub fn reg(&mut self, class: Class) -> VirtualReg<M::Reg> {
        let left = self.int == Reserve::Taken || self.asm.f.int.free.count_ones() > TEMPORARIES as u32;
        if left && let Ok(register) = self.asm.getreg(class) {
            return VirtualReg { register };
        }
        self.cold_reg()
    }

    /// A virtual register for a float or double. A call may destroy one of [`Class::Temporary`].
    #[inline]
    pub fn float(&mut self, class: Class) -> VirtualReg<M::Float> {
        let left = self.float == Reserve::Taken || self.asm.f.float.free.count_ones() > TEMPORARIES as u32;
        if left && let Ok(register) = self.asm.getfloat(class) {
            return VirtualReg { register };
        }
        self.cold_float()
    }

    /// A virtual register for an integer or pointer that is on the stack from the start.
    pub fn cold_reg(&mut self) -> VirtualReg<M::Reg> {
        if self.int == Reserve::Open {
            self.int = Reserve::Taken;
            for index in 0..TEMPORARIES {
                match self.asm.getreg(Class::Temporary) {
                    Ok(register) => self.temporaries.int[index] = register,
                    Err(error) => self.asm.fail(error),
                }
            }
        }
        VirtualReg { register: M::Reg::on_stack(self.slot()) }
    }

    /// A virtual register for a float or double that is on the stack from the start.
    pub fn cold_float(&mut self) -> VirtualReg<M::Float> {
        if self.float == Reserve::Open {
            self.float = Reserve::Taken;
            for index in 0..TEMPORARIES {
                match self.asm.getfloat(Class::Temporary) {
                    Ok(register) => self.temporaries.float[index] = register,
                    Err(error) => self.asm.fail(error),
                }
            }
        }
        VirtualReg { register: M::Float::on_stack(self.slot()) }
    }

    fn slot(&mut self) -> u32 {
        if let Some(last) = self.free_slots.checked_sub(1) {
            self.free_slots = last;
            return self.slots[last];
        }
        self.asm.local_bytes(8, 8).offset as u32
    }

    fn give_slot(&mut self, slot: u32) {
        if let Some(place) = self.slots.get_mut(self.free_slots) {
            *place = slot;
            self.free_slots += 1;
        }
    }

    /// Gives back a register that is not used any more.
    pub fn release(&mut self, v: VirtualReg<M::Reg>) {
        match v.slot() {
            None => self.asm.putreg(v.register),
            Some(slot) => self.give_slot(slot as u32),
        }
    }

    /// Gives back a register that is not used any more.
    pub fn release_float(&mut self, v: VirtualReg<M::Float>) {
        match v.slot() {
            None => self.asm.putfloat(v.register),
            Some(slot) => self.give_slot(slot as u32),
        }
    }

    /// The virtual register of an integer or pointer parameter.
    ///
    /// # Panics
    /// As [`Param::reg`].
    pub fn param(&self, param: Param<M>) -> VirtualReg<M::Reg> {
        VirtualReg::fixed(param.reg())
    }

    /// The virtual register of a float or double parameter.
    ///
    /// # Panics
    /// As [`Param::float`].
    pub fn float_param(&self, param: Param<M>) -> VirtualReg<M::Float> {
        VirtualReg::fixed(param.float())
    }

    /// Calls a function, as [`Asm::call`].
    ///
    /// # Errors
    /// Those of [`Asm::call`]; [`Error::Arguments`] for more than 32 arguments.
    pub fn call<'s>(
        &mut self,
        signature: impl Into<Signature<'s>>,
        target: VirtualTarget<M>,
        arguments: &[VirtualArgument<M>],
    ) -> Result<(), Error> {
        let places = places(arguments)?;
        let target = self.target(target);
        self.asm.call(signature, target, places.get(..arguments.len()).ok_or(Error::Arguments)?)
    }

    /// A tail call, as [`Asm::tail_call`].
    ///
    /// # Errors
    /// Those of [`Asm::tail_call`]; [`Error::Arguments`] for more than 32 arguments.
    pub fn tail_call<'s>(
        &mut self,
        signature: impl Into<Signature<'s>>,
        target: VirtualTarget<M>,
        arguments: &[VirtualArgument<M>],
    ) -> Result<(), Error> {
        let places = places(arguments)?;
        let target = self.target(target);
        self.asm.tail_call(signature, target, places.get(..arguments.len()).ok_or(Error::Arguments)?)
    }

    /// The target in a machine register, if it is in a register.
    fn target(&mut self, target: VirtualTarget<M>) -> Target<M> {
        match target {
            VirtualTarget::Address(address) => Target::Address(address),
            VirtualTarget::Itself => Target::Itself,
            VirtualTarget::Reg(v) => Target::Reg(self.temporaries.load(&mut self.asm, v, 0)),
        }
    }

    /// Copies the integer or pointer that the last call returned.
    pub fn take_result(&mut self, d: VirtualReg<M::Reg>) {
        match d.slot() {
            None => M::copy(&mut self.asm, d.register, M::RESULT),
            Some(slot) => M::save(&mut self.asm, M::RESULT, slot),
        }
    }

    /// Copies the float or double that the last call returned.
    pub fn take_float_result(&mut self, d: VirtualReg<M::Float>) {
        match d.slot() {
            None => M::copy_float(&mut self.asm, d.register, M::FLOAT_RESULT),
            Some(slot) => M::save_float(&mut self.asm, M::FLOAT_RESULT, slot),
        }
    }

    /// Makes a label, as [`Asm::label`].
    #[inline]
    pub fn label(&mut self) -> Label {
        self.asm.label()
    }

    /// Binds a label to the next instruction, as [`Asm::bind`].
    #[inline]
    pub fn bind(&mut self, label: Label) {
        self.asm.bind(label);
    }

    /// Begins a local procedure, as [`Asm::procedure`].
    pub fn procedure(&mut self, label: Label, link: VirtualReg<M::Reg>) {
        let register = self.temporaries.target(link, 0);
        self.asm.procedure(label, register);
        self.temporaries.store(&mut self.asm, link, register);
    }

    /// Makes a variable on the stack, as [`Asm::local`].
    pub fn local(&mut self, ty: Type) -> Local {
        self.asm.local(ty)
    }

    /// Makes `bytes` of stack, as [`Asm::local_bytes`].
    pub fn local_bytes(&mut self, bytes: u32, align: u32) -> Local {
        self.asm.local_bytes(bytes, align)
    }

    /// Puts the address of a variable on the stack into a register.
    pub fn local_address(&mut self, d: VirtualReg<M::Reg>, local: Local) {
        let register = self.temporaries.target(d, 0);
        self.asm.local_address(register, local);
        self.temporaries.store(&mut self.asm, d, register);
    }

    /// Checks once that `bytes` are free, as [`Asm::reserve`].
    ///
    /// # Errors
    /// [`Error::Overflow`] if the region has no such space.
    #[inline(always)]
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        self.asm.reserve(bytes)
    }

    /// The function itself, for operations that this layer does not offer.
    pub fn asm(&mut self) -> &mut Asm<'a, M> {
        &mut self.asm
    }

    /// Ends the function, as [`Asm::end`].
    ///
    /// # Errors
    /// The first error since the function was begun.
    #[inline]
    pub fn end(self) -> Result<Code, Error> {
        self.asm.end()
    }

    /// The assembler, and the registers for operands on the stack.
    #[cfg(all(feature = "c", not(target_os = "none")))]
    pub(crate) fn parts(&mut self) -> (&mut Asm<'a, M>, Temporaries<M>) {
        (&mut self.asm, self.temporaries)
    }

    /// The assembler by value, for out-of-line code: the address of the cursor must not escape.
    #[inline(always)]
    pub(crate) fn detach(&mut self) -> (Asm<'_, M>, Temporaries<M>) {
        let asm = Asm {
            cursor: self.asm.cursor,
            left: self.asm.left,
            start: self.asm.start,
            small: self.asm.small,
            last_return: self.asm.last_return,
            forward: self.asm.forward,
            f: &mut *self.asm.f,
            machine: core::marker::PhantomData,
        };
        (asm, self.temporaries)
    }

    /// Takes over the state that out-of-line code returned.
    #[inline(always)]
    pub(crate) fn attach(&mut self, moved: Detached, space: u8) {
        self.asm.cursor = moved.cursor;
        self.asm.left = self.asm.left.saturating_sub(usize::from(space));
        self.asm.last_return = moved.last_return;
        self.asm.forward = moved.forward;
    }
}

/// Where the arguments of a call are; the rest of the list is filled up.
fn places<M: Machine>(arguments: &[VirtualArgument<M>]) -> Result<[Argument<M>; MAX_ARGUMENTS], Error> {
    let mut places = [Argument::Constant(0); MAX_ARGUMENTS];
    let used = places.get_mut(..arguments.len()).ok_or(Error::Arguments)?;
    for (place, argument) in used.iter_mut().zip(arguments) {
        *place = match *argument {
            VirtualArgument::Constant(value) => Argument::Constant(value),
            VirtualArgument::Reg(v) => match v.slot() {
                None => Argument::Reg(v.register),
                Some(offset) => Argument::Local(Local { offset }),
            },
            VirtualArgument::Float(v) => match v.slot() {
                None => Argument::Float(v.register),
                Some(offset) => Argument::FloatLocal(Local { offset }),
            },
        };
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_register_is_where_it_is_said_to_be() {
        fn check<R: Register>() {
            for number in 0..32 {
                let register = R::from_number(number);
                assert_eq!(VirtualReg::fixed(register).register(), Some(register));
            }
            let stacked = VirtualReg { register: R::on_stack(4096) };
            assert_eq!((stacked.register(), stacked.slot()), (None, Some(4096)));
        }
        check::<crate::x86_64::Reg>();
        check::<crate::aarch64::Float>();
        check::<crate::riscv64::Reg>();
        check::<crate::mips::Float>();
        check::<crate::sparc64::Reg>();
        check::<crate::sparc64::Float>();
        check::<crate::alpha::Reg>();
        check::<crate::ppc64le::Reg>();
        check::<crate::ppc64le::Float>();
    }
}
