//! Functions that follow the structure of a type: counts of boxed parts, equality, copies between the environment's
//! form and the program's. Each is written only if something uses it. Knows types; nothing of processes.

use super::names::member;
use super::plan::Plan;
use crate::layout::{View, has_spare, tag_bytes};
use quaject_esp_ir::ir::{MemoryMode, PoolId, Type, TypeId};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What a helper does to a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Helper {
    /// Adds one count to each boxed part.
    Retain,
    /// Removes one.
    Release,
    /// Compares by content; the left value has this form.
    Equal(View),
    /// Copies the program's form to the environment's.
    ToEnvironment,
    /// Copies the environment's form to the program's, taking objects.
    FromEnvironment,
    /// Whether the pools have the objects [`Helper::FromEnvironment`] will take.
    HasObjects,
    /// Adds up the objects needed, by pool.
    Needs,
    /// Whether a value in the environment's form is one of its type: C may have given it an invalid length or tag.
    IsValid,
    /// Whether each object has a count: in manual memory it may have none left.
    Alive(Depth),
}

/// How far a liveness check of objects follows references.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Depth {
    /// To those a value refers to.
    Direct,
    /// To all objects reachable from it.
    Transitive,
}

/// The helpers used so far.
#[derive(Default)]
pub(crate) struct Helpers {
    wanted: RefCell<BTreeSet<(TypeId, Helper)>>,
    pools: RefCell<BTreeSet<u32>>,
}

impl Helpers {
    /// Requests a helper; returns its name.
    pub(crate) fn want(&self, plan: &Plan<'_>, helper: Helper, ty: TypeId) -> String {
        self.wanted.borrow_mut().insert((ty, helper));
        name(plan, helper, ty)
    }

    /// Requests the function that takes an object from a pool.
    pub(crate) fn want_pool(&self, pool: PoolId) {
        self.pools.borrow_mut().insert(pool.0);
    }

    /// Declarations and definitions of all requested helpers and of those that they use.
    pub(crate) fn write(&self, plan: &Plan<'_>) -> (String, String) {
        let mut written = BTreeSet::new();
        let mut bodies = BTreeSet::new();
        loop {
            let next = self.wanted.borrow().iter().find(|entry| !written.contains(*entry)).copied();
            let Some((ty, helper)) = next else { break };
            let body = self.define(plan, helper, ty);
            bodies.insert(((ty, helper), body));
            written.insert((ty, helper));
        }
        let mut declarations = String::new();
        let mut definitions = String::new();
        for pool in self.pools.borrow().iter() {
            definitions.push_str(&take(plan, PoolId(*pool)));
        }
        for ((ty, helper), body) in &bodies {
            let head = signature(plan, *helper, *ty);
            declarations.push_str(&format!("{head};\n"));
            definitions.push_str(&format!("\n{head}\n{{\n{body}}}\n"));
        }
        (declarations, definitions)
    }

