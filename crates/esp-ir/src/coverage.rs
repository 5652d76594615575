//! Which instructions of its processes a machine has executed, for those who ask what a search has reached. A machine
//! that is not asked pays nothing.

use crate::code::BodyCode;
use crate::ir::{ProcessId, Program};

/// Is told of each instruction before it is executed.
pub(crate) trait Watch {
    fn reach(&mut self, at: usize);

    /// Whether somebody else goes on from here.
    #[inline]
    fn leaves(&mut self, _at: usize) -> bool {
        false
    }
}

/// Nobody wants to know.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn reach(&mut self, _at: usize) {}
}

/// What has been executed of each process. Positions count the instructions of all blocks in order, each block's
/// terminator after its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    processes: Vec<Executed>,
    /// Functions are not told apart.
    functions: Executed,
}

/// One bit per position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Executed(Vec<u64>);

impl Watch for Executed {
    #[inline]
    fn reach(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }
}

impl Coverage {
    /// Nothing of this program.
    pub fn new(program: &Program) -> Coverage {
        let words = |process: &crate::ir::Process| {
            let positions: usize = process.body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
            Executed(vec![0; positions.div_ceil(64)])
        };
        Coverage { processes: program.processes.iter().map(words).collect(), functions: Executed::default() }
    }

    pub(crate) fn of(&mut self, body: &BodyCode) -> &mut Executed {
        match body.process {
            Some(process) => &mut self.processes[process.0 as usize],
            None => &mut self.functions,
        }
    }

    /// Whether a process has executed what stands at this position.
    pub fn has(&self, process: ProcessId, position: usize) -> bool {
        let words = &self.processes[process.0 as usize].0;
        words.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Adds what another search has executed.
    pub fn add(&mut self, other: &Coverage) {
        for (own, other) in self.processes.iter_mut().zip(&other.processes) {
            own.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.processes.iter_mut().for_each(|process| process.0.fill(0));
    }
}
