//! The memset idiom: inner loops that only store one byte repeatedly, `for copy in 0..count { out[at & mask] = value; at
//! += 1 }`, as run-length expansion does. Their trip count varies, which a branch predictor cannot learn. In an unrolled
//! version such a loop is two stores of eight bytes. The bytes beyond the last copy are overwritten by what follows; those
//! beyond everything are loaded before and stored again at the end.

use super::UnrollRefusal;
use super::loop_paths::EdgeChoice;
use super::unrolled::{Unrolled, WORD, element};
use crate::facts::Fact;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, ByteOrder, Edge, Instruction, Location, Op, Place, SlotId, Terminator, Type, TypeTable, Value,
};
use rustc_hash::FxHashMap;

/// Copies made by two stores.
pub(super) const MAX_COPIES: i128 = 16;

/// A word with 1 in each byte.
const BYTE_REPLICATOR: i128 = 0x0101_0101_0101_0101;

/// An array that is filled from an unknown index on.
#[derive(Clone)]
pub(super) struct FilledArray {
    pub(super) slot: SlotId,
    /// The index before the first iteration, and the mask of its significant bits.
    base: Value,
    mask: i128,
    /// The current index, and its 64-bit position in the array.
    index: Value,
    pub(super) at: Value,
    /// The number of fills so far.
    fills: i128,
}

/// A memset loop: one block, and at most one empty latch.
#[derive(Clone, Debug)]
pub(super) struct MemsetLoop {
    /// The loop's header.
    pub(super) block: usize,
    /// The edge that leaves it.
    pub(super) exit: EdgeChoice,
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
    let back = |edge: &Edge| -> Option<Vec<Value>> {
        if edge.to.0 as usize == header {
            return Some(edge.arguments.clone());
        }
        let next = &body.blocks[edge.to.0 as usize];
        match &next.terminator {
            Terminator::Jump(again) if again.to.0 as usize == header && next.instructions.is_empty() => {
                let parameters: FxHashMap<Value, Value> =
                    next.parameters.iter().copied().zip(edge.arguments.iter().copied()).collect();
                let at = |value: &Value| parameters.get(value).copied().unwrap_or(*value);
                Some(again.arguments.iter().map(at).collect())
            }
            _ => None,
        }
    };
    let again = back(then)?;
    if back(otherwise).is_some() {
        return None;
    }
    let mut defined: FxHashMap<Value, &Op> = FxHashMap::default();
    let mut store = None;
    for instruction in &block.instructions {
        match (&instruction.op, instruction.result) {
            (Op::Constant(_) | Op::Convert(_) | Op::Binary(..), Some(result)) => {
                defined.insert(result, &instruction.op);
            }
            (Op::Store(place, value), None) if store.is_none() => store = Some((element(place)?, *value)),
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
    is_fill.then_some(MemsetLoop {
        block: header,
        exit: EdgeChoice::If(false),
        slot,
        mask,
        value,
        index,
        copies,
        count,
    })
}

impl Unrolled<'_> {
    /// Emits a memset loop as wide stores. Afterwards its parameters have their values of the last iteration.
    pub(super) fn emit_memset(&mut self, fill: &MemsetLoop, location: Location) -> Result<(), UnrollRefusal> {
        let [index, copies, count, value] =
            [fill.index.0, fill.copies.0, fill.count, fill.value].map(|value| self.at(value));
        let FilledArray { base, at, fills, .. } = match &self.filled {
            Some(filled) if (filled.slot, filled.mask, filled.index) == (fill.slot, fill.mask, index) => filled.clone(),
            None if self.is_before(index) => {
                let ty = self.ty(index);
                let mask = self.constant(ty, fill.mask);
                let first = self.compute(ty, Op::Binary(BinaryOp::BitAnd, index, mask), location);
                self.facts.insert(first, Fact::between(0, fill.mask));
                let at = self.wide(first, 0, location);
                FilledArray { slot: fill.slot, base: index, mask: fill.mask, index, at, fills: 0 }
            }
            _ => return Err(UnrollRefusal::Unsupported("several inner fill loops")),
        };
        let is_stored = |store: &Instruction| match &store.op {
            Op::Store(place, _) => place.base == Base::Slot(fill.slot),
            _ => false,
        };
        let most = MAX_COPIES * (fills + 2) - 1;
        let length = match self.types.get(self.body.slots[fill.slot.0 as usize].ty) {
            Type::Array { length, .. } => i128::from(*length),
            _ => 0,
        };
        if self.as_constant(copies) != Some(0)
            || most > fill.mask
            || fill.mask >= length
            || self.stored.iter().any(is_stored)
        {
            return Err(UnrollRefusal::Unsupported("an inner fill loop without a wide equivalent"));
        }
        let ty = self.ty(count);
        for (op, limit) in [(BinaryOp::GreaterEqual, 1), (BinaryOp::LessEqual, MAX_COPIES)] {
            let limit = self.constant(ty, limit);
            let guard = self.compute(TypeTable::BOOL, Op::Binary(op, count, limit), location);
            self.guards.push(guard);
        }
        let low = self.converted(TypeTable::U8, value, location);
        let low = self.converted(TypeTable::U64, low, location);
        let all = self.constant(TypeTable::U64, BYTE_REPLICATOR);
        let value = self.compute(TypeTable::U64, Op::Binary(BinaryOp::Multiply, low, all), location);
        for distance in [0, WORD] {
            let offset = self.sum(at, distance, location);
            let to = Place { base: Base::Slot(fill.slot), path: Vec::new() };
            let op = Op::StoreNumber { to, offset, bits: 64, order: ByteOrder::Little, value };
            self.stored.push(Instruction { result: None, op, location });
        }
        let first = self.windows.get(&(base, fill.mask)).map(|(_, first)| *first);
        let window = self.windows.entry((base, fill.mask)).or_insert((0, first.unwrap_or(at)));
        window.0 = window.0.max(most);
        let further = self.converted(TypeTable::U64, count, location);
        let at = self.compute(TypeTable::U64, Op::Binary(BinaryOp::Add, at, further), location);
        let ty = self.ty(index);
        let further = self.converted(ty, count, location);
        let index = self.compute(ty, Op::Binary(BinaryOp::Add, index, further), location);
        self.filled = Some(FilledArray { slot: fill.slot, base, mask: fill.mask, index, at, fills: fills + 1 });
        let last = self.sum(index, -1, location);
        self.current.insert(fill.index.0, last);
        let last = self.sum(count, -1, location);
        self.current.insert(fill.copies.0, last);
        Ok(())
    }
}
