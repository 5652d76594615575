//! Constants: exact 128-bit values that take the type handed down to them, and folding of typed constant expressions
//! (reference, section 3). Knows nothing of scopes.
//!
//! A literal has no type until its context determines one: [`Untyped`] is the tree of operators over such literals,
//! which is then computed in that type, so that `x & ~3` works on a `u32`.

use super::body::{Body, BodyKind};
use super::coerce::Use;
use super::evaluate::Failure;
use super::expressions::Value;
use super::names::Checker;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, BinaryOperator, ConstantId, ExprKind, IntType, UnaryOperator};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// The maximum length of a constant byte string.
const MAX_BYTES: usize = 1 << 20;

/// The maximal number of scalars and bytes in the stored constants of a program.
pub(super) const MAX_STORED_PARTS: usize = 8_000_000;

/// The value of a `const`.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    /// Follows an error that has been reported.
    Error,
    /// An integer that takes the type of its context.
    Untyped(i128),
    /// A value of a type, made of constants only.
    Typed(hir::Expr),
}

/// An integer expression without a type of its own.
#[derive(Debug)]
pub(super) struct Untyped {
    pub(super) kind: UntypedKind,
    pub(super) span: Span,
    /// The exact value, if it is a constant and can be computed.
    pub(super) value: Option<i128>,
}

#[derive(Debug)]
pub(super) enum UntypedKind {
    Literal,
    Unary(UnaryOperator, Box<Untyped>),
    Binary(BinaryOperator, Box<Untyped>, Box<Untyped>),
    /// The count has its own type.
    Shift(BinaryOperator, Box<Untyped>, Box<hir::Expr>),
    /// The condition is a `bool`; only this form can be without being a constant.
    Conditional(Box<hir::Expr>, Box<Untyped>, Box<Untyped>),
}

impl Untyped {
    pub(super) fn literal(value: i128, span: Span) -> Untyped {
        Untyped { kind: UntypedKind::Literal, span, value: Some(value) }
    }

    /// A negated literal is a literal: `-128` fits `i8`, and `-1` does not fit `u8` (section 3 leaves this open).
    pub(super) fn unary(operator: UnaryOperator, operand: Untyped, span: Span) -> Untyped {
        let value = operand.value.and_then(|value| match operator {
            UnaryOperator::Negate => value.checked_neg(),
            UnaryOperator::Complement => Some(!value),
            UnaryOperator::Not => Some(i128::from(value == 0)),
        });
        match (operator, &operand.kind, value) {
            (UnaryOperator::Negate, UntypedKind::Literal, Some(value)) => Untyped::literal(value, span),
            _ => Untyped { kind: UntypedKind::Unary(operator, Box::new(operand)), span, value },
        }
    }

    pub(super) fn binary(operator: BinaryOperator, left: Untyped, right: Untyped, span: Span) -> Untyped {
        let value = left.value.zip(right.value).and_then(|(left, right)| exact(operator, left, right));
        Untyped { kind: UntypedKind::Binary(operator, Box::new(left), Box::new(right)), span, value }
    }

    pub(super) fn shift(operator: BinaryOperator, left: Untyped, count: hir::Expr, span: Span) -> Untyped {
        let value = match (left.value, &count.kind) {
            (Some(left), ExprKind::Constant(count)) => exact(operator, left, *count),
            _ => None,
        };
        Untyped { kind: UntypedKind::Shift(operator, Box::new(left), Box::new(count)), span, value }
    }

    pub(super) fn conditional(condition: hir::Expr, left: Untyped, right: Untyped, span: Span) -> Untyped {
        let value = match condition.kind {
            ExprKind::Constant(0) => right.value,
            ExprKind::Constant(_) => left.value,
            _ => None,
        };
        let kind = UntypedKind::Conditional(Box::new(condition), Box::new(left), Box::new(right));
        Untyped { kind, span, value }
    }

    /// Whether it is a constant, even one that cannot be computed.
    fn is_constant(&self) -> bool {
        match &self.kind {
            UntypedKind::Literal => true,
            UntypedKind::Unary(_, operand) => operand.is_constant(),
            UntypedKind::Binary(_, left, right) => left.is_constant() && right.is_constant(),
            UntypedKind::Shift(_, left, count) => left.is_constant() && is_number(count),
            UntypedKind::Conditional(condition, left, right) => {
                is_number(condition) && left.is_constant() && right.is_constant()
            }
        }
    }
}

