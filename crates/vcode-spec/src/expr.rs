//! Arithmetic on immediates in the specifications: 64-bit, wrapping; conditions are zero or one.

use std::collections::HashMap;

/// An expression over the operands of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A constant.
    Number(i64),
    /// An operand (`i`, or a register in a comparison) or a register by name.
    Name(String),
    /// `near`: the label of the row is certainly in reach of a short branch.
    Near,
    /// `has(NAME)`: the processor that code is written for has this feature.
    Has(String),
    /// Negation.
    Negate(Box<Expr>),
    /// Bit complement.
    Complement(Box<Expr>),
    /// Two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
}

/// The operators of [`Expr`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// Wrapping addition.
    Add,
    /// Wrapping subtraction.
    Subtract,
    /// Bitwise and; of conditions, both.
    And,
    /// Bitwise exclusive or.
    Xor,
    /// Arithmetic right shift by a constant.
    ShiftRight,
    /// Left shift by a constant.
    ShiftLeft,
    /// Equality.
    Equal,
    /// Inequality.
    NotEqual,
    /// Signed comparison.
    GreaterOrEqual,
}

/// Macros of a specification: name, parameter, body.
pub type Defs = HashMap<String, (String, Expr)>;

/// Parses `text`, expanding macros.
pub fn parse(text: &str, defs: &Defs) -> Result<Expr, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, defs };
    let expr = parser.binary(0)?;
    if parser.at != parser.tokens.len() {
        return Err(format!("`{}` is left over in expression `{text}`", parser.tokens[parser.at]));
    }
    Ok(expr)
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        at += 1;
        if byte.is_ascii_whitespace() {
            continue;
        }
        if byte.is_ascii_alphanumeric() {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
        } else if matches!(&text[start..].get(..2), Some(">>" | "<<" | "==" | "!=" | ">=")) {
            at += 1;
        } else if !b"()+-~&^".contains(&byte) {
            return Err(format!("unexpected `{}` in expression `{text}`", byte as char));
        }
        tokens.push(text[start..at].to_string());
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: Vec<String>,
    at: usize,
    defs: &'a Defs,
}

/// Binary operators from loosest to tightest. `&` binds as in arithmetic, so a condition is `near & (i == 0)` or,
/// because comparison binds tighter here than in C, plainly `near & i == 0`.
const LEVELS: &[&[(&str, BinaryOp)]] = &[
    &[("&", BinaryOp::And), ("^", BinaryOp::Xor)],
    &[("==", BinaryOp::Equal), ("!=", BinaryOp::NotEqual), (">=", BinaryOp::GreaterOrEqual)],
    &[(">>", BinaryOp::ShiftRight), ("<<", BinaryOp::ShiftLeft)],
    &[("+", BinaryOp::Add), ("-", BinaryOp::Subtract)],
];

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some((_, op)) = operators.iter().find(|(token, _)| *token == self.peek()) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Expr::Binary(*op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        let token = self.peek().to_string();
        self.at += 1;
        match token.as_str() {
            "-" => match self.unary()? {
                Expr::Number(number) => Ok(Expr::Number(number.wrapping_neg())),
                operand => Ok(Expr::Negate(Box::new(operand))),
            },
            "~" => Ok(Expr::Complement(Box::new(self.unary()?))),
            "(" => {
                let inner = self.binary(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            "near" => Ok(Expr::Near),
            "v128" | "v256" | "v512" => Ok(Expr::Has(token)),
            "has" => {
                self.expect("(")?;
                let name = self.peek().to_string();
                self.at += 1;
                self.expect(")")?;
                Ok(Expr::Has(name))
            }
            _ if token.starts_with(|c: char| c.is_ascii_digit()) => number(&token).map(Expr::Number),
            _ if token.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                if self.peek() != "(" {
                    return Ok(Expr::Name(token));
                }
                self.at += 1;
                let argument = self.binary(0)?;
                self.expect(")")?;
                let (parameter, body) =
                    self.defs.get(&token).ok_or_else(|| format!("no `def {token}` above this line"))?;
                Ok(body.replace(parameter, &argument))
            }
            _ => Err(format!("expected an operand, found `{token}`")),
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.peek() != token {
            return Err(format!("expected `{token}`, found `{}`", self.peek()));
        }
        self.at += 1;
        Ok(())
    }
}

/// A decimal or `0x` number.
pub fn number(text: &str) -> Result<i64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).map(|value| value as i64),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a number"))
}

impl Expr {
    /// This expression with `name` replaced by `value`.
    pub fn replace(&self, name: &str, value: &Expr) -> Expr {
        match self {
            Expr::Name(own) if own == name => value.clone(),
            Expr::Number(_) | Expr::Name(_) | Expr::Near | Expr::Has(_) => self.clone(),
            Expr::Negate(inner) => Expr::Negate(Box::new(inner.replace(name, value))),
            Expr::Complement(inner) => Expr::Complement(Box::new(inner.replace(name, value))),
            Expr::Binary(op, left, right) => {
                Expr::Binary(*op, Box::new(left.replace(name, value)), Box::new(right.replace(name, value)))
            }
        }
    }

    /// Whether it contains `near`.
    pub fn uses_near(&self) -> bool {
        match self {
            Expr::Near => true,
            Expr::Number(_) | Expr::Name(_) | Expr::Has(_) => false,
            Expr::Negate(inner) | Expr::Complement(inner) => inner.uses_near(),
            Expr::Binary(_, left, right) => left.uses_near() || right.uses_near(),
        }
    }

    /// The features that it tests.
    pub fn features(&self) -> Vec<&str> {
        match self {
            Expr::Has(name) => vec![name],
            Expr::Number(_) | Expr::Name(_) | Expr::Near => Vec::new(),
            Expr::Negate(inner) | Expr::Complement(inner) => inner.features(),
            Expr::Binary(_, left, right) => [left.features(), right.features()].concat(),
        }
    }

    /// The value, if it does not depend on an operand.
    pub fn constant(&self) -> Option<i64> {
        match self {
            Expr::Number(number) => Some(*number),
            Expr::Name(_) | Expr::Near | Expr::Has(_) => None,
            Expr::Negate(inner) => Some(inner.constant()?.wrapping_neg()),
            Expr::Complement(inner) => Some(!inner.constant()?),
            Expr::Binary(op, left, right) => {
                let (left, right) = (left.constant()?, right.constant()?);
                Some(match op {
                    BinaryOp::Add => left.wrapping_add(right),
                    BinaryOp::Subtract => left.wrapping_sub(right),
                    BinaryOp::And => left & right,
                    BinaryOp::Xor => left ^ right,
                    BinaryOp::ShiftRight => left.wrapping_shr(right as u32),
                    BinaryOp::ShiftLeft => left.wrapping_shl(right as u32),
                    BinaryOp::Equal => i64::from(left == right),
                    BinaryOp::NotEqual => i64::from(left != right),
                    BinaryOp::GreaterOrEqual => i64::from(left >= right),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_expand_and_constants_fold() {
        let mut defs = Defs::new();
        defs.insert("lo".into(), ("v".into(), parse("((v & 0xfff) ^ 0x800) - 0x800", &Defs::new()).unwrap()));
        assert_eq!(parse("lo(0xfff)", &defs).unwrap().constant(), Some(-1));
        assert_eq!(parse("near & i == 0", &defs).unwrap().constant(), None);
        assert_eq!(parse("1 + 2 - -3", &defs).unwrap().constant(), Some(6));
        assert!(parse("lo(1", &defs).is_err());
    }
}
