//! What the C of a program is made of, before any text: names, program counters, who meets whom on each channel.
//! Knows the flow IR and the homes of values; writes nothing.

use super::Options;
use super::analysis::{Held, Home, Homes, Pins, SlotHome, homes, local_homes};
use super::direct::{Direct, direct};
use super::header;
use super::names::{Names, OWN_NAMES};
use super::path_functions::{PathFunction, path_functions};
use super::paths::pins;
use super::types::type_names;
use crate::layout::Layouts;
use quaject_esp_ir::cfg::region_entries;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::pool_recheck::PoolRecheck;
use std::collections::{BTreeMap, BTreeSet};

/// A channel operation as one end of a rendezvous.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct End {
    pub(crate) process: usize,
    /// Index into [`ProcessPlan::waits`].
    pub(crate) wait: usize,
    pub(crate) branch: usize,
}

/// One `in`, `out` or `alt`.
pub(crate) struct WaitPlan {
    pub(crate) block: BlockId,
    /// Program counter while waiting; the next ones are those of the branches, ready to go on; then `else`.
    pub(crate) pc: u32,
    /// Whether something outside the instances can make it go on: it is tried again when the world is polled.
    pub(crate) polled: bool,
    /// Whether it only asks the world in a function of a fast path, which goes straight on, whatever the answer.
    pub(crate) is_straight: bool,
    /// Whether the branch to try first is remembered.
    pub(crate) rotates: bool,
    /// Whether some branch is not always open: the open ones are remembered.
    pub(crate) masked: bool,
    /// Whether a guard asks for free objects, so that it is evaluated again when their number changes.
    pub(crate) retries: bool,
    /// Whether it is tried again when everything rests, as a pool may have become empty.
    pub(crate) retries_at_quiescence: bool,
    /// Whether it may meet a `pri alt` that has to look first: it queues behind that and is tried again.
    pub(crate) defers: bool,
    /// Whether it may pass by a `pri alt` that it could meet at a better branch of that.
    pub(crate) passes_by: bool,
    /// Whether its place in the queues of waiting instances matters.
    pub(crate) stamped: bool,
    /// Where its search begins anew if it had to leave the step in the midst of it: a `pri alt` it met sent a message
    /// out instead, and that was as many as the caller takes at a time.
    pub(crate) resume_pc: Option<u32>,
}

impl WaitPlan {
    /// Whether the values of its messages are put beside the frame before the search, which may begin anew.
    pub(crate) fn parks_first(&self) -> bool {
        self.polled || self.stays_tried() || self.passes_by || self.resume_pc.is_some()
    }

    /// Whether an instance that waits here may look for partners again.
    pub(crate) fn stays_tried(&self) -> bool {
        self.is_retried() || self.retries_at_quiescence
    }

    /// Whether an instance that waits here may be on the ready list, to look for partners again.
    pub(crate) fn is_retried(&self) -> bool {
        self.retries || self.defers
    }
}

/// One process.
pub(crate) struct ProcessPlan {
    /// C name of the frame, and prefix of labels and locals.
    pub(crate) name: String,
    pub(crate) homes: Homes,
    pub(crate) waits: Vec<WaitPlan>,
    pub(crate) yields: BTreeMap<BlockId, u32>,
    /// Blocks at which an instance goes on after a fast path of another.
    pub(crate) resumes: BTreeMap<BlockId, u32>,
    /// Fast paths whose code is a function.
    pub(crate) paths: Vec<PathFunction>,
    /// Slots that stand for those of other instances on a fast path, and where these are.
    pub(crate) lent: BTreeMap<SlotId, String>,
    pub(crate) start_pc: u32,
    /// Number of the first instance.
    pub(crate) base: u32,
    pub(crate) replicas: u32,
    /// Longest alt, in words of 32 branches.
    pub(crate) mask_words: usize,
    /// Most `after` branches in one alt.
    pub(crate) deadlines: usize,
}

/// One channel.
pub(crate) struct ChannelPlan {
    pub(crate) name: String,
    /// Without the program's prefix.
    pub(crate) plain: String,
    pub(crate) readers: Vec<End>,
    pub(crate) writers: Vec<End>,
    pub(crate) reader_instances: u32,
    pub(crate) writer_instances: u32,
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
}

