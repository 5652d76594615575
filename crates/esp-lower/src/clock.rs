//! Arithmetic on `time` and `duration`, which saturates at the ends of 64 bits, and its abstraction in models
//! (reference, section 11): a model does not know when something happens.
//!
//! ```text
//!   now, t + d, t - d      0                 all times are one value
//!   t < u, t == u          time order()      an extern function that returns either truth value
//!   t - u                  0                 then all durations are one value, and compared like times
//!   d / e                  0                 then any number, where it does not influence control or is that of a
//!                                            forgotten variable
//! ```

use crate::Context;
use crate::builder::Builder;
use quaject_esp_ir::ir::{BinaryOp, Extern, ExternId, Location, Op, Operand, Purity, Type, TypeId, TypeTable, Value};
use quaject_esp_ir::model::{ModelProgram, UndecidedKind, UndecidedTime, Values};
use quaject_esp_syntax::hir::{self, BinaryOperator, ClockUse, Durations, Expr, ExprKind, Influence, LocalId};
use quaject_esp_syntax::span::Span;

/// The meaning of times and durations in what is lowered.
#[derive(Default)]
pub(super) struct Clock {
    /// In a model of a program that uses them.
    abstraction: Option<TimeAbstraction>,
    /// Where times are compared in a place that is evaluated more than once, or in a function.
    undecided: Vec<UndecidedTime>,
}

struct TimeAbstraction {
    /// Returns the result of a comparison.
    order: ExternId,
    durations: Durations,
    /// What the quotient of two durations that are not known influences.
    quotient: Influence,
}

impl Clock {
    /// The clock of a model.
    pub(super) fn of_model(program: &hir::Program) -> Clock {
        let ClockUse { is_used, durations, quotient } = program.clock;
        let order = ExternId(program.externs.len() as u32);
        let abstraction = is_used.then_some(TimeAbstraction { order, durations, quotient });
        Clock { abstraction, undecided: Vec::new() }
    }

    /// The number of functions that the model adds. They directly follow those of the program.
    pub(super) fn stand_ins(&self) -> usize {
        usize::from(self.abstraction.is_some())
    }

    /// Adds the functions to a model, and what it does not decide.
    pub(super) fn add_to(self, model: &mut ModelProgram) {
        if self.abstraction.is_some() {
            model.program.externs.push(Extern {
                name: "time-order".into(),
                purity: Purity::Impure,
                parameters: Vec::new(),
                result: Some(TypeTable::BOOL),
            });
            model.results.push(Values::All);
        }
        model.undecided_times = self.undecided;
    }
}

impl Context<'_> {
    /// Whether a type is `time` or `duration`.
    pub(super) fn is_clock(&self, ty: TypeId) -> bool {
        matches!(self.types.get(ty), Type::Int(int) if int.is_clock())
    }

    /// Whether all values of a scalar type are one in this model.
    pub(super) fn is_abstract(&self, ty: TypeId) -> bool {
        self.clock.abstraction.as_ref().is_some_and(|abstraction| {
            ty == TypeTable::TIME || (ty == TypeTable::DURATION && abstraction.durations == Durations::Unknown)
        })
    }

    /// Whether values of a type have a part of such a type.
    pub(super) fn holds_abstract(&self, ty: TypeId) -> bool {
        let Some(abstraction) = &self.clock.abstraction else { return false };
        match abstraction.durations {
            Durations::Unknown => self.types.holds_clock(ty),
            Durations::Exact => self.types.holds(ty, &|part| part == TypeTable::TIME),
        }
    }

    /// Whether this is a division of durations that are not known.
    pub(super) fn is_unknown_quotient(&self, left: &Expr, right: &Expr) -> bool {
        let is_count =
            |operand: &Expr| matches!(&operand.kind, ExprKind::Convert(inner) if inner.ty == TypeTable::DURATION);
        self.is_abstract(TypeTable::DURATION) && (is_count(left) || is_count(right))
    }
}

