//! Between the types of the Language Server Protocol and those of the language service: places, edits, kinds.

use lsp_types as lsp;
use quaject_esp_ide::{
    CompletionKind, Edit, Encoding, FoldKind, Lines, Location, Position, Problem, Symbol, SymbolKind, Token, TokenKind,
    Workspace,
};
use quaject_esp_syntax::check::DefinitionKind;
use quaject_esp_syntax::diagnostics::Severity;
use std::str::FromStr;

/// The path of a URI with the scheme `file`.
pub(super) fn path_of(uri: &lsp::Uri) -> Option<String> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let encoded = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => (digit(rest.next())? * 16 + digit(rest.next())?) as u8,
            byte => byte,
        });
    }
    let path = String::from_utf8(bytes).ok()?;
    // `/c:/a.esp` is `c:/a.esp`.
    let has_drive = path.as_bytes().get(2) == Some(&b':');
    Some(if cfg!(windows) && has_drive { path[1..].to_string() } else { path })
}

/// The URI of a path; none for what is no file, such as a standard module.
pub(super) fn uri_of(path: &str) -> Option<lsp::Uri> {
    if path.starts_with("std:") {
        return None;
    }
    let mut text = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    lsp::Uri::from_str(&text).ok()
}

fn place(position: Position) -> lsp::Position {
    lsp::Position { line: position.line, character: position.column }
}

pub(super) fn range(lines: &Lines, range: (u32, u32)) -> lsp::Range {
    let (start, end) = lines.range(range.0..range.1);
    lsp::Range { start: place(start), end: place(end) }
}

pub(super) fn offset(lines: &Lines, position: lsp::Position) -> u32 {
    lines.offset(Position { line: position.line, column: position.character })
}

/// Locations with the columns of their files.
pub(super) fn locations(workspace: &Workspace, encoding: Encoding, places: &[Location]) -> Vec<lsp::Location> {
    let mut found = Vec::new();
    for places in places.chunk_by(|left, right| left.path == right.path) {
        let (Some(text), Some(uri)) = (workspace.text(&places[0].path), uri_of(&places[0].path)) else { continue };
        let lines = Lines::new(&text, encoding);
        found.extend(places.iter().map(|place| lsp::Location { uri: uri.clone(), range: range(&lines, place.range) }));
    }
    found
}

pub(super) fn edits(lines: &Lines, edits: &[Edit]) -> Vec<lsp::TextEdit> {
    edits.iter().map(|edit| lsp::TextEdit { range: range(lines, edit.range), new_text: edit.text.clone() }).collect()
}

