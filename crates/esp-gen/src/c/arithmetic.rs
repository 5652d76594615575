//! The C text of operators, with ESP's semantics where those of C's operators are undefined or differ.

use super::values::literal;
use super::writer::Writer;
use crate::layout::int_type;
use quaject_esp_ir::ir::*;

impl Writer<'_, '_> {
    /// A checked index in brackets. It is unsigned, as machines address by that without a sign extension.
    pub(crate) fn subscript(&self, value: Value) -> String {
        if self.constant_of(value).is_some() { self.value(value) } else { self.index(value) }
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, a: Value, at: Location) -> String {
        let text = self.value(a);
        let ty = self.value_type(a);
        let c = self.c_type(ty);
        match op {
            UnaryOp::Not => format!("!{text}"),
            UnaryOp::Complement => format!("({c})~{text}"),
            UnaryOp::Negate => match int_type(self.types(), ty) {
                Some(int) => {
                    if self.checked() && int.is_signed() {
                        let min = literal(self.types(), int.min(), ty);
                        self.check(&format!("{text} == {min}"), Fault::Overflow, at);
                    }
                    format!("({c})(0u - ({}){text})", unsigned(int))
                }
                None => format!("-{text}"),
            },
        }
    }

    /// The result of a comparison that is constant by the types of its operands: C compilers warn about these.
    fn known_comparison(&self, op: BinaryOp, a: Value, b: Value) -> Option<bool> {
        if a == b {
            return match op {
                BinaryOp::Equal | BinaryOp::LessEqual | BinaryOp::GreaterEqual => Some(true),
                BinaryOp::NotEqual | BinaryOp::Less | BinaryOp::Greater => Some(false),
                BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Multiply
                | BinaryOp::Divide
                | BinaryOp::Remainder
                | BinaryOp::ShiftLeft
                | BinaryOp::ShiftRight
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
                | BinaryOp::SaturatingAdd
                | BinaryOp::SaturatingSubtract
                | BinaryOp::SaturatingMultiply => None,
            };
        }
        let int = int_type(self.types(), self.value_type(a))?;
        let lowest = |value: Value| self.constant_of(value) == Some(int.min());
        let highest = |value: Value| self.constant_of(value) == Some(int.max());
        match op {
            BinaryOp::Less if lowest(b) || highest(a) => Some(false),
            BinaryOp::Greater if highest(b) || lowest(a) => Some(false),
            BinaryOp::LessEqual if highest(b) || lowest(a) => Some(true),
            BinaryOp::GreaterEqual if lowest(b) || highest(a) => Some(true),
            BinaryOp::Less
            | BinaryOp::Greater
            | BinaryOp::LessEqual
            | BinaryOp::GreaterEqual
            | BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSubtract
            | BinaryOp::SaturatingMultiply => None,
        }
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: Value, b: Value, ty: TypeId, at: Location) -> String {
        let (x, y) = (self.value(a), self.value(b));
        if let Some(known) = self.known_comparison(op, a, b) {
            return known.to_string();
        }
        match op {
            BinaryOp::Equal => format!("{x} == {y}"),
            BinaryOp::NotEqual => format!("{x} != {y}"),
            BinaryOp::Less => format!("{x} < {y}"),
            BinaryOp::LessEqual => format!("{x} <= {y}"),
            BinaryOp::Greater => format!("{x} > {y}"),
            BinaryOp::GreaterEqual => format!("{x} >= {y}"),
            BinaryOp::Add => self.modular("+", "add", [&x, &y], ty, at),
            BinaryOp::Subtract => self.modular("-", "subtract", [&x, &y], ty, at),
            BinaryOp::Multiply => self.modular("*", "multiply", [&x, &y], ty, at),
            BinaryOp::Divide | BinaryOp::Remainder => self.quotient(op, &x, (b, &y), ty, at),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => self.shift(op, &x, (b, &y), ty, at),
            BinaryOp::BitAnd => format!("({})({x} & {y})", self.c_type(ty)),
            BinaryOp::BitOr => format!("({})({x} | {y})", self.c_type(ty)),
            BinaryOp::BitXor => format!("({})({x} ^ {y})", self.c_type(ty)),
            BinaryOp::SaturatingAdd => format!("esp_saturating_add({x}, {y})"),
            BinaryOp::SaturatingSubtract => format!("esp_saturating_subtract({x}, {y})"),
            BinaryOp::SaturatingMultiply => format!("esp_saturating_multiply({x}, {y})"),
        }
    }

    fn int_type(&self, ty: TypeId) -> IntType {
        int_type(self.types(), ty).unwrap_or(IntType::U8)
    }

    /// A sum, difference or product, which wraps; checked for overflow before if the type is signed.
    fn modular(&mut self, sign: &str, name: &str, [x, y]: [&str; 2], ty: TypeId, at: Location) -> String {
        let int = self.int_type(ty);
        if self.checked() && int.is_signed() {
            let (min, max) = (literal(self.types(), int.min(), ty), literal(self.types(), int.max(), ty));
            self.check(&format!("esp_{name}_overflows({x}, {y}, {min}, {max})"), Fault::Overflow, at);
        }
        let u = unsigned(int);
        format!("({})(({u}){x} {sign} ({u}){y})", self.c_type(ty))
    }

    /// A quotient or remainder. Division of the least number by -1 is undefined in C.
    fn quotient(&mut self, op: BinaryOp, x: &str, (b, y): (Value, &str), ty: TypeId, at: Location) -> String {
        let (c, int, constant) = (self.c_type(ty), self.int_type(ty), self.constant_of(b));
        if constant.is_none_or(|constant| constant == 0) {
            let zero = literal(self.types(), 0, ty);
            self.check(&format!("{y} == {zero}"), Fault::Div, at);
        }
        let sign = if op == BinaryOp::Divide { "/" } else { "%" };
        if !int.is_signed() || constant.is_some_and(|constant| constant != -1) {
            return match constant {
                Some(0) => "0".to_string(),
                Some(_) | None => format!("({c})({x} {sign} {y})"),
            };
        }
        if self.checked() && op == BinaryOp::Divide {
            let min = literal(self.types(), int.min(), ty);
            self.check(&format!("{y} == -1 && {x} == {min}"), Fault::Overflow, at);
        }
        let u = unsigned(int);
        let special = if op == BinaryOp::Divide { format!("({c})(0u - ({u}){x})") } else { "0".to_string() };
        format!("{y} == -1 ? {special} : ({c})({x} {sign} {y})")
    }

    /// A shift. The count is taken modulo the width.
    fn shift(&mut self, op: BinaryOp, x: &str, (b, y): (Value, &str), ty: TypeId, at: Location) -> String {
        let (c, int, constant) = (self.c_type(ty), self.int_type(ty), self.constant_of(b));
        let bits = int.bits();
        if self.checked() && constant.is_none_or(|constant| !(0..i128::from(bits)).contains(&constant)) {
            let bad = format!("{} >= {bits}u", self.index(b));
            self.check(&bad, Fault::Overflow, at);
        }
        let count = match constant {
            Some(constant) => constant.rem_euclid(i128::from(bits)).to_string(),
            None => format!("((uint32_t){y} & {}u)", bits - 1),
        };
        if op == BinaryOp::ShiftLeft {
            format!("({c})(({}){x} << {count})", unsigned(int))
        } else {
            format!("({c})({x} >> {count})")
        }
    }
}

fn unsigned(int: IntType) -> &'static str {
    if int.bits() == 64 { "uint64_t" } else { "uint32_t" }
}
