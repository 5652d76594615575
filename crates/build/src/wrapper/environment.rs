//! The trait that a program's environment implements: a method for each channel that the program sends on, and for each
//! extern function; and the functions of C that call the latter.

use super::names::{Scope, snake_case};
use super::{Wrapper, extern_symbol};
use quaject_esp_ir::ir::{Boundary, Channel, Extern, Mutability, Program};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The names by which methods refer to channels and extern functions.
pub(super) struct MethodNames {
    /// By the number of an external channel.
    pub(super) channels: BTreeMap<usize, String>,
    /// Methods of the trait, by the number of an extern function.
    pub(super) externs: Vec<String>,
}

impl MethodNames {
    pub(super) fn of(program: &Program) -> MethodNames {
        let mut scope = Scope::default();
        let external = program.channels.iter().enumerate();
        let external = external.filter(|(_, channel)| channel.boundary != Boundary::Internal);
        let channels: BTreeMap<usize, String> =
            external.map(|(index, channel)| (index, scope.claim(&snake_case(&channel.name)))).collect();
        // A function may have the name of a method for a channel.
        let mut methods = Scope::default();
        for name in channels.values() {
            methods.claim(&receiver(name));
            methods.claim(&room_query(name));
        }
        let externs = program.externs.iter().map(|function| methods.claim(&snake_case(&function.name))).collect();
        MethodNames { channels, externs }
    }
}

/// The method that receives a message of a channel.
pub(super) fn receiver(channel: &str) -> String {
    format!("on_{channel}")
}

/// The method that says how many messages of a channel are accepted.
pub(super) fn room_query(channel: &str) -> String {
    format!("room_for_{channel}")
}

/// The names of a message's values: those of the channel, else `value`, or `v0`, `v1`.
pub(super) fn value_names(channel: &Channel) -> Vec<String> {
    let mut scope = Scope::with(&["self", "environment"]);
    let is_single = channel.payload.len() == 1;
    let name = |(index, name): (usize, &Option<SmolStr>)| match name {
        Some(name) => scope.claim(&snake_case(name)),
        None if is_single => scope.claim("value"),
        None => scope.claim(&format!("v{index}")),
    };
    channel.value_names.iter().enumerate().map(name).collect()
}

/// The trait.
pub(super) fn declare(wrapper: &Wrapper<'_>) -> String {
    let mut text = String::new();
    put!(text, "\n/// What the program needs: a receiver for each channel that it sends on, and its extern functions.");
    put!(text, "pub trait Environment {{");
    for index in wrapper.channels(Boundary::ToEnvironment) {
        let (channel, name) = (&wrapper.program.channels[index], &wrapper.methods.channels[&index]);
        let parameters = channel.payload.iter().zip(value_names(channel));
        let parameters = parameters.map(|(ty, name)| format!(", {name}: {}", wrapper.parameter_type(*ty)));
        put!(text, "    /// A message that the program sends on channel `{}`.", channel.name);
        put!(text, "    fn {}(&mut self{});\n", receiver(name), parameters.collect::<String>());
        put!(
            text,
            "    /// The number of messages of channel `{}` that are accepted now. Without room the",
            channel.name
        );
        put!(text, "    /// program waits: run it again when there is some.");
        put!(text, "    fn {}(&mut self) -> usize {{\n        usize::MAX\n    }}\n", room_query(name));
    }
    if wrapper.has_rust_externs() {
        for (function, method) in wrapper.program.externs.iter().zip(&wrapper.methods.externs) {
            put!(text, "    /// Extern function `{}`.", function.name);
            put!(text, "    fn {method}(&mut self{}){};\n", parameters(wrapper, function), result(wrapper, function));
        }
    }
    put!(text, "}}");
    text
}

fn parameters(wrapper: &Wrapper<'_>, function: &Extern) -> String {
    let parameter = |(index, (ty, mutability)): (usize, &(_, Mutability))| {
        let by_value = wrapper.program.types.is_scalar(*ty);
        let reference = match (by_value, mutability) {
            (true, _) => "",
            (false, Mutability::Immutable) => "&",
            (false, Mutability::Mutable) => "&mut ",
        };
        format!(", v{index}: {reference}{}", wrapper.rust_type(*ty))
    };
    function.parameters.iter().enumerate().map(parameter).collect()
}

