//! Types of channels, extern functions and pure functions: what bodies need to know before they are checked.

use super::names::{Checker, FunctionProgress};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::FnId;
use crate::span::Span;
use crate::types::{IntType, PoolId, Type, TypeId, TypeTable};
use rustc_hash::FxHashMap;

/// Resolves the types in every signature.
pub(super) fn resolve(checker: &mut Checker) {
    for index in 0..checker.channels.len() {
        let item = checker.channels[index].item;
        let payload: Vec<_> = item.types.iter().map(|ty| checker.resolve_type(ty)).collect();
        if item.attributes.iter().any(|(attribute, _)| *attribute == ast::ChannelAttribute::ExternalOut) {
            for (ty, written) in payload.iter().zip(&item.types) {
                reject_partial_enumeration(checker, *ty, written.span);
            }
        }
        let entry = &mut checker.channels[index];
        entry.tainted |= payload.contains(&TypeTable::ERROR);
        entry.hir.payload = payload;
        reject_repeated_attributes(checker, item);
        reject_repeated_value_names(checker, item);
    }
    for index in 0..checker.externs.len() {
        resolve_extern(checker, index);
    }
    for index in 0..checker.functions.len() {
        resolve_function(checker, FnId(index as u32));
    }
}

/// Resolves the types of an extern function's parameters and result, once.
pub(super) fn resolve_extern(checker: &mut Checker, index: usize) {
    let entry = &mut checker.externs[index];
    let item = entry.item;
    if std::mem::replace(&mut entry.is_resolved, true) {
        return;
    }
    let mut parameters = Vec::new();
    for (name, parameter) in &item.parameters {
        let ty = checker.resolve_type(&parameter.ty);
        if parameter.mutability == ast::Mutability::Mutable && item.purity == ast::Purity::Pure {
            let message = format!("`{}` is pure and cannot write a parameter", item.name.text);
            let diagnostic =
                Diagnostic::new(Code::E0307, parameter.ty.span, message).help("drop the `#`, or drop `pure`");
            checker.report(diagnostic);
        }
        if parameter.mutability == ast::Mutability::Mutable
            && let Some(pool) = inner_pool(&checker.types, checker.content(ty))
        {
            let name = &checker.types.pool(pool).name;
            let message = format!("C cannot write the objects of `{name}` that are parts of this");
            let diagnostic = Diagnostic::new(Code::E0307, parameter.ty.span, message)
                .help("drop the `#`, or pass the parts that change by themselves");
            checker.report(diagnostic);
        }
        if parameter.mutability == ast::Mutability::Mutable {
            reject_partial_enumeration(checker, ty, parameter.ty.span);
        }
        parameters.push((name.as_ref().map(|name| name.text.clone()), ty, parameter.mutability));
    }
    let result = item.result.as_ref().map(|ty| checker.resolve_type(ty));
    if let (Some(ty), Some(written)) = (result, &item.result) {
        reject_partial_enumeration(checker, ty, written.span);
    }
    let hir = &mut checker.externs[index].hir;
    (hir.parameters, hir.result) = (parameters, result);
}

/// Resolves the types of a function's parameters and result, once.
pub(super) fn resolve_function(checker: &mut Checker, id: FnId) {
    let entry = &mut checker.functions[id.0 as usize];
    if entry.progress != FunctionProgress::Declared {
        return;
    }
    entry.progress = FunctionProgress::Signature;
    let item = entry.item;
    let parameters = item.parameters.iter().map(|(_, ty)| checker.resolve_type(ty)).collect();
    let result = checker.resolve_type(&item.result);
    let entry = &mut checker.functions[id.0 as usize];
    (entry.parameters, entry.result) = (parameters, result);
}

fn reject_repeated_value_names(checker: &mut Checker, item: &ast::Channel) {
    let mut first: FxHashMap<&str, Span> = FxHashMap::default();
    for name in item.value_names.iter().flatten() {
        if let Some(first) = first.insert(&name.text, name.span) {
            let message = format!("two values of `{}` are named `{}`", item.name.text, name.text);
            checker.report(Diagnostic::new(Code::E0204, name.span, message).label(first, "first declared here"));
        }
    }
}

/// E0310: an enumeration, at any depth, that the environment could give a code without a case.
fn reject_partial_enumeration(checker: &mut Checker, ty: TypeId, span: Span) {
    let types = &checker.types;
    let is_partial = |part| types.enumeration(part).is_some_and(|enumeration| !enumeration.is_total());
    let Some(enumeration) = types.find_part(ty, &is_partial).and_then(|part| types.enumeration(part)) else { return };
    let (name, base) = (&enumeration.name, enumeration.base.name());
    let message = format!("`{name}` has no case for other values of `{base}`, which may come from outside");
    let help = format!("end it with `else other`, so that every other code is a case of `{name}`");
    checker.report(Diagnostic::new(Code::E0310, span, message).help(help));
}

/// The pool of a boxed part, at any depth. A type may contain itself here: it has been reported.
fn inner_pool(types: &TypeTable, ty: TypeId) -> Option<PoolId> {
    let boxed = types.find_part(ty, &|part| matches!(types.get(part), Type::Boxed(_)))?;
    match types.get(boxed) {
        Type::Boxed(pool) => Some(*pool),
        _ => None,
    }
}

/// One channel has one boundary and one policy.
fn reject_repeated_attributes(checker: &mut Checker, item: &ast::Channel) {
    let class = |attribute: ast::ChannelAttribute| match attribute {
        ast::ChannelAttribute::ExternalIn | ast::ChannelAttribute::ExternalOut => "external",
        ast::ChannelAttribute::Shared => "shared",
        ast::ChannelAttribute::Policy(_) => "policy",
    };
    for (index, (attribute, span)) in item.attributes.iter().enumerate() {
        let Some((_, first)) = item.attributes[..index].iter().find(|(other, _)| class(*other) == class(*attribute))
        else {
            continue;
        };
        let message = format!("`{}` is given twice for channel `{}`", class(*attribute), item.name.text);
        let diagnostic = Diagnostic::new(Code::E0204, *span, message).label(*first, "first given here");
        checker.report(diagnostic);
    }
}

impl Checker<'_> {
    /// The integer type of an id; none of an enumeration, which is not computed with.
    pub(super) fn int_type(&self, ty: TypeId) -> Option<IntType> {
        match self.types.get(ty) {
            Type::Int(int) if !int.is_clock() && self.types.enumeration(ty).is_none() => Some(*int),
            _ => None,
        }
    }

    /// A type's kind without its box: what has accessible parts.
    pub(super) fn content(&self, ty: crate::types::TypeId) -> crate::types::TypeId {
        match self.types.get(ty) {
            Type::Boxed(pool) => self.types.pool(*pool).content,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => ty,
        }
    }
}