impl Builder<'_, '_, '_> {
    /// The present time.
    pub(super) fn now(&mut self, span: Span) -> Value {
        if self.context.is_abstract(TypeTable::TIME) {
            return self.define(TypeTable::TIME, Op::Constant(0), span);
        }
        let zero = self.define(TypeTable::I32, Op::Constant(0), span);
        self.define(TypeTable::TIME, Op::Deadline { amount: zero, unit_ns: 1 }, span)
    }

    /// `+ - * /` of two values of 64 bits, as a value of type `ty`.
    pub(super) fn saturating(
        &mut self,
        operator: BinaryOperator,
        left: Value,
        right: Value,
        ty: TypeId,
        span: Span,
    ) -> Value {
        if self.context.is_abstract(ty) && operator != BinaryOperator::Divide {
            return self.define(ty, Op::Constant(0), span);
        }
        let left = self.convert(left, TypeTable::I64, span);
        let right = self.convert(right, TypeTable::I64, span);
        let result = match operator {
            BinaryOperator::Add => self.on_i64(BinaryOp::SaturatingAdd, left, right, span),
            BinaryOperator::Subtract => self.on_i64(BinaryOp::SaturatingSubtract, left, right, span),
            BinaryOperator::Multiply => self.on_i64(BinaryOp::SaturatingMultiply, left, right, span),
            BinaryOperator::Divide => self.quotient(left, right, span),
            BinaryOperator::Remainder
            | BinaryOperator::ShiftLeft
            | BinaryOperator::ShiftRight
            | BinaryOperator::BitAnd
            | BinaryOperator::BitXor
            | BinaryOperator::BitOr
            | BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Less
            | BinaryOperator::LessEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterEqual
            | BinaryOperator::And
            | BinaryOperator::Or => unreachable!("analysis allows no other operator"),
        };
        self.convert(result, ty, span)
    }

    fn on_i64(&mut self, op: BinaryOp, left: Value, right: Value, span: Span) -> Value {
        self.define(TypeTable::I64, Op::Binary(op, left, right), span)
    }

    /// A quotient. Only that of the least number by -1 exceeds 64 bits, and is the negated dividend, saturated.
    fn quotient(&mut self, left: Value, right: Value, span: Span) -> Value {
        let minus_one = self.define(TypeTable::I64, Op::Constant(-1), span);
        let is_negation = self.define(TypeTable::BOOL, Op::Binary(BinaryOp::Equal, right, minus_one), span);
        let (negation, division, join) = (self.block(), self.block(), self.block());
        let result = self.parameter(join, TypeTable::I64);
        self.branch(is_negation, negation, division, span);
        self.enter(negation);
        let zero = self.define(TypeTable::I64, Op::Constant(0), span);
        let negated = self.on_i64(BinaryOp::SaturatingSubtract, zero, left, span);
        self.jump_with(join, vec![negated], span);
        self.enter(division);
        let quotient = self.on_i64(BinaryOp::Divide, left, right, span);
        self.jump_with(join, vec![quotient], span);
        self.enter(join);
        result
    }

    /// Either truth value: the result of a comparison that the model does not know.
    pub(super) fn either(&mut self, span: Span) -> Value {
        let order = self.context.clock.abstraction.as_ref().expect("times are abstract in a model only").order;
        if self.is_undecided(span) {
            return self.define(TypeTable::BOOL, Op::Constant(0), span);
        }
        let call = Op::CallExtern { function: order, arguments: Vec::new(), to: None };
        self.define(TypeTable::BOOL, call, span)
    }

    /// Either truth value if `condition` holds; otherwise false.
    pub(super) fn either_if(&mut self, condition: Value, span: Span) -> Value {
        let either = self.either(span);
        self.define(TypeTable::BOOL, Op::Binary(BinaryOp::BitAnd, condition, either), span)
    }

    /// The number that a forgotten variable gets if it is assigned such a quotient, perhaps converted: any of its
    /// range.
    pub(super) fn forgotten_quotient(&mut self, local: LocalId, value: &Expr) -> Option<Value> {
        let mut quotient = value;
        while let ExprKind::Convert(inner) = &quotient.kind {
            quotient = inner;
        }
        let ExprKind::Binary(BinaryOperator::Divide, left, right) = &quotient.kind else { return None };
        let is_known = !self.context.is_unknown_quotient(left, right);
        if is_known || !is_known_divisor(right) || !self.context.is_forgotten(local) {
            return None;
        }
        // Indices in the operands can fault.
        self.value(left);
        self.value(right);
        match self.forgotten_value(local, value.span)? {
            Operand::Value(number) => Some(number),
            Operand::Place(_) => unreachable!("a number is in a register"),
        }
    }

    /// The quotient of durations that are not known.
    pub(super) fn unknown_quotient(&mut self, left: &Expr, right: &Expr, span: Span) -> Value {
        // Indices in the operands can fault.
        self.value(left);
        self.value(right);
        let abstraction = self.context.clock.abstraction.as_ref().expect("times are abstract in a model only");
        if !is_known_divisor(right) {
            self.leave_undecided(UndecidedKind::Divisor, span);
        } else if abstraction.quotient == Influence::Control {
            self.leave_undecided(UndecidedKind::Quotient, span);
        }
        self.define(TypeTable::I64, Op::Constant(0), span)
    }

    /// Whether what is being built is evaluated in a place where no function of the environment can be called. Records
    /// the location if so.
    fn is_undecided(&mut self, span: Span) -> bool {
        let kind = if self.context.is_in_function {
            UndecidedKind::Function
        } else if self.is_in_region() {
            UndecidedKind::Matching
        } else {
            return false;
        };
        self.leave_undecided(kind, span);
        true
    }

    /// Records a comparison of which the model cannot try each result.
    pub(super) fn leave_undecided(&mut self, kind: UndecidedKind, span: Span) {
        let location: Location = self.context.location(span);
        let undecided = &mut self.context.clock.undecided;
        if undecided.iter().all(|known| known.location != location) {
            undecided.push(UndecidedTime { location, kind });
        }
    }
}

/// Whether a division by this operand cannot fault.
fn is_known_divisor(divisor: &Expr) -> bool {
    matches!(divisor.kind, ExprKind::Constant(number) if number != 0)
}
