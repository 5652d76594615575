//! Operand enumeration: every value, place, block and slot that an instruction or a terminator names, read-only.

use crate::cfg::edges;
use crate::ir::{
    Base, Bind, BlockId, Guard, Op, Operand, Operation, Passed, Pattern, Payload, Place, Projection, Terminator, Value,
};
use crate::visit::written_place;

/// One operand of an instruction or terminator.
pub enum Use<'a> {
    /// A value that is read.
    Value(Value),
    /// A place that is read or written.
    Place(&'a Place),
    /// A block, as a successor or a region.
    Block(BlockId),
    /// A slot that a pattern binds, by its number.
    Slot(u32),
}

/// Calls `visit` for what an operand refers to.
pub fn operand_uses<'a>(of: &'a Operand, visit: &mut dyn FnMut(Use<'a>)) {
    match of {
        Operand::Value(value) => visit(Use::Value(*value)),
        Operand::Place(place) => visit(Use::Place(place)),
    }
}

/// Calls `visit` for everything an instruction refers to.
pub fn op_uses<'a>(op: &'a Op, visit: &mut dyn FnMut(Use<'a>)) {
    written_place(op, &mut |place| visit(Use::Place(place)));
    match op {
        Op::Constant(_)
        | Op::SetBytes(..)
        | Op::SetTag(..)
        | Op::OwnId
        | Op::Allocate(_)
        | Op::FreeObjects(_)
        | Op::Mark(_) => {}
        Op::Predicate(_, a)
        | Op::Unary(_, a)
        | Op::Convert(a)
        | Op::InstanceOf(_, a)
        | Op::ReplicaNumber(a)
        | Op::IsUnique(a)
        | Op::Deadline { amount: a, unit_ns: _ } => {
            visit(Use::Value(*a));
        }
        Op::Binary(_, a, b) => {
            visit(Use::Value(*a));
            visit(Use::Value(*b));
        }
        Op::Load(from) | Op::Tag(from) | Op::Length(from) => visit(Use::Place(from)),
        Op::Store(_, a) | Op::SetLength(_, a) => visit(Use::Value(*a)),
        Op::Copy { from, .. } | Op::Append { from, .. } => visit(Use::Place(from)),
        Op::Fill(_, with) => operand_uses(with, visit),
        Op::CopySlice { from, start, end, .. } | Op::StoreSlice { from, start, end, .. } => {
            visit(Use::Place(from));
            start.iter().chain(end).for_each(|value| visit(Use::Value(*value)));
        }
        Op::LoadNumber { from, offset, .. } | Op::LoadBits { from, offset, .. } => {
            visit(Use::Place(from));
            visit(Use::Value(*offset));
        }
        Op::StoreNumber { offset, value, .. } | Op::StoreBits { offset, value, .. } => {
            visit(Use::Value(*offset));
            visit(Use::Value(*value));
        }
        Op::Equal(a, b) => {
            operand_uses(a, visit);
            operand_uses(b, visit);
        }
        Op::CallFunction { arguments, .. } | Op::CallExtern { arguments, .. } => {
            arguments.iter().for_each(|argument| operand_uses(argument, visit));
        }
        Op::Retain(a) | Op::Release(a) => operand_uses(a, visit),
    }
}

/// Calls `visit` for what the values of a message refer to.
pub fn passed_uses<'a>(values: &'a [Passed], visit: &mut dyn FnMut(Use<'a>)) {
    values.iter().for_each(|value| operand_uses(&value.operand, visit));
}

fn pattern_uses<'a>(of: &'a Pattern, visit: &mut dyn FnMut(Use<'a>)) {
    match of {
        Pattern::Equal(value) => operand_uses(value, visit),
        Pattern::Bind(Bind::Slot(slot)) => visit(Use::Slot(slot.0)),
        Pattern::Tag(_, Some(payload)) => pattern_uses(payload, visit),
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().for_each(|part| pattern_uses(part, visit)),
        Pattern::Any
        | Pattern::Bind(Bind::Parameter(_))
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Tag(_, None) => {}
    }
}

/// Calls `visit` for everything a terminator refers to.
pub fn terminator_uses<'a>(terminator: &'a Terminator, visit: &mut dyn FnMut(Use<'a>)) {
    for edge in edges(terminator) {
        visit(Use::Block(edge.to));
        edge.arguments.iter().for_each(|value| visit(Use::Value(*value)));
    }
    match terminator {
        Terminator::Branch { condition: value, .. } | Terminator::Switch { value, .. } | Terminator::Exit(value) => {
            visit(Use::Value(*value));
        }
        Terminator::Return(value) => operand_uses(value, visit),
        Terminator::Result(values) => passed_uses(values, visit),
        Terminator::Wait(wait) => {
            for branch in &wait.branches {
                match branch.guard {
                    Guard::Open => {}
                    Guard::Value(value) => visit(Use::Value(value)),
                    Guard::Region(block) => visit(Use::Block(block)),
                }
                match &branch.operation {
                    Operation::In { patterns, condition, .. } => {
                        patterns.iter().for_each(|of| pattern_uses(of, visit));
                        condition.iter().for_each(|block| visit(Use::Block(*block)));
                    }
                    Operation::Out { payload: Payload::Ready(values), .. } => passed_uses(values, visit),
                    Operation::Out { payload: Payload::Region(block), .. } => visit(Use::Block(*block)),
                    Operation::After { amount, .. } => visit(Use::Value(*amount)),
                }
                visit(Use::Block(branch.then));
            }
            wait.otherwise.iter().for_each(|block| visit(Use::Block(*block)));
            wait.observed.iter().for_each(|(_, value)| visit(Use::Value(*value)));
        }
        Terminator::Enter(enter) => visit(Use::Block(enter.then)),
        Terminator::Leave(leave) => {
            let resumed = std::iter::once(&leave.trigger).chain(leave.members.iter().map(|(_, resume)| resume));
            resumed.flat_map(|resume| &resume.values).for_each(|(_, value)| visit(Use::Value(*value)));
        }
        Terminator::Jump(_) | Terminator::Yield(_) | Terminator::End | Terminator::Fault(_) => {}
    }
}

/// The values a place is found with.
pub(crate) fn values_of_place(place: &Place) -> impl Iterator<Item = Value> + '_ {
    let base = match place.base {
        Base::Object(value) => Some(value),
        Base::Slot(_) | Base::Constant(..) => None,
    };
    let indices = place.path.iter().filter_map(|step| match step {
        Projection::Element(value) | Projection::Inside(value) => Some(*value),
        Projection::Field(_) | Projection::Payload(_) => None,
    });
    base.into_iter().chain(indices)
}
