//! Promela expressions with the semantics of ESP's: widths, signs and wrapping by masks and macros, and the conditions
//! under which an operation faults. Knows nothing of statements.
//!
//! Promela computes in C's `int`. A `u32` is held in an `int` with the same bits; wider types are refused.

use super::memory::Kind;
use crate::Checks;
use quaject_esp_ir::ir::{BinaryOp, Fault, IntType, UnaryOp};

/// The macros, by name: written into the model if it uses them.
pub(super) const MACROS: &[(&str, &str)] = &[
    ("as_i8", "#define as_i8(a) ((((a) & 255) ^ 128) - 128)"),
    ("as_i16", "#define as_i16(a) ((((a) & 65535) ^ 32768) - 32768)"),
    ("MIN_INT", "#define MIN_INT (-2147483647 - 1)"),
    ("divide", "#define divide(a, b) (((b) == -1) -> (0 - (a)) : ((a) / (b)))"),
    ("remainder", "#define remainder(a, b) (((b) == -1) -> 0 : ((a) % (b)))"),
    ("below_u32", "#define below_u32(a, b) (((a) ^ (-2147483647 - 1)) < ((b) ^ (-2147483647 - 1)))"),
    ("right_u32", "#define right_u32(a, n) (((n) == 0) -> (a) : ((((a) >> 1) & 2147483647) >> ((n) - 1)))"),
    (
        "divide_u32",
        "#define half_u32(a, b) ((((((a) >> 1) & 2147483647) / (b)) << 1))\n\
         #define divide_u32(a, b) (((b) < 0) -> (!below_u32((a), (b)) -> 1 : 0) : \
         (((a) >= 0) -> ((a) / (b)) : (half_u32((a), (b)) + \
         (!below_u32((a) - half_u32((a), (b)) * (b), (b)) -> 1 : 0))))",
    ),
    ("sum_fits", "#define sum_fits(a, b) (((b) >= 0) -> ((a) <= 2147483647 - (b)) : ((a) >= (-2147483647 - 1) - (b)))"),
    (
        "difference_fits",
        "#define difference_fits(a, b) (((b) >= 0) -> ((a) >= (-2147483647 - 1) + (b)) : ((a) <= 2147483647 + (b)))",
    ),
    (
        "product_fits",
        "#define product_fits(a, b) (((a) == 0 || (b) == 0) -> true : (((a) == -1) -> ((b) >= -2147483647) : \
         (((b) == -1) -> ((a) >= -2147483647) : (((a) * (b)) / (b) == (a)))))",
    ),
];

/// An expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Expr {
    pub(super) text: String,
    /// Whether it is an operand without parentheses.
    tight: bool,
}

impl Expr {
    /// A name, a number, anything in parentheses.
    pub(super) fn tight(text: impl Into<String>) -> Expr {
        Expr { text: text.into(), tight: true }
    }

    pub(super) fn loose(text: impl Into<String>) -> Expr {
        Expr { text: text.into(), tight: false }
    }

    pub(super) fn number(value: i128) -> Expr {
        // A `u32` above the largest `int` has the bits of a negative number.
        let value = value as u32 as i32;
        match value {
            i32::MIN => Expr::tight("MIN_INT"),
            0.. => Expr::tight(value.to_string()),
            _ => Expr::loose(value.to_string()),
        }
    }

    /// The expression as an operand.
    pub(super) fn operand(&self) -> String {
        if self.tight { self.text.clone() } else { format!("({})", self.text) }
    }

    pub(super) fn binary(a: &Expr, operator: &str, b: &Expr) -> Expr {
        Expr::loose(format!("{} {operator} {}", a.operand(), b.operand()))
    }

    fn call(name: &str, arguments: &[&Expr]) -> Expr {
        let arguments: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
        Expr::tight(format!("{name}({})", arguments.join(", ")))
    }

    pub(super) fn choose(condition: &Expr, then: &Expr, otherwise: &Expr) -> Expr {
        Expr::tight(format!("({} -> {} : {})", condition.operand(), then.operand(), otherwise.operand()))
    }

    pub(super) fn not(&self) -> Expr {
        Expr::tight(format!("!{}", self.operand()))
    }

    pub(super) fn and(a: Option<Expr>, b: Expr) -> Expr {
        match a {
            Some(a) => Expr::binary(&a, "&&", &b),
            None => b,
        }
    }

    /// Whether computing it can stop Spin.
    pub(super) fn divides(&self) -> bool {
        ["/", "%", "divide", "remainder"].iter().any(|word| self.text.contains(word))
    }

    fn literal(&self) -> Option<i64> {
        self.text.parse().ok()
    }
}

/// A condition that must hold, or the program faults.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) condition: Expr,
    pub(super) fault: Fault,
}

