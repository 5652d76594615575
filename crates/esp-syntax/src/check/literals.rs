//! Literals: byte strings, records, unions, arrays (reference, section 3).

use super::body::Body;
use super::coerce::Use;
use super::constants::{Constant, error_expr};
use super::expressions::{Typed, Value};
use super::types::Limits;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, ExprKind, Mutability};
use crate::span::Span;
use crate::types::{AggregateId, Type, TypeId, TypeTable};

/// `1 value`, `2 values`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

impl<'a> Body<'_, 'a> {
    pub(super) fn bytes_literal(&mut self, bytes: &[u8], mutability: Mutability, span: Span) -> Value {
        let bound = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let ty = self.checker.types.intern(Type::Bytes { bound });
        let expr = hir::Expr { kind: ExprKind::Bytes(bytes.to_vec()), ty, span };
        Value::Typed(Typed { expr, mutability })
    }

    /// A record, union or array literal where a type is expected.
    pub(super) fn check_literal(&mut self, expr: &'a ast::Expr, expected: TypeId, need: Use) -> hir::Expr {
        let content = self.checker.content(expected);
        let (kind, mutability) = match (&expr.kind, self.checker.types.get(content).clone()) {
            (ast::ExprKind::Record(mutability, fields), Type::Record(id)) => {
                (self.record_literal(fields, id, expr.span), *mutability)
            }
            (ast::ExprKind::Tag(tag, payload), Type::Union(id)) => {
                (self.union_literal(tag, payload, id), Mutability::Immutable)
            }
            (ast::ExprKind::Array(mutability, elements), Type::Array { length, element }) => {
                (self.array_literal(elements, length, element, expr.span), *mutability)
            }
            (ast::ExprKind::Repeat(mutability, element, count), Type::Array { length, element: ty }) => {
                (self.repeat_literal(element, count, length, ty, expr.span), *mutability)
            }
            (_, _) => {
                self.wrong_literal(expr, expected);
                return error_expr(expr.span);
            }
        };
        let Some(kind) = kind else { return error_expr(expr.span) };
        let literal = hir::Expr { kind, ty: content, span: expr.span };
        // A union literal has no `#` form: it may begin a `#T` as it is.
        let union = matches!(expr.kind, ast::ExprKind::Tag(..)) && need == Use::Mutable;
        let mutability = if union { Mutability::Mutable } else { mutability };
        self.coerce(Typed { expr: literal, mutability }, expected, need)
    }

    fn wrong_literal(&mut self, expr: &'a ast::Expr, expected: TypeId) {
        let found = match expr.kind {
            ast::ExprKind::Record(..) => "a record",
            ast::ExprKind::Tag(..) => "a union",
            _ => "an array",
        };
        let message = format!("expected `{}`, found {found}", self.checker.type_name(expected));
        self.checker.error(Code::E0302, expr.span, message);
        self.absorb(expr);
    }

    fn record_literal(
        &mut self,
        fields: &'a [(Option<ast::Name>, ast::Expr)],
        id: AggregateId,
        span: Span,
    ) -> Option<ExprKind> {
        let order = self.record_fields(fields.iter().map(|(name, _)| name.as_ref()), id, span, Completeness::All);
        let parts = self.checker.types.aggregate(id).parts.clone();
        let mut values = Vec::with_capacity(fields.len());
        for (index, (_, value)) in fields.iter().enumerate() {
            let field = order.as_ref().and_then(|order| order[index]);
            let ty = field.and_then(|field| parts[field as usize].1).unwrap_or(TypeTable::ERROR);
            let value = self.check(value, ty, Use::Part);
            values.push((field.unwrap_or(0), value));
        }
        order.map(|_| ExprKind::Record(values))
    }

    /// Which fields the entries of a record literal or pattern mean; none if their number is wrong, which is reported.
    pub(super) fn record_fields<'n>(
        &mut self,
        names: impl Iterator<Item = Option<&'n ast::Name>>,
        id: AggregateId,
        span: Span,
        completeness: Completeness,
    ) -> Option<Vec<Option<u32>>> {
        let parts = self.checker.types.aggregate(id).parts.clone();
        let names: Vec<Option<&ast::Name>> = names.collect();
        let record = match &self.checker.types.aggregate(id).name {
            Some(name) => format!("record `{name}`"),
            None => "this record".to_string(),
        };
        let named = names.iter().filter(|name| name.is_some()).count();
        if named == 0 {
            if names.len() != parts.len() {
                let message = format!("{record} has {}, {} given", counted(parts.len(), "field"), names.len());
                let list: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
                let help = format!("its fields are `{}`", list.join("`, `"));
                self.checker.report(Diagnostic::new(Code::E0404, span, message).help(help));
                return None;
            }
            return Some((0..names.len() as u32).map(Some).collect());
        }
        if named != names.len() {
            let message = "fields are given by position and by name";
            self.checker.report(Diagnostic::new(Code::E0404, span, message).help("name all of them or none"));
            return None;
        }
        let mut order = Vec::with_capacity(names.len());
        let mut given: Vec<Option<Span>> = vec![None; parts.len()];
        let mut complete = true;
        for name in names.into_iter().flatten() {
            let Some(field) = parts.iter().position(|(part, _)| *part == name.text) else {
                let candidates = parts.iter().map(|(part, _)| part.as_str());
                self.checker.unknown("field", name, candidates);
                order.push(None);
                complete = false;
                continue;
            };
            self.checker.record_part(name.span, id, field as u32);
            if let Some(first) = given[field].replace(name.span) {
                let message = format!("field `{}` is given twice", name.text);
                let diagnostic = Diagnostic::new(Code::E0204, name.span, message).label(first, "first given here");
                self.checker.report(diagnostic);
            }
            order.push(Some(field as u32));
        }
        let missing: Vec<&str> =
            parts.iter().zip(&given).filter(|(_, given)| given.is_none()).map(|((name, _), _)| name.as_str()).collect();
        if complete && completeness == Completeness::All && !missing.is_empty() {
            let message = format!("{record} needs `{}`", missing.join("`, `"));
            self.checker.error(Code::E0404, span, message);
            return None;
        }
        Some(order)
    }

    /// The number of a tag and the type of its payload.
    pub(super) fn tag(&mut self, tag: &ast::Name, id: AggregateId) -> Option<(u32, Option<TypeId>)> {
        let parts = &self.checker.types.aggregate(id).parts;
        if let Some(index) = parts.iter().position(|(name, _)| *name == tag.text) {
            let payload = parts[index].1;
            self.checker.record_part(tag.span, id, index as u32);
            return Some((index as u32, payload));
        }
        let candidates: Vec<_> = parts.iter().map(|(name, _)| name.clone()).collect();
        self.checker.unknown("tag", tag, candidates.iter().map(|name| name.as_str()));
        None
    }

    fn union_literal(&mut self, tag: &ast::Name, payload: &'a ast::Expr, id: AggregateId) -> Option<ExprKind> {
        let Some((index, ty)) = self.tag(tag, id) else {
            self.absorb(payload);
            return None;
        };
        match ty {
            Some(ty) => Some(ExprKind::Union(index, Some(Box::new(self.check(payload, ty, Use::Part))))),
            None => {
                if !matches!(&payload.kind, ast::ExprKind::Record(_, fields) if fields.is_empty()) {
                    self.no_payload(tag, payload.span);
                    self.absorb(payload);
                    return None;
                }
                Some(ExprKind::Union(index, None))
            }
        }
    }

    pub(super) fn no_payload(&mut self, tag: &ast::Name, span: Span) {
        let message = format!("`{}` has no payload", tag.text);
        let help = format!("write `{} |> {{}}`", tag.text);
        self.checker.report(Diagnostic::new(Code::E0404, span, message).help(help));
    }

    fn array_literal(
        &mut self,
        elements: &'a [ast::Expr],
        length: u32,
        element: TypeId,
        span: Span,
    ) -> Option<ExprKind> {
        let values: Vec<hir::Expr> = elements.iter().map(|value| self.check(value, element, Use::Part)).collect();
        if values.len() != length as usize {
            let message = format!("the array has {}, {} given", counted(length as usize, "element"), values.len());
            self.checker.error(Code::E0404, span, message);
            return None;
        }
        Some(ExprKind::Array(values))
    }

    fn repeat_literal(
        &mut self,
        element: &'a ast::Expr,
        count: &'a ast::Expr,
        length: u32,
        ty: TypeId,
        span: Span,
    ) -> Option<ExprKind> {
        let value = self.check(element, ty, Use::Part);
        let count = self.repeat_count(count)?;
        if count != length {
            let message = format!("the array has {}, {count} given", counted(length as usize, "element"));
            self.checker.error(Code::E0404, span, message);
            return None;
        }
        Some(ExprKind::Repeat(Box::new(value)))
    }

    pub(super) fn repeat_count(&mut self, count: &'a ast::Expr) -> Option<u32> {
        let limits = Limits { what: "array length", minimum: 1, maximum: i128::from(i32::MAX) };
        let value = match self.constant_integer(count)? {
            Constant::Error => return None,
            Constant::Untyped(value) => value,
            Constant::Typed(expr) => match expr.kind {
                ExprKind::Constant(value) => value,
                _ => return None,
            },
        };
        self.checker.within(value, count.span, limits)
    }

    /// An array literal whose element type is that of its first typed element, or `int`.
    pub(super) fn synth_array(&mut self, elements: &'a [ast::Expr], mutability: Mutability, span: Span) -> Value {
        let values: Vec<Value> = elements.iter().map(|element| self.synth(element)).collect();
        let ty = values.iter().find_map(|value| match value {
            Value::Typed(value) => Some(value.expr.ty),
            Value::Untyped(_) => None,
        });
        let ty = ty.unwrap_or(TypeTable::I32);
        if ty == TypeTable::ERROR {
            return Value::error(span);
        }
        let values: Vec<hir::Expr> =
            values.into_iter().map(|value| self.coerce_synthesized(value, ty, Use::Part)).collect();
        if values.is_empty() || values.iter().any(|value| value.ty == TypeTable::ERROR) {
            return Value::error(span);
        }
        self.array_value(ExprKind::Array(values), elements.len() as u32, ty, mutability, span)
    }

    pub(super) fn synth_repeat(
        &mut self,
        element: &'a ast::Expr,
        count: &'a ast::Expr,
        mutability: Mutability,
        span: Span,
    ) -> Value {
        let value = self.synth_typed(element);
        let ty = value.expr.ty;
        let value = self.coerce(value, ty, Use::Part);
        let count = self.repeat_count(count);
        match count {
            Some(count) if value.ty != TypeTable::ERROR => {
                self.array_value(ExprKind::Repeat(Box::new(value)), count, ty, mutability, span)
            }
            Some(_) | None => Value::error(span),
        }
    }

    fn array_value(
        &mut self,
        kind: ExprKind,
        length: u32,
        element: TypeId,
        mutability: Mutability,
        span: Span,
    ) -> Value {
        let ty = self.checker.types.intern(Type::Array { length, element });
        let ty = self.checker.limited(ty, span);
        if ty == TypeTable::ERROR {
            return Value::error(span);
        }
        Value::Typed(Typed { expr: hir::Expr { kind, ty, span }, mutability })
    }
}

/// Whether every field has to be named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Completeness {
    All,
    Some,
}
