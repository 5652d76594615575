//! Loops that can starve other processes: without a channel operation, a `yield` or a visible bound (reference, section
//! 7, W0905).

use super::names::Checker;
use super::walk;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{BinaryOperator, Expr, ExprKind, LocalId, PatternKind, Place, Stmt, StmtKind};
use crate::span::Span;

/// Warns about such loops in processes and functions.
pub(super) fn check(checker: &mut Checker) {
    let mut found: Vec<(Span, &str)> = Vec::new();
    {
        let processes = checker.processes.iter().filter_map(|entry| entry.hir.as_ref()).map(|process| &process.body);
        let functions = checker.functions.iter().filter_map(|entry| entry.hir.as_ref()).map(|function| &function.body);
        let in_process = "add `yield;`, or bound it by `for` or by a counter that moves by a constant step";
        let in_function = "bound it by `for` or by a counter that moves by a constant step";
        for (body, help) in processes.map(|body| (body, in_process)).chain(functions.map(|body| (body, in_function))) {
            let mut spans = Vec::new();
            check_body(body, &mut spans);
            found.extend(spans.into_iter().map(|span| (span, help)));
        }
    }
    // What could not be parsed inside of a loop may be its operation.
    let errors = checker.diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::E0201);
    let errors: Vec<Span> = errors.map(|diagnostic| diagnostic.span).collect();
    let holds_error = |span: Span| {
        let inside = |error: &Span| error.file == span.file && (span.start..span.end).contains(&error.start);
        errors.iter().any(inside)
    };
    for (span, help) in found.into_iter().filter(|(span, _)| !holds_error(*span)) {
        let text = &checker.sources.file(span.file).text;
        // The head of the loop is enough to show.
        let head = text
            .get(span.start as usize..span.end as usize)
            .map_or(5, |text| text.find('{').unwrap_or(text.len()).min(text.find('\n').unwrap_or(text.len())).max(5));
        let span = Span { end: span.end.min(span.start + head as u32), ..span };
        let message = "this loop has neither a channel operation, a `yield` nor a visible bound: others wait";
        checker.report(Diagnostic::new(Code::W0905, span, message).help(help));
    }
}

/// Checks every loop of a body; returns whether the body itself lets others run.
fn check_body(body: &[Stmt], found: &mut Vec<Span>) -> bool {
    let mut pauses = false;
    for stmt in body {
        let mut inside = matches!(stmt.kind, StmtKind::Communicate(_) | StmtKind::Yield);
        for block in walk::blocks(stmt) {
            inside |= check_body(block, found);
        }
        if let StmtKind::While(condition, body) = &stmt.kind
            && !inside
            && !has_visible_bound(condition.as_ref(), body)
            && !leaves_at_once(body)
        {
            found.push(stmt.span);
        }
        pauses |= inside;
    }
    pauses
}

/// Whether the last statement leaves the loop: the body runs once.
fn leaves_at_once(body: &[Stmt]) -> bool {
    matches!(
        body.last().map(|stmt| &stmt.kind),
        Some(StmtKind::Break(_) | StmtKind::Return(_) | StmtKind::Leave | StmtKind::Exit(_))
    ) && !contains_continue(body)
}

fn contains_continue(body: &[Stmt]) -> bool {
    let mut found = false;
    walk::statements(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Continue(_)));
    found
}

fn contains_leave(body: &[Stmt]) -> bool {
    let mut found = false;
    walk::statements(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Leave));
    found
}

/// The sign of a counter's step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CounterDirection {
    Up,
    Down,
}

/// `while (i < e)` and its like, with i changed by a constant step toward e on every path and e not assigned.
fn has_visible_bound(condition: Option<&Expr>, body: &[Stmt]) -> bool {
    let Some(condition) = condition else { return false };
    bounds(condition).into_iter().any(|(counter, direction, limit)| {
        let mut sound = true;
        walk::nested(limit, &mut |expr| match &expr.kind {
            ExprKind::Local(local) => sound &= *local != counter && !assigns(body, *local),
            ExprKind::CallExtern(..) | ExprKind::FreeObjects(_) => sound = false,
            _ => {}
        });
        sound && steps_only(body, counter, direction) && step_on_every_path(body, counter)
    })
}

/// The counters a condition bounds: of `a && b`, either side will do.
fn bounds(condition: &Expr) -> Vec<(LocalId, CounterDirection, &Expr)> {
    let ExprKind::Binary(operator, left, right) = &condition.kind else { return Vec::new() };
    let (up, down) = match operator {
        BinaryOperator::And => return bounds(left).into_iter().chain(bounds(right)).collect(),
        BinaryOperator::Less | BinaryOperator::LessEqual => (left, right),
        BinaryOperator::Greater | BinaryOperator::GreaterEqual => (right, left),
        _ => return Vec::new(),
    };
    let counter = |expr: &Expr| match &expr.kind {
        ExprKind::Local(local) => Some(*local),
        ExprKind::Convert(inner) => match inner.kind {
            ExprKind::Local(local) => Some(local),
            _ => None,
        },
        _ => None,
    };
    let upward = counter(up).map(|local| (local, CounterDirection::Up, &**down));
    let downward = counter(down).map(|local| (local, CounterDirection::Down, &**up));
    upward.into_iter().chain(downward).collect()
}

/// Whether a place is the whole variable.
fn is_whole(place: &Place, local: LocalId) -> bool {
    place.base == local && place.path.is_empty()
}

