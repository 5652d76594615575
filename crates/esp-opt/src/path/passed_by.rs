//! Who could be passed by. Where a path is left its members come back to their waits one after the other. A `pri alt` or
//! `else` of one that finds nobody does something else, though without the path another one would have waited there all
//! the time; then there is no path.

use super::{PathSpec, process_of};
use crate::product::looks_who_waits;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, Body, Boundary, ChannelId, Operation, ProcessId, Program, Terminator};

/// The channel, and who does something else there, if a member could be passed by. `path`: the path's code.
pub(super) fn passed_by(program: &Program, of: &PathSpec, path: &Body) -> Result<(), Refusal> {
    let on_path: Vec<u32> = of.members.iter().map(|part| part.instance).collect();
    for block in &path.blocks {
        let Terminator::Leave(leave) = &block.terminator else { continue };
        let members = leave.members.iter().map(|(number, resume)| (on_path[*number as usize + 1], resume.to));
        for (member, to) in members.chain([(on_path[0], leave.trigger.to)]) {
            let body = &program.processes[process_of(program, member).0 as usize].body;
            let others = on_path.iter().copied().filter(|other| *other != member);
            for channel in waited_for(program, body, to) {
                let looks = |process: &ProcessId| looks_who_waits(program, *process, channel);
                if let Some(process) = others.clone().map(|other| process_of(program, other)).find(looks) {
                    return Err(Refusal::ObservesAbsence { channel, process });
                }
            }
        }
    }
    Ok(())
}

/// The channels between processes of the wait at the end of a block.
fn waited_for(program: &Program, body: &Body, block: BlockId) -> Vec<ChannelId> {
    let Terminator::Wait(wait) = &body.blocks[block.0 as usize].terminator else { return Vec::new() };
    let channel = |operation: &Operation| match operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => Some(*channel),
        Operation::After { .. } => None,
    };
    let is_internal = |channel: &ChannelId| program.channels[channel.0 as usize].boundary == Boundary::Internal;
    wait.branches.iter().filter_map(|branch| channel(&branch.operation)).filter(is_internal).collect()
}
