//! Storage assignment: whether each value and slot of a body is a local of the generated function or, because it must
//! survive a wait, a member of the instance's frame. Versions of one variable share storage while no two of them are
//! live at once (copy coalescing), so that a loop does not copy; slots of a frame share memory by slot colouring; loops
//! that do not wait promote values of the frame to locals. Knows the flow IR; knows no C.

mod coalesce;
mod literals;
mod liveness;
mod path_blocks;
mod promotion;
mod slot_colouring;

pub(crate) use path_blocks::has_cycle_on_path;
pub(crate) use promotion::Promotion;
pub(crate) use slot_colouring::SlotColouring;

use crate::layout::{Layouts, View};
use coalesce::{CoalescedValues, coalesce};
use literals::literals;
use liveness::{LiveSet, LiveUnit, Liveness};
use promotion::promote;
use quaject_esp_ir::access::touched;
use quaject_esp_ir::cfg::{Regions, reachable, region_blocks, region_entries};
use quaject_esp_ir::ir::*;
use slot_colouring::{colour_slots, slots_bound_by};
use std::collections::{BTreeMap, BTreeSet};

/// Where a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueStorage {
    /// A local, named after this value.
    Local(Value),
    /// A member of the frame, named after this value.
    Frame(Value),
    /// Nowhere: written out at each use.
    Constant(i128),
    /// Nowhere: the instance's number.
    OwnId,
}

/// Where a slot is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotStorage {
    /// A local.
    Local,
    /// A member of the frame.
    Frame,
    /// The frame of another instance, from which a fast path has captured the slot.
    Captured,
    /// Nowhere: nothing uses it.
    Unused,
    /// Nowhere: a constant.
    Literal,
}

/// What fast paths require of the storage of a body.
#[derive(Default)]
pub(crate) struct PathConstraints {
    /// Blocks at whose beginning everything live is in the frame.
    pub(crate) frame_blocks: BTreeSet<BlockId>,
    /// Those of them at which instances continue after a fast path of another instance.
    pub(crate) resumptions: BTreeSet<BlockId>,
    /// Slots that are in the frame.
    pub(crate) frame_slots: BTreeSet<SlotId>,
    /// Slots that alias slots of other instances.
    pub(crate) captured_slots: BTreeSet<SlotId>,
    /// Blocks that end in a non-blocking poll of the environment, in the function of a path.
    pub(crate) polls: BTreeSet<BlockId>,
    /// Those of them, with the branch, behind which the path may pause.
    pub(crate) pauses: BTreeSet<(BlockId, usize)>,
}

/// Slots larger than this many bytes are in the frame even if no wait needs them, so that the stack stays small.
const MAX_LOCAL_BYTES: u64 = 128;

/// The storage of one body.
pub(crate) struct StorageMap {
    /// By value.
    pub(crate) values: Vec<ValueStorage>,
    /// By slot.
    pub(crate) slots: Vec<SlotStorage>,
    /// How slots of the frame share memory.
    pub(crate) colouring: SlotColouring,
    /// Per block and branch behind which a path may pause: the locals that it saves.
    pub(crate) paused: BTreeMap<(BlockId, usize), Vec<Value>>,
    /// Values of the frame that loops hold in locals.
    pub(crate) promotion: Promotion,
    /// The bytes of slots that are constants.
    pub(crate) literals: BTreeMap<SlotId, Vec<u8>>,
    /// Blocks reached from the entry without entering a region, in ascending order.
    pub(crate) main: Vec<BlockId>,
}

impl StorageMap {
    /// Whether a slot is a member of the frame.
    pub(crate) fn is_framed(&self, slot: SlotId) -> bool {
        match self.slots[slot.0 as usize] {
            SlotStorage::Frame => true,
            SlotStorage::Local | SlotStorage::Captured | SlotStorage::Unused | SlotStorage::Literal => false,
        }
    }

    /// Whether a value is a local.
    pub(crate) fn is_local(&self, value: Value) -> bool {
        self.local(value).is_some()
    }

