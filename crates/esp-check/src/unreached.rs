//! Code that no run executes.

use quaject_esp_exec::coverage::Coverage;
use quaject_esp_ir::ir::{Body, FnId, Location, Op, Terminator};
use quaject_esp_ir::model::ModelProgram;
use std::collections::{BTreeMap, BTreeSet};

/// Per file and line with code: its columns, and whether the code there was executed.
type Lines = BTreeMap<(u16, u32), BTreeMap<u32, bool>>;

/// The locations in checked processes, and in functions that they call, where nothing was executed: whole lines with
/// column 0; for a line that was executed in part, its first such column. Functions that are never called are omitted,
/// their call sites suffice.
pub(crate) fn unreached(model: &ModelProgram, coverage: &Coverage) -> Vec<Location> {
    let mut lines = Lines::new();
    let mut open = Vec::new();
    for process in model.explored() {
        let body = &model.program.processes[process.0 as usize].body;
        note(&mut lines, body, &|position| coverage.has(process, position));
        open.extend(called(body));
    }
    let mut seen = BTreeSet::new();
    while let Some(function) = open.pop() {
        let body = &model.program.functions[function.0 as usize].body;
        if coverage.has_called(function, 0) && seen.insert(function.0) {
            note(&mut lines, body, &|position| coverage.has_called(function, position));
            open.extend(called(body));
        }
    }
    let place = |((file, line), columns): ((u16, u32), BTreeMap<u32, bool>)| {
        let first = columns.iter().find(|(_, executed)| !**executed)?;
        let column = if columns.values().any(|executed| *executed) { *first.0 } else { 0 };
        Some(Location { file, line, column, member: None })
    };
    lines.into_iter().filter_map(place).collect()
}

fn note(lines: &mut Lines, body: &Body, executed: &dyn Fn(usize) -> bool) {
    let mut position = 0;
    for block in &body.blocks {
        // A failing assertion or bounds check that is never taken is no dead code.
        let only_fails = block.instructions.is_empty() && matches!(block.terminator, Terminator::Fault(_));
        let locations = block.instructions.iter().map(|instruction| instruction.location);
        for location in locations.chain([block.location]) {
            if location.line > 0 && !only_fails {
                let line = lines.entry((location.file, location.line)).or_default();
                *line.entry(location.column).or_default() |= executed(position);
            }
            position += 1;
        }
    }
}

fn called(body: &Body) -> impl Iterator<Item = FnId> {
    body.blocks.iter().flat_map(|block| &block.instructions).filter_map(|instruction| match instruction.op {
        Op::CallFunction { function, .. } => Some(function),
        _ => None,
    })
}
