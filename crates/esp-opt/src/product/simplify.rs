//! Cheaper ways to compute what facts allow to: operations that change nothing, remainders that are masks.
//! Knows single instructions only.

use crate::facts::Fact;
use quaject_esp_ir::ir::BinaryOp;

/// What an operation can be replaced by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Simpler {
    /// Its first operand.
    First,
    /// Its second operand.
    Second,
    /// This operator on the first operand and a constant.
    With(BinaryOp, i128),
}

/// A simpler form of an operation that neither faults nor, with these operands, overflows unseen.
pub(super) fn simpler(op: BinaryOp, a: &Fact, b: &Fact) -> Option<Simpler> {
    let power = |value: i128| value > 0 && value & (value - 1) == 0;
    match (op, a.as_constant(), b.as_constant()) {
        (
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight,
            _,
            Some(0),
        )
        | (BinaryOp::Multiply | BinaryOp::Divide, _, Some(1)) => Some(Simpler::First),
        (BinaryOp::Add | BinaryOp::BitOr | BinaryOp::BitXor, Some(0), _) | (BinaryOp::Multiply, Some(1), _) => {
            Some(Simpler::Second)
        }
        (BinaryOp::Remainder, _, Some(by)) if a.low >= 0 && a.high < by => Some(Simpler::First),
        (BinaryOp::Remainder, _, Some(by)) if a.low >= 0 && power(by) => Some(Simpler::With(BinaryOp::BitAnd, by - 1)),
        (BinaryOp::BitAnd, _, Some(mask)) if a.low >= 0 && a.high <= mask && power(mask + 1) => Some(Simpler::First),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_facts_allow() {
        let byte = Fact::between(0, 255);
        let any = Fact::between(-128, 127);
        let with = |op, a: &Fact, b| simpler(op, a, &Fact::constant(b));
        assert_eq!(with(BinaryOp::Remainder, &byte, 8), Some(Simpler::With(BinaryOp::BitAnd, 7)));
        assert_eq!(with(BinaryOp::Remainder, &any, 8), None);
        assert_eq!(with(BinaryOp::Remainder, &byte, 10), None);
        assert_eq!(with(BinaryOp::Remainder, &byte, 256), Some(Simpler::First));
        assert_eq!(with(BinaryOp::BitAnd, &byte, 255), Some(Simpler::First));
        assert_eq!(with(BinaryOp::BitAnd, &byte, 254), None);
        assert_eq!(with(BinaryOp::BitAnd, &any, 127), None);
        assert_eq!(with(BinaryOp::Subtract, &any, 0), Some(Simpler::First));
        assert_eq!(simpler(BinaryOp::Subtract, &Fact::constant(0), &any), None);
        assert_eq!(simpler(BinaryOp::Multiply, &Fact::constant(1), &any), Some(Simpler::Second));
    }
}
