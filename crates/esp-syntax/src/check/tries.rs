//! E0602: objects that a pattern's condition, or a guard with `free(T)`, allocates in manual memory. Both are evaluated
//! in each search for a partner, and no statement could release the objects.

use super::free::{conditions, free_query};
use super::names::Checker;
use super::walk;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{Branch, Expr, ExprKind, FnId, MemoryMode, Operation};
use crate::span::Span;
use crate::types::{PoolId, Type};

/// Reports them.
pub(super) fn check(checker: &mut Checker) {
    if checker.memory == MemoryMode::Automatic || checker.types.pools().is_empty() {
        return;
    }
    let taken = taken_by_functions(checker);
    let mut found: Vec<(Span, PoolId, &str)> = Vec::new();
    for process in checker.processes.iter().filter_map(|entry| entry.hir.as_ref()) {
        walk::communications(&process.body, &mut |communicate| {
            for branch in &communicate.branches {
                searched_expressions(branch, &mut |expr, place| {
                    takes(checker, &taken, expr, &mut |span, pool| found.push((span, pool, place)));
                });
            }
        });
    }
    for (span, pool, place) in found {
        let name = &checker.types.pool(pool).name;
        let message = format!("{place} takes an object of `{name}` each time a partner is searched");
        let help = "evaluate this before the operation, into a variable to `unlink` afterwards";
        checker.report(Diagnostic::new(Code::E0602, span, message).help(help));
    }
}

/// The expressions of a branch that are evaluated in each search for a partner.
fn searched_expressions(branch: &Branch, visit: &mut dyn FnMut(&Expr, &'static str)) {
    if let Operation::In(_, _, patterns) = &branch.operation {
        for pattern in patterns {
            conditions(pattern, &mut |expr| visit(expr, "this condition"));
        }
    }
    if let Some(guard) = branch.guard.as_ref().filter(|guard| free_query(guard).is_some()) {
        visit(guard, "this guard");
    }
}

/// Per function, a pool of which it or what it calls may take an object.
fn taken_by_functions(checker: &Checker) -> Vec<Option<PoolId>> {
    let mut taken: Vec<Option<PoolId>> = vec![None; checker.functions.len()];
    let mut changed = true;
    // A callee can come after its caller.
    while changed {
        changed = false;
        for (index, entry) in checker.functions.iter().enumerate() {
            let Some(function) = entry.hir.as_ref().filter(|_| taken[index].is_none()) else { continue };
            let mut pool = None;
            walk::statements(&function.body, &mut |stmt| {
                walk::expressions(stmt, &mut |expr| takes(checker, &taken, expr, &mut |_, of| pool = Some(of)));
            });
            changed |= pool.is_some();
            taken[index] = pool;
        }
    }
    taken
}

/// Calls `visit` for each part of an expression that takes an object, and the pool.
fn takes(checker: &Checker, taken: &[Option<PoolId>], expr: &Expr, visit: &mut dyn FnMut(Span, PoolId)) {
    walk::nested(expr, &mut |part| {
        let pool = match (&part.kind, checker.types.get(part.ty)) {
            (
                ExprKind::Box(_) | ExprKind::Thaw(_) | ExprKind::Freeze(_) | ExprKind::CallExtern(..),
                Type::Boxed(pool),
            ) => Some(*pool),
            (ExprKind::CallFn(FnId(function), _), _) => taken[*function as usize],
            _ => None,
        };
        if let Some(pool) = pool {
            visit(part.span, pool);
        }
    });
}
