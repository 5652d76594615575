//! The parser: recursive descent over tokens, one function per rule of the grammar (reference, section 2).
//! It never fails: it produces events, from which `build` makes the lossless tree, and diagnostics. The events follow
//! the design of rust-analyzer's parser.
//! Knows the grammar and its usual mistakes; knows nothing of names and types.
//!
//! ```text
//! text -> lexer -> tokens -> parser -> events -> build -> lossless tree -> lower -> ast::File
//! ```

mod build;
mod expressions;
mod fast_paths;
mod items;
mod models;
mod patterns;
mod statements;
mod types;

use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::foreign;
use crate::lexer::{self, Token};
use crate::literal::shorten;
use crate::lower;
use crate::span::{FileId, Span};
use crate::tree::{Green, SyntaxKind, SyntaxNode};

/// The maximum nesting of blocks, expressions, patterns and types, and maximum length of a chain of operators: the tree
/// is at most twice as deep, which later stages may rely on when they recurse.
pub const MAX_DEPTH: u32 = 256;

/// The maximum number of syntax errors of a file; the rest of the file is not parsed.
const MAX_DIAGNOSTICS: usize = 100;

/// The parse of one file: its tree and its diagnostics.
#[derive(Clone, Debug)]
pub struct Parse {
    file: FileId,
    green: Green,
    diagnostics: Vec<Diagnostic>,
}

impl Parse {
    /// The lossless tree.
    pub fn tree(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.green.clone())
    }

    /// The abstract syntax. What could not be parsed is an `Error` node, or missing.
    pub fn ast(&self) -> ast::File {
        lower::file(self.file, &self.green)
    }

    /// The diagnostics, in order of text.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The diagnostics, by value.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

/// Parses a source file, whatever it holds.
///
/// # Panics
/// With 4 GiB of text or more; callers limit the size of files.
pub fn parse(file: FileId, text: &str) -> Parse {
    run(file, text, items::source_file)
}

/// Parses a `.fp` file, which holds fast paths and imports only.
///
/// # Panics
/// With 4 GiB of text or more; callers limit the size of files.
pub fn parse_fast_paths(file: FileId, text: &str) -> Parse {
    run(file, text, items::fast_path_file)
}

fn run(file: FileId, text: &str, rule: fn(&mut Parser)) -> Parse {
    assert!(u32::try_from(text.len()).is_ok(), "a source file is smaller than 4 GiB");
    let (tokens, mut diagnostics) = lexer::tokenize(file, text);
    let mut parser = Parser::new(file, text, &tokens);
    rule(&mut parser);
    let Parser { events, diagnostics: found, .. } = parser;
    diagnostics.extend(found);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    Parse { file, green: build::tree(text, &tokens, events), diagnostics }
}

/// One step of the construction of the tree.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A node begins. `forward_parent` is the distance to the later `Start` event of a node that encloses this one and
    /// begins at the same token; 0 if there is none.
    Start { kind: SyntaxKind, forward_parent: u32 },
    /// The next token that is not trivia, as `kind`: a contextual keyword becomes its own kind.
    Token { kind: SyntaxKind },
    /// The innermost open node ends.
    Finish,
    /// No effect: the `Start` of a node that was abandoned, or that was already begun as a forward parent.
    Tombstone,
}

struct Parser<'t> {
    file: FileId,
    text: &'t str,
    tokens: &'t [Token],
    /// Those tokens that are not trivia.
    significant: Vec<u32>,
    /// The current token, in `significant`.
    position: usize,
    events: Vec<Event>,
    diagnostics: Vec<Diagnostic>,
    /// The token of the last error: a second error at the same token is not reported.
    last_error: Option<usize>,
    depth: u32,
    /// After nesting that is too deep: the rest of the file is not parsed.
    gave_up: bool,
    /// Inside a fast path or model, whose parts begin like items.
    in_specification: bool,
    /// Inside a procedure, which can return without a value.
    in_procedure: bool,
    /// An array of channels was declared or used, and reported.
    has_channel_array: bool,
    /// The number of blocks of conditional items around.
    open_items: u32,
    /// The names that imports of the file give to modules.
    imports: Vec<&'t str>,
}

/// An open node, by its `Start` event.
#[must_use]
#[derive(Debug)]
struct Marker(usize);

/// A complete node, which [`Parser::precede`] can still enclose in another one.
#[derive(Clone, Copy, Debug)]
struct Completed {
    start: usize,
    /// The height of its left spine of operators and suffixes.
    height: u32,
}

