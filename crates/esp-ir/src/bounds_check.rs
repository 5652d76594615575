//! Bounds checks that a dominating comparison makes redundant: a loop over bytes compares its index with their length,
//! and no write changes the length between the comparison and the access. Changes nothing.

use crate::cfg::{Regions, successors};
use crate::dominators::Dominators;
use crate::facts::Fact;
use crate::intervals::Intervals;
use crate::ir::{Base, BinaryOp, BlockId, Body, Op, Place, Projection, SlotId, Terminator, Value};
use crate::visit::{op_slots, terminator_slots};

/// The analyses of a body that decide whether an index is in bounds.
pub struct BoundsCheck<'a> {
    /// The body.
    pub body: &'a Body,
    /// The intervals of its values.
    pub intervals: &'a Intervals,
    /// Its dominators.
    pub dominators: &'a Dominators,
}

impl BoundsCheck<'_> {
    /// Whether a place in a block is a byte of a slot, in bounds.
    pub fn is_in_bounds(&self, place: &Place, block: usize) -> bool {
        let (Base::Slot(slot), [Projection::Element(index)]) = (place.base, &place.path[..]) else { return false };
        let is_positive = || {
            let positive = Fact::between(0, i128::from(i64::MAX));
            self.intervals.at(block, *index).is_some_and(|fact| fact.implies(&positive))
        };
        self.lengths_above(*index, block).any(|length| self.is_length(slot, length, block)) && is_positive()
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
    fn is_length(&self, slot: SlotId, length: Value, block: usize) -> bool {
        let Some((from, at, Op::Length(of))) = self.definition(length) else { return false };
        if of.base != Base::Slot(slot) || !of.path.is_empty() {
            return false;
        }
        // From each block that may write the slot, every path to this block passes the computation of the length.
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

    /// Whether a block may write a slot, after the given instruction if it is in that block. Reads count too, except of
    /// bytes and of the length.
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

    /// The block, position and operation that define a value.
    fn definition(&self, value: Value) -> Option<(usize, usize, &Op)> {
        self.body.blocks.iter().enumerate().find_map(|(block, source)| {
            let at = source.instructions.iter().position(|instruction| instruction.result == Some(value))?;
            Some((block, at, &source.instructions[at].op))
        })
    }
}
