//! Functions in portable instructions in text form: read with diagnostics about all errors, and assembled for any
//! machine.
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
//! `procedure NAME LINK` begins a local procedure: a label that `jal NAME` calls, which leaves the return address in
//! the variable LINK, for `jr LINK`.
//!
//! Variables are virtual registers, so they never run out. Knows no encoding and does no I/O.

mod listing;
mod read;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub mod step;

use quaject_diagnostic::{Code, Diagnostic, Explanations, Severity};
use std::string::String;
use std::vec::Vec;

pub use listing::{Entry, Listing, MACHINES, Part, Row, TargetMachine, assemble};
pub use read::read;

use crate::instruction::Instruction;
use crate::kind::Kind;
use crate::signature::Type;

/// The explanation of each [`TextCode`].
pub const EXPLANATIONS: Explanations = Explanations::new(include_str!("explanations.md"));

/// The kinds of diagnostics about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCode {
    /// A line is outside of a function, or a part of it is malformed.
    Syntax,
    /// A name has no declaration.
    Unknown,
    /// A name is declared twice.
    Duplicate,
    /// An instruction does not take the operands.
    Operands,
}

impl Code for TextCode {
    fn name(self) -> &'static str {
        match self {
            TextCode::Syntax => "V0001",
            TextCode::Unknown => "V0002",
            TextCode::Duplicate => "V0003",
            TextCode::Operands => "V0004",
        }
    }

    fn severity(self) -> Severity {
        match self {
            TextCode::Syntax | TextCode::Unknown | TextCode::Duplicate | TextCode::Operands => Severity::Error,
        }
    }
}

/// A diagnostic about a text. Its locations are in the first file of a source map.
pub type TextDiagnostic = Diagnostic<TextCode>;

/// The bank of registers that holds a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// Registers for integers and pointers.
    Int,
    /// Registers for floats and doubles.
    Float,
}

/// A variable, parameters first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The bank of its register.
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
    /// The instruction.
    pub instruction: &'static Instruction,
    /// Its operands, of the kinds that the instruction accepts.
    pub operands: Vec<Operand>,
    /// Its line, from one.
    pub line: usize,
    /// Its text, without surrounding blanks and comment.
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
    /// Its labels: the index of the statement after each.
    pub labels: Vec<usize>,
    /// Which labels begin local procedures, and the variable that gets the return address.
    pub procedures: Vec<(usize, usize)>,
    /// Its instructions.
    pub statements: Vec<Statement>,
    /// The line of its first word.
    pub line: usize,
}
