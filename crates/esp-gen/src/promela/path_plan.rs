//! Plans the fast paths of a model: numbers the waits at which instances can be captured and the blocks at which they
//! resume, names the variables of captured members, and refuses paths that Promela cannot express.

use super::paths::{CAPTURED, CapturedMember, RESUMED};
use super::plan::Plan;
use super::scope::names_of;
use quaject_esp_ir::ir::*;

/// Plans fast paths, or refuses them.
pub(super) fn plan_paths(plan: &mut Plan<'_>) {
    let program = plan.program;
    if program.paths.is_empty() {
        return;
    }
    plan.paths.place = plan.names.claim("place");
    plan.paths.entered = plan.names.claim("entered");
    for path in &program.paths {
        for member in &path.members {
            let (id, _) = program.process_of(member.instance).expect("a verified path names instances");
            let process = &program.processes[id.0 as usize];
            if process.replicas > 1 {
                let message = format!("fast path {} takes along one of several `{}`", path.name, process.name);
                plan.refuse(process.location, message, "the built-in engine does it: leave out `--engine spin`");
                return;
            }
            let next = plan.paths.starts.len() as u32 + 1;
            plan.paths.starts.entry((id, member.start.0)).or_insert(next);
            if let Terminator::Wait(wait) = &process.body.blocks[member.start.0.0 as usize].terminator {
                let channels = wait.branches.iter().filter_map(|branch| channel_of(&branch.operation));
                plan.paths.named_sender_channels.extend(channels);
            }
            if !plan.paths.captured.contains_key(&id) {
                let prefix = format!("{}_", plan.processes[id.0 as usize]);
                let mut names = plan.names.clone();
                let (usage, variables, slots) = names_of(plan, &process.body, &prefix, &mut names);
                plan.names = names;
                plan.paths.captured.insert(id, CapturedMember { instance: member.instance, usage, variables, slots });
            }
            let (trigger, _) = program.process_of(path.trigger).expect("a verified path names instances");
            for (own, here) in &member.slots {
                let name = plan.paths.captured[&id].slots[own.0 as usize].clone();
                plan.paths.aliases.insert((trigger, *here), name);
            }
        }
    }
    for block in program.processes.iter().flat_map(|process| &process.body.blocks) {
        let Terminator::Leave(leave) = &block.terminator else { continue };
        for (number, resume) in &leave.members {
            let member = &program.paths[leave.path.0 as usize].members[*number as usize];
            let (id, _) = program.process_of(member.instance).expect("a verified path names instances");
            let blocks = plan.paths.resumes.entry(id).or_default();
            let next = blocks.len() as u32;
            blocks.entry(resume.to).or_insert(next);
        }
    }
    let crowded = plan.paths.resumes.iter().find(|(_, blocks)| blocks.len() as u32 >= CAPTURED - RESUMED);
    let many = plan.paths.starts.len() as u32 >= RESUMED;
    if let Some(process) = crowded.map(|(id, _)| *id).or(many.then_some(ProcessId(0))) {
        let process = &program.processes[process.0 as usize];
        let message = format!("`{}` goes on in too many places after fast paths", process.name);
        plan.refuse(process.location, message, "the built-in engine does it: leave out `--engine spin`");
    }
}

fn channel_of(operation: &Operation) -> Option<ChannelId> {
    match operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => Some(*channel),
        Operation::After { .. } => None,
    }
}
