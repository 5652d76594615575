//! Facts about the code of one member: live values and slots, joins, operations ahead, constants. Knows one body.

use quaject_esp_ir::cfg::{Regions, edges, successors};
use quaject_esp_ir::dataflow::{all_blocks, solve_backward};
use quaject_esp_ir::ir::{
    Base, BlockId, Body, ChannelId, Direction, Instruction, Op, Operand, Operation, Pattern, Payload, Place, SlotId,
    Terminator, Value,
};
use quaject_esp_ir::visit::{bound_slots, op_slots, op_values, own_values, pattern_operands, terminator_slots};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Values and slots of one body that are live.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(in super::super) struct Live {
    pub(in super::super) values: BTreeSet<Value>,
    pub(in super::super) slots: BTreeSet<SlotId>,
}

impl Live {
    fn add(&mut self, other: &Live) {
        self.values.extend(&other.values);
        self.slots.extend(&other.slots);
    }
}

/// Per value: the constant that it is, if its definition is one.
pub(super) fn constants(body: &Body) -> Vec<Option<i128>> {
    let mut constants = vec![None; body.values.len()];
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            constants[result.0 as usize] = Some(*constant);
        }
    }
    constants
}

/// The deadlines of a body that have certainly not passed when they are computed.
pub(super) fn future_deadlines(body: &Body) -> BTreeSet<Value> {
    let constants = constants(body);
    let instructions = body.blocks.iter().flat_map(|block| &block.instructions);
    let is_future = |instruction: &Instruction| match instruction.op {
        Op::Deadline { amount, unit_ns: _ } => constants[amount.0 as usize].is_some_and(|amount| amount > 0),
        _ => false,
    };
    instructions.filter(|instruction| is_future(instruction)).filter_map(|instruction| instruction.result).collect()
}

/// Per block: whether several edges lead to it. Edges out of regions do not count.
pub(super) fn join_blocks(body: &Body) -> Vec<bool> {
    let mut entered = vec![0u32; body.blocks.len()];
    entered[0] = 1;
    for block in &body.blocks {
        for edge in edges(&block.terminator) {
            entered[edge.to.0 as usize] += 1;
        }
    }
    entered.into_iter().map(|count| count > 1).collect()
}

/// Per block: the operations that are reachable from it.
pub(super) fn operations_ahead(body: &Body) -> Vec<FxHashSet<(ChannelId, Direction)>> {
    let own = body.blocks.iter().map(|block| {
        let branches = block.terminator.as_wait().into_iter().flat_map(|wait| &wait.branches);
        branches.filter_map(|branch| branch.operation.channel_end()).collect()
    });
    let mut ahead: Vec<FxHashSet<(ChannelId, Direction)>> = own.collect();
    solve_backward(body, &all_blocks(body), |block| {
        let index = block.0 as usize;
        let before = ahead[index].len();
        for next in successors(&body.blocks[index].terminator, Regions::Include) {
            let more = ahead[next.0 as usize].clone();
            ahead[index].extend(more);
        }
        ahead[index].len() > before
    });
    ahead
}

/// Per block: what is live at its start, and at the wait in which it ends.
pub(super) fn liveness(body: &Body) -> (Vec<Live>, Vec<Option<Live>>) {
    let mut live = vec![Live::default(); body.blocks.len()];
    solve_backward(body, &all_blocks(body), |block| {
        let now = live_at_start(body, &live, block);
        let has_changed = live[block.0 as usize] != now;
        live[block.0 as usize] = now;
        has_changed
    });
    let ends = body.blocks.iter().map(|block| &block.terminator);
    let live_at_wait = ends.map(|end| end.as_wait().map(|_| live_at_end(body, &live, end))).collect();
    (live, live_at_wait)
}

/// What is live at the start of a block.
fn live_at_start(body: &Body, live: &[Live], block: BlockId) -> Live {
    let block = &body.blocks[block.0 as usize];
    let mut now = live_at_end(body, live, &block.terminator);
    for instruction in block.instructions.iter().rev() {
        instruction.result.iter().for_each(|result| {
            now.values.remove(result);
        });
        let op = &instruction.op;
        let overwritten = overwritten_slot(op);
        if let Some(slot) = overwritten {
            now.slots.remove(&slot);
        }
        op_values(op, &mut |value| {
            now.values.insert(*value);
        });
        op_slots(op, &mut |slot| {
            if overwritten != Some(*slot) {
                now.slots.insert(*slot);
            }
        });
    }
    now
}

/// The slot that an instruction overwrites without reading it.
fn overwritten_slot(op: &Op) -> Option<SlotId> {
    let (to, from) = match op {
        Op::SetTag(to, _) | Op::SetBytes(to, _) | Op::Fill(to, Operand::Value(_)) => (to, None),
        Op::Copy { to, from } => (to, Some(from)),
        _ => return None,
    };
    match (to, from) {
        (Place { base: Base::Slot(slot), path }, from) if path.is_empty() => match from {
            Some(Place { base: Base::Slot(other), path: _ }) if other == slot => None,
            Some(_) | None => Some(*slot),
        },
        (Place { base: Base::Slot(_) | Base::Object(_) | Base::Constant(..), path: _ }, _) => None,
    }
}

/// What is live before a terminator.
fn live_at_end(body: &Body, live: &[Live], terminator: &Terminator) -> Live {
    let mut now = Live::default();
    for target in successors(terminator, Regions::Include) {
        let mut there = live[target.0 as usize].clone();
        for parameter in &body.blocks[target.0 as usize].parameters {
            there.values.remove(parameter);
        }
        now.add(&there);
    }
    if let Terminator::Wait(wait) = terminator {
        // What a branch binds is not live before it; a slot belongs to its branch alone.
        for branch in &wait.branches {
            if let Operation::In { patterns, .. } = &branch.operation {
                let mut written = Vec::new();
                patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| written.push(slot)));
                written.iter().for_each(|slot| {
                    now.slots.remove(slot);
                });
            }
            if let Operation::Out { payload: Payload::Ready(passed), .. } = &branch.operation {
                for passed in passed {
                    if let Operand::Place(Place { base: Base::Slot(slot), path: _ }) = &passed.operand {
                        now.slots.insert(*slot);
                    }
                }
            }
            if let Operation::In { patterns, .. } = &branch.operation {
                for pattern in patterns {
                    compared_slots(pattern, &mut now.slots);
                }
            }
        }
    } else {
        terminator_slots(terminator, &mut |slot| {
            now.slots.insert(*slot);
        });
    }
    for edge in edges(terminator) {
        let there = &live[edge.to.0 as usize];
        let parameters = &body.blocks[edge.to.0 as usize].parameters;
        for (argument, parameter) in edge.arguments.iter().zip(parameters) {
            if there.values.contains(parameter) {
                now.values.insert(*argument);
            }
        }
    }
    own_values(terminator, &mut |value| {
        now.values.insert(*value);
    });
    now
}

fn compared_slots(pattern: &Pattern, slots: &mut BTreeSet<SlotId>) {
    pattern_operands(pattern, &mut |operand| {
        if let Operand::Place(Place { base: Base::Slot(slot), path: _ }) = operand {
            slots.insert(*slot);
        }
    });
}
