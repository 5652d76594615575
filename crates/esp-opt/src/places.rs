//! Properties of places (paths into memory): their slots and indices, the bound of `bytes`, and which of them an
//! instruction accesses.

use quaject_esp_ir::ir::{Base, Body, Op, Operand, Place, Projection, SlotId, Type, TypeTable, Value};
use quaject_esp_ir::typing::place_type;

/// The slot and the index of a place that is an element of a slot.
pub(crate) fn slot_element(place: &Place) -> Option<(SlotId, Value)> {
    match (place.base, &place.path[..]) {
        (Base::Slot(slot), [Projection::Element(index) | Projection::Inside(index)]) => Some((slot, *index)),
        _ => None,
    }
}

/// The slot, if the place is an entire slot.
pub(crate) fn whole_slot(place: &Place) -> Option<SlotId> {
    match (place.base, &place.path[..]) {
        (Base::Slot(slot), []) => Some(slot),
        _ => None,
    }
}

/// The maximal length of the `bytes` at a place; 0 if its type is another.
pub(crate) fn bytes_bound(types: &TypeTable, body: &Body, place: &Place) -> u32 {
    match place_type(types, body, place).map(|ty| types.get(ty)) {
        Some(Type::Bytes { bound }) => *bound,
        Some(_) | None => 0,
    }
}

/// The places of an instruction that have indices.
pub(crate) fn indexed_places(op: &Op) -> Vec<&Place> {
    let all: Vec<&Place> = match op {
        Op::Load(place)
        | Op::Store(place, _)
        | Op::SetBytes(place, _)
        | Op::SetTag(place, _)
        | Op::Tag(place)
        | Op::Length(place)
        | Op::SetLength(place, _) => vec![place],
        Op::Copy { to, from }
        | Op::Append { to, from }
        | Op::CopySlice { to, from, .. }
        | Op::StoreSlice { to, from, .. } => vec![to, from],
        Op::Fill(place, operand) => std::iter::once(place).chain(operand_place(operand)).collect(),
        Op::LoadNumber { from, .. } | Op::LoadBits { from, .. } => vec![from],
        Op::StoreNumber { to, .. } | Op::StoreBits { to, .. } => vec![to],
        Op::Equal(a, b) => [a, b].into_iter().filter_map(operand_place).collect(),
        Op::CallFunction { arguments, to, .. } | Op::CallExtern { arguments, to, .. } => {
            arguments.iter().filter_map(operand_place).chain(to).collect()
        }
        Op::Retain(operand) | Op::Release(operand) => operand_place(operand).into_iter().collect(),
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
        | Op::Predicate(..) => Vec::new(),
    };
    let is_indexed = |place: &&Place| place.path.iter().any(|step| matches!(step, Projection::Element(_)));
    all.into_iter().filter(is_indexed).collect()
}

fn operand_place(operand: &Operand) -> Option<&Place> {
    match operand {
        Operand::Place(place) => Some(place),
        Operand::Value(_) => None,
    }
}
