//! Constants, types, layouts, replica numbers, and the functions that constants call, depend on each other in any order
//! of text. Resolves them so that what one needs comes before it; finds cycles. Iterative, for chains may be as long as
//! the program.

use super::names::{Checker, Entity, Named};
use super::{constants, layouts, signatures, types};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::FnId;
use crate::span::Span;
use crate::types::TypeTable;
use rustc_hash::{FxHashMap, FxHashSet};

/// Something that has to be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum DeclarationId {
    Const(usize),
    Type(usize),
    Layout(usize),
    /// A function that a constant calls: its signature and its body.
    Function(usize),
    /// An extern function that such a function names: its signature.
    Extern(usize),
    /// The replicas of every process: an instance's number depends on all processes before it.
    Processes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResolutionState {
    Open,
    Done,
}

/// Resolves every constant, type, layout and replica number.
pub(super) fn resolve(checker: &mut Checker) {
    let roots: Vec<DeclarationId> = (0..checker.consts.len())
        .map(DeclarationId::Const)
        .chain((0..checker.type_entries.len()).map(DeclarationId::Type))
        .chain((0..checker.layouts.len()).map(DeclarationId::Layout))
        .chain([DeclarationId::Processes])
        .collect();
    resolve_all(checker, roots);
}

/// Resolves what a constant expression depends on.
pub(super) fn resolve_for(checker: &mut Checker, expr: &ast::Expr) {
    let roots = dependencies_of(checker, expr);
    resolve_all(checker, roots);
}

/// Whether no constant that an expression depends on mentions a process.
pub(super) fn is_independent_of_processes(checker: &Checker, expr: &ast::Expr) -> bool {
    let mut open = dependencies_of(checker, expr);
    let mut seen: FxHashSet<DeclarationId> = open.iter().copied().collect();
    while let Some(node) = open.pop() {
        if node == DeclarationId::Processes {
            return false;
        }
        open.extend(dependencies(checker, node).into_iter().filter(|node| seen.insert(*node)));
    }
    true
}

fn dependencies_of(checker: &Checker, expr: &ast::Expr) -> Vec<DeclarationId> {
    let mut mentions = Vec::new();
    in_expr(expr, &mut mentions);
    mentions.into_iter().filter_map(|mention| node_of(checker, mention)).collect()
}

fn resolve_all(checker: &mut Checker, roots: Vec<DeclarationId>) {
    let mut progress: FxHashMap<DeclarationId, ResolutionState> = FxHashMap::default();
    for root in roots {
        if progress.contains_key(&root) {
            continue;
        }
        let mut stack = vec![(root, dependencies(checker, root), 0usize)];
        progress.insert(root, ResolutionState::Open);
        while let Some((node, needed, next)) = stack.last_mut() {
            let Some(dependency) = needed.get(*next).copied() else {
                let node = *node;
                stack.pop();
                resolve_node(checker, node);
                progress.insert(node, ResolutionState::Done);
                continue;
            };
            *next += 1;
            match progress.get(&dependency) {
                Some(ResolutionState::Done) => {}
                Some(ResolutionState::Open) => {
                    let start = stack.iter().position(|(node, ..)| *node == dependency).unwrap_or(0);
                    let cycle: Vec<DeclarationId> = stack[start..].iter().map(|(node, ..)| *node).collect();
                    report_cycle(checker, &cycle);
                }
                None => {
                    progress.insert(dependency, ResolutionState::Open);
                    stack.push((dependency, dependencies(checker, dependency), 0));
                }
            }
        }
    }
}

fn resolve_node(checker: &mut Checker, node: DeclarationId) {
    match node {
        DeclarationId::Const(entry) => constants::resolve_item(checker, entry),
        DeclarationId::Type(entry) => types::resolve_item(checker, entry),
        DeclarationId::Layout(entry) => layouts::resolve_item(checker, entry),
        // The constant that calls it checks its body.
        DeclarationId::Function(entry) => signatures::resolve_function(checker, FnId(entry as u32)),
        DeclarationId::Extern(entry) => signatures::resolve_extern(checker, entry),
        DeclarationId::Processes => types::resolve_replicas(checker),
    }
}

fn describe(checker: &Checker, node: DeclarationId) -> Option<(String, Span)> {
    let name = match node {
        DeclarationId::Const(entry) => &checker.consts[entry].item.name,
        DeclarationId::Type(entry) => &checker.type_entries[entry].item.name,
        DeclarationId::Layout(entry) => &checker.layouts[entry].0.name,
        DeclarationId::Function(entry) => &checker.functions[entry].item.name,
        DeclarationId::Extern(_) | DeclarationId::Processes => return None,
    };
    Some((name.text.to_string(), name.span))
}

