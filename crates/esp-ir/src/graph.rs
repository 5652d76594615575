//! The control-flow graph of a body: successors, order, joining of chains, numbering in order of text. Changes nothing
//! of what the program does; knows neither the source nor what instructions mean.

use crate::ir::{Block, BlockId, Body, SlotId, Terminator, Value};
use crate::visit::{block_slots, edges_mut, op_values, terminator_values, wait_targets};
use std::collections::BTreeSet;

/// Every block a terminator leads to, regions included.
pub fn successors(terminator: &Terminator) -> Vec<BlockId> {
    match terminator {
        Terminator::Wait(wait) => wait_targets(&mut wait.clone()).into_iter().map(|target| *target).collect(),
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge.to],
        Terminator::Branch { condition: _, then, otherwise } => vec![then.to, otherwise.to],
        Terminator::Switch { value: _, cases, default } => {
            cases.iter().map(|(_, edge)| edge.to).chain(std::iter::once(default.to)).collect()
        }
        Terminator::Enter(enter) => vec![enter.then, enter.later.to, enter.otherwise.to],
        Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// The blocks that the first one leads to, in reverse postorder: each, but for loops, after all that lead to it.
pub fn reverse_postorder(body: &Body) -> Vec<usize> {
    let count = body.blocks.len();
    let mut postorder = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    seen[0] = true;
    let open = |block: usize| (block, successors(&body.blocks[block].terminator).into_iter());
    let mut stack = vec![open(0)];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.next() {
            Some(next) if !std::mem::replace(&mut seen[next.0 as usize], true) => stack.push(open(next.0 as usize)),
            Some(_) => {}
            None => {
                postorder.push(*block);
                stack.pop();
            }
        }
    }
    postorder.reverse();
    postorder
}

/// Strongly connected components of a graph, by Tarjan's algorithm without recursion. `next` holds per node those that it
/// leads to.
pub fn components(next: &[Vec<usize>]) -> Vec<BTreeSet<usize>> {
    #[derive(Clone, Copy)]
    struct Mark {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let mut marks: Vec<Option<Mark>> = vec![None; next.len()];
    let (mut stack, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    for root in 0..next.len() {
        if marks[root].is_some() {
            continue;
        }
        let mut calls: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((node, edge)) = calls.pop() {
            if edge == 0 {
                marks[node] = Some(Mark { index: count, low: count, on_stack: true });
                count += 1;
                stack.push(node);
            }
            let low = |marks: &[Option<Mark>], node: usize| marks[node].expect("visited").low;
            if let Some(child) = edge.checked_sub(1).map(|edge| next[node][edge]) {
                let least = low(&marks, node).min(low(&marks, child));
                if marks[child].expect("visited").on_stack {
                    marks[node].as_mut().expect("visited").low = least;
                }
            }
            if let Some(child) = next[node].get(edge) {
                calls.push((node, edge + 1));
                if marks[*child].is_none() {
                    calls.push((*child, 0));
                }
                continue;
            }
            let mark = marks[node].expect("visited");
            if mark.low == mark.index {
                let mut component = BTreeSet::new();
                while let Some(member) = stack.pop() {
                    marks[member].as_mut().expect("visited").on_stack = false;
                    component.insert(member);
                    if member == node {
                        break;
                    }
                }
                found.push(component);
            }
        }
    }
    found
}

/// Which value stands for which, followed to the end.
pub struct Replacements(Vec<Value>);

impl Replacements {
    /// Every value stands for itself.
    pub fn new(values: usize) -> Replacements {
        Replacements((0..values as u32).map(Value).collect())
    }

    /// From now on `by` stands for the value.
    pub fn replace(&mut self, value: Value, by: Value) {
        self.0[value.0 as usize] = by;
    }

    /// What stands for the value.
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

/// Joins every block with the one it alone jumps to, then numbers blocks, values and slots in order.
pub fn merge_and_number(mut body: Body) -> Body {
    merge(&mut body);
    number(body)
}

fn merge(body: &mut Body) {
    let mut incoming = vec![0u32; body.blocks.len()];
    incoming[0] = 1;
    for index in reachable(body) {
        for successor in successors(&body.blocks[index].terminator) {
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
        block.instructions.iter_mut().for_each(|instruction| op_values(&mut instruction.op, &mut visit));
        terminator_values(&mut block.terminator, &mut visit);
    }
}

/// Blocks in an order in which every block comes after one that leads to it, near the order of text.
fn reachable(body: &Body) -> Vec<usize> {
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![0];
    let mut order = Vec::new();
    while let Some(index) = work.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        order.push(index);
        work.extend(successors(&body.blocks[index].terminator).iter().rev().map(|block| block.0 as usize));
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
        block_slots(&mut body.blocks[*index], &mut |slot| used[slot.0 as usize] = true);
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
            op_values(&mut instruction.op, &mut { value_of });
        }
        terminator_values(&mut block.terminator, &mut { value_of });
        let block_of = |block: &mut BlockId| *block = blocks[block.0 as usize].expect("targets are reachable");
        edges_mut(&mut block.terminator).into_iter().for_each(|edge| block_of(&mut edge.to));
        match &mut block.terminator {
            Terminator::Wait(wait) => wait_targets(wait).into_iter().for_each(block_of),
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
        block_slots(&mut block, &mut |slot| *slot = slots[slot.0 as usize].expect("used slots are kept"));
        result.blocks.push(block);
    }
    result
}