fn is_number(expr: &hir::Expr) -> bool {
    matches!(expr.kind, ExprKind::Constant(_))
}

/// Exact arithmetic; none beyond 128 bits or where it is not defined.
fn exact(operator: BinaryOperator, left: i128, right: i128) -> Option<i128> {
    match operator {
        BinaryOperator::Multiply => left.checked_mul(right),
        BinaryOperator::Divide => left.checked_div(right),
        BinaryOperator::Remainder => left.checked_rem(right),
        BinaryOperator::Add => left.checked_add(right),
        BinaryOperator::Subtract => left.checked_sub(right),
        BinaryOperator::ShiftLeft => {
            let shifted = left.checked_shl(u32::try_from(right).ok()?)?;
            (shifted >> right == left).then_some(shifted)
        }
        BinaryOperator::ShiftRight => left.checked_shr(u32::try_from(right).ok()?),
        BinaryOperator::BitAnd => Some(left & right),
        BinaryOperator::BitXor => Some(left ^ right),
        BinaryOperator::BitOr => Some(left | right),
        BinaryOperator::Equal => Some(i128::from(left == right)),
        BinaryOperator::NotEqual => Some(i128::from(left != right)),
        BinaryOperator::Less => Some(i128::from(left < right)),
        BinaryOperator::LessEqual => Some(i128::from(left <= right)),
        BinaryOperator::Greater => Some(i128::from(left > right)),
        BinaryOperator::GreaterEqual => Some(i128::from(left >= right)),
        BinaryOperator::And => Some(i128::from(left != 0 && right != 0)),
        BinaryOperator::Or => Some(i128::from(left != 0 || right != 0)),
    }
}

/// Resolves a `const` item of the program; what it mentions has been resolved before.
pub(super) fn resolve_item(checker: &mut Checker, entry: usize) {
    if checker.consts[entry].value.is_some() {
        return;
    }
    let item = checker.consts[entry].item;
    let value = Body::new(checker, BodyKind::Constant).constant_item(item);
    checker.consts[entry].value = Some(value);
}

impl Checker<'_> {
    /// The literal of a constant that is stored; any other expression itself.
    pub(super) fn literal<'e>(&'e self, expr: &'e hir::Expr) -> &'e hir::Expr {
        match expr.kind {
            ExprKind::Stored(id) => &self.stored[id.0 as usize].value,
            _ => expr,
        }
    }

    /// The number of scalars and bytes in a constant, with those of the constants in it.
    fn part_count(&self, value: &hir::Expr) -> usize {
        let sum = |parts: &mut dyn Iterator<Item = &hir::Expr>| {
            parts.map(|part| self.part_count(part)).fold(1, usize::saturating_add)
        };
        match &value.kind {
            ExprKind::Stored(id) => self.stored_parts[id.0 as usize],
            ExprKind::Bytes(bytes) => 1 + bytes.len(),
            ExprKind::Record(fields) => sum(&mut fields.iter().map(|(_, value)| value)),
            ExprKind::Array(elements) => sum(&mut elements.iter()),
            ExprKind::Union(_, payload) => sum(&mut payload.iter().map(|payload| &**payload)),
            ExprKind::Repeat(element) => match self.types.get(self.content(value.ty)) {
                Type::Array { length, .. } => self.part_count(element).saturating_mul(*length as usize),
                _ => 1,
            },
            _ => 1,
        }
    }

    /// The part of a constant that an access with constant steps leads to. None if it is not constant, or if a copy of
    /// the part would have an array in it that is stored.
    pub(super) fn constant_part(
        &self,
        base: &hir::Expr,
        select: impl FnOnce(&hir::Expr) -> Option<&hir::Expr>,
    ) -> Option<hir::Expr> {
        let part = select(self.literal(base))?;
        let is_copied = match base.kind {
            ExprKind::Stored(_) => !has_array(part),
            _ => first_variable(base).is_none(),
        };
        is_copied.then(|| part.clone())
    }
}

