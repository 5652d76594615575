//! The symbolic debugger whose absence "VCODE" 6.2 names: it executes a function one portable instruction at a time and
//! shows variables by name. Each instruction is generated as a function of its own, which loads the operands, executes
//! the instruction and stores its results. So the values are those that this machine computes, and an instruction that
//! is added to a specification needs no code here.
//!
//! Undefined behaviour is reported instead of executed: accesses outside the memory of the stepper, division by zero,
//! and shifts by too many bits.

use std::boxed::Box;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::{Bank, Function, Operand, Statement};
use crate::Native;
use crate::architecture::Architecture;
use crate::asm::{Asm, Workspace};
use crate::error::Error;
use crate::frame::Param;
use crate::generated::core::Core;
use crate::instruction::{self, Access, Family, Instruction, Value};
use crate::kind::Kind;
use crate::memory::Memory;
use crate::registers::Class;
use crate::signature::Type;

type Reg = <Native as Architecture>::Reg;
type Float = <Native as Architecture>::Float;

/// Memory that the function may access.
#[derive(Debug)]
struct Span {
    name: String,
    words: Box<[u64]>,
    bytes: usize,
}

impl Span {
    fn start(&self) -> u64 {
        self.words.as_ptr() as u64
    }
}

/// A function that is being stepped through.
#[derive(Debug)]
pub struct Stepper<'f> {
    function: &'f Function,
    memory: Memory,
    /// One per variable, then the address of the local that the instruction uses.
    values: Vec<u64>,
    types: Vec<Option<Type>>,
    spans: Vec<Span>,
    next: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Ended,
}

/// The effect of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of the statement.
    pub statement: usize,
    /// Variables it wrote, with their values.
    pub written: Vec<(String, String)>,
    /// Whether it branched.
    pub jumped: bool,
    /// The returned value, if any.
    pub returned: Option<String>,
}

/// An argument for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// An integer, or the bits of a float or double.
    Bits(u64),
    /// A pointer to these bytes.
    Bytes(Vec<u8>),
}

/// Why a function cannot continue: its next statement has undefined behaviour or cannot be executed alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    /// The statement that cannot be executed.
    pub statement: usize,
    /// Why.
    pub reason: String,
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for StepError {}

impl<'f> Stepper<'f> {
    /// A function before its first instruction.
    ///
    /// # Errors
    /// [`Error::Arguments`] if there are not as many arguments as parameters; [`Error::Memory`].
    pub fn new(function: &'f Function, arguments: &[ParameterValue]) -> Result<Stepper<'f>, Error> {
        if arguments.len() != function.parameters.len() {
            return Err(Error::Arguments);
        }
        let mut spans = Vec::new();
        let mut span = |name: &str, bytes: &[u8]| {
            let mut words = vec![0_u64; bytes.len().div_ceil(8).max(1)].into_boxed_slice();
            for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
                let mut whole = [0; 8];
                whole[..chunk.len()].copy_from_slice(chunk);
                *word = u64::from_ne_bytes(whole);
            }
            spans.push(Span { name: name.to_string(), words, bytes: bytes.len() });
            spans.last().map_or(0, Span::start)
        };
        let mut values = vec![0; function.variables.len() + 1];
        let mut types = vec![None; function.variables.len()];
        for (index, argument) in arguments.iter().enumerate() {
            types[index] = Some(function.parameters[index]);
            values[index] = match argument {
                ParameterValue::Bits(bits) => *bits,
                ParameterValue::Bytes(bytes) => span(&function.variables[index].name, bytes),
            };
        }
        for local in &function.locals {
            span(&local.name, &[0; 8][..local.ty.bytes(Native::LONG_BITS) as usize]);
        }
        let memory = Memory::new(4096)?;
        Ok(Stepper { function, memory, values, types, spans, next: 0, state: State::Running })
    }

    /// The value of a variable, as its last instruction saw it.
    pub fn value(&self, name: &str) -> Option<String> {
        let index = self.function.variables.iter().position(|variable| variable.name == name)?;
        Some(self.show(self.types[index], self.values[index]))
    }

