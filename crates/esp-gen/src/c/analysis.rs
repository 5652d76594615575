//! Decides where each value and slot of a process lives: in a local of the generated function, or, if it must
//! survive a wait, in the instance's frame. Versions of one variable share a home when they are never alive at once,
//! so that a loop does not copy; slots of a frame share memory when nothing in them is needed at once. Knows the flow IR;
//! knows no C.

mod coalesce;
mod held;
mod literal;
mod overlay;

use crate::layout::{Layouts, View};
use coalesce::coalesce;
pub(crate) use held::Held;
use held::held;
use literal::literals;
pub(crate) use overlay::Overlay;
use quaject_esp_ir::access::{Access, touched};
use quaject_esp_ir::cfg::{Regions, reachable, region_blocks, region_entries, successors};
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::collections::{BTreeMap, BTreeSet};

/// Where a value lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// A local, named after this value.
    Local(Value),
    /// A member of the frame, named after this value.
    Frame(Value),
    /// Nowhere: written out at each use.
    Constant(i128),
    /// Nowhere: the instance's number.
    OwnId,
}

/// Where a slot lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotHome {
    /// A local.
    Local,
    /// A member of the frame.
    Frame,
    /// In another instance's frame: a fast path uses it.
    Lent,
    /// Nowhere: nothing uses it.
    Unused,
    /// Nowhere: a constant.
    Literal,
}

/// What fast paths ask of a body.
#[derive(Default)]
pub(crate) struct Pins {
    /// Blocks at whose start everything that is live is in the frame.
    pub(crate) blocks: BTreeSet<BlockId>,
    /// Those of them at which instances go on.
    pub(crate) resumes: BTreeSet<BlockId>,
    /// Slots that are in the frame.
    pub(crate) slots: BTreeSet<SlotId>,
    /// Slots that stand for those of other instances.
    pub(crate) lent: BTreeSet<SlotId>,
    /// Blocks that end in asking the world in a function of a path.
    pub(crate) asks: BTreeSet<BlockId>,
    /// Those of them, and their branches, behind which it may pause.
    pub(crate) pauses: BTreeSet<(BlockId, usize)>,
}

/// Slots larger than this many bytes live in the frame even if no wait needs them, so that the stack stays small.
const LARGEST_LOCAL_BYTES: u64 = 128;

/// The homes of one body, and which of its blocks run where.
pub(crate) struct Homes {
    /// By value.
    pub(crate) values: Vec<Home>,
    /// By slot.
    pub(crate) slots: Vec<SlotHome>,
    /// How those in the frame share memory.
    pub(crate) overlay: Overlay,
    /// Per block and branch behind which a path may pause: the locals it keeps.
    pub(crate) paused: BTreeMap<(BlockId, usize), Vec<Value>>,
    /// What loops hold of the frame.
    pub(crate) held: Held,
    /// What slots hold that are constants.
    pub(crate) literals: BTreeMap<SlotId, Vec<u8>>,
    /// Blocks reached from the entry without entering a region, in ascending order.
    pub(crate) main: Vec<BlockId>,
}

/// What liveness counts: values, and parts of slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Unit {
    Value(Value),
    /// A top-level field of a record, or unit 0 of any other slot.
    Slot(SlotId, u32),
}

type Set = BTreeSet<Unit>;

struct Analysis<'a> {
    body: &'a Body,
    types: &'a TypeTable,
}

