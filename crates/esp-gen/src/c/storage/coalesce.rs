//! Copy coalescing: versions of one variable share storage while no two of them are live at once (Chaitin 1981). Knows
//! liveness; nothing of frames and locals.

use super::ValueStorage;
use super::liveness::{LiveSet, LiveUnit, Liveness};
use super::path_blocks::on_path;
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// Equivalence classes of values that share storage (union-find).
pub(super) struct CoalescedValues {
    parent: Vec<u32>,
}

impl CoalescedValues {
    /// The representative of a value.
    pub(super) fn find(&self, mut value: u32) -> u32 {
        while self.parent[value as usize] != value {
            value = self.parent[value as usize];
        }
        value
    }
}

/// Joins parameters with the values that arrive in them, as long as no two of a class are live at once.
pub(super) fn coalesce(
    liveness: &Liveness<'_>,
    main: &[BlockId],
    live_in: &[LiveSet],
    immaterial: &[Option<ValueStorage>],
) -> CoalescedValues {
    let body = liveness.body;
    let mut pairs = Vec::new();
    let mut candidates = BTreeSet::new();
    // Values of a fast path are locals; what it takes from frames and returns to them is copied at entry and exit.
    let on_path = on_path(body);
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
                if parameter != argument && same_type && !crosses && immaterial[argument.0 as usize].is_none() {
                    pairs.push((*parameter, *argument));
                    candidates.extend([*parameter, *argument]);
                }
            }
        }
    }
    let conflicts = conflicts(liveness, main, live_in, &candidates);
    let mut classes = CoalescedValues { parent: (0..body.values.len() as u32).collect() };
    let mut members: BTreeMap<u32, Vec<Value>> = candidates.iter().map(|value| (value.0, vec![*value])).collect();
    for (parameter, argument) in pairs {
        let (a, b) = (classes.find(parameter.0), classes.find(argument.0));
        if a == b {
            continue;
        }
        let interferes = members[&a].iter().any(|x| members[&b].iter().any(|y| conflicts.contains(&ordered(*x, *y))));
        if !interferes {
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

/// Interference: pairs of candidates of which one is defined while the other is live.
fn conflicts(
    liveness: &Liveness<'_>,
    main: &[BlockId],
    live_in: &[LiveSet],
    candidates: &BTreeSet<Value>,
) -> BTreeSet<(Value, Value)> {
    let mut conflicts = BTreeSet::new();
    let mut define = |value: Value, live: &LiveSet| {
        if candidates.contains(&value) {
            for unit in live {
                if let LiveUnit::Value(other) = unit
                    && *other != value
                    && candidates.contains(other)
                {
                    conflicts.insert(ordered(value, *other));
                }
            }
        }
    };
    for id in main {
        let block = &liveness.body.blocks[id.0 as usize];
        let mut live = liveness.live_out(&block.terminator, live_in);
        liveness.terminator_uses(&block.terminator, &mut live);
        for instruction in block.instructions.iter().rev() {
            if let Some(result) = instruction.result {
                define(result, &live);
            }
            liveness.instruction(instruction, &mut live);
        }
        // Parameters are assigned in parallel, while everything that is live at the entry is.
        live.extend(block.parameters.iter().map(|value| LiveUnit::Value(*value)));
        for parameter in &block.parameters {
            define(*parameter, &live);
        }
    }
    conflicts
}
