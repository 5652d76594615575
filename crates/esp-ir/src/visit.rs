//! Visitors: the values, places and slots that instructions and terminators name.
//!
//! Each visitor exists twice, as in rustc's `mir::visit`: `op_values` reads, `op_values_mut` may replace what it
//! visits. Both visit the same things in the same order. Knows no source program and not what instructions compute.

mod uses;

use crate::cfg::{region_blocks, region_entries};
use crate::ir::{Base, Bind, Body, Op, Pattern, Place, SlotId, Terminator};
use std::collections::BTreeSet;
pub(crate) use uses::values_of_place;
pub use uses::{Use, op_uses, operand_uses, passed_uses, terminator_uses};

pub use exclusive::{
    block_slots as block_slots_mut, op_places as op_places_mut, op_slots as op_slots_mut, op_values as op_values_mut,
    operand_values as operand_values_mut, own_values as own_values_mut, pattern_operands as pattern_operands_mut,
    place_values as place_values_mut, terminator_slots as terminator_slots_mut,
    terminator_values as terminator_values_mut,
};
pub use shared::{
    block_slots, op_places, op_slots, op_values, operand_values, own_values, pattern_operands, place_values,
    terminator_slots, terminator_values,
};

/// The visitors, for `&` or, with `mut`, for `&mut`.
macro_rules! visitors {
    ($edges:ident $($mutability:tt)?) => {
        use crate::cfg::$edges;
        use crate::ir::{
            Base, Bind, Block, Branch, Guard, Leave, Op, Operand, Operation, Passed, Pattern, Payload, Place,
            SlotId, Projection, Terminator, Value, Wait,
        };

        /// Calls `visit` on every value a place reads: its base and its indices.
        pub fn place_values(place: &$($mutability)? Place, visit: &mut dyn FnMut(&$($mutability)? Value)) {
            match &$($mutability)? place.base {
                Base::Slot(_) | Base::Constant(..) => {}
                Base::Object(value) => visit(value),
            }
            for step in &$($mutability)? place.path {
                match step {
                    Projection::Element(value) | Projection::Inside(value) => visit(value),
                    Projection::Field(_) | Projection::Payload(_) => {}
                }
            }
        }

        /// Calls `visit` on every value an operand reads.
        pub fn operand_values(operand: &$($mutability)? Operand, visit: &mut dyn FnMut(&$($mutability)? Value)) {
            match operand {
                Operand::Value(value) => visit(value),
                Operand::Place(place) => place_values(place, visit),
            }
        }

        /// Calls `visit` on every value an instruction reads.
        pub fn op_values(op: &$($mutability)? Op, visit: &mut dyn FnMut(&$($mutability)? Value)) {
            match op {
                Op::Constant(_) | Op::OwnId | Op::Allocate(_) | Op::FreeObjects(_) | Op::Mark(_) => {}
                Op::Unary(_, value)
                | Op::Predicate(_, value)
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
                    for bound in [start, end] {
                        if let Some(value) = bound {
                            visit(value);
                        }
                    }
                }
                Op::LoadNumber { from, offset, bits: _, order: _ } => {
                    place_values(from, visit);
                    visit(offset);
                }
                Op::LoadBits { from, offset, field: _ } => {
                    place_values(from, visit);
                    visit(offset);
                }
                Op::StoreNumber { to, offset, bits: _, order: _, value }
                | Op::StoreBits { to, offset, field: _, value } => {
                    place_values(to, visit);
                    visit(offset);
                    visit(value);
                }
                Op::Equal(left, right) => {
                    operand_values(left, visit);
                    operand_values(right, visit);
                }
                Op::CallFunction { function: _, arguments, to } | Op::CallExtern { function: _, arguments, to } => {
                    for argument in arguments {
                        operand_values(argument, visit);
                    }
                    if let Some(place) = to {
                        place_values(place, visit);
                    }
                }
                Op::Retain(operand) | Op::Release(operand) => operand_values(operand, visit),
            }
        }

        /// Calls `visit` on every place an instruction reads or writes.
        pub fn op_places(op: &$($mutability)? Op, visit: &mut dyn FnMut(&$($mutability)? Place)) {
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
                | Op::Predicate(..) => {}
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
                    operand_place(value, visit);
                }
                Op::Equal(left, right) => {
                    operand_place(left, visit);
                    operand_place(right, visit);
                }
                Op::CallFunction { function: _, arguments, to } | Op::CallExtern { function: _, arguments, to } => {
                    for argument in arguments {
                        operand_place(argument, visit);
                    }
                    if let Some(place) = to {
                        visit(place);
                    }
                }
                Op::Retain(operand) | Op::Release(operand) => operand_place(operand, visit),
            }
        }

        fn operand_place(operand: &$($mutability)? Operand, visit: &mut dyn FnMut(&$($mutability)? Place)) {
            match operand {
                Operand::Value(_) => {}
                Operand::Place(place) => visit(place),
            }
        }

        /// Calls `visit` on every value a terminator reads: its own, then the arguments of its edges.
        pub fn terminator_values(
            terminator: &$($mutability)? Terminator,
            visit: &mut dyn FnMut(&$($mutability)? Value),
        ) {
            own_values(terminator, visit);
            for edge in $edges(terminator) {
                for argument in &$($mutability)? edge.arguments {
                    visit(argument);
                }
            }
        }

        /// Calls `visit` on every value a terminator reads itself, not on the arguments of its edges.
        pub fn own_values(terminator: &$($mutability)? Terminator, visit: &mut dyn FnMut(&$($mutability)? Value)) {
            match terminator {
                Terminator::Jump(_)
                | Terminator::Yield(_)
                | Terminator::Enter(_)
                | Terminator::End
                | Terminator::Fault(_) => {}
                Terminator::Branch { condition, then: _, otherwise: _ } => visit(condition),
                Terminator::Switch { value, cases: _, default: _ } => visit(value),
                Terminator::Wait(wait) => wait_values(wait, visit),
                Terminator::Return(operand) => operand_values(operand, visit),
                Terminator::Result(message) => message_values(message, visit),
                Terminator::Exit(value) => visit(value),
                Terminator::Leave(leave) => leave_values(leave, visit),
            }
        }

        fn message_values(message: &$($mutability)? [Passed], visit: &mut dyn FnMut(&$($mutability)? Value)) {
            for passed in message {
                operand_values(&$($mutability)? passed.operand, visit);
            }
        }

        /// The values that members get back. What they are assigned to belongs to the members' bodies.
        fn leave_values(leave: &$($mutability)? Leave, visit: &mut dyn FnMut(&$($mutability)? Value)) {
            for (_, value) in &$($mutability)? leave.trigger.values {
                visit(value);
            }
            for (_, resume) in &$($mutability)? leave.members {
                for (_, value) in &$($mutability)? resume.values {
                    visit(value);
                }
            }
        }

        fn wait_values(wait: &$($mutability)? Wait, visit: &mut dyn FnMut(&$($mutability)? Value)) {
            for branch in &$($mutability)? wait.branches {
                match &$($mutability)? branch.guard {
                    Guard::Value(value) => visit(value),
                    Guard::Open | Guard::Region(_) => {}
                }
                match &$($mutability)? branch.operation {
                    Operation::In { site: _, channel: _, patterns, condition: _ } => {
                        for pattern in patterns {
                            pattern_operands(pattern, &mut |operand| operand_values(operand, visit));
                        }
                    }
                    Operation::Out { site: _, channel: _, payload } => match payload {
                        Payload::Ready(message) => message_values(message, visit),
                        Payload::Region(_) => {}
                    },
                    Operation::After { amount, unit: _ } => visit(amount),
                }
            }
            for (_, value) in &$($mutability)? wait.observed {
                visit(value);
            }
        }

        /// Calls `visit` on the operands of the `==` in a pattern.
        pub fn pattern_operands(
            pattern: &$($mutability)? Pattern,
            visit: &mut dyn FnMut(&$($mutability)? Operand),
        ) {
            match pattern {
                Pattern::Any | Pattern::Bind(_) | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId => {}
                Pattern::Equal(operand) => visit(operand),
                Pattern::Tag(_, payload) => {
                    if let Some(part) = payload {
                        pattern_operands(part, visit);
                    }
                }
                Pattern::Record(parts) | Pattern::Array(parts) => {
                    for part in parts {
                        pattern_operands(part, visit);
                    }
                }
            }
        }

        /// Calls `visit` on every slot a block names.
        pub fn block_slots(block: &$($mutability)? Block, visit: &mut dyn FnMut(&$($mutability)? SlotId)) {
            for instruction in &$($mutability)? block.instructions {
                op_slots(&$($mutability)? instruction.op, visit);
            }
            terminator_slots(&$($mutability)? block.terminator, visit);
        }

        /// Calls `visit` on every slot an instruction names.
        pub fn op_slots(op: &$($mutability)? Op, visit: &mut dyn FnMut(&$($mutability)? SlotId)) {
            op_places(op, &mut |place| place_slots(place, visit));
        }

        /// Calls `visit` on every slot a terminator names: those it reads, and those that its patterns bind.
        pub fn terminator_slots(
            terminator: &$($mutability)? Terminator,
            visit: &mut dyn FnMut(&$($mutability)? SlotId),
        ) {
            match terminator {
                Terminator::Wait(wait) => {
                    for Branch { guard: _, operation, then: _, location: _ } in &$($mutability)? wait.branches {
                        match operation {
                            Operation::In { site: _, channel: _, patterns, condition: _ } => {
                                for pattern in patterns {
                                    pattern_slots(pattern, visit);
                                }
                            }
                            Operation::Out { site: _, channel: _, payload } => match payload {
                                Payload::Ready(message) => message_slots(message, visit),
                                Payload::Region(_) => {}
                            },
                            Operation::After { amount: _, unit: _ } => {}
                        }
                    }
                }
                Terminator::Return(operand) => operand_slots(operand, visit),
                Terminator::Result(message) => message_slots(message, visit),
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

        fn message_slots(message: &$($mutability)? [Passed], visit: &mut dyn FnMut(&$($mutability)? SlotId)) {
            for passed in message {
                operand_slots(&$($mutability)? passed.operand, visit);
            }
        }

        fn pattern_slots(pattern: &$($mutability)? Pattern, visit: &mut dyn FnMut(&$($mutability)? SlotId)) {
            match pattern {
                Pattern::Any | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId => {}
                Pattern::Bind(Bind::Parameter(_)) => {}
                Pattern::Bind(Bind::Slot(slot)) => visit(slot),
                Pattern::Equal(operand) => operand_slots(operand, visit),
                Pattern::Tag(_, payload) => {
                    if let Some(part) = payload {
                        pattern_slots(part, visit);
                    }
                }
                Pattern::Record(parts) | Pattern::Array(parts) => {
                    for part in parts {
                        pattern_slots(part, visit);
                    }
                }
            }
        }

        fn place_slots(place: &$($mutability)? Place, visit: &mut dyn FnMut(&$($mutability)? SlotId)) {
            match &$($mutability)? place.base {
                Base::Slot(slot) => visit(slot),
                Base::Object(_) | Base::Constant(..) => {}
            }
        }

        fn operand_slots(operand: &$($mutability)? Operand, visit: &mut dyn FnMut(&$($mutability)? SlotId)) {
            match operand {
                Operand::Value(_) => {}
                Operand::Place(place) => place_slots(place, visit),
            }
        }
    };
}

