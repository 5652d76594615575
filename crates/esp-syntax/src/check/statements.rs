//! Statements: bodies of processes, environments and functions (reference, section 4).

use super::body::{Body, BodyFacts, BodyKind, Role};
use super::coerce::Use;
use super::coverage;
use super::expressions::{Typed, Value, is_shift};
use super::names::{Checker, FunctionProgress};
use super::places::{Intent, steps};
use super::templates::Bindings;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::hir::{self, BinaryOperator, ExprKind, FnId, LocalId, Mutability, ProcessId, Stmt, StmtKind};
use crate::span::Span;
use crate::types::{IntType, Type, TypeId, TypeTable};
use smol_str::SmolStr;

/// Checks every function and process.
pub(super) fn check_bodies(checker: &mut Checker) {
    for index in 0..checker.functions.len() {
        if checker.has_reached_error_limit() {
            return;
        }
        check_function(checker, FnId(index as u32));
    }
    for index in 0..checker.processes.len() {
        if checker.has_reached_error_limit() {
            return;
        }
        let item = checker.processes[index].item;
        let replicas = checker.processes[index].replicas;
        let bindings = checker.processes[index].bindings;
        let kind = BodyKind::Process(ProcessId(index as u32));
        let (process, facts) = check_process(checker, item, bindings, replicas, kind);
        let entry = &mut checker.processes[index];
        (entry.hir, entry.facts) = (Some(process), facts);
    }
}

/// Checks the functions that an expression calls, and those that they call.
pub(super) fn check_callees(checker: &mut Checker, expr: &hir::Expr) {
    let mut pending = Vec::new();
    super::walk::nested(expr, &mut |part| {
        if let ExprKind::CallFn(id, _) = part.kind {
            pending.push(id);
        }
    });
    while let Some(id) = pending.pop() {
        if checker.functions[id.0 as usize].progress != FunctionProgress::Body {
            check_function(checker, id);
            pending.extend(checker.functions[id.0 as usize].calls.iter().map(|(callee, _)| *callee));
        }
    }
}

/// Checks the body of a function, once.
fn check_function(checker: &mut Checker, id: FnId) {
    super::signatures::resolve_function(checker, id);
    let entry = &mut checker.functions[id.0 as usize];
    if entry.progress == FunctionProgress::Body {
        return;
    }
    entry.progress = FunctionProgress::Body;
    let errors = checker.error_count();
    let entry = &checker.functions[id.0 as usize];
    let (item, types, result) = (entry.item, entry.parameters.clone(), entry.result);
    let mut body = Body::new(checker, BodyKind::Function(id));
    for ((name, _), ty) in item.parameters.iter().zip(types) {
        body.declare(name, Some(ty), Mutability::Immutable, Role::Parameter);
    }
    let statements = body.block(&item.body);
    let function = hir::Function {
        name: item.name.text.clone(),
        locals: body.hir_locals(),
        parameters: item.parameters.len() as u32,
        result,
        body: statements,
        span: item.name.span,
    };
    let (facts, calls) = (std::mem::take(&mut body.facts), std::mem::take(&mut body.calls));
    let entry = &mut checker.functions[id.0 as usize];
    (entry.hir, entry.facts, entry.calls) = (Some(function), facts, calls);
    checker.functions[id.0 as usize].is_faulty = checker.error_count() > errors;
}

/// Checks the body of a process or environment.
pub(super) fn check_process<'a>(
    checker: &mut Checker<'a>,
    item: &'a ast::Process,
    bindings: Option<Bindings<'a>>,
    replicas: u32,
    kind: BodyKind,
) -> (hir::Process, BodyFacts) {
    let mut body = Body::new(checker, kind);
    if let Some(bindings) = bindings {
        body.bind_arguments(bindings);
    }
    let statements = body.block(&item.body);
    let process = hir::Process {
        name: item.name.text.clone(),
        replicas,
        replicated: item.replicas.is_some(),
        locals: body.hir_locals(),
        labels: std::mem::take(&mut body.labels),
        sites: std::mem::take(&mut body.sites),
        body: statements,
        span: item.name.span,
    };
    (process, std::mem::take(&mut body.facts))
}

/// The type a `var` declares.
#[derive(Clone, Copy)]
struct Annotation {
    form: AnnotationForm,
    mutability: Mutability,
}

