//! What no process uses is checked all the same: procedures without a call, templates and processes without an
//! instance. The check leaves nothing in the program.

use super::body::{Body, BodyFacts, BodyKind};
use super::expand::ChannelEnd;
use super::names::{ChannelEntry, Checker, ProcessEntry};
use super::statements::check_process;
use super::templates::Bindings;
use crate::ast::{self, ParameterKind};
use crate::hir::{self, ChannelId, Direction, Mutability, ProcessId};
use crate::types::TypeId;

/// Checks it.
pub(super) fn check(checker: &mut Checker) {
    if checker.absent.is_empty() && checker.templates.is_empty() && checker.procedures.is_empty() {
        return;
    }
    let (types, measures) = (checker.types.clone(), checker.measures.clone());
    let counts = (checker.processes.len(), checker.channels.len(), checker.externs.len());
    let unknown = checker.unknown_functions.clone();
    let unknown_channels = checker.unknown_channels;
    checker.unused_from = Some(counts.0);
    let absent = std::mem::take(&mut checker.absent);
    for entry in absent {
        check_as_process(checker, entry.item, entry.bindings);
    }
    for index in 0..checker.templates.len() {
        let template = &checker.templates[index];
        if template.uses == 0 {
            let item = template.item;
            let bindings = Bindings { parameters: &item.parameters, arguments: None };
            let process = ast::Process { name: item.name.clone(), replicas: None, body: item.body.clone() };
            let process = checker.copies.processes.alloc(process);
            check_as_process(checker, process, Some(bindings));
        }
    }
    for index in 0..checker.procedures.len() {
        if checker.procedures[index].uses == 0 {
            check_procedure(checker, index);
        }
    }
    checker.processes.truncate(counts.0);
    checker.channels.truncate(counts.1);
    checker.externs.truncate(counts.2);
    // The types of the variables in there are known to tools.
    if checker.recorder.is_none() {
        (checker.types, checker.measures) = (types, measures);
    }
    checker.unknown_functions = unknown;
    checker.unknown_channels = unknown_channels;
    checker.unused_from = None;
}

fn check_as_process<'a>(checker: &mut Checker<'a>, item: &'a ast::Process, bindings: Option<Bindings<'a>>) {
    if checker.has_reached_error_limit() {
        return;
    }
    let kind = add_process(checker, item);
    check_process(checker, item, bindings, 1, kind);
}

/// A process of its own, so that `@` has a type.
fn add_process<'a>(checker: &mut Checker<'a>, item: &'a ast::Process) -> BodyKind {
    let id = ProcessId(checker.processes.len() as u32);
    let (hir, facts) = (None, BodyFacts::default());
    checker.processes.push(ProcessEntry { item, bindings: None, replicas: 1, first_instance: 0, hir, facts });
    BodyKind::Process(id)
}

/// A procedure as if a process called it with variables and channels of the right types.
fn check_procedure(checker: &mut Checker, index: usize) {
    if checker.has_reached_error_limit() {
        return;
    }
    let item = checker.procedures[index].item;
    let body = ast::Block { items: Vec::new(), span: item.body.span };
    let process = ast::Process { name: item.name.clone(), replicas: None, body };
    let process = checker.copies.processes.alloc(process);
    let kind = add_process(checker, process);
    Body::new(checker, kind).check_uncalled(index, item);
}

impl<'a> Checker<'a> {
    /// Whether a process stands in for a text that no process uses.
    pub(super) fn is_unused(&self, process: ProcessId) -> bool {
        self.unused_from.is_some_and(|first| process.0 as usize >= first)
    }

    /// A channel that a parameter stands for while no argument is known.
    pub(super) fn stand_in(
        &mut self,
        parameter: &'a ast::Parameter,
        direction: Direction,
        payload: Vec<TypeId>,
    ) -> Option<ChannelEnd> {
        let item = self.copies.channels.alloc(ast::Channel {
            name: parameter.name.clone(),
            types: Vec::new(),
            value_names: Vec::new(),
            attributes: Vec::new(),
            driver: None,
            span: parameter.span,
        });
        let channel = ChannelId(self.channels.len() as u32);
        let hir = hir::Channel {
            name: parameter.name.text.clone(),
            value_names: vec![None; payload.len()],
            payload,
            influences: Vec::new(),
            boundary: hir::Boundary::Internal,
            sharing: hir::Sharing::Ports,
            policy: hir::Policy::default(),
            driver: None,
            span: parameter.name.span,
        };
        self.channels.push(ChannelEntry { item, hir, tainted: true });
        Some(ChannelEnd { channel, allowed: Some(direction) })
    }
}

impl<'a> Body<'_, 'a> {
    /// The parameters of a procedure without a call: variables, constants inside, and channels.
    pub(super) fn bind_unknown(&mut self, parameters: &'a [ast::Parameter]) {
        use super::body::{Binding, Role};
        for parameter in parameters {
            match &parameter.kind {
                ParameterKind::Value(written) => {
                    let ty = self.checker.resolve_type(&written.ty);
                    let (mutability, role) = match written.mutability {
                        Mutability::Immutable => (Mutability::Immutable, Role::Parameter),
                        Mutability::Mutable => (self.effective(ty, Mutability::Mutable), Role::Received),
                    };
                    let id = self.add_local(&parameter.name, Some(ty), mutability, role);
                    self.bind_parameter(&parameter.name, Binding::Local(id));
                }
                ParameterKind::Channel(direction, types) => {
                    let types: Vec<TypeId> = types.iter().map(|ty| self.checker.resolve_type(ty)).collect();
                    let end = self.checker.stand_in(parameter, *direction, types);
                    self.bind_parameter(&parameter.name, Binding::Channel(end));
                }
            }
        }
    }
}
