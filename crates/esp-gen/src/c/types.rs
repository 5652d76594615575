//! Declarations of a program's types in C, in both forms where they differ, with assertions that the C compiler lays
//! them out as [`crate::layout`] says.

use super::constants::used_constants;
use super::names::member;
use super::plan::Plan;
use crate::layout::{View, tag_bytes};
use quaject_esp_ir::ir::{Type, TypeId};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Declarations of every type the program uses.
pub(crate) fn declare(plan: &Plan<'_>) -> String {
    let mut declarations = Declarations { plan, done: BTreeSet::new(), text: String::new() };
    let program = plan.program;
    for channel in &program.channels {
        channel.payload.iter().for_each(|ty| declarations.both(*ty));
    }
    for function in &program.externs {
        function.parameters.iter().map(|(ty, _)| ty).chain(&function.result).for_each(|ty| declarations.both(*ty));
    }
    for pool in program.types.pools() {
        declarations.both(pool.content);
    }
    let bodies = program.processes.iter().map(|process| &process.body);
    for body in bodies.chain(program.functions.iter().map(|function| &function.body)) {
        body.slots.iter().for_each(|slot| declarations.declare(slot.ty, View::Program));
    }
    for id in used_constants(program) {
        declarations.declare(program.constants[id.0 as usize].ty, View::Program);
    }
    for function in &program.functions {
        function.parameters.iter().chain([&function.result]).for_each(|ty| declarations.declare(*ty, View::Program));
    }
    declarations.text
}

struct Declarations<'p, 'a> {
    plan: &'p Plan<'a>,
    done: BTreeSet<(TypeId, View)>,
    text: String,
}

macro_rules! put {
    ($declarations:expr, $($arg:tt)*) => {
        writeln!($declarations.text, $($arg)*).expect("writing to a string does not fail")
    };
}

impl Declarations<'_, '_> {
    fn both(&mut self, ty: TypeId) {
        self.declare(ty, View::Environment);
        self.declare(ty, View::Program);
    }

    fn declare(&mut self, ty: TypeId, view: View) {
        let types = &self.plan.program.types;
        let view = if self.plan.layouts.has_boxes(ty) { view } else { View::Environment };
        if !self.done.insert((ty, view)) {
            return;
        }
        let name = match view {
            View::Environment => self.plan.environment_type(ty).to_string(),
            View::Program => self.plan.types[ty.0 as usize].clone(),
        };
        let of = |part: TypeId| match view {
            View::Environment => self.plan.environment_type(part).to_string(),
            View::Program => self.plan.types[part.0 as usize].clone(),
        };
        let mut offsets: Vec<(String, u64)> = Vec::new();
        match types.get(ty) {
            Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) => return,
            Type::Boxed(pool) => {
                if let View::Environment = view {
                    self.declare(types.pool(*pool).content, view);
                }
                return;
            }
            Type::Bytes { bound } => {
                let length = if *bound <= 65535 { "uint16_t" } else { "uint32_t" };
                put!(self, "typedef struct {name} {{");
                put!(self, "    {length} length;");
                put!(self, "    uint8_t data[{}];", (*bound).max(1));
            }
            Type::Array { length, element } => {
                self.declare(*element, view);
                put!(self, "typedef struct {name} {{");
                put!(self, "    {} at[{length}];", of(*element));
            }
            Type::Record(id) => {
                let parts = &types.aggregate(*id).parts;
                parts.iter().for_each(|(_, part)| self.declare(part.expect("fields have types"), view));
                put!(self, "typedef struct {name} {{");
                for ((field, part), offset) in parts.iter().zip(self.plan.layouts.field_offsets(ty, view)) {
                    let part = part.expect("fields have types");
                    put!(self, "    {} {};", of(part), member(field));
                    offsets.push((member(field), *offset));
                }
                if parts.is_empty() {
                    put!(self, "    uint8_t unused;");
                }
            }
            Type::Union(id) => {
                let parts = &types.aggregate(*id).parts;
                parts.iter().filter_map(|(_, part)| *part).for_each(|part| self.declare(part, view));
                if let View::Environment = view {
                    let tags: Vec<String> =
                        parts.iter().enumerate().map(|(tag, (case, _))| format!("{name}_{case} = {tag}")).collect();
                    put!(self, "enum {{ {} }};", tags.join(", "));
                }
                put!(self, "typedef struct {name} {{");
                put!(self, "    uint{}_t tag;", 8 * tag_bytes(parts.len()));
                if let Some(offset) = self.plan.layouts.payload_offset(ty, view) {
                    put!(self, "    union {{");
                    for (case, part) in parts {
                        if let Some(part) = part {
                            put!(self, "        {} {};", of(*part), member(case));
                        }
                    }
                    put!(self, "    }} as;");
                    offsets.push(("as".to_string(), offset));
                }
            }
        }
        put!(self, "}} {name};");
        let size = self.plan.layouts.extent(ty, view).size;
        let mut facts = vec![format!("sizeof({name}) == {size}u")];
        for (field, offset) in offsets {
            facts.push(format!("offsetof({name}, {field}) == {offset}u"));
        }
        put!(self, "ESP_LAYOUT({name}, {});\n", facts.join(" && "));
    }
}
