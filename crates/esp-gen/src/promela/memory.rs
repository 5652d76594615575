//! Values in Promela memory: everything flat is leaves, each a variable or a one-dimensional array of numbers.
//!
//! ```text
//!   record { a: int, b: u8 }            x_a                  x_b
//!   union { some: int, none }           x_tag                x_some
//!   bytes[<=4]                          x_len                x_at[4]
//!   array[3] of record { a: int }       x_a[3]
//!   boxed type T, pool of 5             T_..[5], and T_count[5], T_free; a reference is an index
//! ```
//!
//! Knows nothing of processes.

use quaject_esp_ir::ir::{Body, IntType, Location, PoolId, ProcessId, Program, Type, TypeId, TypeTable};

/// The meaning of one number of Promela memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Int(IntType),
    Bool,
    Pid(Box<[ProcessId]>),
    /// An index into a pool.
    Reference(PoolId),
    /// A union's tag.
    Tag,
    /// The length of `bytes`.
    Length(u32),
}

impl Kind {
    /// The Promela type of its declaration.
    pub(super) fn declared(&self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            // A time is always 0 in a model.
            Kind::Int(IntType::U8 | IntType::Time) | Kind::Pid(_) => "byte",
            Kind::Int(IntType::I8 | IntType::I16) => "short",
            Kind::Int(IntType::U16 | IntType::U32 | IntType::I32 | IntType::U64 | IntType::I64 | IntType::Duration) => {
                "int"
            }
            Kind::Length(bound) if *bound > 255 => "int",
            Kind::Reference(_) | Kind::Tag | Kind::Length(_) => "byte",
        }
    }
}

/// A variable, or an array if it holds more than one number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Leaf {
    /// The suffix that its name adds to that of the variable it is a part of.
    pub(super) suffix: String,
    pub(super) kind: Kind,
    pub(super) count: u32,
}

/// The kind of a type held in one number.
pub(super) fn kind(types: &TypeTable, ty: TypeId) -> Option<Kind> {
    match types.get(ty) {
        Type::Int(int) => Some(Kind::Int(*int)),
        Type::Bool => Some(Kind::Bool),
        Type::Pid(processes) => Some(Kind::Pid(processes.clone())),
        Type::Boxed(pool) => Some(Kind::Reference(*pool)),
        Type::Error | Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) => None,
    }
}

/// The leaves of a type, in order.
pub(super) fn leaves(types: &TypeTable, ty: TypeId) -> Vec<Leaf> {
    let one = |suffix: &str, kind| Leaf { suffix: suffix.to_string(), kind, count: 1 };
    match types.get(ty) {
        Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Boxed(_) => {
            kind(types, ty).map(|kind| one("", kind)).into_iter().collect()
        }
        Type::Error => Vec::new(),
        Type::Bytes { bound } => {
            let data = Leaf { suffix: "_at".to_string(), kind: Kind::Int(IntType::U8), count: *bound };
            vec![one("_len", Kind::Length(*bound)), data]
        }
        Type::Array { length, element } => {
            let mut all = leaves(types, *element);
            all.iter_mut().for_each(|leaf| leaf.count = leaf.count.saturating_mul(*length));
            all
        }
        Type::Record(id) => types.aggregate(*id).parts.iter().flat_map(|part| named(types, part)).collect(),
        Type::Union(id) => {
            let tag = one("_tag", Kind::Tag);
            [tag].into_iter().chain(types.aggregate(*id).parts.iter().flat_map(|part| named(types, part))).collect()
        }
    }
}

fn named(types: &TypeTable, (name, ty): &(smol_str::SmolStr, Option<TypeId>)) -> Vec<Leaf> {
    let mut all = ty.map_or_else(Vec::new, |ty| leaves(types, ty));
    all.iter_mut().for_each(|leaf| leaf.suffix = format!("_{name}{}", leaf.suffix));
    all
}

/// A type with more than `max` leaves, if there is one. Counts them without building them: types share parts, and may
/// have more leaves than fit in memory.
pub(super) fn wider_than(types: &TypeTable, max: usize) -> Option<TypeId> {
    let mut known = vec![None; types.types().len()];
    (0..types.types().len() as u32).map(TypeId).find(|ty| count(types, *ty, &mut known) > max)
}

/// The first location at which a program uses a type with more than `max` leaves: a channel of such messages, else a
/// process or function with such a variable, else its first process.
pub(super) fn first_user(program: &Program, max: usize) -> Location {
    let mut known = vec![None; program.types.types().len()];
    let mut is_wide = |ty: TypeId| count(&program.types, ty, &mut known) > max;
    let channel = program.channels.iter().find(|channel| channel.payload.iter().any(|ty| is_wide(*ty)));
    if let Some(channel) = channel {
        return channel.location;
    }
    let mut holds = |body: &Body| body.slots.iter().any(|slot| is_wide(slot.ty));
    if let Some(process) = program.processes.iter().find(|process| holds(&process.body)) {
        return process.location;
    }
    let function = program.functions.iter().find(|function| holds(&function.body));
    let block = function.and_then(|function| function.body.blocks.first()).map(|block| block.location);
    block.or(program.processes.first().map(|process| process.location)).unwrap_or_default()
}

fn count(types: &TypeTable, ty: TypeId, known: &mut Vec<Option<usize>>) -> usize {
    if let Some(count) = known[ty.0 as usize] {
        return count;
    }
    let leaves = match types.get(ty) {
        Type::Error => 0,
        Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Boxed(_) => 1,
        Type::Bytes { .. } => 2,
        Type::Array { element, .. } => count(types, *element, known),
        Type::Record(id) | Type::Union(id) => {
            let parts = types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part);
            parts.fold(1, |sum: usize, part| sum.saturating_add(count(types, part, known)))
        }
    };
    known[ty.0 as usize] = Some(leaves);
    leaves
}

/// How many leaves a type has.
pub(super) fn width(types: &TypeTable, ty: TypeId) -> usize {
    leaves(types, ty).len()
}

/// Where a record's field or a union's payload begins among the leaves, and its type.
pub(super) fn part(types: &TypeTable, ty: TypeId, number: u32) -> Option<(usize, TypeId)> {
    let (id, first) = match types.get(ty) {
        Type::Record(id) => (*id, 0),
        Type::Union(id) => (*id, 1),
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Boxed(_) => return None,
    };
    let parts = &types.aggregate(id).parts;
    let before = parts.iter().take(number as usize).filter_map(|(_, ty)| *ty).map(|ty| width(types, ty)).sum::<usize>();
    Some((first + before, parts.get(number as usize)?.1?))
}
