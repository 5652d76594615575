//! The restrictions of a model's environment, to which its verdict is limited.

use crate::environment::is_used;
use quaject_esp_ir::ir::{Boundary, ChannelId, ExternId, Mutability, Op, PoolId, Program, Type, TypeId};
use quaject_esp_ir::model::{ModelProgram, Role, Values};
use quaject_esp_ir::text::counted;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The restrictions of the environment, each as a phrase.
pub fn restrictions(model: &ModelProgram) -> Vec<String> {
    let program = &model.program;
    let mut restrictions = Vec::new();
    let mut open = Vec::new();
    for (index, channel) in program.channels.iter().enumerate() {
        let channel_id = ChannelId(index as u32);
        if channel.boundary != Boundary::FromEnvironment || !is_used(model, channel_id) {
            continue;
        }
        open.push(format!("`{}`", channel.name));
        if let Some(bound) = model.bounds[index] {
            restrictions.push(format!("at most {} on `{}`", counted(bound, "message"), channel.name));
        }
        for (number, (ty, values)) in model.message(channel_id).enumerate() {
            if let Values::Range(from, to) = values {
                let zeros = if holds_bytes(program, ty) { ", its bytes 0" } else { "" };
                restrictions.push(format!("`{}.{number}` is in {from}..{to}{zeros}", channel.name));
            }
        }
    }
    match &open[..] {
        [] => {}
        [one] => restrictions.push(format!("{one} stays open")),
        many => restrictions.push(format!("{} stay open", many.join(", "))),
    }
    for (index, function) in program.externs.iter().enumerate().take(model.externs as usize) {
        if let Values::Range(from, to) = model.results[ExternId(index as u32).0 as usize] {
            let zeros = if function.result.is_some_and(|ty| holds_bytes(program, ty)) { ", bytes 0" } else { "" };
            restrictions.push(format!("`{}` returns {from}..{to}{zeros}", function.name));
        }
        let has_mutable_parameter =
            function.parameters.iter().any(|(_, mutability)| *mutability == Mutability::Mutable);
        if has_mutable_parameter {
            restrictions.push(format!("`{}` leaves its arguments as they are", function.name));
        }
    }
    if model.roles.contains(&Role::OpenStub) {
        restrictions.push("omitted processes communicate eventually (deadlock, starvation)".to_string());
    }
    let shared: Vec<String> =
        shared_pools(model).into_iter().map(|pool| format!("`{}`", program.types.pool(pool).name)).collect();
    if !shared.is_empty() {
        restrictions.push(format!("omitted processes hold no objects of {}", shared.join(", ")));
    }
    restrictions
}

/// The pools that both checked and omitted processes use.
fn shared_pools(model: &ModelProgram) -> Vec<PoolId> {
    let program = &model.program;
    let used_pools = |role: Role| {
        let mut pools = BTreeSet::new();
        for (process, _) in program.processes.iter().zip(&model.roles).filter(|(_, own)| **own == role) {
            for op in
                process.body.blocks.iter().flat_map(|block| &block.instructions).map(|instruction| &instruction.op)
            {
                match op {
                    Op::Allocate(pool) | Op::FreeObjects(pool) => pools.insert(pool.0),
                    _ => false,
                };
            }
        }
        pools
    };
    used_pools(Role::Explored).intersection(&used_pools(Role::Omitted)).map(|pool| PoolId(*pool)).collect()
}

/// Whether values of a type contain `bytes`, of which only the length is enumerated.
fn holds_bytes(program: &Program, ty: TypeId) -> bool {
    let (mut open, mut seen) = (vec![ty], FxHashSet::default());
    while let Some(ty) = open.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match program.types.get(ty) {
            Type::Bytes { bound } if *bound > 0 => return true,
            Type::Array { element, .. } => open.push(*element),
            Type::Record(id) | Type::Union(id) => {
                open.extend(program.types.aggregate(*id).parts.iter().filter_map(|(_, ty)| *ty));
            }
            Type::Boxed(pool) => open.push(program.types.pool(*pool).content),
            Type::Bytes { .. } | Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) => {}
        }
    }
    false
}
