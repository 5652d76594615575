//! Definite assignment: every variable is assigned on every path before it is read (reference, section 4, E0503).
//! One pass without iteration: a loop is entered with what holds before it, for nothing is ever unassigned but a
//! variable declared inside, which is not visible outside.

use super::body::{BodyFacts, unassigned};
use super::names::Checker;
use super::walk;
use crate::diagnostics::Diagnostic;
use crate::hir::{
    Argument, Branch, Communicate, Expr, ExprKind, LocalId, Mutability, Operation, Pattern, PatternKind, Place, Stmt,
    StmtKind,
};
use crate::span::Span;

/// Checks all functions and processes.
pub(super) fn check(checker: &mut Checker) {
    let mut found = Vec::new();
    for entry in &mut checker.functions {
        if let Some(function) = &entry.hir {
            let parameters = function.parameters as usize;
            found.extend(check_body(&mut entry.facts, &function.body, parameters));
        }
    }
    for entry in &mut checker.processes {
        if let Some(process) = &entry.hir {
            found.extend(check_body(&mut entry.facts, &process.body, 0));
        }
    }
    found.into_iter().for_each(|diagnostic| checker.report(diagnostic));
}

/// Checks one body, whose first `parameters` variables are assigned from the start.
pub(super) fn check_body(facts: &mut BodyFacts, body: &[Stmt], parameters: usize) -> Vec<Diagnostic> {
    let mut assigned = Set::empty(facts.locals.len());
    (0..parameters).for_each(|local| assigned.insert(LocalId(local as u32)));
    let mut pass = AssignmentPass { facts, diagnostics: Vec::new(), loops: Vec::new(), expansions: Vec::new() };
    pass.block(body, &mut State::Reached(assigned));
    pass.diagnostics
}

/// A set of variables.
#[derive(Clone, PartialEq, Eq)]
struct Set {
    words: Vec<u64>,
}

impl Set {
    fn empty(locals: usize) -> Set {
        Set { words: vec![0; locals.div_ceil(64)] }
    }

    fn insert(&mut self, local: LocalId) {
        self.words[local.0 as usize / 64] |= 1 << (local.0 % 64);
    }

    fn remove(&mut self, local: LocalId) {
        self.words[local.0 as usize / 64] &= !(1 << (local.0 % 64));
    }

    fn contains(&self, local: LocalId) -> bool {
        self.words[local.0 as usize / 64] & (1 << (local.0 % 64)) != 0
    }
}

/// What is assigned where control is.
#[derive(Clone)]
enum State {
    Reached(Set),
    /// Control does not come here: everything holds.
    Unreached,
}

impl State {
    /// What holds after either.
    fn meet(&mut self, other: State) {
        match (&mut *self, other) {
            (_, State::Unreached) => {}
            (State::Unreached, other) => *self = other,
            (State::Reached(own), State::Reached(other)) => {
                own.words.iter_mut().zip(other.words).for_each(|(own, other)| *own &= other);
            }
        }
    }

    fn assign(&mut self, local: LocalId) {
        if let State::Reached(set) = self {
            set.insert(local);
        }
    }
}

struct AssignmentPass<'f> {
    facts: &'f mut BodyFacts,
    diagnostics: Vec<Diagnostic>,
    /// What holds at the `break`s of each open loop.
    loops: Vec<State>,
    /// What holds at the `return`s of each open expansion.
    expansions: Vec<State>,
}