fn demand(condition: Expr, fault: Fault) -> Option<Demand> {
    Some(Demand { condition, fault })
}

/// The low bits of an expression, as a value of this type.
pub(super) fn wrap(int: IntType, expr: Expr) -> Expr {
    if expr.literal().is_some_and(|value| int.min() <= i128::from(value) && i128::from(value) <= int.max()) {
        return expr;
    }
    match int {
        IntType::U8 => Expr::binary(&expr, "&", &Expr::tight("255")),
        IntType::U16 => Expr::binary(&expr, "&", &Expr::tight("65535")),
        IntType::I8 => Expr::call("as_i8", &[&expr]),
        IntType::I16 => Expr::call("as_i16", &[&expr]),
        IntType::U32 | IntType::I32 | IntType::U64 | IntType::I64 | IntType::Time | IntType::Duration => expr,
    }
}

/// The value of `from` as one of `to`.
pub(super) fn convert(from: &Kind, to: &Kind, value: Expr) -> Expr {
    match (from, to) {
        (Kind::Bool, Kind::Bool) => value,
        (_, Kind::Bool) => Expr::binary(&value, "!=", &Expr::tight("0")),
        (Kind::Int(from), Kind::Int(to)) if !from.widens_to(*to) => wrap(*to, value),
        (_, Kind::Int(_) | Kind::Pid(_) | Kind::Reference(_) | Kind::Tag | Kind::Length(_)) => value,
    }
}

pub(super) fn unary(op: UnaryOp, kind: &Kind, a: &Expr, checks: Checks) -> (Expr, Option<Demand>) {
    match (op, kind) {
        (UnaryOp::Not, _) => (a.not(), None),
        (UnaryOp::Complement, Kind::Int(int)) => (wrap(*int, Expr::tight(format!("~{}", a.operand()))), None),
        (UnaryOp::Complement, _) => (Expr::tight(format!("~{}", a.operand())), None),
        (UnaryOp::Negate, Kind::Int(int)) => {
            let int = *int;
            let min = Expr::number(int.min());
            let checked = checks == Checks::On && int.is_signed();
            let negated = Expr::binary(&Expr::tight("0"), "-", a);
            let demand = checked.then(|| demand(Expr::binary(a, "!=", &min), Fault::Overflow)).flatten();
            (wrap(int, negated), demand)
        }
        (UnaryOp::Negate, _) => (Expr::binary(&Expr::tight("0"), "-", a), None),
    }
}

/// What an operation on two values of one kind computes, and what must hold for that. `count` is the kind of a
/// shift's second operand.
pub(super) fn binary(
    op: BinaryOp,
    kind: &Kind,
    count: &Kind,
    a: &Expr,
    b: &Expr,
    checks: Checks,
) -> (Expr, Vec<Demand>) {
    let int = match kind {
        Kind::Int(int) => *int,
        Kind::Bool | Kind::Pid(_) | Kind::Reference(_) | Kind::Tag | Kind::Length(_) => IntType::I32,
    };
    let unsigned = int == IntType::U32;
    let plain = |operator: &str| (Expr::binary(a, operator, b), Vec::new());
    let ordered = |operator: &str, below: Expr| match unsigned {
        true => (below, Vec::new()),
        false => plain(operator),
    };
    let below = |a: &Expr, b: &Expr| Expr::call("below_u32", &[a, b]);
    match op {
        BinaryOp::Add => modular(op, ("+", "sum_fits"), int, [a, b], checks),
        BinaryOp::Subtract => modular(op, ("-", "difference_fits"), int, [a, b], checks),
        BinaryOp::Multiply => modular(op, ("*", "product_fits"), int, [a, b], checks),
        BinaryOp::Divide | BinaryOp::Remainder => quotient(op, int, a, b, checks),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => shift(op, (int, count), a, b, checks),
        BinaryOp::BitAnd => plain("&"),
        BinaryOp::BitOr => plain("|"),
        BinaryOp::BitXor => plain("^"),
        // Numbers of 64 bits are refused before.
        BinaryOp::SaturatingAdd => plain("+"),
        BinaryOp::SaturatingSubtract => plain("-"),
        BinaryOp::SaturatingMultiply => plain("*"),
        BinaryOp::Equal => plain("=="),
        BinaryOp::NotEqual => plain("!="),
        BinaryOp::Less => ordered("<", below(a, b)),
        BinaryOp::Greater => ordered(">", below(b, a)),
        BinaryOp::LessEqual => ordered("<=", below(b, a).not()),
        BinaryOp::GreaterEqual => ordered(">=", below(a, b).not()),
    }
}

