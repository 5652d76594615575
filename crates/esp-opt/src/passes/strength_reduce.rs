//! Strength reduction and algebraic identities: products and quotients by powers of two become shifts, remainders
//! become masks, and `x + 0` is `x`. Quotients require a non-negative dividend, which the range analysis shows.

use super::Context;
use crate::facts::Fact;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{BinaryOp, Body, Instruction, IntType, Op, Type, TypeId, TypeTable, Value, ValueData};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};

/// A cheaper equivalent of an operation.
enum Cheaper {
    /// Another value.
    Value(Value),
    /// A constant.
    Constant(i128),
    /// An operation on a value and a constant of this type.
    Operation(BinaryOp, Value, TypeId, i128),
}

/// Replaces operations by cheaper ones; whether there were any.
pub(super) fn reduce(body: &mut Body, context: Context<'_>) -> bool {
    let Context { types, checked, cache, .. } = context;
    let known = cache.0.take().unwrap_or_else(|| intervals(body, types, checked, &[]));
    let mut replacements = Replacements::new(body.values.len());
    let mut any = false;
    for index in 0..body.blocks.len() {
        let mut position = 0;
        while position < body.blocks[index].instructions.len() {
            let instruction = &body.blocks[index].instructions[position];
            let (location, result) = (instruction.location, instruction.result);
            let Some((result, cheaper)) = result
                .and_then(|result| Some((result, cheaper(body, types, checked, &known, &instruction.op, result)?)))
            else {
                position += 1;
                continue;
            };
            any = true;
            let instructions = &mut body.blocks[index].instructions;
            match cheaper {
                Cheaper::Value(value) => {
                    instructions.remove(position);
                    let replacement = replacements.find(value);
                    replacements.replace(result, replacement);
                }
                Cheaper::Constant(constant) => instructions[position].op = Op::Constant(constant),
                Cheaper::Operation(op, value, ty, constant) => {
                    let operand = Value(body.values.len() as u32);
                    body.values.push(ValueData { ty, name: None });
                    instructions[position].op = Op::Binary(op, value, operand);
                    let (result, op) = (Some(operand), Op::Constant(constant));
                    instructions.insert(position, Instruction { result, op, location });
                    // Past the constant and the operation, neither of which can be reduced again.
                    position += 2;
                }
            }
        }
    }
    if any {
        let replaced = replacements_up_to(replacements, known.len());
        let mut visit = |value: &mut Value| {
            if let Some(replacement) = replaced.get(value.0 as usize) {
                *value = *replacement;
            }
        };
        for block in &mut body.blocks {
            block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut visit));
            terminator_values_mut(&mut block.terminator, &mut visit);
        }
    }
    any
}

fn replacements_up_to(mut replacements: Replacements, values: usize) -> Vec<Value> {
    (0..values as u32).map(|value| replacements.find(Value(value))).collect()
}

fn cheaper(
    body: &Body,
    types: &TypeTable,
    checked: bool,
    known: &[Option<Fact>],
    op: &Op,
    result: Value,
) -> Option<Cheaper> {
    let ty = body.values[result.0 as usize].ty;
    // Operands created by this pass are constants without a recorded range.
    let fact = |value: Value| known.get(value.0 as usize)?.as_ref();
    match op {
        Op::Convert(a) if body.values[a.0 as usize].ty == ty => Some(Cheaper::Value(*a)),
        Op::Binary(op, a, b) => {
            let of = body.values[a.0 as usize].ty;
            let Type::Int(int) = types.get(of) else { return None };
            let (fact_a, fact_b) = (fact(*a)?, fact(*b)?);
            if a == b {
                return with_equal_operands(*op, *a);
            }
            match (fact_a.as_constant(), fact_b.as_constant()) {
                // Left to constant folding.
                (Some(_), Some(_)) => None,
                (None, Some(constant)) => with_constant_operand(*int, of, *op, *a, fact_a, constant, checked),
                (Some(constant), None) if op.commutes() => {
                    with_constant_operand(*int, of, *op, *b, fact_b, constant, checked)
                }
                (Some(_) | None, None) => None,
            }
        }
        _ => None,
    }
}

