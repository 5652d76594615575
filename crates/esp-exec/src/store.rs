//! How the engines here hold values: registers, process memory, pools of objects with counts. Every value has one
//! representation, so that equal contents are equal bytes. Knows nothing of code and schedules.
//!
//! ```text
//!   integer, bool         1, 2, 4 or 8 bytes, little-endian       in a register: an i64 with the same low bits,
//!   pid                   4 bytes: instance number                               sign- or zero-extended
//!   reference             4 bytes: the object's age, from 1, above its number; 0: to nothing
//!   bytes[<=N]            4 bytes length, N bytes; those past the length are 0
//!   union                 4 bytes tag, the largest payload; bytes the payload does not use are 0
//!   record, array         parts one after the other, without gaps
//!   a free object         all 0
//! ```
//!
//! **Ages.** In manual memory a program may keep a reference to an object that is free, and another allocation may take
//! that object. A reference holds the age its object had, and an object that is freed grows older, so that the use of
//! such a reference is always noticed. `retire` forgets those references, and makes the objects young again, when a step
//! is over: two states do not differ by how often an object was freed.

use crate::datum::Datum;
use quaject_esp_ir::ir::{Fault, MemoryMode, PoolId, Program, Type, TypeId, TypeTable};

/// Width and signedness of what a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ScalarKind {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) boolean: bool,
}

impl ScalarKind {
    pub(crate) fn of(types: &TypeTable, ty: TypeId) -> ScalarKind {
        match types.get(ty) {
            Type::Int(int) => ScalarKind { bits: int.bits(), signed: int.is_signed(), boolean: false },
            Type::Bool | Type::Error => ScalarKind { bits: 8, signed: false, boolean: true },
            Type::Pid(_) | Type::Boxed(_) => ScalarKind { bits: 32, signed: false, boolean: false },
            Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) => {
                unreachable!("aggregates are not held in registers")
            }
        }
    }

    /// The value of this kind with the same low bits.
    #[inline]
    pub(crate) fn wrap(self, value: i64) -> i64 {
        let shift = 64 - self.bits;
        if self.signed { (value << shift) >> shift } else { (((value as u64) << shift) >> shift) as i64 }
    }

    /// What the register means as a number.
    #[inline]
    pub(crate) fn number(self, value: i64) -> i128 {
        if self.signed { i128::from(value) } else { i128::from(value as u64) }
    }
}

#[inline]
pub(crate) fn load(memory: &[u8], at: usize, kind: ScalarKind) -> i64 {
    let raw = match kind.bits {
        8 => u64::from(memory[at]),
        16 => u64::from(u16::from_le_bytes(memory[at..at + 2].try_into().expect("two bytes"))),
        32 => u64::from(u32::from_le_bytes(memory[at..at + 4].try_into().expect("four bytes"))),
        _ => u64::from_le_bytes(memory[at..at + 8].try_into().expect("eight bytes")),
    };
    kind.wrap(raw as i64)
}

#[inline]
pub(crate) fn store(memory: &mut [u8], at: usize, kind: ScalarKind, value: i64) {
    match kind.bits {
        8 => memory[at] = value as u8,
        16 => memory[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes()),
        32 => memory[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes()),
        _ => memory[at..at + 8].copy_from_slice(&value.to_le_bytes()),
    }
}

