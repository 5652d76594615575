//! Calls of procedures: the body of the procedure, checked once more at the place of the call. So ports, patterns, idle
//! points and assignments are those of the process that calls. The names of the caller are not visible in it; a
//! parameter by reference is another name of the caller's variable, a channel another name of the channel.

use super::assigned;
use super::body::{Binding, Body, BodyKind, Role};
use super::coerce::Use;
use super::flow;
use super::literals::counted;
use super::names::{Entity, Named};
use super::relocate::Relocate;
use crate::ast::{self, ParameterKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, Boundary, ChannelId, Direction, ExprKind, LocalId, Mutability, Stmt, StmtKind};
use crate::parser::MAX_DEPTH;
use crate::span::{Expansion, Span};
use crate::types::{TypeId, TypeTable};

/// The maximum number of bytes of text that all expansions of a program repeat.
const MAX_EXPANDED_BYTES: usize = 4 << 20;
/// The maximum number of calls inside of each other.
const MAX_CALL_DEPTH: usize = 32;

/// A procedure.
pub(super) struct ProcedureEntry<'a> {
    pub(super) item: &'a ast::Procedure,
    /// How often it is expanded.
    pub(super) uses: u32,
    /// How deep statements and expressions are nested in its text, roughly.
    depth: u32,
}

impl<'a> ProcedureEntry<'a> {
    pub(super) fn new(item: &'a ast::Procedure) -> ProcedureEntry<'a> {
        ProcedureEntry { item, uses: 0, depth: block_depth(&item.body) }
    }
}

/// A procedure that is being expanded.
pub(super) struct Frame {
    procedure: usize,
    /// The variable that takes the result, and its type.
    result: Option<(LocalId, TypeId)>,
}

/// One end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChannelEnd {
    pub(super) channel: ChannelId,
    /// The direction that a parameter allows; none for the channel itself.
    pub(super) allowed: Option<Direction>,
}

/// What an argument gives to its parameter.
pub(super) enum Given {
    Value(hir::Expr),
    Variable(LocalId),
    Channel(ChannelEnd),
}

