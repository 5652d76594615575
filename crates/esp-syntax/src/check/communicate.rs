//! `in`, `out` and `alt`: channels, guards, payloads (reference, section 5). Ports are for `ports`.

use super::body::{Body, PureContext};
use super::coerce::Use;
use super::coverage;
use super::literals::counted;
use super::load::Integrity;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, ChannelId, CommunicateForm, Direction, Operation, StmtKind};
use crate::span::Span;
use crate::types::{TypeId, TypeTable};

impl<'a> Body<'_, 'a> {
    pub(super) fn communicate(&mut self, communicate: &'a ast::Communicate, span: Span) -> StmtKind {
        self.reject_in_function(communicate, span);
        // What could not be parsed may be a branch.
        if communicate.branches.is_empty() && self.checker.integrity == Integrity::Whole {
            self.checker.error(Code::E0506, span, "this `alt` has no branch");
        }
        let errors = self.checker.errors;
        let mut branches = Vec::with_capacity(communicate.branches.len());
        for branch in &communicate.branches {
            let word = match branch.operation {
                ast::Operation::After(..) => Some("after"),
                ast::Operation::Until(..) => Some("until"),
                ast::Operation::In(..) | ast::Operation::Out(..) => None,
            };
            if let (Some(word), Some(otherwise)) = (word, &communicate.otherwise) {
                let message = format!("`{word}` can never happen in an `alt` with `else`");
                let diagnostic = Diagnostic::new(Code::E0505, branch.span, message)
                    .label(otherwise.span, "this runs at once when nothing else can")
                    .help("drop one of the two");
                self.checker.report(diagnostic);
            }
            branches.push(self.branch(branch, communicate.form));
        }
        let otherwise = communicate.otherwise.as_ref().map(|block| self.block(block));
        if communicate.form == CommunicateForm::PriAlt && errors == self.checker.errors {
            let own = self.own_process();
            coverage::check_priority(self.checker, &branches, own);
        }
        StmtKind::Communicate(hir::Communicate {
            form: communicate.form,
            idle: communicate.idle.is_some(),
            branches,
            otherwise,
        })
    }

    fn reject_in_function(&mut self, communicate: &ast::Communicate, span: Span) {
        let word = match (communicate.form, communicate.branches.first().map(|branch| &branch.operation)) {
            (CommunicateForm::Plain, Some(ast::Operation::In(..))) => "in",
            (CommunicateForm::Plain, _) => "out",
            (CommunicateForm::Alt, _) => "alt",
            (CommunicateForm::PriAlt, _) => "pri alt",
        };
        self.effect(word, span);
    }

    /// Runs a check in which impure functions may not be called.
    fn purely<T>(&mut self, context: PureContext, check: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.pure_context.replace(context);
        let result = check(self);
        self.pure_context = outer;
        result
    }

    fn branch(&mut self, branch: &'a ast::Branch, form: CommunicateForm) -> hir::Branch {
        let scope = self.enter();
        let guard = branch.guard.as_ref().map(|guard| self.purely(PureContext::Guard, |body| body.condition(guard)));
        let operation = match &branch.operation {
            ast::Operation::In(name, patterns) => {
                let channel = self.channel_for(name, Direction::In, branch.span);
                let types = self.operands(channel, name, patterns.len(), branch.span);
                let site = channel.map(|channel| self.site(channel, Direction::In, branch.span));
                let errors = self.checker.errors;
                let patterns = self.purely(PureContext::Pattern, |body| body.patterns(patterns, &types));
                if let (Some(channel), true) = (channel, errors != self.checker.errors) {
                    self.checker.channels[channel.0 as usize].tainted = true;
                }
                if let Some(site) = site {
                    self.close_site(site);
                }
                site.zip(channel).map(|(site, channel)| Operation::In(site, channel, patterns))
            }
            ast::Operation::Out(name, values) => {
                let channel = self.channel_for(name, Direction::Out, branch.span);
                let types = self.operands(channel, name, values.len(), branch.span);
                let site = channel.map(|channel| self.site(channel, Direction::Out, branch.span));
                let check = |body: &mut Self| -> Vec<hir::Expr> {
                    values.iter().zip(types).map(|(value, ty)| body.check(value, ty, Use::Send)).collect()
                };
                let values = match form {
                    CommunicateForm::Plain => check(self),
                    CommunicateForm::Alt | CommunicateForm::PriAlt => self.purely(PureContext::AltPayload, check),
                };
                site.zip(channel).map(|(site, channel)| Operation::Out(site, channel, values))
            }
            ast::Operation::After(duration, Some(unit)) => Some(Operation::After(self.any_integer(duration), *unit)),
            // The parser has reported the missing unit.
            ast::Operation::After(ast::Expr { kind: ast::ExprKind::Int(_), .. }, None) => None,
            ast::Operation::After(duration, None) => {
                let duration = self.check(duration, TypeTable::DURATION, Use::Read);
                Some(Operation::After(duration, ast::TimeUnit::Nanoseconds))
            }
            ast::Operation::Until(time) => Some(Operation::Until(self.check(time, TypeTable::TIME, Use::Read))),
        };
        let body = branch.body.as_ref().map(|block| self.block(block));
        if form != CommunicateForm::Plain || branch.body.is_some() {
            // After `in(..);` the names live on to the end of the enclosing block.
            self.leave(scope);
        }
        let operation = operation.unwrap_or_else(|| {
            let duration = super::constants::error_expr(branch.span);
            Operation::After(duration, ast::TimeUnit::Seconds)
        });
        hir::Branch { guard, operation, body: body.unwrap_or_default(), span: branch.span }
    }

    fn site(&mut self, channel: ChannelId, direction: Direction, span: Span) -> hir::SiteId {
        self.add_site(hir::Site { channel, direction, span })
    }

    /// The channel of an operation, which has to have this direction.
    fn channel_for(&mut self, name: &ast::Name, direction: Direction, span: Span) -> Option<ChannelId> {
        let end = self.channel_end(name)?;
        // The channel is known all the same.
        self.reject_wrong_end(end, direction, name, span);
        Some(end.channel)
    }

    /// The types of an operation's operands; `ERROR` for those whose error has been reported.
    fn operands(&mut self, channel: Option<ChannelId>, name: &ast::Name, given: usize, span: Span) -> Vec<TypeId> {
        let Some(id) = channel else {
            self.checker.unknown_channels = true;
            return vec![TypeTable::ERROR; given];
        };
        let entry = &self.checker.channels[id.0 as usize];
        let (payload, declared) = (entry.hir.payload.clone(), entry.hir.span);
        if payload.len() != given {
            let message = format!("channel `{}` carries {}, {given} given", name.text, counted(payload.len(), "value"));
            let diagnostic = Diagnostic::new(Code::E0404, span, message)
                .label(declared, format!("`{}` is declared here", name.text));
            self.checker.report(diagnostic);
            self.checker.channels[id.0 as usize].tainted = true;
            return vec![TypeTable::ERROR; given];
        }
        payload
    }
}
