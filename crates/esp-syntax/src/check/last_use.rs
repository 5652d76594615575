//! Which `freeze` copies its object for certain, as the variable is used again (reference, section 6: at the last use
//! it moves). Liveness of the variables that are frozen, backward over the checked statements; the final
//! decision is made on the flow graph, where reference counts are inserted. Knows no pools and no guards.
//!
//! ```text
//!   freeze(x); f(x.len);        copies: x is used again
//!   while { out(c, freeze(x)); }   copies: x is used again the next time
//!   if (b) { freeze(x) } else { freeze(x) }   both move
//! ```

use super::walk;
use crate::hir::{
    Argument, Branch, CommunicateForm, Expr, ExprKind, LocalId, Operation, Pattern, PatternKind, Place, Stmt, StmtKind,
};
use crate::span::Span;
use std::collections::BTreeSet;

/// Variables that may be used again.
type Live = BTreeSet<LocalId>;

/// The locations of each `freeze` of a process that copies for certain.
pub(super) fn copying(body: &[Stmt]) -> BTreeSet<Span> {
    let mut pass = LastUsePass::default();
    pass.find_frozen(body);
    // What is live where a loop begins grows from pass to pass, at most one loop deeper each time.
    loop {
        let before = pass.heads.clone();
        pass.number = 0;
        pass.block(body, Live::new());
        if pass.heads == before {
            return pass.copies;
        }
    }
}

#[derive(Default)]
struct LastUsePass {
    /// The variables that are frozen somewhere: no others matter.
    frozen: Live,
    copies: BTreeSet<Span>,
    /// Per loop, in the order of this walk: what is live where it begins.
    heads: Vec<Live>,
    number: usize,
    /// Of the loops around: what is live after them, and where they begin.
    around: Vec<(Live, Live)>,
    /// What is live after each of the expansions around.
    expansions: Vec<Live>,
}

impl LastUsePass {
    fn find_frozen(&mut self, body: &[Stmt]) {
        let mut frozen = Live::new();
        walk::statements(body, &mut |stmt| {
            walk::expressions(stmt, &mut |expr| {
                walk::nested(expr, &mut |expr| {
                    if let ExprKind::Freeze(inner) = &expr.kind
                        && let ExprKind::Local(local) = inner.kind
                    {
                        frozen.insert(local);
                    }
                });
            });
        });
        self.frozen = frozen;
    }

    fn block(&mut self, body: &[Stmt], mut live: Live) -> Live {
        for stmt in body.iter().rev() {
            live = self.stmt(stmt, live);
        }
        live
    }

    /// What is live before a statement, from what is live after it.
    fn stmt(&mut self, stmt: &Stmt, mut live: Live) -> Live {
        match &stmt.kind {
            StmtKind::Label(_) | StmtKind::Yield => {}
            StmtKind::Declare(local) => {
                live.remove(local);
            }
            StmtKind::Block(body) => return self.block(body, live),
            StmtKind::Inline(body) => {
                self.expansions.push(live.clone());
                let before = self.block(body, live);
                self.expansions.pop();
                return before;
            }
            StmtKind::Leave => return self.expansions.last().cloned().unwrap_or_default(),
            StmtKind::If(condition, then, otherwise) => {
                let mut both = self.block(then, live.clone());
                both.append(&mut self.block(otherwise, live));
                live = both;
                self.expr(condition, &mut live);
            }
            StmtKind::While(condition, body) => return self.repeat(condition.as_ref(), body, live),
            StmtKind::For(_, from, to, body) => {
                live = self.repeat(Some(to), body, live);
                self.expr(from, &mut live);
            }
            StmtKind::Match(value, arms) => {
                let mut any = Live::new();
                for (pattern, body) in arms {
                    let mut arm = self.block(body, live.clone());
                    bound(pattern, &mut |local| {
                        arm.remove(&local);
                    });
                    any.append(&mut arm);
                }
                live = any;
                for (pattern, _) in arms.iter().rev() {
                    walk::pattern_expressions(pattern, &mut |expr| self.uses(expr, &mut live));
                }
                self.expr(value, &mut live);
            }
            StmtKind::Break(between) => {
                let around = self.around.iter().nth_back(*between as usize);
                return around.map(|(after, _)| after.clone()).unwrap_or_default();
            }
            StmtKind::Continue(between) => {
                let around = self.around.iter().nth_back(*between as usize);
                return around.map(|(_, head)| head.clone()).unwrap_or_default();
            }
            StmtKind::Return(value) | StmtKind::Exit(value) => {
                live = Live::new();
                self.expr(value, &mut live);
            }
            StmtKind::Assert(condition) => self.expr(condition, &mut live),
            StmtKind::Communicate(communicate) => {
                let mut any = match &communicate.otherwise {
                    Some(otherwise) => self.block(otherwise, live.clone()),
                    None => Live::new(),
                };
                for branch in &communicate.branches {
                    any.append(&mut self.branch(branch, communicate.form, live.clone()));
                }
                for branch in communicate.branches.iter().rev() {
                    branch.guard.iter().for_each(|guard| self.uses(guard, &mut any));
                }
                return any;
            }
            StmtKind::Call(_, arguments) => self.arguments(arguments, &mut live),
            StmtKind::CallFn(_, arguments) => arguments.iter().rev().for_each(|value| self.expr(value, &mut live)),
            StmtKind::Link(local) | StmtKind::Unlink(local) => self.touch(*local, &mut live),
            StmtKind::Assign(place, value) => {
                if place.path.is_empty() {
                    live.remove(&place.base);
                }
                self.place(place, &mut live);
                self.expr(value, &mut live);
            }
            StmtKind::Update { place, value, .. } => {
                self.place(place, &mut live);
                self.touch(place.base, &mut live);
                self.expr(value, &mut live);
            }
        }
        live
    }

