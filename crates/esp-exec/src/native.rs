//! The seam between the interpreter and machine code for its local code: where machine code may be entered and left,
//! and how an instance's variables lie in memory. Knows no machine and runs nothing itself.
//!
//! ```text
//!   interpreter --at an entry--> machine code --at any position--> interpreter
//! ```
//!
//! Machine code runs local code only. Wherever it cannot go on (an operation, a fault, an instruction it does not
//! know) it has written every variable back, and the interpreter executes the instruction at that position. So a fault
//! or a choice of the schedule is made in one place, and a position left early costs time, never meaning.

use crate::store::Layouts;
use quaject_esp_ir::ir::{Body, ProcessId, Program, Type, TypeId};

/// Cells behind an instance's registers that belong to its machine code, by what they hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// Turns of loops left, at most `u32::MAX / 4`.
    Fuel,
    /// The address of the instance's memory.
    Memory,
    /// The instance's number.
    Own,
}

impl Cell {
    /// How many there are.
    pub const COUNT: usize = 3;

    /// Which cell it is in a body with this many values.
    pub fn index(self, values: usize) -> usize {
        values + self as usize
    }
}

/// Machine code for a program's processes.
pub trait Native: std::fmt::Debug + Send {
    /// By position of a process's code: whether machine code may be entered there. Empty for a process without any.
    fn entries(&self, process: ProcessId) -> &[bool];

    /// Enters the machine code of an instance of `process` at one of its entries, and returns the position at which
    /// the interpreter goes on. `registers` is followed by the cells of [`Cell`]; what it has used of `fuel` is taken
    /// off.
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

/// Where the parts of values lie in the memory of an instance. Scalars are little-endian; a reference or `pid` takes
/// four bytes; `bytes` are four bytes of length and then the bytes, 0 behind the length; a union is four bytes of tag
/// and then the payload, 0 where there is none; parts of records and arrays follow each other without gaps.
#[derive(Debug)]
pub struct Extents {
    layouts: Layouts,
}

impl Extents {
    /// Those of a program's types.
    pub fn new(program: &Program) -> Extents {
        Extents { layouts: Layouts::new(&program.types) }
    }

    /// Bytes that a value of the type takes.
    pub fn size(&self, ty: TypeId) -> usize {
        self.layouts.size(ty)
    }

    /// Where a field of a record type begins.
    pub fn field(&self, program: &Program, ty: TypeId, field: u32) -> usize {
        self.layouts.field(&program.types, ty, field as usize)
    }

    /// Where each slot of a body begins.
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

/// The position of each block's first instruction; its terminator stands behind its instructions.
pub fn positions(body: &Body) -> Vec<u32> {
    let mut next = 0;
    let start = |block: &quaject_esp_ir::ir::Block| {
        let start = next;
        next += block.instructions.len() as u32 + 1;
        start
    };
    body.blocks.iter().map(start).collect()
}

/// What a register holds: a number of this many bits, extended to 64 as its sign says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width {
    /// 8, 16, 32 or 64.
    pub bits: u32,
    /// Whether it is extended by its sign.
    pub signed: bool,
    /// Whether it is 0 or 1.
    pub boolean: bool,
}

/// What a register for a value of this type holds; none for types that lie in memory.
pub fn width(program: &Program, ty: TypeId) -> Option<Width> {
    match program.types.get(ty) {
        Type::Int(_) | Type::Bool | Type::Error | Type::Pid(_) | Type::Boxed(_) => {
            let kind = crate::store::ScalarKind::of(&program.types, ty);
            Some(Width { bits: kind.bits, signed: kind.signed, boolean: kind.boolean })
        }
        Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) => None,
    }
}
