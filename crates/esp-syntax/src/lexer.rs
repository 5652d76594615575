//! Cuts source text into tokens; every byte belongs to exactly one, and the longest token wins.
//! Reports malformed tokens (E0101, E0102) and continues after them; knows nothing of the grammar.

use crate::diagnostics::{Code, Diagnostic};
use crate::literal;
use crate::span::{FileId, Span};
use crate::tree::SyntaxKind;

/// A token: its kind and where it starts. It ends where the next one starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: SyntaxKind,
    /// Its first byte.
    pub start: u32,
}

/// The tokens of `text`, an `EndOfFile` last, and what is wrong with them.
pub fn tokenize(file: FileId, text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { file, text, bytes: text.as_bytes(), position: 0, diagnostics: Vec::new() };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    while lexer.position < text.len() {
        let start = lexer.position as u32;
        let kind = lexer.token();
        tokens.push(Token { kind, start });
    }
    tokens.push(Token { kind: SyntaxKind::EndOfFile, start: text.len() as u32 });
    (tokens, lexer.diagnostics)
}

/// At most so many malformed tokens are reported; what follows in such a file is noise.
const MAX_DIAGNOSTICS: usize = 100;

struct Lexer<'t> {
    file: FileId,
    text: &'t str,
    bytes: &'t [u8],
    position: usize,
    diagnostics: Vec<Diagnostic>,
}

/// Punctuation, longest first among those that share a beginning.
const PUNCTUATION: &[(&str, SyntaxKind)] = &[
    ("<<=", SyntaxKind::LessLessEqual),
    ("<=>", SyntaxKind::DoubleArrow),
    ("<<", SyntaxKind::LessLess),
    ("<=", SyntaxKind::LessEqual),
    ("<", SyntaxKind::Less),
    (">>=", SyntaxKind::GreaterGreaterEqual),
    (">>", SyntaxKind::GreaterGreater),
    (">=", SyntaxKind::GreaterEqual),
    (">", SyntaxKind::Greater),
    ("==", SyntaxKind::EqualEqual),
    ("=>", SyntaxKind::FatArrow),
    ("=", SyntaxKind::Equal),
    ("!=", SyntaxKind::BangEqual),
    ("!", SyntaxKind::Bang),
    ("&&", SyntaxKind::AndAnd),
    ("&=", SyntaxKind::AmpersandEqual),
    ("&", SyntaxKind::Ampersand),
    ("||", SyntaxKind::PipePipe),
    ("|=", SyntaxKind::PipeEqual),
    ("|>", SyntaxKind::TagArrow),
    ("|", SyntaxKind::Pipe),
    ("+=", SyntaxKind::PlusEqual),
    ("+", SyntaxKind::Plus),
    ("-=", SyntaxKind::MinusEqual),
    ("->", SyntaxKind::ThinArrow),
    ("-", SyntaxKind::Minus),
    ("*=", SyntaxKind::StarEqual),
    ("*", SyntaxKind::Star),
    ("/=", SyntaxKind::SlashEqual),
    ("/", SyntaxKind::Slash),
    ("%=", SyntaxKind::PercentEqual),
    ("%", SyntaxKind::Percent),
    ("^=", SyntaxKind::CaretEqual),
    ("^", SyntaxKind::Caret),
    ("..", SyntaxKind::DotDot),
    (".", SyntaxKind::Dot),
    ("(", SyntaxKind::LeftParen),
    (")", SyntaxKind::RightParen),
    ("{", SyntaxKind::LeftBrace),
    ("}", SyntaxKind::RightBrace),
    ("[", SyntaxKind::LeftBracket),
    ("]", SyntaxKind::RightBracket),
    (",", SyntaxKind::Comma),
    (";", SyntaxKind::Semicolon),
    (":", SyntaxKind::Colon),
    ("#", SyntaxKind::Hash),
    ("$", SyntaxKind::Dollar),
    ("@", SyntaxKind::At),
    ("?", SyntaxKind::Question),
    ("~", SyntaxKind::Tilde),
];

/// Where the punctuation that begins with an ASCII character starts in [`PUNCTUATION`]; `u8::MAX` for none.
static FIRST_PUNCTUATION: [u8; 128] = first_punctuation();

