//! Types as written to types in the table; their sizes and the limits on them; how messages print them.

use super::body::{Body, BodyKind};
use super::constants::Constant;
use super::names::{Checker, Entity, Named};
use super::uses::DefinitionKind;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, Mutability, ProcessId};
use crate::span::Span;
use crate::types::{Aggregate, Enumeration, IntType, Pool, Type, TypeId, TypeTable};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// The maximum size in bytes of one type, and of all variables and pools of a program together. The reference sets no
/// limit; static memory beyond this is probably an error, and every size fits 32 bits.
pub(super) const MAX_MEMORY: u64 = 1 << 31;
/// The maximum number of instances of a program, and so of replicas of a process.
pub(super) const MAX_INSTANCES: u32 = 65_535;
/// The maximum nesting of types in types.
const MAX_DEPTH: u32 = 64;

/// Size and depth of every type met so far.
#[derive(Clone, Default)]
pub(super) struct Measures {
    known: FxHashMap<TypeId, Measure>,
}

#[derive(Clone, Copy)]
struct Measure {
    bytes: u64,
    depth: u32,
}

/// What a constant that sizes something has to satisfy.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) what: &'static str,
    pub(super) minimum: i128,
    pub(super) maximum: i128,
}

/// Resolves a `type` item; what it mentions has been resolved before.
pub(super) fn resolve_item(checker: &mut Checker, entry: usize) {
    if checker.type_entries[entry].resolved.is_some() {
        return;
    }
    let item = checker.type_entries[entry].item;
    let content = checker.resolve_named_type(&item.ty, Some(&item.name.text));
    let resolved = match checker.type_entries[entry].pool {
        None => content,
        Some(pool) => resolve_pool(checker, pool, content),
    };
    checker.type_entries[entry].resolved = Some(resolved);
}

/// Reference, section 6: a named type with a pool is boxed. We give pools to types with parts only; an `int` with a
/// pool would cost more than it holds.
fn resolve_pool<'a>(checker: &mut Checker<'a>, pool: &'a ast::Pool, content: TypeId) -> TypeId {
    let limits = Limits { what: "pool", minimum: 1, maximum: i128::from(u32::MAX / 2) };
    let capacity = checker.constant_size(&pool.capacity, limits);
    match checker.types.get(content) {
        Type::Error => return TypeTable::ERROR,
        Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) => {}
        Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Boxed(_) => {
            let message =
                format!("a pool holds records, unions, arrays or `bytes`, found `{}`", checker.type_name(content));
            checker.error(Code::E0302, pool.ty.span, message);
            return content;
        }
    }
    let capacity = capacity.unwrap_or(1);
    let id = checker.types.add_pool(Pool { name: pool.ty.text.clone(), content, capacity });
    let ty = checker.types.intern(Type::Boxed(id));
    checker.measure(ty);
    ty
}

/// Resolves the replicas of every process and numbers the instances.
pub(super) fn resolve_replicas(checker: &mut Checker) {
    let mut next = 0u32;
    for process in 0..checker.processes.len() {
        let item = checker.processes[process].item;
        let limits = Limits { what: "number of replicas", minimum: 0, maximum: i128::from(MAX_INSTANCES) };
        let mut replicas = match &item.replicas {
            Some(count) => checker.constant_size(count, limits).unwrap_or(1),
            None => 1,
        };
        if next.saturating_add(replicas) > MAX_INSTANCES {
            let message = format!("the program has more than {MAX_INSTANCES} instances");
            checker.error(Code::E0309, item.name.span, message);
            replicas = 1;
        }
        let entry = &mut checker.processes[process];
        (entry.replicas, entry.first_instance) = (replicas, next);
        next = next.saturating_add(replicas);
    }
}

