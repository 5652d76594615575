//! The parts of a file that an editor can fold, from syntax alone; and the ranges around a place, the innermost first.

use crate::workspace::Workspace;
use quaject_esp_syntax::tree::{SyntaxKind, SyntaxNode};

/// What is folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FoldKind {
    Code,
    Comment,
    Imports,
}

/// A part that can be folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// First byte and one past the last; more than one line.
    pub range: (u32, u32),
    #[allow(missing_docs)]
    pub kind: FoldKind,
}

impl Workspace {
    /// What can be folded in a file, in order of text.
    pub fn folds(&self, path: &str) -> Vec<Fold> {
        let Some(parse) = self.parse(path) else { return Vec::new() };
        let tree = parse.tree();
        let mut folds: Vec<Fold> = tree
            .descendants()
            .filter(|node| is_folded(node.kind()))
            .filter_map(|node| braces(&node))
            .map(|range| Fold { range, kind: FoldKind::Code })
            .collect();
        folds.extend(comments(&tree));
        folds.extend(imports(&tree));
        folds.sort_by_key(|fold| fold.range);
        folds
    }

    /// The ranges of syntax around a place, the innermost first.
    pub fn selection_ranges(&self, path: &str, offset: u32) -> Vec<(u32, u32)> {
        let Some(parse) = self.parse(path) else { return Vec::new() };
        let tree = parse.tree();
        let Some(token) = tree.token_at_offset(offset.min(tree.text_range().end().into()).into()).right_biased() else {
            return Vec::new();
        };
        let nodes = token.parent_ancestors().map(|node| node.text_range());
        let mut ranges: Vec<(u32, u32)> = std::iter::once(token.text_range())
            .chain(nodes)
            .map(|range| (range.start().into(), range.end().into()))
            .collect();
        ranges.dedup();
        ranges
    }
}

fn is_folded(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::Block
            | SyntaxKind::AltStmt
            | SyntaxKind::MatchStmt
            | SyntaxKind::RecordType
            | SyntaxKind::UnionType
            | SyntaxKind::EnumType
            | SyntaxKind::Layout
            | SyntaxKind::Interface
            | SyntaxKind::FastPath
            | SyntaxKind::FastPathProcess
            | SyntaxKind::Model
            | SyntaxKind::ItemBlock
    )
}

/// From the first brace of a node to its last one, if there is a line break between.
fn braces(node: &SyntaxNode) -> Option<(u32, u32)> {
    let tokens = || node.children_with_tokens().filter_map(|part| part.into_token());
    let start = tokens().find(|token| token.kind() == SyntaxKind::LeftBrace)?.text_range().start();
    let end = tokens().filter(|token| token.kind() == SyntaxKind::RightBrace).last()?.text_range().end();
    let text = node.text().slice(start - node.text_range().start()..end - node.text_range().start());
    text.contains_char('\n').then(|| (start.into(), end.into()))
}

/// Comments of several lines.
fn comments(tree: &SyntaxNode) -> Vec<Fold> {
    let mut folds: Vec<Fold> = Vec::new();
    let mut push = |range: (u32, u32), lines: usize| {
        if lines > 1 {
            folds.push(Fold { range, kind: FoldKind::Comment });
        }
    };
    let mut run: Option<((u32, u32), usize)> = None;
    for token in tree.descendants_with_tokens().filter_map(|part| part.into_token()) {
        let range = (u32::from(token.text_range().start()), u32::from(token.text_range().end()));
        match token.kind() {
            SyntaxKind::LineComment => {
                run = Some(run.map_or((range, 1), |(all, lines)| ((all.0, range.1), lines + 1)));
            }
            SyntaxKind::BlockComment => push(range, token.text().lines().count()),
            SyntaxKind::Whitespace if token.text().matches('\n').count() <= 1 => {}
            _ => run.take().into_iter().for_each(|(range, lines)| push(range, lines)),
        }
    }
    run.into_iter().for_each(|(range, lines)| push(range, lines));
    folds
}

/// Two and more imports in a row.
fn imports(tree: &SyntaxNode) -> Vec<Fold> {
    let mut runs: Vec<(u32, u32, usize)> = Vec::new();
    let mut is_open = false;
    for node in tree.children() {
        let is_import = node.kind() == SyntaxKind::Import;
        let (start, end) = (u32::from(node.text_range().start()), u32::from(node.text_range().end()));
        match runs.last_mut().filter(|_| is_import && is_open) {
            Some(run) => (run.1, run.2) = (end, run.2 + 1),
            None if is_import => runs.push((start, end, 1)),
            None => {}
        }
        is_open = is_import;
    }
    let several = runs.into_iter().filter(|(.., count)| *count > 1);
    several.map(|(start, end, _)| Fold { range: (start, end), kind: FoldKind::Imports }).collect()
}