impl<'a> Body<'_, 'a> {
    /// If a right side is a call of a procedure, appends its expansion, and keeps the result for the right side.
    pub(super) fn expand_in(&mut self, value: &'a ast::Expr, statements: &mut Vec<Stmt>) {
        if let ast::ExprKind::Call(name, arguments) = &value.kind
            && let Some(procedure) = self.procedure(name)
        {
            let result = self.expand_for_result(procedure, name, arguments, value.span, statements);
            self.expanded = Some((value.span, result));
        }
    }

    /// The procedure of this name.
    pub(super) fn procedure(&self, name: &ast::Name) -> Option<usize> {
        match self.checker.find(name) {
            Some(Named { entity: Entity::Procedure(procedure), .. }) if self.find(name).is_none() => Some(procedure),
            Some(_) | None => None,
        }
    }

    /// A call whose result is needed: appends the expansion and returns the variable that holds the result.
    fn expand_for_result(
        &mut self,
        procedure: usize,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
        statements: &mut Vec<Stmt>,
    ) -> hir::Expr {
        let error = super::constants::error_expr(span);
        if self.checker.procedures[procedure].item.result.is_none() {
            self.checker.error(Code::E0302, span, format!("`{}` has no result", name.text));
            arguments.iter().for_each(|argument| self.absorb_argument(argument));
            return error;
        }
        let Some(result) = self.expand(procedure, name, arguments, span, statements) else { return error };
        let Some((id, ty)) = result else { return error };
        self.read_local(id, span);
        hir::Expr { kind: ExprKind::Local(id), ty, span }
    }

    /// Appends the expansion of a call; returns the variable that holds the result, if there is one. None after an
    /// error.
    pub(super) fn expand(
        &mut self,
        procedure: usize,
        name: &'a ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
        statements: &mut Vec<Stmt>,
    ) -> Option<Option<(LocalId, TypeId)>> {
        self.checker.procedures[procedure].uses += 1;
        if let BodyKind::Function(_) = self.kind {
            self.effect(&name.text, name.span);
            return None;
        }
        let written = self.checker.procedures[procedure].item;
        if arguments.len() != written.parameters.len() {
            self.wrong_count(name, arguments.len(), written.parameters.len(), span, Some(written.name.span));
            arguments.iter().for_each(|argument| self.absorb_argument(argument));
            return None;
        }
        if !self.may_expand(procedure, name.span) {
            arguments.iter().for_each(|argument| self.absorb_argument(argument));
            return None;
        }
        let text = written.name.span.to(written.body.span);
        let expansion = Expansion { text, callee: name.text.to_string(), call: span };
        let Some(file) = self.checker.sources.expand(expansion) else {
            self.too_large(span);
            return None;
        };
        let mut copy = written.clone();
        copy.relocate(file);
        let copies = self.checker.copies;
        let item: &'a ast::Procedure = copies.procedures.alloc(copy);
        let given: Vec<Option<Given>> = item
            .parameters
            .iter()
            .zip(arguments)
            .map(|(parameter, argument)| self.argument(parameter, argument))
            .collect();
        let result = item.result.as_ref().map(|ty| self.checker.resolve_type(ty));
        let outer = self.enter_expansion();
        let mut inside = Vec::with_capacity(item.body.items.len() + given.len());
        for (parameter, given) in item.parameters.iter().zip(given) {
            self.give(parameter, given, &mut inside);
        }
        let result = self.procedure_body(procedure, item, result.map(|ty| (ty, span)), &mut inside);
        self.leave_expansion(outer);
        statements.push(Stmt { kind: StmtKind::Inline(inside), span });
        Some(result)
    }

    /// Checks the body of a procedure, whose parameters are visible, and whose result, if it has one, goes to a call;
    /// returns the variable of the result.
    fn procedure_body(
        &mut self,
        procedure: usize,
        item: &'a ast::Procedure,
        result: Option<(TypeId, Span)>,
        inside: &mut Vec<Stmt>,
    ) -> Option<(LocalId, TypeId)> {
        let result = result.map(|(ty, call)| {
            let hidden = ast::Name { text: "result".into(), span: call };
            let id = self.add_local(&hidden, Some(ty), Mutability::Immutable, Role::Result);
            // That it has a value is reported as E0502.
            self.facts.locals[id.0 as usize].reported = true;
            (id, ty)
        });
        self.frames.push(Frame { procedure, result });
        inside.extend(self.block(&item.body));
        self.frames.pop();
        if result.is_some() && flow::can_end(inside) {
            let end = Span { start: item.body.span.end.saturating_sub(1), ..item.body.span };
            let message = format!("`proc {}` can end without `return`", item.name.text);
            let diagnostic = Diagnostic::new(Code::E0502, item.name.span, message)
                .label(end, "control can come here")
                .help("return a value on every path");
            self.checker.report(diagnostic);
        }
        result
    }

    /// Checks a procedure that nothing calls.
    pub(super) fn check_uncalled(&mut self, procedure: usize, item: &'a ast::Procedure) {
        self.bind_unknown(&item.parameters);
        let parameters = self.facts.locals.len();
        let result = item.result.as_ref().map(|ty| (self.checker.resolve_type(ty), item.name.span));
        let mut inside = Vec::new();
        self.procedure_body(procedure, item, result, &mut inside);
        self.hir_locals();
        let found = assigned::check_body(&mut self.facts, &inside, parameters);
        found.into_iter().for_each(|diagnostic| self.checker.report(diagnostic));
    }

    /// Whether one more expansion is possible: no recursion, within the limits.
    fn may_expand(&mut self, procedure: usize, span: Span) -> bool {
        if let Some(start) = self.frames.iter().position(|frame| frame.procedure == procedure) {
            let name = |frame: &Frame| self.checker.procedures[frame.procedure].item.name.clone();
            let cycle: Vec<ast::Name> = self.frames[start..].iter().map(name).collect();
            let first = &cycle[0];
            let shown: Vec<&str> = cycle.iter().take(8).map(|name| name.text.as_str()).collect();
            let dots = if cycle.len() > 8 { " -> .." } else { "" };
            let (name, shown) = (&first.text, shown.join(" -> "));
            let message = format!("`proc {name}` may not call itself: {shown}{dots} -> {name}");
            let diagnostic = Diagnostic::new(Code::E0501, span, message)
                .label(first.span, format!("`{name}` is declared here"))
                .help("use a loop");
            self.checker.report(diagnostic);
            return false;
        }
        let nested = |depth: u32| depth + self.checker.procedures[procedure].depth > MAX_DEPTH;
        let depth: u32 = self.frames.iter().map(|frame| self.checker.procedures[frame.procedure].depth).sum();
        let bytes = self.checker.sources.expanded_bytes();
        if self.frames.len() >= MAX_CALL_DEPTH || nested(depth) || bytes > MAX_EXPANDED_BYTES {
            self.too_large(span);
            return false;
        }
        true
    }

    fn too_large(&mut self, span: Span) {
        let message = "this call makes the program too large: each call repeats the text of its procedure";
        let help = "at most 32 calls are inside of each other, and all calls together repeat at most 4 MiB of text";
        self.checker.report(Diagnostic::new(Code::E0509, span, message).help(help));
    }

    /// Checks an argument in the scope of the caller. None after an error.
    fn argument(&mut self, parameter: &'a ast::Parameter, argument: &'a ast::Expr) -> Option<Given> {
        match &parameter.kind {
            ParameterKind::Channel(direction, types) => {
                let types: Vec<TypeId> = types.iter().map(|ty| self.checker.resolve_type(ty)).collect();
                self.channel_argument(*direction, &types, argument, &parameter.name).map(Given::Channel)
            }
            ParameterKind::Value(written) => {
                let ty = self.checker.resolve_type(&written.ty);
                match written.mutability {
                    Mutability::Immutable => Some(Given::Value(self.check(argument, ty, Use::Own))),
                    Mutability::Mutable => self.variable_argument(ty, argument).map(Given::Variable),
                }
            }
        }
    }

    /// The end of a channel that is passed to a parameter.
    pub(super) fn channel_argument(
        &mut self,
        direction: Direction,
        types: &[TypeId],
        argument: &'a ast::Expr,
        parameter: &ast::Name,
    ) -> Option<ChannelEnd> {
        let ast::ExprKind::Name(name) = &argument.kind else {
            self.absorb(argument);
            self.checker.error(Code::E0302, argument.span, format!("`{}` takes a channel", parameter.text));
            return None;
        };
        let end = self.channel_end(name)?;
        if self.reject_wrong_end(end, direction, name, argument.span) {
            return None;
        }
        let payload = &self.checker.channels[end.channel.0 as usize].hir.payload;
        let has_error = payload.iter().chain(types).any(|ty| *ty == TypeTable::ERROR);
        if payload != types && !has_error {
            let list = |types: &[TypeId]| {
                let names: Vec<String> = types.iter().map(|ty| self.checker.type_name(*ty)).collect();
                names.join(", ")
            };
            let message = format!(
                "channel `{}` carries ({}), and `{}` expects ({})",
                name.text,
                list(payload),
                parameter.text,
                list(types)
            );
            let declared = self.checker.channels[end.channel.0 as usize].hir.span;
            let diagnostic = Diagnostic::new(Code::E0302, argument.span, message)
                .label(declared, format!("`{}` is declared here", name.text));
            self.checker.report(diagnostic);
            return None;
        }
        Some(ChannelEnd { channel: end.channel, allowed: Some(direction) })
    }

    /// The channel of a name: a parameter of the procedure or template, or an item.
    pub(super) fn channel_end(&mut self, name: &ast::Name) -> Option<ChannelEnd> {
        match self.find(name) {
            Some(Binding::Channel(end)) => end,
            Some(Binding::Local(_) | Binding::Const(_)) | None => {
                self.checker.channel(name).map(|channel| ChannelEnd { channel, allowed: None })
            }
        }
    }

    /// E0408: an operation, or a parameter, of a direction that the channel does not have here.
    pub(super) fn reject_wrong_end(
        &mut self,
        end: ChannelEnd,
        direction: Direction,
        name: &ast::Name,
        span: Span,
    ) -> bool {
        let entry = &self.checker.channels[end.channel.0 as usize];
        let (boundary, declared) = (entry.hir.boundary, entry.hir.span);
        let word = match direction {
            Direction::In => "in",
            Direction::Out => "out",
        };
        let reason = match (self.kind, boundary, direction) {
            _ if end.allowed.is_some_and(|allowed| allowed != direction) => match direction {
                Direction::In => "an `out` parameter",
                Direction::Out => "an `in` parameter",
            },
            (BodyKind::Environment, _, _) | (_, Boundary::Internal, _) => return false,
            (_, Boundary::ToEnvironment, Direction::In) => "read by the environment",
            (_, Boundary::FromEnvironment, Direction::Out) => "written by the environment",
            (_, Boundary::ToEnvironment, Direction::Out) | (_, Boundary::FromEnvironment, Direction::In) => {
                return false;
            }
        };
        let message = format!("`{}` is {reason}, `{word}` is not possible", name.text);
        let diagnostic = Diagnostic::new(Code::E0408, span, message)
            .label(declared, format!("`{}` is declared here", self.checker.channels[end.channel.0 as usize].hir.name));
        self.checker.report(diagnostic);
        self.checker.channels[end.channel.0 as usize].tainted = true;
        true
    }

    /// The caller's variable that is passed by reference. Its type must be that of the parameter.
    fn variable_argument(&mut self, ty: TypeId, argument: &'a ast::Expr) -> Option<LocalId> {
        let ast::ExprKind::Name(name) = &argument.kind else {
            self.absorb(argument);
            let wanted = self.checker.value_type_name(ty, Mutability::Mutable);
            let message = format!("expected a variable of type `{wanted}`");
            let help = "a part is passed by a variable: assign it before, and back behind the call";
            self.checker.report(Diagnostic::new(Code::E0302, argument.span, message).help(help));
            return None;
        };
        let id = self.place_base(name, super::places::Intent::Assign)?;
        let mutability = self.effective(ty, Mutability::Mutable);
        self.infer(id, ty, mutability);
        let found = self.local(id).ty.unwrap_or(TypeTable::ERROR);
        if found == TypeTable::ERROR || ty == TypeTable::ERROR {
            return None;
        }
        if found != ty {
            let message =
                format!("expected `{}`, found `{}`", self.checker.type_name(ty), self.checker.type_name(found));
            let diagnostic = Diagnostic::new(Code::E0302, argument.span, message)
                .label(self.local(id).span, format!("`{}` is declared here", name.text))
                .help("a variable that is passed by reference has the type of the parameter");
            self.checker.report(diagnostic);
            return None;
        }
        Some(id)
    }

    /// Makes a parameter visible, with what the caller gave. After an error of the argument it is there all the same.
    fn give(&mut self, parameter: &'a ast::Parameter, given: Option<Given>, inside: &mut Vec<Stmt>) {
        let span = parameter.name.span;
        match (given, &parameter.kind) {
            (Some(Given::Value(value)), ParameterKind::Value(written)) => {
                let ty = self.checker.resolve_type(&written.ty);
                let base = self.add_local(&parameter.name, Some(ty), Mutability::Immutable, Role::Parameter);
                self.bind_parameter(&parameter.name, Binding::Local(base));
                // After an error it has a value all the same.
                let value = hir::Expr { ty, ..value };
                let place = hir::Place { base, path: Vec::new(), ty, span };
                inside.push(Stmt { kind: StmtKind::Assign(place, value), span });
            }
            (Some(Given::Variable(id)), _) => self.bind_parameter(&parameter.name, Binding::Local(id)),
            (Some(Given::Channel(end)), _) => self.bind_parameter(&parameter.name, Binding::Channel(Some(end))),
            (_, ParameterKind::Channel(..)) => self.bind_parameter(&parameter.name, Binding::Channel(None)),
            (_, ParameterKind::Value(_)) => {
                let ty = Some(TypeTable::ERROR);
                let id = self.add_local(&parameter.name, ty, Mutability::Immutable, Role::Variable);
                self.facts.locals[id.0 as usize].reported = true;
                self.bind_parameter(&parameter.name, Binding::Local(id));
            }
        }
    }

    /// `return` of a procedure; none outside of one.
    pub(super) fn return_from_procedure(
        &mut self,
        value: Option<&'a ast::Expr>,
        span: Span,
        statements: &mut Vec<Stmt>,
    ) -> Option<()> {
        let frame = self.frames.last()?;
        let name = self.checker.procedures[frame.procedure].item.name.text.clone();
        match (frame.result, value) {
            (None, None) => {}
            (Some((base, ty)), Some(value)) => {
                self.expand_in(value, statements);
                let value = self.check(value, ty, Use::Own);
                let place = hir::Place { base, path: Vec::new(), ty, span };
                statements.push(Stmt { kind: StmtKind::Assign(place, value), span });
            }
            (None, Some(value)) => {
                self.absorb(value);
                let diagnostic = Diagnostic::new(Code::E0302, value.span, format!("`proc {name}` has no result"))
                    .help(format!("declare one, as in `proc {name}(..) -> int`, or write `return;`"));
                self.checker.report(diagnostic);
            }
            (Some((_, ty)), None) => {
                let ty = self.checker.type_name(ty);
                self.checker.error(Code::E0302, span, format!("`proc {name}` has to return a value of type `{ty}`"));
            }
        }
        statements.push(Stmt { kind: StmtKind::Leave, span });
        Some(())
    }

    /// E0508: a call of a procedure where an expression is.
    pub(super) fn reject_procedure_in_expression(&mut self, name: &ast::Name, arguments: &'a [ast::Expr], span: Span) {
        arguments.iter().for_each(|argument| self.absorb_argument(argument));
        let message = format!("`{}` is a procedure and cannot be called inside of an expression", name.text);
        let help = format!("assign its result first, as in `var x = {}(..);`", name.text);
        self.checker.report(Diagnostic::new(Code::E0508, span, message).help(help));
    }

    /// Checks an argument whose parameter is not known.
    fn absorb_argument(&mut self, argument: &'a ast::Expr) {
        match &argument.kind {
            // It may be a channel, or a variable that the call would assign.
            ast::ExprKind::Name(name) => {
                if let Some(Binding::Local(id)) = self.find(name)
                    && self.local(id).ty.is_some()
                {
                    self.read_local(id, name.span);
                }
            }
            _ => self.absorb(argument),
        }
    }
}

