//! Ids exist, each value is defined once, and every use is dominated by its definition. Knows nothing of types.

use super::Verifier;
use crate::dominators::Dominators;
use crate::ir::{
    Base, Bind, BlockId, Guard, Op, Operand, Operation, Passed, Pattern, Payload, Place, Step, Terminator, Value,
};
use crate::visit::{edges, written_place};

/// What an id refers to.
pub(crate) enum Use<'a> {
    Value(Value),
    Place(&'a Place),
    Block(BlockId),
    Slot(u32),
}

/// Calls `visit` for what an operand refers to.
pub(crate) fn operand<'a>(of: &'a Operand, visit: &mut dyn FnMut(Use<'a>)) {
    match of {
        Operand::Value(value) => visit(Use::Value(*value)),
        Operand::Place(place) => visit(Use::Place(place)),
    }
}

/// Calls `visit` for everything an instruction refers to.
pub(crate) fn op_uses<'a>(op: &'a Op, visit: &mut dyn FnMut(Use<'a>)) {
    written_place(op, &mut |place| visit(Use::Place(place)));
    match op {
        Op::Constant(_)
        | Op::SetBytes(..)
        | Op::SetTag(..)
        | Op::OwnId
        | Op::Allocate(_)
        | Op::FreeObjects(_)
        | Op::Mark(_) => {}
        Op::Test(_, a)
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
        Op::Fill(_, with) => operand(with, visit),
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
            operand(a, visit);
            operand(b, visit);
        }
        Op::CallFunction { arguments, .. } | Op::CallExtern { arguments, .. } => {
            arguments.iter().for_each(|argument| operand(argument, visit));
        }
        Op::Retain(a) | Op::Release(a) => operand(a, visit),
    }
}

/// Calls `visit` for what the values of a message refer to.
pub(crate) fn passed<'a>(values: &'a [Passed], visit: &mut dyn FnMut(Use<'a>)) {
    values.iter().for_each(|value| operand(&value.operand, visit));
}

fn pattern<'a>(of: &'a Pattern, visit: &mut dyn FnMut(Use<'a>)) {
    match of {
        Pattern::Equal(value) => operand(value, visit),
        Pattern::Bind(Bind::Slot(slot)) => visit(Use::Slot(slot.0)),
        Pattern::Tag(_, Some(payload)) => pattern(payload, visit),
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().for_each(|part| pattern(part, visit)),
        Pattern::Any
        | Pattern::Bind(Bind::Parameter(_))
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Tag(_, None) => {}
    }
}

