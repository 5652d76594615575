//! The interface between the interpreter and machine code for local code: where machine code is entered and exited, and
//! how the variables of an instance lie in memory. Knows no machine and executes nothing.
//!
//! ```text
//!   interpreter --at an entry--> machine code --at any position--> interpreter
//! ```
//!
//! Machine code executes local code only. Where it cannot continue (at an operation, a fault, an unknown instruction)
//! it writes back every variable and exits, and the interpreter executes the instruction at that position. Faults and
//! scheduling choices are thus made in one place, and an early exit costs time but does not change the result.

use crate::constants;
use crate::layout::Layouts;
use quaject_esp_ir::ir::{Body, ProcessId, Program, Type, TypeId};

/// Cells behind the registers of an instance that belong to its machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// The remaining loop iterations, at most `u32::MAX / 4`.
    Fuel,
    /// The address of the instance's memory.
    Memory,
    /// The instance's number.
    Own,
}

impl Cell {
    /// The number of cells.
    pub const COUNT: usize = 3;

    /// The index of the cell in a body with this many values.
    pub fn index(self, values: usize) -> usize {
        values + self as usize
    }
}

/// Machine code for a program's processes.
pub trait Native: std::fmt::Debug + Send {
    /// Per position of a process: whether machine code may be entered there. Empty for a process without machine code.
    fn entries(&self, process: ProcessId) -> &[bool];

    /// Enters the machine code of an instance of `process` at an entry, and returns the position at which the
    /// interpreter continues. The cells of [`Cell`] follow the registers. The fuel used is subtracted from `fuel`.
    fn run(&mut self, process: ProcessId, at: u32, frame: NativeFrame<'_>, fuel: &mut u64) -> u32;
}

/// The variables of the instance that runs.
#[derive(Debug)]
pub struct NativeFrame<'a> {
    /// The registers, one per value of the body, then the cells.
    pub registers: &'a mut [i64],
    /// The slots.
    pub memory: &'a mut [u8],
    /// The instance's number.
    pub own: u32,
}

/// The layout of values in the memory of an instance. Scalars are little-endian; a reference or `pid` takes
/// four bytes; `bytes` are four bytes of length and then the bytes, 0 behind the length; a union is four bytes of tag
/// and then the payload, 0 where there is none; parts of records and arrays follow each other without gaps.
#[derive(Debug)]
pub struct Extents {
    layouts: Layouts,
}

impl Extents {
    /// The layout of a program's types.
    pub fn new(program: &Program) -> Extents {
        Extents { layouts: Layouts::new(&program.types) }
    }

    /// The size of a type in bytes.
    pub fn size(&self, ty: TypeId) -> usize {
        self.layouts.size(ty)
    }

    /// The offset of a field of a record type.
    pub fn field(&self, program: &Program, ty: TypeId, field: u32) -> usize {
        self.layouts.field(&program.types, ty, field as usize)
    }

    /// The offset of each constant of a program among their bytes, and these bytes.
    pub fn constants(&self, program: &Program) -> (Vec<usize>, Vec<u8>) {
        (constants::offsets(program, &self.layouts), constants::contents(program, &self.layouts))
    }

    /// The offset of each slot of a body.
    pub fn slots(&self, body: &Body) -> Vec<usize> {
        let mut end = 0usize;
        let place = |slot: &quaject_esp_ir::ir::Slot| {
            let start = end;
            end = end.saturating_add(self.size(slot.ty));
            start
        };
        body.slots.iter().map(place).collect()
    }
}

/// The position of each block's first instruction. A block's terminator follows its instructions.
pub fn positions(body: &Body) -> Vec<u32> {
    let mut next = 0;
    let start = |block: &quaject_esp_ir::ir::Block| {
        let start = next;
        next += block.instructions.len() as u32 + 1;
        start
    };
    body.blocks.iter().map(start).collect()
}

/// The content of a register: a number of this many bits, sign- or zero-extended to 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width {
    /// 8, 16, 32 or 64.
    pub bits: u32,
    /// Whether it is sign-extended.
    pub signed: bool,
    /// Whether it is 0 or 1.
    pub boolean: bool,
}

/// The content of a register for a value of this type; none for types that lie in memory.
pub fn width(program: &Program, ty: TypeId) -> Option<Width> {
    match program.types.get(ty) {
        Type::Int(_) | Type::Bool | Type::Error | Type::Pid(_) | Type::Boxed(_) => {
            let kind = crate::layout::ScalarKind::of(&program.types, ty);
            Some(Width { bits: kind.bits, signed: kind.signed, boolean: kind.boolean })
        }
        Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) => None,
    }
}
