//! The plan of a C program: everything that is decided before text is written. It is plain data (names, program
//! counters, storage, ends of channels, how partners find each other, priority arbitration, hand-off) that the analyses
//! in `plan/` compute once, in the order of [`Plan::new`]; emitters only look it up.

mod build;
mod enumerations;
mod hand_off;
mod partners;
mod paths;
mod priority;
mod type_names;
mod waits;

pub(crate) use enumerations::EnumerationPlan;
pub(crate) use hand_off::HandOffPlan;
pub(crate) use paths::{PathFunction, defined_values};
pub(crate) use waits::{branch_channel, has_free_object_guard};

use super::Options;
use super::storage::StorageMap;
use crate::layout::Layouts;
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// A channel operation as one end of a rendezvous.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct End {
    pub(crate) process: usize,
    /// Index into [`ProcessPlan::waits`].
    pub(crate) wait: usize,
    pub(crate) branch: usize,
}

/// One `in`, `out` or `alt`. The terms of priority arbitration are those of the table in [`priority`].
pub(crate) struct WaitPlan {
    pub(crate) block: BlockId,
    /// Program counter of an instance that waits here. Those of the branches, ready to continue, follow; then `else`.
    pub(crate) pc: u32,
    pub(crate) branches: Vec<BranchPlan>,
    /// Whether some branch is on the environment or the clock: the wait is tried again at each poll.
    pub(crate) polls_environment: bool,
    /// Whether it is a non-blocking poll of the environment in the function of a fast path.
    pub(crate) is_path_poll: bool,
    /// Whether the branch that the next search begins at is remembered (a fair choice of several branches).
    pub(crate) rotates: bool,
    /// Whether some branch may be closed: a mask in the frame holds the open ones.
    pub(crate) has_open_mask: bool,
    /// Whether a guard depends on free objects and is evaluated again when their number changes.
    pub(crate) reevaluates_guards: bool,
    /// Whether it is tried again at quiescence, as a pool may have become empty.
    pub(crate) retries_at_quiescence: bool,
    /// Priority arbitration: whether a requester here may defer to the owner of a `pri alt`.
    pub(crate) may_defer: bool,
    /// Priority arbitration: whether a requester here may bypass a branch of a `pri alt`.
    pub(crate) may_bypass: bool,
    /// Whether instances that wait here are served in order of arrival among others, by a stamp.
    pub(crate) has_arrival_stamp: bool,
    /// Program counter at which the search restarts after the step was left inside it: a preempted `pri alt` has sent
    /// the last message that the caller accepts in one step.
    pub(crate) retry_pc: Option<u32>,
}

impl WaitPlan {
    /// Whether the values of its messages are parked before the search, which may be repeated.
    pub(crate) fn parks_before_search(&self) -> bool {
        self.polls_environment || self.may_retry() || self.may_bypass || self.retry_pc.is_some()
    }

    /// Whether an instance that waits here may search for partners again.
    pub(crate) fn may_retry(&self) -> bool {
        self.may_be_requeued() || self.retries_at_quiescence
    }

    /// Whether an instance that waits here may be on the ready list, to search for partners again.
    pub(crate) fn may_be_requeued(&self) -> bool {
        self.reevaluates_guards || self.may_defer
    }
}

/// One branch of a wait.
#[derive(Default)]
pub(crate) struct BranchPlan {
    /// Operands of an `out` that are parked while it waits: number and value.
    pub(crate) parked_payload: Vec<(usize, Value)>,
    /// Received values that are parked until the instance continues.
    pub(crate) parked_parameters: Vec<Value>,
    /// Locals that a fast path saves while it pauses behind the branch.
    pub(crate) paused: Vec<Value>,
    /// Whether evaluating the region of its payload changes reference counts.
    pub(crate) payload_takes_objects: bool,
    /// Whether evaluating the region of its condition changes reference counts.
    pub(crate) condition_takes_objects: bool,
    /// Priority arbitration: whether an earlier branch of the `pri alt` is on the environment or the clock.
    pub(crate) may_be_preempted: bool,
    /// Priority arbitration: whether an earlier internal branch of the `pri alt` may become possible while it waits.
    pub(crate) may_be_deferred_to: bool,
}

