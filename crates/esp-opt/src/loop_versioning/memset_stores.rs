//! The stores that replace a memset loop in an unrolled version. The trip count of such a loop varies, which a branch
//! predictor cannot learn: two stores of eight bytes write as many copies as the loop may make. The bytes beyond the
//! last copy are overwritten by the next iteration; those beyond the last iteration are loaded before and restored at
//! the end.

use super::UnrollRefusal;
use super::memset_idiom::MemsetLoop;
use super::unrolled::{FilledArray, Unrolled, WORD};
use crate::facts::Fact;
use quaject_esp_ir::ir::{Base, BinaryOp, ByteOrder, Instruction, Location, Op, Place, Type, TypeTable};

/// The copies that two stores make, at most.
pub(super) const MAX_COPIES: i128 = 16;

/// A word with 1 in each byte.
const BYTE_REPLICATOR: i128 = 0x0101_0101_0101_0101;

impl Unrolled<'_> {
    /// Emits a memset loop as wide stores. Afterwards its parameters have their values of the last iteration.
    pub(super) fn emit_memset(&mut self, memset: &MemsetLoop, location: Location) -> Result<(), UnrollRefusal> {
        let [index, copies, count, value] =
            [memset.index.0, memset.copies.0, memset.count, memset.value].map(|value| self.current_value(value));
        let FilledArray { base, at, fills, .. } = match &self.filled {
            Some(filled) if (filled.slot, filled.mask, filled.index) == (memset.slot, memset.mask, index) => {
                filled.clone()
            }
            None if self.is_before(index) => {
                let ty = self.ty(index);
                let mask = self.constant(ty, memset.mask);
                let first = self.compute(ty, Op::Binary(BinaryOp::BitAnd, index, mask), location);
                self.facts.insert(first, Fact::between(0, memset.mask));
                let at = self.wide(first, 0, location);
                FilledArray { slot: memset.slot, base: index, mask: memset.mask, index, at, fills: 0 }
            }
            _ => return Err(UnrollRefusal::Unsupported("several inner fill loops")),
        };
        let is_stored = |store: &Instruction| match &store.op {
            Op::Store(place, _) => place.base == Base::Slot(memset.slot),
            _ => false,
        };
        let max_offset = MAX_COPIES * (fills + 2) - 1;
        let length = match self.types.get(self.body.slots[memset.slot.0 as usize].ty) {
            Type::Array { length, .. } => i128::from(*length),
            _ => 0,
        };
        if self.as_constant(copies) != Some(0)
            || max_offset > memset.mask
            || memset.mask >= length
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
        let byte = self.converted(TypeTable::U8, value, location);
        let wide = self.converted(TypeTable::U64, byte, location);
        let replicator = self.constant(TypeTable::U64, BYTE_REPLICATOR);
        let value = self.compute(TypeTable::U64, Op::Binary(BinaryOp::Multiply, wide, replicator), location);
        for distance in [0, WORD] {
            let offset = self.sum(at, distance, location);
            let to = Place { base: Base::Slot(memset.slot), path: Vec::new() };
            let op = Op::StoreNumber { to, offset, bits: 64, order: ByteOrder::Little, value };
            self.stored.push(Instruction { result: None, op, location });
        }
        let first = self.windows.get(&(base, memset.mask)).map(|(_, first)| *first);
        let window = self.windows.entry((base, memset.mask)).or_insert((0, first.unwrap_or(at)));
        window.0 = window.0.max(max_offset);
        let advance = self.converted(TypeTable::U64, count, location);
        let at = self.compute(TypeTable::U64, Op::Binary(BinaryOp::Add, at, advance), location);
        let ty = self.ty(index);
        let advance = self.converted(ty, count, location);
        let index = self.compute(ty, Op::Binary(BinaryOp::Add, index, advance), location);
        self.filled = Some(FilledArray { slot: memset.slot, base, mask: memset.mask, index, at, fills: fills + 1 });
        let last = self.sum(index, -1, location);
        self.current.insert(memset.index.0, last);
        let last = self.sum(count, -1, location);
        self.current.insert(memset.copies.0, last);
        Ok(())
    }
}