    /// Executes the next instruction; `None` when the function has returned.
    ///
    /// # Errors
    /// [`StepError`] if the statement has undefined behaviour.
    pub fn step(&mut self) -> Result<Option<Step>, StepError> {
        let function = self.function;
        let number = self.next;
        if self.state == State::Ended {
            return Ok(None);
        }
        let stuck = |reason: String| StepError { statement: number, reason };
        let Some(statement) = function.statements.get(number) else {
            return Err(stuck("the function ends without a return".to_string()));
        };
        let instruction = statement.instruction;
        let mut step = Step { statement: number, written: Vec::new(), jumped: false, returned: None };
        self.next += 1;
        match instruction.family {
            Family::Return => {
                self.state = State::Ended;
                if let (Some(ty), Some(Operand::Variable(index))) = (instruction.ty, statement.operands.first()) {
                    step.returned = Some(self.show(Some(ty), self.values[*index]));
                }
                return Ok(Some(step));
            }
            Family::Register if instruction.name == "jtab" => {
                step.jumped = true;
                let index = self.bits(statement.operands.first());
                self.table(number, index).map_err(stuck)?;
                return Ok(Some(step));
            }
            Family::Register => return Err(stuck(format!("`{}` cannot be stepped over", instruction.name))),
            Family::Label if instruction.name != "j" => {
                return Err(stuck(format!("`{}` cannot be stepped over", instruction.name)));
            }
            Family::Label => {
                step.jumped = true;
                self.jump(statement);
                return Ok(Some(step));
            }
            Family::Binary
            | Family::Shift
            | Family::Unary
            | Family::Set
            | Family::Convert
            | Family::Load
            | Family::Store
            | Family::Branch
            | Family::Nullary
            | Family::Select
            | Family::Checked
            | Family::Exchange
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Hint => {}
        }
        self.check(statement).map_err(stuck)?;
        let taken = self.execute(statement).map_err(|error| stuck(error.to_string()))?;
        if taken {
            step.jumped = true;
            self.jump(statement);
        }
        for (operand, wanted) in statement.operands.iter().zip(instruction.operands) {
            if let (Operand::Variable(index), true) = (*operand, is_written(*wanted)) {
                self.types[index] = instruction.ty;
                let shown = self.show(instruction.ty, self.values[index]);
                step.written.push((function.variables[index].name.clone(), shown));
            }
        }
        Ok(Some(step))
    }

    /// Executes the jump number `index` of the jump table after the statement with this number.
    fn table(&mut self, number: usize, index: u64) -> Result<(), String> {
        let after = self.function.statements.get(number + 1..).unwrap_or_default();
        let mut jumps = after.iter().take_while(|statement| statement.instruction.name == "j");
        let Some(jump) = usize::try_from(index).ok().and_then(|index| jumps.nth(index)) else {
            return Err(format!("the table has no jump {index}"));
        };
        self.jump(jump);
        Ok(())
    }

    fn jump(&mut self, statement: &Statement) {
        for operand in &statement.operands {
            if let Operand::Label(label) = operand {
                self.next = self.function.labels[*label];
            }
        }
    }

    /// An operand as 64 bits.
    fn bits(&self, operand: Option<&Operand>) -> u64 {
        match operand {
            Some(Operand::Variable(index)) => self.values[*index],
            Some(Operand::Immediate(value)) => *value as u64,
            Some(Operand::Local(index)) => self.local(*index),
            Some(Operand::Label(_)) | None => 0,
        }
    }

    fn local(&self, index: usize) -> u64 {
        let first = self.spans.len() - self.function.locals.len();
        self.spans.get(first + index).map_or(0, Span::start)
    }

    /// Whether the instruction is defined on its operands.
    fn check(&self, statement: &Statement) -> Result<(), String> {
        let instruction = statement.instruction;
        let Some(ty) = instruction.ty else { return Ok(()) };
        let width = 8 * ty.bytes(Native::LONG_BITS);
        let truncated = |bits: u64| bits << (64 - width) >> (64 - width);
        let (s, t) = (truncated(self.bits(statement.operands.get(1))), truncated(self.bits(statement.operands.get(2))));
        match instruction.family {
            Family::Binary if ["div", "mod"].contains(&instruction.op) && !ty.is_float() => {
                let signed = matches!(ty, Type::I | Type::L);
                if t == 0 {
                    return Err("division by zero is undefined".to_string());
                }
                if signed && t == truncated(u64::MAX) && s == 1 << (width - 1) {
                    return Err("the quotient does not fit".to_string());
                }
            }
            Family::Shift if t >= u64::from(width) => {
                return Err(format!("a shift by {} of {width} bits is undefined", t as i64));
            }
            Family::Load | Family::Store | Family::IndexedLoad | Family::IndexedStore | Family::Exchange => {
                let base = self.bits(statement.operands.get(1));
                let operand = |place| self.bits(statement.operands.get(place));
                let at = match statement.operands.get(1) {
                    Some(Operand::Local(_)) => base,
                    _ if instruction.family == Family::Exchange => base,
                    _ if matches!(instruction.family, Family::IndexedLoad | Family::IndexedStore) => {
                        let index = operand(2).wrapping_mul(u64::from(ty.bytes(Native::LONG_BITS)));
                        base.wrapping_add(index).wrapping_add(operand(3))
                    }
                    _ => base.wrapping_add(operand(2)),
                };
                let bytes = u64::from(ty.bytes(Native::LONG_BITS));
                let inside = self.spans.iter().any(|span| {
                    at.checked_sub(span.start())
                        .and_then(|from| from.checked_add(bytes))
                        .is_some_and(|end| end <= span.bytes as u64)
                });
                if !inside {
                    return Err(format!("{} is no memory of the function's", self.show(Some(Type::P), at)));
                }
            }
            Family::Binary
            | Family::Shift
            | Family::Unary
            | Family::Set
            | Family::Convert
            | Family::Return
            | Family::Branch
            | Family::Label
            | Family::Register
            | Family::Nullary
            | Family::Select
            | Family::Checked
            | Family::Hint => {}
        }
        Ok(())
    }