/// Everything the writers of C text share.
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a Program,
    pub(crate) layouts: Layouts,
    pub(crate) options: &'a Options,
    pub(crate) processes: Vec<ProcessPlan>,
    pub(crate) functions: Vec<(String, Homes)>,
    pub(crate) channels: Vec<ChannelPlan>,
    pub(crate) pools: Vec<String>,
    pub(crate) interfaces: Vec<String>,
    pub(crate) instances: u32,
    /// Prefix of public functions and types, `esp` by default.
    pub(crate) prefix: String,
    /// Prefix of the program's own names: empty by default, else the prefix and `_`.
    pub(crate) own: String,
    /// C names of types, by id; empty for those without one.
    pub(crate) types: Vec<String>,
    /// The same for the world's form of those that hold boxed parts.
    world_types: Vec<String>,
    /// Meetings that an alt asks for before it passes by a `pri alt`: who waits, and who asks.
    pub(crate) asked: BTreeSet<(End, End)>,
    /// Senders that their receivers go back to.
    pub(crate) direct: Direct,
}

pub(crate) fn branch_channel(branch: &Branch) -> Option<(ChannelId, Direction)> {
    match &branch.operation {
        Operation::In { channel, .. } => Some((*channel, Direction::In)),
        Operation::Out { channel, .. } => Some((*channel, Direction::Out)),
        Operation::After { .. } => None,
    }
}

/// Whether a branch's guard asks for free objects, so that it may open while its instance waits.
pub(crate) fn asks_free(branch: &Branch) -> bool {
    match branch.guard {
        Guard::Region(_) => true,
        Guard::Open | Guard::Value(_) => false,
    }
}

