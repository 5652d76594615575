//! Facts: the abstract value of one number, an interval and a few values within it that it does not have. The domain is
//! small on purpose: facts decide which branches of a product exist, and each distinct fact multiplies its states.
//! Knows types of integers and the operators of the flow IR, no programs.

use crate::ir::{BinaryOp, IntType, Type, TypeId, TypeTable, UnaryOp};

/// The largest number of excluded values.
pub const MAX_EXCLUDED: usize = 4;

/// The values a number may have.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Fact {
    /// The least.
    pub low: i128,
    /// The greatest; never below `low`.
    pub high: i128,
    /// Values strictly between that it does not have, ascending.
    pub not: Vec<i128>,
}

impl Fact {
    /// Exactly this value.
    pub fn constant(value: i128) -> Fact {
        Fact { low: value, high: value, not: Vec::new() }
    }

    /// Any value of an interval.
    pub fn between(low: i128, high: i128) -> Fact {
        Fact { low, high, not: Vec::new() }
    }

    /// Any value of a type: an interval that contains all numbers if the type is not numeric.
    pub fn of_type(types: &TypeTable, ty: TypeId) -> Fact {
        match types.get(ty) {
            Type::Int(int) => Fact::between(IntType::min(*int), IntType::max(*int)),
            Type::Bool => Fact::between(0, 1),
            Type::Pid(_)
            | Type::Error
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => Fact::between(i128::from(i64::MIN), i128::from(u64::MAX)),
        }
    }

