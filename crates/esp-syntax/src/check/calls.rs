//! Calls: pure functions, extern functions, and the words the language itself defines.

use super::body::{Binding, Body, BodyKind};
use super::coerce::Use;
use super::constants::{Untyped, error_expr};
use super::expressions::{Typed, Value};
use super::literals::counted;
use super::names::{Entity, Named, PREDECLARED};
use super::places::expression_place;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::foreign;
use crate::hir::{self, Argument, ExprKind, ExternId, FnId, Mutability, Purity, StmtKind};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// What a call's name refers to.
enum Callee {
    Function(FnId),
    Extern(ExternId),
}

impl<'a> Body<'_, 'a> {
    /// A call as an expression.
    pub(super) fn call(&mut self, name: &'a ast::Name, arguments: &'a [ast::Expr], span: Span) -> Value {
        if let Some((enumeration, ty)) = self.enumeration_named(name) {
            return self.enumeration_of(&enumeration, ty, name, arguments, span);
        }
        if self.is_wrong_type(name) {
            arguments.iter().for_each(|argument| self.absorb(argument));
            return Value::error(span);
        }
        if self.expanded.as_ref().is_some_and(|(place, _)| *place == span)
            && let Some((_, result)) = self.expanded.take()
        {
            return Value::immutable(result);
        }
        if self.procedure(name).is_some() {
            self.reject_procedure_in_expression(name, arguments, span);
            return Value::error(span);
        }
        if self.kind == BodyKind::Constant && !self.is_constant_call(name) {
            self.not_a_constant(span);
            return Value::error(span);
        }
        match self.predeclared(name) {
            "freeze" | "thaw" => return Value::Typed(self.freeze_or_thaw(name, arguments, None, span)),
            "free" => return self.free(name, arguments, span),
            "sizeof" => return self.size_of(name, arguments, span),
            "link" | "unlink" => {
                self.checker.error(Code::E0302, span, format!("`{}` has no value", name.text));
                return Value::error(span);
            }
            _ => {}
        }
        match self.callee(name, arguments, span) {
            None => Value::error(span),
            Some(Callee::Function(id)) => {
                let arguments = self.function_arguments(id, name, arguments, span);
                let ty = self.checker.functions[id.0 as usize].result;
                match arguments {
                    Some(arguments) if ty != TypeTable::ERROR => {
                        Value::immutable(hir::Expr { kind: ExprKind::CallFn(id, arguments), ty, span })
                    }
                    Some(_) | None => Value::error(span),
                }
            }
            Some(Callee::Extern(id)) => {
                let arguments = self.extern_arguments(id, name, arguments, span);
                match (self.checker.externs[id.0 as usize].hir.result, arguments) {
                    (None, _) => {
                        self.checker.error(Code::E0302, span, format!("`{}` has no result", name.text));
                        Value::error(span)
                    }
                    (Some(TypeTable::ERROR), _) | (_, None) => Value::error(span),
                    (Some(ty), Some(arguments)) => {
                        Value::immutable(hir::Expr { kind: ExprKind::CallExtern(id, arguments), ty, span })
                    }
                }
            }
        }
    }

    /// The name of a predeclared function; empty if the program declares one of this name.
    pub(super) fn predeclared<'n>(&self, name: &'n ast::Name) -> &'n str {
        match self.checker.find(name) {
            Some(Named { entity: Entity::Function(_) | Entity::Extern(_), .. }) => "",
            Some(_) | None => &name.text,
        }
    }

    /// Whether a call can be a part of a constant, as far as its name tells.
    fn is_constant_call(&self, name: &ast::Name) -> bool {
        match self.checker.find(name).map(|named| named.entity) {
            Some(Entity::Function(_)) => true,
            Some(_) | None => matches!(self.predeclared(name), "sizeof" | "freeze" | "thaw"),
        }
    }

    /// A call as a statement.
    pub(super) fn call_statement(
        &mut self,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<StmtKind> {
        match self.predeclared(name) {
            "link" | "unlink" => return self.link(name, arguments, span),
            "freeze" | "thaw" | "free" | "sizeof" => {
                let diagnostic = Diagnostic::new(Code::E0302, span, format!("the value of `{}` is lost", name.text))
                    .help("assign it to a variable");
                self.checker.report(diagnostic);
                return None;
            }
            _ => {}
        }
        match self.callee(name, arguments, span) {
            None => None,
            Some(Callee::Function(id)) => {
                Some(StmtKind::CallFn(id, self.function_arguments(id, name, arguments, span)?))
            }
            Some(Callee::Extern(id)) => Some(StmtKind::Call(id, self.extern_arguments(id, name, arguments, span)?)),
        }
    }

    /// `link(x);` and `unlink(x);`
    fn link(&mut self, name: &'a ast::Name, arguments: &'a [ast::Expr], span: Span) -> Option<StmtKind> {
        if let BodyKind::Function(_) = self.kind {
            self.effect(&name.text, span);
            return None;
        }
        if self.checker.memory == hir::MemoryMode::Automatic {
            let diagnostic = Diagnostic::new(Code::E0601, span, format!("`{}` needs `memory manual;`", name.text))
                .help("drop it: automatic memory counts by itself");
            self.checker.report(diagnostic);
            return None;
        }
        let [argument] = arguments else {
            self.wrong_count(name, arguments.len(), 1, span, None);
            return None;
        };
        let ast::ExprKind::Name(variable) = &argument.kind else {
            self.checker.error(Code::E0302, argument.span, format!("`{}` takes a variable", name.text));
            return None;
        };
        let Some(Binding::Local(id)) = self.find(variable) else {
            self.unknown_variable(variable);
            return None;
        };
        let ty = self.read_local(id, variable.span);
        match self.checker.types.get(ty) {
            Type::Error => None,
            Type::Boxed(_) if name.text == "link" => Some(StmtKind::Link(id)),
            Type::Boxed(_) => Some(StmtKind::Unlink(id)),
            _ => {
                self.expected_kind("a boxed value", ty, argument.span);
                None
            }
        }
    }

    /// `freeze(x)`: the `T` of a `#T`; `thaw(v)`: the `#T` of a `T`.
    pub(super) fn freeze_or_thaw(
        &mut self,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        expected: Option<TypeId>,
        span: Span,
    ) -> Typed {
        let error = || Typed { expr: error_expr(span), mutability: Mutability::Immutable };
        let [argument] = arguments else {
            self.wrong_count(name, arguments.len(), 1, span, None);
            return error();
        };
        let literal = matches!(
            argument.kind,
            ast::ExprKind::Record(..) | ast::ExprKind::Tag(..) | ast::ExprKind::Array(..) | ast::ExprKind::Repeat(..)
        );
        let freeze = name.text == "freeze";
        let value = match expected {
            Some(expected) if literal => {
                let need = if freeze { Use::Mutable } else { Use::Own };
                let expr = self.check(argument, expected, need);
                Typed { expr, mutability: if freeze { Mutability::Mutable } else { Mutability::Immutable } }
            }
            Some(_) | None => self.synth_typed(argument),
        };
        let ty = value.expr.ty;
        if ty == TypeTable::ERROR {
            return error();
        }
        let text = self.checker.text(argument.span).to_string();
        let type_name = self.checker.type_name(ty);
        match (freeze, value.mutability) {
            (true, Mutability::Mutable) => {
                let kind = ExprKind::Freeze(Box::new(value.expr));
                Typed { expr: hir::Expr { kind, ty, span }, mutability: Mutability::Immutable }
            }
            (false, Mutability::Immutable) if self.effective(ty, Mutability::Mutable) == Mutability::Mutable => {
                let kind = ExprKind::Thaw(Box::new(value.expr));
                Typed { expr: hir::Expr { kind, ty, span }, mutability: Mutability::Mutable }
            }
            (true, Mutability::Immutable) => {
                let message = format!("expected `#{type_name}`, found `{type_name}`");
                let help = format!("`{text}` is immutable already");
                self.checker.report(Diagnostic::new(Code::E0302, argument.span, message).help(help));
                error()
            }
            (false, Mutability::Mutable) => {
                let message = format!("expected `{type_name}`, found `#{type_name}`");
                let help = format!("`{text}` is mutable already");
                self.checker.report(Diagnostic::new(Code::E0302, argument.span, message).help(help));
                error()
            }
            (false, Mutability::Immutable) => {
                let message = format!("`{type_name}` has no parts to update");
                self.checker.report(Diagnostic::new(Code::E0302, argument.span, message).help("drop the `thaw`"));
                error()
            }
        }
    }

    /// `free(T)`
    fn free(&mut self, name: &'a ast::Name, arguments: &'a [ast::Expr], span: Span) -> Value {
        if let BodyKind::Function(_) = self.kind {
            self.effect("free", span);
            return Value::error(span);
        }
        match arguments {
            [ast::Expr { kind: ast::ExprKind::Name(ty), .. }] => match self.checker.pool(ty) {
                Some(pool) => {
                    Value::immutable(hir::Expr { kind: ExprKind::FreeObjects(pool), ty: TypeTable::I32, span })
                }
                None => Value::error(span),
            },
            [argument] => {
                self.checker.error(Code::E0302, argument.span, "`free` takes the name of a type");
                Value::error(span)
            }
            _ => {
                self.wrong_count(name, arguments.len(), 1, span, None);
                Value::error(span)
            }
        }
    }

    /// `sizeof(L)` of a layout, `sizeof(T)` of a named type: a constant.
    fn size_of(&mut self, name: &'a ast::Name, arguments: &'a [ast::Expr], span: Span) -> Value {
        match arguments {
            [ast::Expr { kind: ast::ExprKind::Name(ty), .. }] if self.is_type(ty) => self.size_of_type(ty, span),
            [ast::Expr { kind: ast::ExprKind::Name(layout), .. }] => match self.checker.layout(layout) {
                Some(id) => {
                    let bytes = self.checker.layouts[id.0 as usize].1.as_ref().map_or(0, |layout| layout.bytes);
                    Value::Untyped(Untyped::literal(i128::from(bytes), span))
                }
                None => Value::error(span),
            },
            [argument] => {
                self.checker.error(Code::E0302, argument.span, "`sizeof` takes the name of a layout or type");
                Value::error(span)
            }
            _ => {
                self.wrong_count(name, arguments.len(), 1, span, None);
                Value::error(span)
            }
        }
    }

    fn is_type(&self, name: &ast::Name) -> bool {
        matches!(self.checker.find(name), Some(Named { entity: Entity::Type(_), .. }))
    }

    fn size_of_type(&mut self, name: &'a ast::Name, span: Span) -> Value {
        let Some(Named { entity: Entity::Type(entry), .. }) = self.checker.find(name) else {
            return Value::error(span);
        };
        match self.checker.type_entries[entry].resolved {
            None | Some(TypeTable::ERROR) => Value::error(span),
            Some(ty) => match self.checker.types.data_bytes(ty) {
                Some(bytes) => Value::Untyped(Untyped::literal(bytes, span)),
                None => {
                    let message = format!("`{}` has no number of bytes that is the same on every machine", name.text);
                    let diagnostic = Diagnostic::new(Code::E0302, span, message).help(
                        "numbers, `bool`, `bytes` and arrays of these have; what is sent is described by a `layout`",
                    );
                    self.checker.report(diagnostic);
                    Value::error(span)
                }
            },
        }
    }

    /// What is called; none after a report, for which the arguments of a function without a declaration are checked.
    fn callee(&mut self, name: &'a ast::Name, arguments: &'a [ast::Expr], span: Span) -> Option<Callee> {
        if name.text.is_empty() {
            return None;
        }
        let is_function = |entity| matches!(entity, Entity::Function(_) | Entity::Extern(_));
        if self.find(name).is_some() {
            self.checker.unknown_item("function", name, is_function);
            arguments.iter().for_each(|argument| self.absorb(argument));
            return None;
        }
        match self.checker.find(name) {
            Some(Named { entity: Entity::Function(id), .. }) => {
                self.calls.push((id, span));
                super::signatures::resolve_function(self.checker, id);
                Some(Callee::Function(id))
            }
            Some(Named { entity: Entity::Extern(id), .. }) => {
                self.reject_impure(id, name, span);
                Some(Callee::Extern(id))
            }
            Some(_) => {
                self.checker.unknown_item("function", name, is_function);
                arguments.iter().for_each(|argument| self.absorb(argument));
                None
            }
            None => {
                self.unknown_function(name, arguments);
                None
            }
        }
    }

    /// E0208 for a function: nothing is looked up outside of the program unless it is declared.
    fn unknown_function(&mut self, name: &'a ast::Name, arguments: &'a [ast::Expr]) {
        let is_channel = |argument: &ast::Expr| match &argument.kind {
            ast::ExprKind::Name(name) => {
                matches!(self.checker.find(name), Some(Named { entity: Entity::Channel(_), .. }))
            }
            _ => false,
        };
        let is_message = arguments.first().is_some_and(is_channel);
        // A channel is no value, but the mistake is the call.
        let rest = &arguments[usize::from(is_message)..];
        rest.iter().for_each(|argument| self.absorb(argument));
        let is_new = self.checker.unknown_functions.insert(name.text.clone());
        if self.checker.integrity == super::load::Integrity::Missing || !is_new {
            return;
        }
        if name.text.contains('.') {
            self.checker.unknown("function", name, std::iter::empty());
            return;
        }
        let functions =
            self.checker.visible_items(name.span, |entity| matches!(entity, Entity::Function(_) | Entity::Extern(_)));
        let candidates = functions.iter().map(|name| name.as_str()).chain(PREDECLARED);
        let list = vec!["int"; arguments.len()].join(", ");
        let declare = format!("a function of C is declared, as in `extern fn {}({list}) -> int;`", name.text);
        let help = match (foreign::instead_of_call(&name.text), nearest(&name.text, candidates)) {
            (Some(help), _) => help.to_string(),
            (None, Some(near)) if PREDECLARED.contains(&near) => format!("did you mean `{near}`?"),
            (None, Some(near)) => format!("did you mean `{near}`? {declare}"),
            (None, None) if is_message => "the operations on a channel are `out(c, e);` and `in(c, $x);`".to_string(),
            (None, None) if self.checker.case_with_payload(&name.text) => {
                format!("the case of a union is written `{} |> ..`", name.text)
            }
            (None, None) => declare,
        };
        let message = format!("no function named `{}`", name.text);
        self.checker.report(Diagnostic::new(Code::E0208, name.span, message).help(help));
    }

    /// E0501, E0504: an impure function where only pure ones may be called.
    fn reject_impure(&mut self, id: ExternId, name: &ast::Name, span: Span) {
        if self.checker.externs[id.0 as usize].hir.purity == Purity::Pure {
            return;
        }
        match self.kind {
            BodyKind::Function(_) => return self.effect(&name.text, name.span),
            BodyKind::Predicate(_) => {
                let message = format!("`{}` is not pure", self.checker.text(span));
                let diagnostic = Diagnostic::new(Code::E0705, span, message)
                    .help(format!("`{}` has effects; declare it `pure` if it has none", name.text));
                return self.checker.report(diagnostic);
            }
            BodyKind::Constant | BodyKind::Process(_) | BodyKind::Environment | BodyKind::Interface => {}
        }
        let Some(context) = self.pure_context else { return };
        let message = format!("`{}` has effects and cannot be used in {}", name.text, context.place());
        let diagnostic =
            Diagnostic::new(Code::E0504, span, message).help("call it before the `alt`, or declare it `pure`");
        self.checker.report(diagnostic);
    }

    /// E0206.
    pub(super) fn wrong_count(
        &mut self,
        name: &ast::Name,
        given: usize,
        wanted: usize,
        span: Span,
        declared: Option<Span>,
    ) {
        let given = counted(given, "argument");
        let diagnostic = match declared {
            Some(declared) => {
                let message = format!("`{}` is called with {given} here and takes {wanted}", name.text);
                Diagnostic::new(Code::E0206, span, message).label(declared, format!("`{}` is declared here", name.text))
            }
            None => {
                let wanted = counted(wanted, "argument");
                Diagnostic::new(Code::E0206, span, format!("`{}` takes {wanted}, found {given}", name.text))
            }
        };
        self.checker.report(diagnostic);
    }

    fn function_arguments(
        &mut self,
        id: FnId,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Vec<hir::Expr>> {
        let entry = &self.checker.functions[id.0 as usize];
        let (parameters, result, declared) = (entry.parameters.clone(), entry.result, entry.item.name.span);
        if parameters.len() != arguments.len() {
            self.wrong_count(name, arguments.len(), parameters.len(), span, Some(declared));
            arguments.iter().for_each(|argument| self.absorb(argument));
            return None;
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(parameters) {
            let value = self.check(argument, ty, Use::Read);
            values.push(self.freeze_if_aliased(value, result));
        }
        Some(values)
    }

    /// A mutable object lent to a function whose result may hold it is frozen, so that the result does not change.
    fn freeze_if_aliased(&mut self, value: hir::Expr, result: TypeId) -> hir::Expr {
        let ExprKind::Local(id) = value.kind else { return value };
        let Type::Boxed(pool) = *self.checker.types.get(value.ty) else { return value };
        if self.local(id).mutability == Mutability::Immutable || !self.checker.holds_pool(result, pool) {
            return value;
        }
        let (ty, span) = (value.ty, value.span);
        hir::Expr { kind: ExprKind::Freeze(Box::new(value)), ty, span }
    }

    fn extern_arguments(
        &mut self,
        id: ExternId,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Vec<Argument>> {
        let entry = &self.checker.externs[id.0 as usize];
        let (parameters, result, first) = (entry.hir.parameters.clone(), entry.hir.result, entry.hir.span);
        let purity = entry.hir.purity;
        if parameters.len() != arguments.len() {
            self.wrong_count(name, arguments.len(), parameters.len(), span, Some(first));
            arguments.iter().for_each(|argument| self.absorb(argument));
            return None;
        }
        let mut values = Some(Vec::with_capacity(arguments.len()));
        for (argument, (_, ty, mutability)) in arguments.iter().zip(parameters) {
            let value = match (mutability, purity) {
                (Mutability::Mutable, _) => self.mutable_argument(argument, ty),
                (Mutability::Immutable, Purity::Pure) => {
                    let value = self.check(argument, ty, Use::Read);
                    Some(Argument::Value(self.freeze_if_aliased(value, result.unwrap_or(TypeTable::ERROR))))
                }
                (Mutability::Immutable, Purity::Impure) => Some(Argument::Value(self.check(argument, ty, Use::Own))),
            };
            match value {
                Some(value) => values.iter_mut().for_each(|values| values.push(value.clone())),
                None => values = None,
            }
        }
        values
    }

    /// A place an extern function may write. Its type must be the parameter's: the function could break any other.
    fn mutable_argument(&mut self, argument: &'a ast::Expr, ty: TypeId) -> Option<Argument> {
        if ty == TypeTable::ERROR {
            self.absorb(argument);
            return None;
        }
        let wanted = self.checker.value_type_name(ty, Mutability::Mutable);
        let Some((name, path)) = expression_place(argument) else {
            self.absorb(argument);
            let message = format!("expected a variable of type `{wanted}`");
            self.checker.error(Code::E0302, argument.span, message);
            return None;
        };
        let base = self.place_base(name, super::places::Intent::Assign)?;
        if self.reject_assigned(base, name) {
            return None;
        }
        self.read_local(base, name.span);
        let mut place = self.place(base, &path, argument.span, name.span)?;
        if self.checker.content(place.ty) == ty && place.ty != ty && path.is_empty() {
            place.path.push(hir::PlaceStep::Content);
            place.ty = ty;
        }
        if place.ty != ty {
            let message = format!("expected `{wanted}`, found `{}`", self.checker.type_name(place.ty));
            self.checker.error(Code::E0302, argument.span, message);
            return None;
        }
        let mutable = self.local(base).mutability == Mutability::Mutable;
        if !mutable && self.effective(ty, Mutability::Mutable) == Mutability::Mutable {
            let local = self.local(base);
            let message = format!("`{}` is immutable", local.name);
            let diagnostic = Diagnostic::new(Code::E0306, argument.span, message)
                .label(local.span, format!("`{}` is declared here", local.name))
                .help(format!("declare it `{wanted}`"));
            self.checker.report(diagnostic);
            return None;
        }
        Some(Argument::Mutable(place))
    }

    /// Whether the pattern under check assigns this variable.
    fn reject_assigned(&mut self, id: hir::LocalId, name: &ast::Name) -> bool {
        let assigned = self.pattern.active && self.pattern.assigned.contains(&id);
        if assigned {
            let message = format!("`{}` is assigned by this pattern and cannot be read in it", name.text);
            self.checker.error(Code::E0403, name.span, message);
        }
        assigned
    }
}
