//! A group of instances to be fused: its members in order, what is live in each, which channels lie inside, and the
//! constants that facts are measured by. Says why a group cannot be fused. Knows no states.

use super::counted::{Counted, counted};
use crate::placement::MemberPlacement;
use crate::refusal::Refusal;
use quaject_esp_ir::cfg::{Regions, edges, successors};
use quaject_esp_ir::dataflow::{all_blocks, solve_backward};
use quaject_esp_ir::ir::{
    AltOrder, Base, BinaryOp, BlockId, Body, Boundary, Branch, ChannelId, Direction, Guard, Instruction, Op, Operand,
    Operation, Pattern, Payload, Place, ProcessId, Program, Site, SiteId, SlotId, Terminator, Type, TypeId, TypeTable,
    Value, Wait,
};
use quaject_esp_ir::visit::{bound_slots, op_slots, op_values, own_values, terminator_slots};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Members of the product, and what is known before it is explored.
pub(crate) struct Group<'p> {
    pub(super) program: &'p Program,
    /// Writers before their readers, as far as there is such an order.
    pub(super) members: Vec<Member<'p>>,
    /// Per channel: whether it lies between members.
    pub(super) internal: Vec<bool>,
    /// Integers that facts keep apart: what the members compare with for equality.
    pub(super) compared: FxHashSet<i128>,
    /// Ends that intervals are widened to, ascending.
    pub(super) lows: Vec<i128>,
    pub(super) highs: Vec<i128>,
    /// Whether overflow is a fault.
    pub(super) checked: bool,
    /// Whether there are processes outside of the group.
    pub(super) has_others: bool,
    /// The processes that use the members' channels, and in which direction.
    pub(super) users: BTreeMap<ChannelId, Vec<(ProcessId, Direction)>>,
}

/// One instance of the group.
pub(super) struct Member<'p> {
    pub(super) instance: u32,
    pub(super) process: ProcessId,
    pub(super) body: &'p Body,
    /// The first of its slots and of its operations in the fused process.
    pub(super) first_slot: u32,
    pub(super) first_site: u32,
    /// Per block: what is live when it begins, its parameters included.
    pub(super) live: Vec<Live>,
    /// Per block that ends in a wait: what is live there.
    pub(super) at_rest: Vec<Option<Live>>,
    /// Per block: whether several edges lead to it.
    pub(super) joins: Vec<bool>,
    /// Per block: the operations that it may still come to from there.
    pub(super) ahead: Vec<FxHashSet<(ChannelId, Direction)>>,
    /// Its loops that end by themselves.
    pub(super) counted: Vec<Counted>,
    /// Moments that are later than their computation.
    pub(super) later: BTreeSet<Value>,
}

/// Values and slots of one body.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Live {
    pub(super) values: BTreeSet<Value>,
    pub(super) slots: BTreeSet<SlotId>,
}

impl Live {
    fn add(&mut self, other: &Live) {
        self.values.extend(&other.values);
        self.slots.extend(&other.slots);
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
        let users = users(program, processes);
        let internal = internal(program, processes, &users)?;
        for process in processes {
            eligible(program, *process)?;
        }
        let mut members = Vec::new();
        let (mut first_slot, mut first_site) = (0, 0);
        for process in pipeline(program, processes) {
            let source = &program.processes[process.0 as usize];
            let (live, at_rest) = liveness(&source.body);
            let first = program.first_instance(process);
            for (instance, body) in bodies.range(first..first + source.replicas) {
                members.push(Member {
                    instance: *instance,
                    process,
                    body,
                    first_slot,
                    first_site,
                    live: live.clone(),
                    at_rest: at_rest.clone(),
                    joins: joins(&source.body),
                    ahead: ahead(&source.body),
                    counted: counted(&source.body),
                    later: later(&source.body),
                });
                first_slot += source.body.slots.len() as u32;
                first_site += source.sites.len() as u32;
            }
        }
        let mut group = Group {
            program,
            members,
            internal,
            compared: FxHashSet::default(),
            lows: Vec::new(),
            highs: Vec::new(),
            checked,
            has_others: program.processes.len() > processes.len(),
            users,
        };
        group.measure();
        Ok(group)
    }

