//! Types of expressions. `check` hands the expected type down, `synth` infers the type where none is expected:
//! bidirectional typing (reference, section 3, "Integer conversion").

use super::access::Access;
use super::body::{Binding, Body, BodyKind};
use super::clock::is_clock;
use super::coerce::Use;
use super::constants::{Constant, Untyped, conditional, error_expr};
use super::names::{Entity, Named};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, BinaryOperator, ExprKind, IntType, Mutability, ProcessId, UnaryOperator};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// A typed expression and whether it is a `#T`.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) expr: hir::Expr,
    pub(super) mutability: Mutability,
}

/// What an expression turned out to be.
#[derive(Debug)]
pub(super) enum Value {
    Typed(Typed),
    Untyped(Untyped),
}

impl Value {
    pub(super) fn immutable(expr: hir::Expr) -> Value {
        Value::Typed(Typed { expr, mutability: Mutability::Immutable })
    }

    pub(super) fn error(span: Span) -> Value {
        Value::immutable(error_expr(span))
    }

    /// A constant of a type with constant id.
    pub(super) fn constant(value: i128, ty: TypeId, span: Span) -> Value {
        Value::immutable(hir::Expr { kind: ExprKind::Constant(value), ty, span })
    }
}

/// Literals that cannot be understood without an expected type.
fn needs_type(expr: &ast::Expr) -> bool {
    matches!(
        expr.kind,
        ast::ExprKind::Record(..) | ast::ExprKind::Tag(..) | ast::ExprKind::Array(..) | ast::ExprKind::Repeat(..)
    )
}

fn is_comparison(operator: BinaryOperator) -> bool {
    match operator {
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterEqual => true,
        BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Remainder
        | BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::ShiftLeft
        | BinaryOperator::ShiftRight
        | BinaryOperator::BitAnd
        | BinaryOperator::BitXor
        | BinaryOperator::BitOr
        | BinaryOperator::And
        | BinaryOperator::Or => false,
    }
}

/// `1 replica`, `3 replicas`.
fn replicas_of(count: i128) -> String {
    if count == 1 { "1 replica".to_string() } else { format!("{count} replicas") }
}

pub(super) fn is_shift(operator: BinaryOperator) -> bool {
    matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight)
}

