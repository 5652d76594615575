//! Constants, types, layouts and replica numbers depend on each other in any order of text. Resolves them so that
//! what one needs comes before it; finds cycles. Iterative, for chains may be as long as the program.

use super::names::{Checker, Entity, Named};
use super::{constants, layouts, types};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::span::Span;
use crate::types::TypeTable;
use rustc_hash::FxHashMap;

/// Something that has to be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Node {
    Const(usize),
    Type(usize),
    Layout(usize),
    /// The replicas of every process: an instance's number depends on all processes before it.
    Processes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    Done,
}

/// Resolves every constant, type, layout and replica number.
pub(super) fn resolve(checker: &mut Checker) {
    let mut progress: FxHashMap<Node, Progress> = FxHashMap::default();
    let roots: Vec<Node> = (0..checker.consts.len())
        .map(Node::Const)
        .chain((0..checker.type_entries.len()).map(Node::Type))
        .chain((0..checker.layouts.len()).map(Node::Layout))
        .chain([Node::Processes])
        .collect();
    for root in roots {
        if progress.contains_key(&root) {
            continue;
        }
        let mut stack = vec![(root, dependencies(checker, root), 0usize)];
        progress.insert(root, Progress::Open);
        while let Some((node, needed, next)) = stack.last_mut() {
            let Some(dependency) = needed.get(*next).copied() else {
                let node = *node;
                stack.pop();
                resolve_node(checker, node);
                progress.insert(node, Progress::Done);
                continue;
            };
            *next += 1;
            match progress.get(&dependency) {
                Some(Progress::Done) => {}
                Some(Progress::Open) => {
                    let start = stack.iter().position(|(node, ..)| *node == dependency).unwrap_or(0);
                    let cycle: Vec<Node> = stack[start..].iter().map(|(node, ..)| *node).collect();
                    report_cycle(checker, &cycle);
                }
                None => {
                    progress.insert(dependency, Progress::Open);
                    stack.push((dependency, dependencies(checker, dependency), 0));
                }
            }
        }
    }
}

fn resolve_node(checker: &mut Checker, node: Node) {
    match node {
        Node::Const(entry) => constants::resolve_item(checker, entry),
        Node::Type(entry) => types::resolve_item(checker, entry),
        Node::Layout(entry) => layouts::resolve_item(checker, entry),
        Node::Processes => types::resolve_replicas(checker),
    }
}

fn describe(checker: &Checker, node: Node) -> Option<(String, Span)> {
    let name = match node {
        Node::Const(entry) => &checker.consts[entry].item.name,
        Node::Type(entry) => &checker.type_entries[entry].item.name,
        Node::Layout(entry) => &checker.layouts[entry].0.name,
        Node::Processes => return None,
    };
    Some((name.text.to_string(), name.span))
}

/// Reports a cycle once and marks its members as faulty, so that nothing follows from it.
fn report_cycle(checker: &mut Checker, cycle: &[Node]) {
    let members: Vec<(String, Span)> = cycle.iter().filter_map(|node| describe(checker, *node)).collect();
    let Some((name, span)) = members.iter().min_by_key(|(_, span)| (span.file, span.start)).cloned() else { return };
    let holds_type = cycle.iter().any(|node| matches!(node, Node::Type(_)));
    let mut diagnostic = if holds_type {
        Diagnostic::new(Code::E0301, span, format!("type `{name}` contains itself"))
            .help("types are finite: hold an index or a `pid` instead")
    } else {
        Diagnostic::new(Code::E0309, span, format!("`{name}` is defined by itself"))
    };
    for (other, place) in members.iter().filter(|(other, _)| *other != name).take(4) {
        diagnostic = diagnostic.label(*place, format!("by way of `{other}`"));
    }
    checker.report(diagnostic);
    for node in cycle {
        match *node {
            Node::Const(entry) => checker.consts[entry].value = Some(constants::Constant::Error),
            Node::Type(entry) => checker.type_entries[entry].resolved = Some(TypeTable::ERROR),
            Node::Layout(_) | Node::Processes => {}
        }
    }
}