#[derive(Clone, Copy)]
enum AnnotationForm {
    Whole(TypeId),
    /// `array of T`: the initialiser gives the length.
    OpenArray(TypeId),
}

impl<'a> Body<'_, 'a> {
    /// A block with its own scope.
    pub(super) fn block(&mut self, block: &'a ast::Block) -> Vec<Stmt> {
        let scope = self.enter();
        let statements = self.block_items(&block.items);
        self.leave(scope);
        statements
    }

    fn block_items(&mut self, items: &'a [ast::BlockItem]) -> Vec<Stmt> {
        let mut statements = Vec::with_capacity(items.len());
        let mut index = 0;
        while let Some(item) = items.get(index) {
            if self.checker.has_reached_error_limit() {
                break;
            }
            index += 1;
            if !matches!(item, ast::BlockItem::Label(_) | ast::BlockItem::Stmt(_)) {
                self.labels_before.clear();
            }
            match item {
                ast::BlockItem::Label(label) => self.label(label, &mut statements),
                ast::BlockItem::Const(item) => {
                    let value = self.constant_item(item);
                    self.declare_constant(&item.name, value);
                }
                ast::BlockItem::Stmt(stmt) => self.statement(stmt, &mut statements),
                ast::BlockItem::Var(first) => {
                    let group: Vec<&'a ast::Var> = items[index - 1..]
                        .iter()
                        .map_while(|item| match item {
                            ast::BlockItem::Var(var) if var.group == first.group => Some(var),
                            _ => None,
                        })
                        .collect();
                    index += group.len() - 1;
                    self.variables(&group, &mut statements);
                }
            }
        }
        statements
    }

    fn label(&mut self, label: &'a ast::Label, statements: &mut Vec<Stmt>) {
        self.labels_before.push(label.text.clone());
        if let BodyKind::Function(_) = self.kind {
            return;
        }
        // Each expansion of a procedure has labels of its own.
        let is_same = |(text, span): &&(_, Span)| *text == label.text && span.file == label.span.file;
        if self.facts.label_names.contains_key(&label.text)
            && let Some((_, first)) = self.labels.iter().find(is_same).cloned()
        {
            let message = match self.kind {
                BodyKind::Process(id) => {
                    let process = &self.checker.processes[id.0 as usize].item.name.text;
                    format!("label `#{}` is used twice in process `{process}`", label.text)
                }
                _ => format!("label `#{}` is used twice", label.text),
            };
            let diagnostic = Diagnostic::new(Code::E0207, label.span, message).label(first, "first used here");
            self.checker.report(diagnostic);
        }
        let id = self.add_label(label);
        statements.push(Stmt { kind: StmtKind::Label(id), span: label.span });
    }

    /// The declarators of one `var`. A name without type and value takes the type written later in the same `var`
    /// (section 4).
    fn variables(&mut self, group: &[&'a ast::Var], statements: &mut Vec<Stmt>) {
        let mut annotations: Vec<Option<Annotation>> = Vec::with_capacity(group.len());
        let mut written: Option<Annotation> = None;
        for var in group.iter().rev() {
            written = match (&var.ty, &var.value) {
                (Some(ty), _) => Some(self.annotation(ty)),
                (None, Some(_)) => None,
                (None, None) => written,
            };
            annotations.push(written);
        }
        for (var, annotation) in group.iter().zip(annotations.into_iter().rev()) {
            if self.checker.has_reached_error_limit() {
                return;
            }
            self.variable(var, annotation, statements);
        }
    }

    fn annotation(&mut self, written: &'a ast::ValueType) -> Annotation {
        let form = match &written.ty.kind {
            ast::TypeKind::Array(None, element) => AnnotationForm::OpenArray(self.resolve_type(element)),
            _ => AnnotationForm::Whole(self.resolve_type(&written.ty)),
        };
        Annotation { form, mutability: written.mutability }
    }

    fn variable(&mut self, var: &'a ast::Var, annotation: Option<Annotation>, statements: &mut Vec<Stmt>) {
        let span = var.name.span;
        if let Some(value) = &var.value {
            self.expand_in(value, statements);
        }
        let (ty, mutability, value) = match (annotation, &var.value) {
            (None, None) => (None, Mutability::Immutable, None),
            (None, Some(value)) => {
                let value = self.synth_typed(value);
                let (ty, mutability) = (value.expr.ty, value.mutability);
                let need = if mutability == Mutability::Mutable { Use::Mutable } else { Use::Own };
                (Some(ty), mutability, Some(self.coerce(value, ty, need)))
            }
            (Some(Annotation { form: AnnotationForm::Whole(ty), mutability }), value) => {
                let value = value.as_ref().map(|value| self.check(value, ty, self.need(ty, mutability)));
                (Some(ty), mutability, value)
            }
            (Some(Annotation { form: AnnotationForm::OpenArray(element), mutability }), Some(value)) => {
                let (ty, value) = self.open_array(value, element, mutability);
                (Some(ty), mutability, Some(value))
            }
            (Some(Annotation { form: AnnotationForm::OpenArray(_), mutability }), None) => {
                let message = format!("the length of `{}` is not known", var.name.text);
                let help = "write `array[N] of ..`, or give it a first value";
                self.checker.report(Diagnostic::new(Code::E0309, span, message).help(help));
                (Some(TypeTable::ERROR), mutability, None)
            }
        };
        let id = self.declare(&var.name, ty, mutability, Role::Variable);
        let kind = match value {
            None => StmtKind::Declare(id),
            Some(value) => {
                let ty = ty.unwrap_or(TypeTable::ERROR);
                StmtKind::Assign(hir::Place { base: id, path: Vec::new(), ty, span }, value)
            }
        };
        statements.push(Stmt { kind, span });
    }

    /// How a variable of this type takes a value.
    fn need(&self, ty: TypeId, mutability: Mutability) -> Use {
        match self.effective(ty, mutability) {
            Mutability::Mutable => Use::Mutable,
            Mutability::Immutable => Use::Own,
        }
    }

    /// `var q: array of T = e`: the initialiser gives the length.
    fn open_array(&mut self, value: &'a ast::Expr, element: TypeId, mutability: Mutability) -> (TypeId, hir::Expr) {
        let length = match &value.kind {
            ast::ExprKind::Array(_, elements) => u32::try_from(elements.len()).ok(),
            ast::ExprKind::Repeat(_, _, count) => self.repeat_count(count),
            _ => {
                let value = self.synth_typed(value);
                let ty = value.expr.ty;
                match *self.checker.types.get(self.checker.content(ty)) {
                    Type::Array { element: found, .. } if found == element => {
                        let ty = self.checker.content(ty);
                        let need = self.need(ty, mutability);
                        return (ty, self.coerce(value, ty, need));
                    }
                    _ => {
                        let expected = format!("`array of {}`", self.checker.type_name(element));
                        if element != TypeTable::ERROR {
                            self.expected_kind(&expected, ty, value.expr.span);
                        }
                        return (TypeTable::ERROR, value.expr);
                    }
                }
            }
        };
        let ty = match length {
            Some(length) if length > 0 && element != TypeTable::ERROR => {
                let ty = self.checker.types.intern(Type::Array { length, element });
                self.checker.limited(ty, value.span)
            }
            Some(_) | None => TypeTable::ERROR,
        };
        let need = self.need(ty, mutability);
        let value = self.check(value, ty, need);
        (ty, value)
    }

    /// A single statement as a body, without braces: with a scope of its own.
    fn nested(&mut self, stmt: &'a ast::Stmt) -> Vec<Stmt> {
        match &stmt.kind {
            ast::StmtKind::Block(block) => self.block(block),
            _ => {
                let scope = self.enter();
                let mut statements = Vec::with_capacity(1);
                self.statement(stmt, &mut statements);
                self.leave(scope);
                statements
            }
        }
    }

    fn looped(&mut self, stmt: &'a ast::Stmt, labels: Vec<SmolStr>) -> Vec<Stmt> {
        self.loops.push(labels);
        let body = self.nested(stmt);
        self.loops.pop();
        body
    }

    fn statement(&mut self, stmt: &'a ast::Stmt, statements: &mut Vec<Stmt>) {
        let labels = std::mem::take(&mut self.labels_before);
        let kind = match &stmt.kind {
            ast::StmtKind::Error => None,
            ast::StmtKind::Block(block) => Some(StmtKind::Block(self.block(block))),
            ast::StmtKind::If(condition, then, otherwise) => {
                let condition = self.condition(condition);
                let then = self.nested(then);
                let otherwise = otherwise.as_ref().map(|otherwise| self.nested(otherwise)).unwrap_or_default();
                Some(StmtKind::If(condition, then, otherwise))
            }
            ast::StmtKind::While(condition, body) => {
                let condition = condition.as_ref().map(|condition| self.condition(condition));
                // A constant true condition is none: section 5 treats both alike.
                let condition = condition.filter(|condition| {
                    condition.ty == TypeTable::ERROR || !matches!(condition.kind, ExprKind::Constant(1))
                });
                Some(StmtKind::While(condition, self.looped(body, labels)))
            }
            ast::StmtKind::For(name, from, to, body) => Some(self.for_loop(name, (from, to), body, labels)),
            ast::StmtKind::Match(value, arms) => Some(self.match_statement(value, arms, stmt.span)),
            ast::StmtKind::Break(label) => self.jump(stmt.span, "break", label.as_ref()).map(StmtKind::Break),
            ast::StmtKind::Continue(label) => self.jump(stmt.span, "continue", label.as_ref()).map(StmtKind::Continue),
            ast::StmtKind::Yield => {
                self.effect("yield", stmt.span);
                Some(StmtKind::Yield)
            }
            ast::StmtKind::Return(value) => match self.return_from_procedure(value.as_ref(), stmt.span, statements) {
                Some(()) => None,
                None => value.as_ref().and_then(|value| self.return_statement(value, stmt.span)),
            },
            ast::StmtKind::Exit(status) => {
                self.effect("exit", stmt.span);
                Some(StmtKind::Exit(self.any_integer(status)))
            }
            ast::StmtKind::Assert(condition, message) => {
                if let Some(message) = message {
                    self.checker.assert_messages.push((stmt.span, message.clone()));
                }
                Some(StmtKind::Assert(self.condition(condition)))
            }
            ast::StmtKind::Communicate(communicate) => Some(self.communicate(communicate, stmt.span)),
            ast::StmtKind::Call(name, arguments) => match self.procedure(name) {
                Some(procedure) => {
                    self.expand(procedure, name, arguments, stmt.span, statements);
                    None
                }
                None => self.call_statement(name, arguments, stmt.span),
            },
            ast::StmtKind::Assign(place, ast::AssignOperator::Set, value) => {
                self.expand_in(value, statements);
                self.assign(place, value)
            }
            ast::StmtKind::Assign(place, ast::AssignOperator::Update(operator), value) => {
                self.expand_in(value, statements);
                self.update(place, *operator, value)
            }
        };
        if let Some(kind) = kind {
            statements.push(Stmt { kind, span: stmt.span });
        }
    }

    /// The loop that a `break` or `continue` means, as the number of loops between it and the statement.
    fn jump(&mut self, span: Span, word: &str, label: Option<&ast::Label>) -> Option<u32> {
        if self.loops.is_empty() {
            let help = "`break` and `continue` belong to a `while` or `for`; a process ends behind its last statement";
            self.checker.report(Diagnostic::new(Code::E0506, span, format!("`{word}` outside a loop")).help(help));
            return None;
        }
        let Some(label) = label else { return Some(0) };
        if let Some(between) = self.loops.iter().rev().position(|labels| labels.contains(&label.text)) {
            self.record_label(label);
            return Some(between as u32);
        }
        let message = format!("no loop around this `{word}` has the label `#{}`", label.text);
        let mut diagnostic = Diagnostic::new(Code::E0506, label.span, message);
        let labels = self.loops.iter().flatten().map(|label| label.as_str());
        diagnostic = match nearest(&label.text, labels) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("label the loop, as in `#{} while {{ .. }}`", label.text)),
        };
        self.checker.report(diagnostic);
        None
    }

    fn return_statement(&mut self, value: &'a ast::Expr, span: Span) -> Option<StmtKind> {
        match self.kind {
            BodyKind::Function(id) => {
                let result = self.checker.functions[id.0 as usize].result;
                Some(StmtKind::Return(self.check(value, result, Use::Own)))
            }
            BodyKind::Constant
            | BodyKind::Process(_)
            | BodyKind::Environment
            | BodyKind::Interface
            | BodyKind::Predicate(_) => {
                self.absorb(value);
                let message = "`return` outside a function";
                let help = "a process ends where its body ends; `exit` ends the program";
                self.checker.report(Diagnostic::new(Code::E0506, span, message).help(help));
                None
            }
        }
    }

    /// Both ends have the counter's type, their common one.
    fn for_loop(
        &mut self,
        name: &'a ast::Name,
        (from, to): (&'a ast::Expr, &'a ast::Expr),
        body: &'a ast::Block,
        labels: Vec<SmolStr>,
    ) -> StmtKind {
        let span = from.span.to(to.span);
        let (from, to) = (self.synth(from), self.synth(to));
        let ends = self.range_ends(from, to, span);
        let scope = self.enter();
        let (ty, from, to) = match ends {
            Some((from, to, ty)) => (ty, from, to),
            None => {
                let error = super::constants::error_expr(span);
                (TypeTable::ERROR, error.clone(), error)
            }
        };
        let id = self.declare(name, Some(ty), Mutability::Immutable, Role::Counter);
        self.loops.push(labels);
        let body = self.block(body);
        self.loops.pop();
        self.leave(scope);
        StmtKind::For(id, from, to, body)
    }

    fn range_ends(&mut self, from: Value, to: Value, span: Span) -> Option<(hir::Expr, hir::Expr, TypeId)> {
        for end in [&from, &to] {
            if let Value::Typed(end) = end
                && self.int_type(end.expr.ty).is_none()
            {
                self.expected_kind("an integer", end.expr.ty, end.expr.span);
                return None;
            }
        }
        self.common_integers(from, to, span)
    }

    fn match_statement(&mut self, value: &'a ast::Expr, arms: &'a [(ast::Pattern, ast::Stmt)], span: Span) -> StmtKind {
        let Typed { expr: mut scrutinee, mutability } = self.synth_typed(value);
        if mutability == Mutability::Mutable {
            // Names bound to parts must not change with the object: they are copies of parts of its content.
            scrutinee = self.unbox(scrutinee);
        }
        let ty = scrutinee.ty;
        let mut resolved = Vec::with_capacity(arms.len());
        let mut patterns_are_sound = true;
        for (pattern, stmt) in arms {
            let scope = self.enter();
            let before = self.checker.errors;
            let mut patterns = self.patterns(std::slice::from_ref(pattern), &[ty]);
            patterns_are_sound &= before == self.checker.errors;
            let body = self.nested(stmt);
            self.leave(scope);
            if let Some(pattern) = patterns.pop() {
                resolved.push((pattern, body));
            }
        }
        if patterns_are_sound && ty != TypeTable::ERROR {
            let own = self.own_process();
            let place = Span { end: value.span.end.max(span.start), ..span };
            coverage::check_match(self.checker, &resolved, ty, own, place);
        }
        StmtKind::Match(scrutinee, resolved)
    }

    fn assign(&mut self, place: &'a ast::Place, value: &'a ast::Expr) -> Option<StmtKind> {
        let Some(base) = self.place_base(&place.base, Intent::Assign) else {
            steps(place).iter().for_each(|step| {
                if let super::places::Step::Index(index) = step {
                    self.absorb(index);
                }
            });
            self.absorb(value);
            return None;
        };
        if place.path.is_empty() {
            return Some(self.assign_whole(base, place.span, value));
        }
        let Some(target) = self.place(base, &steps(place), place.span, place.base.span) else {
            self.absorb(value);
            return None;
        };
        let slice = matches!(target.path.last(), Some(hir::PlaceStep::Slice(..)));
        let need = if slice { Use::Read } else { Use::Own };
        let value = self.check(value, target.ty, need);
        Some(StmtKind::Assign(target, value))
    }

    fn assign_whole(&mut self, base: LocalId, span: Span, value: &'a ast::Expr) -> StmtKind {
        let place = |ty| hir::Place { base, path: Vec::new(), ty, span };
        let Some(ty) = self.local(base).ty else {
            let value = self.synth_typed(value);
            let (ty, mutability) = (value.expr.ty, value.mutability);
            let need = if mutability == Mutability::Mutable { Use::Mutable } else { Use::Own };
            let value = self.coerce(value, ty, need);
            self.infer(base, ty, mutability);
            return StmtKind::Assign(place(ty), value);
        };
        let need = self.need(ty, self.local(base).mutability);
        let value = self.check(value, ty, need);
        StmtKind::Assign(place(ty), value)
    }

    /// `x[i] += e` means `x[i] = T(x[i] + e)`, T the type of `x[i]` (section 3).
    fn update(&mut self, place: &'a ast::Place, operator: BinaryOperator, value: &'a ast::Expr) -> Option<StmtKind> {
        let Some(base) = self.place_base(&place.base, Intent::Assign) else {
            self.absorb(value);
            return None;
        };
        if self.local(base).ty.is_none() {
            self.read_local(base, place.base.span);
        }
        let Some(place) = self.place(base, &steps(place), place.span, place.base.span) else {
            self.absorb(value);
            return None;
        };
        if let Type::Bytes { .. } = self.checker.types.get(self.checker.content(place.ty)) {
            return self.append(place, operator, value);
        }
        if self.is_clock_type(place.ty) {
            return self.update_clock(place, operator, value);
        }
        let Some(int) = self.int_type(place.ty) else {
            self.absorb(value);
            self.expected_kind("an integer", place.ty, place.span);
            return None;
        };
        if is_shift(operator) {
            let (ty, value) = (place.ty, self.any_integer(value));
            return Some(StmtKind::Update { place, operator, value, ty });
        }
        let value = match self.synth(value) {
            Value::Untyped(untyped) => self.fix(untyped, int),
            Value::Typed(value) => value.expr,
        };
        if value.ty == TypeTable::ERROR {
            return None;
        }
        let Some(found) = self.int_type(value.ty) else {
            self.mismatch(place.ty, value.ty, value.span);
            return None;
        };
        if found.widens_to(int) {
            let (ty, value) = (place.ty, self.convert_int(value, int));
            Some(StmtKind::Update { place, operator, value, ty })
        } else if int.widens_to(found) {
            let ty = value.ty;
            Some(StmtKind::Update { place, operator, value, ty })
        } else {
            let span = place.span.to(value.span);
            self.no_common_type(place.ty, value.ty, value.span, span);
            None
        }
    }

    /// `p += q` on `bytes`.
    fn append(&mut self, mut place: hir::Place, operator: BinaryOperator, value: &'a ast::Expr) -> Option<StmtKind> {
        let whole = place.path.is_empty();
        let slice = matches!(place.path.last(), Some(hir::PlaceStep::Slice(..)));
        if operator != BinaryOperator::Add || slice {
            self.absorb(value);
            self.expected_kind("an integer", place.ty, place.span);
            return None;
        }
        if whole && self.local(place.base).mutability == Mutability::Immutable {
            self.absorb(value);
            let local = self.local(place.base);
            let help = format!("declare it `#{}`", self.checker.type_name(place.ty));
            let diagnostic = Diagnostic::new(Code::E0306, place.span, format!("`{}` is immutable", local.name))
                .label(local.span, format!("`{}` is declared here", local.name))
                .help(help);
            self.checker.report(diagnostic);
            return None;
        }
        let content = self.checker.content(place.ty);
        if content != place.ty {
            if !whole {
                let message =
                    format!("this part is boxed (`{}`), its content is immutable", self.checker.type_name(place.ty));
                self.checker.report(Diagnostic::new(Code::E0306, place.span, message).help("replace the part whole"));
                return None;
            }
            place.path.push(hir::PlaceStep::Content);
            place.ty = content;
        }
        let value = match self.synth(value) {
            Value::Untyped(byte) => self.fix(byte, IntType::U8),
            Value::Typed(value) => self.unbox(value.expr),
        };
        match self.checker.types.get(value.ty) {
            Type::Error => None,
            // A byte: the operation is that on `bytes` of one.
            Type::Int(IntType::U8) if self.int_type(value.ty).is_some() => {
                let ty = self.checker.types.intern(Type::Bytes { bound: 1 });
                Some(StmtKind::Update { place, operator, value, ty })
            }
            Type::Int(_) if self.int_type(value.ty).is_some() => {
                self.mismatch(TypeTable::U8, value.ty, value.span);
                None
            }
            Type::Bytes { .. } => {
                let ty = place.ty;
                Some(StmtKind::Update { place, operator, value, ty })
            }
            _ => {
                self.mismatch(place.ty, value.ty, value.span);
                None
            }
        }
    }
}
