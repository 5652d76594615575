//! Sub-slot placement: a slot that is copied into a part of another one can be built there, and a slot that is copied
//! out of one can stay there. Finds the candidates and refuses those whose live ranges conflict with their host's.
//! Knows nothing of classes and colours.
//!
//! ```text
//!   in(c, $reply); answer = packet |> { from, reply }      `reply` is received where `answer` holds it
//!   in(c, $answer); match answer { packet |> { _, $p } }   `p` stays inside `answer`
//! ```

use super::super::liveness::{LiveSet, LiveUnit, Liveness};
use quaject_esp_ir::access::Access;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::typing::known_place_type;
use std::collections::{BTreeMap, BTreeSet};

/// A slot that is copied to or from a part of another one, its host.
pub(super) struct Subslot {
    pub(super) slot: SlotId,
    pub(super) host: SlotId,
    /// The part: a path of fields and payloads of the host.
    pub(super) place: Place,
    /// The liveness units of the host that hold it.
    units: Vec<LiveUnit>,
    refused: bool,
}

/// All candidates of a body.
pub(super) struct Subslots {
    all: Vec<Subslot>,
    /// Indices into `all` by subslot and by host.
    of: BTreeMap<SlotId, BTreeSet<usize>>,
}

/// Whether two paths from a common base may have bytes in common.
pub(super) fn overlap(a: &[Projection], b: &[Projection]) -> bool {
    for steps in a.iter().zip(b) {
        match steps {
            (Projection::Field(a), Projection::Field(b)) if a != b => return false,
            // The payloads of a union have one address.
            (Projection::Payload(a), Projection::Payload(b)) if a != b => return true,
            (Projection::Field(_) | Projection::Payload(_) | Projection::Element(_) | Projection::Inside(_), _) => {}
        }
    }
    true
}

/// Whether the address of a place depends on no value.
pub(super) fn is_static(place: &Place) -> bool {
    place.path.iter().all(|step| match step {
        Projection::Field(_) | Projection::Payload(_) => true,
        Projection::Element(_) | Projection::Inside(_) => false,
    })
}

fn slot(place: &Place) -> Option<SlotId> {
    match place.base {
        Base::Slot(slot) => Some(slot),
        Base::Object(_) | Base::Constant(..) => None,
    }
}

impl Subslots {
    /// Every slot that is copied to or from a part of another one.
    pub(super) fn find(liveness: &Liveness<'_>, main: &[BlockId], may_share: &[bool]) -> Subslots {
        let body = liveness.body;
        let mut subslots = Subslots { all: Vec::new(), of: BTreeMap::new() };
        for instruction in main.iter().flat_map(|id| &body.blocks[id.0 as usize].instructions) {
            let Op::Copy { to, from } = &instruction.op else { continue };
            let (here, place) = if to.path.is_empty() { (to, from) } else { (from, to) };
            let (Some(slot), Some(host)) = (slot(here), slot(place)) else { continue };
            let is_candidate = here.path.is_empty() && !place.path.is_empty() && is_static(place) && slot != host;
            if !is_candidate || !may_share[slot.0 as usize] || !may_share[host.0 as usize] {
                continue;
            }
            if known_place_type(liveness.types, &body.values, &body.slots, place) == body.slots[slot.0 as usize].ty
                && !subslots.all.iter().any(|subslot| subslot.slot == slot && subslot.place == *place)
            {
                let (place, units) = (place.clone(), liveness.place_units(place));
                for side in [slot, host] {
                    subslots.of.entry(side).or_default().insert(subslots.all.len());
                }
                subslots.all.push(Subslot { slot, host, place, units, refused: false });
            }
        }
        subslots
    }

    /// Those that were not refused.
    pub(super) fn accepted(self) -> Vec<Subslot> {
        self.all.into_iter().filter(|subslot| !subslot.refused).collect()
    }

    fn concerned(&self, slots: &BTreeSet<SlotId>) -> BTreeSet<usize> {
        slots.iter().filter_map(|slot| self.of.get(slot)).flatten().copied().collect()
    }

    /// Refuses those of which both slot and part are live at the entry.
    pub(super) fn at_entry(&mut self, live: &LiveSet) {
        for subslot in &mut self.all {
            subslot.refused |= subslot.is_live(live) && subslot.units.iter().any(|unit| live.contains(unit));
        }
    }

    /// Refuses those of which an instruction writes one while the other is live. `live` is the set behind the
    /// instruction.
    pub(super) fn at_instruction(&mut self, op: &Op, access: &Access<'_>, live: &LiveSet) {
        let mut writes = access.writes.clone();
        if let Op::CallExtern { .. } = op {
            writes.extend(&access.reads);
        }
        let written: BTreeSet<SlotId> = writes.iter().filter_map(|place| slot(place)).collect();
        for index in self.concerned(&written) {
            let subslot = &mut self.all[index];
            if !subslot.refused && !subslot.is_copy_between(op) {
                subslot.refused = writes.iter().any(|place| subslot.interferes(op, place, access, live));
            }
        }
    }

    /// Refuses those of which a branch of a wait binds one while the other is live behind it.
    pub(super) fn at_branch(&mut self, bound: &[SlotId], live: &LiveSet) {
        let bound: BTreeSet<SlotId> = bound.iter().copied().collect();
        for index in self.concerned(&bound) {
            let subslot = &mut self.all[index];
            let host_is_live = bound.contains(&subslot.host) || subslot.units.iter().any(|unit| live.contains(unit));
            let subslot_is_live = bound.contains(&subslot.slot) || subslot.is_live(live);
            subslot.refused |= bound.contains(&subslot.slot) && host_is_live;
            subslot.refused |= bound.contains(&subslot.host) && subslot_is_live;
        }
    }

    /// Refuses slots that regions use, as these run at any time during a wait.
    pub(super) fn at_regions(&mut self, used: &BTreeSet<SlotId>) {
        for index in self.concerned(used) {
            self.all[index].refused = true;
        }
    }
}

impl Subslot {
    fn is_live(&self, live: &LiveSet) -> bool {
        live.range(LiveUnit::Slot(self.slot, 0)..=LiveUnit::Slot(self.slot, u32::MAX)).next().is_some()
    }

    /// Whether an instruction copies between the two, which is a no-op once they share memory.
    fn is_copy_between(&self, op: &Op) -> bool {
        let Op::Copy { to, from } = op else { return false };
        let is_here = |place: &Place| place.base == Base::Slot(self.slot) && place.path.is_empty();
        is_here(to) && *from == self.place || is_here(from) && *to == self.place
    }

    fn interferes(&self, op: &Op, written: &Place, access: &Access<'_>, live: &LiveSet) -> bool {
        let reads = |slot: SlotId| access.reads.iter().any(|place| place.base == Base::Slot(slot));
        if written.base == Base::Slot(self.slot) {
            let reads_it = access
                .reads
                .iter()
                .any(|place| place.base == Base::Slot(self.host) && overlap(&place.path, &self.place.path));
            return reads_it || self.units.iter().any(|unit| live.contains(unit));
        }
        if written.base != Base::Slot(self.host) || !overlap(&written.path, &self.place.path) {
            return false;
        }
        // A tag does not overlap the payload.
        let is_disjoint = matches!(op, Op::SetTag(..)) && written.path.len() < self.place.path.len();
        !is_disjoint && (reads(self.slot) || self.is_live(live))
    }
}
