//! The space between two tokens: nothing, a blank, or a possible line break.

use crate::tree::{SyntaxKind, SyntaxNode};
use rowan::NodeOrToken;

/// The space before a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// Nothing.
    Nothing,
    /// A blank.
    Space,
    /// A blank, or a new line if the list around is open.
    Line,
    /// Nothing, or a new line if the list around is open.
    Soft,
    /// Between statements or items: as `Line`, and an empty line stays.
    Statement {
        /// There is an empty line.
        blank: bool,
    },
    /// Before the first statement: as `Line`.
    First,
    /// Behind the last statement: as `Line`.
    Last,
    /// A blank, or a new line if the next piece does not fit.
    Fill,
    /// A new line.
    Hard,
    /// An empty line.
    HardBlank,
}

impl Gap {
    /// Whether the author's empty lines are kept before a comment in this gap.
    pub(super) fn keeps_blank_before_comment(self) -> bool {
        match self {
            Gap::Statement { .. } | Gap::Last | Gap::Hard | Gap::HardBlank => true,
            Gap::Nothing | Gap::Space | Gap::Line | Gap::Soft | Gap::First | Gap::Fill => false,
        }
    }

    /// Whether the author's empty lines are kept after a comment in this gap.
    pub(super) fn keeps_blank_behind_comment(self) -> bool {
        match self {
            Gap::Statement { .. } | Gap::First | Gap::Hard | Gap::HardBlank => true,
            Gap::Nothing | Gap::Space | Gap::Line | Gap::Soft | Gap::Last | Gap::Fill => false,
        }
    }

    /// With an empty line if `blank` is set and the gap can have one.
    pub(super) fn with_blank(self, blank: bool) -> Gap {
        match self {
            Gap::Statement { .. } => Gap::Statement { blank },
            Gap::Hard | Gap::HardBlank if blank => Gap::HardBlank,
            Gap::Nothing
            | Gap::Space
            | Gap::Line
            | Gap::Soft
            | Gap::First
            | Gap::Last
            | Gap::Fill
            | Gap::Hard
            | Gap::HardBlank => self,
        }
    }

    /// The gap after a `/* */` on the same line.
    pub(super) fn same_line_comment(self) -> Gap {
        match self {
            Gap::Nothing => Gap::Space,
            Gap::Soft => Gap::Line,
            Gap::Space
            | Gap::Line
            | Gap::Statement { .. }
            | Gap::First
            | Gap::Last
            | Gap::Fill
            | Gap::Hard
            | Gap::HardBlank => self,
        }
    }
}

