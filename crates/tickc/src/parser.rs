//! The state of a translation: a cursor over the tokens, the scopes that are open, the changes to the text, and the
//! diagnostics. Static code is changed only where an edit says so. Knows no grammar.

use crate::Options;
use crate::diagnostics::Code;
use crate::lex::{Lines, Token, TokenKind};
use crate::report::Remark;
use crate::scope::Scopes;
use quaject_diagnostic::Diagnostic;
use quaject_diagnostic::span::{FileId, Span};

/// Bytes that are replaced by a text; an insertion replaces none.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) text: String,
}

/// The limit on nested brackets, blocks and expressions, which recursion follows.
const MAX_DEPTH: usize = 250;

pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) tokens: Vec<Token>,
    pub(crate) lines: Lines,
    /// The number of the next token.
    pub(crate) at: usize,
    pub(crate) scopes: Scopes,
    pub(crate) edits: Vec<Edit>,
    pub(crate) diagnostics: Vec<Diagnostic<Code>>,
    pub(crate) remarks: Vec<Remark>,
    /// The number of the next generated name.
    pub(crate) next_name: usize,
    pub(crate) depth: usize,
    /// The first token of the declaration outside of functions that is read.
    pub(crate) declaration_start: usize,
    /// Functions that ticks need, each in front of the byte at which the declaration with the tick begins.
    pub(crate) preludes: Vec<Edit>,
    pub(crate) options: Options,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str, tokens: Vec<Token>, lines: Lines, options: Options) -> Parser<'t> {
        Parser {
            text,
            tokens,
            lines,
            at: 0,
            scopes: Scopes::new(),
            edits: Vec::new(),
            diagnostics: Vec::new(),
            remarks: Vec::new(),
            next_name: 0,
            depth: 0,
            declaration_start: 0,
            preludes: Vec::new(),
            options,
        }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The text of the token that is `ahead` tokens after the next one; empty past the end.
    pub(crate) fn peek(&self, ahead: usize) -> &'t str {
        self.token_text(self.at + ahead)
    }

    pub(crate) fn token_text(&self, index: usize) -> &'t str {
        self.tokens.get(index).map_or("", |token| &self.text[token.start as usize..token.end as usize])
    }

    pub(crate) fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| token.kind)
    }

    pub(crate) fn is_name(&self, ahead: usize) -> bool {
        self.kind(ahead) == Some(TokenKind::Name)
    }

    /// Whether the next token is this word or sign. Literals are never equal to one, because they have quotes or
    /// digits.
    pub(crate) fn is_next(&self, text: &str) -> bool {
        self.peek(0) == text
    }

    /// Passes the next token if it is this one.
    pub(crate) fn accept(&mut self, text: &str) -> bool {
        let is_next = self.is_next(text);
        self.at += usize::from(is_next);
        is_next
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    /// Passes an opening bracket with everything up to the one that closes it.
    pub(crate) fn skip_group(&mut self) {
        let mut open = 0usize;
        while !self.is_at_end() {
            match self.peek(0) {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                _ => {}
            }
            self.advance();
            if open == 0 {
                return;
            }
        }
    }

    /// The byte at which the token with this number begins; the end of the text past the last one.
    pub(crate) fn start_of(&self, index: usize) -> u32 {
        self.tokens.get(index).map_or(self.text.len() as u32, |token| token.start)
    }

    /// The byte after the token in front of this one.
    pub(crate) fn end_before(&self, index: usize) -> u32 {
        index.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |token| token.end)
    }

    pub(crate) fn replace_token(&mut self, index: usize, text: impl Into<String>) {
        let Token { start, end, .. } = self.tokens[index];
        self.edits.push(Edit { start, end, text: text.into() });
    }

    pub(crate) fn insert_at(&mut self, offset: u32, text: impl Into<String>) {
        self.edits.push(Edit { start: offset, end: offset, text: text.into() });
    }

    /// The span of the tokens from one to in front of another.
    pub(crate) fn span(&self, from: usize, to: usize) -> Span {
        let end = if to > from { self.end_before(to) } else { self.start_of(from) };
        Span::new(FileId(0), self.start_of(from), end.max(self.start_of(from)))
    }

    /// Whether the next token comes from a file of the user, where the special functions have their meaning.
    pub(crate) fn is_user_code(&self) -> bool {
        !self.lines.locate(self.start_of(self.at)).is_system
    }

    pub(crate) fn report(&mut self, code: Code, from: usize, to: usize, message: impl Into<String>, help: &str) {
        let diagnostic = Diagnostic::new(code, self.span(from, to), message);
        self.diagnostics.push(diagnostic.help(help));
    }

    /// Enters a nested construct; reports and refuses too deep nesting. [`Parser::leave`] ends it.
    pub(crate) fn enter(&mut self) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.report_depth(MAX_DEPTH);
            self.skip_group();
            self.depth -= 1;
            return false;
        }
        true
    }

    /// Reports, once, that constructs are nested deeper than so many levels.
    pub(crate) fn report_depth(&mut self, levels: usize) {
        if !self.diagnostics.iter().any(|own| own.code == Code::TooDeep) {
            let message = format!("constructs are nested deeper than {levels} levels");
            self.report(Code::TooDeep, self.at, self.at + 1, message, "name a part and use the name");
        }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The tokens from one to in front of another as text on one line, with the edits in them and those given.
    pub(crate) fn rewritten(&self, from: usize, to: usize, extra: &[Edit]) -> String {
        let (first, last) = (self.start_of(from), self.end_before(to));
        let inside = |edit: &&Edit| edit.start >= first && edit.end <= last && from < to;
        let mut edits: Vec<&Edit> = self.edits.iter().filter(inside).chain(extra.iter().filter(inside)).collect();
        edits.sort_by_key(|edit| edit.start);
        let mut result = String::new();
        let mut edits = edits.into_iter().peekable();
        let mut covered = 0;
        for token in &self.tokens[from..to.min(self.tokens.len())] {
            while let Some(edit) = edits.next_if(|edit| edit.start <= token.start) {
                // An edit within a wider one is part of what that replaces.
                if edit.start >= covered {
                    result.push(' ');
                    result.push_str(&edit.text);
                    covered = edit.end.max(covered);
                }
            }
            if token.start >= covered {
                result.push(' ');
                result.push_str(&self.text[token.start as usize..token.end as usize]);
            }
        }
        for edit in edits {
            result.push(' ');
            result.push_str(&edit.text);
        }
        result.trim_start().to_owned()
    }

    /// The whole text with all edits.
    pub(crate) fn output(&mut self) -> String {
        // At one byte, a prelude is in front of what replaces the first token.
        let mut edits = std::mem::take(&mut self.preludes);
        edits.append(&mut self.edits);
        edits.sort_by_key(|edit| edit.start);
        let mut result = String::with_capacity(self.text.len());
        let mut copied = 0;
        for edit in &edits {
            // An edit within a wider one is part of what that replaces.
            if edit.start >= copied {
                result.push_str(&self.text[copied as usize..edit.start as usize]);
                result.push_str(&edit.text);
                copied = edit.end;
            }
        }
        result.push_str(&self.text[copied as usize..]);
        result
    }
}