    /// The local that holds a value, named after its class.
    pub(crate) fn local(&self, value: Value) -> Option<Value> {
        match self.values[value.0 as usize] {
            ValueStorage::Local(class) => Some(class),
            ValueStorage::Frame(_) | ValueStorage::Constant(_) | ValueStorage::OwnId => None,
        }
    }
}

/// Assigns storage to every value and slot of a process's body.
pub(crate) fn assign_storage(
    body: &Body,
    types: &TypeTable,
    layouts: &Layouts,
    constraints: &PathConstraints,
) -> StorageMap {
    let liveness = Liveness { body, types };
    let main = reachable(body, BlockId(0), Regions::Skip);
    let live_in = liveness.solve(&main);
    let surviving = surviving_units(&liveness, &main, &live_in, constraints);
    let immaterial = immaterial_values(body);
    let classes = coalesce(&liveness, &main, &live_in, &immaterial);
    let values = value_storage(body, &surviving, &immaterial, &classes);
    let promotion = match constraints.frame_blocks.is_empty() {
        true => promote(body, &main, &live_in, &values),
        false => Promotion::default(),
    };
    let mut literals = literals(&liveness, &live_in[0]);
    let slots = slot_storage(
        body,
        layouts,
        constraints,
        &SlotUses {
            used: used_slots(body, &main),
            surviving: surviving.iter().filter_map(LiveUnit::slot).collect(),
            literal: literals.keys().copied().collect(),
        },
    );
    // Fast paths of other instances know the slots that they use by their own addresses.
    let may_share = slots.iter().enumerate().map(|(index, storage)| match storage {
        SlotStorage::Frame => !constraints.frame_slots.contains(&SlotId(index as u32)),
        SlotStorage::Local | SlotStorage::Captured | SlotStorage::Unused | SlotStorage::Literal => false,
    });
    let colouring = colour_slots(&liveness, layouts, &main, &may_share.collect::<Vec<bool>>());
    literals.retain(|slot, _| slots[slot.0 as usize] == SlotStorage::Literal);
    let mut storage = StorageMap { values, slots, colouring, paused: BTreeMap::new(), promotion, literals, main };
    for pause in &constraints.pauses {
        let live = live_behind(body, pause, &live_in).iter().filter_map(LiveUnit::value);
        let locals: BTreeSet<Value> = live.filter_map(|value| storage.local(value)).collect();
        storage.paused.insert(*pause, locals.into_iter().collect());
    }
    storage
}

/// What is live where a path that has paused behind a branch continues.
fn live_behind<'l>(body: &Body, (block, branch): &(BlockId, usize), live_in: &'l [LiveSet]) -> &'l LiveSet {
    match &body.blocks[block.0 as usize].terminator {
        Terminator::Wait(wait) => &live_in[wait.branches[*branch].then.0 as usize],
        _ => unreachable!("paths pause behind branches of waits"),
    }
}