    fn define(&self, plan: &Plan<'_>, helper: Helper, ty: TypeId) -> String {
        let types = &plan.program.types;
        let mut text = String::new();
        match helper {
            Helper::HasObjects => {
                let needs = self.want(plan, Helper::Needs, ty);
                text.push_str(&format!("    uint32_t need[{}] = {{0}};\n", plan.pools.len()));
                text.push_str(&format!("    {needs}(need, v);\n"));
                let conditions: Vec<String> = plan
                    .pools
                    .iter()
                    .enumerate()
                    .map(|(index, name)| format!("need[{index}] <= t->{name}.free"))
                    .collect();
                text.push_str(&format!("    return {};\n", conditions.join(" && ")));
                return text;
            }
            Helper::Equal(_) | Helper::Alive(_) | Helper::IsValid => {}
            Helper::Retain | Helper::Release | Helper::ToEnvironment | Helper::FromEnvironment | Helper::Needs => {
                if matches!(helper, Helper::Retain | Helper::Release | Helper::FromEnvironment) {
                    text.push_str("    (void)t;\n");
                }
            }
        }
        if let Helper::Equal(_) | Helper::ToEnvironment | Helper::Alive(_) = helper {
            text.push_str("    (void)t;\n");
        }
        match types.get(ty) {
            Type::Boxed(pool) => self.define_boxed(plan, helper, *pool, &mut text),
            Type::Record(id) => {
                for (name, part) in &types.aggregate(*id).parts {
                    let part = part.expect("fields have types");
                    text.push_str(&self.part(plan, helper, part, &format!(".{}", member(name)), "    "));
                }
            }
            Type::Array { length, element } => {
                text.push_str("    uint32_t i;\n");
                text.push_str(&format!("    for (i = 0; i < {length}u; i++) {{\n"));
                text.push_str(&self.part(plan, helper, *element, ".at[i]", "        "));
                text.push_str("    }\n");
            }
            Type::Union(id) => {
                match helper {
                    Helper::Equal(_) => text.push_str("    if (a->tag != b->tag) return false;\n"),
                    Helper::ToEnvironment | Helper::FromEnvironment => text.push_str("    to->tag = v->tag;\n"),
                    Helper::IsValid => {
                        let tags = types.aggregate(*id).parts.len();
                        if has_spare(tag_bytes(tags), tags as u64 - 1) {
                            text.push_str(&format!("    if (v->tag >= {tags}u) return false;\n"));
                        }
                    }
                    Helper::Retain | Helper::Release | Helper::Needs | Helper::HasObjects | Helper::Alive(_) => {}
                }
                let subject = if let Helper::Equal(_) = helper { "a" } else { "v" };
                text.push_str(&format!("    switch ({subject}->tag) {{\n"));
                for (tag, (name, part)) in types.aggregate(*id).parts.iter().enumerate() {
                    if let Some(part) = part {
                        let inner = self.part(plan, helper, *part, &format!(".as.{}", member(name)), "        ");
                        if !inner.is_empty() {
                            text.push_str(&format!("    case {tag}:\n{inner}        break;\n"));
                        }
                    }
                }
                text.push_str("    default:\n        break;\n    }\n");
            }
            Type::Error | Type::Bool | Type::Int(_) | Type::Pid(_) | Type::Bytes { .. } => {
                text.push_str(&self.part(plan, helper, ty, "", "    "));
            }
        }
        if let Helper::Equal(_) | Helper::Alive(_) | Helper::IsValid = helper {
            text.push_str("    return true;\n");
        }
        text
    }

    fn define_boxed(&self, plan: &Plan<'_>, helper: Helper, pool: PoolId, text: &mut String) {
        let types = &plan.program.types;
        let content = types.pool(pool).content;
        let name = &plan.pools[pool.0 as usize];
        match helper {
            Helper::Retain => text.push_str(&format!("    t->{name}.count[v]++;\n")),
            Helper::Release => {
                text.push_str(&format!("    if (--t->{name}.count[v] != 0u) return;\n"));
                if plan.layouts.has_boxes(content) {
                    let release = self.want(plan, Helper::Release, content);
                    let by_value = matches!(types.get(content), Type::Boxed(_));
                    let address = if by_value { "" } else { "&" };
                    text.push_str(&format!("    {release}(t, {address}t->{name}.content[v]);\n"));
                }
                text.push_str(&format!("    t->{name}.next[v] = t->{name}.first;\n"));
                text.push_str(&format!("    t->{name}.first = v;\n    t->{name}.free++;\n"));
                text.push_str("    t->freed = true;\n");
            }
            Helper::FromEnvironment => {
                self.want_pool(pool);
                text.push_str(&format!("    *to = {name}_take(t);\n"));
                if plan.layouts.has_boxes(content) {
                    let copy = self.want(plan, Helper::FromEnvironment, content);
                    text.push_str(&format!("    {copy}(t, &t->{name}.content[*to], v);\n"));
                } else {
                    text.push_str(&format!("    t->{name}.content[*to] = *v;\n"));
                }
            }
            Helper::ToEnvironment => {
                if plan.layouts.has_boxes(content) {
                    let copy = self.want(plan, Helper::ToEnvironment, content);
                    text.push_str(&format!("    {copy}(t, to, &t->{name}.content[*v]);\n"));
                } else {
                    text.push_str(&format!("    *to = t->{name}.content[*v];\n"));
                }
            }
            Helper::Needs => {
                text.push_str(&format!("    need[{}]++;\n", pool.0));
                if plan.layouts.has_boxes(content) {
                    let needs = self.want(plan, Helper::Needs, content);
                    text.push_str(&format!("    {needs}(need, v);\n"));
                } else {
                    text.push_str("    (void)v;\n");
                }
            }
            Helper::Alive(depth) => {
                text.push_str(&format!("    if (t->{name}.count[v] == 0u) return false;\n"));
                if depth == Depth::Transitive {
                    text.push_str(&self.part(plan, helper, content, &format!("t->{name}.content[v]"), "    "));
                }
            }
            Helper::Equal(_) | Helper::HasObjects | Helper::IsValid => {
                unreachable!("boxed values are compared, measured and checked by their parts")
            }
        }
    }