/// "2 arguments"; for messages about templates.
pub(super) fn arguments_text(count: usize) -> String {
    counted(count, "argument")
}

fn block_depth(block: &ast::Block) -> u32 {
    let item = |item: &ast::BlockItem| match item {
        ast::BlockItem::Stmt(stmt) => statement_depth(stmt),
        ast::BlockItem::Label(_) | ast::BlockItem::Var(_) | ast::BlockItem::Const(_) => 1,
    };
    1 + block.items.iter().map(item).max().unwrap_or(0)
}

fn statement_depth(stmt: &ast::Stmt) -> u32 {
    match &stmt.kind {
        ast::StmtKind::Block(block) => block_depth(block),
        ast::StmtKind::If(_, then, otherwise) => {
            1 + statement_depth(then).max(otherwise.as_ref().map_or(0, |otherwise| statement_depth(otherwise)))
        }
        ast::StmtKind::While(_, body) => 1 + statement_depth(body),
        ast::StmtKind::For(_, _, _, body) => 1 + block_depth(body),
        ast::StmtKind::Match(_, arms) => 1 + arms.iter().map(|(_, body)| statement_depth(body)).max().unwrap_or(0),
        ast::StmtKind::Communicate(communicate) => {
            let bodies = communicate.branches.iter().filter_map(|branch| branch.body.as_ref());
            1 + bodies.chain(&communicate.otherwise).map(block_depth).max().unwrap_or(0)
        }
        ast::StmtKind::Error
        | ast::StmtKind::Break(_)
        | ast::StmtKind::Continue(_)
        | ast::StmtKind::Yield
        | ast::StmtKind::Return(_)
        | ast::StmtKind::Exit(_)
        | ast::StmtKind::Assert(..)
        | ast::StmtKind::Call(..)
        | ast::StmtKind::Assign(..) => 1,
    }
}
