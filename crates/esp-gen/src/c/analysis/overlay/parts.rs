//! Slots that can be parts of other slots: what is copied into a message can be there from the beginning, what is copied
//! out of one can stay there. Knows where slots are written and what is alive there from its parent; nothing of classes
//! and colours.
//!
//! ```text
//!   in(c, $reply); answer = packet |> { from, reply }      `reply` is received where `answer` will hold it
//!   in(c, $answer); match answer { packet |> { _, $p } }   `p` is where it came
//! ```

use super::super::{Access, Analysis, Set, Unit};
use quaject_esp_ir::ir::*;
use quaject_esp_ir::typing::known_place_type;
use std::collections::{BTreeMap, BTreeSet};

/// A slot that is copied to a part of another one or from there.
pub(super) struct Part {
    pub(super) slot: SlotId,
    pub(super) whole: SlotId,
    /// The part: fields and payloads of the other one.
    pub(super) place: Place,
    /// The liveness units of the other one that hold it.
    units: Vec<Unit>,
    refused: bool,
}

/// All of a body.
pub(super) struct Parts {
    all: Vec<Part>,
    /// Indices of parts by either slot.
    of: BTreeMap<SlotId, BTreeSet<usize>>,
}

/// The steps of two places from a common base: whether they may have bytes in common.
pub(super) fn overlap(a: &[Projection], b: &[Projection]) -> bool {
    for steps in a.iter().zip(b) {
        match steps {
            (Projection::Field(a), Projection::Field(b)) if a != b => return false,
            // The payloads of a union are in the same place.
            (Projection::Payload(a), Projection::Payload(b)) if a != b => return true,
            (Projection::Field(_) | Projection::Payload(_) | Projection::Element(_) | Projection::Inside(_), _) => {}
        }
    }
    true
}

/// Whether what a place is does not depend on values.
pub(super) fn is_static(place: &Place) -> bool {
    place.path.iter().all(|step| match step {
        Projection::Field(_) | Projection::Payload(_) => true,
        Projection::Element(_) | Projection::Inside(_) => false,
    })
}

fn slot(place: &Place) -> Option<SlotId> {
    match place.base {
        Base::Slot(slot) => Some(slot),
        Base::Object(_) => None,
    }
}

impl Parts {
    /// Every slot that is copied to or from a part of another one.
    pub(super) fn find(analysis: &Analysis<'_>, main: &[BlockId], may_share: &[bool]) -> Parts {
        let body = analysis.body;
        let mut parts = Parts { all: Vec::new(), of: BTreeMap::new() };
        for instruction in main.iter().flat_map(|id| &body.blocks[id.0 as usize].instructions) {
            let Op::Copy { to, from } = &instruction.op else { continue };
            let (here, place) = if to.path.is_empty() { (to, from) } else { (from, to) };
            let (Some(slot), Some(whole)) = (slot(here), slot(place)) else { continue };
            let fits = here.path.is_empty() && !place.path.is_empty() && is_static(place) && slot != whole;
            if !fits || !may_share[slot.0 as usize] || !may_share[whole.0 as usize] {
                continue;
            }
            if known_place_type(analysis.types, &body.values, &body.slots, place) == body.slots[slot.0 as usize].ty
                && !parts.all.iter().any(|part| part.slot == slot && part.place == *place)
            {
                let (place, units) = (place.clone(), analysis.place_units(place));
                for side in [slot, whole] {
                    parts.of.entry(side).or_default().insert(parts.all.len());
                }
                parts.all.push(Part { slot, whole, place, units, refused: false });
            }
        }
        parts
    }

    /// Those that nothing speaks against.
    pub(super) fn accepted(self) -> Vec<Part> {
        self.all.into_iter().filter(|part| !part.refused).collect()
    }

    fn concerned(&self, slots: &BTreeSet<SlotId>) -> BTreeSet<usize> {
        slots.iter().filter_map(|slot| self.of.get(slot)).flatten().copied().collect()
    }

    /// Refuses slots that hold something of their own from the beginning.
    pub(super) fn at_entry(&mut self, live: &Set) {
        for part in &mut self.all {
            part.refused |= part.is_alive(live) && part.units.iter().any(|unit| live.contains(unit));
        }
    }

    /// Refuses those whose memory an instruction changes for one while the other needs it. `live` is alive after it.
    pub(super) fn at_instruction(&mut self, op: &Op, access: &Access<'_>, live: &Set) {
        let mut writes = access.writes.clone();
        if let Op::CallExtern { .. } = op {
            writes.extend(&access.reads);
        }
        let written: BTreeSet<SlotId> = writes.iter().filter_map(|place| slot(place)).collect();
        for index in self.concerned(&written) {
            let part = &mut self.all[index];
            if !part.refused && !part.is_moved(op) {
                part.refused = writes.iter().any(|place| part.clashes(op, place, access, live));
            }
        }
    }

    /// Refuses those of which a branch of a wait fills one while the other is needed after it.
    pub(super) fn at_branch(&mut self, bound: &[SlotId], live: &Set) {
        let bound: BTreeSet<SlotId> = bound.iter().copied().collect();
        for index in self.concerned(&bound) {
            let part = &mut self.all[index];
            let whole_is_needed = bound.contains(&part.whole) || part.units.iter().any(|unit| live.contains(unit));
            let part_is_needed = bound.contains(&part.slot) || part.is_alive(live);
            part.refused |= bound.contains(&part.slot) && whole_is_needed;
            part.refused |= bound.contains(&part.whole) && part_is_needed;
        }
    }

    /// Refuses what regions use, which run at any time.
    pub(super) fn at_regions(&mut self, used: &BTreeSet<SlotId>) {
        for index in self.concerned(used) {
            self.all[index].refused = true;
        }
    }
}

impl Part {
    fn is_alive(&self, live: &Set) -> bool {
        live.range(Unit::Slot(self.slot, 0)..=Unit::Slot(self.slot, u32::MAX)).next().is_some()
    }

    /// Whether an instruction copies between the two, which then is nothing to do.
    fn is_moved(&self, op: &Op) -> bool {
        let Op::Copy { to, from } = op else { return false };
        let is_here = |place: &Place| place.base == Base::Slot(self.slot) && place.path.is_empty();
        is_here(to) && *from == self.place || is_here(from) && *to == self.place
    }

    fn clashes(&self, op: &Op, written: &Place, access: &Access<'_>, live: &Set) -> bool {
        let reads = |slot: SlotId| access.reads.iter().any(|place| place.base == Base::Slot(slot));
        if written.base == Base::Slot(self.slot) {
            let reads_it = access
                .reads
                .iter()
                .any(|place| place.base == Base::Slot(self.whole) && overlap(&place.path, &self.place.path));
            return reads_it || self.units.iter().any(|unit| live.contains(unit));
        }
        if written.base != Base::Slot(self.whole) || !overlap(&written.path, &self.place.path) {
            return false;
        }
        // A tag is beside the payload.
        let is_beside = matches!(op, Op::SetTag(..)) && written.path.len() < self.place.path.len();
        !is_beside && (reads(self.slot) || self.is_alive(live))
    }
}
