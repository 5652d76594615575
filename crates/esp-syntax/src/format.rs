//! `qj fmt`: changes the white space of a program, and replaces the earlier words `decline` and `settle` of a fast
//! path. All other tokens and the comments keep their text and order; of successive blank lines, one is kept.
//! Formatting is idempotent.
//!
//! A block or list with a line break after its opening bracket stays on several lines; one on a single line stays there
//! while it fits. This module chooses the gaps from the tree; `printer` measures and prints.

mod gaps;
mod printer;

use crate::diagnostics::Diagnostic;
use crate::parser::Parse;
use crate::tree::{SyntaxKind, SyntaxNode, SyntaxToken};
use gaps::Gap;
use printer::{Op, Place, Printer};
use rowan::NodeOrToken;

/// The formatted program, or its syntax errors: text that cannot be parsed is not changed.
///
/// ```
/// use quaject_esp_syntax::{format::format, parser::parse, span::FileId};
/// let program = parse(FileId(0), "process p{while{yield ;}}");
/// assert_eq!(format(&program), Ok("process p { while { yield; } }\n".to_string()));
/// ```
pub fn format(parse: &Parse) -> Result<String, Vec<Diagnostic>> {
    if !parse.diagnostics().is_empty() {
        return Err(parse.diagnostics().to_vec());
    }
    let root = parse.tree();
    let mut layout = Layout::new(&root);
    layout.node(&root, Gap::Statement { blank: false });
    let gap = layout.comments(Gap::Hard);
    layout.push_gap(gap);
    let text = Printer::print(&root.text().to_string(), &layout.ops);
    debug_assert!(same_tokens(&root, &text), "formatting keeps all tokens of\n{root}\nin\n{text}");
    Ok(text)
}

/// Whether a text has the tokens of a tree, white space and comments aside.
fn same_tokens(root: &SyntaxNode, text: &str) -> bool {
    let (tokens, _) = crate::lexer::tokenize(crate::span::FileId::default(), text);
    let ends = tokens.iter().skip(1).map(|token| token.start as usize);
    let printed = tokens.iter().zip(ends).filter(|(token, _)| !token.kind.is_trivia());
    printed.map(|(token, end)| &text[token.start as usize..end]).eq(significant(root).iter().map(present_text))
}

/// The text of a token; for an earlier word, the present one.
fn present_text(token: &SyntaxToken) -> &str {
    match token.kind() {
        SyntaxKind::BypassWord => "bypass",
        SyntaxKind::RetriesWord => "retries",
        _ => token.text(),
    }
}

fn significant(root: &SyntaxNode) -> Vec<SyntaxToken> {
    let tokens = root.descendants_with_tokens().filter_map(NodeOrToken::into_token);
    tokens.filter(|token| !token.kind().is_trivia()).collect()
}

/// The comments and line breaks before a token.
#[derive(Clone, Copy)]
struct Leading {
    /// The number of comments before it, those before earlier tokens included.
    comments_end: u32,
    /// Line ends between the last comment, or the token before, and the token.
    newlines: u32,
}

#[derive(Clone, Copy)]
struct Comment {
    place: Place,
    kind: SyntaxKind,
    /// Line breaks between the previous token or comment and this one.
    newlines: u32,
}

/// Walks the tree and produces the operations of the printer.
struct Layout {
    /// For each token that is not trivia, and the end of the file.
    leading: Vec<Leading>,
    comments: Vec<Comment>,
    /// The next token.
    position: usize,
    /// The token whose comments and line ends have been emitted already.
    begun: Option<usize>,
    ops: Vec<Op>,
}

/// How the inside of a pair of brackets is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Statements or the like, each on its own line unless all are on one.
    Block,
    /// A list between braces, `{ a, b }`.
    Padded,
    /// A list between parentheses or brackets, `(a, b)`.
    Tight,
    /// A list without brackets, as in `var a, b;`.
    Bare,
}

/// The brackets a node puts around its parts.
fn brackets(kind: SyntaxKind) -> Option<(SyntaxKind, SyntaxKind, Inside)> {
    use SyntaxKind as K;
    let brackets = match kind {
        K::Block | K::ItemBlock | K::AltStmt | K::MatchStmt | K::FastPath | K::FastPathProcess | K::Model => {
            (K::LeftBrace, K::RightBrace, Inside::Block)
        }
        K::RecordExpr | K::RecordPattern | K::RecordType | K::UnionType | K::EnumType | K::Layout | K::Interface => {
            (K::LeftBrace, K::RightBrace, Inside::Padded)
        }
        K::CallExpr
        | K::CallStmt
        | K::InOperation
        | K::OutOperation
        | K::Channel
        | K::PidType
        | K::Extern
        | K::Fn
        | K::Procedure
        | K::ProcedureParameter
        | K::Template
        | K::Instance
        | K::InterfaceEntry => (K::LeftParen, K::RightParen, Inside::Tight),
        K::ArrayExpr | K::ArrayPattern => (K::LeftBracket, K::RightBracket, Inside::Tight),
        K::Var => (K::VarKeyword, K::Semicolon, Inside::Bare),
        K::StatementList => (K::StatementWord, K::Semicolon, Inside::Bare),
        K::ExitField => (K::ExitKeyword, K::Semicolon, Inside::Bare),
        K::ModelSlice => (K::SliceWord, K::Semicolon, Inside::Bare),
        _ => return None,
    };
    Some(brackets)
}

