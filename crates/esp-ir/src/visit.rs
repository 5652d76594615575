//! Walks over the values of instructions and terminators, and the types of places. Knows no source program.

mod uses;

use crate::ir::{
    Base, Bind, Block, BlockId, Body, Branch, Edge, Guard, Leave, Op, Operand, Operation, Pattern, Payload, Place,
    Slot, SlotId, Step, Terminator, Type, TypeId, TypeTable, Value, ValueData, Wait,
};
use std::collections::BTreeSet;
pub(crate) use uses::values_of_place;
pub use uses::{Use, op_uses, operand_uses, passed_uses, terminator_uses};

/// Calls `visit` on every value a place reads: its base and its indices.
pub fn place_values(place: &mut Place, visit: &mut dyn FnMut(&mut Value)) {
    match &mut place.base {
        Base::Slot(_) => {}
        Base::Object(value) => visit(value),
    }
    for step in &mut place.path {
        match step {
            Step::Element(value) | Step::Inside(value) => visit(value),
            Step::Field(_) | Step::Payload(_) => {}
        }
    }
}

/// Calls `visit` on every value an operand reads.
pub fn operand_values(operand: &mut Operand, visit: &mut dyn FnMut(&mut Value)) {
    match operand {
        Operand::Value(value) => visit(value),
        Operand::Place(place) => place_values(place, visit),
    }
}

/// Calls `visit` on every value an instruction reads.
pub fn op_values(op: &mut Op, visit: &mut dyn FnMut(&mut Value)) {
    match op {
        Op::Constant(_) | Op::OwnId | Op::Allocate(_) | Op::FreeObjects(_) | Op::Mark(_) => {}
        Op::Unary(_, value)
        | Op::Test(_, value)
        | Op::Convert(value)
        | Op::InstanceOf(_, value)
        | Op::ReplicaNumber(value)
        | Op::IsUnique(value)
        | Op::Deadline { amount: value, unit_ns: _ } => visit(value),
        Op::Binary(_, left, right) => {
            visit(left);
            visit(right);
        }
        Op::Load(place) | Op::SetBytes(place, _) | Op::SetTag(place, _) | Op::Tag(place) | Op::Length(place) => {
            place_values(place, visit);
        }
        Op::Store(place, value) | Op::SetLength(place, value) => {
            place_values(place, visit);
            visit(value);
        }
        Op::Copy { to, from } | Op::Append { to, from } => {
            place_values(to, visit);
            place_values(from, visit);
        }
        Op::Fill(place, operand) => {
            place_values(place, visit);
            operand_values(operand, visit);
        }
        Op::CopySlice { to, from, start, end } | Op::StoreSlice { to, from, start, end } => {
            place_values(to, visit);
            place_values(from, visit);
            start.iter_mut().for_each(&mut *visit);
            end.iter_mut().for_each(visit);
        }
        Op::LoadNumber { from, offset, bits: _, order: _ } => {
            place_values(from, visit);
            visit(offset);
        }
        Op::LoadBits { from, offset, field: _ } => {
            place_values(from, visit);
            visit(offset);
        }
        Op::StoreNumber { to, offset, bits: _, order: _, value } | Op::StoreBits { to, offset, field: _, value } => {
            place_values(to, visit);
            visit(offset);
            visit(value);
        }
        Op::Equal(left, right) => {
            operand_values(left, visit);
            operand_values(right, visit);
        }
        Op::CallFunction { function: _, arguments, to } | Op::CallExtern { function: _, arguments, to } => {
            arguments.iter_mut().for_each(|argument| operand_values(argument, visit));
            to.iter_mut().for_each(|place| place_values(place, visit));
        }
        Op::Retain(operand) | Op::Release(operand) => operand_values(operand, visit),
    }
}

