//! Operators on scalars; access to numbers and bit fields in bytes.

use crate::execute::Checks;
use crate::layout::ScalarKind;
use quaject_esp_ir::ir::{BinaryOp, BitField, ByteOrder, Fault, UnaryOp};

#[inline]
pub(super) fn number_of(bytes: &[u8], order: ByteOrder) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match order {
        ByteOrder::Big => bytes.iter().fold(0, add),
        ByteOrder::Little => bytes.iter().rev().fold(0, add),
    }
}

/// The bytes that a field overlaps, and the number of bits of the last one behind the field.
fn field_bytes(field: BitField) -> (std::ops::Range<usize>, u32) {
    let end = field.offset_bits + field.width_bits;
    ((field.offset_bits / 8) as usize..end.div_ceil(8) as usize, end.div_ceil(8) * 8 - end)
}

fn field_mask(field: BitField) -> u128 {
    (1 << field.width_bits) - 1
}

#[inline]
pub(super) fn load_bits(layout: &[u8], field: BitField) -> u64 {
    let (range, after) = field_bytes(field);
    match field.order {
        ByteOrder::Little => number_of(&layout[range], ByteOrder::Little),
        ByteOrder::Big => {
            let whole = layout[range].iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
            (whole >> after & field_mask(field)) as u64
        }
    }
}

#[inline]
pub(super) fn store_bits(layout: &mut [u8], field: BitField, value: u64) {
    let (range, after) = field_bytes(field);
    let bytes = &mut layout[range];
    match field.order {
        ByteOrder::Little => {
            let length = bytes.len();
            bytes.copy_from_slice(&value.to_le_bytes()[..length]);
        }
        ByteOrder::Big => {
            let whole = bytes.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
            let mask = field_mask(field) << after;
            let mut whole = whole & !mask | u128::from(value) << after & mask;
            for byte in bytes.iter_mut().rev() {
                *byte = whole as u8;
                whole >>= 8;
            }
        }
    }
}

/// The exact result, or the wrapped one where checks are off.
#[inline]
pub(super) fn check_overflow(checks: Checks, kind: ScalarKind, exact: i128) -> Result<i64, Fault> {
    let wrapped = kind.wrap(exact as i64);
    if checks == Checks::On && kind.signed && i128::from(wrapped) != exact { Err(Fault::Overflow) } else { Ok(wrapped) }
}

#[inline]
pub(super) fn unary(checks: Checks, op: UnaryOp, kind: ScalarKind, value: i64) -> Result<i64, Fault> {
    match op {
        UnaryOp::Not => Ok(i64::from(value == 0)),
        UnaryOp::Complement => Ok(kind.wrap(!value)),
        UnaryOp::Negate => check_overflow(checks, kind, -kind.number(value)),
    }
}

#[inline]
pub(super) fn binary(checks: Checks, op: BinaryOp, kind: ScalarKind, a: i64, b: i64) -> Result<i64, Fault> {
    let exactly = |wrapping: i64, exact: fn(i128, i128) -> i128| match checks {
        Checks::Off => Ok(kind.wrap(wrapping)),
        Checks::On => check_overflow(checks, kind, exact(kind.number(a), kind.number(b))),
    };
    let less = |a: i64, b: i64| if kind.signed { a < b } else { (a as u64) < (b as u64) };
    Ok(match op {
        BinaryOp::Add => return exactly(a.wrapping_add(b), |a, b| a + b),
        BinaryOp::Subtract => return exactly(a.wrapping_sub(b), |a, b| a - b),
        // The product of two unsigned 64-bit numbers exceeds 127 bits, but unsigned numbers are not checked.
        BinaryOp::Multiply => return exactly(a.wrapping_mul(b), |a, b| a.wrapping_mul(b)),
        BinaryOp::Divide | BinaryOp::Remainder if b == 0 => return Err(Fault::Div),
        BinaryOp::Divide if kind.signed => return check_overflow(checks, kind, i128::from(a) / i128::from(b)),
        BinaryOp::Divide => (a as u64 / b as u64) as i64,
        BinaryOp::Remainder if kind.signed => a.wrapping_rem(b),
        BinaryOp::Remainder => (a as u64 % b as u64) as i64,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::SaturatingAdd => a.saturating_add(b),
        BinaryOp::SaturatingSubtract => a.saturating_sub(b),
        BinaryOp::SaturatingMultiply => a.saturating_mul(b),
        BinaryOp::Equal => i64::from(a == b),
        BinaryOp::NotEqual => i64::from(a != b),
        BinaryOp::Less => i64::from(less(a, b)),
        BinaryOp::LessEqual => i64::from(!less(b, a)),
        BinaryOp::Greater => i64::from(less(b, a)),
        BinaryOp::GreaterEqual => i64::from(!less(a, b)),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => unreachable!("shifts are instructions of their own"),
    })
}