/// One process.
pub(crate) struct ProcessPlan {
    /// C name of the frame, and prefix of labels and locals.
    pub(crate) name: String,
    pub(crate) storage: StorageMap,
    pub(crate) waits: Vec<WaitPlan>,
    pub(crate) yields: BTreeMap<BlockId, u32>,
    /// Program counters of the blocks at which an instance continues after a fast path of another one.
    pub(crate) path_resumptions: BTreeMap<BlockId, u32>,
    /// Fast paths whose code is a function.
    pub(crate) paths: Vec<PathFunction>,
    /// Slots that a fast path captures from other instances, as C text.
    pub(crate) captured: BTreeMap<SlotId, String>,
    pub(crate) start_pc: u32,
    /// Number of the first instance.
    pub(crate) base: u32,
    pub(crate) replicas: u32,
    /// Words of 32 branches in the longest mask of open branches.
    pub(crate) mask_words: usize,
    /// `after` branches of the wait that has most of them.
    pub(crate) deadlines: usize,
}

impl ProcessPlan {
    /// The wait that ends this block.
    pub(crate) fn wait_at(&self, block: BlockId) -> usize {
        self.waits.iter().position(|wait| wait.block == block).expect("every wait is planned")
    }
}

/// One pure function.
pub(crate) struct FunctionPlan {
    pub(crate) name: String,
    pub(crate) storage: StorageMap,
}

/// How an instance finds a partner on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    /// Only one instance is possible: its program counter is compared.
    InPlace,
    /// A function searches the instances that wait.
    Search,
}

/// One channel.
pub(crate) struct ChannelPlan {
    pub(crate) name: String,
    /// Without the program's prefix.
    pub(crate) plain: String,
    /// The members of its messages for the environment, in order of the values.
    pub(crate) members: Vec<String>,
    pub(crate) readers: Vec<End>,
    pub(crate) writers: Vec<End>,
    pub(crate) reader_instances: u32,
    pub(crate) writer_instances: u32,
    /// Whether some message holds references into pools.
    pub(crate) has_boxes: bool,
    /// How a reader finds a writer.
    pub(crate) writer_lookup: Lookup,
    /// How a writer with a payload computed on arrival finds a reader.
    pub(crate) reader_lookup: Lookup,
    /// Whether some writer searches for its reader.
    pub(crate) readers_are_searched: bool,
    /// Priority arbitration: whether some writer may bypass a reader.
    pub(crate) readers_may_be_bypassed: bool,
    /// Whether a rendezvous may reopen guards, so that it changes counts and the ready list in one place.
    pub(crate) commit_reopens_guards: bool,
    /// To the environment: whether several waits send by one function.
    pub(crate) has_shared_send: bool,
    /// To the environment: whether waits that only send share their exit where the C is compiled for size.
    pub(crate) has_shared_send_exit: bool,
}

impl ChannelPlan {
    /// Words of blocked bits for the waiting readers; none if there is at most one.
    pub(crate) fn reader_words(&self) -> u32 {
        if self.reader_instances > 1 { self.reader_instances.div_ceil(32) } else { 0 }
    }

    /// Words of blocked bits for the waiting writers; none if there is at most one.
    pub(crate) fn writer_words(&self) -> u32 {
        if self.writer_instances > 1 { self.writer_instances.div_ceil(32) } else { 0 }
    }

    /// Whether the channel has both readers and writers.
    pub(crate) fn is_connected(&self) -> bool {
        !self.readers.is_empty() && !self.writers.is_empty()
    }
}