/// Reports a cycle once and marks its members as faulty, so that nothing follows from it.
fn report_cycle(checker: &mut Checker, cycle: &[DeclarationId]) {
    // Recursion is reported where the bodies of functions are checked.
    if cycle.iter().all(|node| matches!(node, DeclarationId::Function(_))) {
        return;
    }
    let members: Vec<(String, Span)> = cycle.iter().filter_map(|node| describe(checker, *node)).collect();
    let Some((name, span)) = members.iter().min_by_key(|(_, span)| (span.file, span.start)).cloned() else { return };
    let holds_type = cycle.iter().any(|node| matches!(node, DeclarationId::Type(_)));
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
            DeclarationId::Const(entry) => checker.consts[entry].value = Some(constants::Constant::Error),
            DeclarationId::Type(entry) => checker.type_entries[entry].resolved = Some(TypeTable::ERROR),
            DeclarationId::Layout(_)
            | DeclarationId::Function(_)
            | DeclarationId::Extern(_)
            | DeclarationId::Processes => {}
        }
    }
}

fn dependencies(checker: &Checker, node: DeclarationId) -> Vec<DeclarationId> {
    let mut mentions = Vec::new();
    match node {
        DeclarationId::Const(entry) => {
            let item = checker.consts[entry].item;
            if let Some(ty) = &item.ty {
                in_type(ty, &mut mentions);
            }
            in_expr(&item.value, &mut mentions);
        }
        DeclarationId::Type(entry) => {
            let entry = &checker.type_entries[entry];
            in_type(&entry.item.ty, &mut mentions);
            if let Some(pool) = entry.pool {
                in_expr(&pool.capacity, &mut mentions);
            }
        }
        DeclarationId::Layout(entry) => {
            checker.layouts[entry].0.fields.iter().for_each(|field| in_expr(&field.width, &mut mentions));
        }
        DeclarationId::Function(entry) => return function_dependencies(checker, entry),
        DeclarationId::Extern(entry) => {
            let item = checker.externs[entry].item;
            item.parameters.iter().for_each(|(_, ty)| in_type(&ty.ty, &mut mentions));
            item.result.iter().for_each(|ty| in_type(ty, &mut mentions));
        }
        DeclarationId::Processes => {
            let replicas = checker.processes.iter().filter_map(|process| process.item.replicas.as_ref());
            replicas.for_each(|replicas| in_expr(replicas, &mut mentions));
        }
    }
    mentions.into_iter().filter_map(|mention| node_of(checker, mention)).collect()
}

/// What a function needs to be executed. Its own names hide those of the program.
fn function_dependencies(checker: &Checker, entry: usize) -> Vec<DeclarationId> {
    let item = checker.functions[entry].item;
    let mut mentions = Vec::new();
    let mut own: FxHashSet<&str> = item.parameters.iter().map(|(name, _)| name.text.as_str()).collect();
    item.parameters.iter().for_each(|(_, ty)| in_type(ty, &mut mentions));
    in_type(&item.result, &mut mentions);
    in_block(&item.body, &mut mentions, &mut own);
    let is_own = |mention: &Mention| match mention {
        Mention::Name(name) => own.contains(name.text.as_str()),
        Mention::Field(_) | Mention::Instance => false,
    };
    mentions.into_iter().filter(|mention| !is_own(mention)).filter_map(|mention| node_of(checker, mention)).collect()
}

fn in_block<'a>(block: &'a ast::Block, mentions: &mut Vec<Mention<'a>>, own: &mut FxHashSet<&'a str>) {
    for item in &block.items {
        match item {
            ast::BlockItem::Label(_) => {}
            ast::BlockItem::Var(var) => {
                own.insert(&var.name.text);
                var.ty.iter().for_each(|ty| in_type(&ty.ty, mentions));
                var.value.iter().for_each(|value| in_expr(value, mentions));
            }
            ast::BlockItem::Const(item) => {
                own.insert(&item.name.text);
                item.ty.iter().for_each(|ty| in_type(ty, mentions));
                in_expr(&item.value, mentions);
            }
            ast::BlockItem::Stmt(stmt) => in_statement(stmt, mentions, own),
        }
    }
}

