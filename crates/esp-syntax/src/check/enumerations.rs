//! Enumerations: their cases as values, and the conversion of a code, which is total (reference, section 3).

use super::body::{Binding, Body};
use super::coerce::Use;
use super::expressions::Value;
use super::names::{Entity, Named};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::hir::{self, ExprKind};
use crate::span::Span;
use crate::types::{Enumeration, TypeId, TypeTable};

impl<'a> Body<'_, 'a> {
    /// The enumeration of this name, if no local hides it.
    pub(super) fn enumeration_named(&self, name: &ast::Name) -> Option<(Enumeration, TypeId)> {
        let None::<Binding> = self.find(name) else { return None };
        let Some(Named { entity: Entity::Type(entry), .. }) = self.checker.find(name) else { return None };
        let ty = self.checker.type_entries[entry].resolved?;
        Some((self.checker.types.enumeration(ty)?.clone(), ty))
    }

    /// Whether a name is that of a type with an error, which has been reported.
    pub(super) fn is_wrong_type(&self, name: &ast::Name) -> bool {
        let None::<Binding> = self.find(name) else { return false };
        let Some(Named { entity: Entity::Type(entry), .. }) = self.checker.find(name) else { return false };
        self.checker.type_entries[entry].resolved == Some(TypeTable::ERROR)
    }

    /// `code.ok`
    pub(super) fn enumerator(&mut self, enumeration: &Enumeration, ty: TypeId, case: &ast::Name, span: Span) -> Value {
        self.checker.record_case(ty, &case.text, case.span);
        if let Some((_, code)) = enumeration.cases.iter().find(|(name, _)| *name == case.text) {
            return Value::constant(*code, ty, span);
        }
        if enumeration.other.as_ref() == Some(&case.text) {
            let name = &enumeration.name;
            let message = format!("`{name}.{}` stands for every code without a name and is no value", case.text);
            let help = format!("convert one of these codes, as in `{name}(n)`; in a pattern it takes them all");
            self.checker.report(Diagnostic::new(Code::E0310, span, message).help(help));
        } else {
            self.no_case(enumeration, case);
        }
        Value::error(span)
    }

    /// E0208 for a case.
    pub(super) fn no_case(&mut self, enumeration: &Enumeration, case: &ast::Name) {
        if case.text.is_empty() {
            return;
        }
        let message = format!("`{}` has no case `{}`", enumeration.name, case.text);
        let mut diagnostic = Diagnostic::new(Code::E0208, case.span, message);
        let names: Vec<&str> = enumeration
            .cases
            .iter()
            .map(|(name, _)| name)
            .chain(&enumeration.other)
            .map(|name| name.as_str())
            .collect();
        if let Some(near) = nearest(&case.text, names.iter().copied()) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        } else if names.len() <= 8 {
            diagnostic = diagnostic.help(format!("its cases are `{}`", names.join("`, `")));
        }
        self.checker.report(diagnostic);
    }

    /// `code(n)`
    pub(super) fn enumeration_of(
        &mut self,
        enumeration: &Enumeration,
        ty: TypeId,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Value {
        let [argument] = arguments else {
            self.wrong_count(name, arguments.len(), 1, span, None);
            arguments.iter().for_each(|argument| self.absorb(argument));
            return Value::error(span);
        };
        let base = enumeration.base;
        let value = self.check(argument, TypeTable::int(base), Use::Read);
        if value.ty == TypeTable::ERROR {
            return Value::error(span);
        }
        let known = match value.kind {
            ExprKind::Constant(code) => Some(code),
            _ => None,
        };
        let is_case = known.is_some_and(|code| enumeration.case_of(code).is_some());
        if !is_case && !enumeration.is_total() {
            let message = match known {
                Some(code) => format!("{code} is no code of `{}`", enumeration.name),
                None => format!("`{}` has no case for other values of `{}`", enumeration.name, base.name()),
            };
            let help = "end the enumeration with `else other`: then every other code is a case, and keeps its code";
            self.checker.report(Diagnostic::new(Code::E0310, span, message).help(help));
            return Value::error(span);
        }
        let kind = match known {
            Some(code) => ExprKind::Constant(code),
            None => ExprKind::Convert(Box::new(value)),
        };
        Value::immutable(hir::Expr { kind, ty, span })
    }
}
