//! The correspondence of control locations between implementation and specification. The specification is the program
//! without fast paths, with a preemption point (`yield`) wherever a path can exit.
//!
//! ```text
//!   implementation                            specification                    corresponding location
//!   before -> test -> Enter -> path -> Leave  before -> yield -> rest          test, as before: rest
//!                |                  |         block  -> yield -> rest          block, where a path exits: rest
//!                v                  v                                          any other block: itself
//!            as before            block
//! ```
//!
//! An interruption of local code is visible only in the order in which instances call extern functions.

use quaject_esp_exec::explore::live_projection::ProgramPoint;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{Block, BlockId, Body, Edge, Enter, Program, Terminator};
use std::collections::{BTreeMap, BTreeSet};

/// The locations of the specification, by process and block of the implementation.
#[derive(Clone)]
pub(super) struct LocationMap {
    processes: Vec<ProcessLocations>,
}

/// By block of the implementation.
#[derive(Clone, Default)]
struct ProcessLocations {
    before: BTreeMap<u32, BlockId>,
    at: BTreeMap<u32, BlockId>,
}

impl LocationMap {
    /// The specification's location for one of the implementation; none if it is on a path.
    pub(super) fn corresponding_point(&self, process: usize, point: ProgramPoint) -> Option<ProgramPoint> {
        let of = &self.processes[process];
        match point {
            ProgramPoint::Before(BlockId(block)) => of.before.get(&block).copied().map(ProgramPoint::Before),
            ProgramPoint::At(BlockId(block)) => of.at.get(&block).copied().map(ProgramPoint::At),
            ProgramPoint::Ended => Some(ProgramPoint::Ended),
            ProgramPoint::Captured | ProgramPoint::Within => None,
        }
    }
}

/// Makes a specification that can be interrupted wherever a path of the implementation can exit.
pub(super) fn location_map(specification: &Program, implementation: &Program) -> (Program, LocationMap) {
    let mut program = specification.clone();
    let resumed = resume_locations(implementation);
    let mut processes = Vec::new();
    for (index, process) in implementation.processes.iter().enumerate() {
        let body = &mut program.processes[index].body;
        let count = body.blocks.len() as u32;
        let is_wait = |block: &u32| matches!(process.body.blocks[*block as usize].terminator, Terminator::Wait(_));
        let mut of = ProcessLocations {
            before: (0..count).map(|block| (block, BlockId(block))).collect(),
            at: (0..count).filter(is_wait).map(|block| (block, BlockId(block))).collect(),
        };
        // Tests first: the code after a test can be a location where another path exits.
        for block in 0..count {
            let tests = entry_tests(&process.body, block, count);
            if tests.is_empty() {
                continue;
            }
            let rest = insert_yield(body, block, body.blocks[block as usize].instructions.len());
            for test in tests {
                of.before.insert(test, rest);
                of.at.insert(test, rest);
            }
        }
        for block in resumed.iter().filter(|(process, block)| *process == index && *block < count) {
            let rest = insert_yield(body, block.1, 0);
            of.before.insert(block.1, rest);
            if let Some(at) = of.at.get_mut(&block.1).filter(|at| at.0 == block.1) {
                *at = rest;
            }
        }
        processes.push(of);
    }
    (program, LocationMap { processes })
}

/// The locations where instances resume after paths: processes and blocks.
fn resume_locations(implementation: &Program) -> BTreeSet<(usize, u32)> {
    let mut resumed = BTreeSet::new();
    for process in &implementation.processes {
        for block in &process.body.blocks {
            let Terminator::Leave(leave) = &block.terminator else { continue };
            let Some(path) = implementation.paths.get(leave.path.0 as usize) else { continue };
            let members = leave.members.iter().filter_map(|(number, resume)| {
                path.members.get(*number as usize).map(|member| (member.instance, resume.to))
            });
            for (instance, to) in members.chain([(path.trigger, leave.trigger.to)]) {
                if let Some((process, _)) = implementation.process_of(instance) {
                    resumed.insert((process.0 as usize, to.0));
                }
            }
        }
    }
    resumed
}

/// The blocks of the entry tests that follow a block, up to where the process continues without a path; without the
/// blocks of the path.
fn entry_tests(body: &Body, block: u32, count: u32) -> Vec<u32> {
    let is_new = |block: &BlockId| block.0 >= count;
    let mut work: Vec<BlockId> = successors(&body.blocks[block as usize].terminator, Regions::Include);
    work.retain(is_new);
    let mut tests = BTreeSet::new();
    while let Some(block) = work.pop() {
        if !tests.insert(block.0) {
            continue;
        }
        let next = match &body.blocks[block.0 as usize].terminator {
            Terminator::Enter(Enter { later, otherwise, .. }) => vec![later.to, otherwise.to],
            terminator => successors(terminator, Regions::Include),
        };
        work.extend(next.into_iter().filter(is_new));
    }
    tests.into_iter().collect()
}

/// Inserts a `yield` before an instruction of a block; returns the block that follows it.
fn insert_yield(body: &mut Body, block: u32, instruction: usize) -> BlockId {
    let rest = BlockId(body.blocks.len() as u32);
    let first = &mut body.blocks[block as usize];
    let second = Block {
        parameters: Vec::new(),
        instructions: first.instructions.split_off(instruction),
        terminator: std::mem::replace(
            &mut first.terminator,
            Terminator::Yield(Edge { to: rest, arguments: Vec::new() }),
        ),
        location: first.location,
    };
    body.blocks.push(second);
    rest
}
