//! Where control can go: functions that can end without `return` (E0502), recursion (E0501), processes that can end.

use super::names::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{FnId, Stmt, StmtKind};
use crate::span::Span;

/// Where control is after a statement.
#[derive(Clone, Default)]
struct Exits {
    /// It can go on to the next statement.
    next: bool,
    /// The loops that it can leave by `break`, as numbers of the loops between; 0 is the nearest.
    breaks: Vec<u32>,
    /// It can leave the nearest expansion by `return`.
    leaves: bool,
}

impl Exits {
    fn either(mut self, other: Exits) -> Exits {
        self.next |= other.next;
        self.leaves |= other.leaves;
        self.add(other.breaks);
        self
    }

    fn add(&mut self, breaks: Vec<u32>) {
        let new = breaks.into_iter().filter(|between| !self.breaks.contains(between)).collect::<Vec<_>>();
        self.breaks.extend(new);
    }

    /// What a loop with this body does; `ends` if it can end by itself.
    fn of_loop(mut self, ends: bool) -> Exits {
        self.next = ends || self.breaks.contains(&0);
        self.breaks.retain(|between| *between > 0);
        self.breaks.iter_mut().for_each(|between| *between -= 1);
        self
    }
}

/// Whether control can reach the end of a body.
pub(super) fn can_end(body: &[Stmt]) -> bool {
    block(body).next
}

fn block(body: &[Stmt]) -> Exits {
    let mut exits = Exits { next: true, ..Exits::default() };
    for stmt in body {
        let found = statement(stmt);
        let next = found.next;
        exits = Exits { next, ..exits.either(found) };
        if !exits.next {
            // What follows is never reached, and so are its `break`s.
            break;
        }
    }
    exits
}

fn statement(stmt: &Stmt) -> Exits {
    let next = Exits { next: true, ..Exits::default() };
    match &stmt.kind {
        StmtKind::Block(body) => block(body),
        StmtKind::If(_, then, otherwise) => block(then).either(block(otherwise)),
        StmtKind::Inline(body) => {
            let inside = block(body);
            Exits { next: inside.next || inside.leaves, leaves: false, ..inside }
        }
        StmtKind::While(condition, body) => block(body).of_loop(condition.is_some()),
        StmtKind::For(_, _, _, body) => block(body).of_loop(true),
        StmtKind::Match(_, arms) => arms.iter().map(|(_, body)| block(body)).reduce(Exits::either).unwrap_or(next),
        StmtKind::Communicate(communicate) => communicate
            .branches
            .iter()
            .map(|branch| block(&branch.body))
            .chain(communicate.otherwise.iter().map(|body| block(body)))
            .reduce(Exits::either)
            .unwrap_or(next),
        StmtKind::Break(between) => Exits { breaks: vec![*between], ..Exits::default() },
        StmtKind::Leave => Exits { leaves: true, ..Exits::default() },
        StmtKind::Continue(_) | StmtKind::Return(_) | StmtKind::Exit(_) => Exits::default(),
        StmtKind::Label(_)
        | StmtKind::Declare(_)
        | StmtKind::Yield
        | StmtKind::Assert(_)
        | StmtKind::Call(..)
        | StmtKind::CallFn(..)
        | StmtKind::Link(_)
        | StmtKind::Unlink(_)
        | StmtKind::Assign(..)
        | StmtKind::Update { .. } => next,
    }
}

/// Reports functions that can end without `return`, and recursion.
pub(super) fn check_functions(checker: &mut Checker) {
    for index in 0..checker.functions.len() {
        let entry = &checker.functions[index];
        let Some(function) = &entry.hir else { continue };
        if can_end(&function.body) {
            let name = &entry.item.name;
            let end = Span { start: entry.item.body.span.end.saturating_sub(1), ..entry.item.body.span };
            let message = format!("`fn {}` can end without `return`", name.text);
            let diagnostic = Diagnostic::new(Code::E0502, name.span, message)
                .label(end, "control can come here")
                .help("return a value on every path");
            checker.report(diagnostic);
        }
    }
    check_recursion(checker);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    Open,
    Done,
}

/// Depth first without recursion: a chain of calls may be as long as the program.
fn check_recursion(checker: &mut Checker) {
    let mut progress = vec![VisitState::New; checker.functions.len()];
    for root in 0..checker.functions.len() {
        if progress[root] != VisitState::New {
            continue;
        }
        let mut stack = vec![(root, 0usize)];
        progress[root] = VisitState::Open;
        while let Some((function, next)) = stack.last_mut() {
            let Some((FnId(callee), span)) = checker.functions[*function].calls.get(*next).copied() else {
                progress[*function] = VisitState::Done;
                stack.pop();
                continue;
            };
            *next += 1;
            let callee = callee as usize;
            match progress[callee] {
                VisitState::Done => {}
                VisitState::New => {
                    progress[callee] = VisitState::Open;
                    stack.push((callee, 0));
                }
                VisitState::Open => {
                    let start = stack.iter().position(|(open, _)| *open == callee).unwrap_or(0);
                    let cycle: Vec<usize> = stack[start..].iter().map(|(function, _)| *function).collect();
                    report_recursion(checker, &cycle, span);
                }
            }
        }
    }
}

fn report_recursion(checker: &mut Checker, cycle: &[usize], call: Span) {
    let name = |function: usize| checker.functions[function].item.name.text.as_str();
    let shown: Vec<&str> = cycle.iter().take(8).map(|function| name(*function)).collect();
    let dots = if cycle.len() > 8 { " -> .." } else { "" };
    let first = name(cycle[0]);
    let message = format!("`fn {first}` may not call itself: {}{dots} -> {first}", shown.join(" -> "));
    let place = checker.functions[cycle[0]].item.name.span;
    let mut diagnostic = Diagnostic::new(Code::E0501, place, message).help("use a loop");
    if call != place {
        diagnostic = diagnostic.label(call, "this call closes the cycle");
    }
    checker.report(diagnostic);
}