mod shared {
    visitors!(edges);
}

mod exclusive {
    visitors!(edges_mut mut);
}

/// Calls `visit` on the slots a pattern binds.
pub fn bound_slots(pattern: &Pattern, visit: &mut dyn FnMut(SlotId)) {
    match pattern {
        Pattern::Any
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Equal(_)
        | Pattern::Bind(Bind::Parameter(_)) => {}
        Pattern::Bind(Bind::Slot(slot)) => visit(*slot),
        Pattern::Tag(_, payload) => payload.iter().for_each(|payload| bound_slots(payload, visit)),
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().for_each(|part| bound_slots(part, visit)),
    }
}

/// The place an instruction writes. Extern functions may also write their mutable arguments.
pub fn written(op: &Op) -> Option<&Place> {
    let mut written = None;
    written_place(op, &mut |place| written = Some(place));
    written
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
        | Op::Predicate(..) => {}
    }
}

/// The slots that the regions of a body write: they hold nothing while no region runs.
pub fn region_slots(body: &Body) -> BTreeSet<SlotId> {
    let mut slots = BTreeSet::new();
    for block in &body.blocks {
        let Terminator::Wait(wait) = &block.terminator else { continue };
        for block in region_entries(wait).into_iter().flat_map(|entry| region_blocks(body, entry)) {
            for instruction in &body.blocks[block.0 as usize].instructions {
                written_place(&instruction.op, &mut |place| match place.base {
                    Base::Slot(slot) => slots.extend([slot]),
                    Base::Object(_) | Base::Constant(..) => {}
                });
            }
        }
    }
    slots
}