/// Reports a program whose variables and pools need more than [`MAX_MEMORY`].
pub(super) fn check_memory(checker: &mut Checker) {
    let mut total = 0u64;
    for pool in checker.pools.clone() {
        if let Some(Named { entity: Entity::Type(entry), .. }) = checker.lookup(&pool.ty) {
            let ty = checker.type_entries[entry].resolved.unwrap_or(TypeTable::ERROR);
            if let Type::Boxed(id) = *checker.types.get(ty) {
                let Pool { content, capacity, .. } = *checker.types.pool(id);
                let bytes = checker.measure(content).bytes.saturating_mul(u64::from(capacity));
                total = charge(checker, total, bytes, pool.ty.span);
            }
        }
    }
    for process in 0..checker.processes.len() {
        let entry = &checker.processes[process];
        let (replicas, span) = (u64::from(entry.replicas), entry.item.name.span);
        let locals: Vec<TypeId> =
            entry.hir.iter().flat_map(|process| process.locals.iter().map(|local| local.ty)).collect();
        let bytes = locals.iter().fold(0u64, |sum, ty| sum.saturating_add(checker.measure(*ty).bytes));
        total = charge(checker, total, bytes.saturating_mul(replicas), span);
    }
}

/// Adds to the memory used so far, and reports the item with which it becomes too much.
fn charge(checker: &mut Checker, total: u64, bytes: u64, span: Span) -> u64 {
    let sum = total.saturating_add(bytes);
    if total <= MAX_MEMORY && sum > MAX_MEMORY {
        let message = format!("this needs {bytes} bytes of memory, more than the {MAX_MEMORY} a program may have");
        checker.error(Code::E0309, span, message);
    }
    sum
}

impl<'a> Checker<'a> {
    /// The type of an `ast::Type`.
    pub(super) fn resolve_type(&mut self, ty: &'a ast::Type) -> TypeId {
        self.resolve_named_type(ty, None)
    }

    fn resolve_named_type(&mut self, ty: &'a ast::Type, name: Option<&SmolStr>) -> TypeId {
        let resolved = match &ty.kind {
            ast::TypeKind::Error => TypeTable::ERROR,
            ast::TypeKind::Int(int) => TypeTable::int(*int),
            ast::TypeKind::Bool => TypeTable::BOOL,
            ast::TypeKind::Bytes(bound) => {
                let limits = Limits { what: "bound of `bytes`", minimum: 0, maximum: i128::from(i32::MAX) };
                match self.constant_size(bound, limits) {
                    Some(bound) => self.types.intern(Type::Bytes { bound }),
                    None => TypeTable::ERROR,
                }
            }
            ast::TypeKind::Pid(names) => {
                let is_absent =
                    |name: &&ast::Name| matches!(self.find(name), Some(Named { entity: Entity::AbsentProcess, .. }));
                let present: Vec<&ast::Name> = names.iter().filter(|name| !is_absent(name)).collect();
                if present.is_empty() && !names.is_empty() {
                    let message = "no process of this `pid` has an instance";
                    self.error(Code::E0309, ty.span, message);
                    return TypeTable::ERROR;
                }
                let mut processes: Vec<ProcessId> = present.into_iter().filter_map(|name| self.process(name)).collect();
                processes.sort();
                processes.dedup();
                if processes.is_empty() || processes.len() > names.len() {
                    TypeTable::ERROR
                } else {
                    self.types.intern(Type::Pid(processes.into()))
                }
            }
            ast::TypeKind::Named(name) => self.named_type(name),
            ast::TypeKind::Array(None, element) => {
                self.resolve_type(element);
                let diagnostic = Diagnostic::new(Code::E0309, ty.span, "the length of this array is not known")
                    .help("write `array[N] of ..`");
                self.report(diagnostic);
                TypeTable::ERROR
            }
            ast::TypeKind::Array(Some(length), element) => {
                let limits = Limits { what: "array length", minimum: 1, maximum: i128::from(i32::MAX) };
                let length = self.constant_size(length, limits);
                let element = self.resolve_type(element);
                match length {
                    Some(length) if element != TypeTable::ERROR => self.types.intern(Type::Array { length, element }),
                    Some(_) | None => TypeTable::ERROR,
                }
            }
            ast::TypeKind::Record(fields) => {
                let parts = fields.iter().map(|(field, ty)| (field, Some(ty))).collect();
                let parts = self.resolve_parts(parts, "field");
                let id = self.types.add_aggregate(Aggregate { name: name.cloned(), parts });
                self.record_parts(id, DefinitionKind::Field, fields.iter().map(|(field, _)| field.span));
                self.types.intern(Type::Record(id))
            }
            ast::TypeKind::Union(tags) => {
                let parts = tags.iter().map(|(tag, ty)| (tag, ty.as_ref())).collect();
                let parts = self.resolve_parts(parts, "tag");
                let id = self.types.add_aggregate(Aggregate { name: name.cloned(), parts });
                self.record_parts(id, DefinitionKind::Case, tags.iter().map(|(tag, _)| tag.span));
                self.types.intern(Type::Union(id))
            }
            ast::TypeKind::Enum(enumeration) => self.enumeration(enumeration, name, ty.span),
        };
        self.limited(resolved, ty.span)
    }

