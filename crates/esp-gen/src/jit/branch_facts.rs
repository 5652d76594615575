//! Facts that branches establish: in the block behind `if i < n`, `i` is below `n`. Where `n` is the length of a slot that
//! does not change meanwhile, an index `i` needs no bounds check of its own.

use super::code_layout::{CodeLayout, edges};
use super::liveness::Liveness;
use super::ranges::Interval;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{Base, BinaryOp, BlockId, Op, SlotId, Terminator, Value};
use quaject_esp_ir::visit::{block_slots, op_slots, terminator_slots};

/// A comparison that holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct BranchFact {
    pub(super) op: BinaryOp,
    pub(super) a: Value,
    pub(super) b: Value,
}

/// Per block with one predecessor: that block, and the comparison that holds on the edge.
pub(super) struct BranchFacts {
    above: Vec<Option<(BlockId, Option<BranchFact>)>>,
}

/// How many predecessors are searched.
const DEPTH: usize = 8;

impl BranchFacts {
    pub(super) fn new(layout: &CodeLayout<'_>) -> BranchFacts {
        let count = layout.body.blocks.len();
        let (mut above, mut edges_into) = (vec![None; count], vec![0; count]);
        for block in &layout.order {
            for (index, (to, _, _)) in edges(layout.body, *block).into_iter().enumerate() {
                edges_into[to.0 as usize] += 1;
                above[to.0 as usize] = Some((*block, guard(layout, *block, index == 0)));
            }
        }
        for (index, above) in above.iter_mut().enumerate() {
            if edges_into[index] != 1 || layout.is_entry[index] {
                *above = None;
            }
        }
        BranchFacts { above }
    }

    /// The comparisons that hold in a block, nearest first.
    pub(super) fn of(&self, block: BlockId) -> impl Iterator<Item = BranchFact> + '_ {
        let mut next = Some(block);
        let step = move || {
            let (above, guard) = self.above[next?.0 as usize]?;
            next = Some(above);
            Some(guard)
        };
        std::iter::from_fn(step).take(DEPTH).flatten()
    }

    /// The interval of a value in a block, given the intervals that hold everywhere.
    pub(super) fn refine(
        &self,
        block: BlockId,
        value: Value,
        known: &dyn Fn(Value) -> Option<Interval>,
    ) -> Option<Interval> {
        let mut range = known(value)?;
        for BranchFact { op, a, b } in self.of(block) {
            let (op, other) = match (a == value, b == value) {
                (true, false) => (op, b),
                (false, true) => (super::arithmetic::mirrored(op), a),
                (true, true) | (false, false) => continue,
            };
            let Some(other) = known(other) else { continue };
            let bound = match op {
                BinaryOp::Less => (range.0, range.1.min(other.1 - 1)),
                BinaryOp::LessEqual => (range.0, range.1.min(other.1)),
                BinaryOp::Greater => (range.0.max(other.0 + 1), range.1),
                BinaryOp::GreaterEqual => (range.0.max(other.0), range.1),
                BinaryOp::Equal => (range.0.max(other.0), range.1.min(other.1)),
                _ => range,
            };
            // An empty interval is that of unreachable code.
            if bound.0 <= bound.1 {
                range = bound;
            }
        }
        Some(range)
    }
}

/// The comparison that holds on one of the edges of a branch.
fn guard(layout: &CodeLayout<'_>, block: BlockId, is_then: bool) -> Option<BranchFact> {
    let code = &layout.body.blocks[block.0 as usize];
    let Terminator::Branch { condition, .. } = &code.terminator else { return None };
    let defined = code.instructions.iter().rev().find(|instruction| instruction.result == Some(*condition))?;
    match defined.op {
        Op::Binary(op, a, b) => {
            let inverted = op.inverted()?;
            Some(BranchFact { op: if is_then { op } else { inverted }, a, b })
        }
        _ => None,
    }
}

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
            for (to, arguments, _) in edges(body, *block) {
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
