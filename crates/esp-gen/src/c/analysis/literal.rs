//! Slots that always hold one literal once they hold anything: constants of the C program, so that nothing is copied
//! where one is used. Knows the flow IR; knows no homes.

use super::{Analysis, Set, Unit};
use quaject_esp_ir::access::Access;
use quaject_esp_ir::cfg::region_entries;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::collections::{BTreeMap, BTreeSet};

/// Per slot that always holds one literal where it is read: that literal. `at_start` is what is alive where the body
/// begins.
pub(super) fn literals(analysis: &Analysis<'_>, at_start: &Set) -> BTreeMap<SlotId, Vec<u8>> {
    let body = analysis.body;
    let mut literals: BTreeMap<SlotId, Vec<u8>> = BTreeMap::new();
    // What is alive from the start on is read before it has been written.
    let mut others: BTreeSet<SlotId> = at_start.iter().filter_map(slot_of).collect();
    for block in &body.blocks {
        for Instruction { op, .. } in &block.instructions {
            if let Op::SetBytes(Place { base: Base::Slot(slot), path }, bytes) = op
                && path.is_empty()
            {
                if literals.entry(*slot).or_insert_with(|| bytes.to_vec()) != &bytes[..] {
                    others.insert(*slot);
                }
                continue;
            }
            let mut access = Access::default();
            access.op(op);
            others.extend(access.writes.iter().filter_map(|place| base_slot(place)));
            if let Op::CallExtern { arguments, .. } = op {
                let places = arguments.iter().filter_map(|argument| match argument {
                    Operand::Place(place) => Some(place),
                    Operand::Value(_) => None,
                });
                // C may write what it is given.
                others.extend(places.filter_map(base_slot));
            }
        }
        if let Terminator::Wait(wait) = &block.terminator {
            for branch in &wait.branches {
                if let Operation::In { patterns, .. } = &branch.operation {
                    let mut bound = Vec::new();
                    patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| bound.push(slot)));
                    others.extend(bound);
                }
            }
            // Regions are functions of their own.
            others.extend(region_entries(wait).into_iter().flat_map(|entry| analysis.region_uses(entry).1));
        }
    }
    literals.retain(|slot, _| !others.contains(slot));
    literals
}

fn slot_of(unit: &Unit) -> Option<SlotId> {
    match unit {
        Unit::Slot(slot, _) => Some(*slot),
        Unit::Value(_) => None,
    }
}

fn base_slot(place: &Place) -> Option<SlotId> {
    match place.base {
        Base::Slot(slot) => Some(slot),
        Base::Object(_) => None,
    }
}
