//! Writes to slots of which nobody reads what they write, by liveness (the analysis is `esp-ir`'s, which also tells
//! what is zeroed at waits). Knows slots whole: a field that nobody reads beside one that somebody reads stays.

use quaject_esp_ir::ir::{Body, Op, Operand, Place, Projection, TypeTable};
use quaject_esp_ir::liveness::dead_stores;
use quaject_esp_ir::typing::place_type;

/// Removes them; whether there were any.
pub(super) fn remove(body: &mut Body, types: &TypeTable) -> bool {
    let mut instructions = body.blocks.iter().flat_map(|block| &block.instructions);
    if !instructions.any(|instruction| cannot_fail(body, types, &instruction.op)) {
        return false;
    }
    let mut unread = dead_stores(body);
    unread.retain(|(block, position)| {
        let op = &body.blocks[*block].instructions[*position].op;
        cannot_fail(body, types, op)
    });
    for (block, position) in unread.iter().rev() {
        body.blocks[*block].instructions.remove(*position);
    }
    !unread.is_empty()
}

/// Whether an instruction writes its place and does nothing else.
fn cannot_fail(body: &Body, types: &TypeTable, op: &Op) -> bool {
    let ty = |place: &Place| place_type(types, body, place);
    match op {
        Op::Store(to, _) | Op::SetBytes(to, _) | Op::SetTag(to, _) | Op::Fill(to, Operand::Value(_)) => is_found(to),
        // Between `bytes` of two bounds they may be too many.
        Op::Copy { to, from } => is_found(to) && is_found(from) && ty(to) == ty(from),
        Op::Fill(to, Operand::Place(from)) => is_found(to) && is_found(from),
        _ => false,
    }
}

/// Whether a place is there, whatever the values.
fn is_found(place: &Place) -> bool {
    place.path.iter().all(|step| match step {
        Projection::Field(_) | Projection::Payload(_) | Projection::Inside(_) => true,
        Projection::Element(_) => false,
    })
}
