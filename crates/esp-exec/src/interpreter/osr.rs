//! On-stack replacement (OSR; Hölzle, Chambers, Ungar, "Debugging Optimized Code with Dynamic Deoptimization", 1992)
//! between a program and its form with fast paths: a run continues in the other form. A state between two steps
//! determines the future, so it suffices to map each program point of one form to the same point of the other. The
//! caller decides when to replace.
//!
//! ```text
//!   plain    block b:  i0 i1 wait
//!   split    block b:  i0 -> block n: i1 -> block n+1: wait       at the starts of fast paths
//!   fast     the blocks of `split` in their places, tests and paths behind them
//! ```
//!
//! Values and slots have the same numbers in all three forms. Those of paths follow, and are live only on a path.

use super::{Interpreter, Schedule};
use crate::code::{GuardCode, Pc};
use crate::native::{Extents, positions};
use crate::path_counters::Tally;
use crate::state::{Control, State};
use crate::step::{Checks, Machine, TooLarge};
use quaject_esp_ir::ir::{Block, Program, Terminator};
use std::collections::VecDeque;

/// Maps the program points of a program to those of its form with fast paths, and back.
#[derive(Debug)]
pub struct OsrMap(Vec<ProcessMap>);

#[derive(Debug)]
struct ProcessMap {
    /// Positions at which an instance may be running: plain, fast. Of several equal ones the first counts.
    positions: Vec<(Pc, Pc)>,
    /// Numbers of waits: plain, fast.
    waits: Vec<(u32, u32)>,
    /// The registers that both forms have, and the bytes of their slots.
    registers: usize,
    memory: usize,
}

/// The direction of a replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OsrDirection {
    /// From the program to its form with fast paths.
    ToFast,
    /// Back.
    ToPlain,
}

impl OsrMap {
    /// Maps a program to its form with fast paths. `split` is the program with its blocks split as in that form.
    pub fn new(plain: &Program, split: &Program, fast: &Program) -> OsrMap {
        let extents = Extents::new(plain);
        let processes = plain.processes.iter().zip(&split.processes).zip(&fast.processes);
        OsrMap(
            processes
                .map(|((plain, split), fast)| {
                    let (plain, split, fast) = (&plain.body, &split.body, &fast.body);
                    let (from, to) = (positions(plain), positions(fast));
                    let (from_waits, to_waits) = (waits(&plain.blocks), waits(&fast.blocks));
                    let mut origins: Vec<Option<(usize, Pc)>> = vec![None; split.blocks.len()];
                    for block in 0..plain.blocks.len() {
                        let (mut piece, mut offset) = (block, 0);
                        loop {
                            origins[piece] = Some((block, offset));
                            offset += split.blocks[piece].instructions.len() as Pc;
                            match &split.blocks[piece].terminator {
                                Terminator::Jump(edge) if edge.to.0 as usize >= plain.blocks.len() => {
                                    piece = edge.to.0 as usize;
                                }
                                _ => break,
                            }
                        }
                    }
                    let pieces = origins.iter().enumerate().filter_map(|(piece, origin)| Some((piece, (*origin)?)));
                    let slots = plain.slots.iter().map(|slot| extents.size(slot.ty));
                    ProcessMap {
                        positions: pieces
                            .clone()
                            .map(|(piece, (block, offset))| (from[block] + offset, to[piece]))
                            .collect(),
                        waits: pieces
                            .filter_map(|(piece, (block, _))| {
                                // An entry test precedes a path's start; no instance waits there.
                                let is_wait = matches!(split.blocks[piece].terminator, Terminator::Wait(_));
                                is_wait.then_some(from_waits[block].zip(to_waits[piece])).flatten()
                            })
                            .collect(),
                        registers: plain.values.len(),
                        memory: slots.sum(),
                    }
                })
                .collect(),
        )
    }
}

/// Per block: the number of the wait it ends with.
fn waits(blocks: &[Block]) -> Vec<Option<u32>> {
    let mut next = 0;
    let number = |block: &Block| {
        let is_wait = matches!(block.terminator, Terminator::Wait(_));
        next += u32::from(is_wait);
        is_wait.then(|| next - 1)
    };
    blocks.iter().map(number).collect()
}

impl ProcessMap {
    fn control(&self, control: Control, direction: OsrDirection) -> Option<Control> {
        match control {
            Control::Running { at } => Some(Control::Running { at: other(&self.positions, at, direction)? }),
            Control::Waiting { wait } => Some(Control::Waiting { wait: other(&self.waits, wait, direction)? }),
            Control::Ended => Some(Control::Ended),
            Control::CapturedByPath { .. } => None,
        }
    }
}

