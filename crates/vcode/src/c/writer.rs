//! A function under construction for any machine and layer: registers, labels and variables are handles, which are
//! checked at every use. Does not know C.

use std::boxed::Box;
use std::format;
use std::vec::Vec;

use super::failure::{Failure, Status};
use super::layer::{AnyReg, Callee, Layer, MAX_OPERANDS, PassedTo, RegisterOf, Transfer};
use crate::asm::{Code, Label};
use crate::error::Error;
use crate::features::Features;
use crate::frame::Local;
use crate::instruction::{Family, Instruction, OperandKind, Value};
use crate::layers::strength::{self, Integer};
use crate::layers::table::{TableDefault, jump_table};
use crate::machine::Machine;
use crate::registers::Class;
use crate::signature::Type;

/// A register, label or variable, as C has it: its number in the function with this serial number. No function has the
/// serial number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(super) struct Handle {
    pub(super) index: u32,
    pub(super) function: u32,
}

/// A place within a variable, `offset` bytes from its start.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct StackPlace {
    pub(super) handle: Handle,
    pub(super) offset: i32,
}

/// An operand or argument.
#[derive(Debug, Clone, Copy)]
pub(super) enum GivenOperand {
    Register(Handle),
    Constant(i64),
    Variable(StackPlace),
    Label(Handle),
    Address(u64),
    Itself,
}

impl GivenOperand {
    fn noun(self) -> &'static str {
        match self {
            GivenOperand::Register(_) => "a register",
            GivenOperand::Constant(_) => "a constant",
            GivenOperand::Variable(_) => "a variable",
            GivenOperand::Label(_) => "a label",
            GivenOperand::Address(_) => "an address",
            GivenOperand::Itself => "the function itself",
        }
    }
}

/// A register file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    Int,
    Float,
}

/// Where a register is allocated.
#[derive(Debug, Clone, Copy)]
pub(super) enum Allocation {
    /// By class, in a machine register if one is free.
    Class(Class),
    /// On the stack.
    Cold,
}

/// Arithmetic with a constant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Strength {
    Multiply,
    Divide,
    Modulo,
}

/// A function under construction.
pub(super) trait Writer {
    fn emit(&mut self, instruction: &'static Instruction, operands: &[GivenOperand]) -> Result<(), Failure>;
    fn allocate(&mut self, file: File, allocation: Allocation) -> Result<Handle, Failure>;
    fn give_back(&mut self, register: Handle) -> Result<(), Failure>;
    /// The number of the machine register; none on the stack.
    fn number(&self, register: Handle) -> Result<Option<u8>, Failure>;
    fn label(&mut self) -> Result<Handle, Failure>;
    fn bind(&mut self, label: Handle) -> Result<(), Failure>;
    fn procedure(&mut self, label: Handle, link: Handle) -> Result<(), Failure>;
    fn local(&mut self, ty: Type) -> Result<StackPlace, Failure>;
    fn local_bytes(&mut self, bytes: u32, align: u32) -> Result<StackPlace, Failure>;
    fn local_address(&mut self, d: Handle, variable: StackPlace) -> Result<(), Failure>;
    fn transfer(
        &mut self,
        transfer: Transfer,
        signature: &str,
        callee: GivenOperand,
        arguments: &[GivenOperand],
    ) -> Result<(), Failure>;
    fn take_result(&mut self, d: Handle) -> Result<(), Failure>;
    fn strength(
        &mut self,
        operation: Strength,
        ty: Integer,
        d: Handle,
        s: Handle,
        constant: i64,
    ) -> Result<(), Failure>;
    fn jump_table(&mut self, index: Handle, labels: &[Handle], otherwise: Option<Handle>) -> Result<(), Failure>;
    fn write_held(&mut self);
    fn allow(&mut self, features: u64);
    /// The first error that the layer has recorded.
    fn error(&self) -> Option<Error>;
    fn finish(self: Box<Self>) -> Result<Code, Failure>;
}

/// What is known of a label.
#[derive(Debug, Clone, Copy)]
struct LabelState {
    label: Label,
    is_used: bool,
    is_bound: bool,
}

/// A [`Writer`] over one layer.
pub(super) struct Writing<L: Layer> {
    layer: L,
    /// The serial number of the function.
    serial: u32,
    /// Registers by number; none where one was given back.
    registers: Vec<Option<RegisterOf<L>>>,
    labels: Vec<LabelState>,
    /// Variables and their bytes.
    variables: Vec<(Local, u32)>,
}

/// Adds to a list, or an error instead of an abort; returns the number of the element.
fn add<T>(list: &mut Vec<T>, element: T) -> Result<u32, Failure> {
    list.try_reserve(1).map_err(|_| Status::Memory)?;
    let index = u32::try_from(list.len()).map_err(|_| Status::Memory)?;
    list.push(element);
    Ok(index)
}

impl<L: Layer> Writing<L> {
    /// A function whose parameters are in these registers; also returns their handles.
    pub(super) fn new(
        layer: L,
        serial: u32,
        parameters: impl Iterator<Item = Option<RegisterOf<L>>>,
    ) -> Result<(Self, Vec<Handle>), Failure> {
        let mut writing = Writing { layer, serial, registers: Vec::new(), labels: Vec::new(), variables: Vec::new() };
        let mut handles = Vec::new();
        for register in parameters {
            handles.push(Handle { index: add(&mut writing.registers, register)?, function: serial });
        }
        Ok((writing, handles))
    }