/// What must survive a wait, a yield, or the entry and exit of a fast path.
fn surviving_units(
    liveness: &Liveness<'_>,
    main: &[BlockId],
    live_in: &[LiveSet],
    constraints: &PathConstraints,
) -> LiveSet {
    let body = liveness.body;
    let parameters = |block: BlockId| body.blocks[block.0 as usize].parameters.iter().copied().map(LiveUnit::Value);
    let mut surviving = LiveSet::new();
    for id in main {
        let terminator = &body.blocks[id.0 as usize].terminator;
        match terminator {
            Terminator::Wait(wait) => {
                if !constraints.polls.contains(id) {
                    surviving.extend(liveness.live_out(terminator, live_in));
                }
                surviving.extend(liveness.wait_uses(wait));
            }
            Terminator::Yield(edge) => {
                surviving.extend(liveness.live_out(terminator, live_in));
                surviving.extend(parameters(edge.to));
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
    for pause in &constraints.pauses {
        surviving.extend(live_behind(body, pause, live_in).iter().filter(|unit| unit.slot().is_some()));
    }
    for block in &constraints.frame_blocks {
        surviving.extend(&live_in[block.0 as usize]);
        surviving.extend(parameters(*block));
    }
    surviving
}

/// Values that need no variable: constants and the instance's number.
fn immaterial_values(body: &Body) -> Vec<Option<ValueStorage>> {
    let mut values = vec![None; body.values.len()];
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let Some(result) = instruction.result {
            match instruction.op {
                Op::Constant(constant) => values[result.0 as usize] = Some(ValueStorage::Constant(constant)),
                Op::OwnId => values[result.0 as usize] = Some(ValueStorage::OwnId),
                _ => {}
            }
        }
    }
    values
}

/// A class of coalesced values is in the frame if one of them must survive.
fn value_storage(
    body: &Body,
    surviving: &LiveSet,
    immaterial: &[Option<ValueStorage>],
    classes: &CoalescedValues,
) -> Vec<ValueStorage> {
    let framed: BTreeSet<u32> =
        surviving.iter().filter_map(LiveUnit::value).map(|value| classes.find(value.0)).collect();
    let storage = |index: u32| {
        let class = classes.find(index);
        immaterial[index as usize].unwrap_or(match framed.contains(&class) {
            true => ValueStorage::Frame(Value(class)),
            false => ValueStorage::Local(Value(class)),
        })
    };
    (0..body.values.len() as u32).map(storage).collect()
}

/// What decides where slots are stored.
struct SlotUses {
    used: BTreeSet<SlotId>,
    /// Slots of which some part must survive.
    surviving: BTreeSet<SlotId>,
    /// Slots that hold one literal wherever they are read.
    literal: BTreeSet<SlotId>,
}

fn slot_storage(body: &Body, layouts: &Layouts, constraints: &PathConstraints, uses: &SlotUses) -> Vec<SlotStorage> {
    let storage = |slot: SlotId| {
        let bytes = layouts.extent(body.slots[slot.0 as usize].ty, View::Program).size;
        let is_path_slot = constraints.frame_slots.contains(&slot);
        if constraints.captured_slots.contains(&slot) {
            SlotStorage::Captured
        } else if !uses.used.contains(&slot) && !is_path_slot {
            SlotStorage::Unused
        } else if uses.surviving.contains(&slot) || is_path_slot {
            SlotStorage::Frame
        } else if uses.literal.contains(&slot) {
            SlotStorage::Literal
        } else if bytes > MAX_LOCAL_BYTES {
            SlotStorage::Frame
        } else {
            SlotStorage::Local
        }
    };
    (0..body.slots.len() as u32).map(|slot| storage(SlotId(slot))).collect()
}

/// The slots that some of these blocks use, or a region of their waits.
pub(crate) fn used_slots(body: &Body, blocks: &[BlockId]) -> BTreeSet<SlotId> {
    let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
    for id in blocks {
        touched(body, *id, &mut values, &mut slots);
        if let Terminator::Wait(wait) = &body.blocks[id.0 as usize].terminator {
            for branch in &wait.branches {
                slots.extend(slots_bound_by(branch));
            }
            for block in region_entries(wait).into_iter().flat_map(|entry| region_blocks(body, entry)) {
                touched(body, block, &mut values, &mut slots);
            }
        }
    }
    slots
}

/// Storage of a body without waits: everything is local.
pub(crate) fn assign_local_storage(body: &Body) -> StorageMap {
    let mut values: Vec<ValueStorage> =
        (0..body.values.len() as u32).map(|index| ValueStorage::Local(Value(index))).collect();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Some(result), Op::Constant(constant)) = (instruction.result, &instruction.op) {
            values[result.0 as usize] = ValueStorage::Constant(*constant);
        }
    }
    StorageMap {
        values,
        slots: vec![SlotStorage::Local; body.slots.len()],
        colouring: SlotColouring::default(),
        paused: BTreeMap::new(),
        promotion: Promotion::default(),
        literals: BTreeMap::new(),
        main: reachable(body, BlockId(0), Regions::Skip),
    }
}
