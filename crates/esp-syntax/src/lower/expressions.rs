//! Expressions.

use super::cursor::{Exactly, NodeCursor};
use super::types::{int_type, mutability};
use crate::ast::{BinaryOperator, Expr, ExprKind, TimeUnit, UnaryOperator};
use crate::tree::SyntaxKind;

/// The first expression among the children of a node; an error if there is none.
pub(super) fn first(node: NodeCursor) -> Expr {
    node.nodes().find_map(optional).unwrap_or_else(|| error(node))
}

fn error(node: NodeCursor) -> Expr {
    Expr { kind: ExprKind::Error, span: node.span() }
}

/// The expressions among the children of a node.
pub(super) fn all(node: NodeCursor) -> Vec<Expr> {
    node.nodes().filter_map(optional).exactly()
}

/// The first `N` expressions among the children of a node; errors where there are fewer.
pub(super) fn several<const N: usize>(node: NodeCursor) -> [Expr; N] {
    let mut expressions = node.nodes().filter_map(optional);
    std::array::from_fn(|_| expressions.next().unwrap_or_else(|| error(node)))
}

/// The node as an expression, if it is one.
pub(super) fn optional(node: NodeCursor) -> Option<Expr> {
    let span = node.span();
    let kind = match node.kind() {
        SyntaxKind::Error => ExprKind::Error,
        SyntaxKind::Literal => literal(node),
        SyntaxKind::RecordExpr => {
            let field = |field: NodeCursor| (field.token(SyntaxKind::Ident).map(|token| token.name()), first(field));
            let fields = node.nodes().filter(|child| child.kind() == SyntaxKind::RecordField).map(field);
            ExprKind::Record(mutability(node), fields.exactly())
        }
        SyntaxKind::ArrayExpr => ExprKind::Array(mutability(node), all(node)),
        SyntaxKind::RepeatExpr => {
            let [element, length] = several(node);
            ExprKind::Repeat(mutability(node), Box::new(element), Box::new(length))
        }
        SyntaxKind::NameExpr => ExprKind::Name(node.name()),
        SyntaxKind::CallExpr => ExprKind::Call(node.name(), all(node)),
        SyntaxKind::ConvertExpr => match node.tokens().next().and_then(|token| int_type(token.kind())) {
            Some(int) => ExprKind::Convert(int, Box::new(first(node))),
            None => ExprKind::Error,
        },
        SyntaxKind::DurationExpr => {
            let unit = unit(node).expect("the parser completes a duration at its unit");
            ExprKind::Duration(Box::new(first(node)), unit)
        }
        SyntaxKind::ParenExpr => return Some(Expr { span, ..first(node) }),
        SyntaxKind::UnaryExpr => {
            let operator = match node.tokens().next().map(|token| token.kind()) {
                Some(SyntaxKind::Bang) => UnaryOperator::Not,
                Some(SyntaxKind::Tilde) => UnaryOperator::Complement,
                Some(_) | None => UnaryOperator::Negate,
            };
            ExprKind::Unary(operator, Box::new(first(node)))
        }
        // `a < b < c` has been reported; taken as `(a < b) < c` it would be reported again, as a wrong type.
        SyntaxKind::BinaryExpr if is_chain(node) => ExprKind::Error,
        SyntaxKind::BinaryExpr => {
            let [left, right] = several(node);
            match node.tokens().find_map(|token| binary_operator(token.kind())) {
                Some(operator) => ExprKind::Binary(operator, Box::new(left), Box::new(right)),
                None => ExprKind::Error,
            }
        }
        SyntaxKind::ConditionalExpr => {
            let [condition, yes, no] = several(node);
            ExprKind::Conditional(Box::new(condition), Box::new(yes), Box::new(no))
        }
        SyntaxKind::FieldExpr => ExprKind::Field(Box::new(first(node)), node.name()),
        SyntaxKind::IndexExpr => match index(node, Skip::Base) {
            Index::One(index) => ExprKind::Index(Box::new(first(node)), Box::new(index)),
            Index::Range(from, to) => ExprKind::Slice(Box::new(first(node)), from.map(Box::new), to.map(Box::new)),
        },
        SyntaxKind::TagExpr => ExprKind::Tag(node.name(), Box::new(first(node))),
        SyntaxKind::ProcessIdExpr => match node.token(SyntaxKind::Ident) {
            None => ExprKind::OwnId,
            Some(_) => {
                let replica = node.nodes().find_map(optional).map(Box::new);
                ExprKind::ProcessId(node.name(), replica)
            }
        },
        _ => return None,
    };
    Some(Expr { kind, span })
}

/// The unit among the tokens of a node.
pub(super) fn unit(node: NodeCursor) -> Option<TimeUnit> {
    node.token(SyntaxKind::UnitWord).map(|token| match token.text() {
        "ns" => TimeUnit::Nanoseconds,
        "us" => TimeUnit::Microseconds,
        "s" => TimeUnit::Seconds,
        _ => TimeUnit::Milliseconds,
    })
}

