//! Predicates of fast paths. Each is computed in the code of its process at its statement, and marked by its number. A
//! predicate whose evaluation could fault counts as false (reference, section 10) and is not computed.

use crate::Context;
use crate::builder::{Builder, Write};
use quaject_esp_ir::ir::{Op, TypeTable};
use quaject_esp_syntax::hir::{
    self, BinaryOperator, ControlPoint, Element, Expr, ExprKind, FastPathProcess, PathRegex,
};

/// A predicate: its process, by number, the statement, the expression.
pub struct Predicate<'p> {
    /// The process.
    pub process: usize,
    /// The statement.
    pub point: ControlPoint,
    /// The condition.
    pub condition: &'p Expr,
}

/// Every predicate of a program's fast paths; [`Op::Predicate`] refers to them by their index in this list.
pub fn predicates(program: &hir::Program) -> Vec<Predicate<'_>> {
    let mut found = Vec::new();
    for part in program.fast_paths.iter().flat_map(|path| &path.processes) {
        for element in elements(part) {
            if let Some(condition) = &element.predicate {
                found.push(Predicate { process: part.process.0 as usize, point: element.point, condition });
            }
        }
    }
    found
}

/// The elements of a process's part: its start, those of `follows` in order of text, its exits.
pub fn elements(part: &FastPathProcess) -> Vec<&Element> {
    fn collect<'p>(regex: &'p PathRegex, elements: &mut Vec<&'p Element>) {
        match regex {
            PathRegex::Element(element) => elements.push(element),
            PathRegex::Sequence(parts) | PathRegex::Choice(parts) => {
                parts.iter().for_each(|part| collect(part, elements));
            }
            PathRegex::Repeat(part, _, _) => collect(part, elements),
        }
    }
    let mut elements = vec![&part.start];
    part.follows.iter().for_each(|regex| collect(regex, &mut elements));
    elements.extend(&part.exit);
    elements
}

/// Whether evaluation can neither fault nor allocate.
fn cannot_fault(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Local(_) | ExprKind::OwnId | ExprKind::FreeObjects(_) => true,
        ExprKind::Field(inner, _)
        | ExprKind::Length(inner)
        | ExprKind::Content(inner)
        | ExprKind::Convert(inner)
        | ExprKind::WidenPid(inner)
        | ExprKind::Test(inner)
        | ExprKind::Unary(_, inner)
        | ExprKind::ReplicaNumber(inner) => cannot_fault(inner),
        ExprKind::Binary(operator, a, b) => {
            let divides = matches!(operator, BinaryOperator::Divide | BinaryOperator::Remainder);
            let by_constant = matches!(b.kind, ExprKind::Constant(divisor) if divisor != 0);
            (!divides || by_constant) && cannot_fault(a) && cannot_fault(b)
        }
        ExprKind::Saturating(operator, a, b) => {
            *operator != BinaryOperator::Divide && cannot_fault(a) && cannot_fault(b)
        }
        ExprKind::Conditional(condition, yes, no) => cannot_fault(condition) && cannot_fault(yes) && cannot_fault(no),
        _other => false,
    }
}

impl Builder<'_, '_, '_> {
    /// Computes the predicates of a statement.
    pub(super) fn predicates(&mut self, point: ControlPoint) {
        if self.context.predicates.is_empty() || !self.is_reachable() {
            return;
        }
        let process = self.context.process;
        let predicates = self.context.predicates.iter().enumerate();
        let here: Vec<(u32, &Expr)> = predicates
            .filter(|(_, predicate)| Some(predicate.process) == process && predicate.point == point)
            .map(|(number, predicate)| (number as u32, predicate.condition))
            .collect();
        for (number, condition) in here {
            let holds = if cannot_fault(condition) {
                self.value(condition)
            } else {
                self.define(TypeTable::BOOL, Op::Constant(0), condition.span)
            };
            self.effect(Op::Predicate(number, holds), Write::Initial, condition.span);
        }
    }
}

impl<'p> Context<'p> {
    /// Computes the predicates of the program's fast paths in what is lowered from now on.
    pub(super) fn compute_predicates(&mut self) {
        self.predicates = predicates(self.program);
    }
}