    fn register(&self, handle: Handle) -> Result<RegisterOf<L>, Failure> {
        if handle.function != self.serial {
            return Err(Failure::new(Status::Register, "a register of no function or of another one"));
        }
        match self.registers.get(handle.index as usize) {
            Some(Some(register)) => Ok(*register),
            Some(None) => Err(Failure::new(Status::Register, format!("register {} was given back", handle.index))),
            None => Err(Failure::new(Status::Register, format!("there is no register {}", handle.index))),
        }
    }

    fn int(&self, handle: Handle) -> Result<L::Reg, Failure> {
        match self.register(handle)? {
            AnyReg::Int(register) => Ok(register),
            AnyReg::Float(_) => {
                Err(Failure::new(Status::RegisterClass, format!("register {} is a floating one", handle.index)))
            }
        }
    }

    fn float(&self, handle: Handle) -> Result<L::Float, Failure> {
        match self.register(handle)? {
            AnyReg::Float(register) => Ok(register),
            AnyReg::Int(_) => {
                Err(Failure::new(Status::RegisterClass, format!("register {} is an integer one", handle.index)))
            }
        }
    }

    fn label_state(&mut self, handle: Handle) -> Result<&mut LabelState, Failure> {
        let state = self.labels.get_mut(handle.index as usize).filter(|_| handle.function == self.serial);
        state.ok_or_else(|| Failure::new(Status::Label, "a label of no function or of another one"))
    }

    /// The label of a reference.
    fn referred(&mut self, handle: Handle) -> Result<Label, Failure> {
        let state = self.label_state(handle)?;
        state.is_used = true;
        Ok(state.label)
    }

    /// The place of an access to `bytes` bytes.
    fn variable(&self, variable: StackPlace, bytes: u32) -> Result<Local, Failure> {
        let StackPlace { handle, offset } = variable;
        let known = self.variables.get(handle.index as usize).filter(|_| handle.function == self.serial);
        let (local, length) =
            known.ok_or_else(|| Failure::new(Status::Variable, "a variable of no function or of another one"))?;
        if offset < 0 || i64::from(offset) + i64::from(bytes) > i64::from(*length) {
            return Err(Failure::new(
                Status::Variable,
                format!("{bytes} bytes at offset {offset} of a variable of {length} bytes"),
            ));
        }
        Ok(local.plus(offset))
    }

