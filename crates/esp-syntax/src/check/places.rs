//! What can be assigned: variables and paths into mutable ones (reference, section 3, "Mutability").

use super::access::{BytesField, number_type};
use super::body::{Binding, Body, Role};
use super::names::{Entity, Named};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, LocalId, Mutability, PlaceStep};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// What the location is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    /// An assignment or an argument that is written.
    Assign,
    /// A pattern.
    Pattern,
}

/// One step of a path as written, in an assignment or in an expression.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Field(&'a ast::Name),
    Index(&'a ast::Expr),
    Slice(Option<&'a ast::Expr>, Option<&'a ast::Expr>),
}

/// The steps of a written place.
pub(super) fn steps(place: &ast::Place) -> Vec<Step<'_>> {
    place
        .path
        .iter()
        .map(|step| match step {
            ast::PlaceStep::Field(name) => Step::Field(name),
            ast::PlaceStep::Index(index) => Step::Index(index),
            ast::PlaceStep::Slice(from, to) => Step::Slice(from.as_ref(), to.as_ref()),
        })
        .collect()
}

/// An expression as a place, if it has the form of one.
pub(super) fn expression_place(expr: &ast::Expr) -> Option<(&ast::Name, Vec<Step<'_>>)> {
    let mut path = Vec::new();
    let mut expr = expr;
    loop {
        match &expr.kind {
            ast::ExprKind::Name(name) => {
                path.reverse();
                return Some((name, path));
            }
            ast::ExprKind::Field(base, name) => {
                path.push(Step::Field(name));
                expr = base;
            }
            ast::ExprKind::Index(base, index) => {
                path.push(Step::Index(index));
                expr = base;
            }
            _ => return None,
        }
    }
}

