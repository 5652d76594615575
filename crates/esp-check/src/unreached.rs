//! Code that no run executes.

use quaject_esp_exec::coverage::Coverage;
use quaject_esp_ir::ir::{Body, FnId, Location, Op, Terminator};
use quaject_esp_ir::model::ModelProgram;
use std::collections::{BTreeMap, BTreeSet};

/// Lines with code.
struct Lines {
    /// By the number of a file or an expansion: that of the file with its text; none for a standard module.
    files: Vec<Option<u16>>,
    /// Per file and line: its columns, and whether the code there was executed.
    columns: BTreeMap<(u16, u32), BTreeMap<u32, bool>>,
}

/// The locations in checked processes, and in functions that they call, where nothing was executed: whole lines with
/// column 0; for a line that was executed in part, its first such column. Functions that are never called are omitted,
/// their call sites suffice. A line of a template, procedure or module with parameters counts as executed if one of its
/// expansions is. Standard modules are omitted: a program uses a part of them.
pub(crate) fn unreached(model: &ModelProgram, coverage: &Coverage) -> Vec<Location> {
    let mut lines = Lines { files: model.program.files_of_lines(), columns: BTreeMap::new() };
    let mut open = Vec::new();
    for process in model.explored() {
        let body = &model.program.processes[process.0 as usize].body;
        lines.note(body, &|position| coverage.has(process, position));
        open.extend(called(body));
    }
    let mut seen = BTreeSet::new();
    while let Some(function) = open.pop() {
        let body = &model.program.functions[function.0 as usize].body;
        if coverage.has_called(function, 0) && seen.insert(function.0) {
            lines.note(body, &|position| coverage.has_called(function, position));
            open.extend(called(body));
        }
    }
    let place = |((file, line), columns): ((u16, u32), BTreeMap<u32, bool>)| {
        let first = columns.iter().find(|(_, executed)| !**executed)?;
        let column = if columns.values().any(|executed| *executed) { *first.0 } else { 0 };
        Some(Location { file, line, column, member: None })
    };
    lines.columns.into_iter().filter_map(place).collect()
}

impl Lines {
    fn note(&mut self, body: &Body, executed: &dyn Fn(usize) -> bool) {
        let mut position = 0;
        for block in &body.blocks {
            // A failing assertion or bounds check that is never taken is no dead code.
            let only_fails = block.instructions.is_empty() && matches!(block.terminator, Terminator::Fault(_));
            let locations = block.instructions.iter().map(|instruction| instruction.location);
            for location in locations.chain([block.location]) {
                let file = self.files.get(usize::from(location.file)).copied().flatten();
                if let (Some(file), true, false) = (file, location.line > 0, only_fails) {
                    let line = self.columns.entry((file, location.line)).or_default();
                    *line.entry(location.column).or_default() |= executed(position);
                }
                position += 1;
            }
        }
    }
}

fn called(body: &Body) -> impl Iterator<Item = FnId> {
    body.blocks.iter().flat_map(|block| &block.instructions).filter_map(|instruction| match instruction.op {
        Op::CallFunction { function, .. } => Some(function),
        _ => None,
    })
}