    fn resolve_parts(
        &mut self,
        parts: Vec<(&'a ast::Name, Option<&'a ast::Type>)>,
        noun: &str,
    ) -> Vec<(SmolStr, Option<TypeId>)> {
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        let mut resolved = Vec::new();
        for (name, ty) in parts {
            if let Some(first) = seen.insert(&name.text, name.span)
                && !name.text.is_empty()
            {
                let message = format!("{noun} `{}` is declared twice", name.text);
                let diagnostic = Diagnostic::new(Code::E0204, name.span, message).label(first, "first declared here");
                self.report(diagnostic);
            }
            resolved.push((name.text.clone(), ty.map(|ty| self.resolve_type(ty))));
        }
        resolved
    }

    fn enumeration(&mut self, item: &'a ast::Enumeration, name: Option<&SmolStr>, span: Span) -> TypeId {
        let Some(name) = name else {
            let message = "an enumeration has a name, by which its cases are called";
            let help = "declare it, as in `type code = enum { ok, busy };`, and write `code` here";
            self.report(Diagnostic::new(Code::E0310, span, message).help(help));
            return TypeTable::ERROR;
        };
        let mut names: FxHashMap<&str, Span> = FxHashMap::default();
        let mut codes: FxHashMap<i128, &'a ast::Name> = FxHashMap::default();
        let mut cases: Vec<(SmolStr, i128)> = Vec::new();
        let mut is_faulty = false;
        for case in item.cases.iter().map(|(case, _)| case).chain(&item.other) {
            if let Some(first) = names.insert(&case.text, case.span)
                && !case.text.is_empty()
            {
                let message = format!("case `{}` is declared twice", case.text);
                self.report(Diagnostic::new(Code::E0204, case.span, message).label(first, "first declared here"));
                is_faulty = true;
            }
        }
        for (case, code) in &item.cases {
            let code = match code {
                None => cases.last().map_or(0, |(_, last)| last + 1),
                Some(expr) => match Body::new(self, BodyKind::Constant).constant_integer(expr) {
                    Some(Constant::Untyped(code)) => code,
                    Some(Constant::Typed(hir::Expr { kind: hir::ExprKind::Constant(code), .. })) => code,
                    Some(Constant::Typed(_) | Constant::Error) | None => {
                        is_faulty = true;
                        continue;
                    }
                },
            };
            if let Some(first) = codes.insert(code, case) {
                let message = format!("`{}` and `{}` both have the code {code}", first.text, case.text);
                let diagnostic = Diagnostic::new(Code::E0310, case.span, message)
                    .label(first.span, "the first is here")
                    .help("a code without `=` is one above that before it");
                self.report(diagnostic);
                is_faulty = true;
            }
            cases.push((case.text.clone(), code));
        }
        let (lowest, highest) =
            cases.iter().fold((0, 0), |(low, high), (_, code)| (i128::min(low, *code), i128::max(high, *code)));
        let holds = |int: &IntType| IntType::min(*int) <= lowest && highest <= IntType::max(*int);
        let unsigned = [IntType::U8, IntType::U16, IntType::U32, IntType::U64];
        let signed = [IntType::I8, IntType::I16, IntType::I32, IntType::I64];
        let base = item.base.or_else(|| unsigned.into_iter().chain(signed).find(holds));
        let Some(base) = base.filter(holds) else {
            let base = item.base.unwrap_or(IntType::I64);
            let code = if lowest < base.min() { lowest } else { highest };
            let message = format!("{code} does not fit `{}`, the type of the codes", base.name());
            let help = format!("`{}` holds {} to {}", base.name(), base.min(), base.max());
            self.report(Diagnostic::new(Code::E0303, span, message).help(help));
            return TypeTable::ERROR;
        };
        if is_faulty {
            return TypeTable::ERROR;
        }
        let other = item.other.as_ref().map(|other| other.text.clone());
        let ty = self.types.add_enumeration(Enumeration { name: name.clone(), base, cases, other });
        let written = item.cases.iter().map(|(case, _)| case).chain(&item.other);
        self.record_cases(ty, written.map(|case| (case.text.clone(), case.span)));
        ty
    }

