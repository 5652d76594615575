//! Dead code elimination: removes instructions without effects whose result is unused, and unused block parameters.

use quaject_esp_ir::cfg::{edges, edges_mut};
use quaject_esp_ir::ir::{Base, Body, MemoryMode, Op, Place, Projection, UnaryOp, Value};
use quaject_esp_ir::visit::{op_values, own_values};

/// Removes dead code; whether there was any.
pub(super) fn remove(body: &mut Body, checked: bool, memory: MemoryMode) -> bool {
    let mut live = vec![false; body.values.len()];
    let mut worklist: Vec<Value> = Vec::new();
    let mut defined: Vec<Option<(usize, usize)>> = vec![None; body.values.len()];
    let mut parameters: Vec<Option<(usize, usize)>> = vec![None; body.values.len()];
    let mut incoming: Vec<Vec<&[Value]>> = vec![Vec::new(); body.blocks.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        for (position, parameter) in block.parameters.iter().enumerate() {
            parameters[parameter.0 as usize] = Some((index, position));
        }
        for (position, instruction) in block.instructions.iter().enumerate() {
            match instruction.result {
                Some(result) if !has_effect(&instruction.op, checked, memory) => {
                    defined[result.0 as usize] = Some((index, position));
                }
                Some(_) | None => op_values(&instruction.op, &mut |value| worklist.push(*value)),
            }
        }
        for edge in edges(&block.terminator) {
            incoming[edge.to.0 as usize].push(&edge.arguments);
        }
        // Arguments of edges are live only where the parameter is.
        own_values(&block.terminator, &mut |value| worklist.push(*value));
    }
    // The environment binds all parameters of a block that waits enter; they remain.
    let fixed: Vec<bool> = incoming.iter().map(|edges| edges.is_empty()).collect();
    while let Some(value) = worklist.pop() {
        if std::mem::replace(&mut live[value.0 as usize], true) {
            continue;
        }
        if let Some((block, position)) = defined[value.0 as usize] {
            op_values(&body.blocks[block].instructions[position].op, &mut |value| worklist.push(*value));
        }
        if let Some((block, position)) = parameters[value.0 as usize] {
            worklist.extend(incoming[block].iter().map(|edge| edge[position]));
        }
    }
    let mut any = false;
    let kept: Vec<Vec<bool>> = body
        .blocks
        .iter()
        .zip(&fixed)
        .map(|(block, fixed)| block.parameters.iter().map(|value| *fixed || live[value.0 as usize]).collect())
        .collect();
    for (block, kept_here) in body.blocks.iter_mut().zip(&kept) {
        for edge in edges_mut(&mut block.terminator) {
            let kept = &kept[edge.to.0 as usize];
            if edge.arguments.len() == kept.len() {
                let mut position = 0;
                edge.arguments.retain(|_| {
                    position += 1;
                    kept[position - 1]
                });
            }
        }
        let before = block.parameters.len() + block.instructions.len();
        let mut position = 0;
        block.parameters.retain(|_| {
            position += 1;
            kept_here[position - 1]
        });
        block.instructions.retain(|instruction| {
            let used = instruction.result.is_none_or(|result| live[result.0 as usize]);
            used || has_effect(&instruction.op, checked, memory)
        });
        any |= before != block.parameters.len() + block.instructions.len();
    }
    any
}

/// Whether an instruction has an effect besides its result: it writes, may fault, or allocates.
pub(super) fn has_effect(op: &Op, checked: bool, memory: MemoryMode) -> bool {
    match op {
        Op::Constant(_)
        | Op::Convert(_)
        | Op::OwnId
        | Op::ReplicaNumber(_)
        | Op::IsUnique(_)
        | Op::FreeObjects(_)
        | Op::Deadline { .. } => false,
        Op::Unary(UnaryOp::Negate, _) => checked,
        Op::Unary(UnaryOp::Not | UnaryOp::Complement, _) => false,
        Op::Binary(op, _, _) => op.may_fault(checked),
        // An index may be out of range.
        Op::Load(place) | Op::Tag(place) | Op::Length(place) => {
            may_be_freed(place, memory) || place.path.iter().any(|step| matches!(step, Projection::Element(_)))
        }
        Op::Store(..)
        | Op::Copy { .. }
        | Op::SetBytes(..)
        | Op::Fill(..)
        | Op::SetTag(..)
        | Op::SetLength(..)
        | Op::CopySlice { .. }
        | Op::StoreSlice { .. }
        | Op::Append { .. }
        | Op::LoadNumber { .. }
        | Op::StoreNumber { .. }
        | Op::LoadBits { .. }
        | Op::StoreBits { .. }
        | Op::Equal(..)
        | Op::CallFunction { .. }
        | Op::CallExtern { .. }
        | Op::InstanceOf(..)
        | Op::Allocate(_)
        | Op::Retain(_)
        | Op::Release(_)
        | Op::Mark(_)
        | Op::Predicate(..) => true,
    }
}

/// Whether a place may be in an object whose count is 0, so that a read of it is the fault `memory`.
pub(super) fn may_be_freed(place: &Place, memory: MemoryMode) -> bool {
    match (memory, place.base) {
        (MemoryMode::Manual, Base::Object(_)) => true,
        (MemoryMode::Automatic, _) | (MemoryMode::Manual, Base::Slot(_) | Base::Constant(..)) => false,
    }
}