/// A `u32` in memory: a length, tag, instance or object number.
pub(crate) fn word(memory: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(memory[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn set_word(memory: &mut [u8], at: usize, value: u32) {
    memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The bytes of a `bytes` value.
pub(crate) fn bytes_at(memory: &[u8], at: usize) -> &[u8] {
    let length = word(memory, at) as usize;
    &memory[at + 4..at + 4 + length]
}

/// Sizes and offsets of every type of a program.
#[derive(Debug)]
pub(crate) struct Layouts {
    sizes: Vec<usize>,
    boxes: Vec<bool>,
    fields: Vec<Vec<usize>>,
}

impl Layouts {
    pub(crate) fn new(types: &TypeTable) -> Layouts {
        let count = types.types().len();
        let mut layouts = Layouts {
            sizes: vec![usize::MAX; count],
            boxes: vec![false; count],
            fields: vec![Vec::new(); types.aggregates().len()],
        };
        for index in 0..count {
            layouts.visit(types, TypeId(index as u32));
        }
        layouts
    }

    fn visit(&mut self, types: &TypeTable, ty: TypeId) -> (usize, bool) {
        let index = ty.0 as usize;
        if self.sizes[index] != usize::MAX {
            return (self.sizes[index], self.boxes[index]);
        }
        let (size, boxes) = match types.get(ty) {
            Type::Error | Type::Bool => (1, false),
            Type::Int(int) => (int.bits() as usize / 8, false),
            Type::Pid(_) => (4, false),
            Type::Boxed(_) => (4, true),
            Type::Bytes { bound } => (4usize.saturating_add(*bound as usize), false),
            Type::Array { length, element } => {
                let (size, boxes) = self.visit(types, *element);
                (size.saturating_mul(*length as usize), boxes)
            }
            Type::Record(id) => {
                let mut offsets = Vec::new();
                let mut end = 0usize;
                let mut boxes = false;
                for part in types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part) {
                    offsets.push(end);
                    let part = self.visit(types, part);
                    end = end.saturating_add(part.0);
                    boxes |= part.1;
                }
                self.fields[id.0 as usize] = offsets;
                (end, boxes)
            }
            Type::Union(id) => {
                let parts = types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part);
                let parts: Vec<_> = parts.map(|part| self.visit(types, part)).collect();
                let largest = parts.iter().map(|part| part.0).max().unwrap_or(0);
                (largest.saturating_add(4), parts.iter().any(|part| part.1))
            }
        };
        // Below the mark for "not yet visited"; a program that large is refused before it is run.
        let size = size.min(usize::MAX - 1);
        self.sizes[index] = size;
        self.boxes[index] = boxes;
        (size, boxes)
    }

    pub(crate) fn size(&self, ty: TypeId) -> usize {
        self.sizes[ty.0 as usize]
    }

    pub(crate) fn has_boxes(&self, ty: TypeId) -> bool {
        self.boxes[ty.0 as usize]
    }

    pub(crate) fn field(&self, types: &TypeTable, ty: TypeId, field: usize) -> usize {
        match types.get(ty) {
            Type::Record(id) => self.fields[id.0 as usize][field],
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Union(_)
            | Type::Boxed(_) => unreachable!("only records have fields"),
        }
    }

    /// Calls `visit` for each reference that a value in memory holds itself, not for those inside its objects: its pool
    /// and where it lies.
    pub(crate) fn references(
        &self,
        types: &TypeTable,
        ty: TypeId,
        memory: &[u8],
        at: usize,
        visit: &mut dyn FnMut(PoolId, usize),
    ) {
        if !self.has_boxes(ty) {
            return;
        }
        match types.get(ty) {
            Type::Boxed(pool) => visit(*pool, at),
            Type::Array { length, element } => {
                let size = self.size(*element);
                for index in 0..*length as usize {
                    self.references(types, *element, memory, at + index * size, visit);
                }
            }
            Type::Record(id) => {
                for ((_, part), offset) in types.aggregate(*id).parts.iter().zip(&self.fields[id.0 as usize]) {
                    let part = part.expect("every field of a record has a type");
                    self.references(types, part, memory, at + offset, visit);
                }
            }
            Type::Union(id) => {
                if let Some((_, Some(part))) = types.aggregate(*id).parts.get(word(memory, at) as usize) {
                    self.references(types, *part, memory, at + 4, visit);
                }
            }
            Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => {}
        }
    }
}

/// The objects of one boxed type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pool {
    /// Per object; 0 means free.
    pub(crate) counts: Vec<u32>,
    /// Contents one after the other.
    pub(crate) memory: Vec<u8>,
    /// Size of one content.
    pub(crate) size: usize,
    /// How many are free.
    pub(crate) free: u32,
    /// The free object with the lowest number, or how many there are.
    lowest: u32,
    /// In manual memory: how old each object is, from 1.
    generations: Vec<u32>,
    /// Where a reference has the age.
    generation_shift: u32,
    /// Whether an object has grown older.
    pub(crate) has_dangling: bool,
}

impl Pool {
    fn new(capacity: u32, size: usize, memory: MemoryMode) -> Pool {
        let count = capacity as usize;
        let generations = match memory {
            MemoryMode::Automatic => Vec::new(),
            MemoryMode::Manual => vec![1; count],
        };
        let generation_shift = u32::BITS - capacity.saturating_sub(1).leading_zeros();
        let (counts, memory) = (vec![0; count], vec![0; count * size]);
        Pool { counts, memory, size, free: capacity, lowest: 0, generations, generation_shift, has_dangling: false }
    }

    /// The object a reference leads to, if it is not free.
    #[inline]
    fn object(&self, reference: u32) -> Option<usize> {
        let object = (reference & ((1 << self.generation_shift) - 1)) as usize;
        let generation = self.generations.get(object).copied().unwrap_or(1);
        let taken = self.counts.get(object).is_some_and(|count| *count > 0);
        (taken && reference >> self.generation_shift == generation).then_some(object)
    }

    /// The reference that leads to an object now.
    pub(crate) fn reference(&self, object: usize) -> u32 {
        self.generations.get(object).copied().unwrap_or(1) << self.generation_shift | object as u32
    }

    /// After the last age comes the first again.
    fn advance_generation(&mut self, object: usize) {
        if let Some(generation) = self.generations.get_mut(object) {
            let last = u32::MAX >> self.generation_shift;
            *generation = if *generation == last { 1 } else { *generation + 1 };
            self.has_dangling = true;
        }
    }

    /// What a reference is once all objects are young: one to nothing if its object is gone.
    pub(crate) fn normalized(&self, reference: u32) -> u32 {
        self.object(reference).map_or(0, |object| 1 << self.generation_shift | object as u32)
    }

    /// Makes all objects young; references hold what `normalized` says.
    pub(crate) fn reset_generations(&mut self) {
        self.generations.fill(1);
        self.has_dangling = false;
    }

    /// Finds out from the counts which objects are free; all are young.
    pub(crate) fn count_free(&mut self) {
        self.reset_generations();
        self.free = self.counts.iter().filter(|count| **count == 0).count() as u32;
        let lowest = self.counts.iter().position(|count| *count == 0);
        self.lowest = lowest.unwrap_or(self.counts.len()) as u32;
    }
}

/// Where a value lies: in the memory of the frame at hand, or in a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemorySpace {
    Frame,
    Pool(PoolId),
}

