//! Models.

use super::cursor::{Exactly, NodeCursor};
use super::{bytes, expressions, process};
use crate::ast::{Abstraction, Model, ModelClause, ModelPath};
use crate::tree::SyntaxKind;
use smol_str::SmolStr;

pub(super) fn model(node: NodeCursor) -> Model {
    Model { name: node.name(), clauses: node.nodes().filter_map(clause).exactly(), span: node.span() }
}

fn clause(node: NodeCursor) -> Option<ModelClause> {
    let clause = match node.kind() {
        SyntaxKind::ModelProcess => ModelClause::Process(node.name()),
        SyntaxKind::ModelSlice => ModelClause::Slice(node.names().exactly()),
        SyntaxKind::ModelEnvironment => ModelClause::Environment(process(node)),
        SyntaxKind::ModelProperty => {
            let (formula, span) = bytes(node)?;
            ModelClause::Property(formula, span)
        }
        SyntaxKind::ModelBound => ModelClause::Bound(node.name(), node.int()?.0),
        SyntaxKind::ModelAbstract => {
            let path = path(node.node(SyntaxKind::ModelPath)?);
            let abstraction = |kind| node.token(kind).is_some();
            if abstraction(SyntaxKind::DropWord) {
                ModelClause::Abstract(Abstraction::Drop, path)
            } else if abstraction(SyntaxKind::HashWord) {
                ModelClause::Abstract(Abstraction::Hash, path)
            } else if abstraction(SyntaxKind::ForgetWord) {
                ModelClause::Abstract(Abstraction::Forget, path)
            } else {
                let [from, to] = expressions::several(node);
                ModelClause::Range(path, from, to)
            }
        }
        _ => return None,
    };
    Some(clause)
}

fn path(node: NodeCursor) -> ModelPath {
    let steps = node
        .tokens()
        .filter(|token| matches!(token.kind(), SyntaxKind::Ident | SyntaxKind::Int))
        .skip(1)
        .map(|token| (SmolStr::new(token.text()), token.span()));
    ModelPath { base: node.plain_name(), steps: steps.exactly(), span: node.span() }
}
