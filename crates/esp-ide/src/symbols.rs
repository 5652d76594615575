//! The outline of a file and the items of the workspace, from syntax alone: a text with errors has one, too.

use crate::program::Location;
use crate::scopes::is_item;
use crate::workspace::Workspace;
use quaject_esp_syntax::tree::{SyntaxKind, SyntaxNode, SyntaxToken};
use rowan::NodeOrToken;
use std::collections::BTreeSet;

/// What a symbol is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum SymbolKind {
    Type,
    Constant,
    Channel,
    Interface,
    Function,
    Layout,
    Process,
    Procedure,
    FastPath,
    Model,
    Module,
    Field,
    Case,
    Label,
}

/// A part of the outline of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    #[allow(missing_docs)]
    pub kind: SymbolKind,
    /// The whole declaration: first byte and one past the last.
    pub range: (u32, u32),
    /// Its name in the text.
    pub name_range: (u32, u32),
    /// What is inside.
    pub children: Vec<Symbol>,
}

impl Workspace {
    /// The outline of a file.
    pub fn document_symbols(&self, path: &str) -> Vec<Symbol> {
        self.parse(path).map_or_else(Vec::new, |parse| inside(&parse.tree()))
    }

    /// The items of all programs whose names have the letters of the query, in any case and in this order.
    pub fn workspace_symbols(&self, query: &str) -> Vec<(Symbol, Location)> {
        let paths: BTreeSet<&str> =
            self.programs().flat_map(|program| program.sources.files()).map(|file| file.name.as_str()).collect();
        let mut found = Vec::new();
        for path in paths {
            for symbol in self.document_symbols(path) {
                if has_letters(&symbol.name, query) {
                    let location = Location { path: path.to_string(), range: symbol.name_range };
                    found.push((symbol, location));
                }
            }
        }
        found
    }
}

fn has_letters(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
}

fn inside(node: &SyntaxNode) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    for child in node.children() {
        match symbol(&child) {
            Some(symbol) => symbols.push(symbol),
            None => symbols.extend(inside(&child)),
        }
    }
    symbols
}

fn symbol(node: &SyntaxNode) -> Option<Symbol> {
    let kind = match node.kind() {
        SyntaxKind::TypeItem => SymbolKind::Type,
        SyntaxKind::Const if node.ancestors().skip(1).all(|outer| outer.kind() != SyntaxKind::Block) => {
            SymbolKind::Constant
        }
        SyntaxKind::Channel => SymbolKind::Channel,
        SyntaxKind::Interface => SymbolKind::Interface,
        SyntaxKind::Extern | SyntaxKind::Fn => SymbolKind::Function,
        SyntaxKind::Layout => SymbolKind::Layout,
        SyntaxKind::Process if is_item(node.kind()) => SymbolKind::Process,
        SyntaxKind::Template | SyntaxKind::Instance | SyntaxKind::ModelEnvironment => SymbolKind::Process,
        SyntaxKind::Procedure => SymbolKind::Procedure,
        SyntaxKind::FastPath => SymbolKind::FastPath,
        SyntaxKind::Model => SymbolKind::Model,
        SyntaxKind::Import => SymbolKind::Module,
        SyntaxKind::TypeField if in_record(node) => SymbolKind::Field,
        SyntaxKind::LayoutField => SymbolKind::Field,
        SyntaxKind::TypeField | SyntaxKind::EnumCase => SymbolKind::Case,
        SyntaxKind::Label => SymbolKind::Label,
        _ => return None,
    };
    let name = own_name(node)?;
    let range = |node: &SyntaxNode| {
        let significant = node.children_with_tokens().find(|part| !part.kind().is_trivia());
        let start = significant.map_or(node.text_range().start(), |part| part.text_range().start());
        (start.into(), node.text_range().end().into())
    };
    let outer = node.parent().filter(|parent| parent.kind() == SyntaxKind::ModifiedItem);
    let mut children = inside(node);
    if matches!(kind, SymbolKind::Channel | SymbolKind::Function) {
        children.clear();
    }
    Some(Symbol {
        name: name.text().to_string(),
        kind,
        range: range(outer.as_ref().unwrap_or(node)),
        name_range: (name.text_range().start().into(), name.text_range().end().into()),
        children,
    })
}

fn in_record(node: &SyntaxNode) -> bool {
    node.parent().is_some_and(|parent| parent.kind() == SyntaxKind::RecordType)
}

/// The name that a node declares: its first name, for an import that behind `as`, for a label that behind `#`.
fn own_name(node: &SyntaxNode) -> Option<SyntaxToken> {
    let mut tokens = node.children_with_tokens().filter_map(NodeOrToken::into_token);
    if node.kind() == SyntaxKind::Import {
        tokens.by_ref().find(|token| token.kind() == SyntaxKind::AsWord)?;
    }
    tokens.find(|token| {
        token.kind() == SyntaxKind::Ident || (node.kind() == SyntaxKind::Label && token.kind() == SyntaxKind::Int)
    })
}
