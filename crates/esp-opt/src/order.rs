//! Whether the order in which processes run can be seen. Processes that only read and write, each channel by one instance
//! at each end, send the same messages in whatever order they run (Kahn's networks); if no more than one of the program
//! shows anything to the world, all that is shown is in the same order, too. Elsewhere another order is as good by the
//! language (reference, section 8), but a program may show something else than it did. Changes nothing.

use crate::fuse::Refusal;
use quaject_esp_ir::ir::{
    AltOrder, Boundary, ChannelId, Direction, Guard, Location, MemoryMode, Op, Operation, ProcessId, Program, Purity,
    Terminator, Wait,
};

/// Why the order in which these processes run may be seen; none if it cannot.
pub(crate) fn seen(program: &Program, processes: &[ProcessId]) -> Option<Refusal> {
    several_show(program)
        .or_else(|| frees(program, processes))
        .or_else(|| processes.iter().find_map(|process| chooses(program, *process)))
}

/// Whether the order in which the processes of a program run cannot be seen.
pub fn is_unseen(program: &Program) -> bool {
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    seen(program, &all).is_none()
}

fn refuse(process: ProcessId, what: &'static str, location: Location) -> Option<Refusal> {
    Some(Refusal::Seen { process, what, location })
}

/// Whoever shows something to the world beside another instance that does.
fn several_show(program: &Program) -> Option<Refusal> {
    let mut shown = 0;
    for (index, process) in program.processes.iter().enumerate() {
        let Some(location) = shows(program, index) else { continue };
        let what = if process.replicas > 1 {
            "several instances, each of which shows something to the world,"
        } else {
            "something that is shown to the world, as others show something, too,"
        };
        shown += process.replicas;
        if shown > 1 {
            return refuse(ProcessId(index as u32), what, location);
        }
    }
    None
}

/// Where a process shows something: sends to the world, calls a function with effects, or ends the program.
fn shows(program: &Program, process: usize) -> Option<Location> {
    let process = &program.processes[process];
    let is_outside = |channel: ChannelId| program.channels[channel.0 as usize].boundary != Boundary::Internal;
    let sends = process.sites.iter().find(|site| site.direction == Direction::Out && is_outside(site.channel));
    let calls = || {
        process.body.blocks.iter().find_map(|block| {
            let has_effects = |op: &Op| match op {
                Op::CallExtern { function, .. } => program.externs[function.0 as usize].purity == Purity::Impure,
                _ => false,
            };
            let call = block.instructions.iter().find(|instruction| has_effects(&instruction.op));
            match (call, &block.terminator) {
                (Some(call), _) => Some(call.location),
                (None, Terminator::Exit(_)) => Some(block.location),
                (None, _) => None,
            }
        })
    };
    sends.map(|site| site.location).or_else(calls)
}

/// Whose objects could be used after they were freed: that is told where it is noticed, which may be elsewhere.
fn frees(program: &Program, processes: &[ProcessId]) -> Option<Refusal> {
    let is_manual = program.memory == MemoryMode::Manual && !program.types.pools().is_empty();
    let first = processes.first().filter(|_| is_manual)?;
    refuse(*first, "objects that are freed by hand", program.processes[first.0 as usize].location)
}

/// Where a process does something by who is there first, or when.
fn chooses(program: &Program, process: ProcessId) -> Option<Refusal> {
    let source = &program.processes[process.0 as usize];
    for site in &source.sites {
        if users(program, site.channel, site.direction) > 1 {
            return refuse(process, "a channel that others use in the same direction", site.location);
        }
    }
    for block in &source.body.blocks {
        let asks = block.instructions.iter().find(|instruction| matches!(instruction.op, Op::FreeObjects(_)));
        if let Some(asks) = asks {
            return refuse(process, "a question for `free`", asks.location);
        }
        if let Terminator::Wait(wait) = &block.terminator
            && let Some(what) = choice(wait)
        {
            return refuse(process, what, block.location);
        }
    }
    None
}

/// What a wait decides by who is there first, or when.
fn choice(wait: &Wait) -> Option<&'static str> {
    match (&wait.branches[..], wait.otherwise, wait.order) {
        (_, Some(_), _) => Some("an `else`"),
        ([branch], None, AltOrder::Fair | AltOrder::Priority) => match (&branch.operation, branch.guard) {
            (Operation::After { .. }, _) => Some("an `after`"),
            (_, Guard::Region(_)) => Some("a guard that asks `free`"),
            (Operation::In { .. } | Operation::Out { .. }, Guard::Open | Guard::Value(_)) => None,
        },
        (_, None, _) => Some("a choice"),
    }
}

/// How many instances use a channel in a direction.
fn users(program: &Program, channel: ChannelId, direction: Direction) -> u32 {
    let uses = |process: &&quaject_esp_ir::ir::Process| {
        process.sites.iter().any(|site| site.channel == channel && site.direction == direction)
    };
    program.processes.iter().filter(uses).map(|process| process.replicas).sum()
}
