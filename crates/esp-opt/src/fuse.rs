//! Fusing processes: a group of them becomes one, which does what they do without rendezvous. The processes stay as
//! stubs that end at once, so that the numbers that a `pid` holds do not change. Which processes make a group is said
//! in `groups`.

use crate::marked::marked;
use crate::moments::moments;
use crate::passes;
use crate::product::{Group, explore};
use quaject_esp_ir::graph::successors;
use quaject_esp_ir::ir::{
    Block, BlockId, Body, ChannelId, Location, Operation, Payload, Process, ProcessId, Program, Terminator,
};
use quaject_esp_ir::text::location_text;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// Instructions and ends of blocks that a body is emitted with, for each that is left when it has been cleaned up.
const EMITTED_PER_KEPT: usize = 10;

/// The same for a large product that may become half as large again, of those that are worth it: one and a half, of all
/// measured.
const EMITTED_PER_KEPT_MODESTLY: usize = 2;

/// How large a product may become beyond half as much code again, and how many times as large as its processes: six to
/// twelve kilobytes of code. An end of stream in band, which every stage of a pipeline looks for, takes as much: of four
/// filter programs 601, 1907, 2038 and 1939, which is 0.9, 3.0, 1.9 and 1.7 times their processes.
const FEW: usize = 2500;
const TIMES_OF_FEW: usize = 3;

/// As how many instructions a wait counts: it stores what is live, is entered again, and asks a channel. Code of gcc `-Os`
/// is about three bytes an instruction of a state machine, and ninety a wait; with this, the sizes of 36 pipelines are told
/// to a tenth.
const WAIT: usize = 30;

/// Steps that may be taken for each instruction of the processes, waits counted as such: what is worth it takes up to 200.
const STEPS_PER_INSTRUCTION: usize = 256;

/// Processes of fewer instructions may grow as if they had so many: what is small stays so.
const SMALL: usize = 125;

/// How much more code there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// So many times as many instructions as on their own, twice as many where some can be left waiting for ever. Who costs
    /// most is left out until that holds.
    Times(usize),
    /// As little as nobody minds who has not asked for speed, and as little time to find out: half as much again, waits
    /// counted by what code they take, or three times as much where that is little. What does not fit is not fused.
    Modest,
}

/// How large a product may become, and how long it may take to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instances in a group.
    pub members: usize,
    /// Nodes: places of all members together, with what is known there.
    pub nodes: usize,
    /// Instructions and ends of blocks of what is made.
    pub instructions: usize,
    /// How many times as many instructions the fused process may have as its members' processes together.
    pub growth: Growth,
    /// Work for all products of a program: instructions emitted and places of members noted, in every round.
    pub effort: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { members: 32, nodes: 4096, instructions: 20_000, growth: Growth::Times(8), effort: 8_000_000 }
    }
}

impl Limits {
    /// The most instructions of what is made. Where members can be lost it may be twice as much: what goes on without them is a
    /// program beside the one in which nobody is.
    fn of_product(&self, bounds: &Bounds, has_lost: bool) -> usize {
        match self.growth {
            Growth::Times(_) => bounds.instructions.saturating_mul(1 + usize::from(has_lost)),
            Growth::Modest => bounds.instructions,
        }
    }

    /// What is compared with the limit of instructions.
    fn measured(&self, body: &Body) -> usize {
        match self.growth {
            Growth::Times(_) => size(body),
            Growth::Modest => size_with_waits(body),
        }
    }

    /// The bounds of a product of these processes.
    fn of(&self, program: &Program, processes: &[ProcessId]) -> Bounds {
        let all: usize =
            processes.iter().map(|process| self.measured(&program.processes[process.0 as usize].body)).sum();
        match self.growth {
            Growth::Times(times) => Bounds::new(self, all.max(SMALL).saturating_mul(times)),
            Growth::Modest => {
                let half_again = all + all / 2;
                let few = FEW.min(all.saturating_mul(TIMES_OF_FEW));
                let bounds = Bounds::new(self, half_again.max(few));
                let emitted = bounds.emitted.min(FEW * EMITTED_PER_KEPT).max(half_again * EMITTED_PER_KEPT_MODESTLY);
                // What is little code is not for waits, none of which is cleaned up: where the world is asked in many
                // states, another one that is little makes many more.
                let wait = WAIT * emitted / half_again.max(1);
                Bounds { emitted, wait, measure: Measure::Code, ..bounds }
            }
        }
    }

    /// How much of what is left of the work may go into fusing these processes; something is left for those that come after.
    pub(crate) fn share(&self, program: &Program, processes: &[ProcessId], left: usize) -> usize {
        match self.growth {
            Growth::Times(_) => left / 4,
            Growth::Modest => {
                let size = |process: &ProcessId| size_with_waits(&program.processes[process.0 as usize].body);
                let all: usize = processes.iter().map(size).sum();
                left.min(all.saturating_mul(STEPS_PER_INSTRUCTION))
            }
        }
    }
}

