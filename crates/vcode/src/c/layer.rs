//! The two layers of C programs, virtual registers and the peephole window, as one trait: what [`Core`] and
//! [`Extension`] do not have.

use crate::architecture::Architecture;
use crate::asm::{Asm, Code, Label};
use crate::call::{Argument, Target};
use crate::error::Error;
use crate::features::Features;
use crate::frame::{Local, Param};
use crate::generated::core::{Core, Extension};
use crate::instruction::{Access, Family, Instruction, OperandKind, Value};
use crate::layers::peephole::Peephole;
use crate::layers::temporary_allocator::TemporaryAllocator;
use crate::layers::virtual_registers::{Virtual, VirtualArgument, VirtualReg, VirtualTarget};
use crate::machine::Machine;
use crate::registers::{Class, Register};

/// The most operands of an instruction.
pub(super) const MAX_OPERANDS: usize = 4;
/// The most arguments of a call.
pub(super) const MAX_ARGUMENTS: usize = 32;

/// A register of a layer, of either file.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnyReg<R, F> {
    Int(R),
    Float(F),
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Passed<R, F> {
    Register(AnyReg<R, F>),
    Constant(i64),
}

/// The callee.
#[derive(Debug, Clone, Copy)]
pub(super) enum Callee<R> {
    Address(usize),
    Register(R),
    Itself,
}

/// Whether the function that a call transfers control to returns here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Transfer {
    Call,
    TailCall,
}

/// The register type of a layer.
pub(super) type RegisterOf<L> = AnyReg<<L as Core>::Reg, <L as Core>::Float>;
/// An operand on virtual registers.
type VirtualValue<M> = Value<VirtualReg<<M as Architecture>::Reg>, VirtualReg<<M as Architecture>::Float>>;
/// The argument type of a layer.
pub(super) type PassedTo<L> = Passed<<L as Core>::Reg, <L as Core>::Float>;

/// A layer over an assembler.
pub(super) trait Layer: Extension + TemporaryAllocator + Sized {
    /// The machine that it writes for.
    type Machine: Machine;

    /// Adds an instruction; false if the values are not what it takes.
    fn add(&mut self, instruction: &Instruction, values: &[Value<Self::Reg, Self::Float>]) -> bool {
        instruction.emit(self, values)
    }
    fn over(asm: Asm<'static, Self::Machine>, slots: &'static mut [u32]) -> Self;
    fn parameter(&self, param: Param<Self::Machine>) -> Option<RegisterOf<Self>>;
    fn allocate(&mut self, class: Class) -> Result<Self::Reg, Error>;
    fn allocate_float(&mut self, class: Class) -> Result<Self::Float, Error>;
    /// A register that is on the stack from the start, where the layer has such.
    fn allocate_cold(&mut self) -> Result<Self::Reg, Error>;
    fn allocate_cold_float(&mut self) -> Result<Self::Float, Error>;
    fn give_back(&mut self, register: RegisterOf<Self>);
    /// The number of the machine register that it is in; none if it is on the stack.
    fn number(register: RegisterOf<Self>) -> Option<u8>;
    fn make_label(&mut self) -> Label;
    fn bind_label(&mut self, label: Label);
    fn begin_procedure(&mut self, label: Label, link: Self::Reg);
    fn make_local(&mut self, bytes: u32, align: u32) -> Local;
    fn address_of(&mut self, d: Self::Reg, local: Local);
    fn transfer(
        &mut self,
        transfer: Transfer,
        signature: &str,
        callee: Callee<Self::Reg>,
        arguments: &[PassedTo<Self>],
    ) -> Result<(), Error>;
    fn move_result(&mut self, d: RegisterOf<Self>);
    fn write_held(&mut self);
    fn allow(&mut self, features: Features);
    fn first_error(&self) -> Option<Error>;
    fn finish(self) -> Result<Code, Error>;
}

/// The arguments of a call in a list of fixed length, converted.
fn converted<P: Copy, T: Copy>(passed: &[P], filler: T, convert: fn(P) -> T) -> Result<[T; MAX_ARGUMENTS], Error> {
    let mut list = [filler; MAX_ARGUMENTS];
    let used = list.get_mut(..passed.len()).ok_or(Error::Arguments)?;
    for (place, passed) in used.iter_mut().zip(passed) {
        *place = convert(*passed);
    }
    Ok(list)
}

