//! Translates `for` loops of ticks: those that are unrolled when the tick is evaluated, and the others.

use super::emit::Emitter;
use super::tree::{Expression, ExpressionKind, For, Initial, Statement, StatementKind, Variable};
use crate::report::Event;
use crate::scope::Shape;
use std::fmt::Write as _;

/// The loops around a loop that are generated in two forms. Each doubles the text of those in it.
const MAX_ALTERNATIVES: usize = 3;

/// Whether the evaluation of an operand could have effects, so that it must not be evaluated twice.
fn has_effects(operand: &Expression) -> bool {
    let mut found = false;
    operand.visit(&mut |own| {
        found |=
            matches!(own.kind, ExpressionKind::Assign { .. } | ExpressionKind::Step { .. } | ExpressionKind::Call(..));
    });
    found
}

/// Whether what is evaluated with the tick, in the body of a loop, has its counter, so that the body differs in each
/// iteration.
fn generates_by_counter(counter: usize, body: &Statement) -> bool {
    let mut found = false;
    body.visit(&mut |own| {
        found |= match &own.kind {
            ExpressionKind::Dollar(operand) | ExpressionKind::Splice(_, operand) | ExpressionKind::Jump(operand) => {
                operand.locals().contains(&counter)
            }
            _ => false,
        };
    });
    found
}

impl Emitter<'_, '_> {
    pub(super) fn for_loop(&mut self, from: usize, parts: &For) {
        let Some(local) = self.induction_variable(parts) else { return self.kept_loop(parts) };
        self.unrolled.remove(&local);
        let limit = self.parser.options.unroll_limit;
        if limit == 0 && !generates_by_counter(local, &parts.body) {
            self.remark(from, Event::Kept { variable: self.locals[local].name.clone(), limit });
            return self.kept_loop(parts);
        }
        let kept = self.alternative(local, parts);
        let iterations = self.iterations(parts);
        let name = self.locals[local].name.clone();
        match kept {
            Some(kept) if iterations.is_some_and(|count| count > u64::from(limit)) => {
                self.remark(from, Event::Kept { variable: name, limit });
                self.out.push_str(&kept);
            }
            Some(kept) => {
                self.remark(from, Event::Unrolled { variable: name, limit: Some(limit) });
                let unrolling = format!("qjt_u{}", self.fresh());
                let _ = write!(self.out, "{{ qjt_unrolling {unrolling}; qjt_begin_unrolling(&{unrolling}, {limit}u); ");
                self.unrolled_loop(local, parts, &format!(" && !qjt_exceeds(&{unrolling})"));
                let _ = write!(self.out, "if (qjt_end_unrolling(&{unrolling})) {kept}}} ");
            }
            None => {
                self.remark(from, Event::Unrolled { variable: name, limit: None });
                self.unrolled_loop(local, parts, "");
            }
        }
    }

    /// Code for a loop that could be unrolled, as a loop; none if it cannot be one, because operands of `$` depend on
    /// its variable or have effects, or if loops in it have too many alternatives already.
    fn alternative(&mut self, local: usize, parts: &For) -> Option<String> {
        let mut is_possible = self.alternatives < MAX_ALTERNATIVES;
        let mut look = |own: &Expression| match &own.kind {
            ExpressionKind::Dollar(operand) | ExpressionKind::Splice(_, operand) | ExpressionKind::Jump(operand) => {
                is_possible &= !operand.locals().contains(&local) && !has_effects(operand);
            }
            _ => {}
        };
        [&parts.condition, &parts.step].into_iter().flatten().for_each(|part| part.visit(&mut look));
        parts.body.visit(&mut look);
        if !is_possible {
            return None;
        }
        let state = (self.parser.diagnostics.len(), self.parser.remarks.len(), self.parser.preludes.len(), self.nodes);
        let out = std::mem::take(&mut self.out);
        self.alternatives += 1;
        self.kept_loop(parts);
        self.alternatives -= 1;
        let kept = std::mem::replace(&mut self.out, out);
        let is_complete = self.parser.diagnostics.len() == state.0;
        self.parser.diagnostics.truncate(state.0);
        // What is in the loop is reported where it is unrolled.
        self.parser.remarks.truncate(state.1);
        if !is_complete {
            self.parser.preludes.truncate(state.2);
        }
        self.nodes = state.3;
        is_complete.then_some(kept)
    }

    /// The number of iterations, if literals say it.
    fn iterations(&self, parts: &For) -> Option<u64> {
        let first = match &parts.first.as_ref()?.kind {
            StatementKind::Expression(Expression { kind: ExpressionKind::Assign { value, .. }, .. }) => value,
            StatementKind::Declaration { variables, .. } => match &variables.first()?.initial {
                Some(Initial::Value(value)) => value,
                Some(Initial::Parts(_)) | None => return None,
            },
            _ => return None,
        };
        let ExpressionKind::Binary(comparison, left, right) = &parts.condition.as_ref()?.kind else { return None };
        if !matches!(left.kind, ExpressionKind::Local(_)) {
            return None;
        }
        let (step, operator) = match &parts.step.as_ref()?.kind {
            ExpressionKind::Step { operator, .. } => (1, *operator),
            ExpressionKind::Assign { operator, value, .. } => (self.number(value)?, *operator),
            _ => return None,
        };
        let (from, to) = (self.number(first)?, self.number(right)?);
        let distance = match (*comparison, operator) {
            ("<", "+") => to - from,
            ("<=", "+") => to - from + 1,
            (">", "-") => from - to,
            (">=", "-") => from - to + 1,
            _ => return None,
        };
        (step > 0).then(|| u64::try_from(distance).unwrap_or(0).div_ceil(step.unsigned_abs()))
    }

