//! Direct hand-off ("Fast Paths in Concurrent Programs", section 2; Liedtke 1993): on a channel with one sender and one
//! receiver, the receiver that continues is treated like a function that its sender has called. Decides on which
//! channels, and numbers the program counters of senders that have called; the emitter of the same name describes the
//! protocol.

use super::{End, Plan};
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{Boundary, HandOff, Policy};
use std::collections::{BTreeMap, BTreeSet};

/// The senders that their receivers return to.
#[derive(Default)]
pub(crate) struct HandOffPlan {
    /// The program counter of each sender's end while its receiver runs.
    pub(crate) pcs: BTreeMap<End, u32>,
    /// Per process: the senders' ends that call it.
    pub(crate) callers: BTreeMap<usize, Vec<End>>,
    /// Channels between processes by name, and why hand-off on them is not direct.
    pub(crate) channels: Vec<(String, Option<&'static str>)>,
}

impl HandOffPlan {
    /// Whether this is an end of the only process that calls the receiver.
    pub(crate) fn is_only_caller(&self, receiver: usize, writer: End) -> bool {
        let processes: BTreeSet<usize> = self.callers(receiver).iter().map(|end| end.process).collect();
        self.pcs.contains_key(&writer) && processes.len() == 1
    }

    /// Whether a process may have been called, so that it returns when it stops.
    pub(crate) fn has_callers(&self, process: usize) -> bool {
        !self.callers(process).is_empty()
    }

    /// The ends at which a process is called.
    pub(crate) fn callers(&self, process: usize) -> &[End] {
        self.callers.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Whether a process may be among the transitive callers of itself.
    pub(crate) fn is_recursive(&self, process: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut work: Vec<usize> = self.callers(process).iter().map(|end| end.process).collect();
        while let Some(caller) = work.pop() {
            if seen.insert(caller) {
                work.extend(self.callers(caller).iter().map(|end| end.process));
            }
        }
        seen.contains(&process)
    }
}

impl Plan<'_> {
    /// Plans direct hand-off. `pc` is the first free program counter.
    pub(super) fn plan_hand_off(&self, mut pc: u32) -> HandOffPlan {
        let mut hand_off = HandOffPlan::default();
        match self.program.hand_off {
            HandOff::Queued => return hand_off,
            HandOff::Direct => {}
        }
        let program_obstacle = self.program_obstacle();
        for (index, channel) in self.program.channels.iter().enumerate() {
            let data = &self.channels[index];
            if channel.boundary != Boundary::Internal || !data.is_connected() {
                continue;
            }
            let obstacle = program_obstacle.or_else(|| self.channel_obstacle(index));
            hand_off.channels.push((channel.name.to_string(), obstacle));
            if obstacle.is_some() {
                continue;
            }
            for writer in &data.writers {
                hand_off.pcs.insert(*writer, pc);
                pc += 1;
                let reader = data.readers[0].process;
                hand_off.callers.entry(reader).or_default().push(*writer);
            }
        }
        hand_off
    }

    /// Why hand-off is direct on no channel of the program.
    fn program_obstacle(&self) -> Option<&'static str> {
        let mut waits = self.processes.iter().flat_map(|process| &process.waits);
        let features = &self.features;
        if !self.program.paths.is_empty() {
            Some("the program has fast paths, which inspect the ready list")
        } else if !features.queues_pcs {
            Some("the program has replicas, or guards that depend on free objects")
        } else if features.retries_at_quiescence
            || features.restarts_searches
            || waits.any(|wait| wait.may_defer || wait.may_bypass)
        {
            Some("the program has a `pri alt` that needs arbitration")
        } else if self.program.channels.iter().any(|channel| channel.policy != Policy::Receiver) {
            Some("a channel of the program has a `policy`")
        } else {
            None
        }
    }

    /// Why hand-off is not direct on a channel.
    fn channel_obstacle(&self, channel: usize) -> Option<&'static str> {
        let data = &self.channels[channel];
        if data.writer_instances != 1 {
            Some("several processes write it")
        } else if data.reader_instances != 1 {
            Some("several processes read it")
        } else {
            None
        }
    }

    /// Whether an operation is in a loop of its process.
    pub(crate) fn is_repeated(&self, end: End) -> bool {
        let body = &self.program.processes[end.process].body;
        let start = self.wait_plan(end).block;
        let mut seen = vec![false; body.blocks.len()];
        let mut work = vec![self.branch(end).then];
        while let Some(block) = work.pop() {
            if block == start {
                return true;
            }
            if !std::mem::replace(&mut seen[block.0 as usize], true) {
                work.extend(successors(&body.blocks[block.0 as usize].terminator, Regions::Skip));
            }
        }
        false
    }
}
