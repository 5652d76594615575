//! Types.

use super::cursor::{Exactly, NodeCursor};
use super::expressions;
use crate::ast::{Enumeration, IntType, Mutability, Type, TypeKind, ValueType};
use crate::tree::SyntaxKind;

/// The integer type a word names.
pub(super) fn int_type(kind: SyntaxKind) -> Option<IntType> {
    match kind {
        SyntaxKind::IntKeyword | SyntaxKind::I32Keyword => Some(IntType::I32),
        SyntaxKind::U8Keyword => Some(IntType::U8),
        SyntaxKind::U16Keyword => Some(IntType::U16),
        SyntaxKind::U32Keyword => Some(IntType::U32),
        SyntaxKind::U64Keyword => Some(IntType::U64),
        SyntaxKind::I8Keyword => Some(IntType::I8),
        SyntaxKind::I16Keyword => Some(IntType::I16),
        SyntaxKind::I64Keyword => Some(IntType::I64),
        _ => None,
    }
}

/// The first type among the children of a node; an error if there is none.
pub(super) fn first(node: NodeCursor) -> Type {
    node.nodes().find_map(optional).unwrap_or(Type { kind: TypeKind::Error, span: node.span() })
}

/// The type with or without `#` among the children of a node.
pub(super) fn first_value(node: NodeCursor) -> ValueType {
    optional_value(node).unwrap_or(ValueType {
        mutability: Mutability::Immutable,
        ty: Type { kind: TypeKind::Error, span: node.span() },
    })
}

/// As [`first_value`], if there is one.
pub(super) fn optional_value(node: NodeCursor) -> Option<ValueType> {
    let value = node.node(SyntaxKind::ValueType)?;
    Some(ValueType { mutability: mutability(value), ty: first(value) })
}

/// Whether a `#` is among the tokens of a node.
pub(super) fn mutability(node: NodeCursor) -> Mutability {
    match node.token(SyntaxKind::Hash) {
        Some(_) => Mutability::Mutable,
        None => Mutability::Immutable,
    }
}

/// The node as a type, if it is one.
pub(super) fn optional(node: NodeCursor) -> Option<Type> {
    let kind = match node.kind() {
        SyntaxKind::IntType => {
            node.tokens().next().and_then(|token| int_type(token.kind())).map_or(TypeKind::Error, TypeKind::Int)
        }
        SyntaxKind::BoolType => TypeKind::Bool,
        SyntaxKind::BytesType => TypeKind::Bytes(Box::new(expressions::first(node))),
        SyntaxKind::PidType => TypeKind::Pid(node.names().exactly()),
        SyntaxKind::NamedType => TypeKind::Named(node.name()),
        SyntaxKind::ArrayType => {
            let length = node.nodes().find_map(expressions::optional).map(Box::new);
            TypeKind::Array(length, Box::new(first(node)))
        }
        SyntaxKind::RecordType => TypeKind::Record(fields(node).map(|field| (field.name(), first(field))).exactly()),
        SyntaxKind::UnionType => {
            let part = |field: NodeCursor| {
                let ty = field.token(SyntaxKind::Colon).map(|_| first(field));
                (field.name(), ty)
            };
            TypeKind::Union(fields(node).map(part).exactly())
        }
        SyntaxKind::EnumType => TypeKind::Enum(Box::new(enumeration(node))),
        _ => return None,
    };
    Some(Type { kind, span: node.span() })
}

fn enumeration(node: NodeCursor) -> Enumeration {
    let base = node.node(SyntaxKind::IntType).and_then(|base| int_type(base.tokens().next()?.kind()));
    let is_other = |case: &NodeCursor| case.token(SyntaxKind::ElseKeyword).is_some();
    let cases = || node.nodes().filter(|child| child.kind() == SyntaxKind::EnumCase);
    let case = |case: NodeCursor| (case.name(), case.nodes().find_map(expressions::optional));
    Enumeration {
        base,
        cases: cases().filter(|case| !is_other(case)).map(case).exactly(),
        other: cases().find(is_other).map(|case| case.name()),
    }
}

fn fields(node: NodeCursor) -> impl Iterator<Item = NodeCursor> {
    node.nodes().filter(|child| child.kind() == SyntaxKind::TypeField)
}