    /// The operand of an instruction as its layer takes it.
    fn value(
        &mut self,
        instruction: &Instruction,
        kind: OperandKind,
        operand: GivenOperand,
    ) -> Result<Value<L::Reg, L::Float>, Failure> {
        match (kind, operand) {
            (OperandKind::Reg(_), GivenOperand::Register(handle)) => Ok(Value::Reg(self.int(handle)?)),
            (OperandKind::Float(_), GivenOperand::Register(handle)) => Ok(Value::Float(self.float(handle)?)),
            (OperandKind::Immediate(ty), GivenOperand::Constant(value)) => {
                let held = immediate(instruction, ty, <L::Machine as crate::Architecture>::LONG_BITS, value);
                held.map(Value::Immediate)
                    .ok_or_else(|| Failure::new(Status::Immediate, format!("the constant {value}")))
            }
            (OperandKind::Offset, GivenOperand::Constant(value)) => match i32::try_from(value) {
                Ok(_) => Ok(Value::Immediate(value)),
                Err(_) => Err(Failure::new(Status::Immediate, format!("the offset {value} is not an int"))),
            },
            (OperandKind::Local, GivenOperand::Variable(variable)) => {
                let bytes = instruction.ty.map_or(0, |ty| ty.bytes(<L::Machine as crate::Architecture>::LONG_BITS));
                Ok(Value::Local(self.variable(variable, bytes)?))
            }
            (OperandKind::Label, GivenOperand::Label(handle)) => Ok(Value::Label(self.referred(handle)?)),
            (
                OperandKind::Reg(_)
                | OperandKind::Float(_)
                | OperandKind::Immediate(_)
                | OperandKind::Offset
                | OperandKind::Local
                | OperandKind::Label,
                GivenOperand::Register(_)
                | GivenOperand::Constant(_)
                | GivenOperand::Variable(_)
                | GivenOperand::Label(_)
                | GivenOperand::Address(_)
                | GivenOperand::Itself,
            ) => Err(Failure::new(
                Status::Operands,
                format!("{} stands where the instruction takes {}", operand.noun(), taken(kind)),
            )),
        }
    }

    fn passed(&self, operand: GivenOperand) -> Result<PassedTo<L>, Failure> {
        match operand {
            GivenOperand::Register(handle) => Ok(PassedTo::<L>::Register(self.register(handle)?)),
            GivenOperand::Constant(value) => Ok(PassedTo::<L>::Constant(value)),
            GivenOperand::Address(address) => Ok(PassedTo::<L>::Constant(address as i64)),
            GivenOperand::Variable(_) | GivenOperand::Label(_) | GivenOperand::Itself => {
                Err(Failure::new(Status::Operands, format!("{} is passed to a function", operand.noun())))
            }
        }
    }
}

fn taken(kind: OperandKind) -> &'static str {
    match kind {
        OperandKind::Reg(_) | OperandKind::Float(_) => "a register",
        OperandKind::Immediate(_) => "a constant",
        OperandKind::Offset => "an offset",
        OperandKind::Local => "a variable",
        OperandKind::Label => "a label",
    }
}

/// The constant as the instruction holds it, if none of its bits that matter is lost. As in `quaject/vcode.h`, an int
/// of which only the bits matter may be given as an unsigned, and the reverse.
fn immediate(instruction: &Instruction, ty: Type, long_bits: u32, value: i64) -> Option<i64> {
    let as_either = || (-1 << 31..1 << 32).contains(&value);
    let only_bits = match instruction.family {
        Family::Branch | Family::Checked => false,
        Family::Binary => !matches!(instruction.op, "div" | "mod" | "mulhi" | "min" | "max"),
        // A count is checked by its range.
        Family::Shift => return (0..=63).contains(&value).then_some(value),
        Family::Unary
        | Family::Set
        | Family::Convert
        | Family::Load
        | Family::Store
        | Family::Return
        | Family::Label
        | Family::Register
        | Family::Nullary
        | Family::Select
        | Family::Exchange
        | Family::IndexedLoad
        | Family::IndexedStore
        | Family::Hint => true,
    };
    match ty {
        Type::L | Type::Ul | Type::P if long_bits == 64 => Some(value),
        Type::D => Some(value),
        Type::F => u32::try_from(value).is_ok().then_some(value),
        Type::U | Type::Ul | Type::P => as_either().then_some(i64::from(value as u32)),
        Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::L if only_bits => {
            as_either().then_some(i64::from(value as i32))
        }
        Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::L => i32::try_from(value).is_ok().then_some(value),
    }
}

