//! Strength reduction and algebraic identities under facts: operations whose result is an operand, and remainders that
//! are masks. Knows single instructions only.

use crate::facts::Fact;
use quaject_esp_ir::ir::BinaryOp;

/// What an operation can be replaced by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Simplification {
    /// Its first operand.
    First,
    /// Its second operand.
    Second,
    /// This operator on the first operand and a constant.
    Apply(BinaryOp, i128),
}

/// A simpler form of an operation that does not fault and, with these operands, does not overflow.
pub(super) fn simplify(op: BinaryOp, a: &Fact, b: &Fact) -> Option<Simplification> {
    let power = |value: i128| value > 0 && value & (value - 1) == 0;
    match (op, a.as_constant(), b.as_constant()) {
        (
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSubtract
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight,
            _,
            Some(0),
        )
        | (BinaryOp::Multiply | BinaryOp::SaturatingMultiply | BinaryOp::Divide, _, Some(1)) => {
            Some(Simplification::First)
        }
        (BinaryOp::Add | BinaryOp::BitOr | BinaryOp::BitXor, Some(0), _) | (BinaryOp::Multiply, Some(1), _) => {
            Some(Simplification::Second)
        }
        (BinaryOp::Remainder, _, Some(by)) if a.low >= 0 && a.high < by => Some(Simplification::First),
        (BinaryOp::Remainder, _, Some(by)) if a.low >= 0 && power(by) => {
            Some(Simplification::Apply(BinaryOp::BitAnd, by - 1))
        }
        (BinaryOp::BitAnd, _, Some(mask)) if a.low >= 0 && a.high <= mask && power(mask + 1) => {
            Some(Simplification::First)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simplifies_only_under_facts() {
        let byte = Fact::between(0, 255);
        let any = Fact::between(-128, 127);
        let with = |op, a: &Fact, b| simplify(op, a, &Fact::constant(b));
        assert_eq!(with(BinaryOp::Remainder, &byte, 8), Some(Simplification::Apply(BinaryOp::BitAnd, 7)));
        assert_eq!(with(BinaryOp::Remainder, &any, 8), None);
        assert_eq!(with(BinaryOp::Remainder, &byte, 10), None);
        assert_eq!(with(BinaryOp::Remainder, &byte, 256), Some(Simplification::First));
        assert_eq!(with(BinaryOp::BitAnd, &byte, 255), Some(Simplification::First));
        assert_eq!(with(BinaryOp::BitAnd, &byte, 254), None);
        assert_eq!(with(BinaryOp::BitAnd, &any, 127), None);
        assert_eq!(with(BinaryOp::Subtract, &any, 0), Some(Simplification::First));
        assert_eq!(simplify(BinaryOp::Subtract, &Fact::constant(0), &any), None);
        assert_eq!(simplify(BinaryOp::Multiply, &Fact::constant(1), &any), Some(Simplification::Second));
    }
}
