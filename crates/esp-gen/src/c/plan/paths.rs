//! Fast paths in the plan: which of them become C functions, what they require of storage, and the slots that they
//! capture from other instances.

use super::super::Style;
use super::super::storage::{PathConstraints, StorageMap, used_slots};
use super::Plan;
use quaject_esp_ir::access::touched;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// A fast path whose code is a function.
pub(crate) struct PathFunction {
    /// The first block: the target of the entry.
    pub(crate) entry: BlockId,
    /// Its blocks, in ascending order.
    pub(crate) blocks: Vec<BlockId>,
    /// Where the trigger continues, by the number that is returned, from 1.
    pub(crate) exits: Vec<BlockId>,
    /// Values of the trigger that it uses.
    used: Vec<Value>,
    /// Its blocks that end in a poll of the environment, in ascending order.
    pub(crate) polls: Vec<BlockId>,
    /// Those of them, with the branch, behind which it may pause: the caller may accept no more messages.
    pub(crate) pauses: Vec<(BlockId, usize)>,
    /// Whether the function keeps the end of the ready list in a local: it does more than to append members in a loop.
    pub(crate) holds_tail: bool,
}

impl PathFunction {
    /// What the function returns where the trigger continues at this block.
    pub(crate) fn exit_number(&self, to: BlockId) -> usize {
        self.exits.iter().position(|exit| *exit == to).expect("every exit of a path is known") + 1
    }

    /// Whether the function needs the present time.
    pub(crate) fn reads_clock(&self, body: &Body) -> bool {
        let code = self.blocks.iter().flat_map(|block| &body.blocks[block.0 as usize].instructions);
        code.into_iter().any(|instruction| matches!(instruction.op, Op::Deadline { .. }))
    }

    /// The locals of the trigger that are passed to the function.
    pub(crate) fn arguments(&self, storage: &StorageMap) -> BTreeSet<Value> {
        self.used.iter().filter_map(|value| storage.local(*value)).collect()
    }
}

/// The paths of a body that can be functions: those that wait for nothing, but at most poll the environment.
pub(super) fn path_functions(program: &Program, body: &Body, style: Style) -> Vec<PathFunction> {
    let entries = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Enter(enter) => Some(enter.then),
        _ => None,
    });
    entries.filter_map(|entry| path_function(program, body, entry, style)).collect()
}

fn path_function(program: &Program, body: &Body, entry: BlockId, style: Style) -> Option<PathFunction> {
    let (mut blocks, mut exits) = (BTreeSet::new(), BTreeSet::new());
    let (mut polls, mut pauses) = (BTreeSet::new(), BTreeSet::new());
    let mut work = vec![entry];
    while let Some(block) = work.pop() {
        if !blocks.insert(block) {
            continue;
        }
        let terminator = &body.blocks[block.0 as usize].terminator;
        match terminator {
            Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } | Terminator::Fault(_) => {}
            Terminator::Leave(leave) => {
                exits.insert(leave.trigger.to);
            }
            Terminator::Wait(wait) if is_environment_poll(program, wait) => {
                polls.insert(block);
                let sends = |branch: &Branch| matches!(branch.operation, Operation::Out { .. });
                let branches = wait.branches.iter().enumerate();
                let sending = branches.filter(|(_, branch)| style.is_sans_io() && sends(branch));
                pauses.extend(sending.map(|(number, _)| (block, number)));
            }
            Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Enter(_) => return None,
        }
        work.extend(successors(terminator, Regions::Skip));
    }
    let blocks: Vec<BlockId> = blocks.into_iter().collect();
    let defined = defined_values(body, &blocks);
    let used = touched_values(body, &blocks).difference(&defined).copied().collect();
    Some(PathFunction {
        entry,
        blocks,
        exits: exits.into_iter().collect(),
        used,
        polls: polls.into_iter().collect(),
        pauses: pauses.into_iter().collect(),
        holds_tail: false,
    })
}

