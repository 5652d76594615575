//! Projection of a state to its live part, between a program with fast paths and the program without them: the program
//! point of each instance, and the registers and slots that are live there. The refinement check compares states this
//! way. Which block of one program corresponds to which of the other is decided there.

use crate::code::Pc;
use crate::state::{Control, State};
use crate::step::Machine;
use quaject_esp_ir::ir::{BlockId, ProcessId, Terminator};
use quaject_esp_ir::liveness::{OnPaths, live_at_waits, live_everywhere};
use quaject_esp_ir::sets::Set;

/// The control state of an instance, in blocks of its process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProgramPoint {
    /// Before this block.
    Before(BlockId),
    /// At the operation that ends this block.
    At(BlockId),
    /// Terminated.
    Ended,
    /// Captured by a fast path of another instance.
    Captured,
    /// Within a block, where it was interrupted.
    Within,
}

/// The live registers and slots of each process at its observable points.
#[derive(Debug)]
pub struct LivenessTable(Vec<ProcessLiveness>);

#[derive(Debug)]
struct ProcessLiveness {
    starts: Vec<Pc>,
    /// Per block: the wait that ends it.
    waits: Vec<Option<u32>>,
    before: Vec<LiveStorage>,
    at: Vec<LiveStorage>,
}

#[derive(Debug)]
struct LiveStorage {
    registers: Vec<u32>,
    /// Offset and size.
    slots: Vec<(usize, usize)>,
}

impl Machine<'_> {
    /// Computes the liveness table of a program.
    pub fn liveness_table(&self) -> LivenessTable {
        let processes = self.program().processes.iter().zip(&self.code.processes).map(|(process, code)| {
            let body = &process.body;
            let of = |live: Set| {
                let count = body.values.len() as u32;
                let (registers, slots): (Vec<u32>, Vec<u32>) =
                    live.numbers().into_iter().partition(|number| *number < count);
                LiveStorage { registers, slots: slots.iter().map(|slot| code.slots[(slot - count) as usize]).collect() }
            };
            let mut starts = Vec::new();
            let mut waits = Vec::new();
            let (mut next, mut count) = (0, 0);
            for block in &body.blocks {
                starts.push(next);
                next += block.instructions.len() as Pc + 1;
                let is_wait = matches!(block.terminator, Terminator::Wait(_));
                waits.push(is_wait.then_some(count));
                count += u32::from(is_wait);
            }
            let on_paths = OnPaths::default();
            ProcessLiveness {
                starts,
                waits,
                before: live_everywhere(body, &code.slots, &on_paths).into_iter().map(of).collect(),
                at: live_at_waits(body, &code.slots, &on_paths).into_iter().map(of).collect(),
            }
        });
        LivenessTable(processes.collect())
    }

    /// The program point of an instance.
    pub fn program_point(&self, state: &State, instance: u32, liveness_table: &LivenessTable) -> ProgramPoint {
        if state.unfinished == Some(instance) {
            return ProgramPoint::Within;
        }
        let (ProcessId(process), _) = self.code.instances[instance as usize];
        match state.control(instance) {
            Control::Running { at } => match liveness_table.0[process as usize].starts.binary_search(&at) {
                Ok(block) => ProgramPoint::Before(BlockId(block as u32)),
                Err(_) => ProgramPoint::Within,
            },
            Control::Waiting { wait } => {
                ProgramPoint::At(self.code.processes[process as usize].waits[wait as usize].block)
            }
            Control::CapturedByPath { .. } => ProgramPoint::Captured,
            Control::Ended => ProgramPoint::Ended,
        }
    }

    /// Sets an instance to a program point of this program, with its live state copied from a state of another program,
    /// whose process begins with the same values and slots. Returns false if this program has no such point.
    pub fn project(
        &self,
        state: &mut State,
        from: &State,
        instance: u32,
        point: ProgramPoint,
        liveness_table: &LivenessTable,
    ) -> bool {
        let (ProcessId(process), _) = self.code.instances[instance as usize];
        let of = &liveness_table.0[process as usize];
        let (control, storage) = match point {
            ProgramPoint::Before(BlockId(block)) => match of.starts.get(block as usize) {
                Some(at) => (Control::Running { at: *at }, Some(&of.before[block as usize])),
                None => return false,
            },
            ProgramPoint::At(BlockId(block)) => match of.waits.get(block as usize) {
                Some(Some(wait)) => (Control::Waiting { wait: *wait }, Some(&of.at[*wait as usize])),
                Some(None) | None => return false,
            },
            ProgramPoint::Ended => (Control::Ended, None),
            ProgramPoint::Captured | ProgramPoint::Within => return false,
        };
        let (source, target) = (&from.instances[instance as usize], &mut state.instances[instance as usize]);
        target.control = control;
        target.branches.clear();
        if let Control::Waiting { .. } = control {
            target.branches.extend_from_slice(&source.branches);
        }
        let (frame, other) = (&mut target.frame, &source.frame);
        frame.registers.fill(0);
        frame.memory.fill(0);
        let Some(storage) = storage else { return true };
        for register in &storage.registers {
            frame.registers[*register as usize] = other.registers[*register as usize];
        }
        for (at, size) in &storage.slots {
            frame.memory[*at..at + size].copy_from_slice(&other.memory[*at..at + size]);
        }
        true
    }
}
