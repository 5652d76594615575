//! Types of places and operands.

use crate::ir::{Base, Body, Operand, Place, Projection, Slot, Type, TypeId, TypeTable, ValueData};

/// The type of what a place leads to; none if the path does not fit the types, or an id does not exist.
pub fn place_type(types: &TypeTable, body: &Body, place: &Place) -> Option<TypeId> {
    path_type(types, &body.values, &body.slots, place)
}

/// The type of what a place leads to, in code that the verifier accepts.
///
/// # Panics
/// If the path does not fit the types.
pub fn known_place_type(types: &TypeTable, values: &[ValueData], slots: &[Slot], place: &Place) -> TypeId {
    path_type(types, values, slots, place).expect("the verifier types every place")
}

fn path_type(types: &TypeTable, values: &[ValueData], slots: &[Slot], place: &Place) -> Option<TypeId> {
    let mut ty = match place.base {
        Base::Slot(slot) => slots.get(slot.0 as usize)?.ty,
        Base::Constant(_, ty) => ty,
        Base::Object(value) => match types.get(values.get(value.0 as usize)?.ty) {
            Type::Boxed(pool) => types.pool(*pool).content,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => return None,
        },
    };
    for step in &place.path {
        ty = match (step, types.get(ty)) {
            (Projection::Field(field), Type::Record(id)) => types.aggregate(*id).parts.get(*field as usize)?.1?,
            (Projection::Payload(tag), Type::Union(id)) => types.aggregate(*id).parts.get(*tag as usize)?.1?,
            (Projection::Element(_) | Projection::Inside(_), Type::Array { element, .. }) => *element,
            (Projection::Element(_) | Projection::Inside(_), Type::Bytes { .. }) => TypeTable::U8,
            (Projection::Field(_) | Projection::Payload(_) | Projection::Element(_) | Projection::Inside(_), _) => {
                return None;
            }
        };
    }
    Some(ty)
}

/// The type of an operand; none if it does not exist.
pub fn operand_type(types: &TypeTable, body: &Body, operand: &Operand) -> Option<TypeId> {
    match operand {
        Operand::Value(value) => Some(body.values.get(value.0 as usize)?.ty),
        Operand::Place(place) => place_type(types, body, place),
    }
}

/// Whether the type is held in an SSA value: a scalar, or a reference to a boxed object.
pub fn is_value(types: &TypeTable, ty: TypeId) -> bool {
    types.is_scalar(ty) || is_boxed(types, ty)
}

/// Whether values of the type are references to objects of a pool.
pub fn is_boxed(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Boxed(_) => true,
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => false,
    }
}