impl<M: Machine> Layer for Virtual<'static, 'static, M>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    type Machine = M;

    /// Does what the instructions of [`Virtual`] do, with one copy of the emitters instead of two, which shortens the
    /// library.
    fn add(&mut self, instruction: &Instruction, values: &[Value<Self::Reg, Self::Float>]) -> bool {
        add_virtual(self, instruction, values)
    }

    fn over(asm: Asm<'static, M>, slots: &'static mut [u32]) -> Self {
        Virtual::new(asm, slots)
    }

    fn parameter(&self, param: Param<M>) -> Option<RegisterOf<Self>> {
        match param {
            Param::Reg(register) => Some(AnyReg::Int(VirtualReg::fixed(register))),
            Param::Float(register) => Some(AnyReg::Float(VirtualReg::fixed(register))),
            Param::None => None,
        }
    }

    fn allocate(&mut self, class: Class) -> Result<Self::Reg, Error> {
        Ok(self.reg(class))
    }

    fn allocate_float(&mut self, class: Class) -> Result<Self::Float, Error> {
        Ok(self.float(class))
    }

    fn allocate_cold(&mut self) -> Result<Self::Reg, Error> {
        Ok(self.cold_reg())
    }

    fn allocate_cold_float(&mut self) -> Result<Self::Float, Error> {
        Ok(self.cold_float())
    }

    fn give_back(&mut self, register: RegisterOf<Self>) {
        match register {
            AnyReg::Int(register) => self.release(register),
            AnyReg::Float(register) => self.release_float(register),
        }
    }

    fn number(register: RegisterOf<Self>) -> Option<u8> {
        match register {
            AnyReg::Int(register) => register.register().map(Register::number),
            AnyReg::Float(register) => register.register().map(Register::number),
        }
    }

    fn make_label(&mut self) -> Label {
        self.label()
    }

    fn bind_label(&mut self, label: Label) {
        self.bind(label);
    }

    fn begin_procedure(&mut self, label: Label, link: Self::Reg) {
        self.procedure(label, link);
    }

    fn make_local(&mut self, bytes: u32, align: u32) -> Local {
        self.local_bytes(bytes, align)
    }

    fn address_of(&mut self, d: Self::Reg, local: Local) {
        self.local_address(d, local);
    }

    fn transfer(
        &mut self,
        transfer: Transfer,
        signature: &str,
        callee: Callee<Self::Reg>,
        arguments: &[PassedTo<Self>],
    ) -> Result<(), Error> {
        let list = converted(arguments, VirtualArgument::Constant(0), |passed| match passed {
            Passed::Register(AnyReg::Int(register)) => VirtualArgument::Reg(register),
            Passed::Register(AnyReg::Float(register)) => VirtualArgument::Float(register),
            Passed::Constant(value) => VirtualArgument::Constant(value),
        })?;
        let list = list.get(..arguments.len()).ok_or(Error::Arguments)?;
        let target = match callee {
            Callee::Address(address) => VirtualTarget::Address(address),
            Callee::Register(register) => VirtualTarget::Reg(register),
            Callee::Itself => VirtualTarget::Itself,
        };
        match transfer {
            Transfer::Call => self.call(signature, target, list),
            Transfer::TailCall => self.tail_call(signature, target, list),
        }
    }

    fn move_result(&mut self, d: RegisterOf<Self>) {
        match d {
            AnyReg::Int(register) => self.take_result(register),
            AnyReg::Float(register) => self.take_float_result(register),
        }
    }

    fn write_held(&mut self) {}

    fn allow(&mut self, features: Features) {
        self.asm().use_features(features);
    }

    fn first_error(&self) -> Option<Error> {
        self.asm.error()
    }

    fn finish(self) -> Result<Code, Error> {
        self.end()
    }
}

/// Adds an instruction whose operands may be on the stack: they are loaded to temporaries first, its result is stored
/// after it.
fn add_virtual<M: Machine>(
    function: &mut Virtual<'static, 'static, M>,
    instruction: &Instruction,
    values: &[VirtualValue<M>],
) -> bool
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    if !instruction.accepts(values) {
        return false;
    }
    let (asm, temporaries) = function.parts();
    let mut plain = [Value::Immediate(0); MAX_OPERANDS];
    let mut result = None;
    let mut loaded = 0;
    for ((plain, value), kind) in plain.iter_mut().zip(values).zip(instruction.operands) {
        let access = match kind {
            OperandKind::Reg(access) | OperandKind::Float(access) => *access,
            OperandKind::Immediate(_) | OperandKind::Offset | OperandKind::Local | OperandKind::Label => Access::Read,
        };
        *plain = match (*value, access) {
            (Value::Reg(v), Access::Written) => Value::Reg(temporaries.target(v, 0)),
            (Value::Float(v), Access::Written) => Value::Float(temporaries.target_float(v, 0)),
            (Value::Reg(v), Access::Read | Access::Updated) => {
                loaded += 1;
                Value::Reg(temporaries.load(asm, v, loaded - 1))
            }
            (Value::Float(v), Access::Read | Access::Updated) => {
                loaded += 1;
                Value::Float(temporaries.load_float(asm, v, loaded - 1))
            }
            (Value::Immediate(value), _) => Value::Immediate(value),
            (Value::Local(local), _) => Value::Local(local),
            (Value::Label(label), _) => Value::Label(label),
        };
        match access {
            Access::Written | Access::Updated => result = Some((*value, *plain)),
            Access::Read => {}
        }
    }
    let Some(plain) = plain.get_mut(..values.len()) else { return false };
    let store = |asm: &mut Asm<'static, M>| match result {
        Some((Value::Reg(v), Value::Reg(from))) => temporaries.store(asm, v, from),
        Some((Value::Float(v), Value::Float(from))) => temporaries.store_float(asm, v, from),
        Some(_) | None => {}
    };
    let is_stored = match result {
        Some((Value::Reg(v), _)) => v.register().is_none(),
        Some((Value::Float(v), _)) => v.register().is_none(),
        Some((Value::Immediate(_) | Value::Local(_) | Value::Label(_), _)) | None => false,
    };
    if instruction.family == Family::Checked && is_stored {
        // The result is stored whether or not the branch is taken.
        let Some(Value::Label(target)) = plain.last().copied() else { return false };
        let (overflow, done) = (asm.label(), asm.label());
        if let Some(last) = plain.last_mut() {
            *last = Value::Label(overflow);
        }
        instruction.emit(asm, plain);
        store(asm);
        asm.j(done);
        asm.bind(overflow);
        store(asm);
        asm.j(target);
        asm.bind(done);
    } else {
        instruction.emit(asm, plain);
        store(asm);
    }
    true
}

