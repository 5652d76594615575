//! Bodies: control-flow graphs of blocks, instructions and terminators.

use crate::ir::fast_path::{Enter, Leave};
use crate::ir::ids::{Location, Value};
use crate::ir::op::Op;
use crate::ir::place::{Edge, Fault, Operand, Passed};
use crate::ir::wait::Wait;
use quaject_esp_syntax::types::TypeId;
use smol_str::SmolStr;

/// A control-flow graph.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Every value, by id.
    pub values: Vec<ValueData>,
    /// Every slot, by id.
    pub slots: Vec<Slot>,
    /// Every block, by id; block 0 is the entry.
    pub blocks: Vec<Block>,
}

/// Type and name of a value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: TypeId,
    /// The source variable it is a version of.
    pub name: Option<SmolStr>,
}

/// A piece of process-local memory.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its type, never scalar and never boxed.
    pub ty: TypeId,
    /// The source variable it holds.
    pub name: Option<SmolStr>,
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Values that arrive along the edges.
    pub parameters: Vec<Value>,
    /// The instructions, in order.
    pub instructions: Vec<Instruction>,
    /// How it ends.
    pub terminator: Terminator,
    /// The location of the terminator.
    pub location: Location,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The value it defines, if any.
    pub result: Option<Value>,
    /// The operation.
    pub op: Op,
    /// Its location, which a fault reports.
    pub location: Location,
}

/// How a block ends.
#[derive(Clone, Debug)]
pub enum Terminator {
    /// An unconditional jump.
    Jump(Edge),
    /// A conditional branch on a `bool`.
    Branch {
        /// The condition.
        condition: Value,
        /// If true.
        then: Edge,
        /// If false.
        otherwise: Edge,
    },
    /// A switch on an integer.
    Switch {
        /// The integer.
        value: Value,
        /// Distinct constants and their edges.
        cases: Vec<(i128, Edge)>,
        /// For all other values.
        default: Edge,
    },
    /// `in`, `out`, `alt`, `pri alt`.
    Wait(Wait),
    /// Ends the quantum, then follows the edge.
    Yield(Edge),
    /// Ends a pure function.
    Return(Operand),
    /// Ends a region: a guard's or condition's `bool`, or the values of a message.
    Result(Vec<Passed>),
    /// Ends the program with this status, any integer, modulo 256.
    Exit(Value),
    /// Ends the instance.
    End,
    /// Ends the program with a fault.
    Fault(Fault),
    /// Enters a fast path if every other member is at its start.
    Enter(Enter),
    /// Exits a fast path: resumes the members with new values.
    Leave(Leave),
}

impl Terminator {
    /// The wait, if it is one.
    pub fn as_wait(&self) -> Option<&Wait> {
        match self {
            Terminator::Wait(wait) => Some(wait),
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => None,
        }
    }
}