impl Layout {
    fn new(root: &SyntaxNode) -> Layout {
        let (mut leading, mut comments) = (Vec::new(), Vec::new());
        let mut newlines = 0;
        for token in root.descendants_with_tokens().filter_map(NodeOrToken::into_token) {
            match token.kind() {
                SyntaxKind::Whitespace => newlines += token.text().matches('\n').count() as u32,
                kind @ (SyntaxKind::LineComment | SyntaxKind::BlockComment) => {
                    let newlines = std::mem::take(&mut newlines);
                    comments.push(Comment { place: Place::of(&token), kind, newlines });
                }
                _ => leading
                    .push(Leading { comments_end: comments.len() as u32, newlines: std::mem::take(&mut newlines) }),
            }
        }
        leading.push(Leading { comments_end: comments.len() as u32, newlines });
        Layout { leading, comments, position: 0, begun: None, ops: Vec::new() }
    }

    /// The comments before the next token.
    fn next_comments(&self) -> std::ops::Range<usize> {
        let start = self.position.checked_sub(1).map_or(0, |previous| self.leading[previous].comments_end);
        start as usize..self.leading[self.position].comments_end as usize
    }

    /// Whether a line ends directly after the previous token.
    fn at_line_end(&self) -> bool {
        let comments = &self.comments[self.next_comments()];
        comments.first().map_or(self.leading[self.position].newlines, |comment| comment.newlines) > 0
    }

    /// Writes down the comments before the next token. What is between them and the token is returned; `gap` is what
    /// would be there without comments.
    fn comments(&mut self, gap: Gap) -> Gap {
        if self.begun.replace(self.position) == Some(self.position) {
            return gap;
        }
        let leading = self.leading[self.position];
        let mut before = None;
        for index in self.next_comments() {
            let comment = self.comments[index];
            let first_in_file = self.ops.iter().all(|op| matches!(op, Op::GroupStart { .. } | Op::Indent));
            match (comment.newlines, before) {
                (_, None) if first_in_file => {}
                (0, None | Some(SyntaxKind::BlockComment)) => self.ops.push(Op::Space),
                (newlines, _) => {
                    let kept = match before {
                        None => gap.keeps_blank_before_comment(),
                        Some(_) => gap.keeps_blank_before_comment() || gap.keeps_blank_behind_comment(),
                    };
                    self.ops.push(Op::Hard { blank: newlines > 1 && kept });
                }
            }
            self.ops.push(Op::Comment(comment.place));
            before = Some(comment.kind);
        }
        let blank = leading.newlines > 1 && gap.keeps_blank_behind_comment();
        match before {
            None => gap.with_blank(leading.newlines > 1),
            Some(SyntaxKind::BlockComment) if leading.newlines == 0 => gap.same_line_comment(),
            Some(_) => Gap::Hard.with_blank(blank),
        }
    }

    fn push_gap(&mut self, gap: Gap) {
        match gap {
            Gap::Nothing => {}
            Gap::Space => self.ops.push(Op::Space),
            Gap::Line | Gap::First | Gap::Last => self.ops.push(Op::Line { blank: false }),
            Gap::Soft => self.ops.push(Op::SoftLine),
            Gap::Statement { blank } => self.ops.push(Op::Line { blank }),
            Gap::Fill => self.ops.push(Op::Fill),
            Gap::Hard => self.ops.push(Op::Hard { blank: false }),
            Gap::HardBlank => self.ops.push(Op::Hard { blank: true }),
        }
    }

    fn token(&mut self, token: &SyntaxToken, gap: Gap) {
        let gap = self.comments(gap);
        self.push_gap(gap);
        self.ops.push(match token.kind() {
            SyntaxKind::BypassWord => Op::Word("bypass"),
            SyntaxKind::RetriesWord => Op::Word("retries"),
            _ => Op::Text(Place::of(token)),
        });
        self.position += 1;
    }

