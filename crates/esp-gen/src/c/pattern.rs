//! Patterns as C: the condition under which a message matches, and the binding of its parts. A message from an instance
//! has the program's form, one from the environment the environment's form. Knows nothing of scheduling.

use super::helpers::Helper;
use super::names::{c_string, member};
use super::values::Lvalue;
use super::writer::{Scope, Writer};
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// A part of a message.
#[derive(Clone, Debug)]
pub(crate) struct MessagePart {
    /// A C lvalue, or the reference of a boxed value in the program's form.
    pub(crate) text: String,
    pub(crate) ty: TypeId,
    pub(crate) view: View,
}

/// The values of a message of a channel, in a variable of the channel's view type or in a message of the environment.
pub(crate) fn message_parts(code: &Writer<'_, '_>, channel: usize, message: &str, view: View) -> Vec<MessagePart> {
    code.plan.program.channels[channel]
        .payload
        .iter()
        .enumerate()
        .map(|(index, ty)| {
            let by_value = code.is_passed_by_value(*ty);
            let text = match view {
                View::Environment => format!("{message}->{}", code.plan.channels[channel].members[index]),
                View::Program if by_value => format!("{message}.v{index}"),
                View::Program => format!("(*{message}.v{index})"),
            };
            MessagePart { text, ty: *ty, view }
        })
        .collect()
}

/// The conditions under which the patterns match a message, without their `if`s.
pub(crate) fn conditions(code: &mut Writer<'_, '_>, patterns: &[Pattern], message: &[MessagePart]) -> Vec<String> {
    let mut all = Vec::new();
    for (pattern, part) in patterns.iter().zip(message) {
        condition(code, pattern, part, &mut all);
    }
    all
}

fn content(code: &Writer<'_, '_>, part: &MessagePart) -> MessagePart {
    match code.types().get(part.ty) {
        Type::Boxed(pool) => {
            let text = match part.view {
                View::Program => code.object(*pool, &part.text),
                View::Environment => part.text.clone(),
            };
            MessagePart { text, ty: code.types().pool(*pool).content, view: part.view }
        }
        Type::Error
        | Type::Bool
        | Type::Int(_)
        | Type::Pid(_)
        | Type::Bytes { .. }
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => part.clone(),
    }
}

/// The parts of a record or array that its sub-patterns are matched with.
fn sub_parts(code: &Writer<'_, '_>, part: &MessagePart, count: usize) -> Vec<MessagePart> {
    let part = content(code, part);
    let types = code.types();
    (0..count)
        .map(|index| match types.get(part.ty) {
            Type::Record(id) => {
                let (name, ty) = &types.aggregate(*id).parts[index];
                let ty = ty.expect("fields have types");
                MessagePart { text: format!("{}.{}", part.text, member(name)), ty, view: part.view }
            }
            Type::Array { element, .. } => {
                MessagePart { text: format!("{}.at[{index}]", part.text), ty: *element, view: part.view }
            }
            Type::Error
            | Type::Bool
            | Type::Int(_)
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Union(_)
            | Type::Boxed(_) => unreachable!("the verifier has checked that patterns fit their types"),
        })
        .collect()
}

/// A union's payload.
fn payload(code: &Writer<'_, '_>, part: &MessagePart, tag: u32) -> MessagePart {
    let part = content(code, part);
    let Type::Union(id) = code.types().get(part.ty) else {
        unreachable!("the verifier has checked that patterns fit their types")
    };
    let (name, ty) = &code.types().aggregate(*id).parts[tag as usize];
    let ty = ty.expect("a tag with a pattern for its payload has one");
    MessagePart { text: format!("{}.as.{}", part.text, member(name)), ty, view: part.view }
}

