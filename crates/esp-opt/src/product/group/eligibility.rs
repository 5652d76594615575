//! Which processes can be fused: those whose constructs and shared channels the product can express; and which channels
//! are internal to a group. Knows waits, no other code.

use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    AltOrder, Boundary, Branch, ChannelId, Direction, Guard, Operation, ProcessId, Program, Terminator,
};
use std::collections::BTreeMap;

/// Per channel: whether only these processes use it. A channel with one end outside is like an external one; a channel
/// with both ends in the group that other processes use as well cannot be expressed.
pub(super) fn internal_channels(
    program: &Program,
    processes: &[ProcessId],
    users: &BTreeMap<ChannelId, Vec<(ProcessId, Direction)>>,
) -> Result<Vec<bool>, Refusal> {
    let mut internal = vec![false; program.channels.len()];
    for (channel, users) in users {
        if program.channels[channel.0 as usize].boundary != Boundary::Internal {
            continue;
        }
        let has =
            |wanted: Direction| users.iter().any(|(user, direction)| *direction == wanted && processes.contains(user));
        if users.iter().all(|(user, _)| processes.contains(user)) {
            internal[channel.0 as usize] = true;
        } else if has(Direction::In) && has(Direction::Out)
            || users.iter().any(|(user, _)| !processes.contains(user) && observes_absence(program, *user, *channel))
        {
            return Err(Refusal::SharedChannel { channel: *channel });
        }
    }
    Ok(internal)
}

/// Whether a process observes the absence of a partner on a channel, by `else` or `pri alt`. While a fused process
/// runs, those of its members that wait are not visible to other processes.
pub(crate) fn observes_absence(program: &Program, process: ProcessId, on: ChannelId) -> bool {
    program.processes[process.0 as usize].body.blocks.iter().any(|block| {
        let Terminator::Wait(wait) = &block.terminator else { return false };
        let is_on = |branch: &Branch| match &branch.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. } => *channel == on,
            Operation::After { .. } => false,
        };
        let observes = wait.otherwise.is_some() || wait.order == AltOrder::Priority && wait.branches.len() > 1;
        observes && wait.branches.iter().any(is_on)
    })
}

/// The processes that use the channels of these processes.
pub(super) fn channel_users(
    program: &Program,
    processes: &[ProcessId],
) -> BTreeMap<ChannelId, Vec<(ProcessId, Direction)>> {
    let own = processes.iter().flat_map(|process| &program.processes[process.0 as usize].sites);
    let mut users: BTreeMap<ChannelId, Vec<(ProcessId, Direction)>> =
        own.map(|site| (site.channel, Vec::new())).collect();
    for (index, process) in program.processes.iter().enumerate() {
        for site in &process.sites {
            let user = (ProcessId(index as u32), site.direction);
            if let Some(users) = users.get_mut(&site.channel)
                && !users.contains(&user)
            {
                users.push(user);
            }
        }
    }
    users
}

/// Refuses a process with a construct that the product does not express.
pub(super) fn check_eligible(program: &Program, process: ProcessId) -> Result<(), Refusal> {
    for block in &program.processes[process.0 as usize].body.blocks {
        let refuse = |what: &'static str| Err(Refusal::Unsupported { process, what, location: block.location });
        match &block.terminator {
            Terminator::Wait(wait) => {
                for branch in &wait.branches {
                    if let Guard::Region(_) = branch.guard {
                        return refuse("a guard that reads `free`");
                    }
                }
            }
            Terminator::Jump(_)
            | Terminator::Yield(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => {}
        }
    }
    Ok(())
}
