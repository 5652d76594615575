//! The coverage of fast paths, from the code that the search has executed.

use super::report::PathCoverage;
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_ir::ir::{BlockId, FastPath, PathId, Program, Terminator};

/// The coverage of each path of a program; without any executed code, no path is entered.
pub(super) fn path_coverage(program: &Program, coverage: Option<&Coverage>) -> Vec<PathCoverage> {
    let of = |(number, path): (usize, &FastPath)| {
        let mut usage = PathCoverage { name: path.name.clone(), is_entered: false, exits_taken: 0, exits: 0 };
        let Some((process, _)) = program.process_of(path.trigger) else { return usage };
        let body = &program.processes[process.0 as usize].body;
        let mut starts = Vec::new();
        let mut position = 0;
        for block in &body.blocks {
            starts.push(position);
            position += block.instructions.len() + 1;
        }
        let is_reached = |BlockId(block): BlockId| {
            let last = starts[block as usize] + body.blocks[block as usize].instructions.len();
            coverage.is_some_and(|coverage| coverage.has(process, last))
        };
        for (index, block) in body.blocks.iter().enumerate() {
            match &block.terminator {
                Terminator::Enter(enter) if enter.path == PathId(number as u32) => {
                    usage.is_entered |= is_reached(enter.then);
                }
                Terminator::Leave(leave) if leave.path == PathId(number as u32) => {
                    usage.exits += 1;
                    usage.exits_taken += usize::from(is_reached(BlockId(index as u32)));
                }
                _ => {}
            }
        }
        usage
    };
    program.paths.iter().enumerate().map(of).collect()
}
