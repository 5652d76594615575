//! The memset idiom: recognition of inner loops that only store one byte repeatedly, as run-length expansion does:
//! `for copy in 0..count { out[at & mask] = value; at += 1 }`. Knows single loops; the stores that replace such a loop
//! in an unrolled version are in `memset_stores`.

use crate::places::slot_element;
use quaject_esp_ir::ir::{BinaryOp, Body, Edge, Op, SlotId, Terminator, Type, TypeTable, Value};
use rustc_hash::FxHashMap;

/// A memset loop: one block, and at most one empty latch. It is left on the edge on which the condition of the block is
/// false.
#[derive(Clone, Debug)]
pub(super) struct MemsetLoop {
    /// The loop's header.
    pub(super) block: usize,
    /// The array.
    pub(super) slot: SlotId,
    /// The mask of the index's significant bits.
    pub(super) mask: i128,
    /// The stored value.
    pub(super) value: Value,
    /// The index and the number of copies: the parameters, and their values after one more copy.
    pub(super) index: (Value, Value),
    pub(super) copies: (Value, Value),
    /// The trip count, at least one.
    pub(super) count: Value,
}

/// The memset loop with this header, if it is one.
pub(super) fn memset_loop(body: &Body, types: &TypeTable, header: usize) -> Option<MemsetLoop> {
    let block = &body.blocks[header];
    let Terminator::Branch { condition, then, otherwise } = &block.terminator else { return None };
    let again = back_edge_arguments(body, then, header)?;
    if back_edge_arguments(body, otherwise, header).is_some() {
        return None;
    }
    let mut defined: FxHashMap<Value, &Op> = FxHashMap::default();
    let mut store = None;
    for instruction in &block.instructions {
        match (&instruction.op, instruction.result) {
            (Op::Constant(_) | Op::Convert(_) | Op::Binary(..), Some(result)) => {
                defined.insert(result, &instruction.op);
            }
            (Op::Store(place, value), None) if store.is_none() => store = Some((slot_element(place)?, *value)),
            _ => return None,
        }
    }
    let ((slot, at), stored) = store?;
    match types.get(body.slots[slot.0 as usize].ty) {
        Type::Array { element, .. } if *element == TypeTable::U8 => {}
        _ => return None,
    }
    let constant = |value: Value| match defined.get(&value) {
        Some(Op::Constant(constant)) => Some(*constant),
        _ => None,
    };
    // Parameters that each iteration increments, with their next value.
    let mut counting: FxHashMap<Value, Value> = FxHashMap::default();
    for (parameter, next) in block.parameters.iter().zip(&again) {
        match defined.get(next) {
            _ if next == parameter => {}
            Some(Op::Binary(BinaryOp::Add, a, b)) if a == parameter && constant(*b) == Some(1) => {
                counting.insert(*parameter, *next);
            }
            _ => return None,
        }
    }
    let with_next = |value: Value| Some((value, *counting.get(&value)?));
    let (index, mask) = match *defined.get(&at)? {
        Op::Binary(BinaryOp::BitAnd, a, b) => (with_next(*a)?, constant(*b)?),
        _ => return None,
    };
    let (next, count) = match *defined.get(condition)? {
        Op::Binary(BinaryOp::Less, a, b) => (*a, *b),
        _ => return None,
    };
    let copies = counting.iter().find(|(_, other)| **other == next).map(|(value, next)| (*value, *next))?;
    let value = match defined.get(&stored) {
        Some(Op::Convert(from)) => *from,
        None => stored,
        Some(_) => return None,
    };
    let is_invariant = |value: &Value| !defined.contains_key(value) && !counting.contains_key(value);
    let is_int = |value: Value| matches!(types.get(body.values[value.0 as usize].ty), Type::Int(_));
    let has_two_counters = counting.len() == 2 && copies.0 != index.0 && mask > 0 && (mask + 1).count_ones() == 1;
    let is_fill = has_two_counters && is_invariant(&value) && is_invariant(&count) && is_int(value) && is_int(count);
    is_fill.then_some(MemsetLoop { block: header, slot, mask, value, index, copies, count })
}

/// The arguments with which an edge leads back to the header, directly or through an empty latch.
fn back_edge_arguments(body: &Body, edge: &Edge, header: usize) -> Option<Vec<Value>> {
    if edge.to.0 as usize == header {
        return Some(edge.arguments.clone());
    }
    let latch = &body.blocks[edge.to.0 as usize];
    match &latch.terminator {
        Terminator::Jump(again) if again.to.0 as usize == header && latch.instructions.is_empty() => {
            let parameters: FxHashMap<Value, Value> =
                latch.parameters.iter().copied().zip(edge.arguments.iter().copied()).collect();
            let at = |value: &Value| parameters.get(value).copied().unwrap_or(*value);
            Some(again.arguments.iter().map(at).collect())
        }
        _ => None,
    }
}
