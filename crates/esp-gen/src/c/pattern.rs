//! Patterns as C: a condition on a message, and where its parts go. A message is seen in the program's own form when
//! another instance sends it, in the world's form when it comes from outside. Knows nothing of scheduling.

use super::code::{Code, Lvalue, c_string};
use super::helpers::Helper;
use super::names::member;
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// A part of a message.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// A C lvalue, or the reference of a boxed value in the program's form.
    pub(crate) text: String,
    pub(crate) ty: TypeId,
    pub(crate) view: View,
}

/// The values of a message of a channel, in a variable of the channel's view type or in the world's message.
pub(crate) fn parts(code: &Code<'_, '_>, channel: usize, message: &str, view: View) -> Vec<Part> {
    let types = code.types();
    code.plan.program.channels[channel]
        .payload
        .iter()
        .enumerate()
        .map(|(index, ty)| {
            let by_value = types.is_scalar(*ty) || matches!(types.get(*ty), Type::Boxed(_));
            let text = match view {
                View::World => format!("{message}->v{index}"),
                View::Program if by_value => format!("{message}.v{index}"),
                View::Program => format!("(*{message}.v{index})"),
            };
            Part { text, ty: *ty, view }
        })
        .collect()
}

/// What must hold of a message for the patterns to match, without their `if`s.
pub(crate) fn conditions(code: &mut Code<'_, '_>, patterns: &[Pattern], message: &[Part]) -> Vec<String> {
    let mut all = Vec::new();
    for (pattern, part) in patterns.iter().zip(message) {
        condition(code, pattern, part, &mut all);
    }
    all
}

fn content(code: &Code<'_, '_>, part: &Part) -> Part {
    match code.types().get(part.ty) {
        Type::Boxed(pool) => {
            let text = match part.view {
                View::Program => code.object(*pool, &part.text),
                View::World => part.text.clone(),
            };
            Part { text, ty: code.types().pool(*pool).content, view: part.view }
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

/// The parts of a record or array that its sub-patterns look at.
fn sub_parts(code: &Code<'_, '_>, part: &Part, count: usize) -> Vec<Part> {
    let part = content(code, part);
    let types = code.types();
    (0..count)
        .map(|index| match types.get(part.ty) {
            Type::Record(id) => {
                let (name, ty) = &types.aggregate(*id).parts[index];
                let ty = ty.expect("fields have types");
                Part { text: format!("{}.{}", part.text, member(name)), ty, view: part.view }
            }
            Type::Array { element, .. } => {
                Part { text: format!("{}.at[{index}]", part.text), ty: *element, view: part.view }
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
fn payload(code: &Code<'_, '_>, part: &Part, tag: u32) -> Part {
    let part = content(code, part);
    let Type::Union(id) = code.types().get(part.ty) else {
        unreachable!("the verifier has checked that patterns fit their types")
    };
    let (name, ty) = &code.types().aggregate(*id).parts[tag as usize];
    let ty = ty.expect("a tag with a pattern for its payload has one");
    Part { text: format!("{}.as.{}", part.text, member(name)), ty, view: part.view }
}

fn condition(code: &mut Code<'_, '_>, pattern: &Pattern, part: &Part, all: &mut Vec<String>) {
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
            let own = match code.scope {
                super::code::Scope::Process(index) | super::code::Scope::Region(index) => code.plan.own_id(index),
                super::code::Scope::Function(_) => unreachable!("functions have no patterns"),
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
            let whole = content(code, part);
            all.push(format!("{}.tag == {tag}u", whole.text));
            if let Some(inner) = inner {
                let payload = payload(code, &whole, *tag);
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

/// The parts that patterns keep, in order of text.
pub(crate) fn binds(code: &Code<'_, '_>, patterns: &[Pattern], message: &[Part]) -> Vec<(Bind, Part)> {
    let mut all = Vec::new();
    for (pattern, part) in patterns.iter().zip(message) {
        bind(code, pattern, part, &mut all);
    }
    all
}

fn bind(code: &Code<'_, '_>, pattern: &Pattern, part: &Part, all: &mut Vec<(Bind, Part)>) {
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

/// Copies a part into a place of its type and, if it is to be kept, counts what it refers to.
pub(crate) fn keep(code: &mut Code<'_, '_>, to: &Lvalue, part: &Part, counting: Counting) {
    let boxes = code.plan.layouts.has_boxes(part.ty);
    match (part.view, boxes) {
        (View::World, true) => {
            let name = code.helpers.want(code.plan, Helper::FromEnvironment, part.ty);
            code.line(&format!("{name}(t, &{}, &{});", to.text, part.text));
        }
        (View::World, false) | (View::Program, _) => {
            code.copy(to, &Lvalue { text: part.text.clone(), ty: part.ty }, Location::default());
            match counting {
                Counting::Counted => code.count(Helper::Retain, to),
                Counting::Borrowed => {}
            }
        }
    }
}

/// Whether what is copied holds counts of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counting {
    /// It does.
    Counted,
    /// It is only looked at while the giver holds it.
    Borrowed,
}
