//! The possible partners: the ends of each channel, and whether a partner is found in place or by a search.

use super::waits::branch_channel;
use super::{ChannelPlan, End, Lookup, Plan};
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::*;

impl Plan<'_> {
    /// Collects the ends of each channel, and the waits at which the order of arrival matters.
    pub(super) fn collect_ends(&mut self) {
        for (process, wait) in self.waits().collect::<Vec<_>>() {
            for end in self.ends(process, wait) {
                let Some((channel, direction)) = branch_channel(self.branch(end)) else { continue };
                let replicas = self.processes[process].replicas;
                let plan = &mut self.channels[channel.0 as usize];
                let (ends, instances) = match direction {
                    Direction::In => (&mut plan.readers, &mut plan.reader_instances),
                    Direction::Out => (&mut plan.writers, &mut plan.writer_instances),
                };
                if !ends.iter().any(|other| other.process == process) {
                    *instances += replicas;
                }
                ends.push(end);
            }
        }
        for (process, wait) in self.waits().collect::<Vec<_>>() {
            let is_stamped = self.wait(process, wait).branches.iter().any(|branch| self.is_served_in_order(branch));
            self.processes[process].waits[wait].has_arrival_stamp = is_stamped;
        }
    }

    /// Whether instances that wait at a branch are served in order of arrival.
    fn is_served_in_order(&self, branch: &Branch) -> bool {
        let Some((channel, direction)) = branch_channel(branch) else { return false };
        let (plan, data) = (&self.channels[channel.0 as usize], &self.program.channels[channel.0 as usize]);
        data.boundary == Boundary::Internal
            && match direction {
                Direction::In => data.sharing == Sharing::Shared && plan.reader_instances > 1,
                Direction::Out => plan.writer_instances > 1,
            }
    }

    /// Whether regions of each branch change reference counts.
    pub(super) fn find_allocations(&mut self) {
        for (process, wait) in self.waits().collect::<Vec<_>>() {
            for end in self.ends(process, wait) {
                let (payload, condition) = match &self.branch(end).operation {
                    Operation::Out { payload: Payload::Region(entry), .. } => (Some(*entry), None),
                    Operation::In { condition, .. } => (None, *condition),
                    Operation::Out { payload: Payload::Ready(_), .. } | Operation::After { .. } => (None, None),
                };
                let takes_objects =
                    |entry: Option<BlockId>| entry.is_some_and(|entry| self.takes_objects(process, entry));
                let (payload, condition) = (takes_objects(payload), takes_objects(condition));
                let branch = &mut self.processes[process].waits[wait].branches[end.branch];
                (branch.payload_takes_objects, branch.condition_takes_objects) = (payload, condition);
            }
        }
    }

    /// Whether a region changes reference counts, so that its evaluation on trial must be undone.
    fn takes_objects(&self, process: usize, entry: BlockId) -> bool {
        let body = &self.program.processes[process].body;
        let changes_counts = |instruction: &Instruction| {
            matches!(
                instruction.op,
                Op::Allocate(_) | Op::Retain(_) | Op::Release(_) | Op::CallFunction { .. } | Op::CallExtern { .. }
            )
        };
        let blocks = region_blocks(body, entry);
        let mut instructions = blocks.iter().flat_map(|block| &body.blocks[block.0 as usize].instructions);
        !self.pools.is_empty() && instructions.any(changes_counts)
    }

    /// Decides how partners find each other on each channel.
    pub(super) fn plan_lookups(&mut self) {
        for channel in 0..self.channels.len() {
            let data = &self.program.channels[channel];
            let readers_may_be_bypassed =
                self.channels[channel].readers.iter().any(|reader| self.may_be_bypassed(*reader));
            let writer_lookup = self.writer_lookup(channel);
            let reader_lookup = self.reader_lookup(channel, readers_may_be_bypassed);
            let has_region = |end: &End| match &self.branch(*end).operation {
                Operation::Out { payload: Payload::Region(_), .. } => true,
                Operation::Out { payload: Payload::Ready(_), .. } | Operation::In { .. } | Operation::After { .. } => {
                    false
                }
            };
            let readers_are_searched =
                reader_lookup == Lookup::Search || self.channels[channel].writers.iter().any(has_region);
            let has_boxes = self.channels[channel].has_boxes;
            let has_shared_send = !self.is_traced() && !has_boxes && self.channels[channel].writers.len() > 1;
            let has_shared_send_exit = data.boundary == Boundary::ToEnvironment && !self.sans_io() && has_shared_send;
            let commit_reopens_guards = self.features.reevaluates_guards && has_boxes;
            let plan = &mut self.channels[channel];
            *plan = ChannelPlan {
                readers_may_be_bypassed,
                writer_lookup,
                reader_lookup,
                readers_are_searched,
                has_shared_send,
                has_shared_send_exit,
                commit_reopens_guards,
                name: std::mem::take(&mut plan.name),
                plain: std::mem::take(&mut plan.plain),
                members: std::mem::take(&mut plan.members),
                readers: std::mem::take(&mut plan.readers),
                writers: std::mem::take(&mut plan.writers),
                ..*plan
            };
        }
    }

    /// A reader finds the only possible writer in place: one instance, whose waits are plain `out`s.
    fn writer_lookup(&self, channel: usize) -> Lookup {
        let data = &self.channels[channel];
        let is_plain_out = |end: &End| match &self.branch(*end).operation {
            Operation::Out { payload: Payload::Ready(_), .. } => self.wait(end.process, end.wait).branches.len() == 1,
            Operation::Out { payload: Payload::Region(_), .. } => false,
            Operation::In { .. } | Operation::After { .. } => unreachable!("a writer is an `out`"),
        };
        let in_place = data.writer_instances <= 1
            && !self.may_discard_trial(channel, &data.writers)
            && data.writers.iter().all(is_plain_out);
        if in_place { Lookup::InPlace } else { Lookup::Search }
    }

    /// A writer finds the only possible reader in place: one instance, one `in` on the channel in each of its waits.
    fn reader_lookup(&self, channel: usize, readers_may_be_bypassed: bool) -> Lookup {
        let data = &self.channels[channel];
        let is_alone = |end: &End| {
            let same_wait = data.readers.iter().filter(|other| (other.process, other.wait) == (end.process, end.wait));
            same_wait.count() == 1
        };
        let in_place = data.reader_instances <= 1
            && !self.may_discard_trial(channel, &data.readers)
            && !readers_may_be_bypassed
            && data.readers.iter().all(is_alone);
        if in_place { Lookup::InPlace } else { Lookup::Search }
    }

    /// Whether a condition that matches may be evaluated without a commit, as priority arbitration at one of these ends
    /// intervenes, and changes counts, which only a search undoes.
    fn may_discard_trial(&self, channel: usize, ends: &[End]) -> bool {
        let is_arbitrated = |end: &End| {
            let branch = self.branch_plan(*end);
            branch.may_be_preempted || branch.may_be_deferred_to
        };
        let takes_objects = |reader: &End| self.branch_plan(*reader).condition_takes_objects;
        ends.iter().any(is_arbitrated) && self.channels[channel].readers.iter().any(takes_objects)
    }
}
