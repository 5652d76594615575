//! Filters as text, in the manner of DPF (Engler, Kaashoek 1996): tests of numbers at offsets, combined. The printed
//! form of a filter can be read back.
//!
//! ```text
//! expression  alternative { "||" alternative }
//! alternative factor { "&&" factor }
//! factor      "!" factor | "(" expression ")" | "always" | "never" | test
//! test        subject [ "&" number ] relation | field "is there"
//! relation    "==" number | "!=" number | "in" number "..=" number | "not in" number "..=" number
//! subject     "length" | field
//! field       "[" { term "+" } number [ ":" width ] "]"
//! term        "(" "(" field "&" number ")" ( "<<" | ">>" ) number ")"
//! ```

use super::{Base, Expression, Field, Filter, Sense, Subject, Term, Test};
use crate::error::Error;

/// How deep parentheses may nest.
const MAX_DEPTH: usize = 64;

/// Reads a filter.
///
/// # Errors
/// [`Error::Text`] where it is not one, and what [`Expression::filter`] refuses.
pub fn parse(text: &str) -> Result<Filter, Error> {
    let mut reader = Parser { text, at: 0, depth: 0 };
    let expression = reader.expression()?;
    reader.blank();
    if reader.at < text.len() {
        return Err(reader.wrong("the end, `&&` or `||`"));
    }
    expression.filter()
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn wrong(&self, expected: &str) -> Error {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let found = match self.rest().split_whitespace().next() {
            Some(word) => format!("`{}`", word.chars().take(20).collect::<String>()),
            None => "the end".to_owned(),
        };
        Error::Text { line, column, why: format!("expected {expected}, found {found}") }
    }

    /// Consumes a word or sign if it is next.
    fn take(&mut self, word: &str) -> bool {
        self.blank();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), Error> {
        if self.take(word) { Ok(()) } else { Err(self.wrong(&format!("`{word}`"))) }
    }

    fn number(&mut self) -> Result<u32, Error> {
        self.blank();
        let rest = self.rest();
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let word = &rest[..length];
        let number = match word.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => word.parse(),
        };
        let number = number.map_err(|_| self.wrong("a number below 2^32"))?;
        self.at += length;
        Ok(number)
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong("less nesting"));
        }
        let mut parts = vec![self.alternative()?];
        while self.take("||") {
            parts.push(self.alternative()?);
        }
        self.depth -= 1;
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn alternative(&mut self) -> Result<Expression, Error> {
        let mut parts = vec![self.factor()?];
        while self.take("&&") {
            parts.push(self.factor()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn factor(&mut self) -> Result<Expression, Error> {
        if self.take("!") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.wrong("less nesting"));
            }
            let inner = self.factor()?;
            self.depth -= 1;
            return Ok(!inner);
        }
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("always") {
            return Ok(Expression::All(Vec::new()));
        }
        if self.take("never") {
            return Ok(Expression::Any(Vec::new()));
        }
        self.test().map(Expression::Test)
    }

    fn test(&mut self) -> Result<Test, Error> {
        let (subject, full) = if self.take("length") {
            (Subject::Length, u32::MAX)
        } else {
            let field = self.field()?;
            if self.take("is there") {
                return Ok(Test::there(field));
            }
            let full = field.full();
            (Subject::Field(field), full)
        };
        // `&&` after a subject is no mask.
        let masked = !self.rest().trim_start().starts_with("&&") && self.take("&");
        let mask = if masked { self.number()? & full } else { full };
        let (sense, one) = if self.take("==") {
            (Sense::Inside, true)
        } else if self.take("!=") {
            (Sense::Outside, true)
        } else if self.take("in") {
            (Sense::Inside, false)
        } else if self.take("not in") {
            (Sense::Outside, false)
        } else {
            return Err(self.wrong("`==`, `!=`, `in` or `not in`"));
        };
        let low = self.number()?;
        let high = if one {
            low
        } else {
            self.expect("..=")?;
            self.number()?
        };
        Ok(Test { subject, mask, low, high, sense })
    }

    fn field(&mut self) -> Result<Field, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong("less nesting"));
        }
        self.expect("[")?;
        let mut terms = Vec::new();
        while self.take("(") {
            self.expect("(")?;
            let field = self.field()?;
            self.expect("&")?;
            let mask = self.number()?;
            self.expect(")")?;
            let right = self.take(">>");
            if !right {
                self.expect("<<")?;
            }
            let by = self.number()?;
            let by = i8::try_from(by).ok().filter(|by| *by < 32).ok_or_else(|| self.wrong("less than 32"))?;
            self.expect(")")?;
            self.expect("+")?;
            terms.push(Term { field, mask, shift: if right { -by } else { by } });
        }
        let offset = self.number()?;
        let width = if self.take(":") { self.number()? } else { 1 };
        self.expect("]")?;
        self.depth -= 1;
        let width = u8::try_from(width).ok().filter(|width| (1..=4).contains(width)).ok_or(Error::Width(width))?;
        Ok(Field { base: Base::sum(terms), offset, width })
    }
}
