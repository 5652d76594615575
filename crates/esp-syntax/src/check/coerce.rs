//! Coercion of a value to the type that its context expects: widening, boxes, bounds of `bytes`, and the conversions
//! between mutable and immutable (reference, sections 3 and 6).

use super::body::Body;
use super::constants::error_expr;
use super::expressions::Typed;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, BinaryOperator, ExprKind, IntType, Mutability, UnaryOperator};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

/// What the context does with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Reads it: a `#T` is accepted as a `T`.
    Read,
    /// Keeps it as a `T`.
    Own,
    /// Keeps it as a `#T`.
    Mutable,
    /// Sends it.
    Send,
    /// Makes it a part of another value.
    Part,
}

/// The way from a duration to a number.
pub(super) fn count_help(duration: &str, to: IntType) -> String {
    let is_name = duration.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]".contains(c));
    let is_closed = duration.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let is_operand = is_name || is_closed.is_some_and(|inside| !inside.contains(['(', ')']));
    let quotient = if is_operand { format!("{duration} / (1 ms)") } else { format!("({duration}) / (1 ms)") };
    match to {
        IntType::I64 => format!("divide by a unit: write `{quotient}`"),
        _ => format!("divide by a unit: write `{}({quotient})`", to.name()),
    }
}

/// What to write instead of a byte string where a number is expected.
fn instead_of_text(text: &str) -> String {
    let content = text.trim_matches('"');
    match content.as_bytes() {
        _ if content.parse::<u64>().is_ok() => format!("a number has no quotes: write `{content}`"),
        [byte] if byte.is_ascii_graphic() => format!("a character is in single quotes: write `'{content}'`"),
        _ => "text is `bytes`: take a byte of it with `p[i]`, or its length with `p.len`".to_string(),
    }
}

impl Body<'_, '_> {
    /// The value in the expected type; reports an error if there is no coercion.
    pub(super) fn coerce(&mut self, value: Typed, expected: TypeId, need: Use) -> hir::Expr {
        let Typed { expr, mutability } = value;
        let span = expr.span;
        if expr.ty == TypeTable::ERROR || expected == TypeTable::ERROR {
            return error_expr(span);
        }
        let found = expr.ty;
        let expr = match self.convert(expr, expected) {
            Ok(expr) => expr,
            Err(_) => {
                self.mismatch(expected, found, span);
                return error_expr(span);
            }
        };
        match (need, mutability) {
            (Use::Read, _) | (Use::Own | Use::Send | Use::Part, Mutability::Immutable) => expr,
            (Use::Mutable, Mutability::Mutable) => self.separate(expr),
            (Use::Mutable, Mutability::Immutable) => {
                if self.effective(expected, Mutability::Mutable) == Mutability::Mutable {
                    self.expected_mutable(expected, found, &expr, span);
                }
                expr
            }
            (Use::Send, Mutability::Mutable) => {
                let message = format!("`out` sends `{}`", self.checker.value_type_name(found, Mutability::Mutable));
                let help = self.freeze_help(&expr, span);
                self.checker.report(Diagnostic::new(Code::E0409, span, message).help(help));
                error_expr(span)
            }
            (Use::Own | Use::Part, Mutability::Mutable) => {
                let literal = !matches!(expr.kind, ExprKind::Local(_) | ExprKind::Thaw(_));
                let diagnostic = if need == Use::Part && literal {
                    Diagnostic::new(Code::E0307, span, "`#` is allowed only on a variable")
                } else {
                    let message = format!(
                        "expected `{}`, found `{}`",
                        self.checker.type_name(expected),
                        self.checker.value_type_name(found, Mutability::Mutable)
                    );
                    Diagnostic::new(Code::E0302, span, message)
                };
                let help = self.freeze_help(&expr, span);
                self.checker.report(diagnostic.help(help));
                error_expr(span)
            }
        }
    }

    fn freeze_help(&self, expr: &hir::Expr, span: Span) -> String {
        let mut value = expr;
        // Bounds and boxes of the expected type are not in the text.
        while let ExprKind::Fit(inner) | ExprKind::Box(inner) = &value.kind {
            value = inner;
        }
        match value.kind {
            ExprKind::Local(_) | ExprKind::Thaw(_) | ExprKind::Content(_) => {
                format!("write `freeze({})`", self.checker.text(span))
            }
            _ => "drop the `#`".to_string(),
        }
    }

    /// Two variables never share one mutable object: the value of another variable is copied (moved at its last use).
    fn separate(&mut self, expr: hir::Expr) -> hir::Expr {
        let boxed = matches!(self.checker.types.get(expr.ty), Type::Boxed(_));
        if boxed && matches!(expr.kind, ExprKind::Local(_)) {
            let (ty, span) = (expr.ty, expr.span);
            return hir::Expr { kind: ExprKind::Thaw(Box::new(expr)), ty, span };
        }
        expr
    }