/// Calls `visit` for everything a terminator refers to.
pub(crate) fn terminator_uses<'a>(terminator: &'a Terminator, visit: &mut dyn FnMut(Use<'a>)) {
    for edge in edges(terminator) {
        visit(Use::Block(edge.to));
        edge.arguments.iter().for_each(|value| visit(Use::Value(*value)));
    }
    match terminator {
        Terminator::Branch { condition: value, .. } | Terminator::Switch { value, .. } | Terminator::Exit(value) => {
            visit(Use::Value(*value));
        }
        Terminator::Return(value) => operand(value, visit),
        Terminator::Result(values) => passed(values, visit),
        Terminator::Wait(wait) => {
            for branch in &wait.branches {
                match branch.guard {
                    Guard::Open => {}
                    Guard::Value(value) => visit(Use::Value(value)),
                    Guard::Region(block) => visit(Use::Block(block)),
                }
                match &branch.operation {
                    Operation::In { patterns, condition, .. } => {
                        patterns.iter().for_each(|of| pattern(of, visit));
                        condition.iter().for_each(|block| visit(Use::Block(*block)));
                    }
                    Operation::Out { payload: Payload::Ready(values), .. } => passed(values, visit),
                    Operation::Out { payload: Payload::Region(block), .. } => visit(Use::Block(*block)),
                    Operation::After { amount, .. } => visit(Use::Value(*amount)),
                }
                visit(Use::Block(branch.then));
            }
            wait.otherwise.iter().for_each(|block| visit(Use::Block(*block)));
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
fn place_values(place: &Place) -> impl Iterator<Item = Value> + '_ {
    let base = match place.base {
        Base::Object(value) => Some(value),
        Base::Slot(_) => None,
    };
    let indices = place.path.iter().filter_map(|step| match step {
        Step::Element(value) | Step::Inside(value) => Some(*value),
        Step::Field(_) | Step::Payload(_) => None,
    });
    base.into_iter().chain(indices)
}

impl Verifier<'_> {
    /// Every id exists, and each value has one definition if it is used.
    pub(super) fn ids(&mut self) {
        let body = self.body;
        let mut definitions = vec![0u32; body.values.len()];
        for (index, block) in body.blocks.iter().enumerate() {
            self.block = Some(BlockId(index as u32));
            let results = block.instructions.iter().filter_map(|instruction| instruction.result);
            for value in block.parameters.iter().copied().chain(results) {
                match definitions.get_mut(value.0 as usize) {
                    Some(count) => *count += 1,
                    None => self.error(format!("v{} does not exist", value.0)),
                }
            }
        }
        self.block = None;
        for (index, count) in definitions.iter().enumerate().filter(|(_, count)| **count > 1) {
            self.error(format!("v{index} is defined {count} times"));
        }
        for (index, block) in body.blocks.iter().enumerate() {
            self.block = Some(BlockId(index as u32));
            for instruction in &block.instructions {
                self.location = instruction.location;
                op_uses(&instruction.op, &mut |used| self.exists(&used, &definitions));
            }
            self.location = block.location;
            terminator_uses(&block.terminator, &mut |used| self.exists(&used, &definitions));
        }
        self.block = None;
        self.location = Default::default();
    }

    fn exists(&mut self, used: &Use<'_>, definitions: &[u32]) {
        let mut value_exists = |value: Value| {
            if definitions.get(value.0 as usize).copied().unwrap_or(0) == 0 {
                self.error(format!("v{} is used and never defined", value.0));
            }
        };
        let slot = match used {
            Use::Value(value) => return value_exists(*value),
            Use::Place(place) => {
                place_values(place).for_each(&mut value_exists);
                match place.base {
                    Base::Slot(slot) => slot.0,
                    Base::Object(_) => return,
                }
            }
            Use::Block(block) => {
                if block.0 as usize >= self.body.blocks.len() {
                    self.error(format!("block{} does not exist", block.0));
                }
                return;
            }
            Use::Slot(slot) => *slot,
        };
        if slot as usize >= self.body.slots.len() {
            self.error(format!("s{slot} does not exist"));
        }
    }

    /// Every use in a reachable block is dominated by its definition.
    pub(super) fn flow(&mut self) {
        let body = self.body;
        let dominators = Dominators::new(body);
        // Block and position of each definition; parameters stand before instruction 0.
        let mut defined = vec![(0usize, 0usize); body.values.len()];
        for (index, block) in body.blocks.iter().enumerate() {
            block.parameters.iter().for_each(|value| defined[value.0 as usize] = (index, 0));
            for (position, instruction) in block.instructions.iter().enumerate() {
                if let Some(value) = instruction.result {
                    defined[value.0 as usize] = (index, position + 1);
                }
            }
        }
        for (index, block) in body.blocks.iter().enumerate().filter(|(index, _)| dominators.is_reachable(*index)) {
            self.block = Some(BlockId(index as u32));
            let check = |verifier: &mut Self, used: Use<'_>, position: usize| {
                let mut value_reaches = |value: Value| {
                    let (definition, at) = defined[value.0 as usize];
                    let reaches =
                        if definition == index { at <= position } else { dominators.dominates(definition, index) };
                    if !reaches {
                        verifier.error(format!("v{} is used where its definition does not reach", value.0));
                    }
                };
                match used {
                    Use::Value(value) => value_reaches(value),
                    Use::Place(place) => place_values(place).for_each(value_reaches),
                    Use::Block(_) | Use::Slot(_) => {}
                }
            };
            for (position, instruction) in block.instructions.iter().enumerate() {
                self.location = instruction.location;
                op_uses(&instruction.op, &mut |used| check(self, used, position));
            }
            self.location = block.location;
            let end = block.instructions.len();
            terminator_uses(&block.terminator, &mut |used| check(self, used, end));
        }
        self.block = None;
    }
}