    /// A loop: what is live where it begins.
    fn repeat(&mut self, condition: Option<&Expr>, body: &[Stmt], after: Live) -> Live {
        let number = self.number;
        self.number += 1;
        if self.heads.len() == number {
            self.heads.push(Live::new());
        }
        let head = self.heads[number].clone();
        self.around.push((after.clone(), head.clone()));
        let mut live = self.block(body, head);
        self.around.pop();
        if let Some(condition) = condition {
            live.extend(after);
            self.expr(condition, &mut live);
        }
        self.heads[number].extend(&live);
        live
    }

    /// What is live before a branch is taken, without its guard.
    fn branch(&mut self, branch: &Branch, form: CommunicateForm, after: Live) -> Live {
        let mut live = self.block(&branch.body, after);
        match &branch.operation {
            Operation::In(_, _, patterns) => {
                for pattern in patterns {
                    bound(pattern, &mut |local| {
                        live.remove(&local);
                    });
                }
                for pattern in patterns {
                    walk::pattern_expressions(pattern, &mut |expr| self.uses(expr, &mut live));
                }
            }
            Operation::Out(_, _, values) => {
                for value in values.iter().rev() {
                    match (form, &value.kind) {
                        (CommunicateForm::Plain, _) | (_, ExprKind::Freeze(_)) => self.expr(value, &mut live),
                        // Evaluated for each partner anew: what is not the message itself stays.
                        (CommunicateForm::Alt | CommunicateForm::PriAlt, _) => self.uses(value, &mut live),
                    }
                }
            }
            Operation::After(duration, _) => self.expr(duration, &mut live),
            Operation::Until(time) => self.expr(time, &mut live),
        }
        live
    }

    fn arguments(&mut self, arguments: &[Argument], live: &mut Live) {
        for argument in arguments.iter().rev() {
            match argument {
                Argument::Value(value) => self.expr(value, live),
                Argument::Mutable(place) => {
                    self.touch(place.base, live);
                    self.place(place, live);
                }
            }
        }
    }

    /// An assigned place: its path is read.
    fn place(&mut self, place: &Place, live: &mut Live) {
        walk::place_expressions(place, &mut |expr| self.uses(expr, live));
        if !place.path.is_empty() {
            self.touch(place.base, live);
        }
    }

    fn touch(&self, local: LocalId, live: &mut Live) {
        if self.frozen.contains(&local) {
            live.insert(local);
        }
    }

    /// An expression where nothing is moved out of a variable.
    fn uses(&mut self, expr: &Expr, live: &mut Live) {
        walk::nested(expr, &mut |expr| match expr.kind {
            ExprKind::Local(local) => self.touch(local, live),
            ExprKind::Freeze(_) => {
                self.copies.insert(expr.span);
            }
            _ => {}
        });
    }

    /// An expression, its operands from the last to the first.
    fn expr(&mut self, expr: &Expr, live: &mut Live) {
        match &expr.kind {
            ExprKind::Local(local) => self.touch(*local, live),
            ExprKind::Freeze(inner) => {
                let copies = match &inner.kind {
                    ExprKind::Local(local) => live.contains(local),
                    // A part of something that keeps it.
                    ExprKind::Field(..) | ExprKind::Index(..) => true,
                    _ => false,
                };
                if copies {
                    self.copies.insert(expr.span);
                }
                self.expr(inner, live);
            }
            ExprKind::Conditional(condition, left, right) => {
                let mut other = live.clone();
                self.expr(left, live);
                self.expr(right, &mut other);
                live.append(&mut other);
                self.expr(condition, live);
            }
            ExprKind::CallExtern(_, arguments) => self.arguments(arguments, live),
            _ => {
                let mut operands = Vec::new();
                walk::operands(expr, &mut |operand| operands.push(operand));
                operands.into_iter().rev().for_each(|operand| self.expr(operand, live));
            }
        }
    }
}

/// Calls `visit` on the variables that a pattern gives a new value as a whole.
fn bound(pattern: &Pattern, visit: &mut dyn FnMut(LocalId)) {
    match &pattern.kind {
        PatternKind::Declare(local) => visit(*local),
        PatternKind::Assign(place) => {
            if place.path.is_empty() {
                visit(place.base);
            }
        }
        PatternKind::Tag(_, payload) => payload.iter().for_each(|payload| bound(payload, visit)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => parts.iter().for_each(|part| bound(part, visit)),
        PatternKind::Any
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => {}
    }
}
