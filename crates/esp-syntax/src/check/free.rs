//! E0507: `free(T)` in an expression that is not evaluated again when the number of free objects changes. A guard is;
//! a pattern's condition, and the message of an `alt`, are only evaluated when a partner is searched: two processes
//! that wait for each other would not notice that their rendezvous has become possible. External channels are exempt:
//! the environment is polled repeatedly.

use super::names::Checker;
use super::walk;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{Boundary, Branch, ChannelId, CommunicateForm, Expr, ExprKind, Operation, Pattern, PatternKind};
use crate::span::Span;
use crate::types::PoolId;

/// Reports each such expression.
pub(super) fn check(checker: &mut Checker) {
    if checker.types.pools().is_empty() {
        return;
    }
    let mut found: Vec<(Span, PoolId, &str)> = Vec::new();
    for process in checker.processes.iter().filter_map(|entry| entry.hir.as_ref()) {
        walk::communications(&process.body, &mut |communicate| {
            for branch in &communicate.branches {
                searched_expressions(checker, branch, communicate.form, &mut |expr, place| {
                    found.extend(free_query(expr).map(|(span, pool)| (span, pool, place)));
                });
            }
        });
    }
    for (span, pool, place) in found {
        let message = format!("`free` in {place} is not asked again when an object is released");
        let name = &checker.types.pool(pool).name;
        let help = format!("ask in a guard, as in `when (free({name}) > 0)`, or before the operation");
        checker.report(Diagnostic::new(Code::E0507, span, message).help(help));
    }
}

/// The expressions of a branch on an internal channel that are evaluated in each search for a partner.
fn searched_expressions(
    checker: &Checker,
    branch: &Branch,
    form: CommunicateForm,
    visit: &mut dyn FnMut(&Expr, &'static str),
) {
    let is_internal = |channel: &ChannelId| checker.channels[channel.0 as usize].hir.boundary == Boundary::Internal;
    match &branch.operation {
        Operation::In(_, channel, patterns) if is_internal(channel) => {
            for pattern in patterns {
                conditions(pattern, &mut |expr| visit(expr, "a pattern"));
            }
        }
        Operation::Out(_, channel, values) if is_internal(channel) && form != CommunicateForm::Plain => {
            values.iter().for_each(|value| visit(value, "the payload of an `alt`"));
        }
        Operation::In(..) | Operation::Out(..) | Operation::After(..) | Operation::Until(..) => {}
    }
}

/// The conditions of a pattern; what it compares with is computed once.
pub(super) fn conditions<'p>(pattern: &'p Pattern, visit: &mut dyn FnMut(&'p Expr)) {
    match &pattern.kind {
        PatternKind::Tag(_, payload) => payload.iter().for_each(|payload| conditions(payload, visit)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => {
            parts.iter().for_each(|part| conditions(part, visit));
        }
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Assign(_)
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => {}
    }
    pattern.condition.iter().for_each(|condition| visit(condition));
}

/// The first `free(T)` of an expression: its location and pool. A function cannot contain one.
pub(super) fn free_query(expr: &Expr) -> Option<(Span, PoolId)> {
    let mut found = None;
    walk::nested(expr, &mut |part| {
        if let ExprKind::FreeObjects(pool) = part.kind {
            found.get_or_insert((part.span, pool));
        }
    });
    found
}
