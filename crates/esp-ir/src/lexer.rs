//! The lexer of the text form: words, numbers, strings and signs.

use std::fmt;

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Word(String),
    Int(i128),
    Bytes(Vec<u8>),
    Sign(&'static str),
    /// Any other character.
    Bad(String),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Int(value) => write!(f, "`{value}`"),
            Token::Bytes(_) => write!(f, "a string"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::Bad(text) => write!(f, "`{text}`"),
            Token::End => write!(f, "the end"),
        }
    }
}

const SIGNS: [&str; 21] =
    ["->", "=>", "==", "<=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "=", "@", "#", "^", "*", "|", "-", "/"];

const MAX_DEPTH: u32 = 200;

#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    /// Characters of the line before `rest`.
    before: u32,
    /// Where the last token began.
    start: (u32, u32),
    depth: u32,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { rest: text, line: 1, before: 0, start: (1, 1), depth: 0 }
    }

    /// Line and column of the last token.
    pub(crate) fn position(&self) -> (u32, u32) {
        self.start
    }

    /// Column of the last token.
    pub(crate) fn column(&self) -> u32 {
        self.start.1
    }

    /// One level deeper; false when that is too deep.
    pub(crate) fn enter(&mut self) -> bool {
        self.depth += 1;
        self.depth <= MAX_DEPTH
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.before = 0;
            } else {
                self.before += 1;
            }
        }
        taken
    }

    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if !self.rest.starts_with(';') {
                return;
            }
            let line = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take(line);
        }
    }

    pub(crate) fn next(&mut self) -> Token {
        self.skip();
        self.start = (self.line, self.before + 1);
        let Some(first) = self.rest.chars().next() else { return Token::End };
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        if first.is_ascii_alphabetic() || first == '_' {
            let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
            return Token::Word(self.take(end).to_string());
        }
        let sign = usize::from(first == '-');
        let end = sign + digits(&self.rest[sign..]);
        if end > sign {
            let text = self.take(end);
            return text.parse().map_or_else(|_| Token::Bad(text.to_string()), Token::Int);
        }
        if first == '"' {
            return self.string();
        }
        match SIGNS.into_iter().find(|sign| self.rest.starts_with(sign)) {
            Some(sign) => {
                self.take(sign.len());
                Token::Sign(sign)
            }
            None => Token::Bad(self.take(first.len_utf8()).to_string()),
        }
    }

    fn string(&mut self) -> Token {
        let mut bytes = Vec::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.take(at + 1);
                    return Token::Bytes(bytes);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => bytes.push(b'\n'),
                    Some((_, 'r')) => bytes.push(b'\r'),
                    Some((_, 't')) => bytes.push(b'\t'),
                    Some((_, '0')) => bytes.push(0),
                    Some((_, c @ ('\\' | '"' | '\''))) => bytes.push(c as u8),
                    Some((at, 'x')) => {
                        let digits = self.rest.get(at + 1..at + 3).unwrap_or("");
                        let Ok(byte) = u8::from_str_radix(digits, 16) else { break };
                        bytes.push(byte);
                        chars.nth(1);
                    }
                    Some(_) | None => break,
                },
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        let end = self.rest.len().min(1);
        Token::Bad(self.take(end).to_string())
    }
}
