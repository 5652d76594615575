//! Dead store elimination: removes writes to slots that no instruction reads before the next write, by liveness (an
//! analysis of `esp-ir`). Tracks whole slots: a dead field of a slot of which another field is live remains.

use super::dce::may_be_freed;
use quaject_esp_ir::ir::{Body, MemoryMode, Op, Operand, Place, Projection, TypeTable};
use quaject_esp_ir::liveness::dead_stores;
use quaject_esp_ir::typing::place_type;

/// Removes dead stores; whether there were any.
pub(super) fn remove(body: &mut Body, types: &TypeTable, memory: MemoryMode) -> bool {
    let mut instructions = body.blocks.iter().flat_map(|block| &block.instructions);
    if !instructions.any(|instruction| is_pure_write(body, types, memory, &instruction.op)) {
        return false;
    }
    let mut dead = dead_stores(body);
    dead.retain(|(block, position)| {
        let op = &body.blocks[*block].instructions[*position].op;
        is_pure_write(body, types, memory, op)
    });
    for (block, position) in dead.iter().rev() {
        body.blocks[*block].instructions.remove(*position);
    }
    !dead.is_empty()
}

/// Whether an instruction writes its place and has no other effect.
fn is_pure_write(body: &Body, types: &TypeTable, memory: MemoryMode, op: &Op) -> bool {
    let is_harmless = |from: &Place| is_always_in_bounds(from) && !may_be_freed(from, memory);
    let ty = |place: &Place| place_type(types, body, place);
    match op {
        Op::Store(to, _) | Op::SetBytes(to, _) | Op::SetTag(to, _) | Op::Fill(to, Operand::Value(_)) => {
            is_always_in_bounds(to)
        }
        // A copy between `bytes` of different bounds may overflow.
        Op::Copy { to, from } => is_always_in_bounds(to) && is_harmless(from) && ty(to) == ty(from),
        Op::Fill(to, Operand::Place(from)) => is_always_in_bounds(to) && is_harmless(from),
        _ => false,
    }
}

/// Whether a place is in bounds for all values of its indices.
fn is_always_in_bounds(place: &Place) -> bool {
    place.path.iter().all(|step| match step {
        Projection::Field(_) | Projection::Payload(_) | Projection::Inside(_) => true,
        Projection::Element(_) => false,
    })
}
