//! Reads and writes of instructions and terminators: values, and places in slots and objects. Knows nothing of
//! liveness.

use crate::ir::{
    Base, BlockId, Body, Guard, Op, Operand, Operation, Pattern, Payload, Place, Projection, SlotId, Terminator, Value,
};
use std::collections::BTreeSet;

/// Adds the values and slots that a block's instructions and terminator read or write.
pub fn touched(body: &Body, block: BlockId, values: &mut BTreeSet<Value>, slots: &mut BTreeSet<SlotId>) {
    let block = &body.blocks[block.0 as usize];
    for instruction in &block.instructions {
        let mut access = Access::default();
        access.op(&instruction.op);
        access.touched(values, slots);
    }
    let mut access = Access::default();
    access.terminator(&block.terminator);
    access.touched(values, slots);
}

/// The reads and writes of some instructions and terminators.
#[derive(Default)]
pub struct Access<'a> {
    /// The values that are read.
    pub values: Vec<Value>,
    /// The places that are read, at least in part.
    pub reads: Vec<&'a Place>,
    /// The places that are written, at least in part.
    pub writes: Vec<&'a Place>,
}

impl<'a> Access<'a> {
    fn touched(&self, values: &mut BTreeSet<Value>, slots: &mut BTreeSet<SlotId>) {
        values.extend(&self.values);
        for place in self.reads.iter().chain(&self.writes) {
            match place.base {
                Base::Slot(slot) => {
                    slots.insert(slot);
                }
                Base::Object(value) => {
                    values.insert(value);
                }
                Base::Constant(..) => {}
            }
        }
    }

    fn path(&mut self, place: &'a Place) {
        if let Base::Object(value) = place.base {
            self.values.push(value);
        }
        for step in &place.path {
            match step {
                Projection::Element(value) | Projection::Inside(value) => self.values.push(*value),
                Projection::Field(_) | Projection::Payload(_) => {}
            }
        }
    }

    /// Adds a place that is read.
    pub fn read(&mut self, place: &'a Place) {
        self.path(place);
        self.reads.push(place);
    }

    fn write(&mut self, place: &'a Place) {
        self.path(place);
        // An element of `bytes` is checked against their present length, which is thereby read.
        if place.path.iter().any(|step| matches!(step, Projection::Element(_))) {
            self.reads.push(place);
        }
        self.writes.push(place);
    }

    fn operand(&mut self, operand: &'a Operand) {
        match operand {
            Operand::Value(value) => self.values.push(*value),
            Operand::Place(place) => self.read(place),
        }
    }

    /// Adds an instruction.
    pub fn op(&mut self, op: &'a Op) {
        match op {
            Op::Constant(_) | Op::OwnId | Op::Allocate(_) | Op::FreeObjects(_) | Op::Mark(_) | Op::Predicate(..) => {}
            Op::Unary(_, a)
            | Op::Convert(a)
            | Op::InstanceOf(_, a)
            | Op::ReplicaNumber(a)
            | Op::IsUnique(a)
            | Op::Deadline { amount: a, unit_ns: _ } => {
                self.values.push(*a);
            }
            Op::Binary(_, a, b) => self.values.extend([*a, *b]),
            Op::Load(place) | Op::Tag(place) | Op::Length(place) => self.read(place),
            Op::Store(place, value) => {
                self.values.push(*value);
                self.write(place);
            }
            Op::Copy { to, from } => {
                self.read(from);
                self.write(to);
            }
            Op::SetBytes(place, _) | Op::SetTag(place, _) => self.write(place),
            Op::Fill(place, operand) => {
                self.operand(operand);
                self.write(place);
            }
            Op::SetLength(place, value) => {
                self.values.push(*value);
                self.read(place);
                self.write(place);
            }
            Op::CopySlice { to, from, start, end } => {
                self.values.extend(start.iter().chain(end));
                self.read(from);
                self.write(to);
            }
            Op::StoreSlice { to, start, end, from } => {
                self.values.extend(start.iter().chain(end));
                self.read(from);
                self.read(to);
                self.write(to);
            }
            Op::Append { to, from } => {
                self.read(from);
                self.read(to);
                self.write(to);
            }
            Op::LoadNumber { from, offset, .. } | Op::LoadBits { from, offset, .. } => {
                self.values.push(*offset);
                self.read(from);
            }
            Op::StoreNumber { to, offset, value, .. } | Op::StoreBits { to, offset, value, .. } => {
                self.values.extend([*offset, *value]);
                self.read(to);
                self.write(to);
            }
            Op::Equal(a, b) => {
                self.operand(a);
                self.operand(b);
            }
            Op::CallFunction { arguments, to, .. } => {
                arguments.iter().for_each(|argument| self.operand(argument));
                to.iter().for_each(|place| self.write(place));
            }
            Op::CallExtern { arguments, to, .. } => {
                // A mutable argument may be written in part, so that it is read, too, as far as liveness goes.
                arguments.iter().for_each(|argument| self.operand(argument));
                to.iter().for_each(|place| self.write(place));
            }
            Op::Retain(operand) | Op::Release(operand) => self.operand(operand),
        }
    }

