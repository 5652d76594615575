//! Coverage: the instructions of processes and functions that a machine has executed. A machine that does not record it
//! pays nothing.

use quaject_esp_ir::ir::{Body, FnId, ProcessId, Program, Terminator};
use std::collections::BTreeMap;

/// Called by the interpreter before each instruction.
pub(crate) trait ExecutionHook {
    /// The instruction at this position is executed next.
    fn reach(&mut self, at: usize);

    /// Whether the interpreter stops at this position.
    #[inline]
    fn stops_at(&mut self, _at: usize) -> bool {
        false
    }
}

/// Does nothing.
pub(crate) struct NoHook;

impl ExecutionHook for NoHook {
    #[inline]
    fn reach(&mut self, _at: usize) {}
}

/// The executed instructions of each process and each function. Positions count the instructions of all blocks in
/// order, each block's terminator after its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    pub(crate) processes: Vec<Executed>,
    pub(crate) functions: Vec<Executed>,
}

/// One bit per position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Executed(Vec<u64>);

impl ExecutionHook for Executed {
    #[inline]
    fn reach(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }
}

impl Executed {
    fn empty_for(body: &Body) -> Executed {
        let positions: usize = body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
        Executed(vec![0; positions.div_ceil(64)])
    }

    fn has(&self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }
}

impl Coverage {
    /// Empty coverage of a program.
    pub fn new(program: &Program) -> Coverage {
        Coverage {
            processes: program.processes.iter().map(|process| Executed::empty_for(&process.body)).collect(),
            functions: program.functions.iter().map(|function| Executed::empty_for(&function.body)).collect(),
        }
    }

    /// Whether a process has executed the instruction at this position.
    pub fn has(&self, process: ProcessId, position: usize) -> bool {
        self.processes[process.0 as usize].has(position)
    }

    /// Whether any caller has executed the instruction at this position of a function.
    pub fn has_called(&self, function: FnId, position: usize) -> bool {
        self.functions[function.0 as usize].has(position)
    }

    /// Adds the coverage of another search.
    pub fn add(&mut self, other: &Coverage) {
        let pairs = self.processes.iter_mut().zip(&other.processes);
        for (own, other) in pairs.chain(self.functions.iter_mut().zip(&other.functions)) {
            own.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
        }
    }

    /// Each line of a file, by its number in [`Program::files`], that has code of a process or function, and whether
    /// any of that was executed. A line of a template, procedure or module with parameters is one line, whatever its
    /// expansions; lines of standard modules are left out. Code that only faults does not count: a bounds check that
    /// never fails is no dead code.
    pub fn lines(&self, program: &Program) -> BTreeMap<(u16, u32), bool> {
        let processes = program.processes.iter().map(|process| &process.body).zip(&self.processes);
        let functions = program.functions.iter().map(|function| &function.body).zip(&self.functions);
        let files = program.files_of_lines();
        let mut lines = BTreeMap::new();
        for (body, executed) in processes.chain(functions) {
            let mut position = 0;
            for block in &body.blocks {
                let only_faults = block.instructions.is_empty() && matches!(block.terminator, Terminator::Fault(_));
                let locations = block.instructions.iter().map(|instruction| instruction.location);
                for location in locations.chain([block.location]) {
                    let file = files.get(usize::from(location.file)).copied().flatten();
                    if let (Some(file), true, false) = (file, location.line > 0, only_faults) {
                        *lines.entry((file, location.line)).or_default() |= executed.has(position);
                    }
                    position += 1;
                }
            }
        }
        lines
    }

    /// Resets to empty coverage.
    pub fn clear(&mut self) {
        self.processes.iter_mut().chain(&mut self.functions).for_each(|body| body.0.fill(0));
    }
}
