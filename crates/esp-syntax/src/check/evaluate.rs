//! Evaluation of constant expressions that call pure functions: an interpreter of checked expressions and statements,
//! with a limit on its steps. Knows no scopes, and nothing that has an effect.

use super::constants::fits_int;
use super::names::Checker;
use crate::hir::{
    self, BinaryOperator, ByteOrder, Expr, ExprKind, FnId, IntType, LayoutId, Pattern, PatternKind, Place, PlaceStep,
    Stmt, StmtKind, UnaryOperator,
};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// The maximal number of steps of one constant: expressions evaluated, and parts of values built.
const MAX_STEPS: u64 = 20_000_000;

/// The maximal depth of expressions, blocks and calls. Functions do not recurse, but their text may be deep.
const MAX_DEPTH: u32 = 250;

/// Why an expression has no constant value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// An error in a function has been reported.
    Reported,
    /// This part depends on the running program.
    NotConstant(Span),
    /// This part would fault.
    Fault(Span, String),
    /// It takes too many steps, or is too deep.
    Limit(Span, &'static str),
}

type Result<T> = std::result::Result<T, Failure>;

/// A value. Boxed types are represented by their content.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ConstantValue {
    /// An integer, `bool` (0, 1) or `pid`.
    Scalar(i128),
    Bytes(Vec<u8>),
    /// The fields of a record, or the elements of an array.
    Parts(Vec<ConstantValue>),
    Tagged(u32, Option<Box<ConstantValue>>),
}

/// The variables of a call; one has no value before its first assignment.
#[derive(Default)]
struct Variables<'f> {
    values: Vec<Option<ConstantValue>>,
    locals: &'f [hir::Local],
}

/// How control leaves a statement.
enum Flow {
    Next,
    /// With the number of loops between that are left, too.
    Break(u32),
    Continue(u32),
    Return(ConstantValue),
}

impl Checker<'_> {
    /// The value of an expression without variables, as a literal of its type. Every function that it calls has been
    /// checked.
    pub(super) fn evaluate(&self, expr: &Expr) -> Result<Expr> {
        let stored = self.stored.iter().map(|_| OnceCell::new()).collect();
        let evaluator = Evaluator { checker: self, steps: Cell::new(0), depth: Cell::new(0), stored };
        let value = evaluator.owned(&Variables::default(), expr)?;
        Ok(evaluator.literal(value, expr.ty, expr.span))
    }
}

struct Evaluator<'c, 'a> {
    checker: &'c Checker<'a>,
    steps: Cell<u64>,
    depth: Cell<u32>,
    /// The values of stored constants, once they are needed.
    stored: Vec<OnceCell<ConstantValue>>,
}

impl Evaluator<'_, '_> {
    fn charge(&self, steps: u64, span: Span) -> Result<()> {
        let total = self.steps.get().saturating_add(steps);
        self.steps.set(total);
        if total > MAX_STEPS {
            return Err(Failure::Limit(span, "it takes more than 20 million steps"));
        }
        Ok(())
    }

