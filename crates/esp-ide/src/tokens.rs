//! The meaning of each token, for colours: what the lexer knows, and for names what they mean.

use crate::workspace::Workspace;
use quaject_esp_syntax::check::DefinitionKind;
use quaject_esp_syntax::span::Span;
use quaject_esp_syntax::tree::{SyntaxKind, SyntaxToken};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a token means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum TokenKind {
    Comment,
    Keyword,
    Number,
    String,
    Type,
    Process,
    Channel,
    Function,
    Constant,
    Module,
    Field,
    Case,
    Variable,
    Parameter,
    Label,
}

/// A token with a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// First byte and one past the last.
    pub range: (u32, u32),
    #[allow(missing_docs)]
    pub kind: TokenKind,
    /// Whether it declares its name.
    pub is_declaration: bool,
}

impl Workspace {
    /// The tokens of a file that begin in a range, in order.
    pub fn tokens(&self, path: &str, range: Range<u32>) -> Vec<Token> {
        let Some(parse) = self.parse(path) else { return Vec::new() };
        let names = self.names_in(path);
        let tree = parse.tree();
        let mut tokens = Vec::new();
        let all = tree.descendants_with_tokens().filter_map(|part| part.into_token());
        for token in all.filter(|token| range.contains(&token.text_range().start().into())) {
            let place = (u32::from(token.text_range().start()), u32::from(token.text_range().end()));
            let named = names.get(&place.0).map(|(kind, is_declaration)| (token_kind(*kind), *is_declaration));
            if let Some((kind, is_declaration)) = named.or_else(|| Some((lexical_kind(&token)?, false))) {
                tokens.push(Token { range: place, kind, is_declaration });
            }
        }
        tokens
    }

    /// What the names of a file mean, by their offsets, and whether they are declarations.
    fn names_in(&self, path: &str) -> FxHashMap<u32, (DefinitionKind, bool)> {
        let mut found = FxHashMap::default();
        for (program, file) in self.programs_with(path) {
            let names = &program.inspection.names;
            let here = |span: Span| span.file == file;
            for used in names.uses.iter().filter(|used| here(used.span)) {
                found.entry(used.span.start).or_insert((names.definitions[used.definition].kind, false));
            }
            for known in names.definitions.iter().filter(|known| here(known.span)) {
                found.entry(known.span.start).or_insert((known.kind, true));
            }
        }
        found
    }
}

fn token_kind(kind: DefinitionKind) -> TokenKind {
    match kind {
        DefinitionKind::Type | DefinitionKind::Layout => TokenKind::Type,
        DefinitionKind::Constant => TokenKind::Constant,
        DefinitionKind::Channel => TokenKind::Channel,
        DefinitionKind::Interface | DefinitionKind::Module | DefinitionKind::Model => TokenKind::Module,
        DefinitionKind::Extern | DefinitionKind::Function | DefinitionKind::Procedure | DefinitionKind::FastPath => {
            TokenKind::Function
        }
        DefinitionKind::Process | DefinitionKind::Template => TokenKind::Process,
        DefinitionKind::Variable => TokenKind::Variable,
        DefinitionKind::Parameter => TokenKind::Parameter,
        DefinitionKind::Field | DefinitionKind::LayoutField => TokenKind::Field,
        DefinitionKind::Case => TokenKind::Case,
        DefinitionKind::Label | DefinitionKind::Alias => TokenKind::Label,
    }
}

/// What a token is by itself.
fn lexical_kind(token: &SyntaxToken) -> Option<TokenKind> {
    Some(match token.kind() {
        SyntaxKind::LineComment | SyntaxKind::BlockComment => TokenKind::Comment,
        SyntaxKind::Int => TokenKind::Number,
        SyntaxKind::Char | SyntaxKind::String => TokenKind::String,
        kind if kind.is_keyword() && kind != SyntaxKind::Underscore => TokenKind::Keyword,
        SyntaxKind::Ident if matches!(token.text(), "time" | "duration") => TokenKind::Type,
        SyntaxKind::Ident => return None,
        // A word that is reserved in its place only.
        _ if token.text().starts_with(|c: char| c.is_ascii_alphabetic()) => TokenKind::Keyword,
        _ => return None,
    })
}
