//! Copy propagation: replaces a block parameter that always equals another value (a redundant phi) by that value.

use quaject_esp_ir::cfg::{Regions, edges, edges_mut, successors};
use quaject_esp_ir::ir::{BlockId, Body, Value};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};

/// Drops parameters that always equal one value, or another parameter of their block; whether there were any.
pub(super) fn drop_redundant_parameters(body: &mut Body) -> bool {
    let mut replacements = Replacements::new(body.values.len());
    let reached = reachable_blocks(body);
    let mut dropped: Vec<Vec<bool>> = body.blocks.iter().map(|block| vec![false; block.parameters.len()]).collect();
    let mut any = false;
    loop {
        let mut changed = false;
        let arguments = incoming_arguments(body, &reached);
        for (index, block) in body.blocks.iter().enumerate() {
            for position in 0..block.parameters.len() {
                if dropped[index][position] || arguments[index].is_empty() {
                    continue;
                }
                let parameter = block.parameters[position];
                let mut only = None;
                let is_redundant = arguments[index].iter().all(|edge| {
                    let argument = replacements.find(edge[position]);
                    argument == parameter || *only.get_or_insert(argument) == argument
                });
                let is_equal_to = |earlier: &usize| {
                    !dropped[index][*earlier] && arguments[index].iter().all(|edge| edge[*earlier] == edge[position])
                };
                let replacement = match (is_redundant, only) {
                    (true, Some(only)) => Some(only),
                    _ => (0..position).find(is_equal_to).map(|earlier| block.parameters[earlier]),
                };
                if let Some(replacement) = replacement {
                    let replacement = replacements.find(replacement);
                    if replacement != parameter {
                        replacements.replace(parameter, replacement);
                        dropped[index][position] = true;
                        changed = true;
                        any = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    if any {
        replace_dropped(body, &dropped, &mut replacements);
    }
    any
}

fn reachable_blocks(body: &Body) -> Vec<bool> {
    let mut reached = vec![false; body.blocks.len()];
    let mut worklist = vec![BlockId(0)];
    while let Some(block) = worklist.pop() {
        if !std::mem::replace(&mut reached[block.0 as usize], true) {
            worklist.extend(successors(&body.blocks[block.0 as usize].terminator, Regions::Include));
        }
    }
    reached
}

/// Per block: the arguments of each of its incoming edges.
fn incoming_arguments(body: &Body, reached: &[bool]) -> Vec<Vec<Vec<Value>>> {
    let mut arguments: Vec<Vec<Vec<Value>>> = vec![Vec::new(); body.blocks.len()];
    for (block, _) in body.blocks.iter().zip(reached).filter(|(_, reached)| **reached) {
        for edge in edges(&block.terminator) {
            arguments[edge.to.0 as usize].push(edge.arguments.clone());
        }
    }
    arguments
}

fn replace_dropped(body: &mut Body, dropped: &[Vec<bool>], replacements: &mut Replacements) {
    for block in &mut body.blocks {
        for edge in edges_mut(&mut block.terminator) {
            let dropped = &dropped[edge.to.0 as usize];
            if edge.arguments.len() == dropped.len() {
                let mut position = 0;
                edge.arguments.retain(|_| {
                    position += 1;
                    !dropped[position - 1]
                });
            }
        }
    }
    for (block, dropped) in body.blocks.iter_mut().zip(dropped) {
        let mut position = 0;
        block.parameters.retain(|_| {
            position += 1;
            !dropped[position - 1]
        });
        let mut visit = |value: &mut Value| *value = replacements.find(*value);
        block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut visit));
        terminator_values_mut(&mut block.terminator, &mut visit);
    }
}