/// The gap between two adjacent tokens of a `parent`, lists and blocks aside.
pub(super) fn between(parent: SyntaxKind, previous: SyntaxKind, next: SyntaxKind) -> Gap {
    use SyntaxKind as K;
    match (parent, previous, next) {
        (K::SourceFile, _, _) => Gap::Statement { blank: false },
        // Operators at which a long line is broken.
        (K::BinaryExpr, previous, _) if is_operator(previous) => Gap::Fill,
        (K::Alternatives, K::Pipe, _) => Gap::Fill,
        (K::ConditionalExpr, _, K::Question | K::Colon) => Gap::Fill,
        (K::BinaryExpr | K::ConditionalExpr, _, _) => Gap::Space,
        // `eos |> {}`: a value, not a block without statements.
        (K::RecordExpr | K::RecordPattern, K::LeftBrace, K::RightBrace) => Gap::Nothing,
        (_, _, K::Semicolon | K::Comma | K::RightParen | K::RightBracket | K::Colon) => Gap::Nothing,
        (_, K::LeftParen | K::LeftBracket, _) => Gap::Nothing,
        (K::FieldExpr | K::FieldStep | K::ModelPath, _, _) => Gap::Nothing,
        (_, K::Dot, _) | (_, _, K::Dot) => Gap::Nothing,
        (_, K::Hash | K::Dollar | K::At, _) => Gap::Nothing,
        (K::UnaryExpr | K::LiteralPattern | K::EqualPattern | K::StatementRef | K::Label, _, _) => Gap::Nothing,
        (_, K::DotDot, _) | (_, _, K::DotDot) => Gap::Nothing,
        (K::BytesType, _, _) => Gap::Nothing,
        (K::Repetition, previous, _) if previous != K::Comma => Gap::Nothing,
        (K::Place | K::IndexStep | K::IndexExpr | K::ArrayType | K::Replica, _, K::LeftBracket) => Gap::Nothing,
        (
            K::Process | K::Instance | K::ModelEnvironment | K::ProcessIdExpr | K::FastPathProcess | K::YieldTo,
            _,
            K::LeftBracket,
        ) => Gap::Nothing,
        (
            K::CallExpr
            | K::CallStmt
            | K::ConvertExpr
            | K::Channel
            | K::Interface
            | K::InterfaceEntry
            | K::Extern
            | K::Fn
            | K::Procedure
            | K::ProcedureParameter
            | K::Template
            | K::Instance
            | K::PidType
            | K::Import
            | K::InOperation
            | K::OutOperation
            | K::ExitStmt
            | K::AssertStmt
            | K::AssertItem,
            _,
            K::LeftParen,
        ) => Gap::Nothing,
        _ => Gap::Space,
    }
}

fn is_operator(kind: SyntaxKind) -> bool {
    use SyntaxKind as K;
    matches!(
        kind,
        K::Star
            | K::Slash
            | K::Percent
            | K::Plus
            | K::Minus
            | K::LessLess
            | K::GreaterGreater
            | K::Ampersand
            | K::Caret
            | K::Pipe
            | K::EqualEqual
            | K::BangEqual
            | K::Less
            | K::LessEqual
            | K::Greater
            | K::GreaterEqual
            | K::AndAnd
            | K::PipePipe
    )
}

/// Whether lines after the first of a node are indented: expressions with operators, but not each part of one.
pub(super) fn is_continued(node: &SyntaxNode) -> bool {
    let operators =
        |kind| matches!(kind, SyntaxKind::BinaryExpr | SyntaxKind::ConditionalExpr | SyntaxKind::Alternatives);
    operators(node.kind()) && !node.parent().is_some_and(|parent| operators(parent.kind()))
}

/// Whether a child is the statement that an `if`, `while` or arm governs, and not a block.
pub(super) fn is_body(parent: SyntaxKind, child: &SyntaxNode, previous: Option<SyntaxKind>) -> bool {
    let governs = match (parent, previous) {
        (SyntaxKind::IfStmt, Some(SyntaxKind::RightParen)) => true,
        (SyntaxKind::IfStmt, Some(SyntaxKind::ElseKeyword)) => child.kind() != SyntaxKind::IfStmt,
        (SyntaxKind::WhileStmt, Some(SyntaxKind::RightParen)) => true,
        (SyntaxKind::MatchArm, Some(SyntaxKind::FatArrow)) => true,
        _ => false,
    };
    governs && child.kind() != SyntaxKind::Block
}

/// An array of several lines has several elements per line if none is longer than this.
const SHORT: u32 = 10;

/// Whether an open list fills its lines: an array of short literals and names, as a table is.
pub(super) fn is_filled(node: &SyntaxNode) -> bool {
    let is_short = |element: SyntaxNode| {
        let tokens = element.descendants_with_tokens().filter_map(NodeOrToken::into_token);
        let lengths = tokens.filter(|token| !token.kind().is_trivia()).map(|token| u32::from(token.text_range().len()));
        // One token, or one with a sign: what has more may be broken itself.
        let (count, length) = lengths.fold((0, 0), |(count, sum), length| (count + 1, sum + length));
        count <= 2 && length <= SHORT
    };
    node.kind() == SyntaxKind::ArrayExpr && node.children().all(is_short)
}