    fn expected_mutable(&mut self, expected: TypeId, found: TypeId, expr: &hir::Expr, span: Span) {
        let message = format!(
            "expected `{}`, found `{}`",
            self.checker.value_type_name(expected, Mutability::Mutable),
            self.checker.type_name(found)
        );
        let help = match &expr.kind {
            ExprKind::Bytes(_) | ExprKind::Record(_) | ExprKind::Array(_) | ExprKind::Repeat(_) => {
                "write `#` before the literal".to_string()
            }
            _ => format!("write `thaw({})`", self.checker.text(span)),
        };
        self.checker.report(Diagnostic::new(Code::E0302, span, message).help(help));
    }

    /// Reports a value of the wrong type.
    pub(super) fn mismatch(&mut self, expected: TypeId, found: TypeId, span: Span) {
        if expected == TypeTable::ERROR || found == TypeTable::ERROR {
            return;
        }
        let message =
            format!("expected `{}`, found `{}`", self.checker.type_name(expected), self.checker.type_name(found));
        let mut diagnostic = Diagnostic::new(Code::E0302, span, message);
        let text = self.checker.text(span);
        let types = &self.checker.types;
        if let Some(enumeration) = types.enumeration(expected)
            && self.checker.int_type(found).is_some()
        {
            // A constant that is a code of the enumeration is written by its name.
            diagnostic = diagnostic.help(match text.parse().ok().and_then(|code: i128| enumeration.case_of(code)) {
                Some(case) if Some(case) != enumeration.other.as_ref() => {
                    format!("write `{}.{case}`", enumeration.name)
                }
                Some(_) | None => format!("write `{}({text})` to convert a code", enumeration.name),
            });
            return self.checker.report(diagnostic);
        }
        if let (Type::Pid(processes), Some(_)) = (types.get(expected), self.checker.int_type(found)) {
            let entry = processes.first().map(|process| &self.checker.processes[process.0 as usize].item);
            let help = match entry {
                Some(item) if item.replicas.is_some() => {
                    format!("the id of a replica is `@{}[{text}]`, its number `int(id)`", item.name.text)
                }
                Some(item) => format!("the id of the process is `@{}`", item.name.text),
                None => "the id of a process is written `@p`".to_string(),
            };
            return self.checker.report(diagnostic.help(help));
        }
        if let (Some(enumeration), Type::Int(int)) = (types.enumeration(found), types.get(expected)) {
            let (name, base) = (int.name(), enumeration.base.name());
            diagnostic = diagnostic.help(format!("write `{name}({text})` for the code, which is a `{base}`"));
            return self.checker.report(diagnostic);
        }
        if let (Some(enumeration), Type::Bool) = (types.enumeration(found), types.get(expected))
            && let Some((case, _)) = enumeration.cases.first()
        {
            diagnostic =
                diagnostic.help(format!("compare it with a case, as in `{text} == {}.{case}`", enumeration.name));
            return self.checker.report(diagnostic);
        }
        match (types.get(expected), types.get(found)) {
            (Type::Int(IntType::Duration), Type::Int(found)) if !found.is_clock() => {
                // The lexer has reported a number like `5ms`.
                if text.starts_with(|first: char| first.is_ascii_digit()) && text.ends_with('s') {
                    return;
                }
                diagnostic = diagnostic.help(format!("a duration has a unit: write `({text} ms)`"));
            }
            (Type::Int(IntType::Time), Type::Int(IntType::Duration)) => {
                diagnostic = diagnostic.help(format!("a time is a moment: write `now + {text}`"));
            }
            (Type::Int(IntType::Duration), Type::Int(IntType::Time)) => {
                diagnostic = diagnostic.help("a duration is the difference of two times, as in `now - start`");
            }
            (Type::Int(IntType::Time), _) => {
                diagnostic = diagnostic.help("a time is made of `now`, as in `now + (250 ms)`");
            }
            (Type::Int(to), Type::Int(IntType::Duration)) => {
                diagnostic = diagnostic.help(count_help(text, *to));
            }
            (_, Type::Int(IntType::Time)) => {
                diagnostic = diagnostic.help(
                    "a time has no number; the difference of two times is a duration, as in `(now - start) / (1 ms)`",
                );
            }
            (Type::Int(int), Type::Int(_)) if types.enumeration(expected).is_none() => {
                diagnostic = diagnostic.help(format!("write `{}({text})` to keep the low bits", int.name()));
            }
            (Type::Int(IntType::I32), Type::Bool | Type::Pid(_)) => {
                diagnostic = diagnostic.help(format!("write `int({text})`"));
            }
            (Type::Bool, Type::Int(IntType::Duration)) => {
                diagnostic = diagnostic.help(format!("write `{text} != (0 s)`"));
            }
            (Type::Bool, Type::Int(_)) => diagnostic = diagnostic.help(format!("write `{text} != 0`")),
            (Type::Int(_), Type::Bytes { .. }) => diagnostic = diagnostic.help(instead_of_text(text)),
            (Type::Array { .. }, Type::Record(_)) => {
                diagnostic = diagnostic.help("an array is written in brackets, `[1, 2, 3]`");
            }
            _ => {}
        }
        self.checker.report(diagnostic);
    }