    /// A group of these instances, in this order, for a fast path: others may use their channels, too.
    pub(crate) fn of_instances(program: &'p Program, instances: &[u32], checked: bool) -> Group<'p> {
        let internal = program.channels.iter().map(|channel| channel.boundary == Boundary::Internal).collect();
        let mut group = Group {
            program,
            members: Vec::new(),
            internal,
            compared: FxHashSet::default(),
            lows: Vec::new(),
            highs: Vec::new(),
            checked,
            has_others: true,
            users: BTreeMap::new(),
        };
        let (mut first_slot, mut first_site) = (0, 0);
        for instance in instances {
            let (process, _) = program.process_of(*instance).expect("a specification names instances");
            let source = &program.processes[process.0 as usize];
            let (live, at_rest) = liveness(&source.body);
            group.members.push(Member {
                instance: *instance,
                process,
                body: &source.body,
                first_slot,
                first_site,
                live,
                at_rest,
                joins: joins(&source.body),
                ahead: ahead(&source.body),
                counted: counted(&source.body),
                later: later(&source.body),
            });
            first_slot += source.body.slots.len() as u32;
            first_site += source.sites.len() as u32;
        }
        group.measure();
        group
    }

    /// Per member: its place in the order of writers before readers.
    pub(super) fn downstream(&self) -> Vec<usize> {
        let processes: Vec<ProcessId> = self.processes().collect();
        let order = pipeline(self.program, &processes);
        let place = |process: &ProcessId| order.iter().position(|other| other == process).unwrap_or(0);
        processes.iter().map(place).collect()
    }

    /// The slots of a member that are live at the start of a block.
    pub(crate) fn live_slots(&self, member: usize, block: BlockId) -> BTreeSet<SlotId> {
        self.members[member].live[block.0 as usize].slots.clone()
    }

    /// The values that are live where a block of a member begins.
    pub(crate) fn live_values(&self, member: usize, block: BlockId) -> BTreeSet<Value> {
        self.members[member].live[block.0 as usize].values.clone()
    }

    /// The block of the wait at which a member does an operation.
    pub(crate) fn wait_of(&self, member: usize, site: SiteId) -> Option<BlockId> {
        super::course::wait_of(self.members[member].body, site).map(|(block, _)| block)
    }

    /// A member's code.
    pub(crate) fn body(&self, member: usize) -> &Body {
        self.members[member].body
    }

    /// A member's process.
    pub(crate) fn process(&self, member: usize) -> ProcessId {
        self.members[member].process
    }

    /// A member's name, as a part of names in C.
    pub(crate) fn instance_name(&self, member: usize) -> String {
        self.program.instance_name(self.members[member].instance).replace(['[', ']'], "")
    }

    /// Where everybody starts on a path, and what it takes of them.
    pub(crate) fn placement(&self, course: &super::Course) -> Vec<MemberPlacement> {
        let members = self.members.iter().enumerate();
        members
            .map(|(number, member)| {
                let start = course.start(number);
                MemberPlacement {
                    instance: member.instance,
                    process: member.process,
                    start,
                    values: member.live[start.0.0 as usize].values.iter().copied().collect(),
                    first_slot: member.first_slot,
                    slots: member.body.slots.len() as u32,
                    first_site: member.first_site,
                }
            })
            .collect()
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

    /// The instances that write to a channel, or those that read it, whichever are more.
    pub(super) fn most_users(&self, channel: ChannelId) -> u32 {
        let users = self.users.get(&channel).map_or(&[][..], Vec::as_slice);
        let at = |wanted: Direction| {
            let users = users.iter().filter(|(_, direction)| *direction == wanted);
            users.map(|(process, _)| self.program.processes[process.0 as usize].replicas).sum()
        };
        u32::max(at(Direction::In), at(Direction::Out))
    }

    pub(super) fn is_internal(&self, channel: ChannelId) -> bool {
        self.internal[channel.0 as usize]
    }

    /// Whether a branch waits for a time that has not passed when the member arrives.
    pub(super) fn is_later(&self, member: usize, wait: &Wait, branch: u32) -> bool {
        match &wait.branches[branch as usize].operation {
            Operation::After { amount, unit: _ } => self.members[member].later.contains(amount),
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

    /// Collects the constants of comparisons.
    fn measure(&mut self) {
        let mut bounds = BTreeSet::new();
        for member in &self.members {
            let constants: Vec<Option<i128>> = constants(member.body);
            for block in &member.body.blocks {
                for instruction in &block.instructions {
                    let Op::Binary(op, a, b) = &instruction.op else { continue };
                    for value in [a, b] {
                        let Some(value) = constants[value.0 as usize] else { continue };
                        match op {
                            BinaryOp::Equal | BinaryOp::NotEqual => {
                                self.compared.insert(value);
                                bounds.insert(value);
                            }
                            BinaryOp::Less | BinaryOp::GreaterEqual => bounds.extend([value - 1, value]),
                            BinaryOp::LessEqual | BinaryOp::Greater => bounds.extend([value, value + 1]),
                            BinaryOp::Remainder => bounds.extend([value - 1]),
                            BinaryOp::BitAnd => bounds.extend([value]),
                            BinaryOp::Add
                            | BinaryOp::Subtract
                            | BinaryOp::Multiply
                            | BinaryOp::Divide
                            | BinaryOp::ShiftLeft
                            | BinaryOp::ShiftRight
                            | BinaryOp::BitOr
                            | BinaryOp::BitXor => {}
                        }
                    }
                }
                match &block.terminator {
                    Terminator::Switch { value: _, cases, default: _ } => {
                        self.compared.extend(cases.iter().map(|(case, _)| *case));
                    }
                    Terminator::Wait(wait) => {
                        for branch in &wait.branches {
                            if let Operation::In { patterns, .. } = &branch.operation {
                                patterns.iter().for_each(|pattern| pattern_constants(pattern, &mut self.compared));
                            }
                        }
                    }
                    Terminator::Jump(_)
                    | Terminator::Branch { .. }
                    | Terminator::Yield(_)
                    | Terminator::Return(_)
                    | Terminator::Result(_)
                    | Terminator::Exit(_)
                    | Terminator::End
                    | Terminator::Fault(_)
                    | Terminator::Enter(_)
                    | Terminator::Leave(_) => {}
                }
            }
        }
        bounds.extend(&self.compared);
        for bits in [7, 8, 15, 16, 31, 32, 63, 64] {
            bounds.insert((1 << bits) - 1);
            if bits % 8 == 7 {
                bounds.insert(-(1 << bits));
            }
        }
        self.highs = bounds.iter().copied().collect();
        bounds.insert(0);
        self.lows = bounds.into_iter().collect();
    }
}

fn pattern_constants(pattern: &Pattern, constants: &mut FxHashSet<i128>) {
    match pattern {
        Pattern::Constant(value) => {
            constants.insert(*value);
        }
        Pattern::Tag(_, Some(part)) => pattern_constants(part, constants),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter().for_each(|part| pattern_constants(part, constants));
        }
        Pattern::Any
        | Pattern::Bind(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Equal(_)
        | Pattern::Tag(_, None) => {}
    }
}

/// Per value: the constant it is.
fn constants(body: &Body) -> Vec<Option<i128>> {
    let mut constants = vec![None; body.values.len()];
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            constants[result.0 as usize] = Some(*constant);
        }
    }
    constants
}

/// The moments of a body that are later than their computation.
fn later(body: &Body) -> BTreeSet<Value> {
    let constants = constants(body);
    let instructions = body.blocks.iter().flat_map(|block| &block.instructions);
    let is_later = |instruction: &Instruction| match instruction.op {
        Op::Deadline { amount, unit_ns: _ } => constants[amount.0 as usize].is_some_and(|amount| amount > 0),
        _ => false,
    };
    instructions.filter(|instruction| is_later(instruction)).filter_map(|instruction| instruction.result).collect()
}

/// Per channel: whether it lies between these processes alone. One of which the other end is outside is like one to
/// the world; one that they could meet on and others use, too, is neither.
fn internal(
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
            || users.iter().any(|(user, _)| !processes.contains(user) && looks_who_waits(program, *user, *channel))
        {
            return Err(Refusal::SharedChannel { channel: *channel });
        }
    }
    Ok(internal)
}

/// Whether a process does something else on a channel when nobody waits there. A member that waits cannot be seen while
/// others of its group run.
pub(crate) fn looks_who_waits(program: &Program, process: ProcessId, on: ChannelId) -> bool {
    program.processes[process.0 as usize].body.blocks.iter().any(|block| {
        let Terminator::Wait(wait) = &block.terminator else { return false };
        let is_on = |branch: &Branch| match &branch.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. } => *channel == on,
            Operation::After { .. } => false,
        };
        let chooses = wait.otherwise.is_some() || wait.order == AltOrder::Priority && wait.branches.len() > 1;
        chooses && wait.branches.iter().any(is_on)
    })
}