impl<M: Machine> Layer for Peephole<'static, M>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    type Machine = M;

    fn over(asm: Asm<'static, M>, _: &'static mut [u32]) -> Self {
        Peephole::new(asm)
    }

    fn parameter(&self, param: Param<M>) -> Option<RegisterOf<Self>> {
        match param {
            Param::Reg(register) => Some(AnyReg::Int(register)),
            Param::Float(register) => Some(AnyReg::Float(register)),
            Param::None => None,
        }
    }

    fn allocate(&mut self, class: Class) -> Result<Self::Reg, Error> {
        self.getreg(class)
    }

    fn allocate_float(&mut self, class: Class) -> Result<Self::Float, Error> {
        self.getfloat(class)
    }

    fn allocate_cold(&mut self) -> Result<Self::Reg, Error> {
        Err(Error::Registers)
    }

    fn allocate_cold_float(&mut self) -> Result<Self::Float, Error> {
        Err(Error::Registers)
    }

    fn give_back(&mut self, register: RegisterOf<Self>) {
        match register {
            AnyReg::Int(register) => self.putreg(register),
            AnyReg::Float(register) => self.putfloat(register),
        }
    }

    fn number(register: RegisterOf<Self>) -> Option<u8> {
        match register {
            AnyReg::Int(register) => Some(register.number()),
            AnyReg::Float(register) => Some(register.number()),
        }
    }

    fn make_label(&mut self) -> Label {
        self.label()
    }

    fn bind_label(&mut self, label: Label) {
        self.bind(label);
    }

    fn begin_procedure(&mut self, label: Label, link: Self::Reg) {
        self.procedure(label, link);
    }

    fn make_local(&mut self, bytes: u32, align: u32) -> Local {
        self.local_bytes(bytes, align)
    }

    fn address_of(&mut self, d: Self::Reg, local: Local) {
        self.asm().local_address(d, local);
    }

    fn transfer(
        &mut self,
        transfer: Transfer,
        signature: &str,
        callee: Callee<Self::Reg>,
        arguments: &[PassedTo<Self>],
    ) -> Result<(), Error> {
        let list = converted(arguments, Argument::Constant(0), |passed| match passed {
            Passed::Register(AnyReg::Int(register)) => Argument::Reg(register),
            Passed::Register(AnyReg::Float(register)) => Argument::Float(register),
            Passed::Constant(value) => Argument::Constant(value),
        })?;
        let list = list.get(..arguments.len()).ok_or(Error::Arguments)?;
        let target = match callee {
            Callee::Address(address) => Target::Address(address),
            Callee::Register(register) => Target::Reg(register),
            Callee::Itself => Target::Itself,
        };
        match transfer {
            Transfer::Call => self.asm().call(signature, target, list),
            Transfer::TailCall => self.asm().tail_call(signature, target, list),
        }
    }

    fn move_result(&mut self, d: RegisterOf<Self>) {
        match d {
            AnyReg::Int(register) => M::copy(self.asm(), register, M::RESULT),
            AnyReg::Float(register) => M::copy_float(self.asm(), register, M::FLOAT_RESULT),
        }
    }

    fn write_held(&mut self) {
        self.flush();
    }

    fn allow(&mut self, features: Features) {
        self.asm().use_features(features);
    }

    fn first_error(&self) -> Option<Error> {
        self.error()
    }

    fn finish(self) -> Result<Code, Error> {
        self.end()
    }
}