impl<'a> Plan<'a> {
    pub(crate) fn new(program: &'a Program, options: &'a Options) -> Plan<'a> {
        let mut names = Names::new();
        let prefix = options.prefix.clone().unwrap_or_else(|| "esp".to_string());
        let own = options.prefix.as_ref().map(|prefix| format!("{prefix}_")).unwrap_or_default();
        OWN_NAMES.iter().for_each(|word| names.reserve(word));
        names.reserve(&header::guard(&options.header_name));
        let layouts = Layouts::of(&program.types);
        let (types, world_types) = type_names(&program.types, &layouts, &own, &mut names);
        let channels =
            program.channels.iter().map(|channel| names.claim(&format!("{own}{}", channel.name))).collect::<Vec<_>>();
        let pools = program.types.pools().iter().map(|pool| names.claim(&format!("{own}{}_pool", pool.name))).collect();
        let functions = program
            .functions
            .iter()
            .map(|function| (names.claim(&format!("{own}fn_{}", function.name)), local_homes(&function.body)))
            .collect();
        let interfaces =
            program.interfaces.iter().map(|interface| names.claim(&format!("{own}{}", interface.name))).collect();
        let whole = Whole { program, layouts: &layouts, exhaustion: &PoolRecheck::new(program) };
        let mut pc = 1;
        let mut base = 0;
        let mut processes = Vec::new();
        for process in &program.processes {
            let pins = pins(program, processes.len(), options.style);
            let wanted = format!("{own}{}", process.name);
            let name = if process.replicas > 1 { names.claim_frame(&wanted) } else { names.claim(&wanted) };
            let paths = path_functions(program, &process.body, options.style);
            let plan = plan_process(&whole, process, &pins, (name, paths), &mut pc, base);
            base += plan.replicas;
            processes.push(plan);
        }
        if processes.iter().filter(|process: &&ProcessPlan| !process.waits.is_empty()).count() > 1 {
            // Who meets others may come by a loop for each message, and go round it seldom.
            processes.iter_mut().for_each(|process| process.homes.held = Held::default());
        }
        let mut plan = Plan {
            program,
            layouts,
            options,
            processes,
            functions,
            channels: channels
                .into_iter()
                .map(|name| ChannelPlan {
                    plain: name.strip_prefix(&own).unwrap_or(&name).to_string(),
                    name,
                    readers: Vec::new(),
                    writers: Vec::new(),
                    reader_instances: 0,
                    writer_instances: 0,
                })
                .collect(),
            pools,
            interfaces,
            instances: base,
            prefix,
            own,
            types,
            world_types,
            asked: BTreeSet::new(),
            direct: Direct::default(),
        };
        plan.find_lent();
        plan.find_ends();
        plan.find_deferring();
        plan.asked = plan.asked_ends();
        let pc = plan.find_resumed(pc);
        plan.direct = direct(&plan, pc);
        plan
    }

    fn find_ends(&mut self) {
        for process in 0..self.processes.len() {
            for wait in 0..self.processes[process].waits.len() {
                for (branch, data) in self.wait(process, wait).branches.iter().enumerate() {
                    let end = End { process, wait, branch };
                    if let Some((channel, direction)) = branch_channel(data) {
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
            }
        }
        for process in 0..self.processes.len() {
            for wait in 0..self.processes[process].waits.len() {
                let stamped = self.wait(process, wait).branches.iter().any(|branch| {
                    branch_channel(branch).is_some_and(|(channel, direction)| {
                        let plan = &self.channels[channel.0 as usize];
                        let data = &self.program.channels[channel.0 as usize];
                        data.boundary == Boundary::Internal
                            && match direction {
                                Direction::In => data.sharing == Sharing::Shared && plan.reader_instances > 1,
                                Direction::Out => plan.writer_instances > 1,
                            }
                    })
                });
                self.processes[process].waits[wait].stamped = stamped;
            }
        }
    }

    fn find_deferring(&mut self) {
        for process in 0..self.processes.len() {
            for wait in 0..self.processes[process].waits.len() {
                let defers = self.partners(process, wait).any(|end| self.is_held(end));
                let passes_by = self.partners(process, wait).any(|end| self.is_passed_by(end, (process, wait)));
                self.processes[process].waits[wait].defers = defers;
                self.processes[process].waits[wait].passes_by = passes_by;
            }
        }
    }

    /// The ends that a wait may meet.
    fn partners(&self, process: usize, wait: usize) -> impl Iterator<Item = End> {
        let branches = self.wait(process, wait).branches.iter();
        branches.flat_map(|branch| self.opposite(branch)).copied()
    }

    /// Whether a branch waits for another instance, not for the world or the clock.
    pub(crate) fn is_internal(&self, branch: &Branch) -> bool {
        branch_channel(branch)
            .is_some_and(|(channel, _)| self.program.channels[channel.0 as usize].boundary == Boundary::Internal)
    }

    /// The ends that a branch may meet; none of one that looks outside.
    pub(crate) fn opposite(&self, branch: &Branch) -> &[End] {
        match branch_channel(branch) {
            Some(_) if !self.is_internal(branch) => &[],
            Some((channel, Direction::In)) => &self.channels[channel.0 as usize].writers,
            Some((channel, Direction::Out)) => &self.channels[channel.0 as usize].readers,
            None => &[],
        }
    }

    /// Gives waits that may meet a `pri alt` which sends to the world instead a program counter to come back to; the next
    /// one that is free.
    fn find_resumed(&mut self, mut pc: u32) -> u32 {
        if !self.sans_io() {
            return pc;
        }
        for process in 0..self.processes.len() {
            for wait in 0..self.processes[process].waits.len() {
                if self.partners(process, wait).any(|end| self.is_outranked(end)) {
                    self.processes[process].waits[wait].resume_pc = Some(pc);
                    pc += 1;
                }
            }
        }
        pc
    }

    /// Whether some wait can be come back to in the midst of its search.
    pub(crate) fn resumes(&self) -> bool {
        self.processes.iter().any(|process| process.waits.iter().any(|wait| wait.resume_pc.is_some()))
    }

    /// The C type of the world's form.
    pub(crate) fn world_type(&self, ty: TypeId) -> &str {
        match self.program.types.get(ty) {
            Type::Boxed(pool) => self.world_type(self.program.types.pool(*pool).content),
            Type::Error
            | Type::Bool
            | Type::Int(_)
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => {
                let name = &self.world_types[ty.0 as usize];
                if name.is_empty() { &self.types[ty.0 as usize] } else { name }
            }
        }
    }

    /// The wait itself.
    pub(crate) fn wait(&self, process: usize, wait: usize) -> &'a Wait {
        let block = self.processes[process].waits[wait].block;
        let terminator = &self.program.processes[process].body.blocks[block.0 as usize].terminator;
        terminator.as_wait().expect("a wait's plan names the block it ends")
    }

    pub(crate) fn branch(&self, end: End) -> &'a Branch {
        &self.wait(end.process, end.wait).branches[end.branch]
    }

    /// Name of everything generated for one branch: `process_block_b`.
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
        format!("w{}b{}", self.processes[end.process].waits[end.wait].block.0, end.branch)
    }

    /// Bit of a process's first replica among a channel's readers or writers.
    pub(crate) fn first_bit(&self, ends: &[End], process: usize) -> u32 {
        let mut bit = 0;
        let mut seen = Vec::new();
        for end in ends {
            if end.process == process {
                return bit;
            }
            if !seen.contains(&end.process) {
                seen.push(end.process);
                bit += self.processes[end.process].replicas;
            }
        }
        bit
    }

    /// Whether a process is replicated in C: its frame is an array's element.
    pub(crate) fn is_array(&self, process: usize) -> bool {
        self.processes[process].replicas > 1
    }

    /// How code that runs as an instance of the process reaches its frame.
    pub(crate) fn frame(&self, process: usize) -> String {
        let name = &self.processes[process].name;
        if self.is_array(process) { format!("{name}->") } else { format!("t->{name}.") }
    }

    /// The number of the instance that runs.
    pub(crate) fn own_id(&self, process: usize) -> String {
        let plan = &self.processes[process];
        if self.is_array(process) { format!("{}_self", plan.name) } else { plan.base.to_string() }
    }

    /// The values parked while an `out` branch waits: operand number and value.
    pub(crate) fn parked_payload(&self, end: End) -> Vec<(usize, Value)> {
        let homes = &self.processes[end.process].homes;
        if self.is_straight(end) {
            return Vec::new();
        }
        match &self.branch(end).operation {
            Operation::Out { payload: Payload::Ready(parts), .. } => parts
                .iter()
                .enumerate()
                .filter_map(|(index, part)| match part.operand {
                    Operand::Value(value) => match homes.values[value.0 as usize] {
                        Home::Local(_) => Some((index, value)),
                        Home::Frame(_) | Home::Constant(_) | Home::OwnId => None,
                    },
                    Operand::Place(_) => None,
                })
                .collect(),
            Operation::Out { payload: Payload::Region(_), .. } | Operation::In { .. } | Operation::After { .. } => {
                Vec::new()
            }
        }
    }

    /// The values parked while an instance that has received queues to go on.
    pub(crate) fn parked_parameters(&self, end: End) -> Vec<Value> {
        let homes = &self.processes[end.process].homes;
        if self.is_straight(end) {
            return Vec::new();
        }
        let then = self.branch(end).then;
        self.program.processes[end.process].body.blocks[then.0 as usize]
            .parameters
            .iter()
            .copied()
            .filter(|value| matches!(homes.values[value.0 as usize], Home::Local(_)))
            .collect()
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

    /// A slot in the frame, as its member; of a union of several, if it shares its memory.
    pub(crate) fn frame_member(&self, process: usize, slot: SlotId) -> String {
        let name = self.slot_name(&self.program.processes[process].body, slot);
        match self.processes[process].homes.overlay.group(slot) {
            Some(group) => format!("{}.{name}", shared_name(group)),
            None => name,
        }
    }

    /// Whether the program looks at the world or the clock at all.
    pub(crate) fn polls(&self) -> bool {
        self.processes.iter().any(|process| process.waits.iter().any(|wait| wait.polled))
    }

    /// Whether any guard asks for free objects.
    pub(crate) fn retries(&self) -> bool {
        self.processes.iter().any(|process| process.waits.iter().any(|wait| wait.retries))
    }

    /// Whether anything is tried again when everything rests.
    pub(crate) fn retries_at_quiescence(&self) -> bool {
        self.processes.iter().any(|process| process.waits.iter().any(|wait| wait.retries_at_quiescence))
    }

    /// Whether the ready list holds program counters, not instances: possible where each belongs to one instance.
    pub(crate) fn is_direct(&self) -> bool {
        !self.retries() && self.processes.iter().all(|process| process.replicas == 1)
    }

    /// Whether external messages come and go through `esp_step`'s arguments.
    pub(crate) fn sans_io(&self) -> bool {
        self.options.style.is_sans_io()
    }

    /// Channels at this boundary, in order of text.
    pub(crate) fn external(&self, wanted: Boundary) -> Vec<usize> {
        (0..self.channels.len()).filter(|index| self.program.channels[*index].boundary == wanted).collect()
    }

    /// Whether some message of the channel holds counts.
    pub(crate) fn channel_has_boxes(&self, channel: usize) -> bool {
        self.program.channels[channel].payload.iter().any(|ty| self.layouts.has_boxes(*ty))
    }
}

