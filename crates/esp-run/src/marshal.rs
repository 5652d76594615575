//! Conversion of values between `Datum` and their layout in C (`esp_gen::layout`, the environment's view). Knows
//! layouts, not their users.

use quaject_esp_exec::datum::{Datum, conforms};
use quaject_esp_gen::layout::{self, Layouts, View};
use quaject_esp_ir::ir::{IntType, Program, Type, TypeId};

/// Writes a value of a type at the beginning of `memory`, which is large enough for the type and zeroed where the
/// value does not reach. A value that is not of the type leaves zeros.
pub(crate) fn store(program: &Program, layouts: &Layouts, ty: TypeId, datum: &Datum, memory: &mut [u8]) {
    let types = &program.types;
    match (types.get(ty), datum) {
        (Type::Int(int), Datum::Int(value)) => store_integer(memory, u64::from(int.bits() / 8), *value),
        (Type::Bool, Datum::Bool(value)) => memory[0] = u8::from(*value),
        (Type::Pid(_), Datum::Pid(instance)) => store_integer(memory, 4, i128::from(*instance)),
        (Type::Bytes { bound }, Datum::Bytes(bytes)) => {
            let data = layout::data_offset(*bound) as usize;
            let length = bytes.len().min(*bound as usize);
            store_integer(memory, layout::length_bytes(*bound), length as i128);
            memory[data..data + length].copy_from_slice(&bytes[..length]);
        }
        (Type::Array { element, .. }, Datum::Array(items)) => {
            let size = layouts.extent(*element, View::Environment).size as usize;
            for (item, memory) in items.iter().zip(memory.chunks_exact_mut(size)) {
                store(program, layouts, *element, item, memory);
            }
        }
        (Type::Record(id), Datum::Record(fields)) => {
            let offsets = layouts.field_offsets(ty, View::Environment);
            let parts = &types.aggregate(*id).parts;
            for (((_, part), field), offset) in parts.iter().zip(fields).zip(offsets) {
                let part = part.expect("every field of a record has a type");
                store(program, layouts, part, field, &mut memory[*offset as usize..]);
            }
        }
        (Type::Union(id), Datum::Union(tag, payload)) => {
            let parts = &types.aggregate(*id).parts;
            store_integer(memory, layout::tag_bytes(parts.len()), i128::from(*tag));
            let part = parts.get(*tag as usize).and_then(|(_, part)| *part);
            let offset = layouts.payload_offset(ty, View::Environment);
            if let (Some(part), Some(payload), Some(offset)) = (part, payload, offset) {
                store(program, layouts, part, payload, &mut memory[offset as usize..]);
            }
        }
        (Type::Boxed(pool), datum) => store(program, layouts, types.pool(*pool).content, datum, memory),
        (
            Type::Int(_)
            | Type::Bool
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Error,
            _,
        ) => {}
    }
}

/// Reads a value of a type from the beginning of `memory`, which C code may have filled with anything; none if a
/// length, a tag or an id in it is out of range.
pub(crate) fn load(program: &Program, layouts: &Layouts, ty: TypeId, memory: &[u8]) -> Option<Datum> {
    let types = &program.types;
    let datum = match types.get(ty) {
        Type::Int(int) => Datum::Int(load_integer(memory, *int)),
        Type::Bool => Datum::Bool(memory[0] != 0),
        Type::Pid(_) => {
            let pid = Datum::Pid(load_unsigned(memory, 4) as u32);
            return conforms(program, ty, &pid).then_some(pid);
        }
        Type::Bytes { bound } => {
            let data = layout::data_offset(*bound) as usize;
            let length = load_unsigned(memory, layout::length_bytes(*bound));
            if length > u64::from(*bound) {
                return None;
            }
            Datum::Bytes(memory[data..data + length as usize].to_vec())
        }
        Type::Array { length, element } => {
            let size = layouts.extent(*element, View::Environment).size as usize;
            let items = memory.chunks_exact(size).take(*length as usize);
            Datum::Array(items.map(|memory| load(program, layouts, *element, memory)).collect::<Option<_>>()?)
        }
        Type::Record(id) => {
            let offsets = layouts.field_offsets(ty, View::Environment);
            let parts = &types.aggregate(*id).parts;
            let fields = parts.iter().zip(offsets).map(|((_, part), offset)| {
                load(program, layouts, part.expect("every field of a record has a type"), &memory[*offset as usize..])
            });
            Datum::Record(fields.collect::<Option<_>>()?)
        }
        Type::Union(id) => {
            let parts = &types.aggregate(*id).parts;
            let tag = load_unsigned(memory, layout::tag_bytes(parts.len()));
            let offset = layouts.payload_offset(ty, View::Environment);
            let payload = match (parts.get(tag as usize)?.1, offset) {
                (Some(part), Some(offset)) => Some(Box::new(load(program, layouts, part, &memory[offset as usize..])?)),
                (None, _) | (Some(_), None) => None,
            };
            Datum::Union(tag as u32, payload)
        }
        Type::Boxed(pool) => load(program, layouts, types.pool(*pool).content, memory)?,
        // A program with errors is not run.
        Type::Error => Datum::Int(0),
    };
    Some(datum)
}

