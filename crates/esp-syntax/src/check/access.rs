//! Paths into values that are read: fields, elements, lengths, slices, numbers in bytes, layouts (reference, section
//! 3).

use super::body::Body;
use super::constants::error_expr;
use super::expressions::{Typed, Value};
use super::layouts;
use super::names::{Entity, Named};
use super::uses::Rank;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, ByteOrder, ExprKind, LayoutId};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// A path as far as it has been followed.
pub(super) enum Access {
    /// A value.
    Value(Value),
    /// `p.be16`, which needs an offset.
    Numbers { base: hir::Expr, order: ByteOrder, bits: u32 },
    /// `p.ipv4`, which needs an offset.
    Layout { base: hir::Expr, layout: LayoutId },
    /// `p.ipv4[14]`, which needs a field.
    LayoutAt { base: hir::Expr, layout: LayoutId, offset: hir::Expr },
}

/// What a name after a dot means on `bytes`.
pub(super) enum BytesField {
    Length,
    Numbers(ByteOrder, u32),
    Layout(LayoutId),
}

/// The numbers in bytes: name, byte order, bits.
const NUMBERS: [(&str, ByteOrder, u32); 6] = [
    ("be16", ByteOrder::Big, 16),
    ("be32", ByteOrder::Big, 32),
    ("be64", ByteOrder::Big, 64),
    ("le16", ByteOrder::Little, 16),
    ("le32", ByteOrder::Little, 32),
    ("le64", ByteOrder::Little, 64),
];

/// The type of a number in bytes.
pub(super) fn number_type(bits: u32) -> TypeId {
    match bits {
        16 => TypeTable::U16,
        32 => TypeTable::U32,
        _ => TypeTable::U64,
    }
}

