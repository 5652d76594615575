//! The memory of a program's constants, which no step changes. Knows nothing of code.

use crate::layout::{Layouts, ScalarKind, set_word, store};
use quaject_esp_ir::ir::{Literal, Program, Type, TypeId, TypeTable};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The constants of a program, one after the other. All states of a program have the same ones, so that states are
/// compared and hashed without them.
#[derive(Clone, Debug)]
pub(crate) struct ConstantMemory(Arc<[u8]>);

impl ConstantMemory {
    pub(crate) fn new(program: &Program, layouts: &Layouts) -> ConstantMemory {
        ConstantMemory(contents(program, layouts).into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for ConstantMemory {
    fn eq(&self, _other: &ConstantMemory) -> bool {
        true
    }
}

impl Eq for ConstantMemory {}

impl Hash for ConstantMemory {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

/// The offset of each constant.
pub(crate) fn offsets(program: &Program, layouts: &Layouts) -> Vec<usize> {
    let mut end = 0usize;
    let place = |constant: &quaject_esp_ir::ir::Constant| {
        let start = end;
        end = end.saturating_add(layouts.size(constant.ty));
        start
    };
    program.constants.iter().map(place).collect()
}

/// The bytes of all constants.
pub(crate) fn contents(program: &Program, layouts: &Layouts) -> Vec<u8> {
    let sizes = program.constants.iter().map(|constant| layouts.size(constant.ty));
    let mut memory = vec![0; sizes.sum()];
    for (constant, at) in program.constants.iter().zip(offsets(program, layouts)) {
        write(&program.types, layouts, constant.ty, &constant.content, &mut memory, at);
    }
    memory
}

/// Writes a literal of a type to memory that is 0.
fn write(types: &TypeTable, layouts: &Layouts, ty: TypeId, literal: &Literal, memory: &mut [u8], at: usize) {
    match (types.get(ty), literal) {
        (_, Literal::Scalar(number)) => store(memory, at, ScalarKind::of(types, ty), *number as i64),
        (_, Literal::Bytes(bytes)) => {
            set_word(memory, at, bytes.len() as u32);
            memory[at + 4..at + 4 + bytes.len()].copy_from_slice(bytes);
        }
        (Type::Array { element, .. }, Literal::Parts(parts)) => {
            let size = layouts.size(*element);
            for (index, part) in parts.iter().enumerate() {
                write(types, layouts, *element, part, memory, at + index * size);
            }
        }
        (Type::Array { length, element }, Literal::Repeat(part)) => {
            let size = layouts.size(*element);
            for index in 0..*length as usize {
                write(types, layouts, *element, part, memory, at + index * size);
            }
        }
        (Type::Record(id), Literal::Parts(parts)) => {
            for (field, ((_, of_field), part)) in types.aggregate(*id).parts.iter().zip(parts).enumerate() {
                let of_field = of_field.expect("every field of a record has a type");
                write(types, layouts, of_field, part, memory, at + layouts.field(types, ty, field));
            }
        }
        (Type::Union(id), Literal::Tagged(tag, payload)) => {
            set_word(memory, at, *tag);
            if let (Some((_, Some(ty))), Some(payload)) = (types.aggregate(*id).parts.get(*tag as usize), payload) {
                write(types, layouts, *ty, payload, memory, at + 4);
            }
        }
        (_, Literal::Parts(_) | Literal::Repeat(_) | Literal::Tagged(..)) => {
            unreachable!("the verifier requires literals of their types")
        }
    }
}