/// The equivalent of an operation on one value twice.
fn with_equal_operands(op: BinaryOp, a: Value) -> Option<Cheaper> {
    match op {
        BinaryOp::BitAnd | BinaryOp::BitOr => Some(Cheaper::Value(a)),
        BinaryOp::BitXor | BinaryOp::Subtract | BinaryOp::SaturatingSubtract => Some(Cheaper::Constant(0)),
        BinaryOp::Equal | BinaryOp::LessEqual | BinaryOp::GreaterEqual => Some(Cheaper::Constant(1)),
        BinaryOp::NotEqual | BinaryOp::Less | BinaryOp::Greater => Some(Cheaper::Constant(0)),
        // 0 divided by itself is a fault.
        BinaryOp::Divide | BinaryOp::Remainder => None,
        BinaryOp::Add
        | BinaryOp::Multiply
        | BinaryOp::SaturatingAdd
        | BinaryOp::SaturatingMultiply
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight => None,
    }
}

/// The equivalent of an operation on a value and a constant.
fn with_constant_operand(
    int: IntType,
    ty: TypeId,
    op: BinaryOp,
    a: Value,
    fact: &Fact,
    constant: i128,
    checked: bool,
) -> Option<Cheaper> {
    let is_non_negative = fact.low >= 0;
    let power = (constant > 1 && constant.count_ones() == 1).then(|| i128::from(constant.trailing_zeros()));
    let ones = if int.is_signed() { -1 } else { int.max() };
    match (op, constant) {
        (BinaryOp::Add | BinaryOp::Subtract | BinaryOp::BitOr | BinaryOp::BitXor, 0) => Some(Cheaper::Value(a)),
        (BinaryOp::SaturatingAdd | BinaryOp::SaturatingSubtract, 0) => Some(Cheaper::Value(a)),
        (BinaryOp::SaturatingMultiply, 1) => Some(Cheaper::Value(a)),
        (BinaryOp::ShiftLeft | BinaryOp::ShiftRight, 0) => Some(Cheaper::Value(a)),
        (BinaryOp::Multiply | BinaryOp::BitAnd, 0) => Some(Cheaper::Constant(0)),
        (BinaryOp::Multiply | BinaryOp::Divide, 1) => Some(Cheaper::Value(a)),
        (BinaryOp::Remainder, 1) => Some(Cheaper::Constant(0)),
        (BinaryOp::BitAnd, mask) if mask == ones => Some(Cheaper::Value(a)),
        (BinaryOp::BitAnd, mask) if is_non_negative && covers(mask, fact) => Some(Cheaper::Value(a)),
        (BinaryOp::BitOr, mask) if mask == ones => Some(Cheaper::Constant(ones)),
        (BinaryOp::Multiply, _) if !checked => Some(Cheaper::Operation(BinaryOp::ShiftLeft, a, ty, power?)),
        (BinaryOp::Divide, _) if is_non_negative && fact.high < constant => Some(Cheaper::Constant(0)),
        (BinaryOp::Remainder, _) if is_non_negative && fact.high < constant => Some(Cheaper::Value(a)),
        (BinaryOp::Divide, _) if is_non_negative => Some(Cheaper::Operation(BinaryOp::ShiftRight, a, ty, power?)),
        (BinaryOp::Remainder, _) if is_non_negative => {
            power?;
            Some(Cheaper::Operation(BinaryOp::BitAnd, a, ty, constant - 1))
        }
        _ => None,
    }
}

/// Whether a mask keeps every bit that a number may have.
fn covers(mask: i128, fact: &Fact) -> bool {
    mask > 0 && (mask + 1).count_ones() == 1 && fact.high <= mask
}