pub(super) fn diagnostic(
    workspace: &Workspace,
    encoding: Encoding,
    lines: &Lines,
    problem: &Problem,
) -> lsp::Diagnostic {
    let mut message = problem.message.clone();
    if let Some(help) = &problem.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    if !problem.roots.is_empty() {
        message.push_str(&format!("\nin the program `{}`", problem.roots.join("`, `")));
    }
    let related = problem.related.iter().filter_map(|related| {
        let location = locations(workspace, encoding, std::slice::from_ref(&related.location)).pop()?;
        Some(lsp::DiagnosticRelatedInformation { location, message: related.text.clone() })
    });
    let related: Vec<_> = related.collect();
    lsp::Diagnostic {
        range: range(lines, problem.range),
        severity: Some(match problem.severity {
            Severity::Error | Severity::Fault => lsp::DiagnosticSeverity::ERROR,
            Severity::Warning => lsp::DiagnosticSeverity::WARNING,
            Severity::Note => lsp::DiagnosticSeverity::INFORMATION,
        }),
        code: Some(lsp::NumberOrString::String(problem.code.to_string())),
        source: Some("qj".to_string()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..lsp::Diagnostic::default()
    }
}

pub(super) fn symbol_kind(kind: SymbolKind) -> lsp::SymbolKind {
    match kind {
        SymbolKind::Type => lsp::SymbolKind::STRUCT,
        SymbolKind::Constant => lsp::SymbolKind::CONSTANT,
        SymbolKind::Channel => lsp::SymbolKind::EVENT,
        SymbolKind::Interface => lsp::SymbolKind::INTERFACE,
        SymbolKind::Function | SymbolKind::Procedure => lsp::SymbolKind::FUNCTION,
        SymbolKind::Layout => lsp::SymbolKind::STRUCT,
        SymbolKind::Process => lsp::SymbolKind::CLASS,
        SymbolKind::FastPath => lsp::SymbolKind::METHOD,
        SymbolKind::Model | SymbolKind::Module => lsp::SymbolKind::MODULE,
        SymbolKind::Field => lsp::SymbolKind::FIELD,
        SymbolKind::Case => lsp::SymbolKind::ENUM_MEMBER,
        SymbolKind::Label => lsp::SymbolKind::KEY,
    }
}

#[allow(deprecated, reason = "the type has a field that is deprecated and has to be given")]
pub(super) fn document_symbol(lines: &Lines, symbol: &Symbol) -> lsp::DocumentSymbol {
    lsp::DocumentSymbol {
        name: symbol.name.clone(),
        detail: None,
        kind: symbol_kind(symbol.kind),
        tags: None,
        deprecated: None,
        range: range(lines, symbol.range),
        selection_range: range(lines, symbol.name_range),
        children: Some(symbol.children.iter().map(|inner| document_symbol(lines, inner)).collect()),
    }
}

pub(super) fn fold_kind(kind: FoldKind) -> Option<lsp::FoldingRangeKind> {
    match kind {
        FoldKind::Code => None,
        FoldKind::Comment => Some(lsp::FoldingRangeKind::Comment),
        FoldKind::Imports => Some(lsp::FoldingRangeKind::Imports),
    }
}

pub(super) fn completion_kind(kind: CompletionKind) -> lsp::CompletionItemKind {
    match kind {
        CompletionKind::Keyword => lsp::CompletionItemKind::KEYWORD,
        CompletionKind::Predeclared => lsp::CompletionItemKind::FUNCTION,
        CompletionKind::Name(kind) => match kind {
            DefinitionKind::Type | DefinitionKind::Layout => lsp::CompletionItemKind::STRUCT,
            DefinitionKind::Constant => lsp::CompletionItemKind::CONSTANT,
            DefinitionKind::Channel => lsp::CompletionItemKind::EVENT,
            DefinitionKind::Interface => lsp::CompletionItemKind::INTERFACE,
            DefinitionKind::Extern
            | DefinitionKind::Function
            | DefinitionKind::Procedure
            | DefinitionKind::FastPath => lsp::CompletionItemKind::FUNCTION,
            DefinitionKind::Process | DefinitionKind::Template => lsp::CompletionItemKind::CLASS,
            DefinitionKind::Model | DefinitionKind::Module => lsp::CompletionItemKind::MODULE,
            DefinitionKind::Variable | DefinitionKind::Parameter => lsp::CompletionItemKind::VARIABLE,
            DefinitionKind::Field | DefinitionKind::LayoutField => lsp::CompletionItemKind::FIELD,
            DefinitionKind::Case => lsp::CompletionItemKind::ENUM_MEMBER,
            DefinitionKind::Label | DefinitionKind::Alias => lsp::CompletionItemKind::REFERENCE,
        },
    }
}

/// The kinds of tokens, in the order of their numbers.
pub(super) fn token_legend() -> lsp::SemanticTokensLegend {
    use lsp::SemanticTokenType as Type;
    lsp::SemanticTokensLegend {
        token_types: vec![
            Type::COMMENT,
            Type::KEYWORD,
            Type::NUMBER,
            Type::STRING,
            Type::TYPE,
            Type::CLASS,
            Type::EVENT,
            Type::FUNCTION,
            Type::NAMESPACE,
            Type::PROPERTY,
            Type::ENUM_MEMBER,
            Type::VARIABLE,
            Type::PARAMETER,
            Type::DECORATOR,
        ],
        token_modifiers: vec![lsp::SemanticTokenModifier::DECLARATION, lsp::SemanticTokenModifier::READONLY],
    }
}

/// Tokens relative to each other, one for each line of a comment of several lines.
pub(super) fn tokens(text: &str, lines: &Lines, tokens: &[Token]) -> Vec<lsp::SemanticToken> {
    let mut relative = Vec::with_capacity(tokens.len());
    let mut last = lsp::Position::default();
    for token in tokens {
        let mut start = token.range.0;
        for part in text[token.range.0 as usize..token.range.1 as usize].split_inclusive('\n') {
            let end = start + part.trim_end_matches(['\n', '\r']).len() as u32;
            let place = range(lines, (start, end));
            start += part.len() as u32;
            if place.start == place.end {
                continue;
            }
            let same_line = place.start.line == last.line;
            let (token_type, modifiers) = token_number(token.kind);
            relative.push(lsp::SemanticToken {
                delta_line: place.start.line - last.line,
                delta_start: place.start.character - if same_line { last.character } else { 0 },
                length: place.end.character - place.start.character,
                token_type,
                token_modifiers_bitset: u32::from(token.is_declaration) | modifiers,
            });
            last = place.start;
        }
    }
    relative
}

fn token_number(kind: TokenKind) -> (u32, u32) {
    match kind {
        TokenKind::Comment => (0, 0),
        TokenKind::Keyword => (1, 0),
        TokenKind::Number => (2, 0),
        TokenKind::String => (3, 0),
        TokenKind::Type => (4, 0),
        TokenKind::Process => (5, 0),
        TokenKind::Channel => (6, 0),
        TokenKind::Function => (7, 0),
        TokenKind::Module => (8, 0),
        TokenKind::Field => (9, 0),
        TokenKind::Case => (10, 0),
        TokenKind::Variable => (11, 0),
        TokenKind::Constant => (11, 2),
        TokenKind::Parameter => (12, 0),
        TokenKind::Label => (13, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::{path_of, uri_of};

    #[test]
    fn paths_survive_uris() {
        for path in ["/a b/\u{fc}%#.esp", "/plain.esp"] {
            let uri = uri_of(path).expect("a path");
            assert_eq!(path_of(&uri).as_deref(), Some(path), "{uri:?}");
        }
        assert_eq!(uri_of("std:format"), None);
    }
}