fn dependencies(checker: &Checker, node: Node) -> Vec<Node> {
    let mut needs = Needs { checker, nodes: Vec::new() };
    match node {
        Node::Const(entry) => {
            let item = checker.consts[entry].item;
            if let Some(ty) = &item.ty {
                needs.ty(ty);
            }
            needs.expr(&item.value);
        }
        Node::Type(entry) => {
            let entry = &checker.type_entries[entry];
            needs.ty(&entry.item.ty);
            if let Some(pool) = entry.pool {
                needs.expr(&pool.capacity);
            }
        }
        Node::Layout(entry) => {
            for field in &checker.layouts[entry].0.fields {
                needs.expr(&field.width);
            }
        }
        Node::Processes => {
            for process in &checker.processes {
                if let Some(replicas) = &process.item.replicas {
                    needs.expr(replicas);
                }
            }
        }
    }
    needs.nodes
}

/// Collects the items that types and constant expressions mention.
struct Needs<'c, 'a> {
    checker: &'c Checker<'a>,
    nodes: Vec<Node>,
}

impl Needs<'_, '_> {
    fn name(&mut self, name: &ast::Name) {
        let Some(Named { entity, .. }) = self.checker.find(&name.text) else { return };
        match entity {
            Entity::Type(entry) => self.nodes.push(Node::Type(entry)),
            Entity::Const(entry) => self.nodes.push(Node::Const(entry)),
            Entity::Layout(layout) => self.nodes.push(Node::Layout(layout.0 as usize)),
            Entity::Channel(_)
            | Entity::Interface
            | Entity::Extern(_)
            | Entity::Function(_)
            | Entity::Process(_)
            | Entity::FastPath
            | Entity::Model => {}
        }
    }

    fn ty(&mut self, ty: &ast::Type) {
        match &ty.kind {
            ast::TypeKind::Error | ast::TypeKind::Int(_) | ast::TypeKind::Bool | ast::TypeKind::Pid(_) => {}
            ast::TypeKind::Bytes(bound) => self.expr(bound),
            ast::TypeKind::Named(name) => self.name(name),
            ast::TypeKind::Array(length, element) => {
                if let Some(length) = length {
                    self.expr(length);
                }
                self.ty(element);
            }
            ast::TypeKind::Record(fields) => fields.iter().for_each(|(_, ty)| self.ty(ty)),
            ast::TypeKind::Union(tags) => tags.iter().filter_map(|(_, ty)| ty.as_ref()).for_each(|ty| self.ty(ty)),
        }
    }

    fn expr(&mut self, expr: &ast::Expr) {
        match &expr.kind {
            ast::ExprKind::Error
            | ast::ExprKind::Int(_)
            | ast::ExprKind::Char(_)
            | ast::ExprKind::Bool(_)
            | ast::ExprKind::Bytes(..)
            | ast::ExprKind::OwnId => {}
            ast::ExprKind::Record(_, fields) => fields.iter().for_each(|(_, value)| self.expr(value)),
            ast::ExprKind::Array(_, elements) => elements.iter().for_each(|element| self.expr(element)),
            ast::ExprKind::Name(name) => self.name(name),
            ast::ExprKind::Call(_, arguments) => arguments.iter().for_each(|argument| self.expr(argument)),
            ast::ExprKind::Convert(_, inner) | ast::ExprKind::Unary(_, inner) | ast::ExprKind::Tag(_, inner) => {
                self.expr(inner);
            }
            ast::ExprKind::Field(inner, _) => self.expr(inner),
            ast::ExprKind::Repeat(_, left, right)
            | ast::ExprKind::Binary(_, left, right)
            | ast::ExprKind::Index(left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ast::ExprKind::Conditional(condition, left, right) => {
                self.expr(condition);
                self.expr(left);
                self.expr(right);
            }
            ast::ExprKind::Slice(base, from, to) => {
                self.expr(base);
                from.iter().chain(to).for_each(|end| self.expr(end));
            }
            ast::ExprKind::ProcessId(_, index) => {
                self.nodes.push(Node::Processes);
                if let Some(index) = index {
                    self.expr(index);
                }
            }
        }
    }
}
