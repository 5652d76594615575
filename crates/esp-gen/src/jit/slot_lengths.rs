//! The values that equal the length of a slot as long as they live. An index that a branch has found below such a value
//! needs no bounds check (see `branch_facts`).

use super::code_layout::{CodeLayout, weighted_edges};
use super::liveness::Liveness;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{Base, Op, SlotId, Terminator, Value};
use quaject_esp_ir::visit::{block_slots, op_slots, terminator_slots};

/// Per slot: the values that equal its length wherever they are live; none if the length may change meanwhile.
pub(super) struct SlotLengths {
    of: Vec<Vec<bool>>,
}

impl SlotLengths {
    pub(super) fn new(layout: &CodeLayout<'_>, live: &Liveness) -> SlotLengths {
        let count = layout.body.values.len();
        let slots = layout.body.slots.len() as u32;
        let changed = changed_slots(layout);
        let of = (0..slots)
            .map(SlotId)
            .map(|slot| if changed[slot.0 as usize] { vec![false; count] } else { lengths(layout, live, slot) });
        SlotLengths { of: of.collect() }
    }

    pub(super) fn is_length(&self, slot: SlotId, value: Value) -> bool {
        self.of[slot.0 as usize][value.0 as usize]
    }
}

/// The slots that instructions or regions may write; what patterns of waits bind does not count.
fn changed_slots(layout: &CodeLayout<'_>) -> Vec<bool> {
    let mut changed = vec![false; layout.body.slots.len()];
    for block in &layout.order {
        let code = &layout.body.blocks[block.0 as usize];
        for instruction in &code.instructions {
            match &instruction.op {
                Op::Load(_) | Op::Length(_) => {}
                op => op_slots(op, &mut |slot| changed[slot.0 as usize] = true),
            }
        }
        if let Terminator::Wait(wait) = &code.terminator {
            for region in region_entries(wait).into_iter().flat_map(|entry| region_blocks(layout.body, entry)) {
                block_slots(&layout.body.blocks[region.0 as usize], &mut |slot| changed[slot.0 as usize] = true);
            }
        }
    }
    changed
}

fn lengths(layout: &CodeLayout<'_>, live: &Liveness, slot: SlotId) -> Vec<bool> {
    let body = layout.body;
    let mut is_length = vec![false; body.values.len()];
    let mut any = false;
    for block in &layout.order {
        let code = &body.blocks[block.0 as usize];
        if !layout.is_entry[block.0 as usize] {
            code.parameters.iter().for_each(|parameter| is_length[parameter.0 as usize] = true);
        }
        for instruction in &code.instructions {
            if let (Op::Length(place), Some(result)) = (&instruction.op, instruction.result)
                && place.base == Base::Slot(slot)
                && place.path.is_empty()
            {
                is_length[result.0 as usize] = true;
                any = true;
            }
        }
    }
    if !any {
        return vec![false; body.values.len()];
    }
    let mut changed = true;
    while changed {
        changed = false;
        for block in &layout.order {
            for (to, arguments, _) in weighted_edges(body, *block) {
                for (argument, parameter) in arguments.iter().zip(&body.blocks[to.0 as usize].parameters) {
                    if !is_length[argument.0 as usize] && is_length[parameter.0 as usize] {
                        is_length[parameter.0 as usize] = false;
                        changed = true;
                    }
                }
            }
        }
    }
    // A message that is received into the slot invalidates lengths that are live across the wait.
    for block in &layout.order {
        let terminator = &body.blocks[block.0 as usize].terminator;
        let mut binds = false;
        terminator_slots(terminator, &mut |named| binds |= *named == slot);
        let point = layout.points_of(*block).end - 1;
        if binds && live.before(point).any(|value| is_length[value.0 as usize]) {
            return vec![false; body.values.len()];
        }
    }
    is_length
}