const fn first_punctuation() -> [u8; 128] {
    let mut table = [u8::MAX; 128];
    let mut index = PUNCTUATION.len();
    while index > 0 {
        index -= 1;
        table[PUNCTUATION[index].0.as_bytes()[0] as usize] = index as u8;
    }
    table
}

impl Lexer<'_> {
    fn token(&mut self) -> SyntaxKind {
        let start = self.position;
        match self.bytes[start] {
            b' ' | b'\t' | b'\r' | b'\n' => self.whitespace(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(),
            b'"' => self.quoted(b'"', SyntaxKind::String),
            b'\'' => self.quoted(b'\'', SyntaxKind::Char),
            b'/' if self.bytes.get(start + 1) == Some(&b'/') => {
                self.position += memchr_newline(&self.bytes[start..]);
                SyntaxKind::LineComment
            }
            b'/' if self.bytes.get(start + 1) == Some(&b'*') => self.block_comment(),
            byte => self.punctuation(byte).unwrap_or_else(|| self.foreign()),
        }
    }

    fn whitespace(&mut self) -> SyntaxKind {
        let rest = &self.bytes[self.position..];
        self.position += rest.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(rest.len());
        SyntaxKind::Whitespace
    }

    fn word(&mut self) -> SyntaxKind {
        let start = self.position;
        self.skip_word_bytes();
        if self.next_char().is_some_and(|c| !c.is_ascii() && c.is_alphanumeric()) {
            return self.foreign_name(start);
        }
        SyntaxKind::from_keyword(&self.text[start..self.position]).unwrap_or(SyntaxKind::Ident)
    }

    fn skip_word_bytes(&mut self) {
        let rest = &self.bytes[self.position..];
        self.position += rest.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(rest.len());
    }

    fn next_char(&self) -> Option<char> {
        if self.bytes.get(self.position)?.is_ascii() {
            return Some(char::from(self.bytes[self.position]));
        }
        self.text[self.position..].chars().next()
    }

    /// A name with letters that names cannot have: still one name, so that one mistake is one message.
    fn foreign_name(&mut self, start: usize) -> SyntaxKind {
        let bad = self.next_char().expect("the caller saw a foreign letter");
        while let Some(c) = self.next_char()
            && (c.is_alphanumeric() || c == '_')
        {
            self.position += c.len_utf8();
        }
        self.report(
            Diagnostic::new(Code::E0101, self.span(start), format!("`{bad}` cannot be part of a name"))
                .help("names consist of the letters `a` to `z`, `A` to `Z`, digits and `_`"),
        );
        SyntaxKind::Ident
    }

    fn number(&mut self) -> SyntaxKind {
        let start = self.position;
        self.skip_word_bytes();
        if let Err(fault) = literal::integer(&self.text[start..self.position]) {
            self.report(Diagnostic::new(Code::E0102, self.span(start), fault.message).help(fault.help));
        }
        SyntaxKind::Int
    }

    /// A string or character: to the closing quote, or if there is none to the end of the line.
    fn quoted(&mut self, quote: u8, kind: SyntaxKind) -> SyntaxKind {
        let start = self.position;
        let mut at = start + 1;
        let closed = loop {
            match self.bytes.get(at) {
                None | Some(b'\n') => break false,
                Some(b'\\') if self.bytes.get(at + 1).is_some_and(|b| *b != b'\n') => at += 2,
                Some(b) if *b == quote => break true,
                Some(_) => at += 1,
            }
        };
        // An escape may have jumped into the middle of a character of several bytes.
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        if !closed {
            return self.unclosed(start, at, kind);
        }
        self.position = at + 1;
        let content = &self.text[start + 1..at];
        let mut faults = Vec::new();
        let bytes = literal::unescape(content, |range, fault| {
            if faults.len() < MAX_DIAGNOSTICS {
                faults.push((range, fault));
            }
        });
        let whole_is_fine = faults.is_empty();
        for (range, fault) in faults {
            let first = (start + 1 + range.start) as u32;
            let span = Span::new(self.file, first, first + range.len() as u32);
            self.report(Diagnostic::new(Code::E0101, span, fault.message).help(fault.help));
        }
        if kind == SyntaxKind::Char && whole_is_fine && bytes.len() != 1 {
            let (message, help) = match bytes.len() {
                0 => ("this character is empty".to_string(), "write the character between the quotes, as in `'a'`"),
                _ if content.chars().count() == 1 => (
                    format!("the character `{content}` takes {} bytes, a character constant is one byte", bytes.len()),
                    "write it as a string",
                ),
                _ => ("a character constant holds one character".to_string(), "write a string with `\"`"),
            };
            self.report(Diagnostic::new(Code::E0101, self.span(start), message).help(help));
        }
        kind
    }

    fn unclosed(&mut self, start: usize, line_end: usize, kind: SyntaxKind) -> SyntaxKind {
        let line = self.text[start..line_end].trim_end();
        if kind == SyntaxKind::Char {
            // Probably a lone quote: consume the longest possible character constant and continue after it.
            let length = literal::first_character(&line[1..]);
            self.position = start + 1 + length;
            self.report(
                Diagnostic::new(Code::E0101, self.span(start), "this character constant is not closed")
                    .help("write a second `'` behind the character"),
            );
        } else {
            // Leave a `;` or closing signs at the end of the line to the grammar: most likely they were meant so.
            let kept = line.trim_end_matches([';', ')', '}', ' ', ',', ']']);
            self.position = start + kept.len().max(1);
            self.report(
                Diagnostic::new(Code::E0101, self.span(start), "this string is not closed on its line")
                    .help("write a second `\"` where the string ends, and `\\n` for a line break inside it"),
            );
        }
        kind
    }

    fn block_comment(&mut self) -> SyntaxKind {
        let start = self.position;
        match self.text[start + 2..].find("*/") {
            Some(length) => self.position = start + 2 + length + 2,
            None => {
                self.position = self.text.len();
                let span = Span::new(self.file, start as u32, start as u32 + 2);
                self.report(
                    Diagnostic::new(Code::E0101, span, "this comment is never closed")
                        .help("write `*/` where it ends; comments do not nest"),
                );
            }
        }
        SyntaxKind::BlockComment
    }

    fn punctuation(&mut self, byte: u8) -> Option<SyntaxKind> {
        let first = *FIRST_PUNCTUATION.get(usize::from(byte))?;
        let rest = &self.bytes[self.position..];
        let (text, kind) =
            PUNCTUATION.get(usize::from(first)..)?.iter().find(|(text, _)| rest.starts_with(text.as_bytes()))?;
        self.position += text.len();
        Some(*kind)
    }

    /// Characters that begin no token.
    fn foreign(&mut self) -> SyntaxKind {
        let start = self.position;
        let first = self.next_char().expect("the caller stands before the end of the text");
        if first == '\u{feff}' && start == 0 {
            self.position += first.len_utf8();
            return SyntaxKind::Whitespace;
        }
        if first.is_alphabetic() {
            return self.foreign_name(start);
        }
        // A run of characters outside the alphabet is one token with one diagnostic.
        while let Some(c) = self.next_char()
            && self.is_foreign(c)
            && (self.position == start || !c.is_alphabetic())
        {
            self.position += c.len_utf8();
        }
        let shown: String = self.text[start..self.position].chars().take(8).flat_map(char::escape_debug).collect();
        let (message, help) = if first.is_whitespace() {
            (format!("`{}` is not white space here", first.escape_unicode()), "write a plain blank".to_string())
        } else {
            let help = match first {
                '\u{2018}' | '\u{2019}' => "write `'`",
                '\u{201c}' | '\u{201d}' => "write `\"`",
                '\u{2013}' | '\u{2212}' => "write `-`",
                '`' => "write `\"` around strings and `'` around characters",
                _ => "outside comments and strings a program is written in ASCII",
            };
            let shown = if first == '`' { "a backtick".to_string() } else { format!("`{shown}`") };
            (format!("{shown} has no meaning in ESP"), help.to_string())
        };
        self.report(Diagnostic::new(Code::E0101, self.span(start), message).help(help));
        SyntaxKind::ErrorToken
    }

    fn is_foreign(&self, c: char) -> bool {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => {
                FIRST_PUNCTUATION[usize::from(byte)] == u8::MAX
                    && !byte.is_ascii_alphanumeric()
                    && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'_' | b'"' | b'\'')
            }
            Ok(_) | Err(_) => true,
        }
    }

    fn span(&self, start: usize) -> Span {
        Span::new(self.file, start as u32, self.position as u32)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }
}

fn memchr_newline(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len())
}
