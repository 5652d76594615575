//! Fuses a group of processes into one process, their product under one schedule, in which the rendezvous between them
//! are assignments (filter fusion, Proebsting, Watterson 1996).
//! Each member remains as a stub that ends at once, so that the instance numbers held by `pid` values stay valid. The
//! choice of groups is in `groups`, the product construction in `product`.

use crate::absolute_deadlines::use_absolute_deadlines;
use crate::label_instances::label_instances;
use crate::limits::{LimitKind, Limits};
use crate::passes;
use crate::product::{Group, explore};
use crate::refusal::Refusal;
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::{
    Block, Body, ChannelId, Location, Operation, Payload, Process, ProcessId, Program, Terminator,
};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// A group as one process.
pub(crate) struct FusedProcess {
    /// The process.
    pub(crate) process: Process,
    /// Nodes of the product.
    pub(crate) nodes: usize,
}

/// A program in which a group is one process.
#[derive(Clone, Debug)]
pub struct FusedProgram {
    /// The program; the fused process is its last.
    pub program: Program,
    /// Nodes of the product.
    pub nodes: usize,
}

/// Fuses all replicas of these processes. With `checked`, overflow remains a fault.
///
/// # Errors
/// Why they cannot be fused.
pub fn fuse(
    program: &Program,
    processes: &[ProcessId],
    checked: bool,
    limits: Limits,
) -> Result<FusedProgram, Refusal> {
    let FusedProcess { process, nodes } =
        build_fused_process(program, processes, checked, limits, &mut limits.fuel.clone())?;
    let mut fused = program.clone();
    install_fused_process(&mut fused, processes, process);
    Ok(FusedProgram { program: fused, nodes })
}

/// Builds the process that replaces all replicas of these processes. `fuel` is reduced by the work it takes.
pub(crate) fn build_fused_process(
    program: &Program,
    processes: &[ProcessId],
    checked: bool,
    limits: Limits,
    fuel: &mut usize,
) -> Result<FusedProcess, Refusal> {
    let product_limits = limits.of_product(program, processes);
    let instances: u32 = processes.iter().map(|process| program.processes[process.0 as usize].replicas).sum();
    if instances as usize > limits.members {
        return Err(Refusal::LimitExceeded { kind: LimitKind::Instances, limit: limits.members, costliest: None });
    }
    let program = &*use_absolute_deadlines(program, processes);
    let bodies = label_instances(program, processes);
    let group = Group::new(program, processes, &bodies, checked)?;
    let product = explore(&group, product_limits, fuel)?;
    let body = passes::clean(product.body, &program.types, checked, program.memory);
    let limit = limits.max_product_size(&product_limits, product.has_blocked_members);
    if limits.measured_size(&body) > limit {
        return Err(Refusal::LimitExceeded { kind: product_limits.size_kind, limit, costliest: product.costliest });
    }
    let members: Vec<&Process> = group.processes().map(|process| &program.processes[process.0 as usize]).collect();
    let process = Process {
        name: fused_name(&members),
        replicas: 1,
        replicated: false,
        labels: Vec::new(),
        sites: group.sites(),
        body,
        members: processes.to_vec(),
        operations: operation_locations(&members),
        location: members.first().map(|process| process.location).unwrap_or_default(),
    };
    Ok(FusedProcess { process, nodes: product.nodes })
}

/// Adds a fused process to the program and reduces its members to stubs.
pub(crate) fn install_fused_process(program: &mut Program, members: &[ProcessId], fused: Process) {
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

/// The locations of the operations of these processes, and of the code of their messages, patterns and conditions.
fn operation_locations(members: &[&Process]) -> Vec<(Location, ChannelId)> {
    let mut locations = BTreeMap::new();
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
                locations.insert(branch.location, channel);
                let blocks = region.map(|entry| region_blocks(body, entry)).unwrap_or_default();
                let code = blocks.iter().flat_map(|block| &body.blocks[block.0 as usize].instructions);
                locations.extend(code.map(|instruction| (instruction.location, channel)));
            }
        }
    }
    locations.remove(&Location::default());
    locations.into_iter().collect()
}

fn fused_name(members: &[&Process]) -> SmolStr {
    let mut names: Vec<&str> = members.iter().map(|process| process.name.as_str()).collect();
    names.dedup();
    names.join("_").into()
}