/// The parts of the scheduler that a program needs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Features {
    /// Some wait is on the environment or the clock.
    pub(crate) polls_environment: bool,
    /// Some guard depends on free objects.
    pub(crate) reevaluates_guards: bool,
    /// Some wait is tried again at quiescence.
    pub(crate) retries_at_quiescence: bool,
    /// Some search is restarted after the step was left inside it.
    pub(crate) restarts_searches: bool,
    /// Trial evaluations of regions may change pools and are undone.
    pub(crate) undoes_trials: bool,
    /// The ready list holds program counters in place of instances: each belongs to one instance.
    pub(crate) queues_pcs: bool,
}

/// How long an instance runs before others do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnLimits {
    /// Operations of one turn.
    pub(crate) operations: u32,
    /// Turns between two polls of the environment.
    pub(crate) until_poll: u32,
    /// Turns of one call of the step, rounded up to the next poll. The step then returns and has to be called again, so
    /// that the caller stays in control of a program that computes forever.
    pub(crate) until_leave: u32,
}

/// Everything the emitters of C text share.
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a Program,
    pub(crate) layouts: Layouts,
    pub(crate) options: &'a Options,
    pub(crate) processes: Vec<ProcessPlan>,
    pub(crate) functions: Vec<FunctionPlan>,
    pub(crate) channels: Vec<ChannelPlan>,
    pub(crate) pools: Vec<String>,
    /// C names of constants, by id.
    pub(crate) constants: Vec<String>,
    pub(crate) interfaces: Vec<String>,
    /// The enumerations of messages and functions of the environment.
    pub(crate) enumerations: Vec<EnumerationPlan>,
    pub(crate) instances: u32,
    /// Prefix of public functions and types, `esp` by default.
    pub(crate) prefix: String,
    /// Prefix of the program's own names: empty by default, else the prefix and `_`.
    pub(crate) own: String,
    /// C names of types in the program's form, by id; empty for those without one.
    pub(crate) types: Vec<String>,
    /// C names of types in the environment's form, where that differs.
    environment_types: Vec<String>,
    pub(crate) features: Features,
    pub(crate) turns: TurnLimits,
    /// Bits of a program counter.
    pub(crate) pc_bits: u32,
    /// Priority arbitration: the pairs of ends that are queried before a requester bypasses a `pri alt`: the owner's
    /// end, the requester's end.
    pub(crate) preference_queries: BTreeSet<(End, End)>,
    /// Direct hand-off between sender and receiver.
    pub(crate) hand_off: HandOffPlan,
}

/// Bits of the unsigned C type that holds numbers up to this one.
pub(crate) fn unsigned_bits(largest: u32) -> u32 {
    match largest {
        0..=255 => 8,
        256..=65535 => 16,
        65536.. => 32,
    }
}

/// The processes of some ends, each once, in order.
pub(crate) fn processes_of(ends: &[End]) -> Vec<usize> {
    let mut all = Vec::new();
    for end in ends {
        if !all.contains(&end.process) {
            all.push(end.process);
        }
    }
    all
}

/// The member of a frame that holds a group of slots with one address.
pub(crate) fn shared_name(group: usize) -> String {
    format!("shared{group}")
}

