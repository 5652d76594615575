//! Floating point in steps and handlers: the formats, the operations, and what they compute, bit for bit. Interpreters
//! call these functions; generated code is correct if its results equal theirs. Knows no machine.
//!
//! Operations and rounding are those of IEEE 754: to nearest, ties to even, with denormal numbers. A result that is not
//! a number is always the canonical NaN, since machines differ in the sign and the payload of theirs. Operations that
//! do not round only move bits: `min`, `max`, `neg` and `abs` may return an operand that is another NaN.

use std::ops::{Add, Div, Mul, Sub};

use super::{Condition, mask};

/// A format of floating-point numbers. A register holds the bits of one in its low bits; the others are ignored, and
/// zero in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    /// 32 bits (binary32 of IEEE 754).
    F32,
    /// 64 bits (binary64 of IEEE 754).
    F64,
}

/// An operation on two floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatOperation {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Division.
    Div,
    /// The first if it is less, otherwise the second: so the second for a NaN and for zeros of different signs.
    Min,
    /// The first if it is greater, otherwise the second.
    Max,
    /// 1 if the comparison holds, otherwise 0. For a NaN only [`Condition::Ne`] holds.
    Compare(Condition),
}

/// A function of one floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFunction {
    /// Inverts the sign, also that of a NaN.
    Neg,
    /// Clears the sign, also that of a NaN.
    Abs,
    /// The square root.
    Sqrt,
}

/// A format of integers: the low bits of a register. In results the other bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerFormat {
    /// 1, 2, 4 or 8.
    pub bytes: usize,
    /// Whether the highest bit is a sign.
    pub sign: Sign,
}

/// The interpretation of the highest bit of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Two's complement.
    Signed,
    /// A number that is not negative.
    Unsigned,
}

/// A conversion between numbers, at least one of which is a floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// An integer, rounded to the nearest floating-point number.
    FromInteger(IntegerFormat, FloatFormat),
    /// A floating-point number, truncated towards zero; the nearest integer of the format if it is outside of it, 0 for
    /// a NaN.
    ToInteger(FloatFormat, IntegerFormat),
    /// An F32 as an F64, exactly.
    Widen,
    /// An F64, rounded to the nearest F32.
    Narrow,
}

impl FloatFormat {
    /// Bytes of a number.
    pub const fn bytes(self) -> usize {
        match self {
            FloatFormat::F32 => 4,
            FloatFormat::F64 => 8,
        }
    }

    /// The bits of the only NaN that is a result: positive, quiet, without a payload.
    pub const fn canonical_nan(self) -> u64 {
        match self {
            FloatFormat::F32 => 0x7fc0_0000,
            FloatFormat::F64 => 0x7ff8_0000_0000_0000,
        }
    }

    /// The bit of the sign.
    pub(crate) const fn sign_bit(self) -> u64 {
        1 << (8 * self.bytes() - 1)
    }

    /// The bits of a power of two that the format has exactly.
    pub(crate) fn power_of_two(self, exponent: i32) -> u64 {
        match self {
            FloatFormat::F32 => 2_f32.powi(exponent).bits(),
            FloatFormat::F64 => 2_f64.powi(exponent).bits(),
        }
    }
}

/// What both formats have in common.
trait Number:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn of_bits(bits: u64) -> Self;
    /// Its bits, those of the canonical NaN for any NaN.
    fn bits(self) -> u64;
    fn square_root(self) -> Self;
    fn nearest(integer: i128) -> Self;
    /// Truncated; 0 for a NaN.
    fn truncated(self) -> i128;
}

impl Number for f32 {
    fn of_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }

    fn bits(self) -> u64 {
        if self.is_nan() { FloatFormat::F32.canonical_nan() } else { self.to_bits().into() }
    }

    fn square_root(self) -> f32 {
        self.sqrt()
    }

    fn nearest(integer: i128) -> f32 {
        integer as f32
    }

    fn truncated(self) -> i128 {
        self as i128
    }
}

