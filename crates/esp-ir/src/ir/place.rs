//! Places in memory, operands, edges and the values of messages.

use crate::ir::ids::{BlockId, SlotId, Value};
use quaject_esp_syntax::hir::ConstantId;
use quaject_esp_syntax::types::TypeId;

/// A place in memory: a slot, the content of a boxed object or a constant, and a path of projections into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The base.
    pub base: Base,
    /// The projections from it.
    pub path: Vec<Projection>,
}

/// The base of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A slot.
    Slot(SlotId),
    /// The content of a boxed object.
    Object(Value),
    /// A constant of the program, and its type. It is never written.
    Constant(ConstantId, TypeId),
}

/// One projection of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// A record's field.
    Field(u32),
    /// An array's element, or a byte of `bytes` (below its present length); outside: fault `bounds`. The index has
    /// any integer type.
    Element(Value),
    /// Likewise, with an index that a pass has proved to be in bounds: back ends need no check.
    Inside(Value),
    /// A union's payload; the tag is known to be this one.
    Payload(u32),
}

/// A value of any type: in SSA form, or in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A scalar or reference.
    Value(Value),
    /// A flat aggregate, or anything else in memory.
    Place(Place),
}

/// An edge of the control-flow graph, with the arguments for the target's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The target.
    pub to: BlockId,
    /// One value per parameter of it.
    pub arguments: Vec<Value>,
}

/// A value of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The value.
    pub operand: Operand,
    /// Whether the sender's reference counts are transferred.
    pub transfer: Transfer,
}

/// What happens to the sender's reference counts when a message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// The sender keeps them; each bind of the receiver adds one.
    Keep,
    /// It was the sender's last use: each bind of the receiver adds one, then the sender's are released, in one step.
    Move,
}

/// The faults that end a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Fault {
    Assert,
    Bounds,
    Div,
    Overflow,
    Pool,
    Range,
    Memory,
    Alt,
    Deadlock,
    /// An extern function without an implementation was called.
    Extern,
}