impl AssignmentPass<'_> {
    fn read(&mut self, local: LocalId, span: Span, state: &mut State) {
        let State::Reached(set) = state else { return };
        if set.contains(local) {
            return;
        }
        let facts = &mut self.facts.locals[local.0 as usize];
        if !std::mem::replace(&mut facts.reported, true) {
            let mut diagnostic = unassigned(&facts.name, facts.span, span);
            if facts.mutability == Mutability::Mutable {
                let help =
                    "give it a first value, as in `= #[0; 8]` or `= #\"\"`: an assignment to a part keeps the rest";
                diagnostic = diagnostic.help(help);
            }
            self.diagnostics.push(diagnostic);
        }
        set.insert(local);
    }

    fn expr(&mut self, expr: &Expr, state: &mut State) {
        match &expr.kind {
            ExprKind::Local(local) => self.read(*local, expr.span, state),
            ExprKind::CallExtern(_, arguments) => self.arguments(arguments, state),
            _ => walk::operands(expr, &mut |operand| self.expr(operand, state)),
        }
    }

    fn arguments(&mut self, arguments: &[Argument], state: &mut State) {
        for argument in arguments {
            match argument {
                Argument::Value(expr) => self.expr(expr, state),
                Argument::Mutable(place) => {
                    self.read(place.base, place.span, state);
                    self.indices(place, state);
                }
            }
        }
    }

    fn indices(&mut self, place: &Place, state: &mut State) {
        walk::place_expressions(place, &mut |expr| self.expr(expr, state));
    }

    /// An assignment to a place: a whole variable becomes assigned, a part needs one that is.
    fn assign(&mut self, place: &Place, state: &mut State) {
        self.indices(place, state);
        if place.path.is_empty() {
            state.assign(place.base);
        } else {
            self.read(place.base, place.span, state);
        }
    }

    fn pattern(&mut self, pattern: &Pattern, state: &mut State) {
        match &pattern.kind {
            PatternKind::Any
            | PatternKind::Constant(_)
            | PatternKind::Bytes(_)
            | PatternKind::OwnId
            | PatternKind::Among(_)
            | PatternKind::Either(_) => {}
            PatternKind::Declare(local) => state.assign(*local),
            PatternKind::Assign(place) => self.assign(place, state),
            PatternKind::Equal(expr) => self.expr(expr, state),
            PatternKind::Tag(_, payload) => payload.iter().for_each(|payload| self.pattern(payload, state)),
            PatternKind::Record(parts) | PatternKind::Array(parts) => {
                parts.iter().for_each(|part| self.pattern(part, state));
            }
        }
        pattern.condition.iter().for_each(|condition| self.expr(condition, state));
    }

    fn block(&mut self, body: &[Stmt], state: &mut State) {
        for stmt in body {
            self.statement(stmt, state);
        }
    }

    fn looped(&mut self, body: &[Stmt], mut inside: State) -> State {
        self.loops.push(State::Unreached);
        self.block(body, &mut inside);
        self.loops.pop().unwrap_or(State::Unreached)
    }

    fn statement(&mut self, stmt: &Stmt, state: &mut State) {
        match &stmt.kind {
            StmtKind::Label(_) | StmtKind::Yield => {}
            StmtKind::Declare(local) => {
                if let State::Reached(set) = state {
                    set.remove(*local);
                }
            }
            StmtKind::Block(body) => self.block(body, state),
            StmtKind::Inline(body) => {
                self.expansions.push(State::Unreached);
                self.block(body, state);
                state.meet(self.expansions.pop().unwrap_or(State::Unreached));
            }
            StmtKind::Leave => {
                let here = std::mem::replace(state, State::Unreached);
                if let Some(returns) = self.expansions.last_mut() {
                    returns.meet(here);
                }
            }
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition, state);
                let mut other = state.clone();
                self.block(then, state);
                self.block(otherwise, &mut other);
                state.meet(other);
            }
            StmtKind::While(condition, body) => {
                if let Some(condition) = condition {
                    self.expr(condition, state);
                }
                let breaks = self.looped(body, state.clone());
                if condition.is_none() {
                    *state = State::Unreached;
                }
                state.meet(breaks);
            }
            StmtKind::For(counter, from, to, body) => {
                self.expr(from, state);
                self.expr(to, state);
                let mut inside = state.clone();
                inside.assign(*counter);
                let breaks = self.looped(body, inside);
                state.meet(breaks);
            }
            StmtKind::Match(value, arms) => {
                self.expr(value, state);
                let before = state.clone();
                *state = State::Unreached;
                for (pattern, body) in arms {
                    let mut arm = before.clone();
                    self.pattern(pattern, &mut arm);
                    self.block(body, &mut arm);
                    state.meet(arm);
                }
            }
            StmtKind::Break(between) => {
                let here = std::mem::replace(state, State::Unreached);
                if let Some(breaks) = self.loops.iter_mut().nth_back(*between as usize) {
                    breaks.meet(here);
                }
            }
            StmtKind::Continue(_) => *state = State::Unreached,
            StmtKind::Return(value) | StmtKind::Exit(value) => {
                self.expr(value, state);
                *state = State::Unreached;
            }
            StmtKind::Assert(condition) => self.expr(condition, state),
            StmtKind::Communicate(communicate) => self.communicate(communicate, state),
            StmtKind::Call(_, arguments) => self.arguments(arguments, state),
            StmtKind::CallFn(_, arguments) => arguments.iter().for_each(|argument| self.expr(argument, state)),
            StmtKind::Link(local) | StmtKind::Unlink(local) => self.read(*local, stmt.span, state),
            StmtKind::Assign(place, value) => {
                self.expr(value, state);
                self.assign(place, state);
            }
            StmtKind::Update { place, value, .. } => {
                self.expr(value, state);
                self.indices(place, state);
                self.read(place.base, place.span, state);
            }
        }
    }

    fn communicate(&mut self, communicate: &Communicate, state: &mut State) {
        for Branch { guard, .. } in &communicate.branches {
            guard.iter().for_each(|guard| self.expr(guard, state));
        }
        let before = state.clone();
        if !communicate.branches.is_empty() {
            *state = State::Unreached;
        }
        for branch in &communicate.branches {
            let mut inside = before.clone();
            match &branch.operation {
                Operation::In(_, _, patterns) => {
                    patterns.iter().for_each(|pattern| self.pattern(pattern, &mut inside));
                }
                Operation::Out(_, _, values) => values.iter().for_each(|value| self.expr(value, &mut inside)),
                Operation::After(duration, _) => self.expr(duration, &mut inside),
                Operation::Until(time) => self.expr(time, &mut inside),
            }
            self.block(&branch.body, &mut inside);
            state.meet(inside);
        }
        if let Some(otherwise) = &communicate.otherwise {
            let mut inside = before;
            self.block(otherwise, &mut inside);
            state.meet(inside);
        }
    }
}
