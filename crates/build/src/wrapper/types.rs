//! The types of messages and arguments, with the layout that `quaject_esp_gen::layout` says C has.

use super::Wrapper;
use super::names::{Scope, WRAPPER_NAMES, camel_case, constant_case, snake_case};
use quaject_esp_gen::layout::{View, tag_bytes};
use quaject_esp_ir::ir::{Boundary, IntType, Program, Type, TypeId};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The types that the environment sees, with their parts.
fn types_of_environment(program: &Program) -> BTreeSet<TypeId> {
    let external = program.channels.iter().filter(|channel| channel.boundary != Boundary::Internal);
    let of_channels = external.flat_map(|channel| channel.payload.iter().copied());
    let of_externs = program
        .externs
        .iter()
        .flat_map(|function| function.parameters.iter().map(|(ty, _)| *ty).chain(function.result));
    let found = RefCell::new(BTreeSet::new());
    for ty in of_channels.chain(of_externs) {
        // Visits every part, because none satisfies the test.
        program.types.find_part(ty, &|part| {
            found.borrow_mut().insert(part);
            false
        });
    }
    found.into_inner()
}

/// The name of each type that is declared.
pub(super) fn names_of_types(program: &Program) -> Vec<Option<String>> {
    let types = &program.types;
    let mut scope = Scope::with(WRAPPER_NAMES);
    let mut names = vec![None; types.types().len()];
    for ty in types_of_environment(program) {
        let wanted = match (types.get(ty), types.enumeration(ty)) {
            (_, Some(enumeration)) => Some(camel_case(&enumeration.name)),
            (Type::Record(id), None) => Some(aggregate_name(program, ty, &types.aggregate(*id).name, "Record")),
            (Type::Union(id), None) => Some(aggregate_name(program, ty, &types.aggregate(*id).name, "Union")),
            (Type::Pid(processes), None) => {
                let processes = processes.iter().map(|id| camel_case(&program.processes[id.0 as usize].name));
                Some(format!("Pid{}", processes.collect::<String>()))
            }
            (
                Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Array { .. } | Type::Boxed(_),
                None,
            ) => None,
        };
        names[ty.0 as usize] = wanted.map(|wanted| scope.claim(&wanted));
    }
    names
}

fn aggregate_name(program: &Program, ty: TypeId, name: &Option<impl AsRef<str>>, otherwise: &str) -> String {
    match name {
        Some(name) => camel_case(name.as_ref()),
        None => {
            // The content of a pool has the name of its boxed type.
            let pool = program.types.pools().iter().find(|pool| pool.content == ty);
            pool.map_or_else(|| format!("{otherwise}{}", ty.0), |pool| camel_case(&pool.name))
        }
    }
}

/// The integer type of Rust. Times and durations are nanoseconds.
pub(super) fn integer(int: IntType) -> String {
    format!("{}{}", if int.is_signed() { 'i' } else { 'u' }, int.bits())
}

const DERIVED: &str = "#[derive(Clone, Copy, PartialEq, Eq, Debug)]";

/// Declarations of all types that have names.
pub(super) fn declare(wrapper: &Wrapper<'_>) -> String {
    let types = &wrapper.program.types;
    let mut text = String::new();
    for (index, name) in wrapper.types.iter().enumerate() {
        let (Some(name), ty) = (name, TypeId(index as u32)) else { continue };
        match types.get(ty) {
            Type::Int(int) => declare_enumeration(wrapper, ty, *int, name, &mut text),
            Type::Pid(_) => declare_pid(wrapper, ty, name, &mut text),
            Type::Record(_) => declare_record(wrapper, ty, name, &mut text),
            Type::Union(_) => declare_union(wrapper, ty, name, &mut text),
            Type::Error | Type::Bool | Type::Bytes { .. } | Type::Array { .. } | Type::Boxed(_) => {
                unreachable!("`names_of_types` names no such type")
            }
        }
    }
    text
}

fn declare_enumeration(wrapper: &Wrapper<'_>, ty: TypeId, int: IntType, name: &str, text: &mut String) {
    let enumeration = wrapper.program.types.enumeration(ty).expect("only enumerations among integers have names");
    let base = integer(int);
    let mut scope = Scope::default();
    put!(text, "\n/// Enumeration `{}`, by its codes.", enumeration.name);
    if let Some(other) = &enumeration.other {
        put!(text, "/// Every code without a name is a case, `{other}`.");
    }
    put!(text, "#[repr(transparent)]\n#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]");
    put!(text, "pub struct {name}(pub {base});\n\nimpl {name} {{");
    for (case, code) in &enumeration.cases {
        put!(text, "    /// `{}.{case}`", enumeration.name);
        put!(text, "    pub const {}: {name} = {name}({code});", scope.claim(&constant_case(case)));
    }
    put!(text, "}}");
}