impl<'a> Plan<'a> {
    /// The wait in the IR.
    pub(crate) fn wait(&self, process: usize, wait: usize) -> &'a Wait {
        let block = self.processes[process].waits[wait].block;
        let terminator = &self.program.processes[process].body.blocks[block.0 as usize].terminator;
        terminator.as_wait().expect("a wait's plan names the block it ends")
    }

    /// The branch in the IR.
    pub(crate) fn branch(&self, end: End) -> &'a Branch {
        &self.wait(end.process, end.wait).branches[end.branch]
    }

    /// The plan of the wait that an end belongs to.
    pub(crate) fn wait_plan(&self, end: End) -> &WaitPlan {
        &self.processes[end.process].waits[end.wait]
    }

    /// The plan of a branch.
    pub(crate) fn branch_plan(&self, end: End) -> &BranchPlan {
        &self.wait_plan(end).branches[end.branch]
    }

    /// All ends of one wait.
    pub(crate) fn ends(&self, process: usize, wait: usize) -> impl Iterator<Item = End> + use<> {
        (0..self.wait(process, wait).branches.len()).map(move |branch| End { process, wait, branch })
    }

    /// All waits: process and index.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let waits = |(process, data): (usize, &ProcessPlan)| (0..data.waits.len()).map(move |wait| (process, wait));
        self.processes.iter().enumerate().flat_map(waits)
    }

    /// Whether a branch is on a channel between instances, not on the environment or the clock.
    pub(crate) fn is_internal(&self, branch: &Branch) -> bool {
        branch_channel(branch)
            .is_some_and(|(channel, _)| self.program.channels[channel.0 as usize].boundary == Boundary::Internal)
    }

    /// The ends that a branch may meet at a rendezvous; none for the environment and the clock.
    pub(crate) fn opposite(&self, branch: &Branch) -> &[End] {
        match branch_channel(branch) {
            Some(_) if !self.is_internal(branch) => &[],
            Some((channel, Direction::In)) => &self.channels[channel.0 as usize].writers,
            Some((channel, Direction::Out)) => &self.channels[channel.0 as usize].readers,
            None => &[],
        }
    }

    /// The C type of the environment's form.
    pub(crate) fn environment_type(&self, ty: TypeId) -> &str {
        match self.program.types.get(ty) {
            Type::Boxed(pool) => self.environment_type(self.program.types.pool(*pool).content),
            Type::Error
            | Type::Bool
            | Type::Int(_)
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => {
                let name = &self.environment_types[ty.0 as usize];
                if name.is_empty() { &self.types[ty.0 as usize] } else { name }
            }
        }
    }

    /// Name of everything generated for one branch: `process_w4_b1`.
    pub(crate) fn branch_name(&self, end: End) -> String {
        format!("{}_b{}", self.wait_name(end.process, end.wait), end.branch)
    }

    /// Name of everything generated for one wait: `process_w4`, 4 being its block.
    pub(crate) fn wait_name(&self, process: usize, wait: usize) -> String {
        let process = &self.processes[process];
        format!("{}_w{}", process.name, process.waits[wait].block.0)
    }

    /// Member of `park` for a branch's values.
    pub(crate) fn park_name(&self, end: End) -> String {
        format!("w{}b{}", self.wait_plan(end).block.0, end.branch)
    }

    /// Program counter of an instance that has committed to a branch and is ready to continue.
    pub(crate) fn continuation_pc(&self, end: End) -> u32 {
        self.wait_plan(end).pc + 1 + end.branch as u32
    }

    /// Program counter of an instance that has taken the `else` of a wait.
    pub(crate) fn otherwise_pc(&self, process: usize, wait: usize) -> u32 {
        self.processes[process].waits[wait].pc + 1 + self.wait(process, wait).branches.len() as u32
    }

    /// Bit of a process's first replica among a channel's readers or writers.
    pub(crate) fn first_bit(&self, ends: &[End], process: usize) -> u32 {
        processes_of(ends)
            .into_iter()
            .take_while(|other| *other != process)
            .map(|other| self.processes[other].replicas)
            .sum()
    }

    /// Whether a process is replicated in C: its frame is an element of an array.
    pub(crate) fn is_array(&self, process: usize) -> bool {
        self.processes[process].replicas > 1
    }

    /// How code that runs as an instance of the process accesses its frame.
    pub(crate) fn frame(&self, process: usize) -> String {
        let name = &self.processes[process].name;
        if self.is_array(process) { format!("{name}->") } else { format!("t->{name}.") }
    }

    /// The process of an instance, and how any code accesses its frame.
    pub(crate) fn instance_frame(&self, instance: u32) -> (usize, String) {
        let (process, replica) = self.program.process_of(instance).expect("a verified path names instances");
        let process = process.0 as usize;
        let name = &self.processes[process].name;
        let frame = if self.is_array(process) { format!("t->{name}[{replica}].") } else { format!("t->{name}.") };
        (process, frame)
    }

    /// The number of the instance that runs the process's code.
    pub(crate) fn own_id(&self, process: usize) -> String {
        let plan = &self.processes[process];
        if self.is_array(process) { format!("{}_self", plan.name) } else { plan.base.to_string() }
    }

    /// The same as an operand of comparisons, which is unsigned.
    pub(crate) fn own_operand(&self, process: usize) -> String {
        let suffix = if self.is_array(process) { "" } else { "u" };
        format!("{}{suffix}", self.own_id(process))
    }

    /// A C name for a version of a variable.
    pub(crate) fn version(&self, body: &Body, value: Value) -> String {
        match &body.values[value.0 as usize].name {
            Some(name) => format!("{name}_{}", value.0),
            None => format!("v{}", value.0),
        }
    }

    /// A C name for a slot.
    pub(crate) fn slot_name(&self, body: &Body, slot: SlotId) -> String {
        match &body.slots[slot.0 as usize].name {
            Some(name) => format!("{name}_s{}", slot.0),
            None => format!("s{}", slot.0),
        }
    }

    /// A slot in the frame, as its member; of a union of several, if it shares memory.
    pub(crate) fn frame_member(&self, process: usize, slot: SlotId) -> String {
        let name = self.slot_name(&self.program.processes[process].body, slot);
        match self.processes[process].storage.colouring.group(slot) {
            Some(group) => format!("{}.{name}", shared_name(group)),
            None => name,
        }
    }

    /// Whether external messages are passed through the arguments of `esp_step`.
    pub(crate) fn sans_io(&self) -> bool {
        self.options.style.is_sans_io()
    }

    /// Whether choices are traced.
    pub(crate) fn is_traced(&self) -> bool {
        self.options.trace.is_callback()
    }

    /// Channels at this boundary, in order of text.
    pub(crate) fn external(&self, wanted: Boundary) -> Vec<usize> {
        (0..self.channels.len()).filter(|index| self.program.channels[*index].boundary == wanted).collect()
    }

    /// The smallest power of two that holds all instances.
    pub(crate) fn ready_capacity(&self) -> u32 {
        self.instances.max(1).next_power_of_two()
    }

    /// The wait that a member of a fast path starts at: process and index.
    pub(crate) fn member_start(&self, member: &PathMember) -> (usize, usize) {
        let (process, _) = self.instance_frame(member.instance);
        (process, self.processes[process].wait_at(member.start.0))
    }

    /// The fast path whose function holds a block.
    pub(crate) fn is_in_path_function(&self, process: usize, block: BlockId) -> bool {
        self.processes[process].paths.iter().any(|path| path.blocks.binary_search(&block).is_ok())
    }

    /// Where a local is saved while a fast path pauses behind a branch.
    pub(crate) fn paused_place(&self, end: End, value: Value) -> String {
        format!("{}park.{}.s{}", self.frame(end.process), self.park_name(end), value.0)
    }

    /// The C name of a fast path's function.
    pub(crate) fn path_name(&self, process: usize, path: usize) -> String {
        let data = &self.processes[process];
        format!("{}_path{}", data.name, data.paths[path].entry.0)
    }

    /// Whether the members of a path join the ready list in a loop when it is left.
    pub(crate) fn requeues_in_loop(&self, leave: &Leave) -> bool {
        leave.members.len() >= MIN_MEMBERS_FOR_LOOP && !self.features.reevaluates_guards
    }
}

/// The minimal number of members that are put on the ready list in a loop, which then takes less code than one
/// statement for each.
const MIN_MEMBERS_FOR_LOOP: usize = 3;
