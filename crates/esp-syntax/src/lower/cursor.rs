//! Nodes and tokens of the lossless tree together with their offsets. A red node of rowan knows its parent, which
//! takes an allocation per node; a traversal downward needs only green nodes.

use crate::ast::Name;
use crate::literal;
use crate::span::{FileId, Span};
use crate::tree::{Green, SyntaxKind};
use rowan::{GreenNodeData, GreenTokenData, NodeOrToken};
use smol_str::{SmolStr, format_smolstr};

/// Collecting without spare room: most lists of a program have one element, and the usual room for four would be most
/// of what the abstract syntax takes.
pub(super) trait Exactly: Iterator + Sized {
    /// The items, in a vector that has no room for more.
    fn exactly(self) -> Vec<Self::Item> {
        let mut items: Vec<Self::Item> = self.collect();
        items.shrink_to_fit();
        items
    }
}

impl<I: Iterator> Exactly for I {}

/// A node and where it starts.
#[derive(Clone, Copy)]
pub(super) struct NodeCursor<'a> {
    file: FileId,
    green: &'a GreenNodeData,
    start: u32,
}

/// A token and where it starts.
#[derive(Clone, Copy)]
pub(super) struct TokenCursor<'a> {
    file: FileId,
    green: &'a GreenTokenData,
    start: u32,
}

impl<'a> NodeCursor<'a> {
    pub(super) fn root(file: FileId, green: &'a Green) -> NodeCursor<'a> {
        NodeCursor { file, green, start: 0 }
    }

    pub(super) fn kind(self) -> SyntaxKind {
        SyntaxKind::from_raw(self.green.kind())
    }

    pub(super) fn span(self) -> Span {
        Span::new(self.file, self.start, self.start + u32::from(self.green.text_len()))
    }

    /// Children, in order.
    pub(super) fn children(self) -> impl Iterator<Item = NodeOrToken<NodeCursor<'a>, TokenCursor<'a>>> {
        let mut start = self.start;
        self.green.children().map(move |child| match child {
            NodeOrToken::Node(green) => {
                let node = NodeCursor { file: self.file, green, start };
                start += u32::from(green.text_len());
                NodeOrToken::Node(node)
            }
            NodeOrToken::Token(green) => {
                let token = TokenCursor { file: self.file, green, start };
                start += u32::from(green.text_len());
                NodeOrToken::Token(token)
            }
        })
    }

    /// Children that are nodes.
    pub(super) fn nodes(self) -> impl Iterator<Item = NodeCursor<'a>> {
        self.children().filter_map(NodeOrToken::into_node)
    }

    /// Children that are tokens with a meaning.
    pub(super) fn tokens(self) -> impl Iterator<Item = TokenCursor<'a>> {
        self.children().filter_map(NodeOrToken::into_token).filter(|token| !token.kind().is_trivia())
    }

    /// The first child node of a kind.
    pub(super) fn node(self, kind: SyntaxKind) -> Option<NodeCursor<'a>> {
        self.nodes().find(|node| node.kind() == kind)
    }

    /// The first child token of a kind.
    pub(super) fn token(self, kind: SyntaxKind) -> Option<TokenCursor<'a>> {
        self.tokens().find(|token| token.kind() == kind)
    }

    /// The first name among the children, `ring.put` being one; an empty one at the end of the node's first token if
    /// there is none.
    pub(super) fn name(self) -> Name {
        first_name(self.tokens()).unwrap_or_else(|| self.missing_name())
    }

    /// The first plain name among the children, without what follows a dot.
    pub(super) fn plain_name(self) -> Name {
        self.token(SyntaxKind::Ident).map_or_else(|| self.missing_name(), TokenCursor::name)
    }

    /// The first plain name before the first `mark`.
    pub(super) fn name_before(self, mark: SyntaxKind) -> Name {
        first_name(self.tokens().take_while(|token| token.kind() != mark)).unwrap_or_else(|| self.missing_name())
    }

    /// The first plain name after the first `mark`.
    pub(super) fn name_behind(self, mark: SyntaxKind) -> Name {
        first_name(self.tokens().skip_while(|token| token.kind() != mark)).unwrap_or_else(|| self.missing_name())
    }

    /// All names among the children.
    pub(super) fn names(self) -> impl Iterator<Item = Name> {
        let mut tokens = self.tokens();
        std::iter::from_fn(move || first_name(&mut tokens))
    }

    fn missing_name(self) -> Name {
        let end = self.tokens().next().map_or(self.start, |token| token.span().end);
        Name { text: SmolStr::default(), span: Span::new(self.file, end, end) }
    }

    /// The value of the first number among the children.
    pub(super) fn int(self) -> Option<(u64, Span)> {
        self.token(SyntaxKind::Int).map(|token| (token.int(), token.span()))
    }
}

/// The first name among tokens: an identifier, or two with a dot between. Takes one token more where a dot cannot be.
fn first_name<'a>(mut tokens: impl Iterator<Item = TokenCursor<'a>>) -> Option<Name> {
    let first = tokens.find(|token| token.kind() == SyntaxKind::Ident)?.name();
    let is_qualified = tokens.next().is_some_and(|token| token.kind() == SyntaxKind::Dot);
    let item = if is_qualified { tokens.next().filter(|token| token.kind() == SyntaxKind::Ident) } else { None };
    Some(match item {
        Some(item) => {
            Name { text: format_smolstr!("{}.{}", first.text, item.text()), span: first.span.to(item.span()) }
        }
        None => first,
    })
}

impl<'a> TokenCursor<'a> {
    pub(super) fn kind(self) -> SyntaxKind {
        SyntaxKind::from_raw(self.green.kind())
    }

    pub(super) fn text(self) -> &'a str {
        self.green.text()
    }

    pub(super) fn span(self) -> Span {
        Span::new(self.file, self.start, self.start + u32::from(self.green.text_len()))
    }

    pub(super) fn name(self) -> Name {
        Name { text: SmolStr::new(self.text()), span: self.span() }
    }

    /// The number's value; 0 for a malformed one, which the lexer has reported.
    pub(super) fn int(self) -> u64 {
        literal::integer(self.text()).unwrap_or(0)
    }

    /// The character's or string's bytes; what is malformed in it, which the lexer has reported, is left out.
    pub(super) fn bytes(self) -> Vec<u8> {
        literal::unescape(literal::between_quotes(self.text()), |_, _| {})
    }
}