    /// What the helper does with one part of a value; `path` leads to it.
    fn part(&self, plan: &Plan<'_>, helper: Helper, ty: TypeId, path: &str, margin: &str) -> String {
        let types = &plan.program.types;
        let boxes = plan.layouts.has_boxes(ty);
        let at = |base: &str| if path.is_empty() { format!("(*{base})") } else { format!("{base}->{}", &path[1..]) };
        match helper {
            Helper::Retain | Helper::Release => {
                if !boxes {
                    return String::new();
                }
                let function = self.want(plan, helper, ty);
                let address = if matches!(types.get(ty), Type::Boxed(_)) { "" } else { "&" };
                format!("{margin}{function}(t, {address}{});\n", at("v"))
            }
            Helper::Alive(_) => {
                if !boxes {
                    return String::new();
                }
                let function = self.want(plan, helper, ty);
                let address = if matches!(types.get(ty), Type::Boxed(_)) { "" } else { "&" };
                let object = if path.starts_with('.') { at("v") } else { path.to_string() };
                format!("{margin}if (!{function}(t, {address}{object})) return false;\n")
            }
            Helper::Needs => {
                if !boxes {
                    return String::new();
                }
                format!("{margin}{}(need, &{});\n", self.want(plan, helper, ty), at("v"))
            }
            Helper::ToEnvironment | Helper::FromEnvironment => {
                if !boxes {
                    return format!("{margin}{} = {};\n", at("to"), at("v"));
                }
                format!("{margin}{}(t, &{}, &{});\n", self.want(plan, helper, ty), at("to"), at("v"))
            }
            Helper::Equal(view) => {
                format!("{margin}if (!({})) return false;\n", self.equal(plan, ty, &at("a"), &at("b"), view))
            }
            Helper::IsValid => self.validate_part(plan, ty, &at("v"), margin),
            Helper::HasObjects => unreachable!("pools are compared with the needs of the parts"),
        }
    }

    /// Returns `false` unless this part, in the environment's form, is a value of its type.
    fn validate_part(&self, plan: &Plan<'_>, ty: TypeId, part: &str, margin: &str) -> String {
        if !plan.layouts.has_gaps(ty) {
            return String::new();
        }
        format!("{margin}if (!({})) return false;\n", self.validity(plan, ty, part))
    }

    /// Whether this value in the environment's form is one of its type; not called for types that have no invalid
    /// representation.
    pub(crate) fn validity(&self, plan: &Plan<'_>, ty: TypeId, value: &str) -> String {
        let types = &plan.program.types;
        match types.get(ty) {
            Type::Error | Type::Bool | Type::Int(_) => "true".to_string(),
            Type::Pid(processes) => {
                let instances = processes.iter().map(|process| {
                    let process = &plan.processes[process.0 as usize];
                    format!("{value} - {}u < {}u", process.base, process.replicas)
                });
                instances.collect::<Vec<_>>().join(" || ")
            }
            Type::Bytes { bound } => format!("{value}.length <= {bound}u"),
            Type::Boxed(pool) => self.validity(plan, types.pool(*pool).content, value),
            Type::Array { .. } | Type::Record(_) | Type::Union(_) => {
                format!("{}(&{value})", self.want(plan, Helper::IsValid, ty))
            }
        }
    }

