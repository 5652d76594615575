//! Splits blocks of the processes of fast paths so that every point at which a path may exit is the start of a block,
//! at which a member can resume: before waits, labels, tests, faults and ends, and before instructions whose faults the
//! path checks beforehand.

use super::process_of;
use crate::path_spec::{PathSpec, PathStatement};
use crate::places::{bytes_bound, indexed_places};
use quaject_esp_ir::cfg::{Regions, reachable_from, region_entries};
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Branch, Edge, Op, Operation, Program, SiteId, Terminator, TypeTable,
};
use std::collections::BTreeSet;

/// The program, with the processes of all specifications split.
pub(super) fn split(program: &Program, specifications: &[PathSpec]) -> Program {
    let mut result = program.clone();
    let members = || specifications.iter().flat_map(|specification| &specification.members);
    let processes: BTreeSet<_> = members().map(|member| process_of(program, member.instance)).collect();
    for process in processes {
        let replicas = members().filter(|member| process_of(program, member.instance) == process);
        let labels: BTreeSet<u32> = replicas
            .flat_map(|member| &member.statements)
            .filter_map(|statement| match statement {
                PathStatement::Label(label) => Some(label.0),
                PathStatement::Site(_) => None,
            })
            .collect();
        let body = &mut result.processes[process.0 as usize].body;
        let regions = region_blocks(body);
        let triggers = specifications.iter().map(|specification| &specification.members[0]);
        for start in triggers
            .filter(|member| process_of(program, member.instance) == process)
            .map(|member| member.start.statement)
        {
            if let PathStatement::Site(site) = start {
                split_behind_start(body, site);
            }
        }
        for index in 0..body.blocks.len() {
            if !regions.contains(&BlockId(index as u32)) {
                split_block(&program.types, body, index, &labels);
            }
        }
    }
    result
}

/// Gives the operation at which a path starts a successor block of its own, as a place for the entry test.
fn split_behind_start(body: &mut Body, start: SiteId) {
    let starts_path = |branch: &&Branch| match &branch.operation {
        Operation::In { site, .. } | Operation::Out { site, .. } => *site == start,
        Operation::After { .. } => false,
    };
    let waits = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Wait(wait) => wait.branches.iter().find(starts_path),
        _ => None,
    });
    let Some(then) = waits.map(|branch| branch.then.0 as usize).next() else { return };
    let next = Edge { to: BlockId(body.blocks.len() as u32), arguments: Vec::new() };
    let block = &mut body.blocks[then];
    if let (true, Terminator::Jump(edge)) = (block.instructions.is_empty(), &block.terminator)
        // Arguments of an edge are available only behind it.
        && edge.arguments.is_empty()
    {
        return;
    }
    let rest = Block {
        parameters: Vec::new(),
        instructions: std::mem::take(&mut block.instructions),
        terminator: std::mem::replace(&mut block.terminator, Terminator::Jump(next)),
        location: block.location,
    };
    body.blocks.push(rest);
}

/// The blocks of regions, which run while an instance waits; they are not split.
fn region_blocks(body: &Body) -> BTreeSet<BlockId> {
    let waits = body.blocks.iter().filter_map(|block| block.terminator.as_wait());
    reachable_from(body, waits.flat_map(region_entries), Regions::Include).into_iter().collect()
}

fn split_block(types: &TypeTable, body: &mut Body, index: usize, labels: &BTreeSet<u32>) {
    let mut instructions = std::mem::take(&mut body.blocks[index].instructions);
    let mut cuts: Vec<usize> = Vec::new();
    for (position, instruction) in instructions.iter().enumerate() {
        match &instruction.op {
            Op::Mark(label) if labels.contains(&label.0) => cuts.extend([position, position + 1]),
            Op::Predicate(..) => cuts.push(position + 1),
            op if is_checked_by_path(types, body, op) => cuts.push(position),
            _ => {}
        }
    }
    let block = &body.blocks[index];
    match &block.terminator {
        Terminator::Wait(_) | Terminator::Yield(_) | Terminator::Exit(_) | Terminator::End | Terminator::Fault(_) => {
            cuts.push(instructions.len())
        }
        Terminator::Jump(_)
        | Terminator::Branch { .. }
        | Terminator::Switch { .. }
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Enter(_)
        | Terminator::Leave(_) => {}
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|cut| *cut > 0);
    let (terminator, location) = (block.terminator.clone(), block.location);
    // From the last cut back: each piece jumps to the next.
    let mut end = (terminator, location);
    for cut in cuts.into_iter().rev() {
        let rest = instructions.split_off(cut);
        let start = rest.first().map_or(end.1, |instruction| instruction.location);
        let (terminator, location) = end;
        body.blocks.push(Block { parameters: Vec::new(), instructions: rest, terminator, location });
        let next = Edge { to: BlockId(body.blocks.len() as u32 - 1), arguments: Vec::new() };
        end = (Terminator::Jump(next), start);
    }
    let block = &mut body.blocks[index];
    block.instructions = instructions;
    (block.terminator, block.location) = end;
}

/// Whether a path checks before an instruction that it does not fault: indices, divisors, lengths, free objects.
fn is_checked_by_path(types: &TypeTable, body: &Body, op: &Op) -> bool {
    let may_fault = match op {
        Op::Binary(BinaryOp::Divide | BinaryOp::Remainder, _, _)
        | Op::Allocate(_)
        | Op::InstanceOf(..)
        | Op::SetLength(..)
        | Op::CopySlice { .. }
        | Op::StoreSlice { .. }
        | Op::Append { .. }
        | Op::LoadNumber { .. }
        | Op::StoreNumber { .. }
        | Op::LoadBits { .. }
        | Op::StoreBits { .. } => true,
        Op::Copy { to, from } => bytes_bound(types, body, from) > bytes_bound(types, body, to),
        _ => false,
    };
    may_fault || !indexed_places(op).is_empty()
}
