//! Allocations that no guard protects (reference, section 6, W0904): a literal, `freeze`, `thaw` or an extern result of
//! a boxed type faults when the pool is empty, unless a guard with `free(T)` has just found an object. A `freeze`
//! counts if it copies for certain; a `thaw` always, because only the reference count at run time decides whether it
//! copies.

use super::last_use;
use super::names::Checker;
use super::walk;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{Branch, Expr, ExprKind, Operation, PatternKind, Stmt, StmtKind};
use crate::span::Span;
use crate::types::{PoolId, Type, TypeTable};
use std::collections::BTreeSet;

/// Warns about them.
pub(super) fn check(checker: &mut Checker) {
    let mut found: Vec<(Span, PoolId)> = Vec::new();
    if checker.types.pools().is_empty() {
        return;
    }
    for entry in &checker.processes {
        let Some(process) = &entry.hir else { continue };
        let copying = last_use::copying(&process.body);
        let mut pass = AllocationPass { types: &checker.types, copying, found: &mut found };
        pass.block(&process.body, Vec::new());
    }
    for (span, pool) in found {
        let name = checker.types.pool(pool).name.clone();
        let message = format!("this allocation faults when the pool `{name}` is empty");
        let help = format!("put it into a branch with a guard, as in `when (free({name}) > 0)`");
        checker.report(Diagnostic::new(Code::W0904, span, message).help(help));
    }
}

struct AllocationPass<'p> {
    types: &'p TypeTable,
    /// Where a `freeze` copies.
    copying: BTreeSet<Span>,
    found: &'p mut Vec<(Span, PoolId)>,
}

/// The pools in `free(T)` of a condition.
fn queried_pools(condition: &Expr) -> Vec<PoolId> {
    let mut pools = Vec::new();
    walk::nested(condition, &mut |expr| {
        if let ExprKind::FreeObjects(pool) = expr.kind {
            pools.push(pool);
        }
    });
    pools
}

impl AllocationPass<'_> {
    /// The statements of a block before which `free(T)` has tested the `guarded` pools; returns those still guarded at
    /// its end. An operation lets others run and so ends the guard.
    fn block(&mut self, body: &[Stmt], mut guarded: Vec<PoolId>) -> Vec<PoolId> {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Communicate(communicate) => {
                    let mut pools: Vec<PoolId> = Vec::new();
                    for branch in &communicate.branches {
                        pools.extend(branch.guard.iter().flat_map(queried_pools));
                        branch.guard.iter().for_each(|guard| self.expr(guard, &guarded));
                        self.branch(branch, &guarded);
                    }
                    if let Some(otherwise) = &communicate.otherwise {
                        // `else` runs if no guard holds, so the guards have tested the pools.
                        self.block(otherwise, pools);
                    }
                    guarded.clear();
                }
                StmtKind::If(condition, then, otherwise) => {
                    self.expr(condition, &guarded);
                    let mut inside = guarded.clone();
                    inside.extend(queried_pools(condition));
                    let then = self.block(then, inside.clone());
                    let otherwise = self.block(otherwise, inside);
                    guarded.retain(|pool| then.contains(pool) && otherwise.contains(pool));
                }
                StmtKind::While(condition, body) => {
                    let mut inside = Vec::new();
                    if let Some(condition) = condition {
                        self.expr(condition, &guarded);
                        inside = queried_pools(condition);
                    }
                    self.block(body, inside);
                    guarded.clear();
                }
                StmtKind::For(_, from, to, body) => {
                    self.expr(from, &guarded);
                    self.expr(to, &guarded);
                    self.block(body, Vec::new());
                    guarded.clear();
                }
                StmtKind::Match(value, arms) => {
                    self.expr(value, &guarded);
                    for (pattern, body) in arms {
                        walk::pattern_expressions(pattern, &mut |expr| self.expr(expr, &guarded));
                        self.block(body, guarded.clone());
                    }
                }
                StmtKind::Block(body) => guarded = self.block(body, guarded),
                StmtKind::Inline(body) => {
                    // A `return` may be before a guard, and behind an operation.
                    let inside = self.block(body, guarded.clone());
                    let mut leaves = false;
                    walk::statements(body, &mut |stmt| leaves |= matches!(stmt.kind, StmtKind::Leave));
                    guarded = if leaves { Vec::new() } else { inside };
                }
                StmtKind::Yield => guarded.clear(),
                _ => walk::expressions(stmt, &mut |expr| self.expr(expr, &guarded)),
            }
        }
        guarded
    }

    fn branch(&mut self, branch: &Branch, before: &[PoolId]) {
        let guard: Vec<PoolId> = branch.guard.iter().flat_map(queried_pools).collect();
        match &branch.operation {
            Operation::Out(_, _, values) => {
                // The payload is evaluated on arrival or, in an `alt`, with the guard.
                let pools = [before, &guard].concat();
                values.iter().for_each(|value| self.expr(value, &pools));
            }
            Operation::In(_, _, patterns) => {
                for pattern in patterns {
                    walk::pattern_expressions(pattern, &mut |expr| self.expr(expr, &guard));
                    self.boxed_target(pattern, &guard);
                }
            }
            Operation::After(duration, _) => self.expr(duration, before),
            Operation::Until(time) => self.expr(time, before),
        }
        self.block(&branch.body, guard);
    }

    /// A flat value received into a boxed variable takes an object.
    fn boxed_target(&mut self, pattern: &crate::hir::Pattern, guarded: &[PoolId]) {
        match &pattern.kind {
            PatternKind::Assign(place) => {
                if let Type::Boxed(pool) = *self.types.get(place.ty)
                    && place.ty != pattern.ty
                {
                    self.allocate(pattern.span, pool, guarded);
                }
            }
            PatternKind::Tag(_, payload) => payload.iter().for_each(|part| self.boxed_target(part, guarded)),
            PatternKind::Record(parts) | PatternKind::Array(parts) => {
                parts.iter().for_each(|part| self.boxed_target(part, guarded));
            }
            PatternKind::Any
            | PatternKind::Declare(_)
            | PatternKind::Constant(_)
            | PatternKind::Bytes(_)
            | PatternKind::OwnId
            | PatternKind::Among(_)
            | PatternKind::Either(_)
            | PatternKind::Equal(_) => {}
        }
    }

    fn allocate(&mut self, span: Span, pool: PoolId, guarded: &[PoolId]) {
        if !guarded.contains(&pool) {
            self.found.push((span, pool));
        }
    }

    fn expr(&mut self, expr: &Expr, guarded: &[PoolId]) {
        walk::nested(expr, &mut |expr| {
            let allocates = match expr.kind {
                ExprKind::Box(_) | ExprKind::Thaw(_) | ExprKind::CallExtern(..) => true,
                ExprKind::Freeze(_) => self.copying.contains(&expr.span),
                _ => false,
            };
            if let (true, Type::Boxed(pool)) = (allocates, self.types.get(expr.ty)) {
                self.allocate(expr.span, *pool, guarded);
            }
        });
    }
}