/// How large one product may become, and how long it may take to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// As [`Limits::nodes`].
    pub(crate) nodes: usize,
    /// Instructions and ends of blocks that are left of it.
    pub(crate) instructions: usize,
    /// The same as they are emitted.
    pub(crate) emitted: usize,
    /// As how many a wait counts that is emitted.
    pub(crate) wait: usize,
    /// What there is too much of when there are more instructions than these.
    pub(crate) measure: Measure,
    /// As [`Limits::effort`].
    pub(crate) effort: usize,
}

impl Bounds {
    /// Those of the limits, and at most so many instructions.
    pub(crate) fn new(limits: &Limits, most: usize) -> Bounds {
        let instructions = limits.instructions.min(most);
        Bounds {
            nodes: limits.nodes,
            instructions,
            emitted: instructions.saturating_mul(EMITTED_PER_KEPT),
            wait: 1,
            measure: Measure::Instructions,
            effort: limits.effort,
        }
    }
}

/// The same, with each wait as many as its code.
fn size_with_waits(body: &Body) -> usize {
    let waits = body.blocks.iter().filter(|block| matches!(block.terminator, Terminator::Wait(_))).count();
    size(body) + WAIT * waits
}

/// Instructions and ends of blocks.
pub(crate) fn size(body: &Body) -> usize {
    body.blocks.iter().map(|block| block.instructions.len() + 1).sum()
}

/// What there is too much of in a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Members.
    Instances,
    /// Nodes.
    States,
    /// Instructions of the fused process.
    Instructions,
    /// The same, with its waits as many as their code, where it may only be little more.
    Code,
    /// Work of the compiler.
    Effort,
    /// Fast paths of the program.
    Paths,
}

/// Why a group was not fused. The general path stays: its processes run as they did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Of a channel both ends are in the group, and one outside of it, too; or it is chosen outside, by `pri alt` or
    /// `else`, by who waits.
    Shared {
        /// Which.
        channel: ChannelId,
    },
    /// A process does something that the product does not express.
    Unsupported {
        /// Which.
        process: ProcessId,
        /// What it does, as a noun.
        what: &'static str,
        /// Where.
        location: Location,
    },
    /// The product is larger than allowed.
    TooLarge {
        /// In what.
        measure: Measure,
        /// How much is allowed.
        limit: usize,
        /// The process without which there would be fewest states, if the group has several.
        costliest: Option<ProcessId>,
    },
    /// The process is part of a fused one already.
    Fused {
        /// Which.
        process: ProcessId,
    },
    /// The path is a C function, and there is none.
    Manual {
        /// Its name.
        function: SmolStr,
    },
    /// Where the path is left somebody who waits at this channel comes back there too late: this process does something
    /// else when nobody waits, by `pri alt` or `else`.
    PassedBy {
        /// Where.
        channel: ChannelId,
        /// Who does something else.
        process: ProcessId,
    },
    /// Processes would run in another order, and that could be seen.
    Seen {
        /// Whose doing it is.
        process: ProcessId,
        /// By what, as a noun.
        what: &'static str,
        /// Where.
        location: Location,
    },
    /// In the order that the product would fix, this process could wait for ever.
    Starves {
        /// Which.
        process: ProcessId,
    },
}

impl Refusal {
    /// Why, in words.
    pub(crate) fn text(&self, program: &Program) -> String {
        let name = |process: &ProcessId| program.processes[process.0 as usize].name.as_str();
        match self {
            Refusal::Shared { channel } => {
                format!("`{}` is used by other processes too", program.channels[channel.0 as usize].name)
            }
            Refusal::Unsupported { process, what, location } => {
                format!("`{}` has {what} at {}", name(process), location_text(program, *location))
            }
            Refusal::Seen { process, what, location } => format!(
                "`{}` has {what} at {}, so that another order of processes could be seen",
                name(process),
                location_text(program, *location)
            ),
            Refusal::TooLarge { measure, limit, costliest: _ } => match measure {
                Measure::Instances => format!("more than {limit} instances"),
                Measure::States => format!("more than {limit} states"),
                Measure::Instructions => format!("more than {limit} instructions"),
                Measure::Code => "much more code than on their own".to_string(),
                Measure::Effort => "it would take too long to make".to_string(),
                Measure::Paths => format!("more than {limit} fast paths"),
            },
            Refusal::Fused { process } => format!("`{}` is part of a state machine", name(process)),
            Refusal::PassedBy { channel, process } => format!(
                "`{}` does something else when nobody waits at `{}`, by `pri alt` or `else`, as nobody does where a path is left",
                name(process),
                program.channels[channel.0 as usize].name
            ),
            Refusal::Manual { function } => {
                format!("it is the C function `{function}`, which cannot be looked into or called here")
            }
            Refusal::Starves { process } => format!("`{}` could wait for ever", name(process)),
        }
    }
}