    /// One level deeper.
    fn nested<T>(&self, span: Span, inner: impl FnOnce() -> Result<T>) -> Result<T> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return Err(Failure::Limit(span, "its expressions, blocks and calls are nested too deeply"));
        }
        self.depth.set(depth + 1);
        let result = inner();
        self.depth.set(depth);
        result
    }

    fn types(&self) -> &TypeTable {
        &self.checker.types
    }

    fn int(&self, ty: TypeId) -> Option<IntType> {
        match self.types().get(ty) {
            Type::Int(int) => Some(*int),
            Type::Error
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => None,
        }
    }

    /// The value of a literal of a stored constant.
    fn value_of_literal(&self, expr: &Expr) -> Result<ConstantValue> {
        Ok(match &expr.kind {
            ExprKind::Constant(number) => ConstantValue::Scalar(*number),
            _ => self.owned(&Variables::default(), expr)?,
        })
    }

    fn expression<'v>(&'v self, frame: &'v Variables<'_>, expr: &'v Expr) -> Result<Cow<'v, ConstantValue>> {
        self.charge(1, expr.span)?;
        self.nested(expr.span, || self.evaluate(frame, expr))
    }

    /// The value, copied if it is a variable's.
    fn owned(&self, frame: &Variables<'_>, expr: &Expr) -> Result<ConstantValue> {
        match self.expression(frame, expr)? {
            Cow::Owned(value) => Ok(value),
            Cow::Borrowed(value) => {
                self.charge(size(value), expr.span)?;
                Ok(value.clone())
            }
        }
    }

    fn scalar(&self, frame: &Variables<'_>, expr: &Expr) -> Result<i128> {
        match *self.expression(frame, expr)? {
            ConstantValue::Scalar(number) => Ok(number),
            ConstantValue::Bytes(_) | ConstantValue::Parts(_) | ConstantValue::Tagged(..) => {
                Err(Failure::NotConstant(expr.span))
            }
        }
    }

    fn evaluate<'v>(&'v self, frame: &'v Variables<'_>, expr: &'v Expr) -> Result<Cow<'v, ConstantValue>> {
        let span = expr.span;
        let scalar = |number: i128| Ok(Cow::Owned(ConstantValue::Scalar(number)));
        match &expr.kind {
            ExprKind::Constant(number) => scalar(*number),
            ExprKind::Bytes(bytes) => Ok(Cow::Owned(ConstantValue::Bytes(bytes.clone()))),
            ExprKind::Stored(id) => {
                let cell = &self.stored[id.0 as usize];
                if cell.get().is_none() {
                    let value = self.value_of_literal(&self.checker.stored[id.0 as usize].value)?;
                    let _ = cell.set(value);
                }
                cell.get().map(Cow::Borrowed).ok_or(Failure::NotConstant(span))
            }
            ExprKind::Local(local) => {
                let value = frame.values.get(local.0 as usize).and_then(Option::as_ref);
                value.map(Cow::Borrowed).ok_or(Failure::NotConstant(span))
            }
            ExprKind::Record(fields) => {
                let mut parts: Vec<(u32, ConstantValue)> = Vec::with_capacity(fields.len());
                for (field, value) in fields {
                    parts.push((*field, self.owned(frame, value)?));
                }
                parts.sort_by_key(|(field, _)| *field);
                Ok(Cow::Owned(ConstantValue::Parts(parts.into_iter().map(|(_, value)| value).collect())))
            }
            ExprKind::Array(elements) => {
                let parts: Result<Vec<ConstantValue>> =
                    elements.iter().map(|element| self.owned(frame, element)).collect();
                Ok(Cow::Owned(ConstantValue::Parts(parts?)))
            }
            ExprKind::Repeat(element) => {
                let Type::Array { length, .. } = self.types().get(self.checker.content(expr.ty)) else {
                    return Err(Failure::NotConstant(span));
                };
                let element = self.owned(frame, element)?;
                self.charge(u64::from(*length).saturating_mul(size(&element)), span)?;
                Ok(Cow::Owned(ConstantValue::Parts(vec![element; *length as usize])))
            }
            ExprKind::Union(tag, payload) => {
                let payload = payload.as_ref().map(|payload| self.owned(frame, payload)).transpose()?;
                Ok(Cow::Owned(ConstantValue::Tagged(*tag, payload.map(Box::new))))
            }
            ExprKind::Content(inner)
            | ExprKind::Box(inner)
            | ExprKind::WidenPid(inner)
            | ExprKind::Freeze(inner)
            | ExprKind::Thaw(inner) => self.expression(frame, inner),
            ExprKind::Field(base, field) => match self.expression(frame, base)? {
                Cow::Borrowed(ConstantValue::Parts(parts)) => {
                    parts.get(*field as usize).map(Cow::Borrowed).ok_or(Failure::NotConstant(span))
                }
                Cow::Owned(ConstantValue::Parts(mut parts)) if (*field as usize) < parts.len() => {
                    Ok(Cow::Owned(parts.swap_remove(*field as usize)))
                }
                Cow::Borrowed(_) | Cow::Owned(_) => Err(Failure::NotConstant(span)),
            },
            ExprKind::Index(base, index) => {
                let base = self.expression(frame, base)?;
                let index = self.scalar(frame, index)?;
                let outside = |length: usize| Err(bounds(span, index, length));
                match base {
                    Cow::Borrowed(ConstantValue::Parts(parts)) => {
                        match usize::try_from(index).ok().and_then(|at| parts.get(at)) {
                            Some(part) => Ok(Cow::Borrowed(part)),
                            None => outside(parts.len()),
                        }
                    }
                    Cow::Owned(ConstantValue::Parts(mut parts)) => match usize::try_from(index) {
                        Ok(at) if at < parts.len() => Ok(Cow::Owned(parts.swap_remove(at))),
                        Ok(_) | Err(_) => outside(parts.len()),
                    },
                    Cow::Borrowed(ConstantValue::Bytes(_)) | Cow::Owned(ConstantValue::Bytes(_)) => {
                        let ConstantValue::Bytes(bytes) = &*base else { return Err(Failure::NotConstant(span)) };
                        match usize::try_from(index).ok().and_then(|at| bytes.get(at)) {
                            Some(byte) => scalar(i128::from(*byte)),
                            None => outside(bytes.len()),
                        }
                    }
                    Cow::Borrowed(ConstantValue::Scalar(_) | ConstantValue::Tagged(..))
                    | Cow::Owned(ConstantValue::Scalar(_) | ConstantValue::Tagged(..)) => {
                        Err(Failure::NotConstant(span))
                    }
                }
            }
            ExprKind::Length(base) => match &*self.expression(frame, base)? {
                ConstantValue::Bytes(bytes) => scalar(bytes.len() as i128),
                ConstantValue::Parts(parts) => scalar(parts.len() as i128),
                ConstantValue::Scalar(_) | ConstantValue::Tagged(..) => Err(Failure::NotConstant(span)),
            },
            ExprKind::Slice(base, from, to) => {
                let base = self.expression(frame, base)?;
                let ConstantValue::Bytes(bytes) = &*base else { return Err(Failure::NotConstant(span)) };
                let range = self.range(frame, (from.as_deref(), to.as_deref()), bytes.len(), span)?;
                self.charge(range.len() as u64, span)?;
                Ok(Cow::Owned(ConstantValue::Bytes(bytes[range].to_vec())))
            }
            ExprKind::Concatenate(left, right) => {
                let (left, right) = (self.owned(frame, left)?, self.expression(frame, right)?);
                match (left, &*right) {
                    (ConstantValue::Bytes(mut left), ConstantValue::Bytes(right)) => {
                        self.charge((left.len() + right.len()) as u64, span)?;
                        left.extend(right);
                        Ok(Cow::Owned(ConstantValue::Bytes(left)))
                    }
                    (_, _) => Err(Failure::NotConstant(span)),
                }
            }
            ExprKind::Fit(inner) => {
                let value = self.expression(frame, inner)?;
                if let ConstantValue::Bytes(bytes) = &*value {
                    self.require_bound(expr.ty, bytes.len(), span)?;
                }
                Ok(value)
            }
            ExprKind::Number { base, order, bits, offset } => {
                let base = self.expression(frame, base)?;
                let ConstantValue::Bytes(bytes) = &*base else { return Err(Failure::NotConstant(span)) };
                let at = self.window(self.scalar(frame, offset)?, *bits as usize / 8, bytes.len(), span)?;
                scalar(number(&bytes[at..at + *bits as usize / 8], *order) as i128)
            }
            ExprKind::LayoutField { base, layout, field, offset } => {
                let base = self.expression(frame, base)?;
                let ConstantValue::Bytes(bytes) = &*base else { return Err(Failure::NotConstant(span)) };
                let (whole, field) = self.layout_bits(*layout, *field, span)?;
                let at = self.window(self.scalar(frame, offset)?, whole, bytes.len(), span)?;
                scalar(field.read(&bytes[at..at + whole]) as i128)
            }
            ExprKind::Convert(inner) => {
                let value = self.scalar(frame, inner)?;
                scalar(self.int(expr.ty).map_or(value, |int| int.wrap(value)))
            }
            ExprKind::Test(inner) => scalar(i128::from(self.scalar(frame, inner)? != 0)),
            ExprKind::Unary(operator, inner) => {
                let value = self.scalar(frame, inner)?;
                match (operator, self.int(expr.ty)) {
                    (UnaryOperator::Not, _) => scalar(i128::from(value == 0)),
                    (UnaryOperator::Complement, Some(int)) => scalar(int.wrap(!value)),
                    (UnaryOperator::Negate, Some(int)) => scalar(checked(int, -value, span)?),
                    (UnaryOperator::Complement | UnaryOperator::Negate, None) => Err(Failure::NotConstant(span)),
                }
            }
            ExprKind::Binary(operator, left, right) => {
                scalar(self.binary(frame, (*operator, expr.ty), left, right, span)?)
            }
            ExprKind::Conditional(condition, left, right) => {
                let chosen = if self.scalar(frame, condition)? != 0 { left } else { right };
                self.expression(frame, chosen)
            }
            ExprKind::CallFn(function, arguments) => {
                let arguments: Result<Vec<ConstantValue>> =
                    arguments.iter().map(|argument| self.owned(frame, argument)).collect();
                self.call(*function, arguments?, span).map(Cow::Owned)
            }
            // Durations have no value before the program runs.
            ExprKind::Saturating(..)
            | ExprKind::Now
            | ExprKind::CallExtern(..)
            | ExprKind::OwnId
            | ExprKind::InstanceOf(..)
            | ExprKind::ReplicaNumber(_)
            | ExprKind::FreeObjects(_) => Err(Failure::NotConstant(span)),
        }
    }

    fn binary(
        &self,
        frame: &Variables<'_>,
        (operator, ty): (BinaryOperator, TypeId),
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Result<i128> {
        let of_bool = |value: bool| Ok(i128::from(value));
        match operator {
            BinaryOperator::And => return of_bool(self.scalar(frame, left)? != 0 && self.scalar(frame, right)? != 0),
            BinaryOperator::Or => return of_bool(self.scalar(frame, left)? != 0 || self.scalar(frame, right)? != 0),
            BinaryOperator::Equal | BinaryOperator::NotEqual => {
                let left = self.expression(frame, left)?;
                let right = self.expression(frame, right)?;
                self.charge(size(&left).min(size(&right)), span)?;
                return of_bool((left == right) == (operator == BinaryOperator::Equal));
            }
            _ => {}
        }
        let (a, b) = (self.scalar(frame, left)?, self.scalar(frame, right)?);
        let Some(int) = self.int(ty) else {
            return match operator {
                BinaryOperator::Less => of_bool(a < b),
                BinaryOperator::LessEqual => of_bool(a <= b),
                BinaryOperator::Greater => of_bool(a > b),
                BinaryOperator::GreaterEqual => of_bool(a >= b),
                _ => Err(Failure::NotConstant(span)),
            };
        };
        match operator {
            BinaryOperator::Divide | BinaryOperator::Remainder if b == 0 => {
                Err(Failure::Fault(span, "division by zero in a constant".to_string()))
            }
            BinaryOperator::Divide => checked(int, a / b, span),
            BinaryOperator::Remainder => checked(int, a % b, span),
            BinaryOperator::Multiply => checked(int, a * b, span),
            BinaryOperator::Add => checked(int, a + b, span),
            BinaryOperator::Subtract => checked(int, a - b, span),
            BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight => {
                if !(0..i128::from(int.bits())).contains(&b) {
                    let message = format!("a shift of `{}` by {b} is outside 0..{}", int.name(), int.bits());
                    return Err(Failure::Fault(span, message));
                }
                // At most 64 bits by at most 63: fits 128.
                Ok(if operator == BinaryOperator::ShiftLeft { int.wrap(a << b) } else { a >> b })
            }
            BinaryOperator::BitAnd => Ok(a & b),
            BinaryOperator::BitXor => Ok(int.wrap(a ^ b)),
            BinaryOperator::BitOr => Ok(a | b),
            BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Less
            | BinaryOperator::LessEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterEqual
            | BinaryOperator::And
            | BinaryOperator::Or => Err(Failure::NotConstant(span)),
        }
    }

    fn call(&self, id: FnId, arguments: Vec<ConstantValue>, span: Span) -> Result<ConstantValue> {
        let entry = &self.checker.functions[id.0 as usize];
        if entry.is_faulty {
            return Err(Failure::Reported);
        }
        let Some(function) = &entry.hir else { return Err(Failure::NotConstant(span)) };
        let mut values: Vec<Option<ConstantValue>> = arguments.into_iter().map(Some).collect();
        values.resize(function.locals.len(), None);
        let mut frame = Variables { values, locals: &function.locals };
        match self.nested(span, || self.block(&mut frame, &function.body))? {
            Flow::Return(value) => Ok(value),
            // A body that can end without `return` is an error.
            Flow::Next | Flow::Break(_) | Flow::Continue(_) => Err(Failure::NotConstant(span)),
        }
    }

    fn block(&self, frame: &mut Variables<'_>, body: &[Stmt]) -> Result<Flow> {
        for stmt in body {
            match self.statement(frame, stmt)? {
                Flow::Next => {}
                flow @ (Flow::Break(_) | Flow::Continue(_) | Flow::Return(_)) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&self, frame: &mut Variables<'_>, stmt: &Stmt) -> Result<Flow> {
        self.charge(1, stmt.span)?;
        match &stmt.kind {
            StmtKind::Label(_) => {}
            StmtKind::Declare(local) => frame.values[local.0 as usize] = None,
            StmtKind::Block(body) => return self.nested(stmt.span, || self.block(frame, body)),
            StmtKind::If(condition, then, otherwise) => {
                let chosen = if self.scalar(frame, condition)? != 0 { then } else { otherwise };
                return self.nested(stmt.span, || self.block(frame, chosen));
            }
            StmtKind::While(condition, body) => loop {
                self.charge(1, stmt.span)?;
                if let Some(condition) = condition
                    && self.scalar(frame, condition)? == 0
                {
                    break;
                }
                match self.nested(stmt.span, || self.block(frame, body))? {
                    Flow::Next | Flow::Continue(0) => {}
                    Flow::Break(0) => break,
                    Flow::Continue(between) => return Ok(Flow::Continue(between - 1)),
                    Flow::Break(between) => return Ok(Flow::Break(between - 1)),
                    flow @ Flow::Return(_) => return Ok(flow),
                }
            },
            StmtKind::For(counter, from, to, body) => {
                let (from, to) = (self.scalar(frame, from)?, self.scalar(frame, to)?);
                let mut number = from;
                while number < to {
                    self.charge(1, stmt.span)?;
                    frame.values[counter.0 as usize] = Some(ConstantValue::Scalar(number));
                    match self.nested(stmt.span, || self.block(frame, body))? {
                        Flow::Next | Flow::Continue(0) => {}
                        Flow::Break(0) => break,
                        Flow::Continue(between) => return Ok(Flow::Continue(between - 1)),
                        Flow::Break(between) => return Ok(Flow::Break(between - 1)),
                        flow @ Flow::Return(_) => return Ok(flow),
                    }
                    number += 1;
                }
            }
            StmtKind::Match(value, arms) => {
                let value = self.owned(frame, value)?;
                for (pattern, body) in arms {
                    if self.matches(frame, pattern, &value)? {
                        return self.nested(stmt.span, || self.block(frame, body));
                    }
                }
            }
            StmtKind::Break(between) => return Ok(Flow::Break(*between)),
            StmtKind::Continue(between) => return Ok(Flow::Continue(*between)),
            StmtKind::Return(value) => return Ok(Flow::Return(self.owned(frame, value)?)),
            StmtKind::Assert(condition) => {
                if self.scalar(frame, condition)? == 0 {
                    return Err(Failure::Fault(stmt.span, "this assertion fails in a constant".to_string()));
                }
            }
            StmtKind::CallFn(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.owned(frame, argument)?);
                }
                self.call(*function, values, stmt.span)?;
            }
            StmtKind::Assign(place, value) => {
                let value = self.owned(frame, value)?;
                self.assign(frame, place, value)?;
            }
            StmtKind::Update { place, operator, value, ty } => self.update(frame, place, *operator, value, *ty)?,
            StmtKind::Yield
            | StmtKind::Exit(_)
            | StmtKind::Communicate(_)
            | StmtKind::Call(..)
            | StmtKind::Inline(_)
            | StmtKind::Leave
            | StmtKind::Link(_)
            | StmtKind::Unlink(_) => return Err(Failure::NotConstant(stmt.span)),
        }
        Ok(Flow::Next)
    }

    fn update(
        &self,
        frame: &mut Variables<'_>,
        place: &Place,
        operator: BinaryOperator,
        value: &Expr,
        ty: TypeId,
    ) -> Result<()> {
        let addend = self.owned(frame, value)?;
        let current = self.read(frame, place)?;
        let result = match (current, addend) {
            (ConstantValue::Bytes(mut bytes), ConstantValue::Bytes(more)) => {
                self.charge(more.len() as u64, place.span)?;
                bytes.extend(more);
                self.require_bound(place.ty, bytes.len(), place.span)?;
                ConstantValue::Bytes(bytes)
            }
            (ConstantValue::Scalar(a), ConstantValue::Scalar(b)) => {
                let constant = |number, ty| Expr { kind: ExprKind::Constant(number), ty, span: place.span };
                let operands = (constant(a, ty), constant(b, value.ty));
                let number = self.binary(frame, (operator, ty), &operands.0, &operands.1, place.span)?;
                ConstantValue::Scalar(self.int(place.ty).map_or(number, |int| int.wrap(number)))
            }
            (_, _) => return Err(Failure::NotConstant(place.span)),
        };
        self.assign(frame, place, result)
    }

    /// The present value of a place.
    fn read(&self, frame: &Variables<'_>, place: &Place) -> Result<ConstantValue> {
        let Some(mut value) = frame.values[place.base.0 as usize].as_ref() else {
            return Err(Failure::NotConstant(place.span));
        };
        for step in &place.path {
            match (step, value) {
                (PlaceStep::Content, _) => {}
                (PlaceStep::Field(field), ConstantValue::Parts(parts)) => value = &parts[*field as usize],
                (PlaceStep::Index(index), ConstantValue::Parts(parts)) => {
                    value = &parts[self.window(self.scalar(frame, index)?, 1, parts.len(), place.span)?];
                }
                (PlaceStep::Index(index), ConstantValue::Bytes(bytes)) => {
                    let at = self.window(self.scalar(frame, index)?, 1, bytes.len(), place.span)?;
                    return Ok(ConstantValue::Scalar(i128::from(bytes[at])));
                }
                (PlaceStep::Length, ConstantValue::Bytes(bytes)) => {
                    return Ok(ConstantValue::Scalar(bytes.len() as i128));
                }
                (PlaceStep::Number { order, bits, offset }, ConstantValue::Bytes(bytes)) => {
                    let width = *bits as usize / 8;
                    let at = self.window(self.scalar(frame, offset)?, width, bytes.len(), place.span)?;
                    return Ok(ConstantValue::Scalar(number(&bytes[at..at + width], *order) as i128));
                }
                (PlaceStep::LayoutField { layout, field, offset }, ConstantValue::Bytes(bytes)) => {
                    let (whole, field) = self.layout_bits(*layout, *field, place.span)?;
                    let at = self.window(self.scalar(frame, offset)?, whole, bytes.len(), place.span)?;
                    return Ok(ConstantValue::Scalar(field.read(&bytes[at..at + whole]) as i128));
                }
                (_, _) => return Err(Failure::NotConstant(place.span)),
            }
        }
        Ok(value.clone())
    }

    /// Assigns a value of the place's type.
    fn assign(&self, frame: &mut Variables<'_>, place: &Place, value: ConstantValue) -> Result<()> {
        // Indices are evaluated before anything is changed.
        let mut numbers = Vec::with_capacity(place.path.len());
        for step in &place.path {
            numbers.push(match step {
                PlaceStep::Content | PlaceStep::Field(_) | PlaceStep::Length => (None, None),
                PlaceStep::Index(index) => (Some(self.scalar(frame, index)?), None),
                PlaceStep::Number { offset, .. } | PlaceStep::LayoutField { offset, .. } => {
                    (Some(self.scalar(frame, offset)?), None)
                }
                PlaceStep::Slice(from, to) => {
                    let end = |end: &Option<Box<Expr>>| end.as_ref().map(|end| self.scalar(frame, end)).transpose();
                    (end(from)?, end(to)?)
                }
            });
        }
        let span = place.span;
        let Some((last, path)) = place.path.split_last() else {
            frame.values[place.base.0 as usize] = Some(value);
            return Ok(());
        };
        let bytes_type = self.path_type(frame.locals[place.base.0 as usize].ty, path);
        let mut target = frame.values[place.base.0 as usize].as_mut().ok_or(Failure::NotConstant(span))?;
        for (step, numbers) in path.iter().zip(&numbers) {
            target = match (step, target, numbers.0) {
                (PlaceStep::Content, target, _) => target,
                (PlaceStep::Field(field), ConstantValue::Parts(parts), _) => &mut parts[*field as usize],
                (PlaceStep::Index(_), ConstantValue::Parts(parts), Some(index)) => {
                    let at = self.window(index, 1, parts.len(), span)?;
                    &mut parts[at]
                }
                (_, _, _) => return Err(Failure::NotConstant(span)),
            };
        }
        match (last, target, numbers[path.len()], value) {
            (PlaceStep::Content, target, _, value) => *target = value,
            (PlaceStep::Field(field), ConstantValue::Parts(parts), _, value) => parts[*field as usize] = value,
            (PlaceStep::Index(_), ConstantValue::Parts(parts), (Some(index), _), value) => {
                let at = self.window(index, 1, parts.len(), span)?;
                parts[at] = value;
            }
            (PlaceStep::Index(_), ConstantValue::Bytes(bytes), (Some(index), _), ConstantValue::Scalar(value)) => {
                let at = self.window(index, 1, bytes.len(), span)?;
                bytes[at] = value as u8;
            }
            (PlaceStep::Length, ConstantValue::Bytes(bytes), _, ConstantValue::Scalar(length)) => {
                let Ok(length) = usize::try_from(length) else {
                    return Err(Failure::Fault(span, format!("the length {length} is negative in a constant")));
                };
                self.require_bound(bytes_type, length, span)?;
                self.charge(length as u64, span)?;
                bytes.resize(length, 0);
            }
            (PlaceStep::Slice(..), ConstantValue::Bytes(bytes), (from, to), ConstantValue::Bytes(value)) => {
                let range = slice_range(from, to, bytes.len(), span)?;
                if range.len() != value.len() {
                    let message = format!("{} bytes do not replace {} in a constant", value.len(), range.len());
                    return Err(Failure::Fault(span, message));
                }
                bytes[range].copy_from_slice(&value);
            }
            (
                PlaceStep::Number { order, bits, .. },
                ConstantValue::Bytes(bytes),
                (Some(offset), _),
                ConstantValue::Scalar(value),
            ) => {
                let width = *bits as usize / 8;
                let at = self.window(offset, width, bytes.len(), span)?;
                set_number(&mut bytes[at..at + width], *order, value as u64);
            }
            (
                PlaceStep::LayoutField { layout, field, .. },
                ConstantValue::Bytes(bytes),
                (Some(offset), _),
                ConstantValue::Scalar(value),
            ) => {
                let (whole, field) = self.layout_bits(*layout, *field, span)?;
                let at = self.window(offset, whole, bytes.len(), span)?;
                if field.width < 64 && value >> field.width != 0 {
                    return Err(Failure::Fault(
                        span,
                        format!("{value} does not fit {} bits in a constant", field.width),
                    ));
                }
                field.write(&mut bytes[at..at + whole], value as u64);
            }
            (_, _, _, _) => return Err(Failure::NotConstant(span)),
        }
        Ok(())
    }

    /// The type of what a path of fields and indices leads to.
    fn path_type(&self, base: TypeId, path: &[PlaceStep]) -> TypeId {
        path.iter().fold(self.checker.content(base), |ty, step| match (step, self.types().get(ty)) {
            (PlaceStep::Field(field), Type::Record(id)) => {
                let part = self.types().aggregate(*id).parts[*field as usize].1.unwrap_or(TypeTable::ERROR);
                self.checker.content(part)
            }
            (PlaceStep::Index(_), Type::Array { element, .. }) => self.checker.content(*element),
            (_, _) => ty,
        })
    }

    /// Whether bytes of this length are values of the type.
    fn require_bound(&self, ty: TypeId, length: usize, span: Span) -> Result<()> {
        match self.types().get(self.checker.content(ty)) {
            Type::Bytes { bound } if length > *bound as usize => {
                Err(Failure::Fault(span, format!("{length} bytes do not fit `bytes[<={bound}]` in a constant")))
            }
            _ => Ok(()),
        }
    }

    /// The start of `width` bytes or elements at an index.
    fn window(&self, index: i128, width: usize, length: usize, span: Span) -> Result<usize> {
        usize::try_from(index)
            .ok()
            .filter(|at| at.checked_add(width).is_some_and(|end| end <= length))
            .ok_or_else(|| bounds(span, index, length))
    }

    fn range(
        &self,
        frame: &Variables<'_>,
        (from, to): (Option<&Expr>, Option<&Expr>),
        length: usize,
        span: Span,
    ) -> Result<Range<usize>> {
        let from = from.map(|from| self.scalar(frame, from)).transpose()?;
        let to = to.map(|to| self.scalar(frame, to)).transpose()?;
        slice_range(from, to, length, span)
    }

    /// The bytes of a layout, and the bits of a field of it.
    fn layout_bits(&self, layout: LayoutId, field: u32, span: Span) -> Result<(usize, Bits)> {
        let layout = self.checker.layouts[layout.0 as usize].1.as_ref().ok_or(Failure::NotConstant(span))?;
        let field = &layout.fields[field as usize];
        let bits = Bits { first: field.offset_bits as usize, width: field.width_bits as usize, order: field.order };
        Ok((layout.bytes as usize, bits))
    }

    /// A value as a literal of a type.
    fn literal(&self, value: ConstantValue, ty: TypeId, span: Span) -> Expr {
        let content = self.checker.content(ty);
        let part = |ty: Option<TypeId>, value: ConstantValue| self.literal(value, ty.unwrap_or(TypeTable::ERROR), span);
        let kind = match (value, self.types().get(content)) {
            (ConstantValue::Scalar(number), _) => ExprKind::Constant(number),
            (ConstantValue::Bytes(bytes), _) => ExprKind::Bytes(bytes),
            (ConstantValue::Parts(parts), Type::Array { element, .. }) => {
                ExprKind::Array(parts.into_iter().map(|value| part(Some(*element), value)).collect())
            }
            (ConstantValue::Parts(parts), Type::Record(id)) => {
                let types = self.types().aggregate(*id).parts.iter().map(|(_, ty)| *ty);
                let fields = parts.into_iter().zip(types).enumerate();
                ExprKind::Record(fields.map(|(field, (value, ty))| (field as u32, part(ty, value))).collect())
            }
            (ConstantValue::Tagged(tag, payload), Type::Union(id)) => {
                let ty = self.types().aggregate(*id).parts[tag as usize].1;
                ExprKind::Union(tag, payload.map(|payload| Box::new(part(ty, *payload))))
            }
            (ConstantValue::Parts(_) | ConstantValue::Tagged(..), _) => ExprKind::Constant(0),
        };
        let literal = Expr { kind, ty: content, span };
        if content == ty { literal } else { Expr { kind: ExprKind::Box(Box::new(literal)), ty, span } }
    }

    /// Whether the value matches; if so, binds the pattern's variables and makes its assignments.
    fn matches(&self, frame: &mut Variables<'_>, pattern: &Pattern, value: &ConstantValue) -> Result<bool> {
        let mut assignments = Vec::new();
        if !self.accepts(frame, pattern, value, &mut assignments)? {
            return Ok(false);
        }
        for (place, value) in assignments {
            let value = match (value, self.int(place.ty)) {
                (ConstantValue::Scalar(number), Some(int)) => ConstantValue::Scalar(int.wrap(*number)),
                (value, _) => value.clone(),
            };
            self.assign(frame, place, value)?;
        }
        Ok(true)
    }

    fn accepts<'v>(
        &self,
        frame: &mut Variables<'_>,
        pattern: &'v Pattern,
        value: &'v ConstantValue,
        assignments: &mut Vec<(&'v Place, &'v ConstantValue)>,
    ) -> Result<bool> {
        self.charge(1, pattern.span)?;
        let is_match = match (&pattern.kind, value) {
            (PatternKind::Any, _) => true,
            (PatternKind::Declare(local), _) => {
                self.charge(size(value), pattern.span)?;
                frame.values[local.0 as usize] = Some(value.clone());
                true
            }
            (PatternKind::Assign(place), _) => {
                assignments.push((place, value));
                true
            }
            (PatternKind::Constant(constant), ConstantValue::Scalar(number)) => constant == number,
            (PatternKind::Among(ranges), ConstantValue::Scalar(number)) => {
                ranges.iter().any(|(low, high)| low <= number && number < high)
            }
            (PatternKind::Either(alternatives), _) => {
                let mut is_match = false;
                for alternative in alternatives {
                    is_match = is_match || self.accepts(frame, alternative, value, assignments)?;
                }
                is_match
            }
            (PatternKind::Bytes(constant), ConstantValue::Bytes(bytes)) => constant == bytes,
            (PatternKind::Equal(expr), _) => *self.expression(frame, expr)? == *value,
            (PatternKind::Tag(tag, part), ConstantValue::Tagged(own, payload)) => match (part, payload) {
                (Some(part), Some(payload)) => tag == own && self.accepts(frame, part, payload, assignments)?,
                (_, _) => tag == own,
            },
            (PatternKind::Record(parts) | PatternKind::Array(parts), ConstantValue::Parts(values)) => {
                for (part, value) in parts.iter().zip(values) {
                    if !self.accepts(frame, part, value, assignments)? {
                        return Ok(false);
                    }
                }
                true
            }
            (_, _) => return Err(Failure::NotConstant(pattern.span)),
        };
        match (&pattern.condition, is_match) {
            (Some(condition), true) => Ok(self.scalar(frame, condition)? != 0),
            (_, is_match) => Ok(is_match),
        }
    }
}

