//! Translation of operators and values that several constructs share.

use quaject_esp_ir::ir::{BinaryOp, Operand, Passed, Transfer};

/// The operator of the flow IR for an operator without control flow.
pub(super) fn binary_op(operator: quaject_esp_syntax::hir::BinaryOperator) -> BinaryOp {
    use quaject_esp_syntax::hir::BinaryOperator;
    match operator {
        BinaryOperator::Multiply => BinaryOp::Multiply,
        BinaryOperator::Divide => BinaryOp::Divide,
        BinaryOperator::Remainder => BinaryOp::Remainder,
        BinaryOperator::Add => BinaryOp::Add,
        BinaryOperator::Subtract => BinaryOp::Subtract,
        BinaryOperator::ShiftLeft => BinaryOp::ShiftLeft,
        BinaryOperator::ShiftRight => BinaryOp::ShiftRight,
        BinaryOperator::BitAnd | BinaryOperator::And => BinaryOp::BitAnd,
        BinaryOperator::BitXor => BinaryOp::BitXor,
        BinaryOperator::BitOr | BinaryOperator::Or => BinaryOp::BitOr,
        BinaryOperator::Equal => BinaryOp::Equal,
        BinaryOperator::NotEqual => BinaryOp::NotEqual,
        BinaryOperator::Less => BinaryOp::Less,
        BinaryOperator::LessEqual => BinaryOp::LessEqual,
        BinaryOperator::Greater => BinaryOp::Greater,
        BinaryOperator::GreaterEqual => BinaryOp::GreaterEqual,
    }
}

/// A value of a message, before reference counts are inserted.
pub(super) fn passed(operand: Operand) -> Passed {
    Passed { operand, transfer: Transfer::Keep }
}