impl<L: Layer> Writer for Writing<L> {
    fn emit(&mut self, instruction: &'static Instruction, operands: &[GivenOperand]) -> Result<(), Failure> {
        if operands.len() != instruction.operands.len() {
            let (found, wanted) = (operands.len(), instruction.operands.len());
            return Err(Failure::new(Status::Operands, format!("{found} operands instead of {wanted}")));
        }
        let mut values = [Value::Immediate(0); MAX_OPERANDS];
        for ((value, kind), operand) in values.iter_mut().zip(instruction.operands).zip(operands) {
            *value = self.value(instruction, *kind, *operand)?;
        }
        let values = values.get(..operands.len()).ok_or(Status::Operands)?;
        if self.layer.add(instruction, values) { Ok(()) } else { Err(Status::Operands.into()) }
    }

    fn allocate(&mut self, file: File, allocation: Allocation) -> Result<Handle, Failure> {
        let register = match (file, allocation) {
            (File::Int, Allocation::Class(class)) => AnyReg::Int(self.layer.allocate(class)?),
            (File::Int, Allocation::Cold) => AnyReg::Int(self.layer.allocate_cold()?),
            (File::Float, Allocation::Class(class)) => AnyReg::Float(self.layer.allocate_float(class)?),
            (File::Float, Allocation::Cold) => AnyReg::Float(self.layer.allocate_cold_float()?),
        };
        Ok(Handle { index: add(&mut self.registers, Some(register))?, function: self.serial })
    }

    fn give_back(&mut self, register: Handle) -> Result<(), Failure> {
        let own = self.register(register)?;
        self.layer.give_back(own);
        self.registers[register.index as usize] = None;
        Ok(())
    }

    fn number(&self, register: Handle) -> Result<Option<u8>, Failure> {
        Ok(L::number(self.register(register)?))
    }

    fn label(&mut self) -> Result<Handle, Failure> {
        let label = self.layer.make_label();
        let state = LabelState { label, is_used: false, is_bound: false };
        Ok(Handle { index: add(&mut self.labels, state)?, function: self.serial })
    }

    fn bind(&mut self, label: Handle) -> Result<(), Failure> {
        let state = self.label_state(label)?;
        if state.is_bound {
            return Err(Failure::new(Status::BoundTwice, format!("label {}", label.index)));
        }
        state.is_bound = true;
        let label = state.label;
        self.layer.bind_label(label);
        Ok(())
    }

    fn procedure(&mut self, label: Handle, link: Handle) -> Result<(), Failure> {
        let link = self.int(link)?;
        let state = self.label_state(label)?;
        if state.is_bound {
            return Err(Failure::new(Status::BoundTwice, format!("label {}", label.index)));
        }
        state.is_bound = true;
        let label = state.label;
        self.layer.begin_procedure(label, link);
        Ok(())
    }

    fn local(&mut self, ty: Type) -> Result<StackPlace, Failure> {
        let bytes = ty.bytes(<L::Machine as crate::Architecture>::LONG_BITS);
        self.local_bytes(bytes, bytes)
    }

