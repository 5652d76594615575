//! Process templates and their instances. An instance is a process: the text of the template, in which each parameter
//! is a constant or a channel.

use super::body::{Binding, Body, BodyKind};
use super::coerce::Use;
use super::constants::Constant;
use super::expand::arguments_text;
use super::names::{Checker, Entity, Named};
use super::relocate::Relocate;
use crate::ast::{self, ParameterKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::Mutability;
use crate::span::{Expansion, Span};
use crate::types::TypeTable;

/// The parameters of an instance, and what they stand for.
#[derive(Clone, Copy)]
pub(super) struct Bindings<'a> {
    pub(super) parameters: &'a [ast::Parameter],
    /// As many as parameters; none for a template that is checked without an instance.
    pub(super) arguments: Option<&'a [ast::Expr]>,
}

/// An instance whose template is looked up once all items are declared.
pub(super) struct PendingInstance<'a> {
    pub(super) written: &'a ast::Instantiation,
    /// Whether it is among the processes without an instance, and where.
    pub(super) absent: bool,
    pub(super) index: usize,
}

/// Gives each instance the text of its template.
pub(super) fn instantiate<'a>(checker: &mut Checker<'a>, pending: &[PendingInstance<'a>]) {
    for PendingInstance { written, absent, index } in pending {
        let Some((item, bindings)) = instance(checker, written) else { continue };
        let entries = if *absent { &mut checker.absent } else { &mut checker.processes };
        (entries[*index].item, entries[*index].bindings) = (item, Some(bindings));
    }
}

fn instance<'a>(
    checker: &mut Checker<'a>,
    written: &'a ast::Instantiation,
) -> Option<(&'a ast::Process, Bindings<'a>)> {
    let Some(Named { entity: Entity::Template(number), .. }) = checker.find(&written.template) else {
        checker.unknown_item("template", &written.template, |entity| matches!(entity, Entity::Template(_)));
        return None;
    };
    checker.templates[number].uses += 1;
    let template = checker.templates[number].item;
    if template.parameters.len() != written.arguments.len() {
        let (given, wanted) = (arguments_text(written.arguments.len()), template.parameters.len());
        let message = format!("`{}` is called with {given} here and takes {wanted}", template.name.text);
        let diagnostic = Diagnostic::new(Code::E0206, written.span, message)
            .label(template.name.span, format!("`{}` is declared here", template.name.text));
        checker.report(diagnostic);
        return None;
    }
    let text = template.name.span.to(template.body.span);
    let call = written.name.span.to(written.span);
    let expansion = Expansion { text, callee: written.template.text.to_string(), call };
    let Some(file) = checker.sources.expand(expansion) else {
        checker.error(Code::E0509, written.span, "the program has more than 65535 files, calls and instances");
        return None;
    };
    let mut copy = template.clone();
    copy.relocate(file);
    let copy: &'a ast::Template = checker.copies.templates.alloc(copy);
    let item = ast::Process { name: written.name.clone(), replicas: written.replicas.clone(), body: copy.body.clone() };
    let item = checker.copies.processes.alloc(item);
    Some((item, Bindings { parameters: &copy.parameters, arguments: Some(&written.arguments) }))
}

/// An instance before its template is known: a process without statements.
pub(super) fn placeholder<'a>(checker: &Checker<'a>, written: &'a ast::Instantiation) -> &'a ast::Process {
    let end = Span { start: written.span.end, ..written.span };
    let body = ast::Block { items: Vec::new(), span: end };
    let (name, replicas) = (written.name.clone(), written.replicas.clone());
    checker.copies.processes.alloc(ast::Process { name, replicas, body })
}

impl<'a> Body<'_, 'a> {
    /// Makes the parameters of an instance visible in its body.
    pub(super) fn bind_arguments(&mut self, bindings: Bindings<'a>) {
        let mut found = Vec::with_capacity(bindings.parameters.len());
        for (index, parameter) in bindings.parameters.iter().enumerate() {
            let argument = bindings.arguments.map(|arguments| &arguments[index]);
            found.push(match &parameter.kind {
                ParameterKind::Channel(direction, types) => {
                    let types: Vec<_> = types.iter().map(|ty| self.checker.resolve_type(ty)).collect();
                    Err(match argument {
                        Some(argument) => self.channel_argument(*direction, &types, argument, &parameter.name),
                        None => self.checker.stand_in(parameter, *direction, types),
                    })
                }
                ParameterKind::Value(written) => Ok(self.constant_argument(parameter, written, argument)),
            });
        }
        for (parameter, found) in bindings.parameters.iter().zip(found) {
            match found {
                Ok(constant) => self.declare_parameter(&parameter.name, constant),
                Err(end) => self.bind_parameter(&parameter.name, Binding::Channel(end)),
            }
        }
    }

    fn constant_argument(
        &mut self,
        parameter: &'a ast::Parameter,
        written: &'a ast::ValueType,
        argument: Option<&'a ast::Expr>,
    ) -> Constant {
        if written.mutability == Mutability::Mutable {
            let message = format!("`{}` is a parameter of a template, which is constant", parameter.name.text);
            let help = "drop the `#`: a process has no variables of others";
            self.checker.report(Diagnostic::new(Code::E0307, parameter.span, message).help(help));
        }
        let mut constants = Body::new(self.checker, BodyKind::Constant);
        let ty = constants.checker.resolve_type(&written.ty);
        let Some(argument) = argument else { return Constant::Error };
        let value = constants.check(argument, ty, Use::Own);
        if ty == TypeTable::ERROR || value.ty == TypeTable::ERROR {
            return Constant::Error;
        }
        constants.typed_constant(value)
    }
}
