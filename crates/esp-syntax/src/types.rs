//! Types after names are resolved: a table in which equal types have equal ids. Shared with the flow IR.

pub use crate::ast::{ByteOrder, IntType};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// A type, by its index in a [`TypeTable`]. Two types are the same exactly when their ids are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TypeId(pub u32);

/// A pool of objects of one boxed type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PoolId(pub u32);

/// A process, by order of text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ProcessId(pub u32);

/// A resolved type (reference, section 3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// Follows an error that has been reported; fits everywhere.
    Error,
    /// `u8` to `i64`; `int` is `i32`.
    Int(IntType),
    /// `bool`
    Bool,
    /// `bytes[<=bound]`
    Bytes {
        /// Largest length in bytes.
        bound: u32,
    },
    /// `pid(..)`: processes in ascending order, without repetition.
    Pid(Box<[ProcessId]>),
    /// `array[length] of element`
    Array {
        /// Number of elements, at least 1.
        length: u32,
        /// Their type.
        element: TypeId,
    },
    /// A record; the same only as itself.
    Record(AggregateId),
    /// A union; the same only as itself.
    Union(AggregateId),
    /// A type with a pool: values are objects. Its definition is [`TypeTable::pool`]'s `content`.
    Boxed(PoolId),
}

/// A record or union type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AggregateId(pub u32);

/// The named parts of a record or union.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aggregate {
    /// The type's name; none if it is anonymous.
    pub name: Option<SmolStr>,
    /// Fields of a record, tags of a union, in order. Only a union's tag can be without a type.
    pub parts: Vec<(SmolStr, Option<TypeId>)>,
}

/// A boxed type's pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The boxed type's name.
    pub name: SmolStr,
    /// The type of the objects' contents; never itself `Boxed` of the same pool.
    pub content: TypeId,
    /// How many objects there are at most.
    pub capacity: u32,
}

/// An integer type with names for some of its values. For everything but the check of a program it is that integer
/// type: [`TypeTable::get`] says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enumeration {
    /// Its name.
    pub name: SmolStr,
    /// The type of the codes.
    pub base: IntType,
    /// The named codes, in order of text.
    pub cases: Vec<(SmolStr, i128)>,
    /// The case of every other code.
    pub other: Option<SmolStr>,
}

impl Enumeration {
    /// Whether each value of the integer type is a case.
    pub fn is_total(&self) -> bool {
        self.other.is_some() || self.cases.len() as i128 == self.base.max() - self.base.min() + 1
    }

    /// The named codes as ranges without their ends, which ascend and do not touch.
    pub fn codes(&self) -> Vec<(i128, i128)> {
        let mut codes: Vec<i128> = self.cases.iter().map(|(_, code)| *code).collect();
        codes.sort_unstable();
        let mut ranges: Vec<(i128, i128)> = Vec::new();
        for code in codes {
            match ranges.last_mut() {
                Some((_, end)) if code <= *end => *end = code + 1,
                _ => ranges.push((code, code + 1)),
            }
        }
        ranges
    }

    /// The codes without a name, in the same form.
    pub fn other_codes(&self) -> Vec<(i128, i128)> {
        let mut from = self.base.min();
        let mut ranges = Vec::new();
        for (low, high) in self.codes() {
            if from < low {
                ranges.push((from, low));
            }
            from = high;
        }
        if from <= self.base.max() {
            ranges.push((from, self.base.max() + 1));
        }
        ranges
    }

    /// The name of a code's case.
    pub fn case_of(&self, code: i128) -> Option<&SmolStr> {
        let named = self.cases.iter().find(|(_, known)| *known == code).map(|(name, _)| name);
        named.or(self.other.as_ref())
    }
}

/// Every type of one program.
#[derive(Clone, Debug)]
pub struct TypeTable {
    enumerations: FxHashMap<TypeId, Enumeration>,
    types: Vec<Type>,
    ids: FxHashMap<Type, TypeId>,
    aggregates: Vec<Aggregate>,
    pools: Vec<Pool>,
}

impl TypeTable {
    /// The follow-up of an error.
    pub const ERROR: TypeId = TypeId(0);
    /// `bool`
    pub const BOOL: TypeId = TypeId(1);
    /// `u8`
    pub const U8: TypeId = TypeId(2);
    /// `u16`
    pub const U16: TypeId = TypeId(3);
    /// `u32`
    pub const U32: TypeId = TypeId(4);
    /// `u64`
    pub const U64: TypeId = TypeId(5);
    /// `i8`
    pub const I8: TypeId = TypeId(6);
    /// `i16`
    pub const I16: TypeId = TypeId(7);
    /// `i32`, which is `int`
    pub const I32: TypeId = TypeId(8);
    /// `i64`
    pub const I64: TypeId = TypeId(9);
    /// `time`
    pub const TIME: TypeId = TypeId(10);
    /// `duration`
    pub const DURATION: TypeId = TypeId(11);

