//! A group of instances to be fused: its members in order, what is known of the code of each, the channels between
//! them, and the thresholds of intervals. Knows no states.

mod eligibility;
mod liveness;
mod pipeline;
mod thresholds;

pub(crate) use eligibility::observes_absence;

use self::eligibility::{channel_users, check_eligible, internal_channels};
use self::liveness::{Live, future_deadlines, join_blocks, liveness, operations_ahead};
use self::pipeline::pipeline_order;
use self::thresholds::IntervalThresholds;
use super::body_queries::wait_of_site;
use super::counted_loops::{CountedLoop, counted_loops};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    BlockId, Body, Boundary, ChannelId, Direction, Operation, ProcessId, Program, Site, SiteId, SlotId, Terminator,
    TypeTable, Value, Wait,
};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// The members of a product, and what is known before it is explored.
pub(crate) struct Group<'p> {
    pub(super) program: &'p Program,
    /// Senders before their receivers, as far as there is such an order.
    pub(super) members: Vec<Member<'p>>,
    /// Per channel: whether it lies between members.
    pub(super) internal: Vec<bool>,
    pub(super) thresholds: IntervalThresholds,
    /// Whether overflow is a fault.
    pub(super) checked: bool,
    /// Whether there are processes outside of the group.
    pub(super) has_others: bool,
    /// The processes that use the channels of the members, and in which direction.
    pub(super) users: BTreeMap<ChannelId, Vec<(ProcessId, Direction)>>,
}

/// One instance of the group.
#[derive(Clone)]
pub(super) struct Member<'p> {
    pub(super) instance: u32,
    pub(super) process: ProcessId,
    pub(super) body: &'p Body,
    /// The first of its slots and of its operations in the fused process.
    pub(super) first_slot: u32,
    pub(super) first_site: u32,
    /// Per block: what is live at its start, its parameters included.
    pub(super) live: Vec<Live>,
    /// Per block that ends in a wait: what is live there.
    pub(super) live_at_wait: Vec<Option<Live>>,
    /// Per block: whether several edges lead to it.
    pub(super) is_join: Vec<bool>,
    /// Per block: the operations that are reachable from it.
    pub(super) ahead: Vec<FxHashSet<(ChannelId, Direction)>>,
    /// Its loops with a bounded number of iterations.
    pub(super) counted: Vec<CountedLoop>,
    /// Deadlines that have certainly not passed when they are computed.
    pub(super) future_deadlines: BTreeSet<Value>,
}

impl<'p> Member<'p> {
    /// The first instance of a process, with the analyses of its code.
    fn new(program: &'p Program, process: ProcessId) -> Member<'p> {
        let body = &program.processes[process.0 as usize].body;
        let (live, live_at_wait) = liveness(body);
        Member {
            instance: program.first_instance(process),
            process,
            body,
            first_slot: 0,
            first_site: 0,
            live,
            live_at_wait,
            is_join: join_blocks(body),
            ahead: operations_ahead(body),
            counted: counted_loops(body),
            future_deadlines: future_deadlines(body),
        }
    }
}

impl<'p> Group<'p> {
    /// A group of all replicas of these processes; `bodies` is their code, by instance.
    pub(crate) fn new(
        program: &'p Program,
        processes: &[ProcessId],
        bodies: &'p BTreeMap<u32, Body>,
        checked: bool,
    ) -> Result<Group<'p>, Refusal> {
        let users = channel_users(program, processes);
        let internal = internal_channels(program, processes, &users)?;
        for process in processes {
            check_eligible(program, *process)?;
        }
        let mut members = Vec::new();
        for process in pipeline_order(program, processes) {
            let member = Member::new(program, process);
            let replicas = program.processes[process.0 as usize].replicas;
            let bodies = bodies.range(member.instance..member.instance + replicas);
            members.extend(bodies.map(|(instance, body)| Member { instance: *instance, body, ..member.clone() }));
        }
        number_slots_and_sites(program, &mut members);
        Ok(Group {
            program,
            internal,
            thresholds: IntervalThresholds::new(&members),
            members,
            checked,
            has_others: program.processes.len() > processes.len(),
            users,
        })
    }