fn condition(code: &mut Writer<'_, '_>, pattern: &Pattern, part: &MessagePart, all: &mut Vec<String>) {
    match pattern {
        Pattern::Any | Pattern::Bind(_) => {}
        Pattern::Constant(constant) => {
            all.push(format!("{} == {}", part.text, code.constant(*constant, part.ty)));
        }
        Pattern::Bytes(bytes) => {
            let part = content(code, part);
            all.push(format!("{}.length == {}u", part.text, bytes.len()));
            if !bytes.is_empty() {
                all.push(format!("esp_same({}.data, {}, {}u)", part.text, c_string(bytes), bytes.len()));
            }
        }
        Pattern::OwnId => {
            let own = match code.scope() {
                Scope::Process(index) | Scope::Region(index) => code.plan.own_operand(index),
                Scope::Function(_) => unreachable!("functions have no patterns"),
            };
            all.push(format!("{} == {own}", part.text));
        }
        Pattern::Equal(operand) => {
            let value = code.operand(operand, Location::default());
            let a = Lvalue { text: part.text.clone(), ty: part.ty };
            let text = match (code.types().get(part.ty), code.types().get(value.ty)) {
                // The same content, boxed on one side only.
                (Type::Boxed(_), other) if !matches!(other, Type::Boxed(_)) => {
                    let part = content(code, part);
                    code.equal(&Lvalue { text: part.text, ty: part.ty }, &value, part.view)
                }
                _ => code.equal(&a, &value, part.view),
            };
            all.push(text);
        }
        Pattern::Tag(tag, inner) => {
            let union = content(code, part);
            all.push(format!("{}.tag == {tag}u", union.text));
            if let Some(inner) = inner {
                let payload = payload(code, &union, *tag);
                condition(code, inner, &payload, all);
            }
        }
        Pattern::Record(patterns) | Pattern::Array(patterns) => {
            for (pattern, part) in patterns.iter().zip(sub_parts(code, part, patterns.len())) {
                condition(code, pattern, &part, all);
            }
        }
    }
}

/// The parts that patterns bind, in order of text.
pub(crate) fn binds(code: &Writer<'_, '_>, patterns: &[Pattern], message: &[MessagePart]) -> Vec<(Bind, MessagePart)> {
    let mut all = Vec::new();
    for (pattern, part) in patterns.iter().zip(message) {
        bind(code, pattern, part, &mut all);
    }
    all
}

fn bind(code: &Writer<'_, '_>, pattern: &Pattern, part: &MessagePart, all: &mut Vec<(Bind, MessagePart)>) {
    match pattern {
        Pattern::Any | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId | Pattern::Equal(_) => {}
        Pattern::Bind(bind) => all.push((*bind, part.clone())),
        Pattern::Tag(tag, inner) => {
            if let Some(inner) = inner {
                bind(code, inner, &payload(code, part, *tag), all);
            }
        }
        Pattern::Record(patterns) | Pattern::Array(patterns) => {
            for (pattern, part) in patterns.iter().zip(sub_parts(code, part, patterns.len())) {
                bind(code, pattern, &part, all);
            }
        }
    }
}

/// Copies a part into a place of its type and, if the place owns counts, counts the objects that it refers to.
pub(crate) fn bind_part(code: &mut Writer<'_, '_>, to: &Lvalue, part: &MessagePart, counting: Counting) {
    let boxes = code.plan.layouts.has_boxes(part.ty);
    match (part.view, boxes) {
        (View::Environment, true) => {
            let name = code.helpers.want(code.plan, Helper::FromEnvironment, part.ty);
            code.line(&format!("{name}(t, &{}, &{});", to.text, part.text));
        }
        (View::Environment, false) | (View::Program, _) => {
            code.copy(to, &Lvalue { text: part.text.clone(), ty: part.ty }, Location::default());
            match counting {
                Counting::Counted => code.count(Helper::Retain, to),
                Counting::Borrowed => {}
            }
        }
    }
}

/// Whether a copy owns reference counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counting {
    /// It does.
    Counted,
    /// It is used only while the sender owns them.
    Borrowed,
}