    fn local_bytes(&mut self, bytes: u32, align: u32) -> Result<StackPlace, Failure> {
        if !align.is_power_of_two() || align > 16 {
            return Err(Failure::new(Status::Option, format!("the alignment {align} is not 1, 2, 4, 8 or 16")));
        }
        let local = self.layer.make_local(bytes, align);
        let index = add(&mut self.variables, (local, bytes))?;
        Ok(StackPlace { handle: Handle { index, function: self.serial }, offset: 0 })
    }

    fn local_address(&mut self, d: Handle, variable: StackPlace) -> Result<(), Failure> {
        let (d, local) = (self.int(d)?, self.variable(variable, 0)?);
        self.layer.address_of(d, local);
        Ok(())
    }

    fn transfer(
        &mut self,
        transfer: Transfer,
        signature: &str,
        callee: GivenOperand,
        arguments: &[GivenOperand],
    ) -> Result<(), Failure> {
        let callee = match callee {
            GivenOperand::Register(handle) => Callee::Register(self.int(handle)?),
            GivenOperand::Address(address) => {
                Callee::Address(usize::try_from(address).map_err(|_| Failure::from(Status::Immediate))?)
            }
            GivenOperand::Itself => Callee::Itself,
            GivenOperand::Constant(_) | GivenOperand::Variable(_) | GivenOperand::Label(_) => {
                return Err(Failure::new(Status::Operands, format!("{} is called", callee.noun())));
            }
        };
        let passed = arguments.iter().map(|operand| self.passed(*operand)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.layer.transfer(transfer, signature, callee, &passed)?)
    }

    fn take_result(&mut self, d: Handle) -> Result<(), Failure> {
        let d = self.register(d)?;
        self.layer.move_result(d);
        Ok(())
    }

    fn strength(
        &mut self,
        operation: Strength,
        ty: Integer,
        d: Handle,
        s: Handle,
        constant: i64,
    ) -> Result<(), Failure> {
        let (d, s) = (self.int(d)?, self.int(s)?);
        match operation {
            Strength::Multiply => strength::multiply(&mut self.layer, ty, d, s, constant),
            Strength::Divide => strength::divide(&mut self.layer, ty, d, s, constant),
            Strength::Modulo => strength::modulo(&mut self.layer, ty, d, s, constant),
        }
        Ok(())
    }

    fn jump_table(&mut self, index: Handle, labels: &[Handle], otherwise: Option<Handle>) -> Result<(), Failure> {
        let index = self.int(index)?;
        let labels = labels.iter().map(|label| self.referred(*label)).collect::<Result<Vec<_>, _>>()?;
        let default = match otherwise {
            Some(label) => TableDefault::Label(self.referred(label)?),
            None => TableDefault::Unreachable,
        };
        jump_table(&mut self.layer, index, &labels, default);
        Ok(())
    }

    fn write_held(&mut self) {
        self.layer.write_held();
    }

    fn allow(&mut self, features: u64) {
        self.layer.allow(Features::of::<L::Machine>(features));
    }

    fn error(&self) -> Option<Error> {
        self.layer.first_error()
    }

    fn finish(self: Box<Self>) -> Result<Code, Failure> {
        let Writing { layer, labels, .. } = *self;
        if let Some(number) = labels.iter().position(|state| state.is_used && !state.is_bound)
            && layer.first_error().is_none()
        {
            return Err(Failure::new(Status::UnboundLabel, format!("label {number}, counted from 0")));
        }
        Ok(layer.finish()?)
    }
}

/// The call frame information of a finished function that is executed at `address`.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(super) fn frames<M: Machine>(code: &Code, instructions: &[u8], address: usize) -> Option<Vec<u8>> {
    Some(crate::debug::call_frames::<M>(&crate::debug::FunctionInfo {
        name: "",
        entry: address,
        code: instructions,
        prologue: crate::debug::prologue_bytes::<M>(code),
        sources: &[],
        lines: &[],
    }))
}

/// Systems without code memory have no unwinder for it.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
pub(super) fn frames<M: Machine>(_: &Code, _: &[u8], _: usize) -> Option<Vec<u8>> {
    None
}
