//! Which values and which parts of slots are live at each point of a body: backward data flow on the blocks that are
//! reached without entering a region. A wait keeps live what its patterns, payloads and regions use, as partners
//! evaluate them while the instance waits.

use quaject_esp_ir::access::{Access, WriteEffect, touched};
use quaject_esp_ir::cfg::{Regions, region_blocks, region_entries, successors};
use quaject_esp_ir::dataflow::solve_backward;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::collections::BTreeSet;

/// What liveness is computed for: values, and parts of slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LiveUnit {
    Value(Value),
    /// A top-level field of a record, or unit 0 of any other slot.
    Slot(SlotId, u32),
}

impl LiveUnit {
    /// The value that it is.
    pub(super) fn value(&self) -> Option<Value> {
        match self {
            LiveUnit::Value(value) => Some(*value),
            LiveUnit::Slot(..) => None,
        }
    }

    /// The slot that it is a part of.
    pub(super) fn slot(&self) -> Option<SlotId> {
        match self {
            LiveUnit::Slot(slot, _) => Some(*slot),
            LiveUnit::Value(_) => None,
        }
    }
}

/// Live units at one point.
pub(super) type LiveSet = BTreeSet<LiveUnit>;

/// Liveness of one body.
pub(super) struct Liveness<'a> {
    pub(super) body: &'a Body,
    pub(super) types: &'a TypeTable,
}