/// A resolved place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) space: MemorySpace,
    pub(crate) at: usize,
}

/// All pools of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pools {
    pub(crate) pools: Vec<Pool>,
}

impl Pools {
    pub(crate) fn new(program: &Program, layouts: &Layouts) -> Pools {
        let types = program.types.pools().iter();
        Pools { pools: types.map(|ty| Pool::new(ty.capacity, layouts.size(ty.content), program.memory)).collect() }
    }

    pub(crate) fn get(&self, pool: PoolId) -> &Pool {
        &self.pools[pool.0 as usize]
    }

    /// A reference to a new object with count 1: the free one with the lowest number.
    pub(crate) fn allocate(&mut self, pool: PoolId) -> Result<u32, Fault> {
        let pool = &mut self.pools[pool.0 as usize];
        let object = pool.lowest as usize;
        match pool.counts.get_mut(object) {
            None => Err(Fault::Pool),
            Some(count) => {
                *count = 1;
                pool.free -= 1;
                let rest = &pool.counts[object + 1..];
                let next = object + 1 + rest.iter().position(|count| *count == 0).unwrap_or(rest.len());
                pool.lowest = next as u32;
                Ok(pool.reference(object))
            }
        }
    }

    /// The object a reference leads to, if it is not free.
    pub(crate) fn object(&self, pool: PoolId, reference: u32) -> Option<usize> {
        self.get(pool).object(reference)
    }