/// What is known of the whole program before its processes are planned.
struct Whole<'p> {
    program: &'p Program,
    layouts: &'p Layouts,
    exhaustion: &'p PoolRecheck,
}

fn plan_process(
    whole: &Whole<'_>,
    process: &Process,
    pins: &Pins,
    (name, paths): (String, Vec<PathFunction>),
    pc: &mut u32,
    base: u32,
) -> ProcessPlan {
    let Whole { program, layouts, exhaustion } = whole;
    let homes = homes(&process.body, &program.types, layouts, pins);
    let mut take = |count: u32| {
        let first = *pc;
        *pc += count;
        first
    };
    let start_pc = take(1);
    let mut waits = Vec::new();
    let mut yields = BTreeMap::new();
    let (mut mask_words, mut deadlines) = (0, 0);
    for block in &homes.main {
        match &process.body.blocks[block.0 as usize].terminator {
            Terminator::Wait(wait) => {
                let outside = |branch: &Branch| match branch_channel(branch) {
                    Some((channel, _)) => program.channels[channel.0 as usize].boundary != Boundary::Internal,
                    None => true,
                };
                let masked = wait.branches.iter().any(|branch| branch.guard != Guard::Open);
                if masked {
                    mask_words = mask_words.max(wait.branches.len().div_ceil(32));
                }
                let timers =
                    wait.branches.iter().filter(|branch| matches!(branch.operation, Operation::After { .. })).count();
                deadlines = deadlines.max(timers);
                let is_straight = pins.asks.contains(block);
                waits.push(WaitPlan {
                    block: *block,
                    pc: take(1 + wait.branches.len() as u32 + u32::from(wait.otherwise.is_some())),
                    polled: !is_straight && wait.branches.iter().any(outside),
                    is_straight,
                    rotates: wait.order == AltOrder::Fair && wait.branches.len() > 1,
                    masked,
                    retries: wait.branches.iter().any(asks_free),
                    retries_at_quiescence: exhaustion.retries_at_quiescence(&process.body, wait),
                    defers: false,
                    passes_by: false,
                    stamped: false,
                    resume_pc: None,
                });
            }
            Terminator::Yield(_) => {
                yields.insert(*block, take(1));
            }
            Terminator::Jump(_)
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
    let resumes = pins.resumes.iter().map(|block| (*block, take(1))).collect();
    let (replicas, lent) = (process.replicas, BTreeMap::new());
    ProcessPlan { name, homes, waits, yields, resumes, paths, lent, start_pc, base, replicas, mask_words, deadlines }
}

/// Whether the wait has regions at all.
pub(crate) fn has_regions(wait: &Wait) -> bool {
    !region_entries(wait).is_empty()
}

/// The member of a frame that holds a group of slots, one at a time.
pub(crate) fn shared_name(group: usize) -> String {
    format!("shared{group}")
}

/// Whether a slot is a member of the frame.
pub(crate) fn is_framed(homes: &Homes, slot: SlotId) -> bool {
    match homes.slots[slot.0 as usize] {
        SlotHome::Frame => true,
        SlotHome::Local | SlotHome::Lent | SlotHome::Unused | SlotHome::Literal => false,
    }
}