    /// The value, if there is only one.
    pub fn as_constant(&self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether it may have this value.
    pub fn admits(&self, value: i128) -> bool {
        self.low <= value && value <= self.high && !self.not.contains(&value)
    }

    /// Without one value; none if that was the only one.
    pub fn without(&self, value: i128) -> Option<Fact> {
        let mut fact = self.clone();
        if !self.admits(value) {
            return Some(fact);
        }
        if fact.not.len() < MAX_EXCLUDED || value == fact.low || value == fact.high {
            fact.not.push(value);
            fact.not.sort_unstable();
        }
        fact.tighten()
    }

    /// Within an interval; none if nothing is left.
    pub fn within(&self, low: i128, high: i128) -> Option<Fact> {
        Fact { low: self.low.max(low), high: self.high.min(high), not: self.not.clone() }.tighten()
    }

    /// The join of both on an interval around them, which may be wider (widening), without values that neither has.
    pub fn or(&self, other: &Fact, low: i128, high: i128) -> Fact {
        let neither = |value: &i128| low < *value && *value < high && !self.admits(*value) && !other.admits(*value);
        let mut not: Vec<i128> = self.not.iter().chain(&other.not).copied().filter(neither).collect();
        not.sort_unstable();
        not.dedup();
        not.truncate(MAX_EXCLUDED);
        Fact { low, high, not }
    }

    /// Moves the ends over excluded values.
    fn tighten(mut self) -> Option<Fact> {
        while self.not.contains(&self.low) {
            self.low += 1;
        }
        while self.not.contains(&self.high) {
            self.high -= 1;
        }
        if self.low > self.high {
            return None;
        }
        self.not.retain(|value| self.low < *value && *value < self.high);
        Some(self)
    }

    /// Whether this fact implies another: each value that it admits is admitted by the other (the order of the
    /// lattice).
    pub fn implies(&self, other: &Fact) -> bool {
        other.low <= self.low && self.high <= other.high && other.not.iter().all(|value| !self.admits(*value))
    }
}

/// The fact about the result, of type `ty`, of an operator with one operand: its transfer function.
pub fn unary(types: &TypeTable, ty: TypeId, op: UnaryOp, a: &Fact) -> Fact {
    let whole = Fact::of_type(types, ty);
    match (op, a.as_constant(), types.get(ty)) {
        (UnaryOp::Not, Some(value), _) => Fact::constant(i128::from(value == 0)),
        (UnaryOp::Not, None, _) => whole,
        (UnaryOp::Complement, Some(value), Type::Int(int)) => Fact::constant(int.wrap(!value)),
        (UnaryOp::Negate, _, Type::Int(_)) if whole.low <= -a.high && -a.low <= whole.high => {
            Fact { low: -a.high, high: -a.low, not: a.not.iter().rev().map(|value| -value).collect() }
        }
        (UnaryOp::Negate, Some(value), Type::Int(int)) => Fact::constant(int.wrap(-value)),
        (UnaryOp::Complement | UnaryOp::Negate, _, _) => whole,
    }
}

/// The fact about the result, of type `ty`, of an operator on operands of type `of`, if it does not fault.
pub fn binary(types: &TypeTable, ty: TypeId, op: BinaryOp, of: TypeId, a: &Fact, b: &Fact) -> Fact {
    let whole = Fact::of_type(types, ty);
    if let Some(truth) = comparison(op, a, b) {
        return truth;
    }
    let Type::Int(int) = types.get(ty) else {
        return match (op, a.as_constant(), b.as_constant()) {
            (BinaryOp::BitAnd, Some(a), Some(b)) => Fact::constant(a & b),
            (BinaryOp::BitOr, Some(a), Some(b)) => Fact::constant(a | b),
            (BinaryOp::BitXor, Some(a), Some(b)) => Fact::constant(a ^ b),
            (BinaryOp::BitAnd, Some(0), _) | (BinaryOp::BitAnd, _, Some(0)) => Fact::constant(0),
            (BinaryOp::BitOr, Some(1), _) | (BinaryOp::BitOr, _, Some(1)) if *types.get(of) == Type::Bool => {
                Fact::constant(1)
            }
            _ => whole,
        };
    };
    let exact = match op {
        BinaryOp::Add => Some((a.low + b.low, a.high + b.high)),
        BinaryOp::Subtract => Some((a.low - b.high, a.high - b.low)),
        BinaryOp::Multiply => products(a, b),
        BinaryOp::SaturatingAdd => saturated(*int, (a.low + b.low, a.high + b.high)),
        BinaryOp::SaturatingSubtract => saturated(*int, (a.low - b.high, a.high - b.low)),
        BinaryOp::SaturatingMultiply => products(a, b).and_then(|range| saturated(*int, range)),
        BinaryOp::Divide => match b.as_constant() {
            Some(by) if by > 0 => Some((a.low / by, a.high / by)),
            _ => None,
        },
        BinaryOp::Remainder => match b.as_constant() {
            Some(by) if by > 0 && a.low >= 0 => Some(if a.high < by { (a.low, a.high) } else { (0, by - 1) }),
            Some(by) if by > 0 => Some((-(by - 1), if a.high > 0 { by - 1 } else { 0 })),
            _ => None,
        },
        BinaryOp::BitAnd if b.low >= 0 && a.low >= 0 => Some((0, a.high.min(b.high))),
        BinaryOp::BitAnd if b.low >= 0 => Some((0, b.high)),
        BinaryOp::BitAnd if a.low >= 0 => Some((0, a.high)),
        BinaryOp::BitOr | BinaryOp::BitXor if a.low >= 0 && b.low >= 0 => Some((0, filled(a.high) | filled(b.high))),
        BinaryOp::ShiftRight if a.low >= 0 => match b.as_constant() {
            Some(count) => {
                let count = count.rem_euclid(i128::from(int.bits()));
                Some((a.low >> count, a.high >> count))
            }
            None => Some((0, a.high)),
        },
        _ => None,
    };
    if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant())
        && let Some(value) = folded(*int, op, a, b)
    {
        return Fact::constant(value);
    }
    match exact {
        Some((low, high)) if whole.low <= low && high <= whole.high => Fact::between(low, high),
        Some(_) | None => whole,
    }
}

/// Whether an operation on these operands may fault with checks on: its exact result may not fit.
pub fn may_overflow(types: &TypeTable, ty: TypeId, op: BinaryOp, a: &Fact, b: &Fact) -> bool {
    let whole = Fact::of_type(types, ty);
    let range = match op {
        BinaryOp::Add => (a.low + b.low, a.high + b.high),
        BinaryOp::Subtract => (a.low - b.high, a.high - b.low),
        BinaryOp::Multiply => match products(a, b) {
            Some(range) => range,
            None => return true,
        },
        BinaryOp::Divide => return a.admits(whole.low) && b.admits(-1),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => return true,
        BinaryOp::Remainder
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::SaturatingAdd
        | BinaryOp::SaturatingSubtract
        | BinaryOp::SaturatingMultiply
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual => return false,
    };
    range.0 < whole.low || range.1 > whole.high
}