    pub(crate) fn count(&self, pool: PoolId, reference: u32) -> u32 {
        let pool = self.get(pool);
        pool.object(reference).map_or(0, |object| pool.counts[object])
    }

    /// Where an object's content lies. Count 0: fault `memory`.
    pub(crate) fn content(&self, pool: PoolId, reference: u32) -> Result<usize, Fault> {
        let pool = self.get(pool);
        pool.object(reference).map(|object| object * pool.size).ok_or(Fault::Memory)
    }

    pub(crate) fn retain(&mut self, pool: PoolId, reference: u32) -> Result<(), Fault> {
        let pool = &mut self.pools[pool.0 as usize];
        let object = pool.object(reference).ok_or(Fault::Memory)?;
        pool.counts[object] = pool.counts[object].checked_add(1).ok_or(Fault::Memory)?;
        Ok(())
    }

    /// Removes one count; at 0 the object is free and its parts are released in turn.
    pub(crate) fn release(
        &mut self,
        types: &TypeTable,
        layouts: &Layouts,
        pool: PoolId,
        reference: u32,
    ) -> Result<(), Fault> {
        let mut pending = Vec::new();
        let mut next = Some((pool, reference));
        while let Some((id, reference)) = next {
            let pool = &mut self.pools[id.0 as usize];
            let object = pool.object(reference).ok_or(Fault::Memory)?;
            pool.counts[object] -= 1;
            if pool.counts[object] == 0 {
                let at = object * pool.size;
                let content = types.pool(id).content;
                let memory = &pool.memory;
                layouts.references(types, content, memory, at, &mut |pool, at| pending.push((pool, word(memory, at))));
                let size = pool.size;
                pool.memory[at..at + size].fill(0);
                pool.free += 1;
                pool.lowest = pool.lowest.min(object as u32);
                pool.advance_generation(object);
            }
            next = pending.pop();
        }
        Ok(())
    }

    pub(crate) fn memory<'a>(&'a self, space: MemorySpace, frame: &'a [u8]) -> &'a [u8] {
        match space {
            MemorySpace::Frame => frame,
            MemorySpace::Pool(pool) => &self.pools[pool.0 as usize].memory,
        }
    }

    pub(crate) fn memory_mut<'a>(&'a mut self, space: MemorySpace, frame: &'a mut [u8]) -> &'a mut [u8] {
        match space {
            MemorySpace::Frame => frame,
            MemorySpace::Pool(pool) => &mut self.pools[pool.0 as usize].memory,
        }
    }

    /// Copies bytes between any two spots, which may overlap.
    pub(crate) fn copy(&mut self, frame: &mut [u8], from: Address, to: Address, length: usize) {
        match (from.space, to.space) {
            (MemorySpace::Frame, MemorySpace::Frame) => frame.copy_within(from.at..from.at + length, to.at),
            (MemorySpace::Frame, MemorySpace::Pool(pool)) => self.pools[pool.0 as usize].memory[to.at..to.at + length]
                .copy_from_slice(&frame[from.at..from.at + length]),
            (MemorySpace::Pool(pool), MemorySpace::Frame) => frame[to.at..to.at + length]
                .copy_from_slice(&self.pools[pool.0 as usize].memory[from.at..from.at + length]),
            (MemorySpace::Pool(a), MemorySpace::Pool(b)) if a == b => {
                self.pools[a.0 as usize].memory.copy_within(from.at..from.at + length, to.at);
            }
            (MemorySpace::Pool(a), MemorySpace::Pool(b)) => {
                let [source, target] = self
                    .pools
                    .get_disjoint_mut([a.0 as usize, b.0 as usize])
                    .expect("two different pools of this program");
                target.memory[to.at..to.at + length].copy_from_slice(&source.memory[from.at..from.at + length]);
            }
        }
    }
}

