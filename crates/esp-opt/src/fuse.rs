//! Fusing processes: a group of them becomes one, which does what they do without rendezvous. The processes stay as
//! stubs that end at once, so that the numbers that a `pid` holds do not change. Which processes make a group is said
//! in `groups`.

use crate::limits::{LimitKind, Limits};
use crate::marked::marked;
use crate::moments::moments;
use crate::passes;
use crate::product::{Group, explore};
use crate::refusal::Refusal;
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::{
    Block, Body, ChannelId, Location, Operation, Payload, Process, ProcessId, Program, Terminator,
};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// A group that became one process.
pub(crate) struct Made {
    /// The process.
    pub(crate) process: Process,
    /// Nodes of the product.
    pub(crate) nodes: usize,
}

/// A program in which a group is one process.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The program; the new process is its last.
    pub program: Program,
    /// Nodes of the product.
    pub nodes: usize,
}

/// Fuses all replicas of these processes. With `checked`, overflow faults as it does in the program.
///
/// # Errors
/// Why they cannot be fused.
pub fn fuse(program: &Program, processes: &[ProcessId], checked: bool, limits: Limits) -> Result<Fused, Refusal> {
    let made = make(program, processes, checked, limits, &mut limits.fuel.clone())?;
    let mut fused = program.clone();
    install(&mut fused, processes, made.process);
    Ok(Fused { program: fused, nodes: made.nodes })
}

/// The process that does what all replicas of these processes do. `fuel` is what is left of it.
pub(crate) fn make(
    program: &Program,
    processes: &[ProcessId],
    checked: bool,
    limits: Limits,
    fuel: &mut usize,
) -> Result<Made, Refusal> {
    let product_limits = limits.of_product(program, processes);
    let instances: u32 = processes.iter().map(|process| program.processes[process.0 as usize].replicas).sum();
    if instances as usize > limits.members {
        let (kind, limit) = (LimitKind::Instances, limits.members);
        return Err(Refusal::LimitExceeded { kind, limit, costliest: None });
    }
    let program = &*moments(program, processes);
    let bodies = marked(program, processes);
    let group = Group::new(program, processes, &bodies, checked)?;
    let product = explore(&group, product_limits, fuel)?;
    let body = passes::clean(product.body, &program.types, checked);
    let limit = limits.max_product_size(&product_limits, product.has_lost);
    if limits.measured_size(&body) > limit {
        return Err(Refusal::LimitExceeded { kind: product_limits.size_kind, limit, costliest: product.costliest });
    }
    let members: Vec<&Process> = group.processes().map(|process| &program.processes[process.0 as usize]).collect();
    let process = Process {
        name: name(&members),
        replicas: 1,
        replicated: false,
        labels: Vec::new(),
        sites: group.sites(),
        body,
        members: processes.to_vec(),
        operations: operations(&members),
        location: members.first().map(|process| process.location).unwrap_or_default(),
    };
    Ok(Made { process, nodes: product.nodes })
}

/// Puts a fused process in the place of its members.
pub(crate) fn install(program: &mut Program, members: &[ProcessId], fused: Process) {
    program.processes.push(fused);
    for process in members {
        let stub = &mut program.processes[process.0 as usize];
        stub.sites.clear();
        stub.labels.clear();
        let end = Block {
            parameters: Vec::new(),
            instructions: Vec::new(),
            terminator: Terminator::End,
            location: stub.location,
        };
        stub.body = Body { values: Vec::new(), slots: Vec::new(), blocks: vec![end] };
    }
}

/// The places of the operations of these processes, and of the code of their messages, patterns and conditions.
fn operations(members: &[&Process]) -> Vec<(Location, ChannelId)> {
    let mut places = BTreeMap::new();
    for body in members.iter().map(|member| &member.body) {
        for block in &body.blocks {
            let Terminator::Wait(wait) = &block.terminator else { continue };
            for branch in &wait.branches {
                let (channel, region) = match &branch.operation {
                    Operation::In { channel, condition, .. } => (*channel, *condition),
                    Operation::Out { channel, payload: Payload::Region(entry), .. } => (*channel, Some(*entry)),
                    Operation::Out { channel, payload: Payload::Ready(_), .. } => (*channel, None),
                    Operation::After { .. } => continue,
                };
                places.insert(branch.location, channel);
                let blocks = region.map(|entry| region_blocks(body, entry)).unwrap_or_default();
                let code = blocks.iter().flat_map(|block| &body.blocks[block.0 as usize].instructions);
                places.extend(code.map(|instruction| (instruction.location, channel)));
            }
        }
    }
    places.remove(&Location::default());
    places.into_iter().collect()
}

fn name(members: &[&Process]) -> SmolStr {
    let mut names: Vec<&str> = members.iter().map(|process| process.name.as_str()).collect();
    names.dedup();
    names.join("_").into()
}