impl<'a> Body<'_, 'a> {
    /// Follows a path of fields, indices and slices.
    pub(super) fn access(&mut self, expr: &'a ast::Expr) -> Access {
        match &expr.kind {
            ast::ExprKind::Field(base, name) => {
                if let ast::ExprKind::Name(enumeration) = &base.kind
                    && let Some((enumeration, ty)) = self.enumeration_named(enumeration)
                {
                    return Access::Value(self.enumerator(&enumeration, ty, name, expr.span));
                }
                if let ast::ExprKind::Name(name) = &base.kind
                    && self.is_wrong_type(name)
                {
                    return Access::Value(Value::error(expr.span));
                }
                let base = self.access(base);
                self.access_field(base, name, expr.span)
            }
            ast::ExprKind::Index(base, index) => {
                let base = self.access(base);
                self.access_index(base, index, expr.span)
            }
            ast::ExprKind::Slice(base, from, to) => {
                let base = self.access(base);
                Access::Value(self.access_slice(base, from.as_deref(), to.as_deref(), expr.span))
            }
            _ => Access::Value(self.synth(expr)),
        }
    }

    /// The value a path has led to so far, out of its box; its own faults are reported.
    fn base(&mut self, access: Access, span: Span) -> hir::Expr {
        match access {
            Access::Value(Value::Typed(Typed { expr, .. })) => self.unbox(expr),
            Access::Value(Value::Untyped(untyped)) => self.default_int(untyped),
            Access::Numbers { .. } | Access::Layout { .. } => {
                self.checker.error(Code::E0302, span, "a byte offset is missing here");
                error_expr(span)
            }
            Access::LayoutAt { .. } => {
                let message = "a layout is not a value";
                self.checker.report(Diagnostic::new(Code::E0302, span, message).help("name one of its fields"));
                error_expr(span)
            }
        }
    }

    fn access_field(&mut self, access: Access, name: &ast::Name, span: Span) -> Access {
        let value = |kind, ty| Access::Value(Value::immutable(hir::Expr { kind, ty, span }));
        if let Access::LayoutAt { base, layout, offset } = access {
            return match self.layout_field(layout, name) {
                Some((field, ty)) => {
                    let (base, offset) = (Box::new(base), Box::new(offset));
                    value(ExprKind::LayoutField { base, layout, field, offset }, ty)
                }
                None => Access::Value(Value::error(span)),
            };
        }
        let base = self.base(access, span);
        match *self.checker.types.get(base.ty) {
            Type::Record(id) => match self.field(id, name) {
                Some((field, ty)) => {
                    let part = self.checker.constant_part(&base, |literal| match &literal.kind {
                        ExprKind::Record(values) => {
                            values.iter().find(|(index, _)| *index == field).map(|(_, value)| value)
                        }
                        _ => None,
                    });
                    if let Some(part) = part {
                        return Access::Value(Value::immutable(hir::Expr { span, ..part }));
                    }
                    value(ExprKind::Field(Box::new(base), field), ty)
                }
                None => Access::Value(Value::error(span)),
            },
            Type::Bytes { .. } => match self.bytes_field(name) {
                Some(BytesField::Length) => match &base.kind {
                    ExprKind::Bytes(bytes) => value(ExprKind::Constant(bytes.len() as i128), TypeTable::I32),
                    _ => value(ExprKind::Length(Box::new(base)), TypeTable::I32),
                },
                Some(BytesField::Numbers(order, bits)) => Access::Numbers { base, order, bits },
                Some(BytesField::Layout(layout)) => Access::Layout { base, layout },
                None => Access::Value(Value::error(span)),
            },
            Type::Array { length, .. } if name.text == "len" => {
                value(ExprKind::Constant(i128::from(length)), TypeTable::I32)
            }
            _ => {
                self.no_field(base.ty, name);
                Access::Value(Value::error(span))
            }
        }
    }

    /// Reports a field of something that has none of this name.
    pub(super) fn no_field(&mut self, ty: TypeId, name: &ast::Name) {
        if ty == TypeTable::ERROR || name.text.is_empty() {
            return;
        }
        let message = format!("`{}` has no field `{}`", self.checker.type_name(ty), name.text);
        let mut diagnostic = Diagnostic::new(Code::E0208, name.span, message);
        match self.checker.types.get(ty) {
            Type::Union(_) => diagnostic = diagnostic.help("take a union apart with `match`"),
            Type::Array { .. } => diagnostic = diagnostic.help("an array has `len`"),
            _ => {}
        }
        self.checker.report(diagnostic);
    }

    /// A record's field and its type.
    pub(super) fn field(&mut self, id: crate::types::AggregateId, name: &ast::Name) -> Option<(u32, TypeId)> {
        let parts = &self.checker.types.aggregate(id).parts;
        if let Some(index) = parts.iter().position(|(part, _)| *part == name.text) {
            self.checker.record_part(name.span, id, index as u32);
            return Some((index as u32, parts[index].1.unwrap_or(TypeTable::ERROR)));
        }
        let candidates: Vec<_> = parts.iter().map(|(part, _)| part.clone()).collect();
        self.checker.unknown("field", name, candidates.iter().map(|part| part.as_str()));
        None
    }

    /// A layout's field and the type it reads as.
    pub(super) fn layout_field(&mut self, layout: LayoutId, name: &ast::Name) -> Option<(u32, TypeId)> {
        let fields = &self.checker.layouts[layout.0 as usize].1.as_ref()?.fields;
        if let Some(index) = fields.iter().position(|field| field.name == name.text) {
            let written = self.checker.layouts[layout.0 as usize].0.fields.iter().find(|f| f.name.text == name.text);
            written.into_iter().for_each(|field| self.checker.record_use(name.span, Rank::Part, field.name.span));
            return Some((index as u32, layouts::field_type(fields[index].width_bits)));
        }
        let candidates: Vec<_> = fields.iter().map(|field| field.name.clone()).collect();
        self.checker.unknown("field", name, candidates.iter().map(|field| field.as_str()));
        None
    }

    /// What a name after a dot means on `bytes`.
    pub(super) fn bytes_field(&mut self, name: &ast::Name) -> Option<BytesField> {
        if name.text == "len" {
            return Some(BytesField::Length);
        }
        if let Some((_, order, bits)) = NUMBERS.iter().find(|(text, ..)| name.text == *text) {
            return Some(BytesField::Numbers(*order, *bits));
        }
        if let Some(Named { entity: Entity::Layout(layout), .. }) = self.checker.find(name) {
            return Some(BytesField::Layout(layout));
        }
        let layouts = self.checker.visible_items(name.span, |entity| matches!(entity, Entity::Layout(_)));
        let mut candidates: Vec<String> = layouts.iter().map(ToString::to_string).collect();
        candidates.extend(NUMBERS.iter().map(|(text, ..)| text.to_string()));
        candidates.push("len".to_string());
        candidates.sort();
        self.checker.unknown("field or layout", name, candidates.iter().map(String::as_str));
        None
    }

    fn access_index(&mut self, access: Access, index: &'a ast::Expr, span: Span) -> Access {
        let index = self.any_integer(index);
        let value = |kind, ty| Access::Value(Value::immutable(hir::Expr { kind, ty, span }));
        let base = match access {
            Access::Numbers { base, order, bits } => {
                let kind = ExprKind::Number { base: Box::new(base), order, bits, offset: Box::new(index) };
                return value(kind, number_type(bits));
            }
            Access::Layout { base, layout } => return Access::LayoutAt { base, layout, offset: index },
            Access::Value(_) | Access::LayoutAt { .. } => self.base(access, span),
        };
        match *self.checker.types.get(base.ty) {
            Type::Error => Access::Value(Value::error(span)),
            Type::Array { length, element } => {
                if let ExprKind::Constant(number) = index.kind {
                    if !(0..i128::from(length)).contains(&number) {
                        self.outside(number, i128::from(length), index.span);
                        return Access::Value(Value::error(span));
                    }
                    let part = self.checker.constant_part(&base, |literal| match &literal.kind {
                        ExprKind::Array(elements) => elements.get(number as usize),
                        ExprKind::Repeat(element) => Some(&**element),
                        _ => None,
                    });
                    if let Some(part) = part {
                        return Access::Value(Value::immutable(hir::Expr { span, ..part }));
                    }
                }
                value(ExprKind::Index(Box::new(base), Box::new(index)), element)
            }
            Type::Bytes { bound } => {
                if let ExprKind::Constant(number) = index.kind {
                    let length = match &base.kind {
                        ExprKind::Bytes(bytes) => bytes.len() as i128,
                        _ => i128::from(bound),
                    };
                    if !(0..length).contains(&number) {
                        self.outside(number, length, index.span);
                        return Access::Value(Value::error(span));
                    }
                    if let ExprKind::Bytes(bytes) = &base.kind {
                        return value(ExprKind::Constant(i128::from(bytes[number as usize])), TypeTable::U8);
                    }
                }
                value(ExprKind::Index(Box::new(base), Box::new(index)), TypeTable::U8)
            }
            _ => {
                self.expected_kind("an array or `bytes`", base.ty, base.span);
                Access::Value(Value::error(span))
            }
        }
    }

    /// A constant index that always faults (`bounds`) is an error: a fault in a constant expression is E0303.
    pub(super) fn outside(&mut self, index: i128, length: i128, span: Span) {
        self.checker.error(Code::E0303, span, format!("index {index} is outside 0..{length}"));
    }

    fn access_slice(
        &mut self,
        access: Access,
        from: Option<&'a ast::Expr>,
        to: Option<&'a ast::Expr>,
        span: Span,
    ) -> Value {
        let base = self.base(access, span);
        let from = from.map(|end| Box::new(self.any_integer(end)));
        let to = to.map(|end| Box::new(self.any_integer(end)));
        match self.checker.types.get(base.ty) {
            Type::Error => Value::error(span),
            Type::Bytes { .. } => {
                let ty = base.ty;
                Value::immutable(hir::Expr { kind: ExprKind::Slice(Box::new(base), from, to), ty, span })
            }
            _ => {
                self.expected_kind("`bytes`", base.ty, base.span);
                Value::error(span)
            }
        }
    }
}