impl<'a> Body<'_, 'a> {
    /// The variable at the base of a place, if it can be assigned.
    pub(super) fn place_base(&mut self, name: &'a ast::Name, intent: Intent) -> Option<LocalId> {
        if name.text.is_empty() {
            return None;
        }
        let (noun, declared) = match self.find(name) {
            Some(Binding::Local(id)) => match self.local(id).role {
                Role::Variable | Role::Received | Role::Result => return Some(id),
                Role::Parameter => ("a parameter, which is constant", Some(self.local(id).span)),
                Role::Counter => ("the counter of a `for`, which is constant", Some(self.local(id).span)),
            },
            Some(Binding::Const(_)) => ("a constant", None),
            Some(Binding::Channel(_)) => ("a channel", None),
            None => match self.checker.find(name) {
                Some(Named { entity: Entity::Const(_), span }) => ("a constant", Some(span)),
                Some(Named { entity, span }) if intent == Intent::Pattern => {
                    let message = format!("`{}` is {}, not a variable to assign", name.text, entity.a_noun());
                    let help = format!("write `${}_` to declare a name", name.text);
                    let diagnostic =
                        Diagnostic::new(Code::E0401, name.span, message).label(span, "declared here").help(help);
                    self.checker.report(diagnostic);
                    return None;
                }
                Some(_) | None => {
                    self.unknown_variable(name);
                    return None;
                }
            },
        };
        let diagnostic = match intent {
            Intent::Pattern => {
                let message = format!("`{}` is {noun}, not a variable to assign", name.text);
                Diagnostic::new(Code::E0401, name.span, message).help(format!("write `=={}`", name.text))
            }
            Intent::Assign => {
                Diagnostic::new(Code::E0306, name.span, format!("`{}` is {noun}: it cannot be assigned", name.text))
            }
        };
        self.checker.report(match declared {
            Some(span) => diagnostic.label(span, "declared here"),
            None => diagnostic,
        });
        None
    }

    /// The place a path leads to. The base has a type already if the path is empty.
    pub(super) fn place(
        &mut self,
        base: LocalId,
        path: &[Step<'a>],
        span: Span,
        name_span: Span,
    ) -> Option<hir::Place> {
        let Some((first, _)) = path.split_first() else {
            let ty = self.local(base).ty.unwrap_or(TypeTable::ERROR);
            return (ty != TypeTable::ERROR).then(|| hir::Place { base, path: Vec::new(), ty, span });
        };
        let whole = match self.local(base).ty {
            Some(ty) => ty,
            None => self.read_local(base, name_span),
        };
        if whole == TypeTable::ERROR {
            path.iter().for_each(|step| self.absorb_step(*step));
            return None;
        }
        if self.effective(whole, self.local(base).mutability) == Mutability::Immutable {
            self.immutable(base, whole, *first, span);
            path.iter().for_each(|step| self.absorb_step(*step));
            return None;
        }
        let mut resolved = Vec::new();
        let mut ty = whole;
        let content = self.checker.content(ty);
        if content != ty {
            resolved.push(PlaceStep::Content);
            ty = content;
        }
        let mut index = 0;
        while index < path.len() {
            let (step, used, next) = self.place_step(ty, &path[index..], span)?;
            resolved.push(step);
            index += used;
            ty = next;
            if index < path.len() && matches!(self.checker.types.get(ty), Type::Boxed(_)) {
                let message =
                    format!("this part is boxed (`{}`), its content is immutable", self.checker.type_name(ty));
                self.checker.report(Diagnostic::new(Code::E0306, span, message).help("replace the part whole"));
                return None;
            }
        }
        Some(hir::Place { base, path: resolved, ty, span })
    }

    fn absorb_step(&mut self, step: Step<'a>) {
        match step {
            Step::Field(_) => {}
            Step::Index(index) => self.absorb(index),
            Step::Slice(from, to) => from.into_iter().chain(to).for_each(|end| self.absorb(end)),
        }
    }

    /// E0306.
    fn immutable(&mut self, base: LocalId, ty: TypeId, first: Step<'a>, span: Span) {
        if matches!(self.checker.types.get(ty), Type::Int(_) | Type::Bool | Type::Pid(_)) {
            if let Step::Field(name) = first {
                self.no_field(ty, name);
            } else {
                self.expected_kind("an array or `bytes`", ty, span);
            }
            return;
        }
        if let (Step::Field(name), Type::Union(_)) = (first, self.checker.types.get(self.checker.content(ty))) {
            self.part_of_union(ty, name);
            return;
        }
        let local = self.local(base);
        let (name, declared) = (local.name.clone(), local.span);
        let help = format!("declare it `#{}`, or replace it whole", self.checker.type_name(ty));
        let diagnostic = Diagnostic::new(Code::E0306, span, format!("`{name}` is immutable"))
            .label(declared, format!("`{name}` is declared here"))
            .help(help);
        self.checker.report(diagnostic);
    }

    /// E0306: the tag of a union determines its part, so a part is not assigned alone.
    fn part_of_union(&mut self, ty: TypeId, name: &ast::Name) {
        let Type::Union(id) = *self.checker.types.get(self.checker.content(ty)) else { return };
        let parts = &self.checker.types.aggregate(id).parts;
        let Some((_, payload)) = parts.iter().find(|(tag, _)| *tag == name.text) else {
            self.no_field(ty, name);
            return;
        };
        let payload = if payload.is_some() { "value" } else { "{}" };
        let message = format!(
            "`{}` is a tag of the union `{}`: its part cannot be assigned alone",
            name.text,
            self.checker.type_name(ty)
        );
        let help = format!("replace the union whole, by `{} |> {payload}`; `match` shows what it holds", name.text);
        self.checker.report(Diagnostic::new(Code::E0306, name.span, message).help(help));
    }

    /// One step of a path: what it is, how many written steps it takes, and the type it leads to.
    fn place_step(&mut self, ty: TypeId, path: &[Step<'a>], span: Span) -> Option<(PlaceStep, usize, TypeId)> {
        match (path[0], self.checker.types.get(ty).clone()) {
            (_, Type::Error) => None,
            (Step::Field(name), Type::Record(id)) => {
                let (field, ty) = self.field(id, name)?;
                Some((PlaceStep::Field(field), 1, ty))
            }
            (Step::Index(index), Type::Array { length, element }) => {
                let index = self.any_integer(index);
                if let hir::ExprKind::Constant(number) = index.kind
                    && !(0..i128::from(length)).contains(&number)
                {
                    self.outside(number, i128::from(length), index.span);
                    return None;
                }
                Some((PlaceStep::Index(Box::new(index)), 1, element))
            }
            (Step::Field(name), Type::Bytes { .. }) => self.bytes_place_step(name, path, span),
            (Step::Index(index), Type::Bytes { bound }) => {
                let index = self.any_integer(index);
                if let hir::ExprKind::Constant(number) = index.kind
                    && !(0..i128::from(bound)).contains(&number)
                {
                    self.outside(number, i128::from(bound), index.span);
                    return None;
                }
                self.end_of_path(path, 1, span)?;
                Some((PlaceStep::Index(Box::new(index)), 1, TypeTable::U8))
            }
            (Step::Slice(from, to), Type::Bytes { .. }) => {
                let from = from.map(|end| Box::new(self.any_integer(end)));
                let to = to.map(|end| Box::new(self.any_integer(end)));
                self.end_of_path(path, 1, span)?;
                Some((PlaceStep::Slice(from, to), 1, ty))
            }
            (Step::Field(name), Type::Array { .. }) if name.text == "len" => {
                self.checker.error(Code::E0306, name.span, "the length of an array is fixed");
                None
            }
            (Step::Field(name), Type::Union(_)) => {
                self.part_of_union(ty, name);
                None
            }
            (Step::Field(name), _) => {
                self.no_field(ty, name);
                None
            }
            (Step::Slice(..), _) => {
                self.expected_kind("`bytes`", ty, span);
                None
            }
            (Step::Index(_), _) => {
                self.expected_kind("an array or `bytes`", ty, span);
                None
            }
        }
    }

    fn bytes_place_step(
        &mut self,
        name: &'a ast::Name,
        path: &[Step<'a>],
        span: Span,
    ) -> Option<(PlaceStep, usize, TypeId)> {
        match self.bytes_field(name)? {
            BytesField::Length => {
                self.end_of_path(path, 1, span)?;
                Some((PlaceStep::Length, 1, TypeTable::I32))
            }
            BytesField::Numbers(order, bits) => {
                let offset = self.offset_step(path, span)?;
                self.end_of_path(path, 2, span)?;
                Some((PlaceStep::Number { order, bits, offset: Box::new(offset) }, 2, number_type(bits)))
            }
            BytesField::Layout(layout) => {
                let offset = self.offset_step(path, span)?;
                let Some(Step::Field(field)) = path.get(2) else {
                    let message = "a layout is not a value";
                    self.checker.report(Diagnostic::new(Code::E0302, span, message).help("name one of its fields"));
                    return None;
                };
                let (field, ty) = self.layout_field(layout, field)?;
                self.end_of_path(path, 3, span)?;
                Some((PlaceStep::LayoutField { layout, field, offset: Box::new(offset) }, 3, ty))
            }
        }
    }

    fn offset_step(&mut self, path: &[Step<'a>], span: Span) -> Option<hir::Expr> {
        match path.get(1) {
            Some(Step::Index(offset)) => Some(self.any_integer(offset)),
            Some(Step::Field(_) | Step::Slice(..)) | None => {
                self.checker.error(Code::E0302, span, "a byte offset is missing here");
                None
            }
        }
    }

    fn end_of_path(&mut self, path: &[Step<'a>], used: usize, span: Span) -> Option<()> {
        if path.len() > used {
            self.checker.error(Code::E0302, span, "a part of `bytes` has no parts to assign");
            return None;
        }
        Some(())
    }
}