    fn equal(&self, plan: &Plan<'_>, ty: TypeId, a: &str, b: &str, view: View) -> String {
        let types = &plan.program.types;
        match types.get(ty) {
            Type::Error | Type::Bool | Type::Int(_) | Type::Pid(_) => format!("{a} == {b}"),
            Type::Bytes { .. } => format!("{a}.length == {b}.length && esp_same({a}.data, {b}.data, {a}.length)"),
            Type::Boxed(pool) => {
                let name = &plan.pools[pool.0 as usize];
                let content = types.pool(*pool).content;
                let b = format!("t->{name}.content[{b}]");
                match view {
                    View::Program => self.equal(plan, content, &format!("t->{name}.content[{a}]"), &b, view),
                    View::Environment => self.equal(plan, content, a, &b, view),
                }
            }
            Type::Array { .. } | Type::Record(_) | Type::Union(_) => {
                let view = if plan.layouts.has_boxes(ty) { view } else { View::Program };
                format!("{}(t, &{a}, &{b})", self.want(plan, Helper::Equal(view), ty))
            }
        }
    }
}

fn name(plan: &Plan<'_>, helper: Helper, ty: TypeId) -> String {
    let stem = match plan.program.types.get(ty) {
        Type::Boxed(pool) => plan.pools[pool.0 as usize].clone(),
        Type::Error
        | Type::Bool
        | Type::Int(_)
        | Type::Pid(_)
        | Type::Bytes { .. }
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => plan.types[ty.0 as usize].clone(),
    };
    match helper {
        Helper::Retain => format!("{stem}_retain"),
        Helper::Release => format!("{stem}_release"),
        Helper::Equal(View::Program) => format!("{stem}_equal"),
        Helper::Equal(View::Environment) => format!("{stem}_equal_environment"),
        Helper::ToEnvironment => format!("{stem}_to_environment"),
        Helper::FromEnvironment => format!("{stem}_from_environment"),
        Helper::HasObjects => format!("{stem}_has_objects"),
        Helper::Needs => format!("{stem}_needs"),
        Helper::IsValid => format!("{stem}_is_valid"),
        Helper::Alive(Depth::Direct) => format!("{stem}_alive"),
        Helper::Alive(Depth::Transitive) => format!("{stem}_all_alive"),
    }
}

fn signature(plan: &Plan<'_>, helper: Helper, ty: TypeId) -> String {
    let name = name(plan, helper, ty);
    let own = &plan.types[ty.0 as usize];
    let environment = plan.environment_type(ty);
    let state = format!("{}_t", plan.prefix);
    let by_value = matches!(plan.program.types.get(ty), Type::Boxed(_));
    let subject = if by_value { format!("{own} v") } else { format!("const {own} *v") };
    match helper {
        Helper::Retain | Helper::Release => format!("static void {name}({state} *t, {subject})"),
        Helper::Equal(View::Program) => format!("static bool {name}({state} *t, const {own} *a, const {own} *b)"),
        Helper::Equal(View::Environment) => {
            format!("static bool {name}({state} *t, const {environment} *a, const {own} *b)")
        }
        Helper::ToEnvironment => format!("static void {name}({state} *t, {environment} *to, const {own} *v)"),
        Helper::FromEnvironment => format!("static void {name}({state} *t, {own} *to, const {environment} *v)"),
        Helper::HasObjects => format!("static bool {name}({state} *t, const {environment} *v)"),
        Helper::Needs => format!("static void {name}(uint32_t *need, const {environment} *v)"),
        Helper::IsValid => format!("static bool {name}(const {environment} *v)"),
        Helper::Alive(_) => format!("static bool {name}({state} *t, {subject})"),
    }
}

/// The function that takes the first free object of a pool; the pool is not empty.
fn take(plan: &Plan<'_>, pool: PoolId) -> String {
    let name = &plan.pools[pool.0 as usize];
    let data = plan.program.types.pool(pool);
    let reference = if data.capacity <= 65535 { "uint16_t" } else { "uint32_t" };
    // In manual memory a dangling reference may see the next object while it is built.
    let content = format!("t->{name}.content[v]");
    let clear = match (plan.program.memory, plan.program.types.get(data.content)) {
        (MemoryMode::Automatic, _) => String::new(),
        (MemoryMode::Manual, Type::Bytes { .. }) => format!("    {content}.length = 0;\n"),
        (MemoryMode::Manual, _) => format!("    esp_zero(&{content}, sizeof {content});\n"),
    };
    format!(
        "\nESP_INLINE {reference} {name}_take({}_t *t)\n{{\n    {reference} v = t->{name}.first;\n    \
         t->{name}.first = t->{name}.next[v];\n    t->{name}.free--;\n    t->{name}.count[v] = 1;\n    \
         t->freed = true;\n{clear}    return v;\n}}\n",
        plan.prefix
    )
}