fn result(wrapper: &Wrapper<'_>, function: &Extern) -> String {
    function.result.map_or_else(String::new, |ty| format!(" -> {}", wrapper.rust_type(ty)))
}

/// The functions that the program's C calls.
pub(super) fn define_externs(wrapper: &Wrapper<'_>) -> String {
    let mut text = String::new();
    for (function, method) in wrapper.program.externs.iter().zip(&wrapper.methods.externs) {
        define_extern(wrapper, function, method, &mut text);
    }
    text
}

/// One of them. Arguments by address are copied, because two of them may be one variable of the program, and what the
/// function has changed is copied back.
fn define_extern(wrapper: &Wrapper<'_>, function: &Extern, method: &str, text: &mut String) {
    let types = &wrapper.program.types;
    let (mut parameters, mut before, mut arguments, mut after) = (Vec::new(), String::new(), Vec::new(), String::new());
    for (index, (ty, mutability)) in function.parameters.iter().enumerate() {
        if types.is_scalar(*ty) {
            parameters.push(format!("v{index}: {}", wrapper.scalar_of_c(*ty)));
            arguments.push(match &wrapper.types[ty.0 as usize] {
                Some(name) => format!("super::{name}(v{index})"),
                None => format!("v{index}"),
            });
            continue;
        }
        let rust_type = qualified(&wrapper.rust_type(*ty));
        let (constness, reference) = match mutability {
            Mutability::Immutable => ("const", "&"),
            Mutability::Mutable => ("mut", "&mut "),
        };
        parameters.push(format!("v{index}: *{constness} {rust_type}"));
        put!(before, "    // SAFETY: The program passes the address of a value of the type.");
        put!(before, "    let mut a{index} = unsafe {{ v{index}.read() }};");
        arguments.push(format!("{reference}a{index}"));
        if *mutability == Mutability::Mutable {
            put!(after, "    // SAFETY: As above; a mutable parameter is a variable.");
            put!(after, "    unsafe {{ v{index}.write(a{index}) }};");
        }
    }
    let call = format!("environment.{method}({})", arguments.join(", "));
    let (result, body) = match function.result {
        None => (String::new(), format!("    call((), |environment| {call});\n{after}")),
        Some(ty) if types.is_scalar(ty) => {
            let scalar = wrapper.scalar_of_c(ty);
            let content = if wrapper.types[ty.0 as usize].is_some() { ".0" } else { "" };
            let zero = if scalar == "bool" { "false" } else { "0" };
            (
                format!(" -> {scalar}"),
                format!("    let result = call({zero}, |environment| {call}{content});\n{after}    result\n"),
            )
        }
        Some(ty) => {
            parameters.push(format!("result: *mut {}", qualified(&wrapper.rust_type(ty))));
            let body = format!(
                "    let value = call(None, |environment| Some({call}));\n{after}    match value {{\n        \
                 // SAFETY: The program passes the address of a variable of the type.\n        \
                 Some(value) => unsafe {{ result.write(value) }},\n        \
                 // SAFETY: As above. The program checks what it gets; zeros are lengths, tags and integers.\n        \
                 None => unsafe {{ result.write_bytes(0, 1) }},\n    }}\n"
            );
            (String::new(), body)
        }
    };
    let symbol = extern_symbol(wrapper.prefix, &function.name);
    put!(text, "\n// SAFETY: The name has a prefix of this program; no other symbol has it.");
    put!(text, "#[unsafe(export_name = \"{symbol}\")]");
    put!(text, "unsafe extern \"C\" fn {method}({}){result} {{\n{before}{body}}}", parameters.join(", "));
}

/// A type of the wrapper, as a module in it names it.
fn qualified(rust_type: &str) -> String {
    // `[T; N]` has the name of a type within.
    let at = rust_type.bytes().take_while(|byte| *byte == b'[').count();
    let (brackets, rest) = rust_type.split_at(at);
    let is_primitive = rest.starts_with(|first: char| first.is_ascii_lowercase());
    format!("{brackets}{}{rest}", if is_primitive { "" } else { "super::" })
}
