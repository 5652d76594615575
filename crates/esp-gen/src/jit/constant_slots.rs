//! Slots that only ever hold one string: they are written once on the way in, and every index into them is compared
//! with a constant. Knows no machine.

use super::flow::Flow;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{Base, BlockId, Op, Place, Projection, SlotId, Terminator};
use quaject_esp_ir::visit::{block_slots, op_slots, terminator_slots};

/// Longer strings are written where the program says so.
const LONGEST: usize = 32;

/// Per slot: the string, if it is such a slot.
pub(super) struct ConstantSlots {
    pub(super) strings: Vec<Option<Vec<u8>>>,
}

#[derive(Clone)]
enum Found {
    Nothing,
    String(Vec<u8>),
    Other,
}

impl ConstantSlots {
    pub(super) fn new(flow: &Flow<'_>) -> ConstantSlots {
        let mut found = vec![Found::Nothing; flow.body.slots.len()];
        for block in &flow.order {
            look(flow, *block, &mut found);
        }
        let string = |found: Found| match found {
            Found::String(string) => Some(string),
            Found::Nothing | Found::Other => None,
        };
        ConstantSlots { strings: found.into_iter().map(string).collect() }
    }

    /// The string in a slot, if it only ever holds one.
    pub(super) fn string(&self, slot: SlotId) -> Option<&[u8]> {
        self.strings[slot.0 as usize].as_deref()
    }
}

fn look(flow: &Flow<'_>, block: BlockId, found: &mut [Found]) {
    let body = flow.body;
    let code = &body.blocks[block.0 as usize];
    let mut written: Vec<SlotId> = Vec::new();
    for instruction in &code.instructions {
        let slot_of = |place: &Place| match place.base {
            Base::Slot(slot) => Some(slot),
            Base::Object(_) => None,
        };
        match &instruction.op {
            Op::SetBytes(place, bytes) if place.path.is_empty() && bytes.len() <= LONGEST => {
                if let Some(slot) = slot_of(place) {
                    let known = &mut found[slot.0 as usize];
                    *known = match known {
                        Found::Nothing => Found::String(bytes.clone()),
                        Found::String(string) if string == bytes => Found::String(string.clone()),
                        Found::String(_) | Found::Other => Found::Other,
                    };
                    written.push(slot);
                }
            }
            // What is read was written before, in the same block.
            Op::Load(place)
                if matches!(place.path[..], [Projection::Element(_) | Projection::Inside(_)] | [])
                    && reads(place, &written) => {}
            Op::Length(place) if place.path.is_empty() && reads(place, &written) => {}
            op => op_slots(op, &mut |slot| found[slot.0 as usize] = Found::Other),
        }
    }
    terminator_slots(&code.terminator, &mut |slot| found[slot.0 as usize] = Found::Other);
    if let Terminator::Wait(wait) = &code.terminator {
        for block in region_entries(wait).into_iter().flat_map(|entry| region_blocks(body, entry)) {
            block_slots(&body.blocks[block.0 as usize], &mut |slot| found[slot.0 as usize] = Found::Other);
        }
    }
}

fn reads(place: &Place, written: &[SlotId]) -> bool {
    match place.base {
        Base::Slot(slot) => written.contains(&slot),
        Base::Object(_) => true,
    }
}