impl<'a> Body<'_, 'a> {
    /// The value of a `const`.
    pub(super) fn constant_item(&mut self, item: &'a ast::Const) -> Constant {
        let value = match &item.ty {
            None => self.constant(&item.value).unwrap_or(Constant::Error),
            Some(ty) => {
                let ty = self.resolve_type(ty);
                let value = self.check(&item.value, ty, Use::Own);
                if ty == TypeTable::ERROR || value.ty == TypeTable::ERROR {
                    Constant::Error
                } else {
                    self.typed_constant(value)
                }
            }
        };
        match value {
            Constant::Typed(value) => match self.stored(&item.name, value) {
                hir::Expr { ty: TypeTable::ERROR, .. } => Constant::Error,
                value => Constant::Typed(value),
            },
            Constant::Untyped(_) | Constant::Error => value,
        }
    }

    /// A reference to the constant, stored once, if it has an array in it; other constants are repeated at each use.
    fn stored(&mut self, name: &ast::Name, value: hir::Expr) -> hir::Expr {
        if matches!(value.kind, ExprKind::Stored(_)) || !has_array(&value) {
            return value;
        }
        let (ty, span) = (value.ty, value.span);
        let parts = self.checker.part_count(&value);
        if parts > self.checker.stored_budget {
            let message = format!("the constants of this program have more than {MAX_STORED_PARTS} parts");
            let help = "compute what is larger when the program starts, in a variable";
            self.checker.report(Diagnostic::new(Code::E0309, name.span, message).help(help));
            return error_expr(span);
        }
        self.checker.stored_budget -= parts;
        self.checker.stored_parts.push(parts);
        let id = ConstantId(self.checker.stored.len() as u32);
        self.checker.stored.push(hir::Constant { name: name.text.clone(), value });
        hir::Expr { kind: ExprKind::Stored(id), ty, span }
    }

    /// An integer constant of any type. None after an error.
    pub(super) fn constant_integer(&mut self, expr: &'a ast::Expr) -> Option<Constant> {
        let constant = self.constant(expr)?;
        if let Constant::Typed(value) = &constant
            && value.ty != TypeTable::ERROR
            && self.int_type(value.ty).is_none()
        {
            let message = format!("expected `int`, found `{}`", self.checker.type_name(value.ty));
            self.checker.error(Code::E0302, value.span, message);
            return None;
        }
        Some(constant)
    }

    fn constant(&mut self, expr: &'a ast::Expr) -> Option<Constant> {
        match self.synth(expr) {
            Value::Untyped(untyped) if untyped.is_constant() => self.exact_value(&untyped).map(Constant::Untyped),
            Value::Untyped(untyped) => {
                self.not_a_constant(untyped.span);
                None
            }
            Value::Typed(value) if value.expr.ty == TypeTable::ERROR => None,
            Value::Typed(value) => Some(self.typed_constant(value.expr)),
        }
    }

    pub(super) fn typed_constant(&mut self, value: hir::Expr) -> Constant {
        let Some(variable) = first_variable(&value) else { return Constant::Typed(value) };
        super::statements::check_callees(self.checker, &value);
        match self.checker.evaluate(&value) {
            Ok(value) => match first_variable(&value) {
                None => Constant::Typed(value),
                Some(span) => {
                    self.not_a_constant(span);
                    Constant::Error
                }
            },
            Err(Failure::Reported) => Constant::Error,
            Err(Failure::NotConstant(span)) => {
                self.not_a_constant(if is_inside(value.span, span) { span } else { variable });
                Constant::Error
            }
            Err(Failure::Fault(span, message)) => {
                let mut diagnostic = Diagnostic::new(Code::E0303, span, message);
                if !is_inside(value.span, span) {
                    diagnostic = diagnostic.label(value.span, "evaluated for this constant");
                }
                self.checker.report(diagnostic);
                Constant::Error
            }
            Err(Failure::Limit(span, limit)) => {
                let message = format!("this constant cannot be evaluated: {limit}");
                let mut diagnostic = Diagnostic::new(Code::E0309, value.span, message)
                    .help("compute it when the program starts, in a variable");
                if span != value.span {
                    diagnostic = diagnostic.label(span, "at this place");
                }
                self.checker.report(diagnostic);
                Constant::Error
            }
        }
    }

    pub(super) fn not_a_constant(&mut self, span: Span) {
        let message = match self.checker.text(span) {
            "e" => "this is not a constant".to_string(),
            text => format!("`{text}` is not a constant"),
        };
        let help = "a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these";
        self.checker.report(Diagnostic::new(Code::E0309, span, message).help(help));
    }

    /// A constant's value where it is used, charged to the budget that keeps copies in bounds.
    pub(super) fn use_constant(&mut self, constant: &Constant, span: Span) -> Value {
        match constant {
            Constant::Error => Value::error(span),
            Constant::Untyped(value) => Value::Untyped(Untyped::literal(*value, span)),
            Constant::Typed(expr) => {
                let cost = weight(expr);
                if cost > self.checker.constant_budget {
                    if self.checker.constant_budget > 0 {
                        self.checker.constant_budget = 0;
                        let message = "the constants of this program are used too often for their size";
                        let help = "put the value into a variable once";
                        self.checker.report(Diagnostic::new(Code::E0309, span, message).help(help));
                    }
                    return Value::error(span);
                }
                self.checker.constant_budget -= cost.min(self.checker.constant_budget - 1);
                let mut expr = expr.clone();
                expr.span = span;
                Value::immutable(expr)
            }
        }
    }

    /// The exact value of a constant, or a report why there is none.
    fn exact_value(&mut self, untyped: &Untyped) -> Option<i128> {
        if untyped.value.is_none() {
            let zero = |right: &Untyped| right.value == Some(0);
            match &untyped.kind {
                UntypedKind::Binary(BinaryOperator::Divide | BinaryOperator::Remainder, _, right) if zero(right) => {
                    self.checker.error(Code::E0303, untyped.span, "division by zero in a constant");
                }
                UntypedKind::Unary(_, operand) if operand.value.is_none() => return self.exact_value(operand),
                UntypedKind::Binary(_, left, right) if left.value.is_none() || right.value.is_none() => {
                    let faulty = if left.value.is_none() { left } else { right };
                    return self.exact_value(faulty);
                }
                UntypedKind::Literal
                | UntypedKind::Unary(..)
                | UntypedKind::Binary(..)
                | UntypedKind::Shift(..)
                | UntypedKind::Conditional(..) => {
                    self.checker.error(Code::E0303, untyped.span, "this constant does not fit 128 bits");
                }
            }
        }
        untyped.value
    }

    /// The expression where nothing gives it a type: an `int`.
    pub(super) fn default_int(&mut self, untyped: Untyped) -> hir::Expr {
        self.fix_exactly(untyped, &[IntType::I32])
    }

    /// The expression where any integer type will do.
    pub(super) fn any_int(&mut self, untyped: Untyped) -> hir::Expr {
        self.fix_exactly(untyped, &[IntType::I32, IntType::I64, IntType::U64])
    }

    /// The first of the types that holds the exact value; the first of all if it is no constant.
    fn fix_exactly(&mut self, untyped: Untyped, types: &[IntType]) -> hir::Expr {
        if !untyped.is_constant() {
            return self.fix(untyped, types[0]);
        }
        let span = untyped.span;
        let Some(value) = self.exact_value(&untyped) else { return error_expr(span) };
        match types.iter().find(|ty| fits_int(value, **ty)) {
            Some(ty) => hir::Expr { kind: ExprKind::Constant(value), ty: TypeTable::int(*ty), span },
            None => self.does_not_fit(value, types[0], span),
        }
    }

    /// The exact value with its low bits kept: the argument of a conversion.
    pub(super) fn convert_untyped(&mut self, untyped: Untyped, int: IntType) -> hir::Expr {
        let span = untyped.span;
        if !untyped.is_constant() {
            return self.fix(untyped, int);
        }
        match self.exact_value(&untyped) {
            Some(value) => hir::Expr { kind: ExprKind::Constant(int.wrap(value)), ty: TypeTable::int(int), span },
            None => error_expr(span),
        }
    }

    fn does_not_fit(&mut self, value: i128, int: IntType, span: Span) -> hir::Expr {
        let help = format!("`{}` holds {} to {}", int.name(), int.min(), int.max());
        let message = format!("{value} does not fit `{}`", int.name());
        self.checker.report(Diagnostic::new(Code::E0303, span, message).help(help));
        error_expr(span)
    }

    /// The expression computed in a type.
    pub(super) fn fix(&mut self, untyped: Untyped, int: IntType) -> hir::Expr {
        let (span, ty) = (untyped.span, TypeTable::int(int));
        match untyped.kind {
            UntypedKind::Literal => match untyped.value {
                Some(value) if fits_int(value, int) => hir::Expr { kind: ExprKind::Constant(value), ty, span },
                Some(value) => self.does_not_fit(value, int, span),
                None => error_expr(span),
            },
            UntypedKind::Unary(operator, operand) => {
                let operand = self.fix(*operand, int);
                self.unary(operator, operand, span)
            }
            UntypedKind::Binary(operator, left, right) => {
                let left = self.fix(*left, int);
                let right = self.fix(*right, int);
                self.binary(operator, left, right, ty, span)
            }
            UntypedKind::Shift(operator, left, count) => {
                let left = self.fix(*left, int);
                self.binary(operator, left, *count, ty, span)
            }
            UntypedKind::Conditional(condition, left, right) => {
                let left = self.fix(*left, int);
                let right = self.fix(*right, int);
                conditional(*condition, left, right, span)
            }
        }
    }

    /// `!`, `~` or `-` of a typed operand, computed if it is constant.
    pub(super) fn unary(&mut self, operator: UnaryOperator, operand: hir::Expr, span: Span) -> hir::Expr {
        let ty = operand.ty;
        if let (ExprKind::Constant(value), int) = (&operand.kind, self.int_type(ty)) {
            let result = match (operator, int) {
                (UnaryOperator::Not, _) => Some(i128::from(*value == 0)),
                (UnaryOperator::Complement, Some(int)) => Some(int.wrap(!*value)),
                (UnaryOperator::Negate, Some(int)) => return self.folded(-*value, int, span),
                (UnaryOperator::Complement | UnaryOperator::Negate, None) => None,
            };
            if let Some(result) = result {
                return hir::Expr { kind: ExprKind::Constant(result), ty, span };
            }
        }
        hir::Expr { kind: ExprKind::Unary(operator, Box::new(operand)), ty, span }
    }

    /// An operator on typed operands, computed if they are constant. `ty` is the type of the result.
    pub(super) fn binary(
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
            let (a, b) = (*a, *b);
            match self.int_type(ty) {
                None => {
                    if let Some(value) = exact(operator, a, b) {
                        return hir::Expr { kind: ExprKind::Constant(value), ty, span };
                    }
                }
                Some(int) => return self.fold_integers(operator, a, b, int, span),
            }
        }
        hir::Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span }
    }

    /// A fault in a constant expression, also one that only `--checked` makes a fault, is E0303 (section 3).
    fn fold_integers(&mut self, operator: BinaryOperator, a: i128, b: i128, int: IntType, span: Span) -> hir::Expr {
        let shift = matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight);
        if shift && !(0..i128::from(int.bits())).contains(&b) {
            let message = format!("a shift of `{}` by {b} is outside 0..{}", int.name(), int.bits());
            self.checker.error(Code::E0303, span, message);
            return error_expr(span);
        }
        if matches!(operator, BinaryOperator::Divide | BinaryOperator::Remainder) && b == 0 {
            self.checker.error(Code::E0303, span, "division by zero in a constant");
            return error_expr(span);
        }
        let ty = TypeTable::int(int);
        match operator {
            BinaryOperator::ShiftLeft => {
                // At most 64 bits by at most 63: fits 128. Bits shifted out are lost, without being a fault.
                hir::Expr { kind: ExprKind::Constant(int.wrap(a << b)), ty, span }
            }
            _ => {
                // Two 64-bit operands cannot leave 128 bits.
                let value = exact(operator, a, b).unwrap_or(0);
                self.folded(value, int, span)
            }
        }
    }

    fn folded(&mut self, value: i128, int: IntType, span: Span) -> hir::Expr {
        if int.is_signed() && !fits_int(value, int) {
            return self.does_not_fit(value, int, span);
        }
        hir::Expr { kind: ExprKind::Constant(int.wrap(value)), ty: TypeTable::int(int), span }
    }

    /// The integer type of an id; none of an enumeration or the clock, which have rules of
    /// their own.
    pub(super) fn int_type(&self, ty: TypeId) -> Option<IntType> {
        self.checker.int_type(ty)
    }

    /// Joins two constant byte strings.
    pub(super) fn concatenate(&mut self, left: hir::Expr, right: hir::Expr, ty: TypeId, span: Span) -> hir::Expr {
        match (&left.kind, &right.kind) {
            (ExprKind::Bytes(a), ExprKind::Bytes(b)) => {
                if a.len() + b.len() > MAX_BYTES {
                    let message = format!("a constant of {} bytes is too long", a.len() + b.len());
                    self.checker.error(Code::E0303, span, message);
                    return error_expr(span);
                }
                hir::Expr { kind: ExprKind::Bytes([a.as_slice(), b].concat()), ty, span }
            }
            _ => hir::Expr { kind: ExprKind::Concatenate(Box::new(left), Box::new(right)), ty, span },
        }
    }
}

