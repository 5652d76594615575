//! Slots that hold the same literal wherever they are read: they become constants of the C program, so that the literal
//! is not copied where it is used. Knows the flow IR; knows nothing of storage.

use super::liveness::{LiveSet, LiveUnit, Liveness};
use quaject_esp_ir::access::Access;
use quaject_esp_ir::cfg::region_entries;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::collections::{BTreeMap, BTreeSet};

/// The literal of each slot that holds the same one wherever it is read. `at_start` is what is live at the entry.
pub(super) fn literals(liveness: &Liveness<'_>, at_start: &LiveSet) -> BTreeMap<SlotId, Vec<u8>> {
    let body = liveness.body;
    let mut literals: BTreeMap<SlotId, Vec<u8>> = BTreeMap::new();
    // A slot that is live at the entry is read before it is written.
    let mut disqualified: BTreeSet<SlotId> = at_start.iter().filter_map(LiveUnit::slot).collect();
    for block in &body.blocks {
        for Instruction { op, .. } in &block.instructions {
            if let Op::SetBytes(Place { base: Base::Slot(slot), path }, bytes) = op
                && path.is_empty()
            {
                if literals.entry(*slot).or_insert_with(|| bytes.to_vec()) != &bytes[..] {
                    disqualified.insert(*slot);
                }
                continue;
            }
            let mut access = Access::default();
            access.op(op);
            disqualified.extend(access.writes.iter().filter_map(|place| base_slot(place)));
            if let Op::CallExtern { arguments, .. } = op {
                let places = arguments.iter().filter_map(|argument| match argument {
                    Operand::Place(place) => Some(place),
                    Operand::Value(_) => None,
                });
                // C may write its arguments.
                disqualified.extend(places.filter_map(base_slot));
            }
        }
        if let Terminator::Wait(wait) = &block.terminator {
            for branch in &wait.branches {
                if let Operation::In { patterns, .. } = &branch.operation {
                    let mut bound = Vec::new();
                    patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| bound.push(slot)));
                    disqualified.extend(bound);
                }
            }
            // Regions are C functions of their own, which do not see the constant.
            disqualified.extend(region_entries(wait).into_iter().flat_map(|entry| liveness.region_uses(entry).1));
        }
    }
    literals.retain(|slot, _| !disqualified.contains(slot));
    literals
}

fn base_slot(place: &Place) -> Option<SlotId> {
    match place.base {
        Base::Slot(slot) => Some(slot),
        Base::Object(_) | Base::Constant(..) => None,
    }
}
