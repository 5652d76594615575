//! Simplification of the raw control-flow graph: removes unreachable blocks and trivial block parameters, those whose
//! arguments are all the same value (Braun et al., "Simple and Efficient Construction of Static Single Assignment
//! Form").

use crate::builder::{Raw, RawBody, RawTerminator};
use quaject_esp_ir::cfg::{Regions, edges_mut, successors};
use quaject_esp_ir::ir::{BlockId, Edge, Value};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};

/// Empties unreachable blocks and removes them from the predecessor lists.
pub(super) fn drop_unreachable(body: &mut RawBody) {
    let mut reached = vec![false; body.blocks.len()];
    let mut work = vec![BlockId(0)];
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut reached[block.0 as usize], true) {
            continue;
        }
        work.extend(raw_successors(&body.blocks[block.0 as usize].terminator));
    }
    for (index, block) in body.blocks.iter_mut().enumerate() {
        block.predecessors.retain(|predecessor| reached[predecessor.0 as usize]);
        if !reached[index] {
            block.parameters.clear();
            block.code.clear();
            block.terminator = RawTerminator::Open;
        }
    }
}

/// The successors of a raw terminator, including regions.
pub(super) fn raw_successors(terminator: &RawTerminator) -> Vec<BlockId> {
    match terminator {
        RawTerminator::Open => Vec::new(),
        RawTerminator::Plain(terminator) => successors(terminator, Regions::Include),
        RawTerminator::Thaw { value: _, moved, copied } => vec![moved.to, *copied],
    }
}

fn raw_edges(terminator: &mut RawTerminator) -> Vec<&mut Edge> {
    match terminator {
        RawTerminator::Open => Vec::new(),
        RawTerminator::Plain(terminator) => edges_mut(terminator),
        RawTerminator::Thaw { value: _, moved, copied: _ } => vec![moved],
    }
}

/// Replaces a parameter by its argument if all its arguments are the same value or the parameter itself.
pub(super) fn drop_trivial_parameters(body: &mut RawBody) {
    let mut replacements = Replacements::new(body.values.len());
    // Per block and parameter: the arguments along every edge.
    let mut arguments: Vec<Vec<Vec<Value>>> =
        body.blocks.iter().map(|block| vec![Vec::new(); block.parameters.len()]).collect();
    for block in body.blocks.iter_mut() {
        for edge in raw_edges(&mut block.terminator) {
            for (position, argument) in edge.arguments.iter().enumerate() {
                arguments[edge.to.0 as usize][position].push(*argument);
            }
        }
    }
    let mut dropped: Vec<Vec<bool>> = body.blocks.iter().map(|block| vec![false; block.parameters.len()]).collect();
    loop {
        let mut changed = false;
        for (index, block) in body.blocks.iter().enumerate() {
            for (position, parameter) in block.parameters.iter().enumerate() {
                if dropped[index][position] || arguments[index][position].is_empty() {
                    continue;
                }
                let mut only = None;
                let is_trivial = arguments[index][position].iter().all(|argument| {
                    let argument = replacements.find(*argument);
                    argument == *parameter || *only.get_or_insert(argument) == argument
                });
                if let (true, Some(only)) = (is_trivial, only) {
                    replacements.replace(*parameter, only);
                    dropped[index][position] = true;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    for block in body.blocks.iter_mut() {
        for edge in raw_edges(&mut block.terminator) {
            let dropped = &dropped[edge.to.0 as usize];
            let mut position = 0;
            edge.arguments.retain(|_| {
                position += 1;
                !dropped[position - 1]
            });
        }
    }
    for (block, dropped) in body.blocks.iter_mut().zip(&dropped) {
        let mut position = 0;
        block.parameters.retain(|_| {
            position += 1;
            !dropped[position - 1]
        });
        let mut visit = |value: &mut Value| *value = replacements.find(*value);
        for raw in &mut block.code {
            match raw {
                Raw::Plain(instruction, _) => op_values_mut(&mut instruction.op, &mut visit),
                Raw::Begin(_) => {}
                Raw::Freeze { result: _, from, location: _ } => visit(from),
            }
        }
        match &mut block.terminator {
            RawTerminator::Open => {}
            RawTerminator::Plain(terminator) => terminator_values_mut(terminator, &mut visit),
            RawTerminator::Thaw { value, moved, copied: _ } => {
                visit(value);
                moved.arguments.iter_mut().for_each(visit);
            }
        }
    }
}
