//! The representation of values in registers and memory. Each value has exactly one representation, so that equal
//! contents are equal bytes. Knows nothing of code and schedules.
//!
//! ```text
//!   integer, bool         1, 2, 4 or 8 bytes, little-endian       in a register: an i64 with the same low bits,
//!   pid                   4 bytes: instance number                               sign- or zero-extended
//!   reference             4 bytes: the object's generation, from 1, above its number; 0: null
//!   bytes[<=N]            4 bytes length, N bytes; those past the length are 0
//!   union                 4 bytes tag, the largest payload; bytes the payload does not use are 0
//!   record, array         parts one after the other, without gaps
//!   a free object         all 0
//! ```

use quaject_esp_ir::ir::{PoolId, Type, TypeId, TypeTable};

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