/// The number in the other form, if there is one.
fn other(pairs: &[(u32, u32)], number: u32, direction: OsrDirection) -> Option<u32> {
    match direction {
        OsrDirection::ToFast => pairs.iter().find(|(plain, _)| *plain == number).map(|(_, fast)| *fast),
        OsrDirection::ToPlain => pairs.iter().find(|(_, fast)| *fast == number).map(|(plain, _)| *plain),
    }
}

impl Interpreter<'_> {
    /// The run, continued in another form of its program, without machine code, trace, profile and log. None if an
    /// instance is at a point that the other form lacks: on a fast path, at an entry test, or within interrupted local
    /// code. Each of these is temporary.
    ///
    /// # Errors
    /// The other form needs too much memory.
    pub fn replace_on_stack<'q>(
        &self,
        to: &'q Program,
        checks: Checks,
        map: &OsrMap,
        direction: OsrDirection,
    ) -> Result<Option<Interpreter<'q>>, TooLarge> {
        if self.state.unfinished.is_some() || self.schedule.over.is_some() {
            return Ok(None);
        }
        // Called repeatedly until all points map, and a machine is expensive to make.
        let Some(controls) = self.mapped_controls(map, direction) else { return Ok(None) };
        let machine = Machine::new(to, checks)?;
        let state = self.mapped_state(&machine, map, controls);
        let schedule = self.mapped_schedule(&machine, map, direction);
        Ok(Some(Interpreter { machine, state, schedule }))
    }

    fn mapped_controls(&self, map: &OsrMap, direction: OsrDirection) -> Option<Vec<Control>> {
        let instances = self.state.instances.iter().zip(&self.machine.code.instances);
        instances.map(|(instance, code)| map.0[code.0.0 as usize].control(instance.control, direction)).collect()
    }

    fn mapped_state(&self, machine: &Machine<'_>, map: &OsrMap, controls: Vec<Control>) -> State {
        let mut state = machine.start();
        state.pools = self.state.pools.clone();
        state.closed.clone_from(&self.state.closed);
        let instances = state.instances.iter_mut().zip(&self.state.instances).zip(controls);
        for (number, ((to, from), control)) in instances.enumerate() {
            let process = machine.code.instances[number].0.0 as usize;
            let map = &map.0[process];
            to.control = control;
            to.branches.clone_from(&from.branches);
            let (registers, memory) = (map.registers, map.memory);
            to.frame.registers[..registers].copy_from_slice(&from.frame.registers[..registers]);
            to.frame.memory[..memory].copy_from_slice(&from.frame.memory[..memory]);
            if let Control::Waiting { wait } = control {
                let wait = &machine.code.processes[process].waits[wait as usize];
                // The form with paths keeps guards live at waits, because a resumed member evaluates its wait again.
                for (branch, known) in wait.branches.iter().zip(&from.branches) {
                    if let GuardCode::Register(register) = branch.guard {
                        to.frame.registers[register as usize] = known.open.into();
                    }
                }
            }
        }
        state
    }

    fn mapped_schedule(&self, machine: &Machine<'_>, map: &OsrMap, direction: OsrDirection) -> Schedule {
        let from = &self.schedule;
        let first = from.first.iter().enumerate().map(|(instance, first)| {
            let process = machine.code.instances[instance].0.0 as usize;
            let mut mapped = vec![0; machine.code.processes[process].waits.len()];
            for (wait, branch) in first.iter().enumerate() {
                if let Some(wait) = other(&map.0[process].waits, wait as u32, direction) {
                    mapped[wait as usize] = *branch;
                }
            }
            mapped
        });
        Schedule {
            ready: from.ready.clone(),
            queued: from.queued.clone(),
            reopened: from.reopened.clone(),
            turn: from.turn,
            waiting: from.waiting.clone(),
            awaiting_environment: from.awaiting_environment.clone(),
            readers: from.readers.iter().map(VecDeque::clone).collect(),
            writers: from.writers.iter().map(VecDeque::clone).collect(),
            first: first.collect(),
            turns: from.turns,
            rechecked: from.rechecked,
            trace: None,
            log: None,
            profile: None,
            communications: 0,
            over: None,
        }
    }

    /// The counts since this form of the program was entered.
    pub fn tally(&self) -> Tally {
        let runs = self.machine.work.runs;
        Tally { communications: self.schedule.communications, entries: runs.entries, fuel_on_paths: runs.fuel }
    }
}