/// Whether a wait does not block: it is on the environment alone and has an `else`.
fn is_environment_poll(program: &Program, wait: &Wait) -> bool {
    let is_external = |branch: &Branch| match &branch.operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => {
            program.channels[channel.0 as usize].boundary != Boundary::Internal
        }
        Operation::After { .. } => false,
    };
    wait.otherwise.is_some() && wait.branches.iter().all(is_external)
}

/// The values that some blocks define.
pub(crate) fn defined_values(body: &Body, blocks: &[BlockId]) -> BTreeSet<Value> {
    let mut values = BTreeSet::new();
    for block in blocks {
        let block = &body.blocks[block.0 as usize];
        values.extend(&block.parameters);
        values.extend(block.instructions.iter().filter_map(|instruction| instruction.result));
    }
    values
}

fn touched_values(body: &Body, blocks: &[BlockId]) -> BTreeSet<Value> {
    let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
    blocks.iter().for_each(|block| touched(body, *block, &mut values, &mut slots));
    values
}

/// The slots that are used both by functions of paths and by other blocks of a body.
fn slots_shared_with(body: &Body, functions: &[PathFunction]) -> BTreeSet<SlotId> {
    let is_inside = |block: &BlockId| functions.iter().any(|function| function.blocks.contains(block));
    let others: Vec<BlockId> = (0..body.blocks.len() as u32).map(BlockId).filter(|block| !is_inside(block)).collect();
    let outside = used_slots(body, &others);
    let inside = functions.iter().flat_map(|function| used_slots(body, &function.blocks));
    inside.filter(|slot| outside.contains(slot)).collect()
}

/// What fast paths require of the storage of a process. `functions` are those that its own triggers enter.
pub(super) fn path_constraints(program: &Program, process: usize, functions: &[PathFunction]) -> PathConstraints {
    let mut constraints = PathConstraints::default();
    let is_of_process =
        |instance: u32| program.process_of(instance).is_some_and(|(other, _)| other.0 as usize == process);
    constraints.captured_slots.extend(program.captured_slots(ProcessId(process as u32)));
    // What a function leaves to the code after it is where both find it.
    for function in functions {
        constraints.frame_blocks.extend(&function.exits);
        constraints.polls.extend(&function.polls);
        constraints.pauses.extend(&function.pauses);
    }
    constraints.frame_slots.extend(slots_shared_with(&program.processes[process].body, functions));
    for member in program.paths.iter().flat_map(|path| &path.members) {
        if is_of_process(member.instance) {
            constraints.frame_blocks.insert(member.start.0);
            constraints.frame_slots.extend(member.slots.iter().map(|(own, _)| *own));
        }
    }
    for block in program.processes.iter().flat_map(|process| &process.body.blocks) {
        let Terminator::Leave(leave) = &block.terminator else { continue };
        let path = &program.paths[leave.path.0 as usize];
        for (number, resume) in &leave.members {
            if is_of_process(path.members[*number as usize].instance) {
                constraints.frame_blocks.insert(resume.to);
                constraints.resumptions.insert(resume.to);
            }
        }
    }
    constraints
}

impl Plan<'_> {
    /// Finds the slots that paths capture from other instances.
    pub(super) fn capture_slots(&mut self) {
        for path in &self.program.paths {
            let (trigger, _) = self.instance_frame(path.trigger);
            for member in &path.members {
                let (process, frame) = self.instance_frame(member.instance);
                for (own, here) in &member.slots {
                    let name = self.frame_member(process, *own);
                    self.processes[trigger].captured.insert(*here, format!("{frame}{name}"));
                }
            }
        }
    }

    /// Finds the path functions that hold the end of the ready list.
    pub(super) fn place_tails(&mut self) {
        for process in 0..self.processes.len() {
            let body = &self.program.processes[process].body;
            for path in 0..self.processes[process].paths.len() {
                let function = &self.processes[process].paths[path];
                let appends_one_by_one = |block: &BlockId| match &body.blocks[block.0 as usize].terminator {
                    Terminator::Leave(leave) => !self.requeues_in_loop(leave),
                    _ => false,
                };
                let holds_tail = !function.polls.is_empty() || function.blocks.iter().any(appends_one_by_one);
                self.processes[process].paths[path].holds_tail = holds_tail;
            }
        }
    }
}
