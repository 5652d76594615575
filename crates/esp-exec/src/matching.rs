//! Matching of messages against patterns: whether a message matches, and what the patterns bind. A failed match binds
//! nothing. Knows neither senders nor waits.

use crate::code::{OperandCode, PatternCode, Register};
use crate::frame::Frame;
use crate::layout::{bytes_at, word};
use crate::pools::{Address, MemorySpace, Pools};
use crate::values::{DataView, ValueRef};
use quaject_esp_ir::ir::{Fault, PoolId, Type, TypeId, TypeTable};

/// The destination of a captured part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The n-th parameter of the block that follows.
    Parameter(usize),
    /// The slot at this offset.
    Slot(usize),
}

/// A part of a message that a pattern binds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capture {
    pub(crate) target: Target,
    pub(crate) ty: TypeId,
    pub(crate) part: ValueRef,
}

/// The match of one message at one receiver.
pub(crate) struct Matcher<'a> {
    pub(crate) view: DataView<'a>,
    /// The memory of the sender, which holds the parts of the message.
    pub(crate) source: &'a [u8],
    /// The receiver's frame, for values computed on arrival.
    pub(crate) receiver: &'a Frame,
    /// The receiver.
    pub(crate) own: u32,
}

impl<'a> Matcher<'a> {
    /// Whether the part matches; what the pattern binds is appended to `captures`.
    pub(crate) fn matches(
        &self,
        pattern: &PatternCode,
        ty: TypeId,
        part: ValueRef,
        captures: &mut Vec<Capture>,
    ) -> Result<bool, Fault> {
        let types = &self.view.program.types;
        let at = |address: Address, distance| ValueRef::Memory(Address { at: address.at + distance, ..address });
        match pattern {
            PatternCode::Any => Ok(true),
            PatternCode::Parameter(number) => {
                captures.push(Capture { target: Target::Parameter(*number), ty, part });
                Ok(true)
            }
            PatternCode::Slot(offset) => {
                captures.push(Capture { target: Target::Slot(*offset), ty, part });
                Ok(true)
            }
            PatternCode::Constant(value) => {
                let (ty, part) = self.view.unboxed(ty, part, self.source)?;
                Ok(self.view.scalar(ty, part, self.source) == *value)
            }
            PatternCode::OwnId => Ok(self.view.scalar(ty, part, self.source) == i64::from(self.own)),
            PatternCode::Bytes(bytes) => {
                let (_, part) = self.view.unboxed(ty, part, self.source)?;
                let address = self.view.address(part);
                Ok(bytes_at(self.view.pools.memory(address.space, self.source), address.at) == &**bytes)
            }
            PatternCode::Equal(operand) => {
                let own = match operand {
                    OperandCode::Register(register) => ValueRef::Scalar(self.receiver.registers[*register as usize]),
                    OperandCode::Place(place) => {
                        ValueRef::Memory(crate::frame::resolve(self.view.pools, place, self.receiver)?)
                    }
                };
                self.view.equal(ty, (part, self.source), (own, &self.receiver.memory))
            }
            PatternCode::Tag(tag, payload) => {
                let (ty, part) = self.view.unboxed(ty, part, self.source)?;
                let address = self.view.address(part);
                if word(self.view.pools.memory(address.space, self.source), address.at) != *tag {
                    return Ok(false);
                }
                match (payload, part_type(types, ty, *tag as usize)) {
                    (Some(payload), Some(ty)) => self.matches(payload, ty, at(address, 4), captures),
                    (Some(_), None) | (None, _) => Ok(true),
                }
            }
            PatternCode::Record(fields) => {
                let (ty, part) = self.view.unboxed(ty, part, self.source)?;
                let address = self.view.address(part);
                for (index, field) in fields.iter().enumerate() {
                    let field_type = part_type(types, ty, index).expect("the verifier types every pattern");
                    let part = at(address, self.view.layouts.field(types, ty, index));
                    if !self.matches(field, field_type, part, captures)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            PatternCode::Array(items) => {
                let (ty, part) = self.view.unboxed(ty, part, self.source)?;
                let address = self.view.address(part);
                let element = match types.get(ty) {
                    Type::Array { element, .. } => *element,
                    Type::Error
                    | Type::Int(_)
                    | Type::Bool
                    | Type::Bytes { .. }
                    | Type::Pid(_)
                    | Type::Record(_)
                    | Type::Union(_)
                    | Type::Boxed(_) => unreachable!("the verifier types every pattern"),
                };
                let size = self.view.layouts.size(element);
                for (index, item) in items.iter().enumerate() {
                    if !self.matches(item, element, at(address, index * size), captures)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

/// The type of a record's field or a union's payload; none for another type, and for a tag without payload.
#[inline]
fn part_type(types: &TypeTable, ty: TypeId, index: usize) -> Option<TypeId> {
    match types.get(ty) {
        Type::Record(id) | Type::Union(id) => types.aggregate(*id).parts.get(index).and_then(|(_, ty)| *ty),
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Boxed(_) => None,
    }
}

/// Writes the captures into the receiver: parameters into registers, others into its slots.
pub(crate) fn bind(
    view: DataView<'_>,
    captures: &[Capture],
    source: &[u8],
    receiver: &mut Frame,
    parameters: &[Register],
) {
    for capture in captures {
        match (capture.target, capture.part) {
            (Target::Parameter(number), part) => {
                receiver.registers[parameters[number] as usize] = view.scalar(capture.ty, part, source);
            }
            (Target::Slot(offset), ValueRef::Memory(address)) => {
                let size = view.layouts.size(capture.ty);
                let bytes = &view.pools.memory(address.space, source)[address.at..address.at + size];
                receiver.memory[offset..offset + size].copy_from_slice(bytes);
            }
            (Target::Slot(_), ValueRef::Scalar(_)) => unreachable!("slots hold aggregates"),
        }
    }
}

/// The objects that the captures refer to.
pub(crate) fn captured_objects(view: DataView<'_>, captures: &[Capture], source: &[u8]) -> Vec<(PoolId, u32)> {
    let mut objects = Vec::new();
    for capture in captures {
        references(view, capture.ty, capture.part, source, &mut objects);
    }
    objects
}

/// The objects that a value refers to directly.
pub(crate) fn references(
    view: DataView<'_>,
    ty: TypeId,
    part: ValueRef,
    source: &[u8],
    objects: &mut Vec<(PoolId, u32)>,
) {
    match part {
        ValueRef::Scalar(value) => match view.program.types.get(ty) {
            Type::Boxed(pool) => objects.push((*pool, value as u32)),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => {}
        },
        ValueRef::Memory(address) => {
            let memory = view.pools.memory(address.space, source);
            view.layouts.references(&view.program.types, ty, memory, address.at, &mut |pool, at| {
                objects.push((pool, word(memory, at)));
            });
        }
    }
}

/// Lays out a message of the environment: each value in memory, one after the other. Returns its size.
pub(crate) fn message_parts(view: DataView<'_>, types: &[TypeId], parts: &mut Vec<ValueRef>) -> usize {
    let mut end = 0;
    for ty in types {
        parts.push(ValueRef::Memory(Address { space: MemorySpace::Frame, at: end }));
        end += view.layouts.size(*ty);
    }
    end
}

/// Releases one count of the object of each reference.
pub(crate) fn release_all(
    program: &quaject_esp_ir::ir::Program,
    layouts: &crate::layout::Layouts,
    pools: &mut Pools,
    objects: &[(PoolId, u32)],
) -> Result<(), Fault> {
    objects.iter().try_for_each(|(pool, object)| pools.release(&program.types, layouts, *pool, *object))
}