/// Who uses the channels of these processes.
fn users(program: &Program, processes: &[ProcessId]) -> BTreeMap<ChannelId, Vec<(ProcessId, Direction)>> {
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

/// The processes, each after those that write to it, as far as that goes; else in order of text.
fn pipeline(program: &Program, processes: &[ProcessId]) -> Vec<ProcessId> {
    let channels = |process: ProcessId, direction: Direction| -> Vec<ChannelId> {
        let sites = program.processes[process.0 as usize].sites.iter();
        sites.filter(|site| site.direction == direction).map(|site| site.channel).collect()
    };
    let feeds = |from: ProcessId, to: ProcessId| {
        let written = channels(from, Direction::Out);
        from != to && channels(to, Direction::In).iter().any(|channel| written.contains(channel))
    };
    let mut left: Vec<ProcessId> = processes.to_vec();
    left.sort_unstable();
    left.dedup();
    let mut order = Vec::new();
    while !left.is_empty() {
        let next = left.iter().position(|process| !left.iter().any(|other| feeds(*other, *process)));
        order.push(left.remove(next.unwrap_or(0)));
    }
    order
}

/// Refuses what the product does not express.
fn eligible(program: &Program, process: ProcessId) -> Result<(), Refusal> {
    for block in &program.processes[process.0 as usize].body.blocks {
        let refuse = |what: &'static str| Err(Refusal::Unsupported { process, what, location: block.location });
        match &block.terminator {
            Terminator::Wait(wait) => {
                for branch in &wait.branches {
                    if let Guard::Region(_) = branch.guard {
                        return refuse("a guard that asks `free`");
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

/// Per block, whether several edges lead to it; edges out of regions do not count.
fn joins(body: &Body) -> Vec<bool> {
    let mut entered = vec![0u32; body.blocks.len()];
    entered[0] = 1;
    for block in &body.blocks {
        for edge in edges(&block.terminator) {
            entered[edge.to.0 as usize] += 1;
        }
    }
    entered.into_iter().map(|count| count > 1).collect()
}

/// Per block, the operations that may follow.
fn ahead(body: &Body) -> Vec<FxHashSet<(ChannelId, Direction)>> {
    let own = body.blocks.iter().map(|block| {
        let branches = block.terminator.as_wait().into_iter().flat_map(|wait| &wait.branches);
        branches.filter_map(|branch| branch.operation.channel_end()).collect()
    });
    let mut ahead: Vec<FxHashSet<(ChannelId, Direction)>> = own.collect();
    solve_backward(body, &all_blocks(body), |block| {
        let index = block.0 as usize;
        let before = ahead[index].len();
        for next in successors(&body.blocks[index].terminator, Regions::Include) {
            let more = ahead[next.0 as usize].clone();
            ahead[index].extend(more);
        }
        ahead[index].len() > before
    });
    ahead
}

/// Per block, what is live at its start, and at the wait it ends in.
fn liveness(body: &Body) -> (Vec<Live>, Vec<Option<Live>>) {
    let mut live = vec![Live::default(); body.blocks.len()];
    solve_backward(body, &all_blocks(body), |block| {
        let now = live_at_start(body, &live, block);
        let has_changed = live[block.0 as usize] != now;
        live[block.0 as usize] = now;
        has_changed
    });
    let ends = body.blocks.iter().map(|block| &block.terminator);
    let at_rest = ends.map(|end| end.as_wait().map(|_| live_at_end(body, &live, end))).collect();
    (live, at_rest)
}

fn live_at_start(body: &Body, live: &[Live], block: BlockId) -> Live {
    let block = &body.blocks[block.0 as usize];
    let mut now = live_at_end(body, live, &block.terminator);
    for instruction in block.instructions.iter().rev() {
        instruction.result.iter().for_each(|result| {
            now.values.remove(result);
        });
        let op = &instruction.op;
        let killed = whole_slot_written(op);
        if let Some(slot) = killed {
            now.slots.remove(&slot);
        }
        op_values(op, &mut |value| {
            now.values.insert(*value);
        });
        op_slots(op, &mut |slot| {
            if killed != Some(*slot) {
                now.slots.insert(*slot);
            }
        });
    }
    now
}

/// The slot that an instruction writes as a whole without reading it.
fn whole_slot_written(op: &Op) -> Option<SlotId> {
    let (to, from) = match op {
        Op::SetTag(to, _) | Op::SetBytes(to, _) | Op::Fill(to, Operand::Value(_)) => (to, None),
        Op::Copy { to, from } => (to, Some(from)),
        _ => return None,
    };
    match (to, from) {
        (Place { base: Base::Slot(slot), path }, from) if path.is_empty() => match from {
            Some(Place { base: Base::Slot(other), path: _ }) if other == slot => None,
            Some(_) | None => Some(*slot),
        },
        (Place { base: Base::Slot(_) | Base::Object(_), path: _ }, _) => None,
    }
}

fn live_at_end(body: &Body, live: &[Live], terminator: &Terminator) -> Live {
    let mut now = Live::default();
    for target in successors(terminator, Regions::Include) {
        let mut there = live[target.0 as usize].clone();
        for parameter in &body.blocks[target.0 as usize].parameters {
            there.values.remove(parameter);
        }
        now.add(&there);
    }
    if let Terminator::Wait(wait) = terminator {
        // What a branch binds is not live before it; a slot belongs to its branch alone.
        for branch in &wait.branches {
            if let Operation::In { patterns, .. } = &branch.operation {
                let mut bound = Vec::new();
                patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| bound.push(slot)));
                bound.iter().for_each(|slot| {
                    now.slots.remove(slot);
                });
            }
            if let Operation::Out { payload: Payload::Ready(passed), .. } = &branch.operation {
                for passed in passed {
                    if let Operand::Place(Place { base: Base::Slot(slot), path: _ }) = &passed.operand {
                        now.slots.insert(*slot);
                    }
                }
            }
            if let Operation::In { patterns, .. } = &branch.operation {
                for pattern in patterns {
                    compared_slots(pattern, &mut now.slots);
                }
            }
        }
    } else {
        terminator_slots(terminator, &mut |slot| {
            now.slots.insert(*slot);
        });
    }
    for edge in edges(terminator) {
        let there = &live[edge.to.0 as usize];
        let parameters = &body.blocks[edge.to.0 as usize].parameters;
        for (argument, parameter) in edge.arguments.iter().zip(parameters) {
            if there.values.contains(parameter) {
                now.values.insert(*argument);
            }
        }
    }
    own_values(terminator, &mut |value| {
        now.values.insert(*value);
    });
    now
}

fn compared_slots(pattern: &Pattern, slots: &mut BTreeSet<SlotId>) {
    quaject_esp_ir::visit::pattern_operands(pattern, &mut |operand| {
        if let Operand::Place(Place { base: Base::Slot(slot), path: _ }) = operand {
            slots.insert(*slot);
        }
    });
}

/// Whether values of the type are, or hold, references to boxed objects.
pub(super) fn holds_boxed(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Boxed(_) => true,
        Type::Array { length: _, element } => holds_boxed(types, *element),
        Type::Record(id) | Type::Union(id) => {
            types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part).any(|part| holds_boxed(types, part))
        }
        Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => false,
    }
}

/// Whether any block of a region changes counts of objects.
pub(super) fn has_effects(body: &Body, entry: BlockId) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![entry];
    while let Some(block) = work.pop() {
        if !seen.insert(block) {
            continue;
        }
        let block = &body.blocks[block.0 as usize];
        if block.instructions.iter().any(|i| matches!(i.op, Op::Allocate(_) | Op::Retain(_) | Op::Release(_))) {
            return true;
        }
        work.extend(successors(&block.terminator, Regions::Include));
    }
    false
}
