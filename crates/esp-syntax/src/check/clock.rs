//! The clock: `now`, durations, and arithmetic on `time` and `duration` (reference, section 3). Knows nothing of waits.

use super::body::{Binding, Body, BodyKind};
use super::coerce::{Use, count_help};
use super::constants::{Constant, error_expr, fits_int};
use super::expressions::Value;
use super::names::{Checker, Entity, Named};
use crate::ast::{self, TimeUnit};
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{
    self, AbstractionKind, BinaryOperator, Boundary, Durations, ExprKind, Influence, IntType, ModelAbstraction,
    ModelPath, Mutability, StmtKind,
};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// Whether a value has a type of the clock.
pub(super) fn is_clock(value: &Value) -> bool {
    match value {
        Value::Typed(value) => matches!(value.expr.ty, TypeTable::TIME | TypeTable::DURATION),
        Value::Untyped(_) => false,
    }
}

impl<'a> Body<'_, 'a> {
    /// Whether a type is `time` or `duration`.
    pub(super) fn is_clock_type(&self, ty: TypeId) -> bool {
        matches!(self.checker.types.get(ty), Type::Int(int) if int.is_clock())
    }

    /// `now`: impure, since two readings differ.
    pub(super) fn now(&mut self, span: Span) -> Value {
        match self.kind {
            BodyKind::Function(_) => {
                self.effect("now", span);
                return Value::error(span);
            }
            BodyKind::Predicate(_) => {
                let diagnostic = Diagnostic::new(Code::E0705, span, "`now` is not pure")
                    .help("read it into a variable before the statement, and compare that");
                self.checker.report(diagnostic);
                return Value::error(span);
            }
            BodyKind::Constant => {
                self.not_a_constant(span);
                return Value::error(span);
            }
            BodyKind::Process(_) | BodyKind::Environment | BodyKind::Interface => {}
        }
        if let Some(context) = self.pure_context {
            let message = format!("`now` changes while an operation waits and cannot be used in {}", context.place());
            let help = "wait with a branch `until (t)`, or read it into a variable before the `alt`";
            self.checker.report(Diagnostic::new(Code::E0504, span, message).help(help));
            return Value::error(span);
        }
        self.checker.clock.is_used = true;
        Value::immutable(hir::Expr { kind: ExprKind::Now, ty: TypeTable::TIME, span })
    }

    /// `(e ms)`
    pub(super) fn duration(&mut self, amount: &'a ast::Expr, unit: TimeUnit, span: Span) -> Value {
        let amount = self.check(amount, TypeTable::I64, Use::Read);
        let factor = ExprKind::Constant(i128::from(unit.nanoseconds()));
        let factor = hir::Expr { kind: factor, ty: TypeTable::I64, span };
        self.checker.clock.is_used = true;
        Value::immutable(self.saturating(BinaryOperator::Multiply, amount, factor, TypeTable::DURATION, span))
    }

    /// Arithmetic of which an operand is a time or a duration.
    pub(super) fn clock_arithmetic(
        &mut self,
        operator: BinaryOperator,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
        let (left, right) = (self.clock_operand(left), self.clock_operand(right));
        if left.ty == TypeTable::ERROR || right.ty == TypeTable::ERROR {
            return Value::error(span);
        }
        use BinaryOperator::{Add, Divide, Multiply, Subtract};
        const TIME: TypeId = TypeTable::TIME;
        const DURATION: TypeId = TypeTable::DURATION;
        const I64: TypeId = TypeTable::I64;
        let result = match (operator, left.ty, right.ty) {
            (Add, TIME, DURATION) | (Add, DURATION, TIME) | (Subtract, TIME, DURATION) => TIME,
            (Subtract, TIME, TIME)
            | (Add | Subtract, DURATION, DURATION)
            | (Multiply | Divide, DURATION, I64)
            | (Multiply, I64, DURATION) => DURATION,
            (Divide, DURATION, DURATION) => {
                let [left, right] = [left, right].map(|operand| self.count(operand));
                return Value::immutable(self.binary(Divide, left, right, I64, span));
            }
            (_, found, other) => {
                self.no_operator(operator, found, other, [left.span, right.span], span);
                return Value::error(span);
            }
        };
        if (left.ty, right.ty) == (TIME, TIME) {
            self.checker.clock.durations = Durations::Unknown;
        }
        Value::immutable(self.saturating(operator, left, right, result, span))
    }

    /// An operand of clock arithmetic: an integer is an `i64`.
    fn clock_operand(&mut self, operand: Value) -> hir::Expr {
        match operand {
            Value::Untyped(untyped) => self.fix(untyped, IntType::I64),
            Value::Typed(value) => match self.int_type(value.expr.ty) {
                Some(_) => self.coerce(value, TypeTable::I64, Use::Read),
                None => value.expr,
            },
        }
    }

    /// The nanoseconds of a duration.
    fn count(&mut self, duration: hir::Expr) -> hir::Expr {
        let (ty, span) = (TypeTable::I64, duration.span);
        match duration.kind {
            ExprKind::Constant(_) => hir::Expr { ty, ..duration },
            _ => hir::Expr { kind: ExprKind::Convert(Box::new(duration)), ty, span },
        }
    }

    fn no_operator(&mut self, operator: BinaryOperator, left: TypeId, right: TypeId, operands: [Span; 2], span: Span) {
        let [a, b] = [left, right].map(|ty| self.checker.type_name(ty));
        let message = format!("there is no `{}` of `{a}` and `{b}`", operator.sign());
        let is_integer = |ty| self.int_type(ty).is_some();
        let text = |index: usize| self.checker.text(operands[index]).to_string();
        let mut diagnostic = Diagnostic::new(Code::E0302, span, message);
        let adds = matches!(operator, BinaryOperator::Add | BinaryOperator::Subtract);
        if adds && is_integer(right) {
            diagnostic = diagnostic.help(format!("a duration has a unit: write `({} ms)`", text(1)));
        } else if adds && is_integer(left) && right == TypeTable::DURATION {
            diagnostic = diagnostic.help(format!("a duration has a unit: write `({} ms)`", text(0)));
        } else if right == TypeTable::DURATION && is_integer(left) {
            diagnostic = diagnostic.help(count_help(&text(1), IntType::I64));
        } else if adds {
            diagnostic = diagnostic.help("a time and a duration make a time, two times subtracted a duration");
        } else {
            diagnostic = diagnostic.help("a duration is multiplied by a number, and divided by a number or a duration");
        }
        self.checker.report(diagnostic);
    }

    /// A saturating operation on 64-bit operands, computed if they are constant.
    fn saturating(
        &mut self,
        operator: BinaryOperator,
        left: hir::Expr,
        right: hir::Expr,
        ty: TypeId,
        span: Span,
    ) -> hir::Expr {
        if left.ty == TypeTable::ERROR || right.ty == TypeTable::ERROR {
            return error_expr(span);
        }
        if let (ExprKind::Constant(a), ExprKind::Constant(b)) = (&left.kind, &right.kind) {
            // Products of 64-bit numbers fit 128 bits.
            let exact = match operator {
                BinaryOperator::Add => a + b,
                BinaryOperator::Subtract => a - b,
                BinaryOperator::Multiply => a * b,
                _ if *b == 0 => {
                    self.checker.error(Code::E0303, span, "division by zero in a constant");
                    return error_expr(span);
                }
                _ => a / b,
            };
            let value = exact.clamp(IntType::I64.min(), IntType::I64.max());
            debug_assert!(fits_int(value, IntType::I64));
            return hir::Expr { kind: ExprKind::Constant(value), ty, span };
        }
        hir::Expr { kind: ExprKind::Saturating(operator, Box::new(left), Box::new(right)), ty, span }
    }

    /// `t += d;` and its like.
    pub(super) fn update_clock(
        &mut self,
        place: hir::Place,
        operator: BinaryOperator,
        value: &'a ast::Expr,
    ) -> Option<StmtKind> {
        let value = self.synth(value);
        let value = self.clock_operand(value);
        if value.ty == TypeTable::ERROR {
            return None;
        }
        use BinaryOperator::{Add, Divide, Multiply, Subtract};
        match (operator, place.ty, value.ty) {
            (Add | Subtract, TypeTable::TIME | TypeTable::DURATION, TypeTable::DURATION)
            | (Multiply | Divide, TypeTable::DURATION, TypeTable::I64) => {
                let ty = place.ty;
                Some(StmtKind::Update { place, operator, value, ty })
            }
            (_, to, found) => {
                let span = place.span.to(value.span);
                self.no_operator(operator, to, found, [place.span, value.span], span);
                None
            }
        }
    }

    /// Whether an expression is a duration, as far as its form and the types of its names tell.
    pub(super) fn is_duration(&self, expr: &ast::Expr) -> bool {
        self.apparent_type(expr) == Some(TypeTable::DURATION)
    }

    /// The type that the form of an expression gives it; none if that takes more than names.
    fn apparent_type(&self, expr: &ast::Expr) -> Option<TypeId> {
        match &expr.kind {
            ast::ExprKind::Duration(..) => Some(TypeTable::DURATION),
            ast::ExprKind::Name(name) => match self.find(name) {
                Some(Binding::Local(id)) => self.local(id).ty,
                Some(Binding::Channel(_)) => None,
                Some(Binding::Const(index)) => constant_type(&self.facts.constants[index as usize]),
                None => match self.checker.lookup(name) {
                    Some(Named { entity: Entity::Const(entry), .. }) => {
                        constant_type(self.checker.consts[entry].value.as_ref()?)
                    }
                    None if name.text == "now" => Some(TypeTable::TIME),
                    Some(_) | None => None,
                },
            },
            ast::ExprKind::Call(name, _) => match self.checker.lookup(name)?.entity {
                Entity::Function(id) => Some(self.checker.functions[id.0 as usize].result),
                Entity::Extern(id) => self.checker.externs[id.0 as usize].hir.result,
                _ => None,
            },
            ast::ExprKind::Field(base, field) => {
                let base = self.checker.content(self.apparent_type(base)?);
                let Type::Record(id) = self.checker.types.get(base) else { return None };
                let parts = &self.checker.types.aggregate(*id).parts;
                parts.iter().find(|(name, _)| *name == field.text)?.1
            }
            ast::ExprKind::Index(base, _) => {
                match self.checker.types.get(self.checker.content(self.apparent_type(base)?)) {
                    Type::Array { element, .. } => Some(*element),
                    _ => None,
                }
            }
            ast::ExprKind::Conditional(_, left, _) => self.apparent_type(left),
            ast::ExprKind::Binary(BinaryOperator::Add | BinaryOperator::Subtract, left, right) => {
                match (self.apparent_type(left), self.apparent_type(right)) {
                    (Some(TypeTable::TIME), Some(TypeTable::TIME)) => Some(TypeTable::DURATION),
                    (left, _) => left,
                }
            }
            ast::ExprKind::Binary(BinaryOperator::Multiply | BinaryOperator::Divide, left, right) => {
                let is_clock = |operand| self.apparent_type(operand).is_some_and(|ty| self.is_clock_type(ty));
                is_clock(left).then_some(TypeTable::DURATION).or(is_clock(right).then_some(TypeTable::DURATION))
            }
            _ => None,
        }
    }
}

