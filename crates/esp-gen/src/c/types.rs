//! Names and declarations of a program's types in C, in both forms where they differ, with assertions that the C compiler
//! lays them out as [`crate::layout`] says.

use super::names::{Names, member};
use super::plan::Plan;
use crate::layout::{Layouts, View, tag_bytes};
use quaject_esp_ir::ir::{Type, TypeId, TypeTable};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Declarations of every type the program uses.
pub(crate) fn declare(plan: &Plan<'_>) -> String {
    let mut writer = Writer { plan, done: BTreeSet::new(), text: String::new() };
    let program = plan.program;
    for channel in &program.channels {
        channel.payload.iter().for_each(|ty| writer.both(*ty));
    }
    for function in &program.externs {
        function.parameters.iter().map(|(ty, _)| ty).chain(&function.result).for_each(|ty| writer.both(*ty));
    }
    for pool in program.types.pools() {
        writer.both(pool.content);
    }
    let bodies = program.processes.iter().map(|process| &process.body);
    for body in bodies.chain(program.functions.iter().map(|function| &function.body)) {
        body.slots.iter().for_each(|slot| writer.declare(slot.ty, View::Program));
    }
    for function in &program.functions {
        function.parameters.iter().chain([&function.result]).for_each(|ty| writer.declare(*ty, View::Program));
    }
    writer.text
}

struct Writer<'p, 'a> {
    plan: &'p Plan<'a>,
    done: BTreeSet<(TypeId, View)>,
    text: String,
}

macro_rules! put {
    ($writer:expr, $($arg:tt)*) => {
        writeln!($writer.text, $($arg)*).expect("writing to a string does not fail")
    };
}

impl Writer<'_, '_> {
    fn both(&mut self, ty: TypeId) {
        self.declare(ty, View::World);
        self.declare(ty, View::Program);
    }

    fn declare(&mut self, ty: TypeId, view: View) {
        let types = &self.plan.program.types;
        let view = if self.plan.layouts.has_boxes(ty) { view } else { View::World };
        if !self.done.insert((ty, view)) {
            return;
        }
        let name = match view {
            View::World => self.plan.world_type(ty).to_string(),
            View::Program => self.plan.types[ty.0 as usize].clone(),
        };
        let of = |part: TypeId| match view {
            View::World => self.plan.world_type(part).to_string(),
            View::Program => self.plan.types[part.0 as usize].clone(),
        };
        let mut offsets: Vec<(String, u64)> = Vec::new();
        match types.get(ty) {
            Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) => return,
            Type::Boxed(pool) => {
                if let View::World = view {
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
                if let View::World = view {
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
        let mut facts = vec![format!("sizeof({name}) == {size}")];
        for (field, offset) in offsets {
            facts.push(format!("offsetof({name}, {field}) == {offset}"));
        }
        put!(self, "ESP_LAYOUT({name}, {});\n", facts.join(" && "));
    }
}

/// Names of records and unions come from the source; structural types are named by what they hold.
/// Where the two forms differ, the world's has the plain name.
pub(crate) fn type_names(
    types: &TypeTable,
    layouts: &Layouts,
    own: &str,
    names: &mut Names,
) -> (Vec<String>, Vec<String>) {
    let mut result: Vec<String> = vec![String::new(); types.types().len()];
    let mut world: Vec<String> = vec![String::new(); types.types().len()];
    for (index, form) in world.iter_mut().enumerate() {
        let ty = TypeId(index as u32);
        let name = type_name(types, ty, own, names, &mut result);
        if layouts.has_boxes(ty) && !matches!(types.get(ty), Type::Boxed(_)) {
            *form = name;
        }
    }
    for (form, name) in world.iter().zip(&mut result) {
        if !form.is_empty() {
            *name = names.claim(&format!("{form}_boxed"));
        }
    }
    (result, world)
}

fn type_name(types: &TypeTable, ty: TypeId, own: &str, names: &mut Names, result: &mut Vec<String>) -> String {
    let known = &result[ty.0 as usize];
    if !known.is_empty() {
        return known.clone();
    }
    let name = match types.get(ty) {
        Type::Error => "uint8_t".to_string(),
        Type::Bool => "bool".to_string(),
        Type::Int(int) => format!("{}int{}_t", if int.is_signed() { "" } else { "u" }, int.bits()),
        Type::Pid(_) => "esp_pid".to_string(),
        Type::Bytes { bound } => names.claim(&format!("{own}bytes_{bound}")),
        Type::Array { length, element } => {
            let element = type_name(types, *element, own, names, result);
            let element = element.strip_suffix("_t").unwrap_or(&element).to_string();
            let element = element.strip_prefix(own).unwrap_or(&element);
            names.claim(&format!("{own}array_{length}_{element}"))
        }
        Type::Record(id) => match &types.aggregate(*id).name {
            Some(name) => names.claim(&format!("{own}{name}")),
            None => names.claim(&format!("{own}record_{}", id.0)),
        },
        Type::Union(id) => match &types.aggregate(*id).name {
            Some(name) => names.claim(&format!("{own}{name}")),
            None => names.claim(&format!("{own}union_{}", id.0)),
        },
        Type::Boxed(pool) => {
            if types.pool(*pool).capacity <= 65535 {
                "uint16_t".to_string()
            } else {
                "uint32_t".to_string()
            }
        }
    };
    result[ty.0 as usize] = name.clone();
    name
}