fn literal(node: NodeCursor) -> ExprKind {
    let Some(token) = node.tokens().find(|token| token.kind() != SyntaxKind::Hash) else {
        return ExprKind::Error;
    };
    match token.kind() {
        SyntaxKind::Int => ExprKind::Int(token.int()),
        SyntaxKind::Char => ExprKind::Char(token.bytes().first().copied().unwrap_or(0)),
        SyntaxKind::String => ExprKind::Bytes(mutability(node), token.bytes()),
        SyntaxKind::TrueKeyword => ExprKind::Bool(true),
        SyntaxKind::FalseKeyword => ExprKind::Bool(false),
        _ => ExprKind::Error,
    }
}

/// The content of `[` and `]`.
pub(super) enum Index {
    /// `i`
    One(Expr),
    /// `a..b`, either of which can be missing.
    Range(Option<Expr>, Option<Expr>),
}

/// The number of expressions of a node before its `[`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// The indexed value, as in an expression.
    Base,
    /// None, as in a place.
    Nothing,
}

/// The index of an `IndexExpr` or `IndexStep`.
pub(super) fn index(node: NodeCursor, skip: Skip) -> Index {
    let (mut before, mut behind, mut range) = (None, None, false);
    let mut skipped = skip == Skip::Nothing;
    for child in node.children() {
        if child.as_token().is_some_and(|token| token.kind() == SyntaxKind::DotDot) {
            range = true;
        }
        let Some(expression) = child.into_node() else { continue };
        if !skipped {
            skipped = true;
        } else if range {
            behind = behind.or_else(|| optional(expression));
        } else {
            before = before.or_else(|| optional(expression));
        }
    }
    match range {
        true => Index::Range(before, behind),
        false => Index::One(before.unwrap_or_else(|| error(node))),
    }
}

fn is_chain(node: NodeCursor) -> bool {
    is_comparison(node) && node.nodes().next().is_some_and(is_comparison)
}

fn is_comparison(node: NodeCursor) -> bool {
    use BinaryOperator as B;
    let operator = node.tokens().find_map(|token| binary_operator(token.kind()));
    node.kind() == SyntaxKind::BinaryExpr
        && matches!(operator, Some(B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual))
}

fn binary_operator(kind: SyntaxKind) -> Option<BinaryOperator> {
    let operator = match kind {
        SyntaxKind::Star => BinaryOperator::Multiply,
        SyntaxKind::Slash => BinaryOperator::Divide,
        SyntaxKind::Percent => BinaryOperator::Remainder,
        SyntaxKind::Plus => BinaryOperator::Add,
        SyntaxKind::Minus => BinaryOperator::Subtract,
        SyntaxKind::LessLess => BinaryOperator::ShiftLeft,
        SyntaxKind::GreaterGreater => BinaryOperator::ShiftRight,
        SyntaxKind::Ampersand => BinaryOperator::BitAnd,
        SyntaxKind::Caret => BinaryOperator::BitXor,
        SyntaxKind::Pipe => BinaryOperator::BitOr,
        SyntaxKind::EqualEqual => BinaryOperator::Equal,
        SyntaxKind::BangEqual => BinaryOperator::NotEqual,
        SyntaxKind::Less => BinaryOperator::Less,
        SyntaxKind::LessEqual => BinaryOperator::LessEqual,
        SyntaxKind::Greater => BinaryOperator::Greater,
        SyntaxKind::GreaterEqual => BinaryOperator::GreaterEqual,
        SyntaxKind::AndAnd => BinaryOperator::And,
        SyntaxKind::PipePipe => BinaryOperator::Or,
        _ => return None,
    };
    Some(operator)
}

/// The operator of `+=` and its like; none for `=`.
pub(super) fn update_operator(kind: SyntaxKind) -> Option<BinaryOperator> {
    let operator = match kind {
        SyntaxKind::PlusEqual => BinaryOperator::Add,
        SyntaxKind::MinusEqual => BinaryOperator::Subtract,
        SyntaxKind::StarEqual => BinaryOperator::Multiply,
        SyntaxKind::SlashEqual => BinaryOperator::Divide,
        SyntaxKind::PercentEqual => BinaryOperator::Remainder,
        SyntaxKind::AmpersandEqual => BinaryOperator::BitAnd,
        SyntaxKind::PipeEqual => BinaryOperator::BitOr,
        SyntaxKind::CaretEqual => BinaryOperator::BitXor,
        SyntaxKind::LessLessEqual => BinaryOperator::ShiftLeft,
        SyntaxKind::GreaterGreaterEqual => BinaryOperator::ShiftRight,
        _ => return None,
    };
    Some(operator)
}
