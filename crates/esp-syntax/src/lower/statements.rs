//! Blocks, declarations, statements and communication.

use super::cursor::{Exactly, NodeCursor};
use super::{constant, expressions, patterns, types};
use crate::ast::{
    AssignOperator, Block, BlockItem, Branch, Communicate, CommunicateForm, Label, Operation, Stmt, StmtKind, Var,
};
use crate::span::Span;
use crate::tree::SyntaxKind;
use smol_str::SmolStr;

/// The block that is the body of a process or function; an empty one if it is missing.
pub(super) fn body(node: NodeCursor) -> Block {
    let mut groups = 0;
    match node.node(SyntaxKind::Block) {
        Some(inner) => block(inner, &mut groups),
        None => missing_block(node),
    }
}

fn missing_block(node: NodeCursor) -> Block {
    let span = node.span();
    Block { items: Vec::new(), span: Span { start: span.end, ..span } }
}

/// A `Block` node; `groups` counts the `var`s of the process.
fn block(node: NodeCursor, groups: &mut u32) -> Block {
    // Large blocks are what large files consist of: no doubling, and small ones leave no room unused.
    let mut items = Vec::with_capacity(node.nodes().count());
    for child in node.nodes() {
        match child.kind() {
            SyntaxKind::Label => items.push(BlockItem::Label(label(child))),
            SyntaxKind::Var => {
                let group = *groups;
                *groups += 1;
                items.extend(child.nodes().filter(|n| n.kind() == SyntaxKind::Declarator).map(|declarator| {
                    BlockItem::Var(Var {
                        group,
                        name: declarator.name(),
                        ty: types::optional_value(declarator).map(Box::new),
                        value: declarator.nodes().find_map(expressions::optional).map(Box::new),
                    })
                }));
            }
            SyntaxKind::Const => items.push(BlockItem::Const(Box::new(constant(child)))),
            _ => items.extend(optional(child, groups).map(BlockItem::Stmt)),
        }
    }
    Block { items, span: node.span() }
}

/// A label of a block or of a fast path: `#` and the name or number after it.
pub(super) fn label(node: NodeCursor) -> Label {
    let name = node.tokens().find(|token| token.kind() != SyntaxKind::Hash);
    let text = name.map_or_else(SmolStr::default, |token| SmolStr::new(token.text()));
    Label { text, span: node.span() }
}

/// The node as a statement, if it is one.
fn optional(node: NodeCursor, groups: &mut u32) -> Option<Stmt> {
    let kind = match node.kind() {
        SyntaxKind::Error => StmtKind::Error,
        SyntaxKind::Block => StmtKind::Block(block(node, groups)),
        SyntaxKind::IfStmt => if_statement(node, groups),
        SyntaxKind::WhileStmt => {
            let (condition, body) = condition_and_statements(node, groups);
            let body = body.into_iter().next().unwrap_or(Stmt { kind: StmtKind::Error, span: node.span() });
            StmtKind::While(condition, Box::new(body))
        }
        SyntaxKind::ForStmt => {
            let [from, to] = expressions::several(node);
            let body = node.node(SyntaxKind::Block).map_or_else(|| missing_block(node), |inner| block(inner, groups));
            StmtKind::For(Box::new(node.name()), Box::new(from), Box::new(to), Box::new(body))
        }
        SyntaxKind::MatchStmt => {
            let arms = node.nodes().filter(|child| child.kind() == SyntaxKind::MatchArm);
            let arm = |arm: NodeCursor| (patterns::first(arm), first_behind_pattern(arm, groups));
            StmtKind::Match(expressions::first(node), arms.map(arm).exactly())
        }
        SyntaxKind::BreakStmt => StmtKind::Break(loop_label(node)),
        SyntaxKind::ContinueStmt => StmtKind::Continue(loop_label(node)),
        SyntaxKind::YieldStmt => StmtKind::Yield,
        SyntaxKind::ReturnStmt => StmtKind::Return(node.nodes().find_map(expressions::optional)),
        SyntaxKind::ExitStmt => StmtKind::Exit(expressions::first(node)),
        SyntaxKind::AssertStmt => StmtKind::Assert(expressions::first(node), message(node)),
        SyntaxKind::PlainStmt | SyntaxKind::AltStmt => communicate(node, groups),
        SyntaxKind::CallStmt => StmtKind::Call(node.name(), expressions::all(node)),
        SyntaxKind::AssignStmt => {
            let operator = node
                .tokens()
                .find_map(|token| expressions::update_operator(token.kind()))
                .map_or(AssignOperator::Set, AssignOperator::Update);
            match node.node(SyntaxKind::Place) {
                Some(place) => {
                    StmtKind::Assign(Box::new(patterns::place(place)), operator, Box::new(expressions::first(node)))
                }
                None => StmtKind::Error,
            }
        }
        _ => return None,
    };
    Some(Stmt { kind, span: node.span() })
}

