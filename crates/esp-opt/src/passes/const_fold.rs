//! Constant folding: evaluates operations on constants, and turns branches on constants into jumps.

use crate::facts::{Fact, binary, convert, may_overflow, unary};
use quaject_esp_ir::ir::{BinaryOp, Body, Op, Terminator, TypeTable, UnaryOp, Value};

/// Folds operations and branches on constants; whether there were any.
pub(super) fn fold(body: &mut Body, types: &TypeTable, checked: bool) -> bool {
    let mut known: Vec<Option<i128>> = vec![None; body.values.len()];
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            known[result.0 as usize] = Some(*constant);
        }
    }
    let mut any = false;
    // Blocks mostly follow those they depend on, so that few rounds suffice.
    loop {
        let mut changed = false;
        for index in 0..body.blocks.len() {
            for position in 0..body.blocks[index].instructions.len() {
                let instruction = &body.blocks[index].instructions[position];
                let Some(result) = instruction.result.filter(|result| known[result.0 as usize].is_none()) else {
                    continue;
                };
                if let Some(constant) = evaluate(body, types, &known, &instruction.op, result, checked) {
                    known[result.0 as usize] = Some(constant);
                    body.blocks[index].instructions[position].op = Op::Constant(constant);
                    changed = true;
                }
            }
        }
        any |= changed;
        if !changed {
            break;
        }
    }
    for block in &mut body.blocks {
        let edge = match &block.terminator {
            Terminator::Branch { condition, then, otherwise } => {
                known[condition.0 as usize].map(|holds| if holds != 0 { then.clone() } else { otherwise.clone() })
            }
            Terminator::Switch { value, cases, default } => known[value.0 as usize]
                .map(|value| cases.iter().find(|(case, _)| *case == value).map_or(default, |(_, edge)| edge).clone()),
            Terminator::Jump(_)
            | Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => None,
        };
        if let Some(edge) = edge {
            block.terminator = Terminator::Jump(edge);
            any = true;
        }
    }
    any
}

fn evaluate(
    body: &Body,
    types: &TypeTable,
    known: &[Option<i128>],
    op: &Op,
    result: Value,
    checked: bool,
) -> Option<i128> {
    let ty = body.values[result.0 as usize].ty;
    let fact = |value: &Value| known[value.0 as usize].map(Fact::constant);
    match op {
        Op::Unary(op, a) => {
            let a = fact(a)?;
            let overflows = checked && *op == UnaryOp::Negate && a.low == Fact::of_type(types, ty).low;
            if overflows { None } else { unary(types, ty, *op, &a).as_constant() }
        }
        Op::Binary(op, a, b) => {
            let of = body.values[a.0 as usize].ty;
            let (a, b) = (fact(a)?, fact(b)?);
            let faults = matches!(op, BinaryOp::Divide | BinaryOp::Remainder) && b.admits(0);
            let overflows = checked && may_overflow(types, ty, *op, &a, &b);
            if faults || overflows { None } else { binary(types, ty, *op, of, &a, &b).as_constant() }
        }
        Op::Convert(a) => convert(types, ty, &fact(a)?).as_constant(),
        _ => None,
    }
}
