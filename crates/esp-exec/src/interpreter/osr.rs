//! A run that goes on as another form of its program: with fast paths, or again without. Between two steps a state says
//! everything there is, so it is enough to find, for each place where an instance stands, the same place in the other
//! form. Knows nothing of when that is worth while.
//!
//! ```text
//!   plain    block b:  i0 i1 wait
//!   cut      block b:  i0 -> block n: i1 -> block n+1: wait       as fast paths ask for
//!   fast     the blocks of `cut` in their places, tests and paths behind them
//! ```
//!
//! Values and slots have the same numbers in all three; those of paths come behind them and matter on a path only.

use super::{Interpreter, Schedule};
use crate::code::{GuardCode, Pc};
use crate::native::{Extents, positions};
use crate::profile::Tally;
use crate::step::{Checks, Control, Machine, State, TooLarge};
use quaject_esp_ir::ir::{Block, Program, Terminator};
use std::collections::VecDeque;

/// The same places in a program and in its form with fast paths.
#[derive(Debug)]
pub struct OsrMap(Vec<ProcessMap>);

#[derive(Debug)]
struct ProcessMap {
    /// Positions at which an instance may be about to run: plain, fast; where several are the same, the first is it.
    positions: Vec<(Pc, Pc)>,
    /// Numbers of waits: plain, fast.
    waits: Vec<(u32, u32)>,
    /// How many registers both have, and how many bytes of slots.
    registers: usize,
    memory: usize,
}

/// Which way a run moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OsrDirection {
    /// From the program to its form with fast paths.
    ToFast,
    /// Back.
    ToPlain,
}

impl OsrMap {
    /// Compares a program with its form with fast paths; `cut` is the program, its blocks cut as there, and nothing more.
    pub fn new(plain: &Program, cut: &Program, fast: &Program) -> OsrMap {
        let extents = Extents::new(plain);
        let processes = plain.processes.iter().zip(&cut.processes).zip(&fast.processes);
        OsrMap(
            processes
                .map(|((plain, cut), fast)| {
                    let (plain, cut, fast) = (&plain.body, &cut.body, &fast.body);
                    let (from, to) = (positions(plain), positions(fast));
                    let (from_waits, to_waits) = (waits(&plain.blocks), waits(&fast.blocks));
                    let mut origins: Vec<Option<(usize, Pc)>> = vec![None; cut.blocks.len()];
                    for block in 0..plain.blocks.len() {
                        let (mut piece, mut offset) = (block, 0);
                        loop {
                            origins[piece] = Some((block, offset));
                            offset += cut.blocks[piece].instructions.len() as Pc;
                            match &cut.blocks[piece].terminator {
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
                                // A test stands where a path starts, never where an instance waits.
                                let is_wait = matches!(cut.blocks[piece].terminator, Terminator::Wait(_));
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
    fn control(&self, control: Control, way: OsrDirection) -> Option<Control> {
        match control {
            Control::Running { at } => Some(Control::Running { at: other(&self.positions, at, way)? }),
            Control::Waiting { wait } => Some(Control::Waiting { wait: other(&self.waits, wait, way)? }),
            Control::Ended => Some(Control::Ended),
            Control::CapturedByPath { .. } => None,
        }
    }
}

/// What a number is on the other side, if it is there.
fn other(pairs: &[(u32, u32)], number: u32, way: OsrDirection) -> Option<u32> {
    match way {
        OsrDirection::ToFast => pairs.iter().find(|(plain, _)| *plain == number).map(|(_, fast)| *fast),
        OsrDirection::ToPlain => pairs.iter().find(|(_, fast)| *fast == number).map(|(plain, _)| *plain),
    }
}

impl Interpreter<'_> {
    /// The run, going on as another form of its program, without machine code and without a record; this one is left as
    /// it is. None if somebody stands where the other form has no place: on a fast path, at the test before one, or
    /// within local code that was interrupted. That does not last.
    ///
    /// # Errors
    /// The other form needs too much memory.
    pub fn replace_on_stack<'q>(
        &self,
        to: &'q Program,
        checks: Checks,
        seams: &OsrMap,
        way: OsrDirection,
    ) -> Result<Option<Interpreter<'q>>, TooLarge> {
        if self.state.unfinished.is_some() || self.schedule.over.is_some() {
            return Ok(None);
        }
        // Asked many times while somebody stands elsewhere, and a machine is costly.
        let Some(controls) = self.mapped_controls(seams, way) else { return Ok(None) };
        let machine = Machine::new(to, checks)?;
        let state = self.mapped_state(&machine, seams, controls);
        let schedule = self.mapped_schedule(&machine, seams, way);
        Ok(Some(Interpreter { machine, state, schedule }))
    }

    fn mapped_controls(&self, seams: &OsrMap, way: OsrDirection) -> Option<Vec<Control>> {
        let instances = self.state.instances.iter().zip(&self.machine.code.instances);
        instances.map(|(instance, code)| seams.0[code.0.0 as usize].control(instance.control, way)).collect()
    }

    fn mapped_state(&self, machine: &Machine<'_>, seams: &OsrMap, controls: Vec<Control>) -> State {
        let mut state = machine.start();
        state.pools = self.state.pools.clone();
        state.closed.clone_from(&self.state.closed);
        let instances = state.instances.iter_mut().zip(&self.state.instances).zip(controls);
        for (number, ((to, from), control)) in instances.enumerate() {
            let process = machine.code.instances[number].0.0 as usize;
            let seams = &seams.0[process];
            to.control = control;
            to.branches.clone_from(&from.branches);
            let (registers, memory) = (seams.registers, seams.memory);
            to.frame.registers[..registers].copy_from_slice(&from.frame.registers[..registers]);
            to.frame.memory[..memory].copy_from_slice(&from.frame.memory[..memory]);
            if let Control::Waiting { wait } = control {
                let wait = &machine.code.processes[process].waits[wait as usize];
                // A form with paths keeps guards, to arrive at a wait anew; the program forgets them once they are known.
                for (branch, known) in wait.branches.iter().zip(&from.branches) {
                    if let GuardCode::Register(register) = branch.guard {
                        to.frame.registers[register as usize] = known.open.into();
                    }
                }
            }
        }
        state
    }

    fn mapped_schedule(&self, machine: &Machine<'_>, seams: &OsrMap, way: OsrDirection) -> Schedule {
        let from = &self.schedule;
        let first = from.first.iter().enumerate().map(|(instance, first)| {
            let process = machine.code.instances[instance].0.0 as usize;
            let mut moved = vec![0; machine.code.processes[process].waits.len()];
            for (wait, branch) in first.iter().enumerate() {
                if let Some(wait) = other(&seams.0[process].waits, wait as u32, way) {
                    moved[wait as usize] = *branch;
                }
            }
            moved
        });
        Schedule {
            ready: from.ready.clone(),
            queued: from.queued.clone(),
            reopened: from.reopened.clone(),
            turn: from.turn,
            waiting: from.waiting.clone(),
            watching: from.watching.clone(),
            readers: from.readers.iter().map(VecDeque::clone).collect(),
            writers: from.writers.iter().map(VecDeque::clone).collect(),
            first: first.collect(),
            turns: from.turns,
            rechecked: from.rechecked,
            trace: None,
            profile: None,
            communications: 0,
            over: None,
        }
    }

    /// What has happened since this form of the program runs.
    pub fn tally(&self) -> Tally {
        let runs = self.machine.work.runs;
        Tally { communications: self.schedule.communications, entries: runs.entries, fuel_on_paths: runs.fuel }
    }
}
