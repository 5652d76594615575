//! Values of any type where they lie: access to their parts, equality by content, and conversion from and to the data
//! of the environment.

use crate::datum::Datum;
use crate::layout::{Layouts, ScalarKind, bytes_at, load, set_word, store, word};
use crate::pools::{Address, MemorySpace, Pools};
use quaject_esp_ir::ir::{Fault, Program, Type, TypeId};

/// A value in a register or in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueRef {
    Scalar(i64),
    Memory(Address),
}

/// Read access to values: types, their layouts, the pools.
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

    /// The value as the environment sees it.
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