/// A sum, difference or product, wrapped to its type, and what must hold for it to fit.
fn modular(
    op: BinaryOp,
    (operator, macro_name): (&str, &str),
    int: IntType,
    [a, b]: [&Expr; 2],
    checks: Checks,
) -> (Expr, Vec<Demand>) {
    let exact = Expr::binary(a, operator, b);
    let checked = checks == Checks::On && int.is_signed();
    let demands = if checked { fits_demand(op, int, macro_name, &exact, a, b) } else { None };
    (wrap(int, exact), demands.into_iter().collect())
}

/// A quotient or remainder, and what must hold for it.
fn quotient(op: BinaryOp, int: IntType, a: &Expr, b: &Expr, checks: Checks) -> (Expr, Vec<Demand>) {
    let unsigned = int == IntType::U32;
    let mut demands = Vec::new();
    let divisor = b.literal();
    if divisor.is_none_or(|value| value == 0) {
        demands.extend(demand(Expr::binary(b, "!=", &Expr::tight("0")), Fault::Div));
    }
    let minus_one = int.is_signed() && divisor.is_none_or(|value| value == -1);
    if checks == Checks::On && minus_one && op == BinaryOp::Divide {
        let min = Expr::binary(a, "!=", &Expr::number(int.min()));
        let other = Expr::binary(b, "!=", &Expr::number(-1));
        demands.extend(demand(Expr::binary(&min, "||", &other), Fault::Overflow));
    }
    let value = match op {
        BinaryOp::Divide if unsigned => Expr::call("divide_u32", &[a, b]),
        BinaryOp::Divide if minus_one => Expr::call("divide", &[a, b]),
        BinaryOp::Divide => Expr::binary(a, "/", b),
        _ if unsigned => {
            let quotient = Expr::call("divide_u32", &[a, b]);
            Expr::binary(a, "-", &Expr::binary(&quotient, "*", b))
        }
        _ if minus_one => Expr::call("remainder", &[a, b]),
        _ => Expr::binary(a, "%", b),
    };
    (wrap(int, value), demands)
}

/// A shift, and what must hold of its count, which is taken modulo the width.
fn shift(op: BinaryOp, (int, count): (IntType, &Kind), a: &Expr, b: &Expr, checks: Checks) -> (Expr, Vec<Demand>) {
    let bits = Expr::number(i128::from(int.bits()));
    let known = b.literal().is_some_and(|value| (0..i64::from(int.bits())).contains(&value));
    let mut demands = Vec::new();
    if checks == Checks::On && !known {
        let min = match count {
            Kind::Int(IntType::U8 | IntType::U16) => None,
            Kind::Int(_) | Kind::Bool | Kind::Pid(_) | Kind::Reference(_) | Kind::Tag | Kind::Length(_) => {
                Some(Expr::binary(b, ">=", &Expr::tight("0")))
            }
        };
        demands.extend(demand(Expr::and(min, Expr::binary(b, "<", &bits)), Fault::Overflow));
    }
    let mask = Expr::number(i128::from(int.bits() - 1));
    let count = if known { b.clone() } else { Expr::binary(b, "&", &mask) };
    let value = match op {
        BinaryOp::ShiftRight if int == IntType::U32 => Expr::call("right_u32", &[a, &count]),
        BinaryOp::ShiftRight => Expr::binary(a, ">>", &count),
        _ => wrap(int, Expr::binary(a, "<<", &count)),
    };
    (value, demands)
}

/// What must hold for a sum, difference or product to fit its type.
fn fits_demand(op: BinaryOp, int: IntType, macro_name: &str, exact: &Expr, a: &Expr, b: &Expr) -> Option<Demand> {
    if int != IntType::I32 {
        let min = Expr::binary(exact, ">=", &Expr::number(int.min()));
        let max = Expr::binary(exact, "<=", &Expr::number(int.max()));
        return demand(Expr::binary(&min, "&&", &max), Fault::Overflow);
    }
    // With a constant operand the condition is a comparison.
    let bound =
        |operator, other: &Expr, value| demand(Expr::binary(other, operator, &Expr::number(value)), Fault::Overflow);
    let (min, max) = (int.min(), int.max());
    match (op, a.literal().map(i128::from), b.literal().map(i128::from)) {
        (_, Some(_), Some(_)) => None,
        (BinaryOp::Add, None, Some(value)) | (BinaryOp::Add, Some(value), None) => {
            let other = if a.literal().is_some() { b } else { a };
            if value >= 0 { bound("<=", other, max - value) } else { bound(">=", other, min - value) }
        }
        (BinaryOp::Subtract, None, Some(value)) => {
            if value >= 0 {
                bound(">=", a, min + value)
            } else {
                bound("<=", a, max + value)
            }
        }
        (_, _, _) => demand(Expr::call(macro_name, &[a, b]), Fault::Overflow),
    }
}
