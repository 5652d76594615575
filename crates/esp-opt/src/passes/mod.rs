//! Passes over one body, one file each, by the names of the literature. Each keeps the body well-formed and its
//! behaviour, and returns whether it changed anything. The driver of a whole program chooses the order; this module
//! only combines passes for the clean-up of bodies that the product explorer emitted. `dle` is part of the clean-up
//! only; the pass that the driver names `dle` is `dce` after bounds-check elimination.

mod bounds_check_elim;
mod const_fold;
mod copy_prop;
mod dce;
mod demanded_bits;
mod dle;
mod dse;
mod gvn;
mod lengths;
mod rc_elim;
mod strength_reduce;
mod vrp;

pub(crate) use gvn::{ValueNumber, value_numbers};

use crate::facts::Fact;
use quaject_esp_ir::ir::{Body, MemoryMode, Terminator, TypeTable};
use quaject_esp_ir::simplify_cfg::merge_and_number;
use std::cell::RefCell;

/// The input of a pass besides the body.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Every type.
    pub types: &'a TypeTable,
    /// Whether objects are freed by their reference counts.
    pub memory: MemoryMode,
    /// Whether overflow is a fault.
    pub checked: bool,
    /// Analyses of the unchanged body.
    pub cache: &'a AnalysisCache,
}

/// Analysis results of a body, valid until the body changes.
#[derive(Default, Debug)]
pub struct AnalysisCache(RefCell<Option<Vec<Option<Fact>>>>);

/// Merges every block with its only predecessor if that jumps to it, removes unreachable blocks, and renumbers the
/// body.
pub fn simplify_cfg(body: &mut Body, _: Context<'_>) -> bool {
    let size = |body: &Body| (body.blocks.len(), body.values.len(), body.slots.len());
    let before = size(body);
    *body = merge_and_number(std::mem::take(body));
    before != size(body)
}

/// Copy propagation: replaces block parameters that always equal another value.
pub fn copy_prop(body: &mut Body, _: Context<'_>) -> bool {
    copy_prop::drop_redundant_parameters(body)
}

/// Constant folding: operations on constants, and branches on them.
pub fn const_fold(body: &mut Body, context: Context<'_>) -> bool {
    let any = const_fold::fold(body, context.types, context.checked);
    if any {
        // A branch that is never taken leaves unreachable code, which may be part of a region.
        simplify_cfg(body, context);
    }
    any
}

/// Global value numbering: values that are computed twice, and operations that cancel each other.
pub fn gvn(body: &mut Body, _: Context<'_>) -> bool {
    gvn::unify(body)
}

/// Value range propagation: operations whose result the operands' ranges decide.
pub fn vrp(body: &mut Body, context: Context<'_>) -> bool {
    !has_path_terminators(body) && vrp::fold_by_ranges(body, context)
}

/// Strength reduction: operations for which a cheaper one exists.
pub fn strength_reduce(body: &mut Body, context: Context<'_>) -> bool {
    !has_path_terminators(body) && strength_reduce::reduce(body, context)
}

/// Reference-count elision: increments and decrements that cancel, unobserved.
pub fn rc_elim(body: &mut Body, context: Context<'_>) -> bool {
    match context.memory {
        MemoryMode::Automatic => rc_elim::cancel(body),
        // In manual memory an increment of a freed object is a fault.
        MemoryMode::Manual => false,
    }
}

/// Dead store elimination: writes to slots that are never read.
pub fn dse(body: &mut Body, context: Context<'_>) -> bool {
    !has_path_terminators(body) && dse::remove(body, context.types, context.memory)
}

/// Dead code elimination: unused results.
pub fn dce(body: &mut Body, context: Context<'_>) -> bool {
    dce::remove(body, context.checked, context.memory)
}

/// Bounds-check elimination: marks indices that are proved in range.
pub fn bounds_check_elim(body: &mut Body, context: Context<'_>) -> bool {
    !has_path_terminators(body) && bounds_check_elim::mark_inside(body, context.types, context.checked)
}

/// Whether the body enters or exits a fast path: exits transfer values and slots that are on no edge.
fn has_path_terminators(body: &Body) -> bool {
    body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_) | Terminator::Leave(_)))
}

/// Cleans up a body that the product explorer emitted.
pub(crate) fn clean(body: Body, types: &TypeTable, checked: bool, memory: MemoryMode) -> Body {
    clean_with(body, types, checked, memory, &[])
}

/// As [`clean`]. Per parameter of the entry block, `entry_facts` always hold of it; missing facts are unknown.
pub(crate) fn clean_with(
    mut body: Body,
    types: &TypeTable,
    checked: bool,
    memory: MemoryMode,
    entry_facts: &[Option<Fact>],
) -> Body {
    loop {
        // Merged blocks are analysed together.
        body = merge_and_number(body);
        let dropped = copy_prop::drop_redundant_parameters(&mut body);
        let folded = const_fold::fold(&mut body, types, checked);
        let unified = gvn::unify(&mut body);
        let removed = dce::remove(&mut body, checked, memory);
        if dropped || folded || unified || removed {
            continue;
        }
        // The range analysis takes longest, so it runs last.
        if !dle::remove(&mut body, types, checked, entry_facts) {
            return body;
        }
    }
}

/// Cleans up the code of a fast path, which no other process interleaves with.
pub(crate) fn clean_path(
    body: Body,
    types: &TypeTable,
    checked: bool,
    memory: MemoryMode,
    entry_facts: &[Option<Fact>],
) -> Body {
    let mut body = clean_with(body, types, checked, memory, entry_facts);
    // A loop parameter may turn out to be a length.
    if lengths::unify(&mut body) {
        body = clean_with(body, types, checked, memory, entry_facts);
    }
    let proved = lengths::eliminate_checks(&mut body, types, checked, entry_facts);
    let sunk = !checked && demanded_bits::sink_masks(&mut body, types);
    if proved || sunk { clean_with(body, types, checked, memory, entry_facts) } else { body }
}