impl Number for f64 {
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    fn bits(self) -> u64 {
        if self.is_nan() { FloatFormat::F64.canonical_nan() } else { self.to_bits() }
    }

    fn square_root(self) -> f64 {
        self.sqrt()
    }

    fn nearest(integer: i128) -> f64 {
        integer as f64
    }

    fn truncated(self) -> i128 {
        self as i128
    }
}

impl FloatOperation {
    /// The result for the contents of two registers.
    pub(crate) fn apply(self, format: FloatFormat, s: u64, t: u64) -> u64 {
        let (s, t) = (s & mask(format.bytes()), t & mask(format.bytes()));
        match format {
            FloatFormat::F32 => self.apply_to::<f32>(s, t),
            FloatFormat::F64 => self.apply_to::<f64>(s, t),
        }
    }

    fn apply_to<N: Number>(self, s_bits: u64, t_bits: u64) -> u64 {
        let (s, t) = (N::of_bits(s_bits), N::of_bits(t_bits));
        match self {
            FloatOperation::Add => (s + t).bits(),
            FloatOperation::Sub => (s - t).bits(),
            FloatOperation::Mul => (s * t).bits(),
            FloatOperation::Div => (s / t).bits(),
            FloatOperation::Min => {
                if s < t {
                    s_bits
                } else {
                    t_bits
                }
            }
            FloatOperation::Max => {
                if s > t {
                    s_bits
                } else {
                    t_bits
                }
            }
            FloatOperation::Compare(condition) => condition.holds(s, t).into(),
        }
    }
}

impl FloatFunction {
    /// The result for the contents of a register.
    pub(crate) fn apply(self, format: FloatFormat, s: u64) -> u64 {
        let s = s & mask(format.bytes());
        match (self, format) {
            (FloatFunction::Neg, _) => s ^ format.sign_bit(),
            (FloatFunction::Abs, _) => s & !format.sign_bit(),
            (FloatFunction::Sqrt, FloatFormat::F32) => f32::of_bits(s).square_root().bits(),
            (FloatFunction::Sqrt, FloatFormat::F64) => f64::of_bits(s).square_root().bits(),
        }
    }
}

impl IntegerFormat {
    /// The number in a register.
    fn read(self, register: u64) -> i128 {
        let unused = 64 - 8 * self.bytes as u32;
        match self.sign {
            Sign::Signed => (((register << unused) as i64) >> unused).into(),
            Sign::Unsigned => (register & mask(self.bytes)).into(),
        }
    }

    /// The least and the greatest number.
    pub(crate) fn range(self) -> (i128, i128) {
        let bits = 8 * self.bytes as u32;
        match self.sign {
            Sign::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            Sign::Unsigned => (0, (1 << bits) - 1),
        }
    }

    /// A number of its range as the content of a register.
    pub(crate) fn write(self, number: i128) -> u64 {
        number as u64 & mask(self.bytes)
    }
}

impl Conversion {
    /// The result for the content of a register.
    pub(crate) fn apply(self, s: u64) -> u64 {
        match self {
            Conversion::FromInteger(from, FloatFormat::F32) => f32::nearest(from.read(s)).bits(),
            Conversion::FromInteger(from, FloatFormat::F64) => f64::nearest(from.read(s)).bits(),
            Conversion::ToInteger(from, to) => {
                let number = match from {
                    FloatFormat::F32 => f32::of_bits(s).truncated(),
                    FloatFormat::F64 => f64::of_bits(s).truncated(),
                };
                let (least, greatest) = to.range();
                to.write(number.clamp(least, greatest))
            }
            Conversion::Widen => f64::from(f32::of_bits(s)).bits(),
            Conversion::Narrow => (f64::of_bits(s) as f32).bits(),
        }
    }

    /// Bytes of the widest number.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Conversion::FromInteger(integer, float) | Conversion::ToInteger(float, integer) => {
                integer.bytes.max(float.bytes())
            }
            Conversion::Widen | Conversion::Narrow => 8,
        }
    }
}
