//! The order of processes along a pipeline: senders before receivers. Knows sites only.

use quaject_esp_ir::ir::{ChannelId, Direction, ProcessId, Program};

/// The processes, each after those that send to it. A cycle is broken at its first process in the text.
pub(super) fn pipeline_order(program: &Program, processes: &[ProcessId]) -> Vec<ProcessId> {
    let channels = |process: ProcessId, direction: Direction| -> Vec<ChannelId> {
        let sites = program.processes[process.0 as usize].sites.iter();
        sites.filter(|site| site.direction == direction).map(|site| site.channel).collect()
    };
    let feeds = |from: ProcessId, to: ProcessId| {
        let sent = channels(from, Direction::Out);
        from != to && channels(to, Direction::In).iter().any(|channel| sent.contains(channel))
    };
    let mut remaining: Vec<ProcessId> = processes.to_vec();
    remaining.sort_unstable();
    remaining.dedup();
    let mut order = Vec::new();
    while !remaining.is_empty() {
        let next = remaining.iter().position(|process| !remaining.iter().any(|other| feeds(*other, *process)));
        order.push(remaining.remove(next.unwrap_or(0)));
    }
    order
}