impl Analysis<'_> {
    fn units(&self, slot: SlotId) -> u32 {
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

    /// The units a place touches: one field, or the whole slot.
    fn place_units(&self, place: &Place) -> Vec<Unit> {
        let Base::Slot(slot) = place.base else { return Vec::new() };
        match (self.units(slot), place.path.first()) {
            (count, Some(Projection::Field(field))) if count > 1 => vec![Unit::Slot(slot, *field)],
            (
                count,
                Some(Projection::Field(_) | Projection::Element(_) | Projection::Inside(_) | Projection::Payload(_))
                | None,
            ) => (0..count).map(|unit| Unit::Slot(slot, unit)).collect(),
        }
    }

    /// Whether writing to the place replaces all of its units' contents.
    fn covers(&self, place: &Place, op: &Op) -> bool {
        let depth = match place.base {
            Base::Slot(slot) => usize::from(self.units(slot) > 1),
            Base::Object(_) => return false,
        };
        let replaces = match op {
            Op::Store(..)
            | Op::Copy { .. }
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::CopySlice { .. }
            | Op::CallFunction { .. }
            | Op::CallExtern { .. } => true,
            Op::SetLength(..)
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::StoreNumber { .. }
            | Op::StoreBits { .. }
            | Op::Constant(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Convert(_)
            | Op::Load(_)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::LoadNumber { .. }
            | Op::LoadBits { .. }
            | Op::Equal(..)
            | Op::OwnId
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::Allocate(_)
            | Op::IsUnique(_)
            | Op::FreeObjects(_)
            | Op::Deadline { .. }
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Mark(_)
            | Op::Test(..) => false,
        };
        replaces && place.path.len() <= depth && place.path.iter().all(|step| matches!(step, Projection::Field(_)))
    }

    fn apply(&self, access: &Access<'_>, live: &mut Set) {
        live.extend(access.values.iter().map(|value| Unit::Value(*value)));
        for place in &access.reads {
            live.extend(self.place_units(place));
        }
    }

    /// What must survive while an instance waits here, beyond what its continuations need.
    fn waiting(&self, wait: &Wait) -> Set {
        let mut live = Set::new();
        for branch in &wait.branches {
            let mut access = Access::default();
            match &branch.operation {
                Operation::In { patterns, .. } => {
                    patterns.iter().for_each(|pattern| access.pattern(pattern));
                    let mut slots = Vec::new();
                    patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
                    for slot in slots {
                        live.extend((0..self.units(slot)).map(|unit| Unit::Slot(slot, unit)));
                    }
                }
                Operation::Out { payload: Payload::Ready(parts), .. } => {
                    for part in parts {
                        match &part.operand {
                            // Parked beside the frame while it waits, unless it lives there anyway.
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
            live.extend(outer.into_iter().map(Unit::Value));
            for slot in slots {
                live.extend((0..self.units(slot)).map(|unit| Unit::Slot(slot, unit)));
            }
        }
        live
    }

    /// Values of the outside and slots that a region touches.
    fn region_uses(&self, entry: BlockId) -> (BTreeSet<Value>, BTreeSet<SlotId>) {
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

    /// What is alive at the end of a block, before its terminator is counted.
    fn live_out(&self, terminator: &Terminator, live_in: &[Set]) -> Set {
        let mut live = Set::new();
        for next in successors(terminator, Regions::Skip) {
            live.extend(&live_in[next.0 as usize]);
        }
        if let Terminator::Leave(leave) = terminator {
            // Values are set there; slots are not.
            let there = live_in[leave.trigger.to.0 as usize].iter();
            live.extend(there.filter(|unit| matches!(unit, Unit::Slot(..))));
        }
        live
    }

    fn terminator_uses(&self, terminator: &Terminator, live: &mut Set) {
        let mut access = Access::default();
        access.terminator(terminator);
        self.apply(&access, live);
        if let Terminator::Wait(wait) = terminator {
            live.extend(self.waiting(wait));
        }
    }

    fn instruction(&self, instruction: &Instruction, live: &mut Set) {
        let mut access = Access::default();
        access.op(&instruction.op);
        if let Some(result) = instruction.result {
            live.remove(&Unit::Value(result));
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

    fn solve(&self, blocks: &[BlockId]) -> Vec<Set> {
        let mut live_in = vec![Set::new(); self.body.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for id in blocks.iter().rev() {
                let block = &self.body.blocks[id.0 as usize];
                let mut live = self.live_out(&block.terminator, &live_in);
                self.terminator_uses(&block.terminator, &mut live);
                for instruction in block.instructions.iter().rev() {
                    self.instruction(instruction, &mut live);
                }
                for parameter in &block.parameters {
                    live.remove(&Unit::Value(*parameter));
                }
                if live != live_in[id.0 as usize] {
                    live_in[id.0 as usize] = live;
                    changed = true;
                }
            }
        }
        live_in
    }
}

/// Homes of every value and slot of a body.
pub(crate) fn homes(body: &Body, types: &TypeTable, layouts: &Layouts, pins: &Pins) -> Homes {
    let analysis = Analysis { body, types };
    let main = reachable(body, BlockId(0), Regions::Skip);
    let live_in = analysis.solve(&main);
    let mut framed = Set::new();
    for id in &main {
        let terminator = &body.blocks[id.0 as usize].terminator;
        match terminator {
            Terminator::Wait(wait) => {
                if !pins.asks.contains(id) {
                    framed.extend(analysis.live_out(terminator, &live_in));
                }
                framed.extend(analysis.waiting(wait));
            }
            Terminator::Yield(edge) => {
                framed.extend(analysis.live_out(terminator, &live_in));
                let target = &body.blocks[edge.to.0 as usize];
                framed.extend(target.parameters.iter().map(|value| Unit::Value(*value)));
            }
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => {}
        }
    }

    let live_behind = |(block, branch): &(BlockId, usize)| match &body.blocks[block.0 as usize].terminator {
        Terminator::Wait(wait) => &live_in[wait.branches[*branch].then.0 as usize],
        _ => unreachable!("paths pause behind branches of waits"),
    };
    for pause in &pins.pauses {
        framed.extend(live_behind(pause).iter().filter(|unit| matches!(unit, Unit::Slot(..))));
    }
    for block in &pins.blocks {
        framed.extend(&live_in[block.0 as usize]);
        framed.extend(body.blocks[block.0 as usize].parameters.iter().map(|value| Unit::Value(*value)));
    }

    let mut values: Vec<Option<Home>> = vec![None; body.values.len()];
    for block in &body.blocks {
        for instruction in &block.instructions {
            if let Some(result) = instruction.result {
                match instruction.op {
                    Op::Constant(constant) => values[result.0 as usize] = Some(Home::Constant(constant)),
                    Op::OwnId => values[result.0 as usize] = Some(Home::OwnId),
                    _ => {}
                }
            }
        }
    }
    let classes = coalesce(&analysis, &main, &live_in, &values);
    let mut framed_classes = BTreeSet::new();
    for unit in &framed {
        if let Unit::Value(value) = unit {
            framed_classes.insert(classes.find(value.0));
        }
    }
    let values: Vec<Home> = (0..body.values.len() as u32)
        .map(|index| {
            let class = classes.find(index);
            values[index as usize].unwrap_or(match framed_classes.contains(&class) {
                true => Home::Frame(Value(class)),
                false => Home::Local(Value(class)),
            })
        })
        .collect();
    let held = if pins.blocks.is_empty() { held(body, &main, &live_in, &values) } else { Held::default() };
    let local = |unit: &Unit| match unit {
        Unit::Value(value) => match values[value.0 as usize] {
            Home::Local(class) => Some(class),
            Home::Frame(_) | Home::Constant(_) | Home::OwnId => None,
        },
        Unit::Slot(..) => None,
    };
    let locals = |live: &Set| live.iter().filter_map(local).collect::<BTreeSet<Value>>().into_iter().collect();
    let paused = pins.pauses.iter().map(|pause| (*pause, locals(live_behind(pause)))).collect();
    let used = used_slots(body, &main);
    let mut literals = literals(&analysis, &live_in[0]);
    let slots: Vec<SlotHome> = (0..body.slots.len() as u32)
        .map(|index| {
            let kept = framed.iter().any(|unit| matches!(unit, Unit::Slot(slot, _) if slot.0 == index));
            let ty = body.slots[index as usize].ty;
            let bytes = layouts.extent(ty, View::Program).size;
            if pins.lent.contains(&SlotId(index)) {
                SlotHome::Lent
            } else if !used.contains(&SlotId(index)) && !pins.slots.contains(&SlotId(index)) {
                SlotHome::Unused
            } else if kept || pins.slots.contains(&SlotId(index)) {
                SlotHome::Frame
            } else if literals.contains_key(&SlotId(index)) {
                SlotHome::Literal
            } else if bytes > LARGEST_LOCAL_BYTES {
                SlotHome::Frame
            } else {
                SlotHome::Local
            }
        })
        .collect();
    // Where fast paths of others look for a slot, nothing else is.
    let may_share = slots.iter().enumerate().map(|(index, home)| match home {
        SlotHome::Frame => !pins.slots.contains(&SlotId(index as u32)),
        SlotHome::Local | SlotHome::Lent | SlotHome::Unused | SlotHome::Literal => false,
    });
    let overlay = overlay::overlay(&analysis, layouts, &main, &may_share.collect::<Vec<bool>>());
    literals.retain(|slot, _| slots[slot.0 as usize] == SlotHome::Literal);
    Homes { values, slots, overlay, paused, held, literals, main }
}

/// The slots that some of these blocks use, or a region of their waits.
pub(crate) fn used_slots(body: &Body, blocks: &[BlockId]) -> BTreeSet<SlotId> {
    let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
    for id in blocks {
        touched(body, *id, &mut values, &mut slots);
        if let Terminator::Wait(wait) = &body.blocks[id.0 as usize].terminator {
            for branch in &wait.branches {
                slots.extend(overlay::bound(branch));
            }
            for block in region_entries(wait).into_iter().flat_map(|entry| region_blocks(body, entry)) {
                touched(body, block, &mut values, &mut slots);
            }
        }
    }
    slots
}

/// Homes of a body without waits: everything is local.
pub(crate) fn local_homes(body: &Body) -> Homes {
    let mut values: Vec<Home> = (0..body.values.len() as u32).map(|index| Home::Local(Value(index))).collect();
    for block in &body.blocks {
        for instruction in &block.instructions {
            if let (Some(result), Op::Constant(constant)) = (instruction.result, &instruction.op) {
                values[result.0 as usize] = Home::Constant(*constant);
            }
        }
    }
    let slots = vec![SlotHome::Local; body.slots.len()];
    let (overlay, paused, literals) = (Overlay::default(), BTreeMap::new(), BTreeMap::new());
    Homes {
        values,
        slots,
        overlay,
        paused,
        held: Held::default(),
        literals,
        main: reachable(body, BlockId(0), Regions::Skip),
    }
}