/// A value where it lies, for comparison: a register's, or one in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueRef {
    Scalar(i64),
    Memory(Address),
}

/// What is needed to look at values: types, their layouts, the pools.
#[derive(Clone, Copy)]
pub(crate) struct DataView<'a> {
    pub(crate) program: &'a Program,
    pub(crate) layouts: &'a Layouts,
    pub(crate) pools: &'a Pools,
}

impl<'a> DataView<'a> {
    /// A scalar's or reference's value.
    pub(crate) fn scalar(&self, ty: TypeId, part: ValueRef, frame: &[u8]) -> i64 {
        match part {
            ValueRef::Scalar(value) => value,
            ValueRef::Memory(address) => {
                load(self.pools.memory(address.space, frame), address.at, ScalarKind::of(&self.program.types, ty))
            }
        }
    }

    pub(crate) fn address(&self, part: ValueRef) -> Address {
        match part {
            ValueRef::Memory(address) => address,
            ValueRef::Scalar(_) => unreachable!("aggregates lie in memory"),
        }
    }

    /// A boxed value's content and its type; any other value as it is.
    pub(crate) fn unboxed(&self, ty: TypeId, part: ValueRef, frame: &[u8]) -> Result<(TypeId, ValueRef), Fault> {
        match self.program.types.get(ty) {
            Type::Boxed(pool) => {
                let object = self.scalar(ty, part, frame) as u32;
                let at = self.pools.content(*pool, object)?;
                Ok((
                    self.program.types.pool(*pool).content,
                    ValueRef::Memory(Address { space: MemorySpace::Pool(*pool), at }),
                ))
            }
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => Ok((ty, part)),
        }
    }

