//! Which values share a home: versions of one variable, as long as no two of them are alive at once. Knows liveness from
//! its parent; nothing of frames and locals.

use super::{Analysis, Home, Set, Unit};
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// Representatives of values that share a home.
pub(super) struct Classes {
    parent: Vec<u32>,
}

impl Classes {
    /// The representative of a value.
    pub(super) fn find(&self, mut value: u32) -> u32 {
        while self.parent[value as usize] != value {
            value = self.parent[value as usize];
        }
        value
    }
}

/// Joins parameters with the values that arrive in them, as long as no two of a class are alive at once.
pub(super) fn coalesce(analysis: &Analysis<'_>, main: &[BlockId], live_in: &[Set], fixed: &[Option<Home>]) -> Classes {
    let body = analysis.body;
    let mut pairs = Vec::new();
    let mut candidates = BTreeSet::new();
    // What a path takes and gives back is not where it works: its values are locals.
    let on_path = super::super::paths::on_path(body);
    let mut is_on_path = vec![false; body.values.len()];
    for (block, _) in body.blocks.iter().zip(&on_path).filter(|(_, on_path)| **on_path) {
        let results = block.instructions.iter().filter_map(|instruction| instruction.result);
        block.parameters.iter().copied().chain(results).for_each(|value| is_on_path[value.0 as usize] = true);
    }
    for id in main {
        for edge in edges(&body.blocks[id.0 as usize].terminator) {
            let parameters = &body.blocks[edge.to.0 as usize].parameters;
            for (parameter, argument) in parameters.iter().zip(&edge.arguments) {
                let same_type = body.values[parameter.0 as usize].ty == body.values[argument.0 as usize].ty;
                let crosses = is_on_path[parameter.0 as usize] != is_on_path[argument.0 as usize];
                if parameter != argument && same_type && !crosses && fixed[argument.0 as usize].is_none() {
                    pairs.push((*parameter, *argument));
                    candidates.extend([*parameter, *argument]);
                }
            }
        }
    }
    let conflicts = conflicts(analysis, main, live_in, &candidates);
    let mut classes = Classes { parent: (0..body.values.len() as u32).collect() };
    let mut members: BTreeMap<u32, Vec<Value>> = candidates.iter().map(|value| (value.0, vec![*value])).collect();
    for (parameter, argument) in pairs {
        let (a, b) = (classes.find(parameter.0), classes.find(argument.0));
        if a == b {
            continue;
        }
        let clash = members[&a].iter().any(|x| members[&b].iter().any(|y| conflicts.contains(&ordered(*x, *y))));
        if !clash {
            let (keep, drop) = (a.min(b), a.max(b));
            classes.parent[drop as usize] = keep;
            let moved = members.remove(&drop).expect("every class root has members");
            members.get_mut(&keep).expect("every class root has members").extend(moved);
        }
    }
    classes
}

fn ordered(a: Value, b: Value) -> (Value, Value) {
    (a.min(b), a.max(b))
}

/// Pairs of candidates of which one is defined while the other is alive.
fn conflicts(
    analysis: &Analysis<'_>,
    main: &[BlockId],
    live_in: &[Set],
    candidates: &BTreeSet<Value>,
) -> BTreeSet<(Value, Value)> {
    let mut conflicts = BTreeSet::new();
    let mut define = |value: Value, live: &Set| {
        if candidates.contains(&value) {
            for unit in live {
                if let Unit::Value(other) = unit
                    && *other != value
                    && candidates.contains(other)
                {
                    conflicts.insert(ordered(value, *other));
                }
            }
        }
    };
    for id in main {
        let block = &analysis.body.blocks[id.0 as usize];
        let mut live = analysis.live_out(&block.terminator, live_in);
        analysis.terminator_uses(&block.terminator, &mut live);
        for instruction in block.instructions.iter().rev() {
            if let Some(result) = instruction.result {
                define(result, &live);
            }
            analysis.instruction(instruction, &mut live);
        }
        // Parameters are written together, while everything alive at the entry is.
        live.extend(block.parameters.iter().map(|value| Unit::Value(*value)));
        for parameter in &block.parameters {
            define(*parameter, &live);
        }
    }
    conflicts
}
