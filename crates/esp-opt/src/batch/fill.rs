//! Inner loops that only write one byte several times in a row: `for copy in 0..count { out[at & mask] = value; at += 1
//! }`, as expanding run lengths has them. How often such a loop goes round is different every time, which a processor
//! cannot guess. In a batch it is two stores of eight bytes, of which those behind the last one are stored over by what
//! comes next; what was behind all of it is loaded before, and stored again at the end.

use super::Reason;
use super::cycle::Way;
use super::unroll::{Unrolled, WORD, element};
use crate::facts::Fact;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, ByteOrder, Edge, Instruction, Location, Op, Place, SlotId, Terminator, Type, TypeTable, Value,
};
use rustc_hash::FxHashMap;

/// Copies that two stores make.
pub(super) const MOST_COPIES: i128 = 16;

/// A word of ones.
const EACH_BYTE: i128 = 0x0101_0101_0101_0101;

/// An array that is filled, from an index on that is not known.
#[derive(Clone)]
pub(super) struct Filled {
    pub(super) slot: SlotId,
    /// The index before the first turn, and which of its bits count.
    base: Value,
    mask: i128,
    /// The index now, and where that is in the array, of 64 bits.
    index: Value,
    pub(super) at: Value,
    /// How many fills there have been.
    fills: i128,
}

/// Such a loop, which is one block, and at most one that leads back.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    /// The loop's header.
    pub(super) block: usize,
    /// By which way it is left.
    pub(super) exit: Way,
    /// What is filled.
    pub(super) slot: SlotId,
    /// The bits of an index that count.
    pub(super) mask: i128,
    /// The value that is written.
    pub(super) value: Value,
    /// The index, and how many copies there have been: parameters; and both when one more has been written.
    pub(super) index: (Value, Value),
    pub(super) copies: (Value, Value),
    /// Until there are so many, at least one.
    pub(super) count: Value,
}

/// The fill that the loop of this header is, if it is one.
pub(super) fn fill(body: &Body, types: &TypeTable, header: usize) -> Option<Fill> {
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
    // Parameters that are one more each time, and what they are then.
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
    let is_the_same = |value: &Value| !defined.contains_key(value) && !counting.contains_key(value);
    let is_int = |value: Value| matches!(types.get(body.values[value.0 as usize].ty), Type::Int(_));
    let fits = counting.len() == 2 && copies.0 != index.0 && mask > 0 && (mask + 1).count_ones() == 1;
    let is_fill = fits && is_the_same(&value) && is_the_same(&count) && is_int(value) && is_int(count);
    is_fill.then_some(Fill { block: header, exit: Way::If(false), slot, mask, value, index, copies, count })
}

impl Unrolled<'_> {
    /// Several copies of a byte at once. Afterwards the loop's parameters are what they are in its last turn.
    pub(super) fn fill(&mut self, fill: &Fill, location: Location) -> Result<(), Reason> {
        let [index, copies, count, value] =
            [fill.index.0, fill.copies.0, fill.count, fill.value].map(|value| self.at(value));
        let Filled { base, at, fills, .. } = match &self.filled {
            Some(filled) if (filled.slot, filled.mask, filled.index) == (fill.slot, fill.mask, index) => filled.clone(),
            None if self.is_before(index) => {
                let ty = self.ty(index);
                let mask = self.constant(ty, fill.mask);
                let first = self.compute(ty, Op::Binary(BinaryOp::BitAnd, index, mask), location);
                self.facts.insert(first, Fact::between(0, fill.mask));
                let at = self.wide(first, 0, location);
                Filled { slot: fill.slot, base: index, mask: fill.mask, index, at, fills: 0 }
            }
            _ => return Err(Reason::Unbatchable("several inner loops that fill")),
        };
        let is_stored = |store: &Instruction| match &store.op {
            Op::Store(place, _) => place.base == Base::Slot(fill.slot),
            _ => false,
        };
        let most = MOST_COPIES * (fills + 2) - 1;
        let length = match self.types.get(self.body.slots[fill.slot.0 as usize].ty) {
            Type::Array { length, .. } => i128::from(*length),
            _ => 0,
        };
        if self.as_constant(copies) != Some(0)
            || most > fill.mask
            || fill.mask >= length
            || self.stored.iter().any(is_stored)
        {
            return Err(Reason::Unbatchable("an inner loop that fills as nothing wider does"));
        }
        let ty = self.ty(count);
        for (op, limit) in [(BinaryOp::GreaterEqual, 1), (BinaryOp::LessEqual, MOST_COPIES)] {
            let limit = self.constant(ty, limit);
            let guard = self.compute(TypeTable::BOOL, Op::Binary(op, count, limit), location);
            self.guards.push(guard);
        }
        let low = self.converted(TypeTable::U8, value, location);
        let low = self.converted(TypeTable::U64, low, location);
        let all = self.constant(TypeTable::U64, EACH_BYTE);
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
        self.filled = Some(Filled { slot: fill.slot, base, mask: fill.mask, index, at, fills: fills + 1 });
        let last = self.sum(index, -1, location);
        self.now.insert(fill.index.0, last);
        let last = self.sum(count, -1, location);
        self.now.insert(fill.copies.0, last);
        Ok(())
    }
}