/// Writes the low bytes of an integer in this machine's order.
fn store_integer(memory: &mut [u8], bytes: u64, value: i128) {
    let value = value as u64;
    match bytes {
        1 => memory[..1].copy_from_slice(&(value as u8).to_ne_bytes()),
        2 => memory[..2].copy_from_slice(&(value as u16).to_ne_bytes()),
        4 => memory[..4].copy_from_slice(&(value as u32).to_ne_bytes()),
        _ => memory[..8].copy_from_slice(&value.to_ne_bytes()),
    }
}

fn load_unsigned(memory: &[u8], bytes: u64) -> u64 {
    let part = |count: usize| &memory[..count];
    match bytes {
        1 => u64::from(memory[0]),
        2 => u64::from(u16::from_ne_bytes(part(2).try_into().expect("two bytes"))),
        4 => u64::from(u32::from_ne_bytes(part(4).try_into().expect("four bytes"))),
        _ => u64::from_ne_bytes(part(8).try_into().expect("eight bytes")),
    }
}

fn load_integer(memory: &[u8], int: IntType) -> i128 {
    int.wrap(i128::from(load_unsigned(memory, u64::from(int.bits() / 8))))
}

#[cfg(test)]
mod tests {
    use super::{load, store};
    use quaject_esp_exec::datum::Datum;
    use quaject_esp_gen::layout::{Layouts, View};
    use quaject_esp_ir::ir::{MemoryMode, Program, Type, TypeId, TypeTable};
    use quaject_esp_syntax::types::Aggregate;

    fn program(types: TypeTable) -> Program {
        Program {
            files: Vec::new(),
            calls: Vec::new(),
            types,
            memory: MemoryMode::Automatic,
            constants: Vec::new(),
            channels: Vec::new(),
            interfaces: Vec::new(),
            externs: Vec::new(),
            functions: Vec::new(),
            processes: Vec::new(),
            paths: Vec::new(),
            hand_off: quaject_esp_ir::ir::HandOff::default(),
            assert_messages: Vec::new(),
        }
    }

    fn round_trip(program: &Program, ty: TypeId, datum: &Datum) {
        let layouts = Layouts::of(&program.types);
        let mut memory = vec![0; layouts.extent(ty, View::Environment).size as usize];
        store(program, &layouts, ty, datum, &mut memory);
        assert_eq!(load(program, &layouts, ty, &memory).as_ref(), Some(datum));
    }

    #[test]
    fn values_survive_the_way_to_c_and_back() {
        let mut types = TypeTable::new();
        let bytes = types.intern(Type::Bytes { bound: 5 });
        let parts =
            |parts: &[(&str, Option<TypeId>)]| parts.iter().map(|(name, ty)| ((*name).into(), *ty)).collect::<Vec<_>>();
        let pair = types.add_aggregate(Aggregate {
            name: None,
            parts: parts(&[("a", Some(TypeTable::I8)), ("b", Some(bytes)), ("c", Some(TypeTable::U64))]),
        });
        let pair = types.intern(Type::Record(pair));
        let either =
            types.add_aggregate(Aggregate { name: None, parts: parts(&[("send", Some(pair)), ("eos", None)]) });
        let either = types.intern(Type::Union(either));
        let array = types.intern(Type::Array { length: 3, element: either });
        let program = program(types);
        let record =
            Datum::Record(vec![Datum::Int(-7), Datum::Bytes(b"abc".to_vec()), Datum::Int(i128::from(u64::MAX))]);
        let send = Datum::Union(0, Some(Box::new(record.clone())));
        round_trip(&program, TypeTable::BOOL, &Datum::Bool(true));
        round_trip(&program, TypeTable::I64, &Datum::Int(i128::from(i64::MIN)));
        round_trip(&program, pair, &record);
        round_trip(&program, array, &Datum::Array(vec![send.clone(), Datum::Union(1, None), send]));
    }
}