impl Liveness<'_> {
    /// How many units a slot has.
    pub(super) fn unit_count(&self, slot: SlotId) -> u32 {
        match self.types.get(self.body.slots[slot.0 as usize].ty) {
            Type::Record(id) => self.types.aggregate(*id).parts.len().max(1) as u32,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Union(_)
            | Type::Boxed(_) => 1,
        }
    }

    /// The units that a place touches: one field, or all of the slot.
    pub(super) fn place_units(&self, place: &Place) -> Vec<LiveUnit> {
        let Base::Slot(slot) = place.base else { return Vec::new() };
        match (self.unit_count(slot), place.path.first()) {
            (count, Some(Projection::Field(field))) if count > 1 => vec![LiveUnit::Slot(slot, *field)],
            (
                count,
                Some(Projection::Field(_) | Projection::Element(_) | Projection::Inside(_) | Projection::Payload(_))
                | None,
            ) => (0..count).map(|unit| LiveUnit::Slot(slot, unit)).collect(),
        }
    }

    /// Whether writing to the place replaces all of its units' contents.
    pub(super) fn covers(&self, place: &Place, op: &Op) -> bool {
        let depth = match place.base {
            Base::Slot(slot) => usize::from(self.unit_count(slot) > 1),
            Base::Object(_) | Base::Constant(..) => return false,
        };
        let replaces = match WriteEffect::of(op) {
            WriteEffect::Replaces | WriteEffect::ReplacedByExtern => true,
            WriteEffect::Updates | WriteEffect::None => false,
        };
        replaces && place.path.len() <= depth && place.path.iter().all(|step| matches!(step, Projection::Field(_)))
    }

    /// Adds what an instruction or terminator reads.
    fn apply(&self, access: &Access<'_>, live: &mut LiveSet) {
        live.extend(access.values.iter().map(|value| LiveUnit::Value(*value)));
        for place in &access.reads {
            live.extend(self.place_units(place));
        }
    }

    /// What an instance that waits here needs beyond the needs of its continuations: operands of patterns and payloads,
    /// and what regions read.
    pub(super) fn wait_uses(&self, wait: &Wait) -> LiveSet {
        let mut live = LiveSet::new();
        for branch in &wait.branches {
            let mut access = Access::default();
            match &branch.operation {
                Operation::In { patterns, .. } => {
                    patterns.iter().for_each(|pattern| access.pattern(pattern));
                    let mut slots = Vec::new();
                    patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
                    for slot in slots {
                        live.extend((0..self.unit_count(slot)).map(|unit| LiveUnit::Slot(slot, unit)));
                    }
                }
                Operation::Out { payload: Payload::Ready(parts), .. } => {
                    for part in parts {
                        match &part.operand {
                            // Parked while the instance waits, unless the frame holds it.
                            Operand::Value(_) => {}
                            Operand::Place(place) => access.read(place),
                        }
                    }
                }
                Operation::Out { payload: Payload::Region(_), .. } | Operation::After { .. } => {}
            }
            self.apply(&access, &mut live);
        }
        for entry in region_entries(wait) {
            let (outer, slots) = self.region_uses(entry);
            live.extend(outer.into_iter().map(LiveUnit::Value));
            for slot in slots {
                live.extend((0..self.unit_count(slot)).map(|unit| LiveUnit::Slot(slot, unit)));
            }
        }
        live
    }

    /// Values defined outside of a region that it uses, and slots that it touches.
    pub(super) fn region_uses(&self, entry: BlockId) -> (BTreeSet<Value>, BTreeSet<SlotId>) {
        let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
        let blocks = region_blocks(self.body, entry);
        for block in &blocks {
            touched(self.body, *block, &mut values, &mut slots);
        }
        for block in &blocks {
            let block = &self.body.blocks[block.0 as usize];
            for own in block.parameters.iter().chain(block.instructions.iter().filter_map(|i| i.result.as_ref())) {
                values.remove(own);
            }
        }
        (values, slots)
    }

    /// What is live at the end of a block, without the uses of its terminator.
    pub(super) fn live_out(&self, terminator: &Terminator, live_in: &[LiveSet]) -> LiveSet {
        let mut live = LiveSet::new();
        for next in successors(terminator, Regions::Skip) {
            live.extend(&live_in[next.0 as usize]);
        }
        if let Terminator::Leave(leave) = terminator {
            // Values are set there; slots are not.
            let there = live_in[leave.trigger.to.0 as usize].iter();
            live.extend(there.filter(|unit| matches!(unit, LiveUnit::Slot(..))));
        }
        live
    }

    /// Adds what a terminator uses.
    pub(super) fn terminator_uses(&self, terminator: &Terminator, live: &mut LiveSet) {
        let mut access = Access::default();
        access.terminator(terminator);
        self.apply(&access, live);
        if let Terminator::Wait(wait) = terminator {
            live.extend(self.wait_uses(wait));
        }
    }

    /// Steps backward over one instruction.
    pub(super) fn instruction(&self, instruction: &Instruction, live: &mut LiveSet) {
        let mut access = Access::default();
        access.op(&instruction.op);
        if let Some(result) = instruction.result {
            live.remove(&LiveUnit::Value(result));
        }
        for place in &access.writes {
            if self.covers(place, &instruction.op) {
                for unit in self.place_units(place) {
                    live.remove(&unit);
                }
            }
        }
        self.apply(&access, live);
    }

    /// What is live at the beginning of each of these blocks: the least fixed point.
    pub(super) fn solve(&self, blocks: &[BlockId]) -> Vec<LiveSet> {
        let mut live_in = vec![LiveSet::new(); self.body.blocks.len()];
        solve_backward(self.body, blocks, |id| {
            let live = self.live_at(id, &live_in);
            let before = &mut live_in[id.0 as usize];
            let has_changed = *before != live;
            *before = live;
            has_changed
        });
        live_in
    }

    /// What is live at the beginning of a block.
    fn live_at(&self, id: BlockId, live_in: &[LiveSet]) -> LiveSet {
        let block = &self.body.blocks[id.0 as usize];
        let mut live = self.live_out(&block.terminator, live_in);
        self.terminator_uses(&block.terminator, &mut live);
        for instruction in block.instructions.iter().rev() {
            self.instruction(instruction, &mut live);
        }
        for parameter in &block.parameters {
            live.remove(&LiveUnit::Value(*parameter));
        }
        live
    }
}
