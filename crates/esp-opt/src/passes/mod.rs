//! Passes over one body, one file each. Each leaves a well-formed body that does the same, and says whether it has
//! changed anything. In which order they run is said by whoever compiles a whole program; here is only how a body is
//! tidied that was emitted path by path.

mod bounds;
mod constants;
mod counts;
mod dead;
mod lengths;
mod loads;
mod masks;
mod numbering;
mod parameters;
mod ranges;
mod stores;
mod strength;

pub(crate) use numbering::{Number, numbers_if};

use crate::facts::Fact;
use quaject_esp_ir::ir::{Body, MemoryMode, Program, Terminator, TypeTable};
use quaject_esp_ir::simplify_cfg::merge_and_number;
use std::cell::RefCell;

/// What passes know beside the body.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Every type.
    pub types: &'a TypeTable,
    /// How counts end.
    pub memory: MemoryMode,
    /// Whether overflow is a fault.
    pub checked: bool,
    /// What passes have found out about the body as it is.
    pub found: &'a Found,
}

/// What passes have found out about a body: of no use any more once it has changed.
#[derive(Default, Debug)]
pub struct Found(RefCell<Option<Vec<Option<Fact>>>>);

/// Joins every block with the one it alone jumps to, leaves out what nothing leads to, and numbers all anew.
pub fn join(body: &mut Body, _: Context<'_>) -> bool {
    let size = |body: &Body| (body.blocks.len(), body.values.len(), body.slots.len());
    let before = size(body);
    *body = merge_and_number(std::mem::take(body));
    before != size(body)
}

/// Values that always are another one: the other takes their place.
pub fn copies(body: &mut Body, _: Context<'_>) -> bool {
    parameters::drop_trivial(body)
}

/// Operations on constants, and branches on them.
pub fn constants(body: &mut Body, context: Context<'_>) -> bool {
    let any = constants::fold(body, context.types, context.checked);
    if any {
        // Where a branch never goes there is no code: it may be part of a region, which nobody enters from outside.
        join(body, context);
    }
    any
}

/// Values that are computed twice, and operations that undo each other.
pub fn numbering(body: &mut Body, _: Context<'_>) -> bool {
    numbering::unify(body)
}

/// Operations that their operands' ranges decide.
pub fn ranges(body: &mut Body, context: Context<'_>) -> bool {
    !is_on_paths(body) && ranges::decide(body, context)
}

/// Operations that a cheaper one can do.
pub fn strength(body: &mut Body, context: Context<'_>) -> bool {
    !is_on_paths(body) && strength::reduce(body, context)
}

/// Counts that are added and taken away again, unseen.
pub fn counts(body: &mut Body, context: Context<'_>) -> bool {
    match context.memory {
        MemoryMode::Automatic => counts::cancel(body),
        // A count that is added to an object which has none is a fault.
        MemoryMode::Manual => false,
    }
}

/// Writes to memory of the process that nobody reads.
pub fn stores(body: &mut Body, context: Context<'_>) -> bool {
    !is_on_paths(body) && stores::remove(body, context.types)
}

/// Values that nobody uses.
pub fn dead(body: &mut Body, context: Context<'_>) -> bool {
    dead::remove(body, context.checked)
}

/// Bounds that need not be checked.
pub fn bounds(body: &mut Body, context: Context<'_>) -> bool {
    !is_on_paths(body) && bounds::prove(body, context.types, context.checked)
}

/// A copy of a body of the program with what bounds can be shown to hold.
pub(crate) fn proven(body: &Body, program: &Program, checked: bool) -> Body {
    let mut body = body.clone();
    bounds::prove(&mut body, &program.types, checked);
    body
}

/// Whether a fast path is in the body: where one is left, values and slots go along that are on no edge.
fn is_on_paths(body: &Body) -> bool {
    body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_) | Terminator::Leave(_)))
}

/// Tidies a body that was emitted path by path.
pub(crate) fn clean(body: Body, types: &TypeTable, checked: bool) -> Body {
    clean_with(body, types, checked, &[])
}

/// The same, with what is always so of the entry block's parameters, as far as something is.
pub(crate) fn clean_with(mut body: Body, types: &TypeTable, checked: bool, given: &[Option<Fact>]) -> Body {
    loop {
        // What stands in one block is seen together.
        body = merge_and_number(body);
        let dropped = parameters::drop_trivial(&mut body);
        let folded = constants::fold(&mut body, types, checked);
        let unified = numbering::unify(&mut body);
        let removed = dead::remove(&mut body, checked);
        if dropped || folded || unified || removed {
            continue;
        }
        // Ranges take longer than all others; what has gone by then need not be looked at.
        if !loads::remove(&mut body, types, checked, given) {
            return body;
        }
    }
}

/// Tidies the code of a fast path, which runs through without anybody else in between.
pub(crate) fn clean_path(body: Body, types: &TypeTable, checked: bool, given: &[Option<Fact>]) -> Body {
    let mut body = clean_with(body, types, checked, given);
    // What is handed round a loop may turn out to be one length.
    if lengths::unify(&mut body) {
        body = clean_with(body, types, checked, given);
    }
    let settled = lengths::settle(&mut body, types, checked, given);
    let sunk = !checked && masks::sink(&mut body, types);
    if settled || sunk { clean_with(body, types, checked, given) } else { body }
}