    /// Adds the operands that a pattern compares with.
    pub fn pattern(&mut self, pattern: &'a Pattern) {
        match pattern {
            Pattern::Any | Pattern::Bind(_) | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId => {}
            Pattern::Equal(operand) => self.operand(operand),
            Pattern::Tag(_, inner) => inner.iter().for_each(|inner| self.pattern(inner)),
            Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().for_each(|part| self.pattern(part)),
        }
    }

    /// Adds a terminator: what it reads itself and the arguments of its edges, but not what regions of its wait do.
    pub fn terminator(&mut self, terminator: &'a Terminator) {
        match terminator {
            Terminator::Jump(edge) | Terminator::Yield(edge) => self.values.extend(&edge.arguments),
            Terminator::Branch { condition, then, otherwise } => {
                self.values.push(*condition);
                self.values.extend(then.arguments.iter().chain(&otherwise.arguments));
            }
            Terminator::Switch { value, cases, default } => {
                self.values.push(*value);
                cases.iter().for_each(|(_, edge)| self.values.extend(&edge.arguments));
                self.values.extend(&default.arguments);
            }
            Terminator::Wait(wait) => {
                wait.observed.iter().for_each(|(_, value)| self.values.push(*value));
                for branch in &wait.branches {
                    if let Guard::Value(value) = branch.guard {
                        self.values.push(value);
                    }
                    match &branch.operation {
                        Operation::In { patterns, .. } => patterns.iter().for_each(|pattern| self.pattern(pattern)),
                        Operation::Out { payload: Payload::Ready(parts), .. } => {
                            parts.iter().for_each(|part| self.operand(&part.operand));
                        }
                        Operation::Out { payload: Payload::Region(_), .. } => {}
                        Operation::After { amount, .. } => self.values.push(*amount),
                    }
                }
            }
            Terminator::Return(operand) => self.operand(operand),
            Terminator::Result(parts) => parts.iter().for_each(|part| self.operand(&part.operand)),
            Terminator::Exit(value) => self.values.push(*value),
            Terminator::Enter(enter) => {
                self.values.extend(enter.later.arguments.iter().chain(&enter.otherwise.arguments));
            }
            Terminator::Leave(leave) => {
                let members = leave.members.iter().map(|(_, resume)| resume);
                let resumed = std::iter::once(&leave.trigger).chain(members);
                self.values.extend(resumed.flat_map(|resume| &resume.values).map(|(_, becomes)| *becomes));
            }
            Terminator::End | Terminator::Fault(_) => {}
        }
    }
}

/// What an instruction does to the content of the place that it writes: the kill rule of every liveness analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteEffect {
    /// It writes no place.
    None,
    /// It replaces the content and does not read it: what was there is dead before.
    Replaces,
    /// An extern function replaces the content. The function is foreign code, which may have read it before.
    ReplacedByExtern,
    /// It changes a part of the content, or depends on it.
    Updates,
}

impl WriteEffect {
    /// The effect of an instruction.
    pub fn of(op: &Op) -> WriteEffect {
        match op {
            Op::Store(..)
            | Op::Copy { .. }
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::CopySlice { .. }
            | Op::CallFunction { .. } => WriteEffect::Replaces,
            Op::CallExtern { .. } => WriteEffect::ReplacedByExtern,
            Op::SetLength(..)
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::StoreNumber { .. }
            | Op::StoreBits { .. } => WriteEffect::Updates,
            Op::Constant(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Convert(_)
            | Op::Load(_)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::LoadNumber { .. }
            | Op::LoadBits { .. }
            | Op::Equal(..)
            | Op::OwnId
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::Allocate(_)
            | Op::IsUnique(_)
            | Op::FreeObjects(_)
            | Op::Deadline { .. }
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Mark(_)
            | Op::Predicate(..) => WriteEffect::None,
        }
    }
}