/// Bits of a layout.
struct Bits {
    first: usize,
    width: usize,
    order: ByteOrder,
}

impl Bits {
    fn read(&self, layout: &[u8]) -> u64 {
        match self.order {
            ByteOrder::Little => number(&layout[self.first / 8..(self.first + self.width) / 8], ByteOrder::Little),
            ByteOrder::Big => (self.first..self.first + self.width)
                .fold(0, |value, bit| value << 1 | u64::from(layout[bit / 8] >> (7 - bit % 8) & 1)),
        }
    }

    fn write(&self, layout: &mut [u8], value: u64) {
        match self.order {
            ByteOrder::Little => {
                set_number(&mut layout[self.first / 8..(self.first + self.width) / 8], ByteOrder::Little, value);
            }
            ByteOrder::Big => {
                for index in 0..self.width {
                    let (bit, mask) = (self.first + index, value >> (self.width - 1 - index) & 1);
                    let shift = 7 - bit % 8;
                    layout[bit / 8] = layout[bit / 8] & !(1 << shift) | (mask as u8) << shift;
                }
            }
        }
    }
}

/// The unsigned number in these bytes, at most eight.
fn number(bytes: &[u8], order: ByteOrder) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match order {
        ByteOrder::Big => bytes.iter().fold(0, add),
        ByteOrder::Little => bytes.iter().rev().fold(0, add),
    }
}

