//! Models: what is explored, with which environment, and what is abstracted (reference, section 11). The checker
//! explores.

use super::abstractions;
use super::body::{Body, BodyKind};
use super::constants::Constant;
use super::names::{Checker, Entity};
use super::taint;
use super::types::{Limits, MAX_INSTANCES};
use super::uses::{DefinitionKind, Rank};
use super::{assigned, statements};
use crate::ast::{self, ModelClause};
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::hir::{
    self, AbstractionKind, ExprKind, ExternId, Influence, LocalId, ModelAbstraction, ModelPath, ModelScope, ProcessId,
    Purity,
};
use crate::span::Span;
use crate::types::TypeTable;
use smol_str::SmolStr;

/// Checks every model.
pub(super) fn check(checker: &mut Checker) {
    for channel in &mut checker.channels {
        channel.hir.influences = vec![Influence::DataOnly; channel.hir.payload.len()];
    }
    for item in checker.model_items.clone() {
        check_model(checker, item);
    }
    let everything: Vec<ProcessId> = (0..checker.processes.len() as u32).map(ProcessId).collect();
    let models = std::mem::take(&mut checker.models);
    let environments: Vec<&[hir::Process]> = models.iter().map(|model| &model.environment[..]).collect();
    let control = taint::control_influence(checker, &everything, &environments, &observed(checker, &models));
    checker.models = models;
    checker.clock.quotient = control.quotient;
    checker.note_outer_durations();
    for abstraction in checker.models.iter_mut().flat_map(|model| &mut model.abstractions) {
        abstraction.influence = control.influence_of(&abstraction.path);
    }
    checker.note_forgotten_durations();
    for id in control.externs {
        checker.externs[id.0 as usize].hir.influence = Influence::Control;
    }
    for (channel, number) in control.payloads {
        if let Some(influence) = checker.channels[channel.0 as usize].hir.influences.get_mut(number as usize) {
            *influence = Influence::Control;
        }
    }
}

/// The variables that properties read. Environments are numbered after the program's processes.
fn observed(checker: &Checker, models: &[hir::Model]) -> Vec<(ProcessId, LocalId)> {
    let asked: Vec<_> = models.iter().flat_map(hir::Model::observed).collect();
    let own = checker.processes.iter().map(|process| process.hir.as_ref());
    let environments = models.iter().flat_map(|model| &model.environment).map(Some);
    let mut found = Vec::new();
    for (number, process) in own.chain(environments).enumerate() {
        let Some(process) = process else { continue };
        for (index, local) in process.locals.iter().enumerate() {
            if asked.iter().any(|(name, variable)| *name == process.name && *variable == local.name) {
                found.push((ProcessId(number as u32), LocalId(index as u32)));
            }
        }
    }
    found
}

fn check_model<'a>(checker: &mut Checker<'a>, item: &'a ast::Model) {
    let errors = checker.errors;
    let mut model = hir::Model {
        name: item.name.text.clone(),
        scope: ModelScope::All,
        environment: Vec::new(),
        properties: Vec::new(),
        property_spans: Vec::new(),
        bounds: Vec::new(),
        abstractions: Vec::new(),
    };
    let mut scoped = None;
    for clause in &item.clauses {
        match clause {
            ModelClause::Process(name) => {
                let process = checker.process(name);
                set_scope(checker, &mut scoped, name.span);
                model.scope = process.map_or(ModelScope::All, ModelScope::Process);
            }
            ModelClause::Slice(names) => {
                let mut processes = Vec::new();
                for name in names {
                    let Some(process) = checker.process(name) else { continue };
                    if processes.contains(&process) {
                        let message = format!("`{}` is listed twice in this slice", name.text);
                        checker.error(Code::E0204, name.span, message);
                    } else {
                        processes.push(process);
                    }
                }
                if let Some(first) = names.first() {
                    set_scope(checker, &mut scoped, first.span);
                }
                model.scope = ModelScope::Slice(processes);
            }
            ModelClause::Environment(process) => model.environment.push(check_environment(checker, process)),
            ModelClause::Property(text, span) => {
                model.properties.push(String::from_utf8_lossy(text).into_owned());
                model.property_spans.push(*span);
            }
            ModelClause::Bound(name, bound) => {
                model.bounds.extend(checker.channel(name).map(|channel| (channel, *bound)));
            }
            ModelClause::Abstract(abstraction, path) => {
                let kind = match abstraction {
                    ast::Abstraction::Drop => AbstractionKind::Drop,
                    ast::Abstraction::Hash => AbstractionKind::Hash,
                    ast::Abstraction::Forget => AbstractionKind::Forget,
                };
                let resolved = resolve_path(checker, path);
                model.abstractions.extend(resolved.map(|found| abstraction_of(kind, found, path.span)));
            }
            ModelClause::Range(path, from, to) => {
                let (from_value, to_value) = (range_end(checker, from), range_end(checker, to));
                let resolved = resolve_path(checker, path);
                let (Some(found), Some(low), Some(high)) = (resolved, from_value, to_value) else { continue };
                if low >= high {
                    let diagnostic = Diagnostic::new(Code::E0309, from.span.to(to.span), "this range is empty")
                        .help("the end is excluded: `0..2` is 0 and 1");
                    checker.report(diagnostic);
                }
                model.abstractions.push(abstraction_of(AbstractionKind::Range(low, high), found, path.span));
            }
        }
    }
    if errors == checker.errors {
        abstractions::check(checker, &model);
        require_ranges(checker, item, &model);
    }
    checker.models.push(model);
}

