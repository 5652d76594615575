//! Simplification of the control-flow graph: chains of blocks become one block, unreachable blocks are removed, and
//! blocks, values and slots are renumbered in source order. Preserves the behaviour of the program.

use crate::cfg::{Regions, edges_mut, successors, wait_targets_mut};
use crate::ir::{Block, BlockId, Body, SlotId, Terminator, Value};
use crate::visit::{block_slots, block_slots_mut, op_values_mut, terminator_values_mut};

/// A union-find of values: the representative of each.
pub struct Replacements(Vec<Value>);

impl Replacements {
    /// Every value represents itself.
    pub fn new(values: usize) -> Replacements {
        Replacements((0..values as u32).map(Value).collect())
    }

    /// Makes `by` represent the value.
    pub fn replace(&mut self, value: Value, by: Value) {
        self.0[value.0 as usize] = by;
    }

    /// The representative of the value.
    pub fn find(&mut self, value: Value) -> Value {
        let mut root = value;
        while self.0[root.0 as usize] != root {
            root = self.0[root.0 as usize];
        }
        let mut next = value;
        while next != root {
            next = std::mem::replace(&mut self.0[next.0 as usize], root);
        }
        root
    }
}

/// Merges every block into its only predecessor if that jumps to it, then numbers blocks, values and slots in order.
pub fn merge_and_number(mut body: Body) -> Body {
    merge(&mut body);
    number(body)
}

fn merge(body: &mut Body) {
    let mut incoming = vec![0u32; body.blocks.len()];
    incoming[0] = 1;
    for index in reachable(body) {
        for successor in successors(&body.blocks[index].terminator, Regions::Include) {
            incoming[successor.0 as usize] += 1;
        }
    }
    let mut replacements = Replacements::new(body.values.len());
    for index in reachable(body) {
        while let Terminator::Jump(edge) = &body.blocks[index].terminator {
            let next = edge.to.0 as usize;
            if incoming[next] != 1 || next == index {
                break;
            }
            let target = std::mem::replace(
                &mut body.blocks[next],
                Block {
                    parameters: Vec::new(),
                    instructions: Vec::new(),
                    terminator: Terminator::End,
                    location: Default::default(),
                },
            );
            let Terminator::Jump(edge) = std::mem::replace(&mut body.blocks[index].terminator, target.terminator)
            else {
                unreachable!("the loop saw a jump")
            };
            for (parameter, argument) in target.parameters.iter().zip(&edge.arguments) {
                let argument = replacements.find(*argument);
                replacements.replace(*parameter, argument);
                let name = body.values[parameter.0 as usize].name.clone();
                let data = &mut body.values[argument.0 as usize];
                data.name = data.name.take().or(name);
            }
            body.blocks[index].instructions.extend(target.instructions);
            body.blocks[index].location = target.location;
            incoming[next] = 0;
        }
    }
    for block in &mut body.blocks {
        let mut visit = |value: &mut Value| *value = replacements.find(*value);
        block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut visit));
        terminator_values_mut(&mut block.terminator, &mut visit);
    }
}

/// The reachable blocks, each after one of its predecessors, close to source order.
fn reachable(body: &Body) -> Vec<usize> {
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![0];
    let mut order = Vec::new();
    while let Some(index) = work.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        order.push(index);
        work.extend(
            successors(&body.blocks[index].terminator, Regions::Include).iter().rev().map(|block| block.0 as usize),
        );
    }
    order
}

fn number(mut body: Body) -> Body {
    let order = reachable(&body);
    let mut blocks = vec![None; body.blocks.len()];
    let mut values: Vec<Option<Value>> = vec![None; body.values.len()];
    let mut slots: Vec<Option<SlotId>> = vec![None; body.slots.len()];
    let mut result = Body::default();
    for (position, index) in order.iter().enumerate() {
        blocks[*index] = Some(BlockId(position as u32));
        let block = &body.blocks[*index];
        let defined = block.parameters.iter().chain(block.instructions.iter().filter_map(|i| i.result.as_ref()));
        for value in defined {
            values[value.0 as usize] = Some(Value(result.values.len() as u32));
            result.values.push(body.values[value.0 as usize].clone());
        }
    }
    // Slots keep their order, since those of parameters come first; unused ones of temporaries are dropped.
    let mut used = vec![false; body.slots.len()];
    for index in &order {
        block_slots(&body.blocks[*index], &mut |slot| used[slot.0 as usize] = true);
    }
    for (index, slot) in body.slots.iter().enumerate() {
        if used[index] || slot.name.is_some() {
            slots[index] = Some(SlotId(result.slots.len() as u32));
            result.slots.push(slot.clone());
        }
    }
    result.blocks.reserve_exact(order.len());
    for index in order {
        let block = &mut body.blocks[index];
        let mut block = Block {
            parameters: std::mem::take(&mut block.parameters),
            instructions: std::mem::take(&mut block.instructions),
            terminator: std::mem::replace(&mut block.terminator, Terminator::End),
            location: block.location,
        };
        let value_of = |value: &mut Value| *value = values[value.0 as usize].expect("values are defined before use");
        block.parameters.iter_mut().for_each(value_of);
        for instruction in &mut block.instructions {
            instruction.result.iter_mut().for_each(value_of);
            op_values_mut(&mut instruction.op, &mut { value_of });
        }
        terminator_values_mut(&mut block.terminator, &mut { value_of });
        let block_of = |block: &mut BlockId| *block = blocks[block.0 as usize].expect("targets are reachable");
        edges_mut(&mut block.terminator).into_iter().for_each(|edge| block_of(&mut edge.to));
        match &mut block.terminator {
            Terminator::Wait(wait) => wait_targets_mut(wait).into_iter().for_each(block_of),
            Terminator::Enter(enter) => block_of(&mut enter.then),
            // It names blocks of bodies that are not numbered with this one.
            Terminator::Leave(_) => {}
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_) => {}
        }
        block_slots_mut(&mut block, &mut |slot| *slot = slots[slot.0 as usize].expect("used slots are kept"));
        result.blocks.push(block);
    }
    result
}