    /// The value of a literal of few digits.
    fn number(&self, own: &Expression) -> Option<i64> {
        match &own.kind {
            ExpressionKind::Constant if own.range.to == own.range.from + 1 => {
                self.parser.token_text(own.range.from).parse::<i32>().ok().map(i64::from)
            }
            ExpressionKind::Dollar(operand) => self.number(operand),
            _ => None,
        }
    }

    fn kept_loop(&mut self, parts: &For) {
        self.out.push_str("{ qjt_block(); ");
        parts.first.iter().for_each(|first| self.statement(first));
        self.out.push_str("qjt_loop(QJT_TEST_FIRST); ");
        if let Some(condition) = &parts.condition {
            let (condition, _) = self.operand(condition);
            let _ = write!(self.out, "qjt_condition({condition}); ");
        }
        if let Some(step) = &parts.step {
            let value = self.expression(step);
            let _ = write!(self.out, "qjt_step(qjt_t{}, {}); ", value.ty, value.code);
        }
        self.statement(&parts.body);
        self.out.push_str("qjt_end(); qjt_end(); } ");
    }

    /// The induction variable of a loop that is unrolled: its first value, condition and step are run-time constants,
    /// a `$` occurs, and nothing else changes it.
    fn induction_variable(&mut self, parts: &For) -> Option<usize> {
        let (local, first) = match &parts.first.as_ref()?.kind {
            StatementKind::Expression(Expression {
                kind: ExpressionKind::Assign { operator: "", target, value },
                ..
            }) => match target.kind {
                ExpressionKind::Local(local) => (local, value.as_ref()),
                _ => return None,
            },
            StatementKind::Declaration { variables, .. } => match variables.as_slice() {
                [Variable { local, initial: Some(Initial::Value(value)) }] => (*local, value),
                _ => return None,
            },
            _ => return None,
        };
        let is_changed = |own: &Expression| match &own.kind {
            ExpressionKind::Assign { target, .. } => matches!(target.kind, ExpressionKind::Local(it) if it == local),
            ExpressionKind::Step { operand, .. } => matches!(operand.kind, ExpressionKind::Local(it) if it == local),
            _ => false,
        };
        let (condition, step) = (parts.condition.as_ref()?, parts.step.as_ref()?);
        let (mut has_dollar, mut is_changed_in_body) = (false, false);
        let mut look = |own: &Expression| has_dollar |= matches!(own.kind, ExpressionKind::Dollar(_));
        condition.visit(&mut look);
        step.visit(&mut look);
        first.visit(&mut look);
        parts.body.visit(&mut look);
        parts.body.visit(&mut |own| is_changed_in_body |= is_changed(own));
        let is_first_known = self.is_constant(first);
        self.unrolled.insert(local);
        let amount_is_known = match &step.kind {
            ExpressionKind::Assign { value, .. } => is_changed(step) && self.is_constant(value),
            ExpressionKind::Step { .. } => is_changed(step),
            _ => false,
        };
        let is_unrolled = has_dollar
            && !is_changed_in_body
            && is_first_known
            && amount_is_known
            && self.is_constant(condition)
            && !self.locals[local].has_address
            && matches!(self.locals[local].shape, Shape::Plain | Shape::Pointer(_));
        if !is_unrolled {
            self.unrolled.remove(&local);
        }
        is_unrolled.then_some(local)
    }

    /// A loop that runs when the tick is evaluated, and generates its body each time. Its variable is one of the host
    /// in the meantime.
    fn unrolled_loop(&mut self, local: usize, parts: &For, limit: &str) {
        self.unrolled.insert(local);
        let name = self.locals[local].name.clone();
        let jumps = parts.body.jumps();
        let text = |emitter: &mut Self, own: &Option<Expression>| {
            own.as_ref().map_or(String::new(), |own| emitter.host_text(own.range))
        };
        let (condition, step) = (text(self, &parts.condition), text(self, &parts.step));
        self.out.push_str("{ qjt_block(); ");
        let first = match &parts.first.as_ref().map(|first| &first.kind) {
            Some(StatementKind::Expression(first)) => self.host_text(first.range),
            Some(StatementKind::Declaration { text, variables }) => {
                let _ = write!(self.out, "{text}; __attribute__((unused)) qjt_node *{} = 0; ", self.variable(local));
                let value = match variables.first().map(|own| &own.initial) {
                    Some(Some(Initial::Value(value))) => self.host_text(value.range),
                    _ => String::new(),
                };
                format!("{name} = {value}")
            }
            _ => String::new(),
        };
        if jumps.breaks {
            self.out.push_str("qjt_region(QJT_BREAKS); ");
        }
        let _ = write!(self.out, "for ({first}; ({condition}){limit}; {step}) {{ qjt_block(); ");
        if jumps.continues {
            self.out.push_str("qjt_region(QJT_CONTINUES); ");
        }
        self.statement(&parts.body);
        if jumps.continues {
            self.out.push_str("qjt_end(); ");
        }
        self.out.push_str("qjt_end(); } ");
        if jumps.breaks {
            self.out.push_str("qjt_end(); ");
        }
        self.unrolled.remove(&local);
        if matches!(parts.first.as_ref().map(|first| &first.kind), Some(StatementKind::Expression(_))) {
            self.set_after_loop(local, &name);
        }
        self.out.push_str("qjt_end(); } ");
    }

    /// Gives the variable of generated code the last value of the host's, for what follows the loop.
    fn set_after_loop(&mut self, local: usize, name: &str) {
        let ty = self.define("QJT_PLACE", name);
        let handle = self.variable(local);
        let _ = write!(
            self.out,
            "qjt_do(QJT_VOID, qjt_assign(qjt_t{ty}, sizeof(qjt_q{ty}), {handle}, qjt_t{ty}, qjt_captured(qjt_t{ty}, &{name}))); "
        );
    }
}
