//! Constant folding and algebraic identities, and the constants that every machine encodes in one instruction. Values
//! are in canonical form: signed ones sign-extended, unsigned ones zero-extended, to 64 bits.

use crate::generated::peephole::Op;
use crate::signature::Type;

/// Types whose registers hold the same bits for the same value: a copy of one is a copy of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueClass {
    Int,
    Unsigned,
    Long,
    Float,
    Double,
}

/// The class of a register that holds this type: narrow ones are held as ints.
pub(super) fn class(ty: Type) -> ValueClass {
    match ty {
        Type::C | Type::Uc | Type::S | Type::Us | Type::I => ValueClass::Int,
        Type::U => ValueClass::Unsigned,
        Type::L | Type::Ul | Type::P => ValueClass::Long,
        Type::F => ValueClass::Float,
        Type::D => ValueClass::Double,
    }
}

/// Bits of a type where a long has `long`.
pub(super) fn bits(ty: Type, long: u32) -> u32 {
    match class(ty) {
        ValueClass::Int | ValueClass::Unsigned | ValueClass::Float => 32,
        ValueClass::Long => long,
        ValueClass::Double => 64,
    }
}

/// Whether values of a type are signed.
pub(super) fn is_signed(ty: Type) -> bool {
    match ty {
        Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::L => true,
        Type::U | Type::Ul | Type::P | Type::F | Type::D => false,
    }
}

/// The canonical form of a value.
pub(super) fn canonical(ty: Type, long: u32, value: i64) -> i64 {
    match (bits(ty, long), is_signed(ty)) {
        (32, true) => i64::from(value as i32),
        (32, false) => i64::from(value as u32),
        (_, _) => value,
    }
}

/// A value converted to a type of 8 or 16 bits; others are left.
pub(super) fn low_bits(ty: Type, value: i64) -> i64 {
    match ty {
        Type::C => i64::from(value as i8),
        Type::Uc => i64::from(value as u8),
        Type::S => i64::from(value as i16),
        Type::Us => i64::from(value as u16),
        Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => value,
    }
}

/// Whether every machine loads the constant in one instruction.
pub(super) fn is_short_constant(value: i64) -> bool {
    (-1024..1024).contains(&value)
}

/// Whether every machine adds the constant, or reaches so far from a base, in one instruction.
pub(super) fn is_short_offset(value: i64) -> bool {
    (-255..256).contains(&value)
}

/// The result of a binary operation or shift on integers; `None` if it is undefined or not folded here.
pub(super) fn binary(op: Op, ty: Type, long: u32, left: i64, right: i64) -> Option<i64> {
    let width = i64::from(bits(ty, long));
    let count = if (0..width).contains(&right) { Some(right as u32) } else { None };
    let value = match op {
        Op::Add => left.wrapping_add(right),
        Op::Sub => left.wrapping_sub(right),
        Op::Mul => left.wrapping_mul(right),
        Op::And => left & right,
        Op::Or => left | right,
        Op::Xor => left ^ right,
        Op::Lsh => left << count?,
        Op::Rsh if is_signed(ty) => left >> count?,
        Op::Rsh => (left as u64 >> count?) as i64,
        _ => return None,
    };
    Some(canonical(ty, long, value))
}

/// The result of a unary operation on integers.
pub(super) fn unary(op: Op, ty: Type, long: u32, value: i64) -> Option<i64> {
    let value = match op {
        Op::Mov => value,
        Op::Neg => value.wrapping_neg(),
        Op::Com => !value,
        Op::Not => i64::from(value == 0),
        _ => return None,
    };
    Some(canonical(ty, long, value))
}

/// Whether a branch on two constants is taken.
pub(super) fn is_taken(op: Op, ty: Type, left: i64, right: i64) -> Option<bool> {
    let order = if is_signed(ty) { left.cmp(&right) } else { (left as u64).cmp(&(right as u64)) };
    Some(match op {
        Op::Blt => order.is_lt(),
        Op::Ble => order.is_le(),
        Op::Bgt => order.is_gt(),
        Op::Bge => order.is_ge(),
        Op::Beq => order.is_eq(),
        Op::Bne => order.is_ne(),
        _ => return None,
    })
}

/// The operation with its operands exchanged: itself if it is commutative, the mirrored branch.
pub(super) fn mirrored(op: Op) -> Option<Op> {
    Some(match op {
        Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Beq | Op::Bne => op,
        Op::Blt => Op::Bgt,
        Op::Ble => Op::Bge,
        Op::Bgt => Op::Blt,
        Op::Bge => Op::Ble,
        _ => return None,
    })
}

/// The value of an operation by an algebraic identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    /// The left operand.
    Left,
    /// A constant.
    Constant(i64),
}

/// The identity for this constant as the right operand.
pub(super) fn identity(op: Op, ty: Type, long: u32, right: i64) -> Option<Identity> {
    match (op, right) {
        (Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Lsh | Op::Rsh, 0) | (Op::Mul | Op::Div, 1) => Some(Identity::Left),
        (Op::Mul | Op::And, 0) => Some(Identity::Constant(0)),
        (Op::And, right) if right == canonical(ty, long, -1) => Some(Identity::Left),
        (_, _) => None,
    }
}

/// The identity for two equal operands.
pub(super) fn identity_of_equals(op: Op) -> Option<Identity> {
    match op {
        Op::Sub | Op::Xor => Some(Identity::Constant(0)),
        Op::And | Op::Or => Some(Identity::Left),
        _ => None,
    }
}