    /// A table that holds the types with constant ids.
    pub fn new() -> TypeTable {
        let mut table = TypeTable {
            enumerations: FxHashMap::default(),
            types: Vec::new(),
            ids: FxHashMap::default(),
            aggregates: Vec::new(),
            pools: Vec::new(),
        };
        table.intern(Type::Error);
        table.intern(Type::Bool);
        for int in [
            IntType::U8,
            IntType::U16,
            IntType::U32,
            IntType::U64,
            IntType::I8,
            IntType::I16,
            IntType::I32,
            IntType::I64,
            IntType::Time,
            IntType::Duration,
        ] {
            table.intern(Type::Int(int));
        }
        table
    }

    /// The id of a type, the same for equal types.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.ids.get(&ty) {
            return *id;
        }
        let id = TypeId(self.types.len() as u32);
        self.types.push(ty.clone());
        self.ids.insert(ty, id);
        id
    }

    /// Adds an enumeration, a type of its own.
    pub fn add_enumeration(&mut self, enumeration: Enumeration) -> TypeId {
        let id = TypeId(self.types.len() as u32);
        self.types.push(Type::Int(enumeration.base));
        self.enumerations.insert(id, enumeration);
        id
    }

    /// The enumeration that a type is, if it is one.
    pub fn enumeration(&self, id: TypeId) -> Option<&Enumeration> {
        self.enumerations.get(&id)
    }

    /// The constant id of an integer type.
    pub fn int(int: IntType) -> TypeId {
        match int {
            IntType::U8 => TypeTable::U8,
            IntType::U16 => TypeTable::U16,
            IntType::U32 => TypeTable::U32,
            IntType::U64 => TypeTable::U64,
            IntType::I8 => TypeTable::I8,
            IntType::I16 => TypeTable::I16,
            IntType::I32 => TypeTable::I32,
            IntType::I64 => TypeTable::I64,
            IntType::Time => TypeTable::TIME,
            IntType::Duration => TypeTable::DURATION,
        }
    }

    /// Adds a record or union, whose parts may be set later with [`TypeTable::set_parts`].
    pub fn add_aggregate(&mut self, aggregate: Aggregate) -> AggregateId {
        self.aggregates.push(aggregate);
        AggregateId(self.aggregates.len() as u32 - 1)
    }

    /// Sets the parts of a record or union.
    pub fn set_parts(&mut self, id: AggregateId, parts: Vec<(SmolStr, Option<TypeId>)>) {
        self.aggregates[id.0 as usize].parts = parts;
    }

    /// Adds a pool, whose content may be set later with [`TypeTable::set_pool`].
    pub fn add_pool(&mut self, pool: Pool) -> PoolId {
        self.pools.push(pool);
        PoolId(self.pools.len() as u32 - 1)
    }

    /// Replaces a pool's description.
    pub fn set_pool(&mut self, id: PoolId, pool: Pool) {
        self.pools[id.0 as usize] = pool;
    }

    /// The type with this id.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// All types, in order of their ids.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// A record's or union's parts.
    pub fn aggregate(&self, id: AggregateId) -> &Aggregate {
        &self.aggregates[id.0 as usize]
    }

    /// All records and unions, in order of their ids.
    pub fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates
    }

    /// A pool.
    pub fn pool(&self, id: PoolId) -> &Pool {
        &self.pools[id.0 as usize]
    }

    /// All pools, in order of their ids.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Whether values of a type lead to objects of pools.
    pub fn holds_objects(&self, id: TypeId) -> bool {
        self.holds(id, &|part| matches!(self.get(part), Type::Boxed(_)))
    }

    /// Whether values of a type have a part of type `time` or `duration`.
    pub fn holds_clock(&self, id: TypeId) -> bool {
        self.holds(id, &|part| part == TypeTable::TIME || part == TypeTable::DURATION)
    }

    /// Whether a type or a part of it, at any depth, satisfies a test.
    pub fn holds(&self, id: TypeId, test: &dyn Fn(TypeId) -> bool) -> bool {
        self.find_part(id, test).is_some()
    }

    /// The first of a type and its parts, at any depth, that satisfies a test. Each is visited once: types may double
    /// from line to line, or contain themselves after an error.
    pub fn find_part(&self, id: TypeId, test: &dyn Fn(TypeId) -> bool) -> Option<TypeId> {
        let mut visited = FxHashSet::default();
        let mut worklist = vec![id];
        while let Some(id) = worklist.pop() {
            if !visited.insert(id) {
                continue;
            }
            if test(id) {
                return Some(id);
            }
            match self.get(id) {
                Type::Array { element, .. } => worklist.push(*element),
                Type::Record(id) | Type::Union(id) => {
                    worklist.extend(self.aggregate(*id).parts.iter().rev().filter_map(|(_, part)| *part));
                }
                Type::Boxed(pool) => worklist.push(self.pool(*pool).content),
                Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Bytes { .. } => {}
            }
        }
        None
    }

    /// The bytes of data that a value has at most: of numbers, `bool`, `bytes` and arrays of these.
    pub fn data_bytes(&self, id: TypeId) -> Option<i128> {
        match self.get(id) {
            _ if id == TypeTable::TIME || id == TypeTable::DURATION => None,
            Type::Int(int) => Some(i128::from(int.bits() / 8)),
            Type::Bool => Some(1),
            Type::Bytes { bound } => Some(i128::from(*bound)),
            Type::Array { length, element } => self.data_bytes(*element)?.checked_mul(i128::from(*length)),
            Type::Boxed(pool) => self.data_bytes(self.pool(*pool).content),
            Type::Error | Type::Pid(_) | Type::Record(_) | Type::Union(_) => None,
        }
    }

    /// Integers, `bool` and `pid`: held in an SSA value of the flow IR, as are references to boxed objects.
    pub fn is_scalar(&self, id: TypeId) -> bool {
        match self.get(id) {
            Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Error => true,
            Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) | Type::Boxed(_) => false,
        }
    }
}