impl Checker<'_> {
    /// Records that durations come from the environment, if some do.
    pub(super) fn note_outer_durations(&mut self) {
        let from_outside = self.channels.iter().filter(|entry| entry.hir.boundary == Boundary::FromEnvironment);
        let messages = from_outside.flat_map(|entry| entry.hir.payload.iter());
        let results = self.externs.iter().flat_map(|entry| {
            let written = entry.hir.parameters.iter().filter(|(_, _, mutability)| *mutability == Mutability::Mutable);
            written.map(|(_, ty, _)| ty).chain(entry.hir.result.iter())
        });
        if messages.chain(results).any(|ty| self.types.holds_clock(*ty)) {
            self.clock.durations = Durations::Unknown;
        }
    }

    /// Records that a model forgets durations that decide what the program does: they are compared with others.
    pub(super) fn note_forgotten_durations(&mut self) {
        let of_type = |ty| self.types.holds(ty, &|part| part == TypeTable::DURATION);
        let holds_duration = |abstraction: &ModelAbstraction| match (abstraction.kind, &abstraction.path) {
            (AbstractionKind::Hash | AbstractionKind::Range(..), _) | (_, ModelPath::Extern(_)) => false,
            (_, ModelPath::Variable(process, local)) => {
                let process = self.processes[process.0 as usize].hir.as_ref();
                process.is_some_and(|process| of_type(process.locals[local.0 as usize].ty))
            }
            (_, ModelPath::Payload(channel, number)) => {
                of_type(self.channels[channel.0 as usize].hir.payload[*number as usize])
            }
        };
        let mut abstractions = self.models.iter().flat_map(|model| &model.abstractions);
        if abstractions.any(|part| part.influence == Influence::Control && holds_duration(part)) {
            self.clock.durations = Durations::Unknown;
        }
    }
}

fn constant_type(constant: &Constant) -> Option<TypeId> {
    match constant {
        Constant::Typed(value) => Some(value.ty),
        Constant::Untyped(_) | Constant::Error => None,
    }
}
