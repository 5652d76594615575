//! Fusing processes: a group of them becomes one, which does what they do without rendezvous. The processes stay as
//! stubs that end at once, so that the numbers that a `pid` holds do not change.

use crate::passes;
use crate::product::{Group, explore};
use quaject_esp_ir::ir::{Block, Body, Boundary, ChannelId, Location, Process, ProcessId, Program, Terminator};
use quaject_esp_ir::report::location_text;
use smol_str::SmolStr;

/// How large a product may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Nodes: places of all members together, with what is known there.
    pub nodes: usize,
    /// Instructions emitted before they are cleaned up.
    pub instructions: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { nodes: 4096, instructions: 200_000 }
    }
}

/// Why a group was not fused. The general path stays: its processes run as they did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A channel has users on both sides of the group's border.
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
    /// The product has more nodes or instructions than allowed.
    TooLarge {
        /// Nodes when it was given up.
        nodes: usize,
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
            Refusal::TooLarge { nodes } => format!("more than {nodes} states"),
            Refusal::Starves { process } => format!("`{}` could wait for ever", name(process)),
        }
    }
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
pub fn fuse(program: &Program, processes: &[ProcessId], checked: bool, limits: Limits) -> Result<Fused, Refusal> {
    let group = Group::new(program, processes, checked)?;
    let product = explore(&group, limits)?;
    let body = passes::clean(product.body, &program.types, checked);
    let mut fused = program.clone();
    let members: Vec<&Process> = group.processes().map(|process| &program.processes[process.0 as usize]).collect();
    fused.processes.push(Process {
        name: name(&members),
        replicas: 1,
        replicated: false,
        labels: Vec::new(),
        sites: group.sites(),
        body,
        location: members.first().map(|process| process.location).unwrap_or_default(),
    });
    for process in processes {
        let stub = &mut fused.processes[process.0 as usize];
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
    Ok(Fused { program: fused, nodes: product.nodes })
}

fn name(members: &[&Process]) -> SmolStr {
    let mut names: Vec<&str> = members.iter().map(|process| process.name.as_str()).collect();
    names.dedup();
    names.join("_").into()
}

/// What became of one group of processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Its processes, in order of text.
    pub processes: Vec<ProcessId>,
    /// Nodes of its product, or why it was not fused.
    pub result: Result<usize, Refusal>,
}

impl Attempt {
    /// What became of the group, in one line.
    pub fn text(&self, program: &Program) -> String {
        let name = |process: &ProcessId| program.processes[process.0 as usize].name.as_str();
        let names = self.processes.iter().map(name).collect::<Vec<_>>().join(", ");
        let why = match &self.result {
            Ok(nodes) => return format!("fused: {names}: one state machine of {nodes} states"),
            Err(why) => why.text(program),
        };
        format!("not fused: {names}: {why}")
    }
}

/// Fuses every set of processes that channels connect. What is refused runs as it did.
pub fn fuse_all(program: &Program, checked: bool, limits: Limits) -> (Program, Vec<Attempt>) {
    let mut fused = program.clone();
    let mut attempts = Vec::new();
    for processes in connected(program) {
        let result = fuse(&fused, &processes, checked, limits);
        let result = result.map(|group| {
            fused = group.program;
            group.nodes
        });
        attempts.push(Attempt { processes, result });
    }
    (fused, attempts)
}

/// The sets of processes that internal channels connect, of two processes and more.
fn connected(program: &Program) -> Vec<Vec<ProcessId>> {
    let count = program.processes.len();
    let mut set: Vec<usize> = (0..count).collect();
    for (index, channel) in program.channels.iter().enumerate() {
        if channel.boundary != Boundary::Internal {
            continue;
        }
        let users: Vec<usize> = (0..count)
            .filter(|process| program.processes[*process].sites.iter().any(|site| site.channel.0 as usize == index))
            .collect();
        for user in &users {
            let (from, to) = (set[*user], set[users[0]]);
            set.iter_mut().filter(|set| **set == from).for_each(|set| *set = to);
        }
    }
    let groups = (0..count).map(|root| -> Vec<ProcessId> {
        (0..count).filter(|process| set[*process] == root).map(|process| ProcessId(process as u32)).collect()
    });
    let instances = |group: &Vec<ProcessId>| -> u32 {
        group.iter().map(|process| program.processes[process.0 as usize].replicas).sum()
    };
    groups.filter(|group| instances(group) > 1).collect()
}
