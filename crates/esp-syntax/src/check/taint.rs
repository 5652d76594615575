//! Which extern functions decide what a program does: those whose result can reach a condition, a pattern, an index or
//! the world (for E0801). Coarse: a variable is one thing, whatever its parts.

use super::names::Checker;
use super::walk;
use crate::hir::{
    Argument, Boundary, ChannelId, Expr, ExprKind, ExternId, LocalId, Operation, Pattern, PatternKind, Place,
    ProcessId, Stmt, StmtKind,
};
use rustc_hash::FxHashMap;

/// Something a value can be in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Variable(ProcessId, LocalId),
    Payload(ChannelId, u32),
    Result(ExternId),
    /// What decides.
    Decision,
}

/// From each holder to those its value goes to.
#[derive(Default)]
struct Flows {
    to: FxHashMap<Holder, Vec<Holder>>,
    externs: Vec<ExternId>,
}

/// The extern functions called in these processes whose result can reach a decision, in order of declaration.
pub(super) fn deciding_externs(checker: &Checker, scope: &[ProcessId]) -> Vec<ExternId> {
    let mut flows = Flows::default();
    for process in scope {
        if let Some(hir) = &checker.processes[process.0 as usize].hir {
            walk::statements(&hir.body, &mut |stmt| flows.statement(checker, *process, stmt));
        }
    }
    flows.externs.sort();
    flows.externs.dedup();
    let backward = flows.reaching();
    flows.externs.retain(|id| backward.contains(&Holder::Result(*id)));
    flows.externs
}

impl Flows {
    /// Every holder whose value can reach a decision.
    fn reaching(&self) -> rustc_hash::FxHashSet<Holder> {
        let mut from: FxHashMap<Holder, Vec<Holder>> = FxHashMap::default();
        for (source, targets) in &self.to {
            for target in targets {
                from.entry(*target).or_default().push(*source);
            }
        }
        let mut reached = rustc_hash::FxHashSet::default();
        let mut open = vec![Holder::Decision];
        while let Some(holder) = open.pop() {
            if reached.insert(holder) {
                open.extend(from.get(&holder).into_iter().flatten());
            }
        }
        reached
    }

    /// Everything an expression's value depends on goes to a holder; its indices decide.
    fn expr(&mut self, process: ProcessId, expr: &Expr, target: Holder) {
        match &expr.kind {
            ExprKind::Local(local) => self.add(Holder::Variable(process, *local), target),
            ExprKind::CallExtern(id, arguments) => {
                self.externs.push(*id);
                self.add(Holder::Result(*id), target);
                self.arguments(process, *id, arguments);
            }
            ExprKind::Index(base, index) => {
                self.expr(process, base, target);
                self.expr(process, index, Holder::Decision);
            }
            ExprKind::Conditional(condition, left, right) => {
                self.expr(process, condition, Holder::Decision);
                self.expr(process, left, target);
                self.expr(process, right, target);
            }
            _ => walk::operands(expr, &mut |operand| self.expr(process, operand, target)),
        }
    }

    fn arguments(&mut self, process: ProcessId, id: ExternId, arguments: &[Argument]) {
        for argument in arguments {
            match argument {
                // What goes out to C does not decide what the program does.
                Argument::Value(value) => self.expr(process, value, Holder::Result(id)),
                Argument::Mutable(place) => self.place(process, Holder::Result(id), place),
            }
        }
    }

    fn add(&mut self, source: Holder, target: Holder) {
        self.to.entry(source).or_default().push(target);
    }

    fn place(&mut self, process: ProcessId, source: Holder, place: &Place) {
        self.add(source, Holder::Variable(process, place.base));
        walk::place_expressions(place, &mut |index| self.expr(process, index, Holder::Decision));
    }

    fn pattern(&mut self, process: ProcessId, source: Holder, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Any => {}
            PatternKind::Declare(local) => self.add(source, Holder::Variable(process, *local)),
            PatternKind::Assign(place) => self.place(process, source, place),
            PatternKind::Constant(_) | PatternKind::Bytes(_) | PatternKind::OwnId => self.add(source, Holder::Decision),
            PatternKind::Equal(expr) => {
                self.add(source, Holder::Decision);
                self.expr(process, expr, Holder::Decision);
            }
            PatternKind::Tag(_, payload) => {
                self.add(source, Holder::Decision);
                payload.iter().for_each(|payload| self.pattern(process, source, payload));
            }
            PatternKind::Record(parts) | PatternKind::Array(parts) => {
                parts.iter().for_each(|part| self.pattern(process, source, part));
            }
        }
        pattern.condition.iter().for_each(|condition| self.expr(process, condition, Holder::Decision));
    }

    fn statement(&mut self, checker: &Checker, process: ProcessId, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Assign(place, value) | StmtKind::Update { place, value, .. } => {
                self.expr(process, value, Holder::Variable(process, place.base));
                walk::place_expressions(place, &mut |index| self.expr(process, index, Holder::Decision));
            }
            StmtKind::Call(id, arguments) => {
                self.externs.push(*id);
                self.arguments(process, *id, arguments);
            }
            StmtKind::Match(value, arms) => {
                self.expr(process, value, Holder::Decision);
                // Matched parts go on to what the arms bind.
                let mut sources = Vec::new();
                walk::nested(value, &mut |expr| match &expr.kind {
                    ExprKind::Local(local) => sources.push(Holder::Variable(process, *local)),
                    ExprKind::CallExtern(id, _) => sources.push(Holder::Result(*id)),
                    _ => {}
                });
                for (pattern, _) in arms {
                    sources.iter().for_each(|source| self.pattern(process, *source, pattern));
                }
            }
            StmtKind::Communicate(communicate) => {
                for branch in &communicate.branches {
                    branch.guard.iter().for_each(|guard| self.expr(process, guard, Holder::Decision));
                    match &branch.operation {
                        Operation::In(_, channel, patterns) => {
                            for (index, pattern) in patterns.iter().enumerate() {
                                self.pattern(process, Holder::Payload(*channel, index as u32), pattern);
                            }
                        }
                        Operation::Out(_, channel, values) => {
                            let world = checker.channels[channel.0 as usize].hir.boundary == Boundary::ToWorld;
                            for (index, value) in values.iter().enumerate() {
                                let payload = Holder::Payload(*channel, index as u32);
                                self.expr(process, value, if world { Holder::Decision } else { payload });
                            }
                        }
                        Operation::After(duration, _) => self.expr(process, duration, Holder::Decision),
                    }
                }
            }
            _ => walk::expressions(stmt, &mut |expr| self.expr(process, expr, Holder::Decision)),
        }
    }
}
