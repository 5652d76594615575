//! Slots that hold one constant string for the whole run. They are initialised on entry, and an index into them is
//! compared with a constant. This is operand selection (an immediate length), not a change of the program. Knows no
//! machine.

use super::code_layout::CodeLayout;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{Base, BlockId, Op, Place, Projection, SlotId, Terminator};
use quaject_esp_ir::visit::{block_slots, op_slots, terminator_slots};

/// Longer strings are written where the program writes them.
const MAX_STRING_BYTES: usize = 32;

/// Per slot: the string, if it is such a slot.
pub(super) struct ConstantSlots {
    pub(super) strings: Vec<Option<Vec<u8>>>,
}

#[derive(Clone)]
enum SlotContent {
    Nothing,
    String(Vec<u8>),
    Other,
}

impl ConstantSlots {
    pub(super) fn new(layout: &CodeLayout<'_>) -> ConstantSlots {
        let mut found = vec![SlotContent::Nothing; layout.body.slots.len()];
        for block in &layout.order {
            scan_block(layout, *block, &mut found);
        }
        let string = |found: SlotContent| match found {
            SlotContent::String(string) => Some(string),
            SlotContent::Nothing | SlotContent::Other => None,
        };
        ConstantSlots { strings: found.into_iter().map(string).collect() }
    }

    /// The string that a slot always holds, if it is such a slot.
    pub(super) fn string(&self, slot: SlotId) -> Option<&[u8]> {
        self.strings[slot.0 as usize].as_deref()
    }
}

fn scan_block(layout: &CodeLayout<'_>, block: BlockId, found: &mut [SlotContent]) {
    let body = layout.body;
    let code = &body.blocks[block.0 as usize];
    let mut written: Vec<SlotId> = Vec::new();
    for instruction in &code.instructions {
        let slot_of = |place: &Place| match place.base {
            Base::Slot(slot) => Some(slot),
            Base::Object(_) | Base::Constant(..) => None,
        };
        match &instruction.op {
            Op::SetBytes(place, bytes) if place.path.is_empty() && bytes.len() <= MAX_STRING_BYTES => {
                if let Some(slot) = slot_of(place) {
                    let known = &mut found[slot.0 as usize];
                    *known = match known {
                        SlotContent::Nothing => SlotContent::String(bytes.clone()),
                        SlotContent::String(string) if string == bytes => SlotContent::String(string.clone()),
                        SlotContent::String(_) | SlotContent::Other => SlotContent::Other,
                    };
                    written.push(slot);
                }
            }
            // The same block has written the string before.
            Op::Load(place)
                if matches!(place.path[..], [Projection::Element(_) | Projection::Inside(_)] | [])
                    && reads(place, &written) => {}
            Op::Length(place) if place.path.is_empty() && reads(place, &written) => {}
            op => op_slots(op, &mut |slot| found[slot.0 as usize] = SlotContent::Other),
        }
    }
    terminator_slots(&code.terminator, &mut |slot| found[slot.0 as usize] = SlotContent::Other);
    if let Terminator::Wait(wait) = &code.terminator {
        for block in region_entries(wait).into_iter().flat_map(|entry| region_blocks(body, entry)) {
            block_slots(&body.blocks[block.0 as usize], &mut |slot| found[slot.0 as usize] = SlotContent::Other);
        }
    }
}

fn reads(place: &Place, written: &[SlotId]) -> bool {
    match place.base {
        Base::Slot(slot) => written.contains(&slot),
        Base::Object(_) | Base::Constant(..) => true,
    }
}