    /// Generates the instruction as a function and calls it; true if it branched.
    fn execute(&mut self, statement: &Statement) -> Result<bool, Error> {
        let mut buffer = [0_u8; 4096];
        let mut workspace = Workspace::<Native>::new();
        let mut params = [Param::NONE];
        let region = (&mut buffer[..]).into();
        let mut asm = Asm::<Native>::begin(region, &mut workspace, "%p", &mut params, Kind::Leaf)?;
        let state = params[0].reg();
        let taken = asm.label();
        let mut held: Vec<(usize, Value<Reg, Float>)> = Vec::new();
        let mut values = Vec::new();
        let mut instruction = statement.instruction;
        for operand in &statement.operands {
            let value = match *operand {
                Operand::Variable(index) => match held.iter().find(|(own, _)| *own == index) {
                    Some((_, value)) => *value,
                    None => {
                        let value = self.load(&mut asm, state, index)?;
                        held.push((index, value));
                        value
                    }
                },
                Operand::Immediate(value) => Value::Immediate(value),
                Operand::Label(_) => Value::Label(taken),
                Operand::Local(index) => {
                    // The locals of the stepped function are in other memory: they are accessed by address.
                    let by_offset = instruction.name.replace("_local", "i");
                    instruction = Instruction::named(&by_offset).ok_or(Error::Arguments)?;
                    let place = self.values.len() - 1;
                    self.values[place] = self.local(index);
                    let base = asm.getreg(Class::Temporary)?;
                    asm.ldli(base, state, 8 * place as i32);
                    values.push(Value::Reg(base));
                    Value::Immediate(0)
                }
            };
            values.push(value);
        }
        if !instruction.emit(&mut asm, &values) {
            return Err(Error::Arguments);
        }
        for (index, value) in held {
            match value {
                Value::Reg(register) => asm.stli(register, state, 8 * index as i32),
                Value::Float(register) => asm.stdi(register, state, 8 * index as i32),
                Value::Immediate(_) | Value::Local(_) | Value::Label(_) => {}
            }
        }
        asm.setl(state, 0);
        asm.retl(state);
        asm.bind(taken);
        asm.setl(state, 1);
        asm.retl(state);
        let code = asm.end()?;
        let installed = self.memory.install(&buffer, &code)?;
        // SAFETY: 1. The code takes a pointer to the values and returns a long. 2. It touches the values, and memory
        // only as `check` allowed. 3. The memory lives as long as `self`.
        let function: extern "C" fn(*mut u64) -> i64 = unsafe { std::mem::transmute(installed.entry) };
        let branched = function(self.values.as_mut_ptr()) != 0;
        self.memory.free(installed.entry, installed.length);
        Ok(branched)
    }

    fn load(&self, asm: &mut Asm<'_, Native>, state: Reg, index: usize) -> Result<Value<Reg, Float>, Error> {
        let at = 8 * index as i32;
        Ok(match self.function.variables[index].bank {
            Bank::Int => {
                let register = asm.getreg(Class::Temporary)?;
                asm.ldli(register, state, at);
                Value::Reg(register)
            }
            Bank::Float => {
                let register = asm.getfloat(Class::Temporary)?;
                asm.lddi(register, state, at);
                Value::Float(register)
            }
        })
    }

    /// A value formatted by its type; pointers relative to the memory that they point into.
    fn show(&self, ty: Option<Type>, value: u64) -> String {
        match ty {
            Some(Type::C) => (value as i8).to_string(),
            Some(Type::Uc) => (value as u8).to_string(),
            Some(Type::S) => (value as i16).to_string(),
            Some(Type::Us) => (value as u16).to_string(),
            Some(Type::I) => (value as i32).to_string(),
            Some(Type::U) => (value as u32).to_string(),
            Some(Type::L) | None => (value as i64).to_string(),
            Some(Type::Ul) => value.to_string(),
            Some(Type::F) => format!("{:?}", f32::from_bits(value as u32)),
            Some(Type::D) => format!("{:?}", f64::from_bits(value)),
            Some(Type::P) => {
                let span =
                    self.spans.iter().find(|span| (span.start()..=span.start() + span.bytes as u64).contains(&value));
                match span.map(|span| (&span.name, value - span.start())) {
                    Some((name, 0)) => format!("&{name}"),
                    Some((name, offset)) => format!("&{name}+{offset}"),
                    None => format!("{value:#x}"),
                }
            }
        }
    }
}

fn is_written(operand: instruction::OperandKind) -> bool {
    match operand {
        instruction::OperandKind::Reg(access) | instruction::OperandKind::Float(access) => match access {
            Access::Written | Access::Updated => true,
            Access::Read => false,
        },
        instruction::OperandKind::Immediate(_)
        | instruction::OperandKind::Offset
        | instruction::OperandKind::Local
        | instruction::OperandKind::Label => false,
    }
}
