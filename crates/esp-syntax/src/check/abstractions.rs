//! What a model can abstract (E0803): only integer variables have ranges; what is forgotten must not hold objects of a
//! pool, whose number it decides, and must not be changed in part where its length decides whether that is possible.
//! Ranges keep within types (E0309).

use super::names::Checker;
use super::walk;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{
    self, AbstractionKind, Argument, Boundary, LocalId, Model, ModelAbstraction, ModelPath, Operation, Pattern,
    PatternKind, Place, StmtKind,
};
use crate::types::{Type, TypeId, TypeTable};
use std::mem::discriminant;

/// Checks the abstractions of a model.
pub(super) fn check(checker: &mut Checker, model: &Model) {
    for (number, abstraction) in model.abstractions.iter().enumerate() {
        let same = |other: &&ModelAbstraction| {
            other.path == abstraction.path && discriminant(&other.kind) == discriminant(&abstraction.kind)
        };
        if let Some(first) = model.abstractions[..number].iter().find(same) {
            let message = format!("`{}` is abstracted twice in this way", checker.text(abstraction.span));
            let diagnostic =
                Diagnostic::new(Code::E0204, abstraction.span, message).label(first.span, "the first is here");
            checker.report(diagnostic);
        }
        if let Some((message, help)) = refusal(checker, abstraction) {
            checker.report(Diagnostic::new(Code::E0803, abstraction.span, message).help(help));
        } else if let Some((message, help)) = outside_type(checker, abstraction) {
            checker.report(Diagnostic::new(Code::E0309, abstraction.span, message).help(help));
        }
    }
}

/// The message for a range that exceeds the type of what it limits.
fn outside_type(checker: &Checker, abstraction: &ModelAbstraction) -> Option<(String, String)> {
    let AbstractionKind::Range(from, to) = abstraction.kind else { return None };
    let ty = match &abstraction.path {
        ModelPath::Extern(function) => checker.externs[function.0 as usize].hir.result?,
        ModelPath::Variable(process, local) => {
            checker.processes[process.0 as usize].hir.as_ref()?.locals[local.0 as usize].ty
        }
        ModelPath::Payload(channel, number) => checker.channels[channel.0 as usize].hir.payload[*number as usize],
    };
    let Type::Int(int) = *checker.types.get(ty) else { return None };
    if from >= int.min() && to <= int.max() + 1 {
        return None;
    }
    let name = checker.text(abstraction.span);
    let message = format!("`{name}` is a `{}`, which has not all values of {from}..{to}", int.name());
    let help = format!("its values are {}..{}; the end of a range is excluded", int.min(), int.max() + 1);
    Some((message, help))
}

/// Why a part cannot be abstracted so, and what to do instead.
fn refusal(checker: &Checker, abstraction: &ModelAbstraction) -> Option<(String, &'static str)> {
    let name = checker.text(abstraction.span);
    let (ty, variable) = match &abstraction.path {
        ModelPath::Extern(_) => return None,
        ModelPath::Variable(process, local) => {
            let process = checker.processes[process.0 as usize].hir.as_ref()?;
            (process.locals[local.0 as usize].ty, Some((process, *local)))
        }
        ModelPath::Payload(channel, number) => {
            let channel = &checker.channels[channel.0 as usize].hir;
            // What the environment sends is limited, not abstracted.
            if channel.boundary != Boundary::Internal {
                return None;
            }
            (channel.payload[*number as usize], None)
        }
    };
    let types = &checker.types;
    match abstraction.kind {
        AbstractionKind::Hash => None,
        // Of a message from outside, a range limits every part.
        AbstractionKind::Range(..) => {
            let integer = variable.is_none() || checker.is_integer(ty) || ty == TypeTable::ERROR;
            let message = format!("`{name}` is no integer, so it has no range");
            (!integer).then_some((message, "`abstract forget` lets it have any value"))
        }
        AbstractionKind::Drop | AbstractionKind::Forget => {
            if holds(types, ty, &|part| matches!(part, Type::Boxed(_))) {
                let message = format!("`{name}` holds objects of a pool, which cannot be forgotten");
                return Some((message, "leave it as it is, or verify its process alone"));
            }
            let (process, local) = variable.filter(|_| holds(types, ty, &|part| matches!(part, Type::Bytes { .. })))?;
            let message = format!("`{name}` is changed in part, which depends on its length");
            updated_in_part(process, local).then_some((message, "leave it as it is, or forget what is read from it"))
        }
    }
}

/// Whether a type or a part of it is of some kind.
fn holds(types: &TypeTable, ty: TypeId, test: &dyn Fn(&Type) -> bool) -> bool {
    let ty = types.get(ty);
    test(ty)
        || match ty {
            Type::Array { element, .. } => holds(types, *element, test),
            Type::Record(id) | Type::Union(id) => {
                let mut parts = types.aggregate(*id).parts.iter().filter_map(|(_, ty)| *ty);
                parts.any(|part| holds(types, part, test))
            }
            Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Bytes { .. } | Type::Boxed(_) => false,
        }
}

/// Whether a part of a variable is assigned, or something appended to it.
fn updated_in_part(process: &hir::Process, local: LocalId) -> bool {
    let mut found = false;
    let is_part = |place: &Place| place.base == local && !place.path.is_empty();
    walk::statements(&process.body, &mut |stmt| {
        found |= match &stmt.kind {
            StmtKind::Assign(place, _) => is_part(place),
            StmtKind::Update { place, .. } => place.base == local,
            StmtKind::Call(_, arguments) => arguments.iter().any(|argument| match argument {
                Argument::Value(_) => false,
                Argument::Mutable(place) => is_part(place),
            }),
            StmtKind::Match(_, arms) => arms.iter().any(|(pattern, _)| assigns(pattern, &is_part)),
            StmtKind::Communicate(communicate) => communicate.branches.iter().any(|branch| match &branch.operation {
                Operation::In(_, _, patterns) => patterns.iter().any(|pattern| assigns(pattern, &is_part)),
                Operation::Out(..) | Operation::After(..) | Operation::Until(..) => false,
            }),
            _ => false,
        }
    });
    found
}

fn assigns(pattern: &Pattern, test: &dyn Fn(&Place) -> bool) -> bool {
    match &pattern.kind {
        PatternKind::Assign(place) => test(place),
        PatternKind::Tag(_, payload) => payload.iter().any(|payload| assigns(payload, test)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => parts.iter().any(|part| assigns(part, test)),
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => false,
    }
}