/// Whether a place in the text is inside another.
fn is_inside(outer: Span, inner: Span) -> bool {
    outer.file == inner.file && outer.start <= inner.start && inner.end <= outer.end
}

/// Stands where an error was reported.
pub(super) fn error_expr(span: Span) -> hir::Expr {
    hir::Expr { kind: ExprKind::Constant(0), ty: TypeTable::ERROR, span }
}

/// `c ? a : b` with typed arms, computed if all three are constant.
pub(super) fn conditional(condition: hir::Expr, left: hir::Expr, right: hir::Expr, span: Span) -> hir::Expr {
    let ty = if left.ty == TypeTable::ERROR { right.ty } else { left.ty };
    if let ExprKind::Constant(value) = condition.kind
        && first_variable(&left).is_none()
        && first_variable(&right).is_none()
    {
        return if value != 0 { left } else { right };
    }
    hir::Expr { kind: ExprKind::Conditional(Box::new(condition), Box::new(left), Box::new(right)), ty, span }
}

pub(super) fn fits_int(value: i128, int: IntType) -> bool {
    int.min() <= value && value <= int.max()
}

/// The first part that is not a constant.
pub(super) fn first_variable(expr: &hir::Expr) -> Option<Span> {
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Bytes(_) | ExprKind::Stored(_) => None,
        ExprKind::Record(fields) => fields.iter().find_map(|(_, value)| first_variable(value)),
        ExprKind::Array(elements) => elements.iter().find_map(first_variable),
        ExprKind::Repeat(element) => first_variable(element),
        ExprKind::Union(_, payload) => payload.as_ref().and_then(|payload| first_variable(payload)),
        ExprKind::Binary(_, left, right) | ExprKind::Saturating(_, left, right) => {
            first_variable(left).or_else(|| first_variable(right)).or(Some(expr.span))
        }
        ExprKind::Convert(inner) | ExprKind::Unary(_, inner) | ExprKind::Test(inner) | ExprKind::Fit(inner) => {
            first_variable(inner).or(Some(expr.span))
        }
        _ => Some(expr.span),
    }
}

/// Whether a constant has an array in it.
fn has_array(value: &hir::Expr) -> bool {
    match &value.kind {
        ExprKind::Array(_) | ExprKind::Repeat(_) | ExprKind::Stored(_) => true,
        ExprKind::Record(fields) => fields.iter().any(|(_, value)| has_array(value)),
        ExprKind::Union(_, payload) => payload.as_ref().is_some_and(|payload| has_array(payload)),
        _ => false,
    }
}

/// Bytes a copy of a constant takes, roughly.
fn weight(expr: &hir::Expr) -> usize {
    let parts = match &expr.kind {
        ExprKind::Bytes(bytes) => bytes.len(),
        ExprKind::Record(fields) => fields.iter().map(|(_, value)| weight(value)).sum(),
        ExprKind::Array(elements) => elements.iter().map(weight).sum(),
        ExprKind::Repeat(element) => weight(element),
        ExprKind::Union(_, payload) => payload.as_ref().map_or(0, |payload| weight(payload)),
        _ => 0,
    };
    parts + std::mem::size_of::<hir::Expr>()
}
