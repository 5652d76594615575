//! The routines of an open file or of an end of a pipe.

use super::code::{free, gate, instantiate, with_code};
use crate::arch::entry::{general_read, general_seek, general_write};
use quaject_synth::Routine;
use quaject_synth::gate::Gate;

/// Where a descriptor's calls lead: read, write, seek.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamEntries(pub(super) [u64; 3]);

impl StreamEntries {
    /// The addresses: read, write, seek.
    pub(crate) fn addresses(self) -> [u64; 3] {
        self.0
    }
}

/// The general path of each.
fn general() -> [u64; 3] {
    [general_read, general_write, general_seek].map(|slow| slow as *const () as u64)
}

/// What a routine does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Read = 0,
    Write = 1,
    Seek = 2,
}

/// The routines of an open file, or of an end of a pipe. Where there is none the general path does the work.
#[derive(Debug)]
pub(crate) struct StreamRoutines {
    own: [Option<Routine>; 3],
    entries: StreamEntries,
    /// The gate of an end of a pipe, made when a thread waits for the first time.
    gate: Option<Gate>,
}

impl StreamRoutines {
    /// None: every call takes the general path.
    pub(crate) fn none() -> StreamRoutines {
        StreamRoutines { own: [None, None, None], entries: StreamEntries(general()), gate: None }
    }

    fn share(&mut self, operation: Operation, address: Option<u64>) {
        if let Some(address) = address {
            self.entries.0[operation as usize] = address;
        }
    }

    fn own(&mut self, operation: Operation, routine: Option<Routine>) {
        self.share(operation, routine.as_ref().map(|routine| routine.entry() as u64));
        self.own[operation as usize] = routine;
    }

    /// Takes those of the null device.
    pub(crate) fn become_null(&mut self, may: Direction) {
        let shared = with_code(|code| {
            let shapes = &code.shapes;
            [&shapes.read_null, &shapes.write_null, &shapes.seek_null].map(|routine| routine.entry() as u64)
        });
        self.entries = StreamEntries(shared.unwrap_or_else(general));
        self.restrict(may);
    }

    /// Takes those of a terminal: it has no position.
    pub(crate) fn become_terminal(&mut self, may: Direction) {
        self.refuse_position();
        self.restrict(may);
    }

    /// Synthesises those of a regular file: the addresses of `quaject_synth::stream::Open` and `Content`, which exist
    /// as long as the routines do.
    pub(crate) fn become_file(&mut self, may: Direction, open: usize, content: usize, writes: Writes) {
        if may != Direction::Write {
            self.own(Operation::Read, instantiate(|shapes| &shapes.read_file, &[open, content]));
        }
        if may != Direction::Read && writes == Writes::AtPosition {
            self.own(Operation::Write, instantiate(|shapes| &shapes.write_file, &[open, content]));
        }
        self.own(Operation::Seek, instantiate(|shapes| &shapes.seek_file, &[open]));
        self.restrict(may);
    }

    /// Those of the end of a pipe from which programs read, or of that to which they write.
    pub(crate) fn of_pipe(may: Direction, pipe: usize) -> StreamRoutines {
        let mut routines = StreamRoutines::none();
        match may {
            Direction::Read => routines.own(Operation::Read, instantiate(|shapes| &shapes.read_pipe, &[pipe])),
            Direction::Write => routines.own(Operation::Write, instantiate(|shapes| &shapes.write_pipe, &[pipe])),
            Direction::Both => {}
        }
        routines.refuse_position();
        routines.restrict(may);
        routines
    }

    /// What the open file is not for is an error, whatever is asked.
    fn restrict(&mut self, may: Direction) {
        let error = with_code(|code| code.shapes.bad_descriptor.entry() as u64);
        match may {
            Direction::Read => self.share(Operation::Write, error),
            Direction::Write => self.share(Operation::Read, error),
            Direction::Both => {}
        }
    }

    fn refuse_position(&mut self) {
        self.share(Operation::Seek, with_code(|code| code.shapes.no_position.entry() as u64));
    }

    /// Where the calls of descriptors lead.
    pub(crate) fn entries(&self) -> StreamEntries {
        self.entries
    }

    /// The gate of the end's routine.
    fn gate(&mut self) -> Option<&mut Gate> {
        if self.gate.is_none() {
            let [read, write, _] = &self.own;
            self.gate = match (read, write) {
                (Some(read), _) => gate(|shapes| &shapes.read_pipe, read),
                (None, Some(write)) => gate(|shapes| &shapes.write_pipe, write),
                (None, None) => None,
            };
        }
        self.gate.as_mut()
    }

    /// A thread begins to wait for what the end's routine does, which takes the general path from now on.
    pub(crate) fn begin_wait(&mut self) {
        if let Some(gate) = self.gate() {
            // SAFETY: the routine is freed together with the gate.
            unsafe { gate.begin_wait() }
        }
    }

    /// A thread has ended its wait.
    pub(crate) fn end_wait(&mut self) {
        if let Some(gate) = &mut self.gate {
            // SAFETY: the routine is freed together with the gate.
            unsafe { gate.end_wait() }
        }
    }
}

impl Drop for StreamRoutines {
    fn drop(&mut self) {
        for own in &mut self.own {
            if let Some(routine) = own.take() {
                free(routine);
            }
        }
    }
}

/// What an open file is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
    Both,
}

/// Where writes of a file go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writes {
    AtPosition,
    /// To the end, whatever the position is.
    AtEnd,
}
