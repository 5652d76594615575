//! Reading of single tokens: words, signs, numbers, names and locations.

use super::{ReadError, Reader, Result};
use crate::ir::{InstanceId, Location};
use crate::lexer::Token;
use std::collections::HashMap;

impl Reader<'_> {
    pub(super) fn fail<T>(&self, expected: &str) -> Result<T> {
        let (line, column) = self.lexer.position();
        Err(ReadError { line, column, expected: expected.to_string(), found: self.token.to_string() })
    }

    pub(super) fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        std::mem::replace(&mut self.token, next)
    }

    pub(super) fn is(&self, sign: &'static str) -> bool {
        self.token == Token::Sign(sign)
    }

    pub(super) fn eat(&mut self, sign: &'static str) -> bool {
        let is = self.is(sign);
        if is {
            self.advance();
        }
        is
    }

    pub(super) fn sign(&mut self, sign: &'static str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(&format!("`{sign}`")) }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(other) if other == word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.advance();
        }
        is
    }

    pub(super) fn keyword(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { self.fail(&format!("`{word}`")) }
    }

    pub(super) fn word(&mut self, expected: &str) -> Result<String> {
        match self.advance() {
            Token::Word(word) => Ok(word),
            other @ (Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End) => {
                self.token = other;
                self.fail(expected)
            }
        }
    }

    pub(super) fn number<T: TryFrom<i128>>(&mut self, expected: &str) -> Result<T> {
        match self.token {
            Token::Int(value) => match T::try_from(value) {
                Ok(value) => {
                    self.advance();
                    Ok(value)
                }
                Err(_) => self.fail(expected),
            },
            Token::Word(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => self.fail(expected),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        match &mut self.token {
            Token::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                self.advance();
                Ok(bytes)
            }
            Token::Word(_) | Token::Int(_) | Token::Sign(_) | Token::Bad(_) | Token::End => {
                self.fail("a string in double quotes")
            }
        }
    }

    pub(super) fn string(&mut self) -> Result<String> {
        match String::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text),
            Err(_) => self.fail("UTF-8 in the string before"),
        }
    }

    /// `x, x, .. close`
    pub(super) fn list<T>(
        &mut self,
        close: &'static str,
        mut each: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(each(self)?);
            if !self.eat(",") {
                self.sign(close)?;
                break;
            }
        }
        Ok(items)
    }

    pub(super) fn name<T: Copy>(&mut self, names: fn(&Self) -> &HashMap<String, T>, what: &str) -> Result<T> {
        let known = match &self.token {
            Token::Word(word) => names(self).get(word).copied(),
            Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => None,
        };
        match known {
            Some(id) => {
                self.advance();
                Ok(id)
            }
            None => self.fail(what),
        }
    }

    /// A letter or word directly followed by a number: `v3`, `block0`.
    pub(super) fn numbered(&mut self, prefix: &str) -> Result<u32> {
        let number = match &self.token {
            Token::Word(word) => word.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok()),
            Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => None,
        };
        match number {
            Some(number) if (number as usize) < self.max_ids => {
                self.advance();
                Ok(number)
            }
            Some(_) | None => self.fail(&format!("`{prefix}` and a number")),
        }
    }

    pub(super) fn is_numbered(&self, prefix: &str) -> bool {
        match &self.token {
            Token::Word(word) => word.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok()),
            Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => false,
        }
    }

    pub(super) fn location(&mut self) -> Result<Location> {
        if !self.eat("@") {
            return Ok(Location::default());
        }
        let file = self.number("a file number")?;
        self.sign(":")?;
        let line = self.number("a line")?;
        self.sign(":")?;
        let column = self.number("a column")?;
        let mut member = None;
        if self.eat("#") {
            let number: u32 = self.number("an instance")?;
            if number == u32::MAX {
                return self.fail("the number of an instance before");
            }
            member = Some(InstanceId::new(number));
        }
        Ok(Location { file, line, column, member })
    }
}