fn abstraction_of(kind: AbstractionKind, path: ModelPath, span: Span) -> ModelAbstraction {
    ModelAbstraction { kind, path, influence: Influence::Control, span }
}

fn set_scope(checker: &mut Checker, scoped: &mut Option<Span>, span: Span) {
    if let Some(first) = scoped.replace(span) {
        let diagnostic = Diagnostic::new(Code::E0204, span, "what the model explores is given twice")
            .label(first, "first given here");
        checker.report(diagnostic);
    }
}

/// An `env` process: like any other, on the environment's side of external channels.
fn check_environment<'a>(checker: &mut Checker<'a>, item: &'a ast::Process) -> hir::Process {
    let replicas = match &item.replicas {
        Some(count) => {
            let limits = Limits { what: "number of replicas", minimum: 1, maximum: i128::from(MAX_INSTANCES) };
            checker.constant_size(count, limits).unwrap_or(1)
        }
        None => 1,
    };
    checker.record_definition(item.name.span, DefinitionKind::Process);
    let (process, mut facts) = statements::check_process(checker, item, None, replicas, BodyKind::Environment);
    let found = assigned::check_body(&mut facts, &process.body, 0);
    found.into_iter().for_each(|diagnostic| checker.report(diagnostic));
    process
}

fn range_end<'a>(checker: &mut Checker<'a>, expr: &'a ast::Expr) -> Option<i128> {
    match Body::new(checker, BodyKind::Constant).constant_integer(expr)? {
        Constant::Error => None,
        Constant::Untyped(value) => Some(value),
        Constant::Typed(expr) => match expr.kind {
            ExprKind::Constant(value) => Some(value),
            _ => None,
        },
    }
}

/// `P.v`, `c.1` or a function.
fn resolve_path(checker: &mut Checker, path: &ast::ModelPath) -> Option<ModelPath> {
    let entity = checker.find(&path.base).map(|named| named.entity);
    match (entity, path.steps.as_slice()) {
        (Some(Entity::Extern(id)), []) => Some(ModelPath::Extern(id)),
        (Some(Entity::Process(process)), [(variable, span)]) => {
            let locals = &checker.processes[process.0 as usize].facts.locals;
            if let Some(index) = locals.iter().position(|local| local.name == *variable) {
                checker.record_use(*span, Rank::Part, locals[index].span);
                return Some(ModelPath::Variable(process, hir::LocalId(index as u32)));
            }
            let names: Vec<SmolStr> = locals.iter().map(|local| local.name.clone()).collect();
            let name = ast::Name { text: variable.clone(), span: *span };
            checker.unknown("variable", &name, names.iter().map(|name| name.as_str()));
            None
        }
        (Some(Entity::Channel(channel)), [(number, span)]) => {
            let payload = checker.channels[channel.0 as usize].hir.payload.len();
            if let Some(index) = number.parse::<usize>().ok().filter(|index| *index < payload) {
                return Some(ModelPath::Payload(channel, index as u32));
            }
            let values = super::literals::counted(payload, "value");
            let message = format!("channel `{}` carries {values}, no number {number}", path.base.text);
            checker.report(Diagnostic::new(Code::E0208, *span, message).help("values are numbered from 0"));
            None
        }
        (Some(Entity::Extern(_) | Entity::Process(_) | Entity::Channel(_)), _) => {
            let message = "an abstraction names a variable `P.v`, a payload `c.0` or an extern function";
            checker.error(Code::E0208, path.span, message);
            None
        }
        (_, _) => {
            let candidates = checker.visible_items(path.base.span, |_| true);
            let message = format!("no process, channel or extern function named `{}`", path.base.text);
            let mut diagnostic = Diagnostic::new(Code::E0208, path.base.span, message);
            if let Some(near) = nearest(&path.base.text, candidates.iter().map(|name| name.as_str())) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            if !path.base.text.is_empty() {
                checker.report(diagnostic);
            }
            None
        }
    }
}

/// E0801: an impure extern function returns any value of its `range`. Section 11's own example leaves `translate`
/// without one: a function whose result decides nothing needs none, whatever it returns.
fn require_ranges(checker: &mut Checker, item: &ast::Model, model: &hir::Model) {
    let scope: Vec<ProcessId> = match &model.scope {
        ModelScope::All => (0..checker.processes.len() as u32).map(ProcessId).collect(),
        ModelScope::Process(process) => vec![*process],
        ModelScope::Slice(processes) => processes.clone(),
    };
    let observed = observed(checker, std::slice::from_ref(model));
    let control = taint::control_influence(checker, &scope, &[&model.environment], &observed);
    for id in control.externs {
        let hir = &checker.externs[id.0 as usize].hir;
        let ranged = model.abstractions.iter().any(|abstraction| {
            abstraction.path == ModelPath::Extern(id) && matches!(abstraction.kind, AbstractionKind::Range(..))
        });
        let integer = hir.result.is_some_and(|ty| checker.is_integer(ty));
        if ranged || !integer || hir.purity == Purity::Pure {
            continue;
        }
        report_missing_range(checker, item, id);
    }
}

fn report_missing_range(checker: &mut Checker, item: &ast::Model, id: ExternId) {
    let hir = &checker.externs[id.0 as usize].hir;
    let message = format!("model `{}` needs a range for `{}`", item.name.text, hir.name);
    debug_assert!(hir.result != Some(TypeTable::ERROR));
    let diagnostic = Diagnostic::new(Code::E0801, item.name.span, message)
        .label(hir.span, "its result decides what the program does")
        .help(format!("`abstract range {} 0..4;`", hir.name));
    checker.report(diagnostic);
}