    /// Reports a value that is none of a kind, such as "an integer".
    pub(super) fn expected_kind(&mut self, kind: &str, found: TypeId, span: Span) {
        if found != TypeTable::ERROR {
            let message = format!("expected {kind}, found `{}`", self.checker.type_name(found));
            self.checker.error(Code::E0302, span, message);
        }
    }

    /// A box's content; anything else as it is.
    pub(super) fn unbox(&self, expr: hir::Expr) -> hir::Expr {
        match self.checker.types.get(expr.ty) {
            Type::Boxed(pool) => {
                let (ty, span) = (self.checker.types.pool(*pool).content, expr.span);
                hir::Expr { kind: ExprKind::Content(Box::new(expr)), ty, span }
            }
            _ => expr,
        }
    }

    /// The value in another type if it goes there by itself; otherwise the value back.
    pub(super) fn convert(&mut self, expr: hir::Expr, expected: TypeId) -> Result<hir::Expr, hir::Expr> {
        if expr.ty == expected || expr.ty == TypeTable::ERROR {
            return Ok(expr);
        }
        let span = expr.span;
        match (self.checker.types.get(expr.ty), self.checker.types.get(expected)) {
            (Type::Int(from), Type::Int(to))
                if from.widens_to(*to) && self.is_plain_integer(expr.ty) && self.is_plain_integer(expected) =>
            {
                Ok(self.convert_int(expr, *to))
            }
            (Type::Pid(from), Type::Pid(to)) if from.iter().all(|process| to.binary_search(process).is_ok()) => {
                Ok(match expr.kind {
                    ExprKind::Constant(_) => hir::Expr { ty: expected, ..expr },
                    _ => hir::Expr { kind: ExprKind::WidenPid(Box::new(expr)), ty: expected, span },
                })
            }
            (Type::Bytes { .. }, Type::Bytes { bound }) => {
                let bound = *bound;
                match &expr.kind {
                    ExprKind::Bytes(bytes) if bytes.len() <= bound as usize => Ok(hir::Expr { ty: expected, ..expr }),
                    ExprKind::Bytes(bytes) => {
                        let message = format!(
                            "a string of {} bytes does not fit `{}`",
                            bytes.len(),
                            self.checker.type_name(expected)
                        );
                        self.checker.error(Code::E0303, span, message);
                        Ok(error_expr(span))
                    }
                    _ => Ok(hir::Expr { kind: ExprKind::Fit(Box::new(expr)), ty: expected, span }),
                }
            }
            (Type::Boxed(_), _) => {
                let content = self.unbox(expr);
                self.convert(content, expected)
            }
            (_, Type::Boxed(pool)) => {
                let content = self.checker.types.pool(*pool).content;
                let expr = self.convert(expr, content)?;
                if expr.ty == TypeTable::ERROR {
                    return Ok(expr);
                }
                Ok(hir::Expr { kind: ExprKind::Box(Box::new(expr)), ty: expected, span })
            }
            _ => Err(expr),
        }
    }

    fn is_plain_integer(&self, ty: TypeId) -> bool {
        self.int_type(ty).is_some()
    }

    /// An integer in another integer type, keeping the low bits.
    pub(super) fn convert_int(&mut self, expr: hir::Expr, to: IntType) -> hir::Expr {
        let (ty, span) = (TypeTable::int(to), expr.span);
        if expr.ty == ty {
            return expr;
        }
        if let ExprKind::Constant(value) = expr.kind {
            return hir::Expr { kind: ExprKind::Constant(to.wrap(value)), ty, span };
        }
        self.warn_wrap(&expr, to);
        hir::Expr { kind: ExprKind::Convert(Box::new(expr)), ty, span }
    }

    /// W0908: the arithmetic was done in a narrower type than its result is used in.
    fn warn_wrap(&mut self, expr: &hir::Expr, to: IntType) {
        let wraps = match &expr.kind {
            ExprKind::Binary(operator, ..) => matches!(
                operator,
                BinaryOperator::Add | BinaryOperator::Subtract | BinaryOperator::Multiply | BinaryOperator::ShiftLeft
            ),
            ExprKind::Unary(operator, _) => *operator == UnaryOperator::Negate,
            _ => false,
        };
        let Some(from) = self.int_type(expr.ty).filter(|from| wraps && from.bits() < to.bits()) else { return };
        let message = format!("`{}` arithmetic wraps before it is widened to `{}`", from.name(), to.name());
        let help = format!("convert an operand first, as in `{}(x)`", to.name());
        self.checker.report(Diagnostic::new(Code::W0908, expr.span, message).help(help));
    }
}
