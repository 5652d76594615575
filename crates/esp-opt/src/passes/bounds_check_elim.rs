//! Bounds-check elimination: marks an index as in range if its value range shows it, or if a dominating check of the
//! same index does. Moves no code, so that faults occur where they did.

use super::gvn::literal_bytes;
use crate::facts::Fact;
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::intervals::{Intervals, intervals_by_block};
use quaject_esp_ir::ir::{Base, Body, Place, Projection, Type, TypeTable, Value};
use quaject_esp_ir::typing::place_type;
use quaject_esp_ir::visit::{op_places, op_places_mut};
use rustc_hash::FxHashMap;

/// Marks indices that are in range; whether there were any.
pub(super) fn mark_inside(body: &mut Body, types: &TypeTable, checked: bool) -> bool {
    let is_index = |place: &Place| place.path.iter().any(|step| matches!(step, Projection::Element(_)));
    let mut has_any = false;
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        op_places(&instruction.op, &mut |place| has_any |= is_index(place));
    }
    if !has_any {
        return false;
    }
    let known = intervals_by_block(body, types, checked);
    let literals: FxHashMap<Value, i128> =
        literal_bytes(body).into_iter().map(|(value, literal)| (value, literal.len() as i128)).collect();
    let dominators = Dominators::new(body);
    // Per index: the blocks that check it, and the length.
    let mut checked_in: FxHashMap<Value, Vec<(usize, i128)>> = FxHashMap::default();
    let mut any = false;
    for index in dominators.order().to_vec() {
        for position in 0..body.blocks[index].instructions.len() {
            let mut instruction = body.blocks[index].instructions[position].clone();
            let literal = instruction.result.and_then(|result| literals.get(&result)).copied();
            let mut proof = RangeProof {
                body,
                types,
                known: &known,
                dominators: &dominators,
                checked_in: &checked_in,
                block: index,
                checks: Vec::new(),
                any: false,
            };
            op_places_mut(&mut instruction.op, &mut |place| proof.place(place, literal));
            let RangeProof { checks, any: is_changed, .. } = proof;
            // The checks of one instruction have no order among each other.
            for (value, length) in checks {
                checked_in.entry(value).or_default().push((index, length));
            }
            if is_changed {
                any = true;
                body.blocks[index].instructions[position] = instruction;
            }
        }
    }
    any
}

struct RangeProof<'a> {
    body: &'a Body,
    types: &'a TypeTable,
    known: &'a Intervals,
    dominators: &'a Dominators,
    checked_in: &'a FxHashMap<Value, Vec<(usize, i128)>>,
    block: usize,
    /// The checks that remain in this instruction.
    checks: Vec<(Value, i128)>,
    any: bool,
}

impl RangeProof<'_> {
    /// Marks a place's indices in order; `literal` is the length of the literal at the place.
    fn place(&mut self, place: &mut Place, literal: Option<i128>) {
        for number in 0..place.path.len() {
            let Projection::Element(index) = place.path[number] else { continue };
            let array = Place { base: place.base, path: place.path[..number].to_vec() };
            let length = match place_type(self.types, self.body, &array).map(|ty| self.types.get(ty)) {
                Some(Type::Array { length, .. }) => i128::from(*length),
                // The length of `bytes` is known only of a literal.
                _ => match (literal, place.base, number) {
                    (Some(length), Base::Slot(_), 0) => length,
                    _ => continue,
                },
            };
            if self.is_inside(index, length) {
                place.path[number] = Projection::Inside(index);
                self.any = true;
            } else {
                self.checks.push((index, length));
            }
        }
    }

    fn is_inside(&self, index: Value, length: i128) -> bool {
        if length <= 0 {
            return false;
        }
        let inside = Fact::between(0, length - 1);
        let before = |(block, checked): &(usize, i128)| {
            *checked <= length && (*block == self.block || self.dominators.dominates(*block, self.block))
        };
        self.known.at(self.block, index).is_some_and(|fact| fact.implies(&inside))
            || self.checked_in.get(&index).is_some_and(|checked_in| checked_in.iter().any(before))
    }
}