    fn named_type(&mut self, name: &ast::Name) -> TypeId {
        match self.find(name) {
            Some(Named { entity: Entity::Type(entry), .. }) => {
                self.type_entries[entry].resolved.unwrap_or(TypeTable::ERROR)
            }
            None if matches!(name.text.as_str(), "time" | "duration") => {
                self.clock.is_used = true;
                if name.text == "time" { TypeTable::TIME } else { TypeTable::DURATION }
            }
            Some(_) | None => {
                self.unknown_item("type", name, |entity| matches!(entity, Entity::Type(_)));
                TypeTable::ERROR
            }
        }
    }

    /// The type itself, or `ERROR` with a report if it is too large or too deep.
    pub(super) fn limited(&mut self, ty: TypeId, span: Span) -> TypeId {
        let Measure { bytes, depth } = self.measure(ty);
        if bytes > MAX_MEMORY {
            let message = format!("this type needs {bytes} bytes, more than the {MAX_MEMORY} a program may have");
            self.error(Code::E0309, span, message);
            return TypeTable::ERROR;
        }
        if depth > MAX_DEPTH {
            let message = format!("this type is nested more than {MAX_DEPTH} deep");
            self.error(Code::E0309, span, message);
            return TypeTable::ERROR;
        }
        ty
    }

    /// Size and depth. Parts have been measured before, so this does not go deep.
    fn measure(&mut self, ty: TypeId) -> Measure {
        if let Some(measure) = self.measures.known.get(&ty) {
            return *measure;
        }
        let flat = |bytes: u64| Measure { bytes, depth: 1 };
        let measure = match self.types.get(ty).clone() {
            Type::Error => flat(0),
            Type::Int(int) => flat(u64::from(int.bits() / 8)),
            Type::Bool => flat(1),
            Type::Pid(_) => flat(4),
            Type::Bytes { bound } => flat(4 + u64::from(bound)),
            Type::Boxed(pool) => {
                let content = self.types.pool(pool).content;
                Measure { bytes: 8, depth: self.measure(content).depth }
            }
            Type::Array { length, element } => {
                let element = self.measure(element);
                Measure { bytes: element.bytes.saturating_mul(u64::from(length)), depth: element.depth + 1 }
            }
            Type::Record(id) => self.measure_parts(id, |sum, part| sum.saturating_add(part), 0),
            Type::Union(id) => self.measure_parts(id, |largest, part| largest.max(part.saturating_add(4)), 4),
        };
        self.measures.known.insert(ty, measure);
        measure
    }

    fn measure_parts(&mut self, id: crate::types::AggregateId, combine: fn(u64, u64) -> u64, start: u64) -> Measure {
        let parts: Vec<TypeId> = self.types.aggregate(id).parts.iter().filter_map(|(_, ty)| *ty).collect();
        let mut measure = Measure { bytes: start, depth: 1 };
        for part in parts {
            let part = self.measure(part);
            measure = Measure { bytes: combine(measure.bytes, part.bytes), depth: measure.depth.max(part.depth + 1) };
        }
        measure
    }