fn in_statement<'a>(stmt: &'a ast::Stmt, mentions: &mut Vec<Mention<'a>>, own: &mut FxHashSet<&'a str>) {
    match &stmt.kind {
        ast::StmtKind::Error
        | ast::StmtKind::Break(_)
        | ast::StmtKind::Continue(_)
        | ast::StmtKind::Yield
        // Not in a function.
        | ast::StmtKind::Communicate(_) => {}
        ast::StmtKind::Block(block) => in_block(block, mentions, own),
        ast::StmtKind::If(condition, then, otherwise) => {
            in_expr(condition, mentions);
            in_statement(then, mentions, own);
            otherwise.iter().for_each(|otherwise| in_statement(otherwise, mentions, own));
        }
        ast::StmtKind::While(condition, body) => {
            condition.iter().for_each(|condition| in_expr(condition, mentions));
            in_statement(body, mentions, own);
        }
        ast::StmtKind::For(name, from, to, body) => {
            own.insert(&name.text);
            in_expr(from, mentions);
            in_expr(to, mentions);
            in_block(body, mentions, own);
        }
        ast::StmtKind::Match(value, arms) => {
            in_expr(value, mentions);
            for (pattern, body) in arms {
                in_pattern(pattern, mentions, own);
                in_statement(body, mentions, own);
            }
        }
        ast::StmtKind::Return(value) => value.iter().for_each(|value| in_expr(value, mentions)),
        ast::StmtKind::Exit(value) | ast::StmtKind::Assert(value, _) => in_expr(value, mentions),
        ast::StmtKind::Call(name, arguments) => {
            mentions.push(Mention::Name(name));
            arguments.iter().for_each(|argument| in_expr(argument, mentions));
        }
        ast::StmtKind::Assign(place, _, value) => {
            in_place(place, mentions);
            in_expr(value, mentions);
        }
    }
}

fn in_place<'a>(place: &'a ast::Place, mentions: &mut Vec<Mention<'a>>) {
    for step in &place.path {
        match step {
            ast::PlaceStep::Field(name) => mentions.push(Mention::Field(name)),
            ast::PlaceStep::Index(index) => in_expr(index, mentions),
            ast::PlaceStep::Slice(from, to) => from.iter().chain(to).for_each(|end| in_expr(end, mentions)),
        }
    }
}

fn in_pattern<'a>(pattern: &'a ast::Pattern, mentions: &mut Vec<Mention<'a>>, own: &mut FxHashSet<&'a str>) {
    match &pattern.kind {
        ast::PatternKind::Error
        | ast::PatternKind::Any
        | ast::PatternKind::OwnId
        | ast::PatternKind::Int(_)
        | ast::PatternKind::Bytes(_)
        | ast::PatternKind::Bool(_) => {}
        ast::PatternKind::Declare(name) => {
            own.insert(&name.text);
        }
        ast::PatternKind::Equal(value) => in_expr(value, mentions),
        ast::PatternKind::Tag(_, payload) => in_pattern(payload, mentions, own),
        ast::PatternKind::Place(place) => in_place(place, mentions),
        ast::PatternKind::Record(parts) => parts.iter().for_each(|(_, part)| in_pattern(part, mentions, own)),
        ast::PatternKind::Array(parts) | ast::PatternKind::Alternatives(parts) => {
            parts.iter().for_each(|part| in_pattern(part, mentions, own));
        }
        ast::PatternKind::Range(from, to) => {
            for end in [from, to] {
                match end {
                    ast::RangeEnd::Error | ast::RangeEnd::Int(_) => {}
                    ast::RangeEnd::Name(constant) => in_expr(constant, mentions),
                }
            }
        }
    }
    pattern.condition.iter().for_each(|condition| in_expr(condition, mentions));
}

