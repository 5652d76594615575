//! Refuses a path whose side exits are observable: an intermediate state in which a partner does not wait yet. After a
//! side exit the members return to their waits in turn. A `pri alt` or `else` of a member that runs before another
//! member waits again observes that no partner waits, and takes another branch; without the path the partner would have
//! waited throughout.

use super::process_of;
use crate::path_spec::PathSpec;
use crate::product::observes_absence;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, Body, Boundary, ChannelId, Operation, ProcessId, Program, Terminator};

/// Refuses a path of which a member observes at some exit that another does not wait yet. `path`: the path's code.
pub(super) fn refuse_observers(program: &Program, spec: &PathSpec, path: &Body) -> Result<(), Refusal> {
    let on_path: Vec<u32> = spec.members.iter().map(|member| member.instance).collect();
    for block in &path.blocks {
        let Terminator::Leave(leave) = &block.terminator else { continue };
        let members = leave.members.iter().map(|(number, resume)| (on_path[*number as usize + 1], resume.to));
        for (member, to) in members.chain([(on_path[0], leave.trigger.to)]) {
            let body = &program.processes[process_of(program, member).0 as usize].body;
            let others = on_path.iter().copied().filter(|other| *other != member);
            for channel in awaited_channels(program, body, to) {
                let observes = |process: &ProcessId| observes_absence(program, *process, channel);
                if let Some(process) = others.clone().map(|other| process_of(program, other)).find(observes) {
                    return Err(Refusal::ObservesAbsence { channel, process });
                }
            }
        }
    }
    Ok(())
}

/// The internal channels of the wait at the end of a block.
fn awaited_channels(program: &Program, body: &Body, block: BlockId) -> Vec<ChannelId> {
    let Terminator::Wait(wait) = &body.blocks[block.0 as usize].terminator else { return Vec::new() };
    let channel = |operation: &Operation| match operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => Some(*channel),
        Operation::After { .. } => None,
    };
    let is_internal = |channel: &ChannelId| program.channels[channel.0 as usize].boundary == Boundary::Internal;
    wait.branches.iter().filter_map(|branch| channel(&branch.operation)).filter(is_internal).collect()
}