fn declare_pid(wrapper: &Wrapper<'_>, ty: TypeId, name: &str, text: &mut String) {
    let program = wrapper.program;
    let Type::Pid(processes) = program.types.get(ty) else { unreachable!("the caller has looked") };
    let names: Vec<String> = processes.iter().map(|id| program.processes[id.0 as usize].name.to_string()).collect();
    let tests = processes.iter().map(|id| {
        let first = program.first_instance(*id);
        format!("({first}..{}).contains(&instance)", first + program.processes[id.0 as usize].replicas)
    });
    let tests: Vec<String> = tests.collect();
    put!(text, "\n/// `pid({})`: an instance of these processes.", names.join(", "));
    put!(text, "#[repr(transparent)]\n#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]");
    put!(text, "pub struct {name}(u32);\n\nimpl {name} {{");
    put!(text, "    /// The instance with this number, if it is of these processes.");
    put!(text, "    pub fn new(instance: u32) -> Option<{name}> {{");
    put!(text, "        ({}).then_some({name}(instance))\n    }}\n", tests.join(" || "));
    put!(text, "    /// Its number.\n    pub fn instance(self) -> u32 {{\n        self.0\n    }}\n}}");
}

fn declare_record(wrapper: &Wrapper<'_>, ty: TypeId, name: &str, text: &mut String) {
    let types = &wrapper.program.types;
    let Type::Record(id) = types.get(ty) else { unreachable!("the caller has looked") };
    let parts = &types.aggregate(*id).parts;
    let mut scope = Scope::default();
    let mut offsets = Vec::new();
    put!(text, "\n/// Record `{}`.", types.aggregate(*id).name.as_deref().unwrap_or(name));
    put!(text, "#[repr(C)]\n{}\npub struct {name} {{", derived(parts.is_empty()));
    for ((field, part), offset) in parts.iter().zip(wrapper.generated.abi.layouts.field_offsets(ty, View::Environment))
    {
        let rust_name = scope.claim(&snake_case(field));
        put!(text, "    /// `{field}`");
        put!(text, "    pub {rust_name}: {},", wrapper.rust_type(part.expect("fields have types")));
        offsets.push((rust_name, *offset));
    }
    if parts.is_empty() {
        // The structure of C has a member.
        put!(text, "    unused: u8,");
    }
    put!(text, "}}");
    let size = wrapper.generated.abi.layouts.extent(ty, View::Environment).size;
    assert_layout(name, size, &offsets, text);
}

/// What a structure derives. One without values can be made by `default` only.
fn derived(is_empty: bool) -> &'static str {
    if is_empty { "#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]" } else { DERIVED }
}

fn declare_union(wrapper: &Wrapper<'_>, ty: TypeId, name: &str, text: &mut String) {
    let types = &wrapper.program.types;
    let Type::Union(id) = types.get(ty) else { unreachable!("the caller has looked") };
    let parts = &types.aggregate(*id).parts;
    let mut scope = Scope::default();
    put!(text, "\n/// Union `{}`.", types.aggregate(*id).name.as_deref().unwrap_or(name));
    // RFC 2195: a tag, then a union of the payloads, as generated C declares it.
    put!(text, "#[repr(C, u{})]\n{DERIVED}\npub enum {name} {{", 8 * tag_bytes(parts.len()));
    for (case, part) in parts {
        let payload = part.map_or_else(String::new, |part| format!("({})", wrapper.rust_type(part)));
        put!(text, "    /// `{case}`\n    {}{payload},", scope.claim(&camel_case(case)));
    }
    put!(text, "}}");
    let size = wrapper.generated.abi.layouts.extent(ty, View::Environment).size;
    assert_layout(name, size, &[], text);
}

/// Asserts a size and offsets, where integers are aligned to their sizes, as the header of C does. Elsewhere both
/// follow the machine's rules.
pub(super) fn assert_layout(name: &str, size: u64, offsets: &[(String, u64)], text: &mut String) {
    let mut facts = vec![format!("::core::mem::size_of::<{name}>() == {size}")];
    facts.extend(offsets.iter().map(|(field, offset)| format!("::core::mem::offset_of!({name}, {field}) == {offset}")));
    put!(text, "const _: () = assert!(::core::mem::align_of::<u64>() != 8 || {});", facts.join(" && "));
}