/// Calls `visit` on every place an instruction reads or writes.
pub fn op_places(op: &mut Op, visit: &mut dyn FnMut(&mut Place)) {
    let operand = |operand: &mut Operand, visit: &mut dyn FnMut(&mut Place)| match operand {
        Operand::Value(_) => {}
        Operand::Place(place) => visit(place),
    };
    match op {
        Op::Constant(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Convert(_)
        | Op::OwnId
        | Op::InstanceOf(..)
        | Op::ReplicaNumber(_)
        | Op::Allocate(_)
        | Op::IsUnique(_)
        | Op::FreeObjects(_)
        | Op::Deadline { .. }
        | Op::Mark(_)
        | Op::Test(..) => {}
        Op::Load(place)
        | Op::Store(place, _)
        | Op::SetBytes(place, _)
        | Op::SetTag(place, _)
        | Op::Tag(place)
        | Op::Length(place)
        | Op::SetLength(place, _)
        | Op::LoadNumber { from: place, .. }
        | Op::LoadBits { from: place, .. }
        | Op::StoreNumber { to: place, .. }
        | Op::StoreBits { to: place, .. } => visit(place),
        Op::Copy { to, from }
        | Op::Append { to, from }
        | Op::CopySlice { to, from, start: _, end: _ }
        | Op::StoreSlice { to, from, start: _, end: _ } => {
            visit(to);
            visit(from);
        }
        Op::Fill(place, value) => {
            visit(place);
            operand(value, visit);
        }
        Op::Equal(left, right) => {
            operand(left, visit);
            operand(right, visit);
        }
        Op::CallFunction { function: _, arguments, to } | Op::CallExtern { function: _, arguments, to } => {
            arguments.iter_mut().for_each(|argument| operand(argument, visit));
            to.iter_mut().for_each(visit);
        }
        Op::Retain(value) | Op::Release(value) => operand(value, visit),
    }
}

/// The place an instruction writes. Extern functions may also write their mutable arguments.
pub fn written(op: &Op) -> Option<&Place> {
    let mut written = None;
    written_place(op, &mut |place| written = Some(place));
    written
}

/// Calls `visit` on every value a terminator reads, edge arguments included.
pub fn terminator_values(terminator: &mut Terminator, visit: &mut dyn FnMut(&mut Value)) {
    match terminator {
        Terminator::Jump(_) | Terminator::Yield(_) | Terminator::End | Terminator::Fault(_) => {}
        Terminator::Branch { condition, then: _, otherwise: _ } => visit(condition),
        Terminator::Switch { value, cases: _, default: _ } => visit(value),
        Terminator::Wait(wait) => wait_values(wait, visit),
        Terminator::Return(operand) => operand_values(operand, visit),
        Terminator::Result(passed) => passed.iter_mut().for_each(|p| operand_values(&mut p.operand, visit)),
        Terminator::Exit(value) => visit(value),
        Terminator::Enter(_) => {}
        Terminator::Leave(leave) => leave_values(leave, visit),
    }
    for edge in edges_mut(terminator) {
        edge.arguments.iter_mut().for_each(&mut *visit);
    }
}

/// Calls `visit` on the values that members get; what they are for is named by each member's own numbers.
fn leave_values(leave: &mut Leave, visit: &mut dyn FnMut(&mut Value)) {
    let members = leave.members.iter_mut().map(|(_, resume)| resume);
    for resume in std::iter::once(&mut leave.trigger).chain(members) {
        resume.values.iter_mut().for_each(|(_, value)| visit(value));
    }
}

fn wait_values(wait: &mut Wait, visit: &mut dyn FnMut(&mut Value)) {
    for branch in &mut wait.branches {
        match &mut branch.guard {
            Guard::Value(value) => visit(value),
            Guard::Open | Guard::Region(_) => {}
        }
        match &mut branch.operation {
            Operation::In { site: _, channel: _, patterns, condition: _ } => {
                patterns.iter_mut().for_each(|pattern| pattern_operands(pattern, &mut |o| operand_values(o, visit)));
            }
            Operation::Out { site: _, channel: _, payload } => match payload {
                Payload::Ready(passed) => passed.iter_mut().for_each(|p| operand_values(&mut p.operand, visit)),
                Payload::Region(_) => {}
            },
            Operation::After { amount, unit: _ } => visit(amount),
        }
    }
    wait.observed.iter_mut().for_each(|(_, value)| visit(value));
}

/// Calls `visit` on the operands of the `==` in a pattern.
pub fn pattern_operands(pattern: &mut Pattern, visit: &mut dyn FnMut(&mut Operand)) {
    match pattern {
        Pattern::Any | Pattern::Bind(_) | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId => {}
        Pattern::Equal(operand) => visit(operand),
        Pattern::Tag(_, payload) => payload.iter_mut().for_each(|p| pattern_operands(p, visit)),
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter_mut().for_each(|p| pattern_operands(p, visit)),
    }
}

/// The edges of a terminator. Those of a `wait` are no [`Edge`]s; see [`wait_targets`].
pub fn edges_mut(terminator: &mut Terminator) -> Vec<&mut Edge> {
    match terminator {
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge],
        Terminator::Enter(enter) => vec![&mut enter.later, &mut enter.otherwise],
        Terminator::Branch { condition: _, then, otherwise } => vec![then, otherwise],
        Terminator::Switch { value: _, cases, default } => {
            cases.iter_mut().map(|(_, edge)| edge).chain(std::iter::once(default)).collect()
        }
        Terminator::Wait(_)
        | Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// The regions of a wait: the first block of each.
pub fn regions(wait: &Wait) -> Vec<BlockId> {
    let mut regions = Vec::new();
    for branch in &wait.branches {
        match branch.guard {
            Guard::Region(block) => regions.push(block),
            Guard::Open | Guard::Value(_) => {}
        }
        match &branch.operation {
            Operation::In { condition, .. } => regions.extend(*condition),
            Operation::Out { payload: Payload::Region(block), .. } => regions.push(*block),
            Operation::Out { payload: Payload::Ready(_), .. } | Operation::After { .. } => {}
        }
    }
    regions
}

/// The slots that the regions of a body write: they hold nothing while no region runs.
pub fn region_slots(body: &Body) -> BTreeSet<SlotId> {
    let mut slots = BTreeSet::new();
    for block in &body.blocks {
        let Terminator::Wait(wait) = &block.terminator else { continue };
        for block in regions(wait).into_iter().flat_map(|entry| reached(body, entry)) {
            for instruction in &body.blocks[block.0 as usize].instructions {
                written_place(&instruction.op, &mut |place| match place.base {
                    Base::Slot(slot) => slots.extend([slot]),
                    Base::Object(_) => {}
                });
            }
        }
    }
    slots
}

/// Every block a wait names: regions, `then` blocks and `else`.
pub fn wait_targets(wait: &mut Wait) -> Vec<&mut BlockId> {
    let mut targets = Vec::new();
    for Branch { guard, operation, then, location: _ } in &mut wait.branches {
        match guard {
            Guard::Region(block) => targets.push(block),
            Guard::Open | Guard::Value(_) => {}
        }
        match operation {
            Operation::In { site: _, channel: _, patterns: _, condition } => targets.extend(condition.as_mut()),
            Operation::Out { site: _, channel: _, payload: Payload::Region(block) } => targets.push(block),
            Operation::Out { site: _, channel: _, payload: Payload::Ready(_) }
            | Operation::After { amount: _, unit: _ } => {}
        }
        targets.push(then);
    }
    targets.extend(wait.otherwise.as_mut());
    targets
}

/// The type of what a place leads to.
pub fn place_type(types: &TypeTable, values: &[ValueData], slots: &[Slot], place: &Place) -> TypeId {
    let mut ty = match place.base {
        Base::Slot(slot) => slots[slot.0 as usize].ty,
        Base::Object(value) => match types.get(values[value.0 as usize].ty) {
            Type::Boxed(pool) => types.pool(*pool).content,
            other => unreachable!("only boxed objects are bases of places, not {other:?}"),
        },
    };
    for step in &place.path {
        ty = step_type(types, ty, step);
    }
    ty
}

fn step_type(types: &TypeTable, ty: TypeId, step: &Step) -> TypeId {
    match (step, types.get(ty)) {
        (Step::Field(part) | Step::Payload(part), Type::Record(id) | Type::Union(id)) => {
            types.aggregate(*id).parts[*part as usize].1.expect("only parts that have a type are reached")
        }
        (Step::Element(_) | Step::Inside(_), Type::Array { length: _, element }) => *element,
        (Step::Element(_) | Step::Inside(_), Type::Bytes { bound: _ }) => TypeTable::U8,
        (step, other) => unreachable!("{step:?} does not lead into {other:?}"),
    }
}

/// Calls `visit` on every slot a block names.
pub fn block_slots(block: &mut Block, visit: &mut dyn FnMut(&mut SlotId)) {
    for instruction in &mut block.instructions {
        op_slots(&mut instruction.op, visit);
    }
    terminator_slots(&mut block.terminator, visit);
}

/// Calls `visit` on every slot a terminator names.
pub fn terminator_slots(terminator: &mut Terminator, visit: &mut dyn FnMut(&mut SlotId)) {
    match terminator {
        Terminator::Wait(wait) => {
            for branch in &mut wait.branches {
                match &mut branch.operation {
                    Operation::In { site: _, channel: _, patterns, condition: _ } => {
                        patterns.iter_mut().for_each(|pattern| pattern_slots(pattern, visit));
                    }
                    Operation::Out { site: _, channel: _, payload } => match payload {
                        Payload::Ready(passed) => {
                            passed.iter_mut().for_each(|passed| operand_slots(&mut passed.operand, visit));
                        }
                        Payload::Region(_) => {}
                    },
                    Operation::After { amount: _, unit: _ } => {}
                }
            }
        }
        Terminator::Return(operand) => operand_slots(operand, visit),
        Terminator::Result(passed) => {
            passed.iter_mut().for_each(|passed| operand_slots(&mut passed.operand, visit));
        }
        Terminator::Jump(_)
        | Terminator::Branch { .. }
        | Terminator::Switch { .. }
        | Terminator::Yield(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Enter(_)
        | Terminator::Leave(_)
        | Terminator::Fault(_) => {}
    }
}

fn pattern_slots(pattern: &mut Pattern, visit: &mut dyn FnMut(&mut SlotId)) {
    match pattern {
        Pattern::Any | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId => {}
        Pattern::Bind(Bind::Parameter(_)) => {}
        Pattern::Bind(Bind::Slot(slot)) => visit(slot),
        Pattern::Equal(operand) => operand_slots(operand, visit),
        Pattern::Tag(_, payload) => payload.iter_mut().for_each(|payload| pattern_slots(payload, visit)),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter_mut().for_each(|part| pattern_slots(part, visit));
        }
    }
}

fn place_slots(place: &mut Place, visit: &mut dyn FnMut(&mut SlotId)) {
    match &mut place.base {
        Base::Slot(slot) => visit(slot),
        Base::Object(_) => {}
    }
}

fn operand_slots(operand: &mut Operand, visit: &mut dyn FnMut(&mut SlotId)) {
    match operand {
        Operand::Value(_) => {}
        Operand::Place(place) => place_slots(place, visit),
    }
}

/// Calls `visit` on every slot an instruction names.
pub fn op_slots(op: &mut Op, visit: &mut dyn FnMut(&mut SlotId)) {
    op_places(op, &mut |place| place_slots(place, visit));
}

/// Calls `visit` with the place an instruction writes.
pub fn written_place<'a>(op: &'a Op, visit: &mut dyn FnMut(&'a Place)) {
    match op {
        Op::Store(to, _)
        | Op::Copy { to, .. }
        | Op::SetBytes(to, _)
        | Op::Fill(to, _)
        | Op::SetTag(to, _)
        | Op::SetLength(to, _)
        | Op::CopySlice { to, .. }
        | Op::StoreSlice { to, .. }
        | Op::Append { to, .. }
        | Op::StoreNumber { to, .. }
        | Op::StoreBits { to, .. } => visit(to),
        Op::CallFunction { to, .. } | Op::CallExtern { to, .. } => to.iter().for_each(visit),
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
        | Op::Test(..) => {}
    }
}

/// The edges that leave a block within its control flow (those of a wait's branches are not edges).
pub fn edges(terminator: &Terminator) -> Vec<&Edge> {
    match terminator {
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge],
        Terminator::Enter(enter) => vec![&enter.later, &enter.otherwise],
        Terminator::Branch { then, otherwise, .. } => vec![then, otherwise],
        Terminator::Switch { cases, default, .. } => {
            cases.iter().map(|(_, edge)| edge).chain(std::iter::once(default)).collect()
        }
        Terminator::Wait(_)
        | Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// All blocks reached from this one by edges, itself first.
pub fn reached(body: &Body, from: BlockId) -> Vec<BlockId> {
    let mut seen = vec![false; body.blocks.len()];
    let mut order = vec![from];
    seen[from.0 as usize] = true;
    let mut next = 0;
    while next < order.len() {
        for edge in edges(&body.blocks[order[next].0 as usize].terminator) {
            if !std::mem::replace(&mut seen[edge.to.0 as usize], true) {
                order.push(edge.to);
            }
        }
        next += 1;
    }
    order
}
