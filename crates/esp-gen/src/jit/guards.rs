//! What comparisons say about values where a branch has made them: inside of `if i < n`, `i` is below `n`. Where `n` is
//! the length of a slot that does not change meanwhile, an index `i` needs no comparison of its own.

use super::flow::{Flow, edges};
use super::live::Live;
use super::ranges::Range;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{Base, BinaryOp, BlockId, Op, SlotId, Terminator, Value};
use quaject_esp_ir::visit::{block_slots, op_slots, terminator_slots};

/// A comparison that holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) op: BinaryOp,
    pub(super) a: Value,
    pub(super) b: Value,
}

/// Per block with one predecessor: that one, and what its branch says.
pub(super) struct Guards {
    above: Vec<Option<(BlockId, Option<Guard>)>>,
}

/// How many blocks up guards are looked for.
const DEPTH: usize = 8;

impl Guards {
    pub(super) fn new(flow: &Flow<'_>) -> Guards {
        let count = flow.body.blocks.len();
        let (mut above, mut edges_into) = (vec![None; count], vec![0; count]);
        for block in &flow.order {
            for (index, (to, _, _)) in edges(flow.body, *block).into_iter().enumerate() {
                edges_into[to.0 as usize] += 1;
                above[to.0 as usize] = Some((*block, guard(flow, *block, index == 0)));
            }
        }
        for (index, above) in above.iter_mut().enumerate() {
            if edges_into[index] != 1 || flow.resumed[index] {
                *above = None;
            }
        }
        Guards { above }
    }

    /// What holds in a block, nearest first.
    pub(super) fn of(&self, block: BlockId) -> impl Iterator<Item = Guard> + '_ {
        let mut next = Some(block);
        let step = move || {
            let (above, guard) = self.above[next?.0 as usize]?;
            next = Some(above);
            Some(guard)
        };
        std::iter::from_fn(step).take(DEPTH).flatten()
    }

    /// The range of a value in a block, when these are the ranges everywhere.
    pub(super) fn narrow(&self, block: BlockId, value: Value, known: &dyn Fn(Value) -> Option<Range>) -> Option<Range> {
        let mut range = known(value)?;
        for Guard { op, a, b } in self.of(block) {
            let (op, other) = match (a == value, b == value) {
                (true, false) => (op, b),
                (false, true) => (super::operate::mirrored(op), a),
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
            // An empty range is that of code that is never reached.
            if bound.0 <= bound.1 {
                range = bound;
            }
        }
        Some(range)
    }
}

/// What the branch at the end of a block says on one of its edges.
fn guard(flow: &Flow<'_>, block: BlockId, is_then: bool) -> Option<Guard> {
    let code = &flow.body.blocks[block.0 as usize];
    let Terminator::Branch { condition, .. } = &code.terminator else { return None };
    let defined = code.instructions.iter().rev().find(|instruction| instruction.result == Some(*condition))?;
    match defined.op {
        Op::Binary(op, a, b) if op.is_comparison() => {
            Some(Guard { op: if is_then { op } else { super::emit::inverse(op) }, a, b })
        }
        _ => None,
    }
}

/// Per slot: the values that are its length wherever they matter; none if it may change while they do.
pub(super) struct Lengths {
    of: Vec<Vec<bool>>,
}

impl Lengths {
    pub(super) fn new(flow: &Flow<'_>, live: &Live) -> Lengths {
        let count = flow.body.values.len();
        let slots = flow.body.slots.len() as u32;
        let changed = changed_slots(flow);
        let of = (0..slots)
            .map(SlotId)
            .map(|slot| if changed[slot.0 as usize] { vec![false; count] } else { lengths(flow, live, slot) });
        Lengths { of: of.collect() }
    }

    pub(super) fn is_length(&self, slot: SlotId, value: Value) -> bool {
        self.of[slot.0 as usize][value.0 as usize]
    }
}

/// Slots that anything but a wait's pattern may write.
fn changed_slots(flow: &Flow<'_>) -> Vec<bool> {
    let mut changed = vec![false; flow.body.slots.len()];
    for block in &flow.order {
        let code = &flow.body.blocks[block.0 as usize];
        for instruction in &code.instructions {
            match &instruction.op {
                Op::Load(_) | Op::Length(_) => {}
                op => op_slots(op, &mut |slot| changed[slot.0 as usize] = true),
            }
        }
        if let Terminator::Wait(wait) = &code.terminator {
            for region in region_entries(wait).into_iter().flat_map(|entry| region_blocks(flow.body, entry)) {
                block_slots(&flow.body.blocks[region.0 as usize], &mut |slot| changed[slot.0 as usize] = true);
            }
        }
    }
    changed
}

fn lengths(flow: &Flow<'_>, live: &Live, slot: SlotId) -> Vec<bool> {
    let body = flow.body;
    let mut is_length = vec![false; body.values.len()];
    let mut any = false;
    for block in &flow.order {
        let code = &body.blocks[block.0 as usize];
        if !flow.resumed[block.0 as usize] {
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
        for block in &flow.order {
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
    // A message that is received into the slot makes old lengths wrong.
    for block in &flow.order {
        let terminator = &body.blocks[block.0 as usize].terminator;
        let mut binds = false;
        terminator_slots(terminator, &mut |named| binds |= *named == slot);
        let point = flow.points_of(*block).end - 1;
        if binds && live.before(point).any(|value| is_length[value.0 as usize]) {
            return vec![false; body.values.len()];
        }
    }
    is_length
}
