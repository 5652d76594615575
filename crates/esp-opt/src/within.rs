//! Indices that have been compared with the length of the bytes they are indices of, as loops over bytes do, where nobody
//! has written those since. Changes nothing.

use crate::facts::Fact;
use crate::ranges::Ranges;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{Base, BinaryOp, BlockId, Body, Op, Place, Projection, SlotId, Terminator, Value};
use quaject_esp_ir::visit::{op_slots, terminator_slots};

/// What is asked of a body.
pub(crate) struct Within<'a> {
    pub(crate) body: &'a Body,
    pub(crate) known: &'a Ranges,
    pub(crate) dominators: &'a Dominators,
}

impl Within<'_> {
    /// Whether a place in this block is a byte of a slot, inside.
    pub(crate) fn is_inside(&self, place: &Place, block: usize) -> bool {
        let (Base::Slot(slot), [Projection::Element(index)]) = (place.base, &place.path[..]) else { return false };
        let is_positive = || {
            let positive = Fact::between(0, i128::from(i64::MAX));
            self.known.at(block, *index).is_some_and(|fact| fact.implies(&positive))
        };
        self.lengths_above(*index, block).any(|length| self.is_still(slot, length, block)) && is_positive()
    }

    /// The values that an index is less than in a block, as a branch before has shown.
    fn lengths_above(&self, index: Value, block: usize) -> impl Iterator<Item = Value> + '_ {
        let body = self.body;
        self.body.blocks.iter().enumerate().filter_map(move |(from, source)| {
            let Terminator::Branch { condition, then, .. } = &source.terminator else { return None };
            let to = then.to.0 as usize;
            let leads_there = self.dominators.dominates(to, block) && self.dominators.dominates(from, to);
            let edges = body.blocks.iter().flat_map(|block| successors(&block.terminator, Regions::Include));
            if !leads_there || edges.filter(|other| *other == then.to).count() != 1 {
                return None;
            }
            match self.definition(*condition) {
                Some((_, _, Op::Binary(BinaryOp::Less, less, length))) if *less == index => Some(*length),
                _ => None,
            }
        })
    }

    /// Whether a value is the length that a slot's bytes still have in a block.
    fn is_still(&self, slot: SlotId, length: Value, block: usize) -> bool {
        let Some((from, at, Op::Length(of))) = self.definition(length) else { return false };
        if of.base != Base::Slot(slot) || !of.path.is_empty() {
            return false;
        }
        // From whatever may write it, nothing leads to the block but by way of the length.
        let writers = (0..self.body.blocks.len()).filter(|writer| self.may_write(*writer, slot, (from, at)));
        let (mut seen, mut work): (Vec<bool>, Vec<usize>) = (vec![false; self.body.blocks.len()], Vec::new());
        for writer in writers {
            if writer == block {
                return false;
            }
            work.push(writer);
        }
        while let Some(next) = work.pop() {
            for BlockId(to) in successors(&self.body.blocks[next].terminator, Regions::Include) {
                let to = to as usize;
                if to != from && !std::mem::replace(&mut seen[to], true) {
                    work.push(to);
                }
            }
        }
        !seen[block]
    }

    /// Whether a block may write a slot, after this instruction if it is in the block. What it only reads counts, too,
    /// but for its bytes and its length.
    fn may_write(&self, block: usize, slot: SlotId, (from, at): (usize, usize)) -> bool {
        let source = &self.body.blocks[block];
        let first = if block == from { at + 1 } else { 0 };
        let mut any = false;
        for instruction in &source.instructions[first..] {
            if !matches!(instruction.op, Op::Load(_) | Op::Length(_)) {
                op_slots(&instruction.op, &mut |used| any |= *used == slot);
            }
        }
        terminator_slots(&source.terminator, &mut |used| any |= *used == slot);
        any
    }

    /// Where a value is computed, and how.
    fn definition(&self, value: Value) -> Option<(usize, usize, &Op)> {
        self.body.blocks.iter().enumerate().find_map(|(block, source)| {
            let at = source.instructions.iter().position(|instruction| instruction.result == Some(value))?;
            Some((block, at, &source.instructions[at].op))
        })
    }
}