fn set_number(bytes: &mut [u8], order: ByteOrder, value: u64) {
    let little = value.to_le_bytes();
    let width = bytes.len();
    bytes.copy_from_slice(&little[..width]);
    if order == ByteOrder::Big {
        bytes.reverse();
    }
}

fn slice_range(from: Option<i128>, to: Option<i128>, length: usize, span: Span) -> Result<Range<usize>> {
    let (from, to) = (from.unwrap_or(0), to.unwrap_or(length as i128));
    if !(0 <= from && from <= to && to <= length as i128) {
        let message = format!("the slice {from}..{to} is outside 0..{length} in a constant");
        return Err(Failure::Fault(span, message));
    }
    Ok(from as usize..to as usize)
}

fn bounds(span: Span, index: i128, length: usize) -> Failure {
    Failure::Fault(span, format!("index {index} is outside 0..{length} in a constant"))
}

/// A result of arithmetic in a type. Unsigned arithmetic wraps; signed overflow is a fault here.
fn checked(int: IntType, value: i128, span: Span) -> Result<i128> {
    if int.is_signed() && !fits_int(value, int) {
        return Err(Failure::Fault(span, format!("{value} does not fit `{}`", int.name())));
    }
    Ok(int.wrap(value))
}

/// The number of parts that a copy of a value has.
fn size(value: &ConstantValue) -> u64 {
    match value {
        ConstantValue::Scalar(_) => 1,
        ConstantValue::Bytes(bytes) => 1 + bytes.len() as u64 / 8,
        ConstantValue::Parts(parts) => 1 + parts.iter().map(size).sum::<u64>(),
        ConstantValue::Tagged(_, payload) => 1 + payload.as_ref().map_or(0, |payload| size(payload)),
    }
}