/// The direction in which a statement moves a counter by a constant step.
fn step(stmt: &Stmt, counter: LocalId) -> Option<CounterDirection> {
    let direction = |operator: BinaryOperator, amount: i128| match (operator, amount > 0, amount < 0) {
        (BinaryOperator::Add, true, _) | (BinaryOperator::Subtract, _, true) => Some(CounterDirection::Up),
        (BinaryOperator::Add, _, true) | (BinaryOperator::Subtract, true, _) => Some(CounterDirection::Down),
        _ => None,
    };
    match &stmt.kind {
        StmtKind::Update { place, operator, value, .. } if is_whole(place, counter) => match value.kind {
            ExprKind::Constant(amount) => direction(*operator, amount),
            _ => None,
        },
        StmtKind::Assign(place, value) if is_whole(place, counter) => match &value.kind {
            ExprKind::Binary(operator, left, right) => match (&left.kind, &right.kind) {
                (ExprKind::Local(local), ExprKind::Constant(amount)) if *local == counter => {
                    direction(*operator, *amount)
                }
                (ExprKind::Constant(amount), ExprKind::Local(local))
                    if *local == counter && *operator == BinaryOperator::Add =>
                {
                    direction(*operator, *amount)
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether every change of the counter is a step in this direction.
fn steps_only(body: &[Stmt], counter: LocalId, direction: CounterDirection) -> bool {
    let mut sound = true;
    walk::statements(body, &mut |stmt| {
        if changes(stmt, counter) {
            sound &= step(stmt, counter) == Some(direction);
        }
    });
    sound
}

fn assigns(body: &[Stmt], local: LocalId) -> bool {
    let mut found = false;
    walk::statements(body, &mut |stmt| found |= changes(stmt, local));
    found
}

/// Whether a statement itself changes a variable or a part of it.
fn changes(stmt: &Stmt, local: LocalId) -> bool {
    match &stmt.kind {
        StmtKind::Assign(place, _) | StmtKind::Update { place, .. } => place.base == local,
        StmtKind::Match(_, arms) => arms.iter().any(|(pattern, _)| pattern_changes(pattern, local)),
        StmtKind::Communicate(communicate) => communicate.branches.iter().any(|branch| match &branch.operation {
            crate::hir::Operation::In(_, _, patterns) => patterns.iter().any(|pattern| pattern_changes(pattern, local)),
            crate::hir::Operation::Out(..) | crate::hir::Operation::After(..) | crate::hir::Operation::Until(..) => {
                false
            }
        }),
        StmtKind::Call(_, arguments) => arguments
            .iter()
            .any(|argument| matches!(argument, crate::hir::Argument::Mutable(place) if place.base == local)),
        _ => false,
    }
}

fn pattern_changes(pattern: &crate::hir::Pattern, local: LocalId) -> bool {
    match &pattern.kind {
        PatternKind::Assign(place) => place.base == local,
        PatternKind::Declare(declared) => *declared == local,
        PatternKind::Tag(_, payload) => payload.as_ref().is_some_and(|payload| pattern_changes(payload, local)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => parts.iter().any(|part| pattern_changes(part, local)),
        PatternKind::Any
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => false,
    }
}

/// Whether every path through a loop's body that comes round again makes a step.
fn step_on_every_path(body: &[Stmt], counter: LocalId) -> bool {
    let mut pass = Steps { counter, sound: true, expansions: Vec::new() };
    match pass.block(body, Some(false)) {
        Some(stepped) => pass.sound && stepped,
        None => pass.sound,
    }
}

struct Steps {
    counter: LocalId,
    sound: bool,
    /// For each open expansion inside of the loop, whether a step has been made at all of its `return`s so far; none
    /// without one.
    expansions: Vec<Option<bool>>,
}

impl Steps {
    /// Whether a step has been made after the block for sure; none where control does not come.
    fn block(&mut self, body: &[Stmt], mut state: Option<bool>) -> Option<bool> {
        for stmt in body {
            let before = state?;
            state = match &stmt.kind {
                // `continue` of an outer loop leaves this one.
                StmtKind::Continue(between) => {
                    self.sound &= before || *between > 0;
                    None
                }
                StmtKind::Break(_) | StmtKind::Return(_) | StmtKind::Exit(_) => None,
                StmtKind::Leave => match self.expansions.last_mut() {
                    Some(returns) => {
                        *returns = both(*returns, Some(before));
                        None
                    }
                    // It leaves the loop, too.
                    None => None,
                },
                StmtKind::Inline(body) => {
                    self.expansions.push(None);
                    let end = self.block(body, state);
                    both(end, self.expansions.pop().flatten())
                }
                StmtKind::Block(body) => self.block(body, state),
                StmtKind::If(_, then, otherwise) => {
                    let then = self.block(then, state);
                    let otherwise = self.block(otherwise, state);
                    both(then, otherwise)
                }
                StmtKind::Match(_, arms) => {
                    arms.iter().map(|(_, body)| self.block(body, state)).reduce(both).unwrap_or(state)
                }
                // An inner loop may run no times at all; its `break` and `continue` are its own unless labelled.
                StmtKind::While(_, body) | StmtKind::For(_, _, _, body) => {
                    self.sound &= before || !continues_outer(body);
                    if let Some(returns) = self.expansions.last_mut()
                        && contains_leave(body)
                    {
                        *returns = both(*returns, Some(before));
                    }
                    state
                }
                _ => Some(before || step(stmt, self.counter).is_some()),
            };
        }
        state
    }
}

/// Whether a loop's body goes on with a loop around it.
fn continues_outer(body: &[Stmt]) -> bool {
    let mut found = false;
    walk::statements(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Continue(1..)));
    found
}

fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (None, other) | (other, None) => other,
        (Some(left), Some(right)) => Some(left && right),
    }
}
