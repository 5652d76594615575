//! Fast paths.

use super::cursor::{Exactly, NodeCursor};
use super::{expressions, statements};
use crate::ast::{
    Direction, Element, FastPath, FastPathProcess, FastPathSetting, Name, PathRegex, StatementRef, StatementRefKind,
};
use crate::tree::SyntaxKind;
use smol_str::SmolStr;

pub(super) fn fast_path(node: NodeCursor) -> FastPath {
    let setting = |node: NodeCursor| {
        let setting = match node.tokens().next()?.kind() {
            SyntaxKind::BoundWord => FastPathSetting::Bound,
            SyntaxKind::BypassWord => FastPathSetting::Bypass,
            SyntaxKind::RetriesWord => FastPathSetting::Retries,
            _ => return None,
        };
        let (value, _) = node.int()?;
        Some((setting, value, node.span()))
    };
    let function = |node: NodeCursor| Some((node.token(SyntaxKind::String)?.bytes(), node.span()));
    FastPath {
        name: node.name(),
        function: node.node(SyntaxKind::FastPathExtern).and_then(function),
        settings: node.nodes().filter(|n| n.kind() == SyntaxKind::FastPathSetting).filter_map(setting).exactly(),
        processes: node.nodes().filter(|n| n.kind() == SyntaxKind::FastPathProcess).map(process).exactly(),
        span: node.span(),
    }
}

fn process(node: NodeCursor) -> FastPathProcess {
    let item = |node: NodeCursor| {
        let alias = node.token(SyntaxKind::AsWord).map(|_| node.name());
        (first_statement(node), alias)
    };
    let list = node.node(SyntaxKind::StatementList);
    let exit = node.node(SyntaxKind::ExitField);
    FastPathProcess {
        process: node.name(),
        replica: node.node(SyntaxKind::Replica).and_then(NodeCursor::int),
        statements: list.map_or_else(Vec::new, |list| {
            list.nodes().filter(|n| n.kind() == SyntaxKind::StatementItem).map(item).exactly()
        }),
        start: node
            .node(SyntaxKind::StartField)
            .and_then(|start| start.node(SyntaxKind::Element))
            .map_or_else(|| missing_element(node), element),
        follows: node.node(SyntaxKind::FollowsField).map(regex_inside),
        exit: exit.map_or_else(Vec::new, |exit| {
            exit.nodes().filter(|n| n.kind() == SyntaxKind::Element).map(element).exactly()
        }),
        span: node.span(),
    }
}

fn missing_element(node: NodeCursor) -> Element {
    Element { statement: missing_statement(node), predicate: None, peer: None, yield_to: None, span: node.span() }
}

fn missing_statement(node: NodeCursor) -> StatementRef {
    let name = Name { text: SmolStr::default(), span: node.span() };
    StatementRef { kind: StatementRefKind::Channel(name, None, None), span: node.span() }
}

fn first_statement(node: NodeCursor) -> StatementRef {
    node.node(SyntaxKind::StatementRef).map_or_else(|| missing_statement(node), statement)
}

fn statement(node: NodeCursor) -> StatementRef {
    let kind = match node.token(SyntaxKind::Hash) {
        Some(_) => StatementRefKind::Label(statements::label(node)),
        None => {
            let direction = match (node.token(SyntaxKind::InKeyword), node.token(SyntaxKind::OutKeyword)) {
                (Some(_), _) => Some(Direction::In),
                (None, Some(_)) => Some(Direction::Out),
                (None, None) => None,
            };
            StatementRefKind::Channel(node.name(), direction, node.int().map(|(number, _)| number))
        }
    };
    StatementRef { kind, span: node.span() }
}

fn element(node: NodeCursor) -> Element {
    let yield_to = node.node(SyntaxKind::YieldTo);
    Element {
        statement: first_statement(node),
        predicate: node.node(SyntaxKind::Predicate).map(|node| Box::new(expressions::first(node))),
        peer: node.node(SyntaxKind::Peer).map(|node| Box::new(first_statement(node))),
        yield_to: yield_to
            .map(|node| Box::new((node.name(), node.node(SyntaxKind::Replica).and_then(NodeCursor::int)))),
        span: node.span(),
    }
}

/// The expression in a `follows` field or in parentheses.
fn regex_inside(node: NodeCursor) -> PathRegex {
    node.nodes().find_map(regex).unwrap_or(PathRegex::Sequence(Vec::new()))
}

fn regex(node: NodeCursor) -> Option<PathRegex> {
    let regex = match node.kind() {
        SyntaxKind::Choice => PathRegex::Choice(node.nodes().filter_map(regex).exactly()),
        SyntaxKind::Sequence => {
            let mut parts: Vec<PathRegex> = node.nodes().filter_map(regex).exactly();
            match parts.len() {
                1 => parts.swap_remove(0),
                _ => PathRegex::Sequence(parts),
            }
        }
        SyntaxKind::Element => PathRegex::Element(Box::new(element(node))),
        SyntaxKind::Group => regex_inside(node),
        SyntaxKind::Repetition => {
            let mut numbers = node.tokens().filter(|token| token.kind() == SyntaxKind::Int).map(|token| token.int());
            let sign = node.tokens().next().map(|token| token.kind());
            let (min, max) = match sign {
                Some(SyntaxKind::Star) => (0, None),
                Some(SyntaxKind::Plus) => (1, None),
                Some(SyntaxKind::Question) => (0, Some(1)),
                Some(_) | None => (numbers.next().unwrap_or(0), Some(numbers.next().unwrap_or(0))),
            };
            PathRegex::Repeat(Box::new(regex_inside(node)), min, max)
        }
        _ => return None,
    };
    Some(regex)
}