    /// Equality by content of two values of one type, each with the frame memory it may lie in.
    pub(crate) fn equal(&self, ty: TypeId, a: (ValueRef, &'a [u8]), b: (ValueRef, &'a [u8])) -> Result<bool, Fault> {
        let types = &self.program.types;
        match types.get(ty) {
            Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) => {
                Ok(self.scalar(ty, a.0, a.1) == self.scalar(ty, b.0, b.1))
            }
            Type::Boxed(pool) => {
                let (left, right) = (self.unboxed(ty, a.0, a.1)?.1, self.unboxed(ty, b.0, b.1)?.1);
                self.equal(types.pool(*pool).content, (left, a.1), (right, b.1))
            }
            Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) => {
                let (left, right) = (self.address(a.0), self.address(b.0));
                self.equal_in_memory(
                    ty,
                    (self.pools.memory(left.space, a.1), left.at),
                    (self.pools.memory(right.space, b.1), right.at),
                )
            }
        }
    }

    fn equal_in_memory(&self, ty: TypeId, a: (&[u8], usize), b: (&[u8], usize)) -> Result<bool, Fault> {
        let types = &self.program.types;
        if let Type::Bytes { .. } = types.get(ty) {
            return Ok(bytes_at(a.0, a.1) == bytes_at(b.0, b.1));
        }
        if !self.layouts.has_boxes(ty) {
            let size = self.layouts.size(ty);
            return Ok(a.0[a.1..a.1 + size] == b.0[b.1..b.1 + size]);
        }
        match types.get(ty) {
            Type::Boxed(pool) => {
                let (left, right) = (word(a.0, a.1), word(b.0, b.1));
                let (left, right) = (self.pools.content(*pool, left)?, self.pools.content(*pool, right)?);
                let memory = &self.pools.get(*pool).memory;
                self.equal_in_memory(types.pool(*pool).content, (memory, left), (memory, right))
            }
            Type::Array { length, element } => {
                let size = self.layouts.size(*element);
                for index in 0..*length as usize {
                    if !self.equal_in_memory(*element, (a.0, a.1 + index * size), (b.0, b.1 + index * size))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Type::Record(id) => {
                for (index, (_, part)) in types.aggregate(*id).parts.iter().enumerate() {
                    let part = part.expect("every field of a record has a type");
                    let offset = self.layouts.field(types, ty, index);
                    if !self.equal_in_memory(part, (a.0, a.1 + offset), (b.0, b.1 + offset))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Type::Union(id) => {
                let tag = word(a.0, a.1);
                if tag != word(b.0, b.1) {
                    return Ok(false);
                }
                match types.aggregate(*id).parts.get(tag as usize) {
                    Some((_, Some(part))) => self.equal_in_memory(*part, (a.0, a.1 + 4), (b.0, b.1 + 4)),
                    Some((_, None)) | None => Ok(true),
                }
            }
            Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => {
                unreachable!("these hold no references")
            }
        }
    }

    /// The value as the world sees it.
    pub(crate) fn datum(&self, ty: TypeId, part: ValueRef, frame: &[u8]) -> Result<Datum, Fault> {
        let types = &self.program.types;
        Ok(match types.get(ty) {
            Type::Int(_) => Datum::Int(ScalarKind::of(types, ty).number(self.scalar(ty, part, frame))),
            Type::Bool | Type::Error => Datum::Bool(self.scalar(ty, part, frame) != 0),
            Type::Pid(_) => Datum::Pid(self.scalar(ty, part, frame) as u32),
            Type::Boxed(_) => {
                let (ty, part) = self.unboxed(ty, part, frame)?;
                self.datum(ty, part, frame)?
            }
            Type::Bytes { .. } => {
                let address = self.address(part);
                Datum::Bytes(bytes_at(self.pools.memory(address.space, frame), address.at).to_vec())
            }
            Type::Array { length, element } => {
                let Address { space, at } = self.address(part);
                let size = self.layouts.size(*element);
                let item = |index| {
                    self.datum(*element, ValueRef::Memory(Address { space, at: at + index as usize * size }), frame)
                };
                Datum::Array((0..*length).map(item).collect::<Result<_, _>>()?)
            }
            Type::Record(id) => {
                let Address { space, at } = self.address(part);
                let field = |(index, (_, field)): (usize, &(_, Option<TypeId>))| {
                    let at = at + self.layouts.field(types, ty, index);
                    let field = field.expect("every field of a record has a type");
                    self.datum(field, ValueRef::Memory(Address { space, at }), frame)
                };
                Datum::Record(types.aggregate(*id).parts.iter().enumerate().map(field).collect::<Result<_, _>>()?)
            }
            Type::Union(id) => {
                let Address { space, at } = self.address(part);
                let tag = word(self.pools.memory(space, frame), at);
                let payload = match types.aggregate(*id).parts.get(tag as usize) {
                    Some((_, Some(ty))) => {
                        Some(Box::new(self.datum(*ty, ValueRef::Memory(Address { space, at: at + 4 }), frame)?))
                    }
                    Some((_, None)) | None => None,
                };
                Datum::Union(tag, payload)
            }
        })
    }
}

/// Counts the objects a datum of this type takes, per pool.
pub(crate) fn objects_needed(program: &Program, ty: TypeId, datum: &Datum, needed: &mut [u32]) {
    let types = &program.types;
    match (types.get(ty), datum) {
        (Type::Boxed(pool), datum) => {
            needed[pool.0 as usize] += 1;
            objects_needed(program, types.pool(*pool).content, datum, needed);
        }
        (Type::Array { element, .. }, Datum::Array(items)) => {
            items.iter().for_each(|item| objects_needed(program, *element, item, needed));
        }
        (Type::Record(id), Datum::Record(fields)) => {
            for ((_, ty), field) in types.aggregate(*id).parts.iter().zip(fields) {
                objects_needed(program, ty.expect("every field of a record has a type"), field, needed);
            }
        }
        (Type::Union(id), Datum::Union(tag, Some(payload))) => {
            if let Some((_, Some(ty))) = types.aggregate(*id).parts.get(*tag as usize) {
                objects_needed(program, *ty, payload, needed);
            }
        }
        (
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_),
            _,
        ) => {}
    }
}

/// Writes a datum that conforms to its type into the memory of a frame (or a pool), taking objects for boxed parts.
pub(crate) fn write_datum(
    program: &Program,
    layouts: &Layouts,
    pools: &mut Pools,
    frame: &mut [u8],
    ty: TypeId,
    address: Address,
    datum: &Datum,
) -> Result<(), Fault> {
    let types = &program.types;
    match (types.get(ty), datum) {
        (Type::Boxed(_), datum) => {
            let object = box_datum(program, layouts, pools, ty, datum)?;
            set_word(pools.memory_mut(address.space, frame), address.at, object);
        }
        (Type::Int(_), Datum::Int(value)) => {
            store(pools.memory_mut(address.space, frame), address.at, ScalarKind::of(types, ty), *value as i64);
        }
        (Type::Bool, Datum::Bool(value)) => pools.memory_mut(address.space, frame)[address.at] = u8::from(*value),
        (Type::Pid(_), Datum::Pid(instance)) => set_word(pools.memory_mut(address.space, frame), address.at, *instance),
        (Type::Bytes { .. }, Datum::Bytes(bytes)) => {
            let memory = &mut pools.memory_mut(address.space, frame)[address.at..address.at + layouts.size(ty)];
            set_word(memory, 0, bytes.len() as u32);
            memory[4..4 + bytes.len()].copy_from_slice(bytes);
            memory[4 + bytes.len()..].fill(0);
        }
        (Type::Array { element, .. }, Datum::Array(items)) => {
            let size = layouts.size(*element);
            for (index, item) in items.iter().enumerate() {
                let address = Address { at: address.at + index * size, ..address };
                write_datum(program, layouts, pools, frame, *element, address, item)?;
            }
        }
        (Type::Record(id), Datum::Record(fields)) => {
            for (index, ((_, part), field)) in types.aggregate(*id).parts.iter().zip(fields).enumerate() {
                let address = Address { at: address.at + layouts.field(types, ty, index), ..address };
                let part = part.expect("every field of a record has a type");
                write_datum(program, layouts, pools, frame, part, address, field)?;
            }
        }
        (Type::Union(id), Datum::Union(tag, payload)) => {
            let memory = &mut pools.memory_mut(address.space, frame)[address.at..address.at + layouts.size(ty)];
            memory.fill(0);
            set_word(memory, 0, *tag);
            if let (Some((_, Some(part))), Some(payload)) = (types.aggregate(*id).parts.get(*tag as usize), payload) {
                let address = Address { at: address.at + 4, ..address };
                write_datum(program, layouts, pools, frame, *part, address, payload)?;
            }
        }
        (
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_),
            _,
        ) => return Err(Fault::Range),
    }
    Ok(())
}

/// A reference to a new object that holds the datum.
pub(crate) fn box_datum(
    program: &Program,
    layouts: &Layouts,
    pools: &mut Pools,
    ty: TypeId,
    datum: &Datum,
) -> Result<u32, Fault> {
    match program.types.get(ty) {
        Type::Boxed(pool) => {
            let reference = pools.allocate(*pool)?;
            let address = Address { space: MemorySpace::Pool(*pool), at: pools.content(*pool, reference)? };
            write_datum(program, layouts, pools, &mut [], program.types.pool(*pool).content, address, datum)?;
            Ok(reference)
        }
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => unreachable!("only boxed types have objects"),
    }
}
