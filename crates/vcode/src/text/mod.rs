//! Functions in portable instructions, written as text: read with all mistakes at once, assembled for any machine.
//!
//! ```text
//! function sum %p%l leaf      # parameters are a0, a1 ...
//!   reg total, value          # variables for integers and pointers; `float` for floats and doubles
//!   local kept l              # a variable on the stack, of a type
//!   setl total, 0
//! again:
//!   ldli value, a0, 0
//!   addl total, total, value
//!   addpi a0, a0, 8
//!   subli a1, a1, 1
//!   bgtli a1, 0, again
//!   retl total
//! ```
//!
//! Variables are virtual registers, so they never run out. Knows no encoding and does no I/O.

mod listing;
mod read;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub mod step;

use std::string::String;
use std::vec::Vec;

pub use listing::{Entry, Listing, MACHINES, Part, Row, TargetMachine, assemble};
pub use read::read;

use crate::frame::Kind;
use crate::instruction::Instruction;
use crate::signature::Type;

/// Something wrong in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Its line, from one.
    pub line: usize,
    /// Its first character, from one.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

/// Which registers a variable is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// Those for integers and pointers.
    Int,
    /// Those for floats and doubles.
    Float,
}

/// A variable, parameters first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it is kept.
    pub bank: Bank,
}

/// A variable on the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// An operand of an instruction: variables, stack variables and labels by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A variable.
    Variable(usize),
    /// A constant, an offset, or the bits of a floating constant.
    Immediate(i64),
    /// A variable on the stack.
    Local(usize),
    /// A label.
    Label(usize),
}

/// An instruction with its operands.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Which instruction.
    pub instruction: &'static Instruction,
    /// Its operands, which it accepts.
    pub operands: Vec<Operand>,
    /// Where it is, from one.
    pub line: usize,
    /// Its text, without blanks around it and comment.
    pub text: String,
}

/// A function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The types of its parameters, which are the first variables.
    pub parameters: Vec<Type>,
    /// Whether it may call.
    pub kind: Kind,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// Its variables on the stack.
    pub locals: Vec<StackVariable>,
    /// Its labels: the statement that each stands before.
    pub labels: Vec<usize>,
    /// Its instructions.
    pub statements: Vec<Statement>,
    /// The line of its first word.
    pub line: usize,
}