impl<'t> Parser<'t> {
    fn new(file: FileId, text: &'t str, tokens: &'t [Token]) -> Parser<'t> {
        let significant: Vec<u32> =
            (0u32..).zip(tokens).filter(|(_, token)| !token.kind.is_trivia()).map(|(index, _)| index).collect();
        Parser {
            file,
            text,
            tokens,
            events: Vec::with_capacity(significant.len() * 3),
            significant,
            position: 0,
            diagnostics: Vec::new(),
            last_error: None,
            depth: 0,
            gave_up: false,
            in_specification: false,
            in_procedure: false,
            has_channel_array: false,
            open_items: 0,
            imports: Vec::new(),
        }
        .with_imports()
    }

    /// Finds the names of modules: an import may follow the use of its name.
    fn with_imports(mut self) -> Parser<'t> {
        // The brackets that are open in an import; none outside of one. An argument can have a `;` in them: `[0; 4]`.
        let mut brackets: Option<u32> = None;
        for at in 1..self.significant.len() {
            match (self.kind_at(at), &mut brackets) {
                (SyntaxKind::String, _) if self.is_word_at(at - 1, "import") => brackets = Some(0),
                (SyntaxKind::LeftBracket, Some(open)) => *open += 1,
                (SyntaxKind::RightBracket, Some(open)) => *open = open.saturating_sub(1),
                (SyntaxKind::Semicolon, Some(0)) => {
                    brackets = None;
                    if self.is_word_at(at - 2, "as") && self.kind_at(at - 1) == SyntaxKind::Ident {
                        self.imports.push(self.text_at(at - 1));
                    }
                }
                _ => {}
            }
        }
        self.imports.sort_unstable();
        self
    }

    fn kind_at(&self, position: usize) -> SyntaxKind {
        self.tokens[self.significant[position] as usize].kind
    }

    fn is_word_at(&self, position: usize, word: &str) -> bool {
        self.kind_at(position) == SyntaxKind::Ident && self.text_at(position) == word
    }

    /// The number of tokens of the name here: 3 for `ring.put` if `ring` is the name of a module, else 1.
    fn name_length(&self) -> usize {
        let is_qualified = self.nth(1) == SyntaxKind::Dot
            && self.nth(2) == SyntaxKind::Ident
            && self.imports.binary_search(&self.current_text()).is_ok();
        if is_qualified { 3 } else { 1 }
    }

    /// Takes the name here, `ring.put` being one name.
    fn bump_name(&mut self) {
        for _ in 0..self.name_length() {
            self.bump();
        }
    }

    /// The name after a dot: of a field, or of a layout, which may be a module's: `p.net.ipv4[14]`.
    fn expect_field_name(&mut self) {
        if self.at(SyntaxKind::Ident) && self.name_length() == 3 && self.nth(3) == SyntaxKind::LeftBracket {
            self.bump_name();
        } else {
            self.expect_name("the name of a field");
        }
    }

    /// As [`Parser::expect_name`], for the name of an item, which may be that of a module's: `ring.put`.
    fn expect_item_name(&mut self, what: &str) {
        let is_name = self.at(SyntaxKind::Ident);
        self.expect_name(what);
        if is_name && self.at(SyntaxKind::Dot) && self.nth(1) == SyntaxKind::Ident {
            self.bump();
            self.bump();
        }
    }

    // Lookahead.

    fn nth(&self, ahead: usize) -> SyntaxKind {
        let index = (self.position + ahead).min(self.significant.len() - 1);
        self.tokens[self.significant[index] as usize].kind
    }

    fn current(&self) -> SyntaxKind {
        self.nth(0)
    }

    fn at(&self, kind: SyntaxKind) -> bool {
        self.current() == kind
    }

    fn at_end(&self) -> bool {
        self.at(SyntaxKind::EndOfFile)
    }

    /// Whether the current token is a plain name spelt `word`.
    fn at_word(&self, word: &str) -> bool {
        self.at(SyntaxKind::Ident) && self.text_at(self.position) == word
    }

    fn current_text(&self) -> &'t str {
        self.text_at(self.position)
    }

    fn text_at(&self, position: usize) -> &'t str {
        let span = self.span_at(position);
        &self.text[span.start as usize..span.end as usize]
    }

    fn span_at(&self, position: usize) -> Span {
        let index = self.significant[position.min(self.significant.len() - 1)] as usize;
        let start = self.tokens[index].start;
        let end = self.tokens.get(index + 1).map_or(start, |next| next.start);
        Span::new(self.file, start, end)
    }

    fn current_span(&self) -> Span {
        self.span_at(self.position)
    }

    /// The empty span after the last consumed token.
    fn after_previous(&self) -> Span {
        match self.position.checked_sub(1) {
            Some(previous) => {
                let end = self.span_at(previous).end;
                Span::new(self.file, end, end)
            }
            None => Span::new(self.file, 0, 0),
        }
    }

    /// The source text from the first to the last token of a range of positions; `..` for an empty range.
    fn source(&self, from: usize, to: usize) -> &'t str {
        if from > to {
            return "..";
        }
        let (first, last) = (self.span_at(from), self.span_at(to));
        &self.text[first.start as usize..last.end as usize]
    }

    /// The current token as "found ..." names it.
    fn found(&self) -> String {
        let kind = self.current();
        match kind {
            SyntaxKind::EndOfFile => kind.describe().to_string(),
            _ => format!(
                "`{}`",
                shorten(self.current_text()).escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
            ),
        }
    }

    // Consumption of tokens.

    fn bump(&mut self) {
        self.bump_as(self.current());
    }

    /// Consumes the current token with another kind, as for a contextual keyword.
    fn bump_as(&mut self, kind: SyntaxKind) {
        if !self.at_end() {
            self.events.push(Event::Token { kind });
            self.position += 1;
        }
    }

    fn eat(&mut self, kind: SyntaxKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    /// Takes a plain name spelt `word` as `kind`.
    fn eat_word(&mut self, word: &str, kind: SyntaxKind) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump_as(kind);
        }
        found
    }

    /// Takes `kind`, or reports that it is missing.
    fn expect(&mut self, kind: SyntaxKind) -> bool {
        self.expect_help(kind, None)
    }

    fn expect_help(&mut self, kind: SyntaxKind, help: Option<&str>) -> bool {
        if self.eat(kind) {
            return true;
        }
        self.missing(kind.describe(), help);
        false
    }

    /// Takes a name, or reports that one is missing; `what` says whose, as in "a name for the channel".
    fn expect_name(&mut self, what: &str) {
        if self.eat(SyntaxKind::Ident) {
            return;
        }
        if self.at(SyntaxKind::Underscore) || self.current().is_keyword() {
            // A reserved word where a name is required is most likely intended as the name.
            let found = self.found();
            self.error_here(
                format!("expected {what}, found the reserved word {found}"),
                Some("a reserved word cannot be a name; choose another".to_string()),
            );
            if !self.starts_something_new() {
                self.bump_error();
            }
            return;
        }
        self.missing(what, None);
    }

    /// Whether the current token begins a line, and with it probably an item or statement.
    fn starts_something_new(&self) -> bool {
        self.position > 0 && {
            let previous = self.span_at(self.position - 1).end as usize;
            self.text[previous..self.current_span().start as usize].contains('\n')
        }
    }

    /// Whether the current token follows the previous one without a blank.
    fn joins_previous(&self) -> bool {
        self.position > 0 && self.span_at(self.position - 1).end == self.current_span().start
    }

    /// Whether `::` and a name are here, as behind the name of a module or type in other languages.
    fn at_path(&self) -> bool {
        self.at(SyntaxKind::Colon)
            && self.nth(1) == SyntaxKind::Colon
            && self.nth(2) == SyntaxKind::Ident
            && self.joins_previous()
    }

    /// Takes `::` and the name behind it, and reports them.
    fn path(&mut self) {
        let (before, name) = (self.text_at(self.position - 1), self.text_at(self.position + 2));
        self.error_here("there is no `::`".to_string(), Some(format!("write `{before}.{name}`")));
        for _ in 0..3 {
            self.bump();
        }
    }

    /// Takes the `->` before a field as a dot, and reports it.
    fn arrow_of_pointer(&mut self) {
        let (before, name) = (self.text_at(self.position - 1), self.text_at(self.position + 1));
        let help = format!("there are no pointers: write `{before}.{name}`");
        self.error_here("a field is behind a dot".to_string(), Some(help));
        self.bump_as(SyntaxKind::Dot);
    }

    // Nodes.

    fn start(&mut self) -> Marker {
        self.events.push(Event::Start { kind: SyntaxKind::Error, forward_parent: 0 });
        Marker(self.events.len() - 1)
    }

    fn complete(&mut self, marker: Marker, kind: SyntaxKind) -> Completed {
        self.events[marker.0] = Event::Start { kind, forward_parent: 0 };
        self.events.push(Event::Finish);
        Completed { start: marker.0, height: 0 }
    }

    /// Undoes `start`: the children so far belong to the enclosing node.
    fn abandon(&mut self, marker: Marker) {
        self.events[marker.0] = Event::Tombstone;
    }

    /// Begins a node that encloses a complete one as its first child.
    fn precede(&mut self, inner: Completed) -> Marker {
        let marker = self.start();
        if let Event::Start { forward_parent, .. } = &mut self.events[inner.start] {
            *forward_parent = (marker.0 - inner.start) as u32;
        }
        marker
    }

    /// Completes a node that encloses a node of this height; gives up on chains that would make the tree too deep.
    fn complete_around(&mut self, marker: Marker, kind: SyntaxKind, height: u32) -> Completed {
        let mut completed = self.complete(marker, kind);
        completed.height = height + 1;
        if completed.height >= MAX_DEPTH {
            self.give_up("this expression is too long", "split it: at most 256 operators in a row");
        }
        completed
    }

    /// Runs a recursive rule within [`MAX_DEPTH`].
    fn nested<R>(&mut self, rule: impl FnOnce(&mut Self) -> R) -> Option<R> {
        if self.depth >= MAX_DEPTH {
            self.give_up("this is nested too deeply", "split it: at most 256 levels are possible");
            return None;
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        Some(result)
    }

    /// Runs a rule for the inside of a fast path or model.
    fn specification(&mut self, rule: impl FnOnce(&mut Self)) {
        self.in_specification = true;
        rule(self);
        self.in_specification = false;
    }

    /// Reports the last error, and puts the rest of the file into one error node.
    fn give_up(&mut self, message: &str, help: &str) {
        if self.gave_up {
            return;
        }
        self.error_here(message.to_string(), Some(help.to_string()));
        self.ignore_rest();
    }

    fn ignore_rest(&mut self) {
        self.gave_up = true;
        let marker = self.start();
        while !self.at_end() {
            self.bump();
        }
        self.complete(marker, SyntaxKind::Error);
    }

    // Errors.

    fn report(&mut self, diagnostic: Diagnostic) {
        // The lexer has reported the malformed token.
        let noise = self.gave_up || self.last_error == Some(self.position) || self.at(SyntaxKind::ErrorToken);
        self.last_error = Some(self.position);
        if !noise {
            self.diagnostics.push(diagnostic);
            if self.diagnostics.len() >= MAX_DIAGNOSTICS {
                self.ignore_rest();
            }
        }
    }

    /// "expected ..., found ..." at the current token.
    fn expected(&mut self, what: &str, help: Option<String>) {
        let message = format!("expected {what}, found {}", self.found());
        self.error_here(message, help);
    }

    fn error_here(&mut self, message: String, help: Option<String>) {
        let mut diagnostic = Diagnostic::new(Code::E0201, self.current_span(), message);
        diagnostic.help = help;
        self.report(diagnostic);
    }

    /// Reports a mistake before the current token.
    fn error_at(&mut self, span: Span, message: String, help: String) {
        self.report(Diagnostic::new(Code::E0201, span, message).help(help));
    }

    /// Takes the type in `const int N` or `var int n`, and reports it.
    fn type_before_name(&mut self, keyword: &str) {
        let is_type = types::is_int_type(self.current()) || self.at(SyntaxKind::BoolKeyword);
        if is_type && self.nth(1) == SyntaxKind::Ident {
            let (ty, name) = (self.current_text(), self.text_at(self.position + 1));
            let help = format!("a type follows its name: `{keyword} {name}: {ty} = ..;`");
            self.unexpected(format!("expected a name, found `{ty}`"), Some(help));
        }
    }

    /// Reports a token that is missing directly after the previous one.
    fn missing(&mut self, what: &str, help: Option<&str>) {
        let found = self.found();
        let place = self.after_previous();
        let here = self.current_span();
        let mut diagnostic = Diagnostic::new(Code::E0201, place, format!("expected {what}, found {found}"));
        if place.end == here.start || self.position == 0 {
            diagnostic.span = here;
        } else if !self.at_end() {
            diagnostic = diagnostic.label(here, "unexpected");
        }
        diagnostic.help = match help {
            Some(help) => Some(help.to_string()),
            None if let Some(help) = foreign::instead_of_operator(self.current_text()) => Some(help.to_string()),
            None if what == "`;`" && self.at(SyntaxKind::LeftBracket) => {
                Some("an array's type is `array[N] of T`".to_string())
            }
            None if what == "`;`" && self.at(SyntaxKind::Comma) => {
                Some("end this one with `;` and begin another".to_string())
            }
            None if what.starts_with('`') => Some(format!("write {what} here")),
            None => None,
        };
        self.report(diagnostic);
    }

    /// Takes the `}` that belongs to the `{` at `opening`, or reports that `what` is not closed.
    fn close(&mut self, opening: Span, what: &str) {
        if !self.eat(SyntaxKind::RightBrace) {
            let message = format!("expected `}}`, found {}", self.found());
            let diagnostic = Diagnostic::new(Code::E0201, self.current_span(), message)
                .label(opening, format!("{what} is not closed"))
                .help("write a `}` for it");
            self.report(diagnostic);
        }
    }

    /// Takes the current token as an error.
    fn bump_error(&mut self) {
        let marker = self.start();
        self.bump();
        self.complete(marker, SyntaxKind::Error);
    }

    /// Reports the current token as not expected and takes it.
    fn unexpected(&mut self, message: String, help: Option<String>) {
        self.error_here(message, help);
        self.bump_error();
    }

    /// Skips to where `stop` holds, to an unmatched closing bracket, or to the end.
    fn skip_until(&mut self, stop: impl Fn(&Self) -> bool) {
        if self.at_end() || stop(self) {
            return;
        }
        let marker = self.start();
        let mut open = 0u32;
        while !self.at_end() {
            if open == 0 && stop(self) {
                break;
            }
            match self.current() {
                SyntaxKind::LeftParen | SyntaxKind::LeftBrace | SyntaxKind::LeftBracket => open += 1,
                SyntaxKind::RightParen | SyntaxKind::RightBrace | SyntaxKind::RightBracket => {
                    if open == 0 {
                        break;
                    }
                    open -= 1;
                }
                _ => {}
            }
            if open > 0 && items::at_certain_item(self) {
                break;
            }
            self.bump();
        }
        self.complete(marker, SyntaxKind::Error);
    }

    /// Skips a `{` and everything to its `}`.
    fn skip_braces(&mut self) {
        let marker = self.start();
        self.bump();
        self.skip_until(|_| false);
        self.eat(SyntaxKind::RightBrace);
        self.complete(marker, SyntaxKind::Error);
    }

    /// `list(x) = x {"," x} [","]`, including `close`. `element` returns whether it found one.
    fn list(&mut self, close: SyntaxKind, what: &str, mut element: impl FnMut(&mut Self) -> bool) {
        loop {
            if self.at(close) || self.at_end() {
                break;
            }
            let before = self.position;
            let found = element(self);
            if !found {
                let help = match (what, self.current()) {
                    ("a pattern", SyntaxKind::Ampersand | SyntaxKind::Star) => {
                        Some("there are no pointers: `n` assigns a variable, `$n` declares one".to_string())
                    }
                    _ => None,
                };
                self.expected(what, help);
            }
            if !found || self.position == before {
                self.skip_until(|p| p.at(SyntaxKind::Comma) || p.at(SyntaxKind::Semicolon));
            }
            if self.eat(SyntaxKind::Comma) {
                continue;
            }
            if self.at(close) {
                break;
            }
            if self.position == before || !self.recover_in_list(close) {
                break;
            }
        }
        self.expect(close);
    }

    /// Reports a missing comma in a list. True if the list continues.
    fn recover_in_list(&mut self, close: SyntaxKind) -> bool {
        let what = format!("`,` or {}", close.describe());
        if self.at_end() || items::at_certain_item(self) || self.at(SyntaxKind::Semicolon) {
            return false;
        }
        self.missing(&what, None);
        self.skip_until(|p| p.at(SyntaxKind::Comma) || p.at(SyntaxKind::Semicolon));
        self.eat(SyntaxKind::Comma)
    }

    /// Consumes a `;`; if it is missing, reports that and skips the rest of the line.
    fn expect_semicolon(&mut self) {
        if !self.expect(SyntaxKind::Semicolon) && !self.starts_something_new() {
            self.skip_until(|p| p.at(SyntaxKind::Semicolon) || p.starts_something_new() || p.at(SyntaxKind::LeftBrace));
            self.eat(SyntaxKind::Semicolon);
        }
    }

    /// A string literal, as a token of the enclosing node.
    fn expect_string(&mut self, what: &str) {
        if !self.eat(SyntaxKind::String) {
            self.missing(what, None);
        }
    }

    fn expect_int(&mut self, what: &str) {
        if !self.eat(SyntaxKind::Int) {
            self.missing(what, None);
        }
    }
}