impl Default for TypeTable {
    fn default() -> TypeTable {
        TypeTable::new()
    }
}

/// Signedness and width, the two facts all arithmetic depends on.
impl IntType {
    /// Width in bits: 8, 16, 32 or 64.
    pub fn bits(self) -> u32 {
        match self {
            IntType::U8 | IntType::I8 => 8,
            IntType::U16 | IntType::I16 => 16,
            IntType::U32 | IntType::I32 => 32,
            IntType::U64 | IntType::I64 | IntType::Time | IntType::Duration => 64,
        }
    }

    /// Whether values can be negative.
    pub fn is_signed(self) -> bool {
        match self {
            IntType::U8 | IntType::U16 | IntType::U32 | IntType::U64 => false,
            IntType::I8 | IntType::I16 | IntType::I32 | IntType::I64 | IntType::Time | IntType::Duration => true,
        }
    }

    /// Whether it is `time` or `duration`, which are no integers in the text.
    pub fn is_clock(self) -> bool {
        match self {
            IntType::Time | IntType::Duration => true,
            IntType::U8
            | IntType::U16
            | IntType::U32
            | IntType::U64
            | IntType::I8
            | IntType::I16
            | IntType::I32
            | IntType::I64 => false,
        }
    }

    /// Smallest value.
    pub fn min(self) -> i128 {
        if self.is_signed() { -(1i128 << (self.bits() - 1)) } else { 0 }
    }

    /// Largest value.
    pub fn max(self) -> i128 {
        (1i128 << (self.bits() - u32::from(self.is_signed()))) - 1
    }

    /// The value of this type with the same low bits: what a store that wraps keeps.
    pub fn wrap(self, value: i128) -> i128 {
        let modulus = 1i128 << self.bits();
        let low = value.rem_euclid(modulus);
        if low > self.max() { low - modulus } else { low }
    }

    /// Whether every value of `self` is a value of `other`, so that it widens implicitly.
    pub fn widens_to(self, other: IntType) -> bool {
        let are_integers = !self.is_clock() && !other.is_clock();
        self == other || (are_integers && other.min() <= self.min() && self.max() <= other.max())
    }

    /// Its name in ESP; `i32` prints as `int`.
    pub fn name(self) -> &'static str {
        match self {
            IntType::U8 => "u8",
            IntType::U16 => "u16",
            IntType::U32 => "u32",
            IntType::U64 => "u64",
            IntType::I8 => "i8",
            IntType::I16 => "i16",
            IntType::I32 => "int",
            IntType::I64 => "i64",
            IntType::Time => "time",
            IntType::Duration => "duration",
        }
    }
}
