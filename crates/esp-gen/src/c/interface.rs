//! External interfaces: one C function per pattern of a channel. For a channel that the environment writes they build
//! messages, for one that it reads they take messages apart. Knows messages and patterns; nothing of processes.

use super::faults::Faults;
use super::helpers::Helpers;
use super::names::{c_string, member};
use super::pattern::{binds, conditions, message_parts};
use super::plan::Plan;
use super::values::literal;
use super::writer::{Scope, Writer};
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// The interfaces of a channel.
pub(crate) fn of_channel(plan: &Plan<'_>, channel: usize) -> Vec<usize> {
    (0..plan.program.interfaces.len())
        .filter(|index| plan.program.interfaces[*index].channel.0 as usize == channel)
        .collect()
}

fn signature(plan: &Plan<'_>, interface: usize, entry: &InterfaceEntry) -> String {
    let parameters: Vec<String> = entry
        .parameters
        .iter()
        .map(|(name, ty)| {
            let by_value = plan.program.types.is_scalar(*ty);
            let form = if by_value { "" } else { "const " };
            let star = if by_value { " " } else { " *" };
            format!("{form}{}{star}{}", plan.environment_type(*ty), member(name))
        })
        .collect();
    let parameters = if parameters.is_empty() { "void".to_string() } else { parameters.join(", ") };
    format!("void {}{}({parameters})", plan.interfaces[interface], entry.name)
}

/// Declarations of an interface's functions.
pub(crate) fn declare(plan: &Plan<'_>, interface: usize) -> String {
    let data = &plan.program.interfaces[interface];
    let name = &plan.interfaces[interface];
    let direction = match plan.program.channels[data.channel.0 as usize].boundary {
        Boundary::FromEnvironment => "Call an entry only while it is ready.",
        Boundary::ToEnvironment | Boundary::Internal => "To be defined by the user.",
    };
    let mut text = format!("/* interface {}. {direction} */\nbool {name}IsReady(void);\n", data.name);
    for entry in &data.entries {
        text.push_str(&format!("{};\n", signature(plan, interface, entry)));
    }
    text
}

/// Functions of an interface by which the environment receives messages: they accept each and do nothing.
pub(crate) fn stubs(plan: &Plan<'_>, interface: usize) -> String {
    let mut text = format!("bool {}IsReady(void) {{ return true; }}\n", plan.interfaces[interface]);
    for entry in &plan.program.interfaces[interface].entries {
        text.push_str(&format!("{} {{}}\n", signature(plan, interface, entry)));
    }
    text
}

/// The functions that build messages of a channel that the environment writes, in one slot that the program empties.
pub(crate) fn define(plan: &Plan<'_>, channel: usize, interface: usize) -> String {
    let data = &plan.program.interfaces[interface];
    let name = &plan.channels[channel].name;
    let mut text = format!("\nbool {}IsReady(void)\n{{\n    return !{name}_offered;\n}}\n", plan.interfaces[interface]);
    for entry in &data.entries {
        text.push_str(&format!("\n{}\n{{\n", signature(plan, interface, entry)));
        let values = plan.program.channels[channel].payload.iter().zip(&plan.channels[channel].members);
        for (pattern, (ty, member)) in entry.patterns.iter().zip(values) {
            build(plan, entry, pattern, *ty, &format!("{name}_offer.{member}"), &mut text);
        }
        text.push_str(&format!("    {name}_offered = true;\n}}\n"));
    }
    text
}

fn build(plan: &Plan<'_>, entry: &InterfaceEntry, pattern: &Pattern, ty: TypeId, to: &str, text: &mut String) {
    let types = &plan.program.types;
    let ty = match types.get(ty) {
        Type::Boxed(pool) => types.pool(*pool).content,
        Type::Error
        | Type::Bool
        | Type::Int(_)
        | Type::Pid(_)
        | Type::Bytes { .. }
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => ty,
    };
    match pattern {
        Pattern::Any | Pattern::OwnId | Pattern::Equal(_) => {
            text.push_str(&format!("    esp_zero(&{to}, sizeof {to});\n"));
        }
        Pattern::Bind(Bind::Parameter(index) | Bind::Slot(SlotId(index))) => {
            let (name, ty) = &entry.parameters[*index as usize];
            let star = if types.is_scalar(*ty) { "" } else { "*" };
            text.push_str(&format!("    {to} = {star}{};\n", member(name)));
        }
        Pattern::Constant(constant) => {
            text.push_str(&format!("    {to} = {};\n", literal(types, *constant, ty)));
        }
        Pattern::Bytes(bytes) => {
            text.push_str(&format!("    {to}.length = {};\n", bytes.len()));
            if !bytes.is_empty() {
                text.push_str(&format!("    esp_copy({to}.data, {}, {});\n", c_string(bytes), bytes.len()));
            }
        }
        Pattern::Tag(tag, inner) => {
            text.push_str(&format!("    {to}.tag = {tag};\n"));
            if let (Some(inner), Type::Union(id)) = (inner, types.get(ty)) {
                let (name, part) = &types.aggregate(*id).parts[*tag as usize];
                let part = part.expect("a tag with a pattern for its payload has one");
                build(plan, entry, inner, part, &format!("{to}.as.{}", member(name)), text);
            }
        }
        Pattern::Record(patterns) => {
            if let Type::Record(id) = types.get(ty) {
                for (pattern, (name, part)) in patterns.iter().zip(&types.aggregate(*id).parts) {
                    let part = part.expect("fields have types");
                    build(plan, entry, pattern, part, &format!("{to}.{}", member(name)), text);
                }
            }
        }
        Pattern::Array(patterns) => {
            if let Type::Array { element, .. } = types.get(ty) {
                for (index, pattern) in patterns.iter().enumerate() {
                    build(plan, entry, pattern, *element, &format!("{to}.at[{index}]"), text);
                }
            }
        }
    }
}

/// Statements that pass a message `m` of a channel that the environment reads to the entry that it matches.
pub(crate) fn take_apart(
    plan: &Plan<'_>,
    faults: &Faults,
    helpers: &Helpers,
    channel: usize,
    interface: usize,
) -> String {
    let data = &plan.program.interfaces[interface];
    let mut code = Writer::new(plan, faults, helpers, Scope::Function(0));
    for entry in &data.entries {
        let message = message_parts(&code, channel, "m", View::Environment);
        let all = conditions(&mut code, &entry.patterns, &message);
        let mut arguments = vec![String::new(); entry.parameters.len()];
        for (bind, part) in binds(&code, &entry.patterns, &message) {
            let (Bind::Parameter(index) | Bind::Slot(SlotId(index))) = bind;
            let address = if plan.program.types.is_scalar(part.ty) { "" } else { "&" };
            arguments[index as usize] = format!("{address}{}", part.text);
        }
        let test = if all.is_empty() { "{".to_string() } else { format!("if ({}) {{", all.join(" && ")) };
        code.block(&test, |code| {
            code.line(&format!("{}{}({});", plan.interfaces[interface], entry.name, arguments.join(", ")));
            code.line("return;");
        });
    }
    code.text
}