/// Something an expression or a type mentions.
#[derive(Clone, Copy)]
enum Mention<'a> {
    Name(&'a ast::Name),
    /// A name behind a dot, which may be a layout's.
    Field(&'a ast::Name),
    /// `@P`
    Instance,
}

fn node_of(checker: &Checker, mention: Mention) -> Option<DeclarationId> {
    let name = match mention {
        Mention::Instance => return Some(DeclarationId::Processes),
        Mention::Field(name) => {
            let entity = checker.lookup(name)?.entity;
            return match entity {
                Entity::Layout(layout) => Some(DeclarationId::Layout(layout.0 as usize)),
                _ => None,
            };
        }
        Mention::Name(name) => name,
    };
    let Named { entity, .. } = checker.lookup(name)?;
    match entity {
        Entity::Type(entry) => Some(DeclarationId::Type(entry)),
        Entity::Const(entry) => Some(DeclarationId::Const(entry)),
        Entity::Layout(layout) => Some(DeclarationId::Layout(layout.0 as usize)),
        Entity::Function(function) => Some(DeclarationId::Function(function.0 as usize)),
        Entity::Extern(function) => Some(DeclarationId::Extern(function.0 as usize)),
        Entity::Channel(_)
        | Entity::Interface
        | Entity::Process(_)
        | Entity::AbsentProcess
        | Entity::Template(_)
        | Entity::Procedure(_)
        | Entity::FastPath
        | Entity::Model => None,
    }
}

/// The names in a type's lengths and bounds, and of the types it is made of.
pub(super) fn names_in_type<'a>(ty: &'a ast::Type, names: &mut Vec<&'a ast::Name>) {
    let mut mentions = Vec::new();
    in_type(ty, &mut mentions);
    names.extend(mentions.into_iter().filter_map(|mention| match mention {
        Mention::Name(name) => Some(name),
        Mention::Field(_) | Mention::Instance => None,
    }));
}

fn in_type<'a>(ty: &'a ast::Type, mentions: &mut Vec<Mention<'a>>) {
    match &ty.kind {
        ast::TypeKind::Error | ast::TypeKind::Int(_) | ast::TypeKind::Bool | ast::TypeKind::Pid(_) => {}
        ast::TypeKind::Bytes(bound) => in_expr(bound, mentions),
        ast::TypeKind::Named(name) => mentions.push(Mention::Name(name)),
        ast::TypeKind::Array(length, element) => {
            length.iter().for_each(|length| in_expr(length, mentions));
            in_type(element, mentions);
        }
        ast::TypeKind::Record(fields) => fields.iter().for_each(|(_, ty)| in_type(ty, mentions)),
        ast::TypeKind::Enum(enumeration) => {
            enumeration.cases.iter().filter_map(|(_, code)| code.as_ref()).for_each(|code| in_expr(code, mentions));
        }
        ast::TypeKind::Union(tags) => {
            tags.iter().filter_map(|(_, ty)| ty.as_ref()).for_each(|ty| in_type(ty, mentions))
        }
    }
}

fn in_expr<'a>(expr: &'a ast::Expr, mentions: &mut Vec<Mention<'a>>) {
    match &expr.kind {
        ast::ExprKind::Error
        | ast::ExprKind::Int(_)
        | ast::ExprKind::Char(_)
        | ast::ExprKind::Bool(_)
        | ast::ExprKind::Bytes(..)
        | ast::ExprKind::OwnId => {}
        ast::ExprKind::Record(_, fields) => fields.iter().for_each(|(_, value)| in_expr(value, mentions)),
        ast::ExprKind::Call(name, parts) => {
            mentions.push(Mention::Name(name));
            parts.iter().for_each(|part| in_expr(part, mentions));
        }
        ast::ExprKind::Array(_, parts) => {
            parts.iter().for_each(|part| in_expr(part, mentions));
        }
        ast::ExprKind::Name(name) => mentions.push(Mention::Name(name)),
        ast::ExprKind::Convert(_, inner)
        | ast::ExprKind::Duration(inner, _)
        | ast::ExprKind::Unary(_, inner)
        | ast::ExprKind::Tag(_, inner) => in_expr(inner, mentions),
        ast::ExprKind::Field(inner, name) => {
            mentions.push(Mention::Field(name));
            in_expr(inner, mentions);
        }
        ast::ExprKind::Repeat(_, left, right)
        | ast::ExprKind::Binary(_, left, right)
        | ast::ExprKind::Index(left, right) => {
            in_expr(left, mentions);
            in_expr(right, mentions);
        }
        ast::ExprKind::Conditional(condition, left, right) => {
            [condition, left, right].into_iter().for_each(|part| in_expr(part, mentions));
        }
        ast::ExprKind::Slice(base, from, to) => {
            in_expr(base, mentions);
            from.iter().chain(to).for_each(|end| in_expr(end, mentions));
        }
        ast::ExprKind::ProcessId(_, index) => {
            mentions.push(Mention::Instance);
            index.iter().for_each(|index| in_expr(index, mentions));
        }
    }
}

/// The names an expression mentions.
pub(super) fn names_in_expr<'a>(expr: &'a ast::Expr, names: &mut Vec<&'a ast::Name>) {
    let mut mentions = Vec::new();
    in_expr(expr, &mut mentions);
    names.extend(mentions.into_iter().filter_map(|mention| match mention {
        Mention::Name(name) => Some(name),
        Mention::Field(_) | Mention::Instance => None,
    }));
}
