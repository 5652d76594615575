//! The portable instructions as data, for layers, readers and debuggers. Knows no machine.

use crate::asm::Label;
use crate::frame::Local;
use crate::generated::core::Extension;
use crate::generated::instructions::{INSTRUCTIONS, emit};
use crate::signature::Type;

/// The access of an instruction to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads it.
    Read,
    /// It writes it.
    Written,
    /// It reads it, and writes it.
    Updated,
}

/// The required kind of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandKind {
    /// A register for integers and pointers.
    Reg(Access),
    /// A register for floats and doubles.
    Float(Access),
    /// A constant of this type.
    Immediate(Type),
    /// An offset from a base register.
    Offset,
    /// A variable on the stack.
    Local,
    /// A label.
    Label,
}

/// The kind of an operation, which determines its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `d, s, t` or `d, s, i`.
    Binary,
    /// Like [`Family::Binary`], the immediate being a count below the width.
    Shift,
    /// `d, s`.
    Unary,
    /// `d, i`.
    Set,
    /// `d, s` of different types.
    Convert,
    /// Destination, base, index or offset; or destination, local.
    Load,
    /// Value, base, index or offset; or value, local.
    Store,
    /// `s`, or nothing.
    Return,
    /// `s, t, label` or `s, i, label`.
    Branch,
    /// A label.
    Label,
    /// `s`.
    Register,
    /// Nothing.
    Nullary,
    /// `d, s, t`: a conditional move of `t` to `d`.
    Select,
    /// `d, s, t, label` or `d, s, i, label`: an overflow branches to the label.
    Checked,
    /// `d, s, t`: the expected and then the previous value, an address, the new value (compare-and-swap).
    Exchange,
    /// `d, base, index, offset`: the index counts elements of the type.
    IndexedLoad,
    /// `d, base, index, offset`, likewise.
    IndexedStore,
    /// Base and offset of a hint, which has no effect.
    Hint,
}

/// An instruction of the portable set.
#[derive(Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its index in [`Instruction::all`].
    pub number: u16,
    /// Its name, `addii`.
    pub name: &'static str,
    /// The name of the operation, `add`.
    pub op: &'static str,
    /// The kind of the operation.
    pub family: Family,
    /// The type of its result, or of the values that it stores or compares; `None` for void.
    pub ty: Option<Type>,
    /// The type of its sources, which differs in conversions.
    pub source: Option<Type>,
    /// The required kinds of its operands.
    pub operands: &'static [OperandKind],
}

impl Instruction {
    /// Every instruction that all machines have.
    pub fn all() -> &'static [Instruction] {
        INSTRUCTIONS
    }

    /// The instruction with this name.
    pub fn named(name: &str) -> Option<&'static Instruction> {
        INSTRUCTIONS.iter().find(|instruction| instruction.name == name)
    }

    /// The instruction with this number.
    pub fn numbered(number: u16) -> Option<&'static Instruction> {
        INSTRUCTIONS.get(usize::from(number))
    }

    /// Whether `values` are of the required kinds.
    pub fn accepts<R, F>(&self, values: &[Value<R, F>]) -> bool {
        self.operands.len() == values.len()
            && self.operands.iter().zip(values).all(|(operand, value)| operand.accepts(value))
    }

    /// Emits the instruction; if `values` are not of the required kinds, emits nothing and returns false.
    pub fn emit<A: Extension>(&self, asm: &mut A, values: &[Value<A::Reg, A::Float>]) -> bool {
        let accepted = self.accepts(values);
        if accepted {
            emit(asm, self.number, &Operands { values });
        }
        accepted
    }
}

impl OperandKind {
    fn accepts<R, F>(self, value: &Value<R, F>) -> bool {
        match (self, value) {
            (OperandKind::Immediate(ty), Value::Immediate(value)) => immediate_fits(ty, *value),
            (OperandKind::Offset, Value::Immediate(value)) => i32::try_from(*value).is_ok(),
            (OperandKind::Reg(_), Value::Reg(_))
            | (OperandKind::Float(_), Value::Float(_))
            | (OperandKind::Local, Value::Local(_))
            | (OperandKind::Label, Value::Label(_)) => true,
            (
                OperandKind::Reg(_)
                | OperandKind::Float(_)
                | OperandKind::Immediate(_)
                | OperandKind::Offset
                | OperandKind::Local
                | OperandKind::Label,
                Value::Reg(_) | Value::Float(_) | Value::Immediate(_) | Value::Local(_) | Value::Label(_),
            ) => false,
        }
    }
}

/// Whether an immediate fits the type; unsigned values are held as signed ones of 64 bits.
pub(crate) fn immediate_fits(ty: Type, value: i64) -> bool {
    match ty {
        Type::C | Type::Uc | Type::S | Type::Us | Type::I => i32::try_from(value).is_ok(),
        Type::U | Type::F => u32::try_from(value).is_ok(),
        Type::L | Type::Ul | Type::P | Type::D => true,
    }
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<R, F> {
    /// A register for integers and pointers.
    Reg(R),
    /// A register for floats and doubles.
    Float(F),
    /// A constant, an offset, or the bits of a floating constant.
    Immediate(i64),
    /// A variable on the stack.
    Local(Local),
    /// A label.
    Label(Label),
}

/// Operands that an instruction has accepted.
pub(crate) struct Operands<'a, R, F> {
    values: &'a [Value<R, F>],
}

impl<R: Copy, F: Copy> Operands<'_, R, F> {
    pub(crate) fn reg(&self, index: usize) -> R {
        match self.values[index] {
            Value::Reg(register) => register,
            Value::Float(_) | Value::Immediate(_) | Value::Local(_) | Value::Label(_) => wrong(),
        }
    }

    pub(crate) fn float(&self, index: usize) -> F {
        match self.values[index] {
            Value::Float(register) => register,
            Value::Reg(_) | Value::Immediate(_) | Value::Local(_) | Value::Label(_) => wrong(),
        }
    }

    pub(crate) fn immediate(&self, index: usize) -> i64 {
        match self.values[index] {
            Value::Immediate(value) => value,
            Value::Reg(_) | Value::Float(_) | Value::Local(_) | Value::Label(_) => wrong(),
        }
    }

    pub(crate) fn local(&self, index: usize) -> Local {
        match self.values[index] {
            Value::Local(local) => local,
            Value::Reg(_) | Value::Float(_) | Value::Immediate(_) | Value::Label(_) => wrong(),
        }
    }

    pub(crate) fn label(&self, index: usize) -> Label {
        match self.values[index] {
            Value::Label(label) => label,
            Value::Reg(_) | Value::Float(_) | Value::Immediate(_) | Value::Local(_) => wrong(),
        }
    }
}

fn wrong() -> ! {
    unreachable!("`Instruction::accepts` was asked before")
}