    /// The value of a constant that sizes something.
    pub(super) fn constant_size(&mut self, expr: &'a ast::Expr, limits: Limits) -> Option<u32> {
        let value = match Body::new(self, BodyKind::Constant).constant_integer(expr)? {
            Constant::Error => return None,
            Constant::Untyped(value) => value,
            Constant::Typed(expr) => match expr.kind {
                hir::ExprKind::Constant(value) => value,
                _ => return None,
            },
        };
        self.within(value, expr.span, limits)
    }

    /// The value if it is within the limits, else a report.
    pub(super) fn within(&mut self, value: i128, span: Span, limits: Limits) -> Option<u32> {
        let Limits { what, minimum, maximum } = limits;
        if value < minimum {
            self.error(Code::E0309, span, format!("{what} {value} is below {minimum}"));
            return None;
        }
        if value > maximum {
            self.error(Code::E0309, span, format!("{what} {value} is above {maximum}"));
            return None;
        }
        u32::try_from(value).ok()
    }

    /// A type as messages print it.
    pub(super) fn type_name(&self, ty: TypeId) -> String {
        self.type_name_within(ty, 4)
    }

    /// `#T` or `T`.
    pub(super) fn value_type_name(&self, ty: TypeId, mutability: Mutability) -> String {
        match mutability {
            Mutability::Immutable => self.type_name(ty),
            Mutability::Mutable => format!("#{}", self.type_name(ty)),
        }
    }

    fn type_name_within(&self, ty: TypeId, depth: u32) -> String {
        if depth == 0 {
            return "..".to_string();
        }
        match self.types.get(ty) {
            Type::Error => "?".to_string(),
            Type::Int(int) => match self.types.enumeration(ty) {
                Some(enumeration) => self.scopes.as_written(&enumeration.name).to_string(),
                None => int.name().to_string(),
            },
            Type::Bool => "bool".to_string(),
            Type::Bytes { bound } => format!("bytes[<={bound}]"),
            Type::Pid(processes) => {
                let names: Vec<&str> = processes
                    .iter()
                    .take(8)
                    .map(|process| self.scopes.as_written(&self.processes[process.0 as usize].item.name.text).as_str())
                    .chain((processes.len() > 8).then_some(".."))
                    .collect();
                format!("pid({})", names.join(", "))
            }
            Type::Array { length, element } => {
                format!("array[{length}] of {}", self.type_name_within(*element, depth - 1))
            }
            Type::Boxed(pool) => self.scopes.as_written(&self.types.pool(*pool).name).to_string(),
            Type::Record(id) => self.aggregate_name(*id, "record", depth),
            Type::Union(id) => self.aggregate_name(*id, "union", depth),
        }
    }

    fn aggregate_name(&self, id: crate::types::AggregateId, keyword: &str, depth: u32) -> String {
        let aggregate = self.types.aggregate(id);
        if let Some(name) = &aggregate.name {
            return self.scopes.as_written(name).to_string();
        }
        let mut parts: Vec<String> = Vec::new();
        for (name, ty) in aggregate.parts.iter().take(4) {
            parts.push(match ty {
                Some(ty) => format!("{name}: {}", self.type_name_within(*ty, depth - 1)),
                None => name.to_string(),
            });
        }
        if aggregate.parts.len() > 4 {
            parts.push("..".to_string());
        }
        format!("{keyword} {{ {} }}", parts.join(", "))
    }

    /// Whether values of a type can hold objects of a pool.
    pub(super) fn holds_pool(&self, ty: TypeId, pool: crate::types::PoolId) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            if !seen.insert(ty) {
                continue;
            }
            match self.types.get(ty) {
                Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Bytes { .. } => {}
                Type::Boxed(own) if *own == pool => return true,
                Type::Boxed(own) => open.push(self.types.pool(*own).content),
                Type::Array { element, .. } => open.push(*element),
                Type::Record(id) | Type::Union(id) => {
                    open.extend(self.types.aggregate(*id).parts.iter().filter_map(|(_, ty)| *ty));
                }
            }
        }
        false
    }
}