/// A group that became one process.
pub(crate) struct Made {
    /// The process.
    pub(crate) process: Process,
    /// Nodes of the product.
    pub(crate) nodes: usize,
}

/// A program in which a group is one process.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The program; the new process is its last.
    pub program: Program,
    /// Nodes of the product.
    pub nodes: usize,
}

/// Fuses all replicas of these processes. With `checked`, overflow faults as it does in the program.
///
/// # Errors
/// Why they cannot be fused.
pub fn fuse(program: &Program, processes: &[ProcessId], checked: bool, limits: Limits) -> Result<Fused, Refusal> {
    let made = make(program, processes, checked, limits, &mut limits.effort.clone())?;
    let mut fused = program.clone();
    install(&mut fused, processes, made.process);
    Ok(Fused { program: fused, nodes: made.nodes })
}

/// The process that does what all replicas of these processes do. `effort` is what is left of it.
pub(crate) fn make(
    program: &Program,
    processes: &[ProcessId],
    checked: bool,
    limits: Limits,
    effort: &mut usize,
) -> Result<Made, Refusal> {
    let bounds = limits.of(program, processes);
    let instances: u32 = processes.iter().map(|process| program.processes[process.0 as usize].replicas).sum();
    if instances as usize > limits.members {
        let (measure, limit) = (Measure::Instances, limits.members);
        return Err(Refusal::TooLarge { measure, limit, costliest: None });
    }
    let program = &*moments(program, processes);
    let bodies = marked(program, processes);
    let group = Group::new(program, processes, &bodies, checked)?;
    let product = explore(&group, bounds, effort)?;
    let body = passes::clean(product.body, &program.types, checked);
    let limit = limits.of_product(&bounds, product.has_lost);
    if limits.measured(&body) > limit {
        return Err(Refusal::TooLarge { measure: bounds.measure, limit, costliest: product.costliest });
    }
    let members: Vec<&Process> = group.processes().map(|process| &program.processes[process.0 as usize]).collect();
    let process = Process {
        name: name(&members),
        replicas: 1,
        replicated: false,
        labels: Vec::new(),
        sites: group.sites(),
        body,
        members: processes.to_vec(),
        operations: operations(&members),
        location: members.first().map(|process| process.location).unwrap_or_default(),
    };
    Ok(Made { process, nodes: product.nodes })
}

/// Puts a fused process in the place of its members.
pub(crate) fn install(program: &mut Program, members: &[ProcessId], fused: Process) {
    program.processes.push(fused);
    for process in members {
        let stub = &mut program.processes[process.0 as usize];
        stub.sites.clear();
        stub.labels.clear();
        let end = Block {
            parameters: Vec::new(),
            instructions: Vec::new(),
            terminator: Terminator::End,
            location: stub.location,
        };
        stub.body = Body { values: Vec::new(), slots: Vec::new(), blocks: vec![end] };
    }
}

/// The places of the operations of these processes, and of the code of their messages, patterns and conditions.
fn operations(members: &[&Process]) -> Vec<(Location, ChannelId)> {
    let mut places = BTreeMap::new();
    for body in members.iter().map(|member| &member.body) {
        for block in &body.blocks {
            let Terminator::Wait(wait) = &block.terminator else { continue };
            for branch in &wait.branches {
                let (channel, region) = match &branch.operation {
                    Operation::In { channel, condition, .. } => (*channel, *condition),
                    Operation::Out { channel, payload: Payload::Region(entry), .. } => (*channel, Some(*entry)),
                    Operation::Out { channel, payload: Payload::Ready(_), .. } => (*channel, None),
                    Operation::After { .. } => continue,
                };
                places.insert(branch.location, channel);
                let blocks = region.map(|entry| reached(body, entry)).unwrap_or_default();
                let code = blocks.iter().flat_map(|block| &body.blocks[block.0 as usize].instructions);
                places.extend(code.map(|instruction| (instruction.location, channel)));
            }
        }
    }
    places.remove(&Location::default());
    places.into_iter().collect()
}

/// The blocks of a region.
fn reached(body: &Body, entry: BlockId) -> BTreeSet<BlockId> {
    let (mut seen, mut work) = (BTreeSet::new(), vec![entry]);
    while let Some(block) = work.pop() {
        if seen.insert(block) {
            work.extend(successors(&body.blocks[block.0 as usize].terminator));
        }
    }
    seen
}

fn name(members: &[&Process]) -> SmolStr {
    let mut names: Vec<&str> = members.iter().map(|process| process.name.as_str()).collect();
    names.dedup();
    names.join("_").into()
}