/// The label of the loop that a `break` or `continue` means.
fn loop_label(node: NodeCursor) -> Option<Label> {
    let token = node.tokens().find(|token| matches!(token.kind(), SyntaxKind::Int | SyntaxKind::Ident))?;
    Some(Label { text: token.text().into(), span: token.span() })
}

fn first_behind_pattern(arm: NodeCursor, groups: &mut u32) -> Stmt {
    arm.nodes()
        .skip(1)
        .find_map(|child| optional(child, groups))
        .unwrap_or(Stmt { kind: StmtKind::Error, span: arm.span() })
}

fn if_statement(node: NodeCursor, groups: &mut u32) -> StmtKind {
    let (condition, statements) = condition_and_statements(node, groups);
    let mut statements = statements.into_iter();
    let condition = condition.unwrap_or_else(|| expressions::first(node));
    let then = statements.next().unwrap_or(Stmt { kind: StmtKind::Error, span: node.span() });
    StmtKind::If(condition, Box::new(then), statements.next().map(Box::new))
}

/// The expression in the parentheses of a node, and its statements. An error node can be either: it is the condition
/// as long as the `)` has not been seen.
fn condition_and_statements(node: NodeCursor, groups: &mut u32) -> (Option<crate::ast::Expr>, Vec<Stmt>) {
    let (mut condition, mut statements) = (None, Vec::new());
    let mut inside = false;
    for child in node.children() {
        match child {
            rowan::NodeOrToken::Token(token) => match token.kind() {
                SyntaxKind::LeftParen => inside = true,
                SyntaxKind::RightParen => inside = false,
                _ => {}
            },
            rowan::NodeOrToken::Node(child) if inside || child.kind() != SyntaxKind::Error => {
                match expressions::optional(child) {
                    Some(expression) => condition = condition.or(Some(expression)),
                    None => statements.extend(optional(child, groups)),
                }
            }
            rowan::NodeOrToken::Node(child) => statements.extend(optional(child, groups)),
        }
    }
    (condition, statements)
}

fn communicate(node: NodeCursor, groups: &mut u32) -> StmtKind {
    let idle = node.token(SyntaxKind::IdleWord).map(|token| token.span());
    if node.kind() == SyntaxKind::PlainStmt {
        let Some((operation, span)) = node.nodes().find_map(operation) else {
            return StmtKind::Error;
        };
        let body = node.node(SyntaxKind::Block).map(|inner| block(inner, groups));
        let branches = vec![Branch { guard: None, operation, body, span }];
        let form = CommunicateForm::Plain;
        return StmtKind::Communicate(Box::new(Communicate { idle, form, branches, otherwise: None }));
    }
    let form = match node.token(SyntaxKind::PriKeyword) {
        Some(_) => CommunicateForm::PriAlt,
        None => CommunicateForm::Alt,
    };
    if node.token(SyntaxKind::LeftBrace).is_none() {
        return StmtKind::Error;
    }
    let mut branches = Vec::new();
    let mut otherwise = None;
    for child in node.nodes() {
        match child.kind() {
            SyntaxKind::Branch => branches.extend(branch(child, groups)),
            SyntaxKind::Block => otherwise = Some(block(child, groups)),
            _ => {}
        }
    }
    branches.shrink_to_fit();
    StmtKind::Communicate(Box::new(Communicate { idle, form, branches, otherwise }))
}

fn branch(node: NodeCursor, groups: &mut u32) -> Option<Branch> {
    let (operation, span) = node.nodes().find_map(operation)?;
    let guard = node.node(SyntaxKind::Guard);
    let span = guard.map_or(span, |guard| guard.span().to(span));
    Some(Branch {
        guard: guard.map(|guard| Box::new(expressions::first(guard))),
        operation,
        body: node.node(SyntaxKind::Block).map(|inner| block(inner, groups)),
        span,
    })
}

fn operation(node: NodeCursor) -> Option<(Operation, Span)> {
    let operation = match node.kind() {
        SyntaxKind::InOperation => Operation::In(node.name(), node.nodes().filter_map(patterns::optional).exactly()),
        SyntaxKind::OutOperation => Operation::Out(node.name(), expressions::all(node)),
        SyntaxKind::AfterOperation => Operation::After(expressions::first(node), expressions::unit(node)),
        SyntaxKind::UntilOperation => Operation::Until(expressions::first(node)),
        _ => return None,
    };
    Some((operation, node.span()))
}

/// The message of an assertion.
pub(super) fn message(node: NodeCursor) -> Option<SmolStr> {
    Some(String::from_utf8_lossy(&super::bytes(node)?.0).into())
}