/// The fact about the result of a conversion to type `ty`.
pub fn convert(types: &TypeTable, ty: TypeId, a: &Fact) -> Fact {
    let whole = Fact::of_type(types, ty);
    match (a.as_constant(), types.get(ty)) {
        (Some(value), Type::Int(int)) => Fact::constant(int.wrap(value)),
        (Some(value), Type::Bool) => Fact::constant(i128::from(value != 0)),
        (None, Type::Bool) => {
            if a.admits(0) {
                whole
            } else {
                Fact::constant(1)
            }
        }
        (None, Type::Int(_)) if whole.low <= a.low && a.high <= whole.high => a.clone(),
        _ => whole,
    }
}

/// The facts about both operands, refined by the outcome of their comparison; none if the outcome is impossible.
pub fn refine(op: BinaryOp, holds: bool, a: &Fact, b: &Fact) -> Option<(Fact, Fact)> {
    let op = if holds { op } else { op.inverted()? };
    Some(match op {
        BinaryOp::Equal => {
            let mut low = a.within(b.low, b.high)?;
            for value in &b.not {
                low = low.without(*value)?;
            }
            (low.clone(), low)
        }
        BinaryOp::NotEqual => (
            b.as_constant().map_or_else(|| Some(a.clone()), |value| a.without(value))?,
            a.as_constant().map_or_else(|| Some(b.clone()), |value| b.without(value))?,
        ),
        BinaryOp::Less => (a.within(i128::MIN, b.high - 1)?, b.within(a.low + 1, i128::MAX)?),
        BinaryOp::LessEqual => (a.within(i128::MIN, b.high)?, b.within(a.low, i128::MAX)?),
        BinaryOp::Greater => (a.within(b.low + 1, i128::MAX)?, b.within(i128::MIN, a.high - 1)?),
        BinaryOp::GreaterEqual => (a.within(b.low, i128::MAX)?, b.within(i128::MIN, a.high)?),
        _ => (a.clone(), b.clone()),
    })
}

fn comparison(op: BinaryOp, a: &Fact, b: &Fact) -> Option<Fact> {
    op.inverted()?;
    let truth = match (refine(op, true, a, b), refine(op, false, a, b)) {
        (None, _) => Fact::constant(0),
        (_, None) => Fact::constant(1),
        (Some(_), Some(_)) => Fact::between(0, 1),
    };
    Some(truth)
}

fn products(a: &Fact, b: &Fact) -> Option<(i128, i128)> {
    let corners = [
        a.low.checked_mul(b.low)?,
        a.low.checked_mul(b.high)?,
        a.high.checked_mul(b.low)?,
        a.high.checked_mul(b.high)?,
    ];
    Some((*corners.iter().min()?, *corners.iter().max()?))
}

/// A range whose values outside a type are the nearest ones inside.
fn saturated(int: IntType, (low, high): (i128, i128)) -> Option<(i128, i128)> {
    Some((low.clamp(int.min(), int.max()), high.clamp(int.min(), int.max())))
}

/// All bits up to the highest set one.
fn filled(value: i128) -> i128 {
    if value <= 0 { 0 } else { (1i128 << (128 - value.leading_zeros())) - 1 }
}

fn folded(int: IntType, op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    let count = || b.rem_euclid(i128::from(int.bits())) as u32;
    Some(int.wrap(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a.wrapping_mul(b),
        BinaryOp::Divide => a.checked_div(b)?,
        BinaryOp::Remainder => a.checked_rem(b)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::SaturatingAdd => (a + b).clamp(int.min(), int.max()),
        BinaryOp::SaturatingSubtract => (a - b).clamp(int.min(), int.max()),
        BinaryOp::SaturatingMultiply => a.saturating_mul(b).clamp(int.min(), int.max()),
        BinaryOp::ShiftLeft => a.wrapping_shl(count()),
        BinaryOp::ShiftRight => a >> count(),
        _ => return None,
    }))
}
