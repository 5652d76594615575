//! Patterns and places.

use super::cursor::{Exactly, NodeCursor};
use super::expressions::{self, Index, Skip};
use crate::ast::{Expr, ExprKind, Pattern, PatternKind, Place, PlaceStep, RangeEnd};
use crate::tree::SyntaxKind;

/// The first pattern among the children of a node; an error if there is none.
pub(super) fn first(node: NodeCursor) -> Pattern {
    node.nodes().find_map(optional).unwrap_or(Pattern { kind: PatternKind::Error, condition: None, span: node.span() })
}

/// The node as a pattern, if it is one.
pub(super) fn optional(node: NodeCursor) -> Option<Pattern> {
    let kind = match node.kind() {
        SyntaxKind::ConditionalPattern => {
            let condition = Some(Box::new(node.nodes().skip(1).find_map(expressions::optional)?));
            return Some(Pattern { condition, span: node.span(), ..first(node) });
        }
        SyntaxKind::ParenPattern => return Some(Pattern { span: node.span(), ..first(node) }),
        SyntaxKind::Error => PatternKind::Error,
        SyntaxKind::AnyPattern => PatternKind::Any,
        SyntaxKind::DeclarePattern => PatternKind::Declare(node.name()),
        SyntaxKind::EqualPattern => PatternKind::Equal(expressions::first(node)),
        SyntaxKind::OwnIdPattern => PatternKind::OwnId,
        SyntaxKind::LiteralPattern => literal(node),
        SyntaxKind::TagPattern => PatternKind::Tag(node.name(), Box::new(first(node))),
        SyntaxKind::PlacePattern => match node.node(SyntaxKind::Place) {
            Some(inner) => PatternKind::Place(place(inner)),
            None => PatternKind::Error,
        },
        SyntaxKind::RecordPattern => {
            let field = |field: NodeCursor| (field.token(SyntaxKind::Ident).map(|token| token.name()), first(field));
            let fields = node.nodes().filter(|child| child.kind() == SyntaxKind::PatternField);
            PatternKind::Record(fields.map(field).exactly())
        }
        SyntaxKind::ArrayPattern => PatternKind::Array(node.nodes().filter_map(optional).exactly()),
        SyntaxKind::Alternatives => PatternKind::Alternatives(node.nodes().filter_map(optional).exactly()),
        SyntaxKind::RangePattern => {
            let mut ends = node.nodes().filter_map(optional).map(range_end);
            let first = ends.next().unwrap_or(RangeEnd::Error);
            PatternKind::Range(first, ends.next().unwrap_or(RangeEnd::Error))
        }
        _ => return None,
    };
    Some(Pattern { kind, condition: None, span: node.span() })
}

fn literal(node: NodeCursor) -> PatternKind {
    let negative = node.token(SyntaxKind::Minus).is_some();
    let Some(token) = node.tokens().find(|token| token.kind() != SyntaxKind::Minus) else {
        return PatternKind::Error;
    };
    match token.kind() {
        SyntaxKind::Int => {
            let value = i128::from(token.int());
            PatternKind::Int(if negative { -value } else { value })
        }
        SyntaxKind::Char => PatternKind::Int(i128::from(token.bytes().first().copied().unwrap_or(0))),
        SyntaxKind::String => PatternKind::Bytes(token.bytes()),
        SyntaxKind::TrueKeyword => PatternKind::Bool(true),
        SyntaxKind::FalseKeyword => PatternKind::Bool(false),
        _ => PatternKind::Error,
    }
}

fn range_end(pattern: Pattern) -> RangeEnd {
    match pattern.kind {
        PatternKind::Int(value) => RangeEnd::Int(value),
        PatternKind::Place(Place { base, path, span }) if path.is_empty() && !base.text.is_empty() => {
            RangeEnd::Name(Box::new(Expr { kind: ExprKind::Name(base), span }))
        }
        _ => RangeEnd::Error,
    }
}

/// A `Place` node.
pub(super) fn place(node: NodeCursor) -> Place {
    let step = |step: NodeCursor| match step.kind() {
        SyntaxKind::FieldStep => Some(PlaceStep::Field(step.name())),
        SyntaxKind::IndexStep => Some(match expressions::index(step, Skip::Nothing) {
            Index::One(index) => PlaceStep::Index(index),
            Index::Range(from, to) => PlaceStep::Slice(from, to),
        }),
        _ => None,
    };
    Place { base: node.name(), path: node.nodes().filter_map(step).exactly(), span: node.span() }
}