    fn node(&mut self, node: &SyntaxNode, gap: Gap) {
        let brackets = brackets(node.kind()).filter(|(_, _, inside)| *inside != Inside::Bare || has_comma(node));
        let continued = gaps::is_continued(node);
        // The gap before a node is not part of it, and so outside of its indentation.
        let mut first_gap = Some(gap);
        if continued {
            let gap = self.comments(gap);
            self.push_gap(gap);
            first_gap = Some(Gap::Nothing);
            self.ops.push(Op::Indent);
        }
        let separator = if gaps::is_filled(node) { Gap::Fill } else { Gap::Line };
        let mut inside: Option<Inside> = None;
        let mut opened = false;
        let mut previous: Option<SyntaxKind> = None;
        let children = node.children_with_tokens().filter(|child| !child.kind().is_trivia());
        let children: Vec<_> = children.collect();
        for (index, child) in children.iter().enumerate() {
            let first_kind = match child {
                NodeOrToken::Token(token) => Some(token.kind()),
                NodeOrToken::Node(child) => first_token_kind(child),
            };
            let Some(first_kind) = first_kind else { continue };
            let gap = match (first_gap.take(), inside, previous) {
                (Some(gap), _, _) => gap,
                (None, Some(inside), _) if std::mem::take(&mut opened) => gap_behind_open(inside),
                (None, Some(Inside::Block), Some(SyntaxKind::ElseKeyword)) => Gap::Space,
                (None, Some(Inside::Block), _) => Gap::Statement { blank: false },
                (None, Some(_), Some(SyntaxKind::Comma)) => separator,
                (None, _, Some(previous)) => self.between(node.kind(), previous, first_kind),
                (None, _, None) => Gap::Nothing,
            };
            match child {
                NodeOrToken::Token(token) => match (brackets, inside) {
                    (Some((open, close, kind)), None) if token.kind() == open => {
                        self.token(token, gap);
                        let empty = children.get(index + 1).is_none_or(|next| next.kind() == close);
                        if empty && self.next_comments().is_empty() {
                            previous = Some(token.kind());
                            continue;
                        }
                        let force = match kind {
                            Inside::Block => has_newline_behind(node, token),
                            Inside::Padded | Inside::Tight => self.at_line_end(),
                            Inside::Bare => first_comma_ends_line(node),
                        };
                        self.ops.push(Op::GroupStart { force });
                        self.ops.push(Op::Indent);
                        inside = Some(kind);
                        opened = true;
                    }
                    (Some((_, close, _)), Some(kind)) if token.kind() == close => {
                        self.close(token, kind);
                        inside = None;
                    }
                    (_, _) => self.token(token, gap),
                },
                NodeOrToken::Node(child) if inside.is_none() && gaps::is_body(node.kind(), child, previous) => {
                    self.body(child);
                }
                NodeOrToken::Node(child) => self.node(child, gap),
            }
            previous = match child {
                NodeOrToken::Token(token) => Some(token.kind()),
                NodeOrToken::Node(child) => child.last_token().map(|token| token.kind()),
            };
        }
        if continued {
            self.ops.push(Op::Dedent);
        }
    }

    /// The bracket that ends a group.
    fn close(&mut self, token: &SyntaxToken, kind: Inside) {
        let gap = match kind {
            Inside::Block => Gap::Last,
            Inside::Padded => Gap::Line,
            Inside::Tight => Gap::Soft,
            Inside::Bare => Gap::Nothing,
        };
        let gap = self.comments(gap);
        self.ops.push(Op::Dedent);
        self.push_gap(gap);
        self.ops.push(Op::Text(Place::of(token)));
        self.ops.push(Op::GroupEnd);
        self.position += 1;
    }

    /// The statement after `if (c)` and the like, when it is not a block.
    fn body(&mut self, child: &SyntaxNode) {
        let hard = self.at_line_end();
        let gap = if self.next_comments().is_empty() {
            self.ops.push(Op::BodyStart { hard });
            Gap::Nothing
        } else {
            // A comment is between them: the body goes below it.
            self.ops.push(Op::Indent);
            Gap::Hard
        };
        self.node(child, gap);
        self.ops.push(match gap {
            Gap::Hard => Op::Dedent,
            _ => Op::BodyEnd,
        });
    }

    fn between(&self, parent: SyntaxKind, previous: SyntaxKind, next: SyntaxKind) -> Gap {
        if next == SyntaxKind::ElseKeyword && parent == SyntaxKind::IfStmt && previous != SyntaxKind::RightBrace {
            return if self.at_line_end() { Gap::Hard } else { Gap::Fill };
        }
        gaps::between(parent, previous, next)
    }
}

impl Place {
    /// The range of a token, without blanks at the end of a comment.
    fn of(token: &SyntaxToken) -> Place {
        let start = u32::from(token.text_range().start());
        Place { start, end: start + token.text().trim_end().len() as u32 }
    }
}

fn first_token_kind(node: &SyntaxNode) -> Option<SyntaxKind> {
    node.first_token().map(|token| token.kind())
}

fn has_newline_behind(node: &SyntaxNode, open: &SyntaxToken) -> bool {
    let behind = open.text_range().end() - node.text_range().start();
    node.text().slice(behind..).contains_char('\n')
}

fn has_comma(node: &SyntaxNode) -> bool {
    node.children_with_tokens().any(|child| child.kind() == SyntaxKind::Comma)
}

/// Whether a list without brackets continues below its first comma.
fn first_comma_ends_line(node: &SyntaxNode) -> bool {
    let comma = node.children_with_tokens().find(|child| child.kind() == SyntaxKind::Comma);
    comma
        .and_then(|comma| comma.into_token()?.next_token())
        .is_some_and(|next| next.kind() == SyntaxKind::Whitespace && next.text().contains('\n'))
}

/// The gap after the bracket that starts a group.
fn gap_behind_open(inside: Inside) -> Gap {
    match inside {
        Inside::Block => Gap::First,
        Inside::Padded => Gap::Line,
        Inside::Tight => Gap::Soft,
        Inside::Bare => Gap::Space,
    }
}