impl<'a> Body<'_, 'a> {
    /// The expression in the type that its context expects.
    pub(super) fn check(&mut self, expr: &'a ast::Expr, expected: TypeId, need: Use) -> hir::Expr {
        if expected == TypeTable::ERROR {
            self.absorb(expr);
            return error_expr(expr.span);
        }
        match &expr.kind {
            ast::ExprKind::Record(..)
            | ast::ExprKind::Tag(..)
            | ast::ExprKind::Array(..)
            | ast::ExprKind::Repeat(..) => self.check_literal(expr, expected, need),
            ast::ExprKind::Binary(operator, left, right) => {
                self.check_binary(expr, *operator, left, right, expected, need)
            }
            ast::ExprKind::Unary(operator, operand) => self.check_unary(expr, *operator, operand, expected, need),
            ast::ExprKind::Conditional(condition, left, right) => {
                let need = if need == Use::Read { Use::Own } else { need };
                let condition = self.condition(condition);
                let left = self.check(left, expected, need);
                let right = self.check(right, expected, need);
                conditional(condition, left, right, expr.span)
            }
            ast::ExprKind::Call(name, arguments) if matches!(self.predeclared(name), "freeze" | "thaw") => {
                let value = self.freeze_or_thaw(name, arguments, Some(expected), expr.span);
                self.coerce(value, expected, need)
            }
            _ => {
                let value = self.synth(expr);
                self.coerce_synthesized(value, expected, need)
            }
        }
    }

    /// Coerces a value that was synthesized without an expected type.
    pub(super) fn coerce_synthesized(&mut self, value: Value, expected: TypeId, need: Use) -> hir::Expr {
        match value {
            Value::Typed(value) => self.coerce(value, expected, need),
            Value::Untyped(untyped) => match self.int_type(expected) {
                Some(int) => self.fix(untyped, int),
                None => {
                    self.mismatch(expected, TypeTable::I32, untyped.span);
                    error_expr(untyped.span)
                }
            },
        }
    }

    fn check_binary(
        &mut self,
        expr: &'a ast::Expr,
        operator: BinaryOperator,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        expected: TypeId,
        need: Use,
    ) -> hir::Expr {
        let logical = matches!(operator, BinaryOperator::And | BinaryOperator::Or);
        // A quotient of durations is an integer, although they are none.
        let is_quotient = operator == BinaryOperator::Divide && self.is_duration(right);
        if self.int_type(expected).is_none() || logical || is_comparison(operator) || is_quotient {
            let value = self.synth(expr);
            return self.coerce_synthesized(value, expected, need);
        }
        let left = self.check(left, expected, Use::Read);
        let right = if is_shift(operator) { self.any_integer(right) } else { self.check(right, expected, Use::Read) };
        self.binary(operator, left, right, expected, expr.span)
    }

    fn check_unary(
        &mut self,
        expr: &'a ast::Expr,
        operator: UnaryOperator,
        operand: &'a ast::Expr,
        expected: TypeId,
        need: Use,
    ) -> hir::Expr {
        let int = match (operator, self.int_type(expected)) {
            (UnaryOperator::Complement | UnaryOperator::Negate, Some(int)) => int,
            (UnaryOperator::Not, _) | (UnaryOperator::Complement | UnaryOperator::Negate, None) => {
                let value = self.synth(expr);
                return self.coerce_synthesized(value, expected, need);
            }
        };
        let leaf = matches!(operand.kind, ast::ExprKind::Int(_) | ast::ExprKind::Char(_) | ast::ExprKind::Name(_));
        let operand = if leaf {
            match self.synth(operand) {
                Value::Untyped(literal) => {
                    let untyped = Untyped::unary(operator, literal, expr.span);
                    return self.fix(untyped, int);
                }
                Value::Typed(value) => self.coerce(value, expected, Use::Read),
            }
        } else {
            self.check(operand, expected, Use::Read)
        };
        if operand.ty == TypeTable::ERROR { error_expr(expr.span) } else { self.unary(operator, operand, expr.span) }
    }

    /// Checks an expression whose context has an error: only the errors inside it are reported.
    pub(super) fn absorb(&mut self, expr: &'a ast::Expr) {
        match &expr.kind {
            ast::ExprKind::Record(_, fields) => fields.iter().for_each(|(_, value)| self.absorb(value)),
            ast::ExprKind::Array(_, elements) => elements.iter().for_each(|element| self.absorb(element)),
            ast::ExprKind::Repeat(_, element, length) => {
                self.absorb(element);
                self.absorb(length);
            }
            ast::ExprKind::Tag(_, payload) => self.absorb(payload),
            _ => {
                self.synth(expr);
            }
        }
    }

    /// The expression where nothing is expected.
    pub(super) fn synth(&mut self, expr: &'a ast::Expr) -> Value {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Error => Value::error(span),
            ast::ExprKind::Int(value) => Value::Untyped(Untyped::literal(i128::from(*value), span)),
            ast::ExprKind::Char(value) => Value::Untyped(Untyped::literal(i128::from(*value), span)),
            ast::ExprKind::Bool(value) => Value::constant(i128::from(*value), TypeTable::BOOL, span),
            ast::ExprKind::Bytes(mutability, bytes) => self.bytes_literal(bytes, *mutability, span),
            ast::ExprKind::Record(..) => self.unknown_literal(expr, "record"),
            ast::ExprKind::Tag(..) => self.unknown_literal(expr, "union"),
            ast::ExprKind::Array(mutability, elements) => self.synth_array(elements, *mutability, span),
            ast::ExprKind::Repeat(mutability, element, length) => self.synth_repeat(element, length, *mutability, span),
            ast::ExprKind::Name(name) => self.name(name),
            ast::ExprKind::Call(name, arguments) => self.call(name, arguments, span),
            ast::ExprKind::Convert(int, operand) => self.conversion(*int, operand, span),
            ast::ExprKind::Duration(amount, unit) => self.duration(amount, *unit, span),
            ast::ExprKind::Unary(UnaryOperator::Not, operand) => {
                let operand = self.condition(operand);
                Value::immutable(self.unary(UnaryOperator::Not, operand, span))
            }
            ast::ExprKind::Unary(operator, operand) => self.synth_unary(*operator, operand, span),
            ast::ExprKind::Binary(operator, left, right) => self.synth_binary(*operator, left, right, span),
            ast::ExprKind::Conditional(condition, left, right) => self.synth_conditional(condition, left, right, span),
            ast::ExprKind::Field(..) | ast::ExprKind::Index(..) | ast::ExprKind::Slice(..) => {
                let access = self.access(expr);
                self.complete(access, span)
            }
            ast::ExprKind::OwnId => self.own_id(span),
            ast::ExprKind::ProcessId(name, index) => self.process_id(name, index.as_deref(), span),
        }
    }

    fn unknown_literal(&mut self, expr: &'a ast::Expr, noun: &str) -> Value {
        let message = format!("the type of this {noun} is not known here");
        self.checker.report(Diagnostic::new(Code::E0305, expr.span, message).help("declare the variable's type"));
        self.absorb(expr);
        Value::error(expr.span)
    }

    fn name(&mut self, name: &ast::Name) -> Value {
        if name.text.is_empty() {
            return Value::error(name.span);
        }
        if self.kind == BodyKind::Constant
            && let Some(value) = self.outer_name(name)
        {
            return value;
        }
        match self.find(name) {
            Some(Binding::Local(id)) => {
                if self.reject_pattern_name(id, name) {
                    return Value::error(name.span);
                }
                let ty = self.read_local(id, name.span);
                let mutability = self.effective(ty, self.local(id).mutability);
                let expr = hir::Expr { kind: ExprKind::Local(id), ty, span: name.span };
                Value::Typed(Typed { expr, mutability })
            }
            Some(Binding::Const(index)) => {
                let constant = self.facts.constants[index as usize].clone();
                self.use_constant(&constant, name.span)
            }
            Some(Binding::Channel(_)) => {
                self.unknown_variable(name);
                Value::error(name.span)
            }
            None => match self.checker.find(name) {
                Some(Named { entity: Entity::Const(entry), .. }) => {
                    let constant = self.checker.consts[entry].value.clone().unwrap_or(Constant::Error);
                    self.use_constant(&constant, name.span)
                }
                None if name.text == "now" => self.now(name.span),
                Some(_) | None => {
                    self.unknown_variable(name);
                    Value::error(name.span)
                }
            },
        }
    }

    /// A name in a type written inside a body: the body's constants are visible there, its variables are not constant.
    fn outer_name(&mut self, name: &ast::Name) -> Option<Value> {
        match self.checker.outer_names.get(&name.text).cloned()? {
            Some(constant) => Some(self.use_constant(&constant, name.span)),
            None => {
                self.not_a_constant(name.span);
                Some(Value::error(name.span))
            }
        }
    }

    /// E0208 for a variable or constant.
    pub(super) fn unknown_variable(&mut self, name: &ast::Name) {
        let mut candidates = self.visible_names();
        candidates.extend(self.checker.visible_items(name.span, |entity| matches!(entity, Entity::Const(_))));
        candidates.sort();
        self.checker.unknown("variable", name, candidates.iter().map(|name| name.as_str()));
    }

    /// E0403: `== e` and indices use only names from before the pattern, and nothing the pattern assigns.
    fn reject_pattern_name(&mut self, id: hir::LocalId, name: &ast::Name) -> bool {
        if !self.pattern.active {
            return false;
        }
        let text = &name.text;
        let diagnostic = if self.pattern.assigned.contains(&id) {
            let message = format!("`{text}` is assigned by this pattern and cannot be read in it");
            Diagnostic::new(Code::E0403, name.span, message).help(format!("write `${text}_new` to declare a name"))
        } else if self.pattern.declared.contains(&id) && self.pattern.condition_depth == 0 {
            let message = format!("`{text}` is declared by this pattern and can be read only after `if`");
            Diagnostic::new(Code::E0403, name.span, message)
                .help(format!("declare a name here and add `if`, as in `$other if other == {text}`"))
        } else {
            return false;
        };
        let declared = self.local(id).span;
        self.checker.report(diagnostic.label(declared, format!("`{text}` is declared here")));
        true
    }

    fn own_id(&mut self, span: Span) -> Value {
        match self.kind {
            // What the ids of its instances would be is not known.
            BodyKind::Process(process) if self.checker.unused_from.is_some_and(|first| process.0 as usize >= first) => {
                Value::error(span)
            }
            BodyKind::Process(process) | BodyKind::Predicate(process) => {
                let ty = self.checker.types.intern(Type::Pid([process].into()));
                Value::immutable(hir::Expr { kind: ExprKind::OwnId, ty, span })
            }
            BodyKind::Function(_) => {
                self.effect("@", span);
                Value::error(span)
            }
            BodyKind::Constant => {
                self.checker.error(Code::E0309, span, "`@` is not a constant");
                Value::error(span)
            }
            BodyKind::Environment | BodyKind::Interface => {
                self.checker.error(Code::E0506, span, "`@` has a meaning only in a process");
                Value::error(span)
            }
        }
    }

    fn process_id(&mut self, name: &ast::Name, index: Option<&'a ast::Expr>, span: Span) -> Value {
        let index = index.map(|index| self.any_integer(index));
        let Some(process) = self.checker.process(name) else { return Value::error(span) };
        let ty = self.checker.types.intern(Type::Pid([process].into()));
        let entry = &self.checker.processes[process.0 as usize];
        let (first, replicas) = (i128::from(entry.first_instance), i128::from(entry.replicas));
        let kind = match index {
            None => ExprKind::Constant(first),
            Some(index) if index.ty == TypeTable::ERROR => return Value::error(span),
            Some(index) => match index.kind {
                ExprKind::Constant(replica) if (0..replicas).contains(&replica) => ExprKind::Constant(first + replica),
                ExprKind::Constant(replica) => {
                    let message = format!("`{}` has {}, no number {replica}", name.text, replicas_of(replicas));
                    self.checker.error(Code::E0303, span, message);
                    return Value::error(span);
                }
                _ => ExprKind::InstanceOf(process, Box::new(index)),
            },
        };
        Value::immutable(hir::Expr { kind, ty, span })
    }

    /// `u8(e)`: keeps the low bits. `int` also takes a `bool` or a `pid`.
    fn conversion(&mut self, int: IntType, operand: &'a ast::Expr, span: Span) -> Value {
        let value = match self.synth(operand) {
            Value::Untyped(untyped) => {
                let mut expr = self.convert_untyped(untyped, int);
                expr.span = span;
                return Value::immutable(expr);
            }
            Value::Typed(value) => value.expr,
        };
        let ty = TypeTable::int(int);
        match self.checker.types.get(value.ty) {
            Type::Error => Value::error(span),
            Type::Int(clock) if clock.is_clock() => {
                self.mismatch(ty, value.ty, operand.span);
                Value::error(span)
            }
            Type::Int(_) => {
                let mut expr = self.convert_int(value, int);
                expr.span = span;
                Value::immutable(expr)
            }
            Type::Bool if int == IntType::I32 => Value::immutable(match value.kind {
                ExprKind::Constant(value) => hir::Expr { kind: ExprKind::Constant(value), ty, span },
                _ => hir::Expr { kind: ExprKind::Convert(Box::new(value)), ty, span },
            }),
            Type::Pid(_) if int == IntType::I32 => {
                let kind = match value.kind {
                    ExprKind::Constant(number) => {
                        let replica = self.checker.instance(number).map_or(0, |(_, replica)| replica);
                        ExprKind::Constant(i128::from(replica))
                    }
                    _ => ExprKind::ReplicaNumber(Box::new(value)),
                };
                Value::immutable(hir::Expr { kind, ty, span })
            }
            Type::Bool | Type::Pid(_) => {
                let message =
                    format!("`{}` takes an integer, found `{}`", int.name(), self.checker.type_name(value.ty));
                let help = format!("write `{}(int({}))`", int.name(), self.checker.text(operand.span));
                self.checker.report(Diagnostic::new(Code::E0302, span, message).help(help));
                Value::error(span)
            }
            Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) | Type::Boxed(_) => {
                self.expected_kind("an integer", value.ty, operand.span);
                Value::error(span)
            }
        }
    }

    fn synth_unary(&mut self, operator: UnaryOperator, operand: &'a ast::Expr, span: Span) -> Value {
        match self.synth(operand) {
            Value::Untyped(untyped) => Value::Untyped(Untyped::unary(operator, untyped, span)),
            Value::Typed(value) if self.int_type(value.expr.ty).is_some() => {
                Value::immutable(self.unary(operator, value.expr, span))
            }
            Value::Typed(value) => {
                self.expected_kind("an integer", value.expr.ty, value.expr.span);
                Value::error(span)
            }
        }
    }

    fn synth_binary(
        &mut self,
        operator: BinaryOperator,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> Value {
        if matches!(operator, BinaryOperator::And | BinaryOperator::Or) {
            let left = self.condition(left);
            let right = self.condition(right);
            return Value::immutable(self.binary(operator, left, right, TypeTable::BOOL, span));
        }
        if is_shift(operator) {
            let left = self.synth(left);
            let count = self.any_integer(right);
            return match left {
                Value::Untyped(left) => Value::Untyped(Untyped::shift(operator, left, count, span)),
                Value::Typed(left) if self.int_type(left.expr.ty).is_some() => {
                    let ty = left.expr.ty;
                    Value::immutable(self.binary(operator, left.expr, count, ty, span))
                }
                Value::Typed(left) => {
                    self.expected_kind("an integer", left.expr.ty, left.expr.span);
                    Value::error(span)
                }
            };
        }
        let (left, right) = self.pair(left, right);
        if is_comparison(operator) {
            return self.comparison(operator, left, right, span);
        }
        match (left, right) {
            (Value::Untyped(left), Value::Untyped(right)) => {
                Value::Untyped(Untyped::binary(operator, left, right, span))
            }
            (left, right) => self.arithmetic(operator, left, right, span),
        }
    }

    /// Both operands; a literal that needs a type takes that of the other one.
    fn pair(&mut self, left: &'a ast::Expr, right: &'a ast::Expr) -> (Value, Value) {
        let against = |body: &mut Self, literal: &'a ast::Expr, other: &Value| match other {
            Value::Typed(other) => Value::immutable(body.check(literal, other.expr.ty, Use::Read)),
            Value::Untyped(_) => body.synth(literal),
        };
        if needs_type(left) && !needs_type(right) {
            let right = self.synth(right);
            (against(self, left, &right), right)
        } else if needs_type(right) {
            let left = self.synth(left);
            let right = against(self, right, &left);
            (left, right)
        } else {
            (self.synth(left), self.synth(right))
        }
    }

    fn arithmetic(&mut self, operator: BinaryOperator, left: Value, right: Value, span: Span) -> Value {
        let is_bytes = |body: &Self, value: &Value| match value {
            Value::Typed(value) => {
                matches!(body.checker.types.get(body.checker.content(value.expr.ty)), Type::Bytes { .. })
            }
            Value::Untyped(_) => false,
        };
        if operator == BinaryOperator::Add && is_bytes(self, &left) && is_bytes(self, &right) {
            if let (Value::Typed(left), Value::Typed(right)) = (left, right) {
                return self.join(left.expr, right.expr, span);
            }
            return Value::error(span);
        }
        if is_clock(&left) || is_clock(&right) {
            return self.clock_arithmetic(operator, left, right, span);
        }
        if operator == BinaryOperator::Add && (is_bytes(self, &left) || is_bytes(self, &right)) {
            let text = if is_bytes(self, &left) { &left } else { &right };
            if let Value::Typed(text) = text {
                let message = format!("`{}` and a number are not joined", self.checker.type_name(text.expr.ty));
                let help = "`+` joins `bytes` and `bytes`; a byte is appended to a variable with `p += b;`";
                self.checker.report(Diagnostic::new(Code::E0302, span, message).help(help));
            }
            return Value::error(span);
        }
        for side in [&left, &right] {
            if let Value::Typed(value) = side
                && self.int_type(value.expr.ty).is_none()
            {
                self.expected_kind("an integer", value.expr.ty, value.expr.span);
                return Value::error(span);
            }
        }
        match self.common_integers(left, right, span) {
            Some((left, right, ty)) => Value::immutable(self.binary(operator, left, right, ty, span)),
            None => Value::error(span),
        }
    }

    /// `p + q` on `bytes`.
    fn join(&mut self, left: hir::Expr, right: hir::Expr, span: Span) -> Value {
        let (left, right) = (self.unbox(left), self.unbox(right));
        let bound = |body: &Self, ty| match body.checker.types.get(ty) {
            Type::Bytes { bound } => u64::from(*bound),
            _ => 0,
        };
        let sum = (bound(self, left.ty) + bound(self, right.ty)).min(i32::MAX as u64);
        let ty = self.checker.types.intern(Type::Bytes { bound: sum as u32 });
        Value::immutable(self.concatenate(left, right, ty, span))
    }

    /// Two integer operands in the wider of their types; an untyped one takes the other's.
    pub(super) fn common_integers(
        &mut self,
        left: Value,
        right: Value,
        span: Span,
    ) -> Option<(hir::Expr, hir::Expr, TypeId)> {
        let (left, right) = match (left, right) {
            (Value::Untyped(left), Value::Untyped(right)) => (self.default_int(left), self.default_int(right)),
            (Value::Untyped(left), Value::Typed(right)) => {
                let int = self.int_type(right.expr.ty)?;
                (self.fix(left, int), right.expr)
            }
            (Value::Typed(left), Value::Untyped(right)) => {
                let int = self.int_type(left.expr.ty)?;
                (left.expr, self.fix(right, int))
            }
            (Value::Typed(left), Value::Typed(right)) => (left.expr, right.expr),
        };
        let (a, b) = (self.int_type(left.ty)?, self.int_type(right.ty)?);
        if a.widens_to(b) {
            Some((self.convert_int(left, b), right, TypeTable::int(b)))
        } else if b.widens_to(a) {
            let right = self.convert_int(right, a);
            Some((left, right, TypeTable::int(a)))
        } else {
            self.no_common_type(left.ty, right.ty, right.span, span);
            None
        }
    }

    pub(super) fn no_common_type(&mut self, left: TypeId, right: TypeId, operand: Span, span: Span) {
        let (left, right) = (self.checker.type_name(left), self.checker.type_name(right));
        let help = format!("convert one, as in `{left}({})`", self.checker.text(operand));
        let message = format!("`{left}` and `{right}` have no common type");
        self.checker.report(Diagnostic::new(Code::E0304, span, message).help(help));
    }

    fn comparison(&mut self, operator: BinaryOperator, left: Value, right: Value, span: Span) -> Value {
        if let (Value::Untyped(a), Value::Untyped(b)) = (&left, &right)
            && let (Some(a), Some(b)) = (a.value, b.value)
        {
            let integer = |value| hir::Expr { kind: ExprKind::Constant(value), ty: TypeTable::I64, span };
            return Value::immutable(self.binary(operator, integer(a), integer(b), TypeTable::BOOL, span));
        }
        let is_integer = |body: &Self, value: &Value| match value {
            Value::Typed(value) => body.int_type(value.expr.ty).is_some(),
            Value::Untyped(_) => true,
        };
        if is_integer(self, &left) && is_integer(self, &right) {
            return match self.common_integers(left, right, span) {
                Some((left, right, _)) => Value::immutable(self.binary(operator, left, right, TypeTable::BOOL, span)),
                None => Value::error(span),
            };
        }
        let left = self.typed_operand(left);
        let right = self.typed_operand(right);
        if left.ty == TypeTable::ERROR || right.ty == TypeTable::ERROR {
            return Value::error(span);
        }
        let are_clock = self.is_clock_type(left.ty) && self.is_clock_type(right.ty);
        if self.is_clock_type(left.ty) && self.int_type(right.ty).is_some() {
            self.mismatch(left.ty, right.ty, right.span);
            return Value::error(span);
        }
        if self.is_clock_type(right.ty) && self.int_type(left.ty).is_some() {
            self.mismatch(right.ty, left.ty, left.span);
            return Value::error(span);
        }
        if !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual) && !are_clock {
            let faulty = if self.int_type(left.ty).is_none() { &left } else { &right };
            let message = format!("only integers have an order, found `{}`", self.checker.type_name(faulty.ty));
            let mut diagnostic = Diagnostic::new(Code::E0302, faulty.span, message);
            let text = self.checker.text(faulty.span);
            if let Type::Pid(_) = self.checker.types.get(faulty.ty) {
                diagnostic = diagnostic.help(format!("the number of the replica is `int({text})`"));
            } else if let Some(enumeration) = self.checker.types.enumeration(faulty.ty) {
                diagnostic = diagnostic.help(format!("compare the codes, as in `{}({text})`", enumeration.base.name()));
            }
            self.checker.report(diagnostic);
            return Value::error(span);
        }
        match self.common(left, right) {
            Some((left, right)) => Value::immutable(self.binary(operator, left, right, TypeTable::BOOL, span)),
            None => Value::error(span),
        }
    }

    fn typed_operand(&mut self, value: Value) -> hir::Expr {
        match value {
            Value::Typed(value) => self.unbox(value.expr),
            Value::Untyped(untyped) => self.default_int(untyped),
        }
    }

    /// Two operands in the type to which one of them goes by itself; the wider bound for `bytes`.
    fn common(&mut self, left: hir::Expr, right: hir::Expr) -> Option<(hir::Expr, hir::Expr)> {
        let (a, b) = (left.ty, right.ty);
        if let (Type::Bytes { bound: x }, Type::Bytes { bound: y }) =
            (self.checker.types.get(a), self.checker.types.get(b))
        {
            let wider = if x >= y { a } else { b };
            let left = self.convert(left, wider).ok()?;
            let right = self.convert(right, wider).ok()?;
            return Some((left, right));
        }
        let left = match self.convert(left, b) {
            Ok(left) => return Some((left, right)),
            Err(left) => left,
        };
        match self.convert(right, a) {
            Ok(right) => Some((left, right)),
            Err(right) => {
                self.mismatch(a, b, right.span);
                None
            }
        }
    }

    fn synth_conditional(
        &mut self,
        condition: &'a ast::Expr,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> Value {
        let condition = self.condition(condition);
        let (left, right) = match self.pair(left, right) {
            (Value::Untyped(left), Value::Untyped(right)) => {
                return Value::Untyped(Untyped::conditional(condition, left, right, span));
            }
            (left, right) => (left, right),
        };
        let is_integer = |body: &Self, value: &Value| match value {
            Value::Typed(value) => body.int_type(value.expr.ty).is_some(),
            Value::Untyped(_) => true,
        };
        if is_integer(self, &left) && is_integer(self, &right) {
            return match self.common_integers(left, right, span) {
                Some((left, right, _)) => Value::immutable(conditional(condition, left, right, span)),
                None => Value::error(span),
            };
        }
        let left = self.owned_operand(left);
        let right = self.owned_operand(right);
        if left.ty == TypeTable::ERROR || right.ty == TypeTable::ERROR {
            return Value::error(span);
        }
        match self.common(left, right) {
            Some((left, right)) => Value::immutable(conditional(condition, left, right, span)),
            None => Value::error(span),
        }
    }

    /// An arm of `?:`: its value leaves the expression, so it cannot be a `#T`.
    fn owned_operand(&mut self, value: Value) -> hir::Expr {
        match value {
            Value::Typed(value) => {
                let ty = value.expr.ty;
                self.coerce(value, ty, Use::Own)
            }
            Value::Untyped(untyped) => self.default_int(untyped),
        }
    }

    /// A condition: a `bool`, or an integer that is true when not 0.
    pub(super) fn condition(&mut self, expr: &'a ast::Expr) -> hir::Expr {
        let span = expr.span;
        let value = match self.synth(expr) {
            Value::Typed(value) => value.expr,
            Value::Untyped(untyped) => match untyped.value {
                Some(value) => {
                    return hir::Expr { kind: ExprKind::Constant(i128::from(value != 0)), ty: TypeTable::BOOL, span };
                }
                None => self.default_int(untyped),
            },
        };
        match self.checker.types.get(value.ty) {
            Type::Error => hir::Expr { kind: ExprKind::Constant(0), ty: TypeTable::ERROR, span },
            Type::Bool => value,
            Type::Int(int) if int.is_clock() || self.checker.types.enumeration(value.ty).is_some() => {
                self.mismatch(TypeTable::BOOL, value.ty, span);
                error_expr(span)
            }
            Type::Int(_) => {
                let kind = match value.kind {
                    ExprKind::Constant(value) => ExprKind::Constant(i128::from(value != 0)),
                    _ => ExprKind::Test(Box::new(value)),
                };
                hir::Expr { kind, ty: TypeTable::BOOL, span }
            }
            Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => {
                self.mismatch(TypeTable::BOOL, value.ty, span);
                error_expr(span)
            }
        }
    }

    /// An index, count or duration: any integer type.
    pub(super) fn any_integer(&mut self, expr: &'a ast::Expr) -> hir::Expr {
        match self.synth(expr) {
            Value::Untyped(untyped) => self.any_int(untyped),
            Value::Typed(value) if self.int_type(value.expr.ty).is_some() => value.expr,
            Value::Typed(value) => {
                self.expected_kind("an integer", value.expr.ty, expr.span);
                error_expr(expr.span)
            }
        }
    }

    /// An expression of whatever type, an `int` if nothing determines it.
    pub(super) fn synth_typed(&mut self, expr: &'a ast::Expr) -> Typed {
        match self.synth(expr) {
            Value::Typed(value) => value,
            Value::Untyped(untyped) => {
                let expr = self.default_int(untyped);
                Typed { expr, mutability: Mutability::Immutable }
            }
        }
    }

    /// The value of a finished access path.
    fn complete(&mut self, access: Access, span: Span) -> Value {
        match access {
            Access::Value(value) => value,
            Access::Numbers { .. } | Access::Layout { .. } => {
                let message = "a byte offset is missing here";
                let help = format!("write `{}[0]`", self.checker.text(span));
                self.checker.report(Diagnostic::new(Code::E0302, span, message).help(help));
                Value::error(span)
            }
            Access::LayoutAt { .. } => {
                let message = "a layout is not a value";
                self.checker.report(Diagnostic::new(Code::E0302, span, message).help("name one of its fields"));
                Value::error(span)
            }
        }
    }

    /// The type of an own id.
    pub(super) fn own_process(&self) -> Option<ProcessId> {
        match self.kind {
            BodyKind::Process(process) | BodyKind::Predicate(process) => Some(process),
            BodyKind::Constant | BodyKind::Function(_) | BodyKind::Environment | BodyKind::Interface => None,
        }
    }

    /// E0501: an effect in a pure function.
    pub(super) fn effect(&mut self, what: &str, span: Span) {
        if let BodyKind::Function(id) = self.kind {
            let name = self.checker.functions[id.0 as usize].item.name.clone();
            let diagnostic = Diagnostic::new(Code::E0501, span, format!("`fn {}` may not use `{what}`", name.text))
                .label(name.span, "a pure function computes its result and nothing else");
            self.checker.report(diagnostic);
        }
    }
}
