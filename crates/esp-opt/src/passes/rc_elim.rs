//! Reference-count elision: removes a `retain` and the `release` of the same operand later in its block if nothing in
//! between observes the count (`unique`), decrements another count, which could then be the last, or writes the
//! operand's place. Only in automatic memory: in manual memory a `retain` checks that the object is alive.

use quaject_esp_ir::ir::{Base, Body, Instruction, Op, Operand};
use quaject_esp_ir::visit::written;

/// Removes such pairs; whether there were any.
pub(super) fn cancel(body: &mut Body) -> bool {
    let mut any = false;
    for block in &mut body.blocks {
        let mut at = 0;
        while at < block.instructions.len() {
            match cancelling_release(&block.instructions, at) {
                Some(release) => {
                    block.instructions.remove(release);
                    block.instructions.remove(at);
                    any = true;
                }
                None => at += 1,
            }
        }
    }
    any
}

/// The `release` that cancels the `retain` at this position, unobserved.
fn cancelling_release(instructions: &[Instruction], at: usize) -> Option<usize> {
    let Op::Retain(operand) = &instructions[at].op else { return None };
    for (position, instruction) in instructions.iter().enumerate().skip(at + 1) {
        match &instruction.op {
            Op::Release(released) if released == operand => return Some(position),
            op if observes_counts(op) || changes(op, operand) => return None,
            _ => {}
        }
    }
    None
}

/// Whether an instruction depends on the reference counts of objects.
fn observes_counts(op: &Op) -> bool {
    match op {
        // A function may test whether its argument is the only reference.
        Op::Release(_) | Op::IsUnique(_) | Op::CallFunction { .. } | Op::CallExtern { .. } => true,
        Op::Constant(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Convert(_)
        | Op::Load(_)
        | Op::Store(..)
        | Op::Copy { .. }
        | Op::SetBytes(..)
        | Op::Fill(..)
        | Op::SetTag(..)
        | Op::Tag(_)
        | Op::Length(_)
        | Op::SetLength(..)
        | Op::CopySlice { .. }
        | Op::StoreSlice { .. }
        | Op::Append { .. }
        | Op::LoadNumber { .. }
        | Op::StoreNumber { .. }
        | Op::LoadBits { .. }
        | Op::StoreBits { .. }
        | Op::Equal(..)
        | Op::OwnId
        | Op::InstanceOf(..)
        | Op::ReplicaNumber(_)
        | Op::Allocate(_)
        | Op::FreeObjects(_)
        | Op::Deadline { .. }
        | Op::Retain(_)
        | Op::Mark(_)
        | Op::Predicate(..) => false,
    }
}

/// Whether an instruction may write the place of an operand.
fn changes(op: &Op, operand: &Operand) -> bool {
    let Operand::Place(place) = operand else { return false };
    written(op).is_some_and(|to| match (to.base, place.base) {
        (Base::Slot(to), Base::Slot(slot)) => to == slot,
        // Two references may alias.
        (Base::Object(_), Base::Object(_)) => true,
        (Base::Slot(_), Base::Object(_)) | (Base::Object(_), Base::Slot(_)) => false,
        // Constants are not written.
        (Base::Constant(..), _) | (_, Base::Constant(..)) => false,
    })
}