    /// A group of these instances, in this order, for a fast path: other instances may use their channels as well.
    pub(crate) fn of_instances(program: &'p Program, instances: &[u32], checked: bool) -> Group<'p> {
        let members = instances.iter().map(|instance| {
            let (process, _) = program.process_of(*instance).expect("a specification names instances");
            Member { instance: *instance, ..Member::new(program, process) }
        });
        let mut members: Vec<Member<'p>> = members.collect();
        number_slots_and_sites(program, &mut members);
        Group {
            program,
            internal: program.channels.iter().map(|channel| channel.boundary == Boundary::Internal).collect(),
            thresholds: IntervalThresholds::new(&members),
            members,
            checked,
            has_others: true,
            users: BTreeMap::new(),
        }
    }

    /// Per member: its position in the pipeline.
    pub(super) fn pipeline_ranks(&self) -> Vec<usize> {
        let processes: Vec<ProcessId> = self.processes().collect();
        let order = pipeline_order(self.program, &processes);
        let position = |process: &ProcessId| order.iter().position(|other| other == process).unwrap_or(0);
        processes.iter().map(position).collect()
    }

    /// The slots of a member that are live at the start of a block.
    pub(crate) fn live_slots(&self, member: usize, block: BlockId) -> BTreeSet<SlotId> {
        self.members[member].live[block.0 as usize].slots.clone()
    }

    /// The values of a member that are live at the start of a block.
    pub(crate) fn live_values(&self, member: usize, block: BlockId) -> BTreeSet<Value> {
        self.members[member].live[block.0 as usize].values.clone()
    }

    /// The block of the wait with an operation of a member.
    pub(crate) fn wait_of(&self, member: usize, site: SiteId) -> Option<BlockId> {
        wait_of_site(self.members[member].body, site).map(|(block, _)| block)
    }

    /// A member's code.
    pub(crate) fn body(&self, member: usize) -> &Body {
        self.members[member].body
    }

    /// A member's process.
    pub(crate) fn process(&self, member: usize) -> ProcessId {
        self.members[member].process
    }

    /// The name of a member, as a part of names in C.
    pub(crate) fn instance_name(&self, member: usize) -> String {
        self.program.instance_name(self.members[member].instance).replace(['[', ']'], "")
    }

    /// The code of all members, in order.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.members.iter().map(|member| member.body)
    }

    /// The processes of all members, in order.
    pub(crate) fn processes(&self) -> impl Iterator<Item = ProcessId> {
        self.members.iter().map(|member| member.process)
    }

    /// The operations of all members, in order.
    pub(crate) fn sites(&self) -> Vec<Site> {
        let sites = |process: ProcessId| self.program.processes[process.0 as usize].sites.iter().cloned();
        self.processes().flat_map(sites).collect()
    }

    pub(super) fn types(&self) -> &'p TypeTable {
        &self.program.types
    }

    /// The larger number of instances at the two ends of a channel.
    pub(super) fn max_endpoint_instances(&self, channel: ChannelId) -> u32 {
        let users = self.users.get(&channel).map_or(&[][..], Vec::as_slice);
        let at_end = |wanted: Direction| {
            let users = users.iter().filter(|(_, direction)| *direction == wanted);
            users.map(|(process, _)| self.program.processes[process.0 as usize].replicas).sum()
        };
        u32::max(at_end(Direction::In), at_end(Direction::Out))
    }

    pub(super) fn is_internal(&self, channel: ChannelId) -> bool {
        self.internal[channel.0 as usize]
    }

    /// Whether a branch waits for a time that has certainly not passed when the member arrives.
    pub(super) fn is_future_deadline(&self, member: usize, wait: &Wait, branch: u32) -> bool {
        match &wait.branches[branch as usize].operation {
            Operation::After { amount, unit: _ } => self.members[member].future_deadlines.contains(amount),
            Operation::In { .. } | Operation::Out { .. } => false,
        }
    }

    /// The wait that a block ends in.
    pub(super) fn wait(&self, member: usize, block: BlockId) -> &'p Wait {
        match &self.members[member].body.blocks[block.0 as usize].terminator {
            Terminator::Wait(wait) => wait,
            other => unreachable!("a member waits at a wait, not {other:?}"),
        }
    }
}

/// Numbers the slots and sites of the members consecutively in the fused process.
fn number_slots_and_sites(program: &Program, members: &mut [Member<'_>]) {
    let (mut first_slot, mut first_site) = (0, 0);
    for member in members {
        (member.first_slot, member.first_site) = (first_slot, first_site);
        let source = &program.processes[member.process.0 as usize];
        first_slot += source.body.slots.len() as u32;
        first_site += source.sites.len() as u32;
    }
}
