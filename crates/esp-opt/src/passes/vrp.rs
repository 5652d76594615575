//! Value range propagation: replaces a result by a constant if the ranges of the operands allow only one value. Removes
//! comparisons that an earlier one decides, and with constant folding their branches.

use super::Context;
use super::dce::has_effect;
use crate::facts::Fact;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{Body, Op, Type};

/// Replaces such results by constants; whether there were any.
pub(super) fn fold_by_ranges(body: &mut Body, context: Context<'_>) -> bool {
    let Context { types, memory, checked, cache } = context;
    let known = intervals(body, types, checked, &[]);
    let mut any = false;
    for instruction in body.blocks.iter_mut().flat_map(|block| &mut block.instructions) {
        let Some(result) = instruction.result else { continue };
        let is_number = match types.get(body.values[result.0 as usize].ty) {
            Type::Int(_) | Type::Bool => true,
            Type::Error
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => false,
        };
        if !is_number || matches!(instruction.op, Op::Constant(_)) || has_effect(&instruction.op, checked, memory) {
            continue;
        }
        if let Some(constant) = known[result.0 as usize].as_ref().and_then(Fact::as_constant) {
            instruction.op = Op::Constant(constant);
            any = true;
        }
    }
    if !any {
        cache.0.replace(Some(known));
    }
    any
}
