//! The representation of values in generated C (see `layout` of the C back end), implemented independently so that the
//! two check each other.

use crate::machine::ByteOrder;
use quaject_esp_exec::datum::Datum;
use quaject_esp_gen::layout::{Layouts, View, data_offset, length_bytes, tag_bytes};
use quaject_esp_ir::ir::{Type, TypeId, TypeTable};

/// Writes a value at the start of `to`.
pub fn encode(types: &TypeTable, layouts: &Layouts, order: ByteOrder, ty: TypeId, datum: &Datum, to: &mut [u8]) {
    let put = |to: &mut [u8], bytes: u64, value: i128| {
        let bytes = bytes as usize;
        to[..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        order.arrange(&mut to[..bytes]);
    };
    match (types.get(ty), datum) {
        (Type::Int(int), Datum::Int(value)) => put(to, u64::from(int.bits() / 8), *value),
        (Type::Bool, Datum::Bool(value)) => to[0] = u8::from(*value),
        (Type::Pid(_), Datum::Pid(instance)) => put(to, 4, i128::from(*instance)),
        (Type::Bytes { bound }, Datum::Bytes(bytes)) => {
            put(to, length_bytes(*bound), bytes.len() as i128);
            to[data_offset(*bound) as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        (Type::Array { length: _, element }, Datum::Array(elements)) => {
            let size = layouts.extent(*element, View::Environment).size as usize;
            for (index, datum) in elements.iter().enumerate() {
                encode(types, layouts, order, *element, datum, &mut to[index * size..]);
            }
        }
        (Type::Record(id), Datum::Record(fields)) => {
            let offsets = layouts.field_offsets(ty, View::Environment);
            for ((part, offset), datum) in types.aggregate(*id).parts.iter().zip(offsets).zip(fields) {
                encode(types, layouts, order, part.1.expect("fields have types"), datum, &mut to[*offset as usize..]);
            }
        }
        (Type::Union(id), Datum::Union(tag, payload)) => {
            let parts = &types.aggregate(*id).parts;
            put(to, tag_bytes(parts.len()), i128::from(*tag));
            if let (Some(payload), Some(part)) = (payload, parts[*tag as usize].1) {
                let offset =
                    layouts.payload_offset(ty, View::Environment).expect("a tag with a payload has a place for it");
                encode(types, layouts, order, part, payload, &mut to[offset as usize..]);
            }
        }
        (Type::Boxed(pool), datum) => encode(types, layouts, order, types.pool(*pool).content, datum, to),
        (ty, datum) => panic!("{datum:?} is no {ty:?}"),
    }
}

/// Reads a value from the start of `from`; none if the bytes are no value of the type.
pub fn decode(types: &TypeTable, layouts: &Layouts, order: ByteOrder, ty: TypeId, from: &[u8]) -> Option<Datum> {
    let get = |bytes: u64| {
        let bytes = bytes as usize;
        let mut value = [0; 16];
        value[..bytes].copy_from_slice(&from[..bytes]);
        order.arrange(&mut value[..bytes]);
        i128::from_le_bytes(value)
    };
    Some(match types.get(ty) {
        Type::Int(int) => Datum::Int(int.wrap(get(u64::from(int.bits() / 8)))),
        Type::Bool if from[0] < 2 => Datum::Bool(from[0] == 1),
        Type::Bool | Type::Error => return None,
        Type::Pid(_) => Datum::Pid(get(4) as u32),
        Type::Bytes { bound } => {
            let length = get(length_bytes(*bound)) as usize;
            if length > *bound as usize {
                return None;
            }
            Datum::Bytes(from[data_offset(*bound) as usize..][..length].to_vec())
        }
        Type::Array { length, element } => {
            let size = layouts.extent(*element, View::Environment).size as usize;
            let elements =
                (0..*length as usize).map(|index| decode(types, layouts, order, *element, &from[index * size..]));
            Datum::Array(elements.collect::<Option<_>>()?)
        }
        Type::Record(id) => {
            let offsets = layouts.field_offsets(ty, View::Environment);
            let fields = types.aggregate(*id).parts.iter().zip(offsets);
            let fields = fields.map(|(part, offset)| decode(types, layouts, order, part.1?, &from[*offset as usize..]));
            Datum::Record(fields.collect::<Option<_>>()?)
        }
        Type::Union(id) => {
            let parts = &types.aggregate(*id).parts;
            let tag = get(tag_bytes(parts.len())) as usize;
            let payload = match parts.get(tag)?.1 {
                None => None,
                Some(part) => {
                    let offset = layouts.payload_offset(ty, View::Environment)? as usize;
                    Some(Box::new(decode(types, layouts, order, part, &from[offset..])?))
                }
            };
            Datum::Union(tag as u32, payload)
        }
        Type::Boxed(pool) => decode(types, layouts, order, types.pool(*pool).content, from)?,
    })
}
