//! A just-in-time compiler through `vcode`: machine code for the local code of each process. Channel operations, faults
//! and rare instructions exit to the interpreter, which resumes at the position it is given (see
//! `quaject_esp_exec::native`). So schedule and faults are decided in one place.
//!
//! ```text
//!   body ──> code layout, intervals, branch facts, value forms, liveness
//!        ──> register allocation ──> machine code, entries
//! ```
//!
//! Allocation is by priority colouring of webs (Chow and Hennessy, "The Priority-Based Coloring Approach to Register
//! Allocation", 1990), repeated with one web fewer when a point lacks a scratch register.

mod allocate;
mod arithmetic;
mod branch_facts;
mod code_layout;
mod comparison;
mod constant_slots;
mod edge_moves;
mod emit;
mod liveness;
mod memory;
mod operand_type;
mod slot_lengths;
mod transitions;
mod value_forms;

use crate::Checks;
use allocate::Allocator;
use branch_facts::BranchFacts;
use code_layout::CodeLayout;
use constant_slots::ConstantSlots;
use emit::{Analyses, Failure, emit, register_count};
pub use emit::{ConstantAddresses, Room};
use liveness::Liveness;
use quaject_esp_exec::native::Extents;
use quaject_esp_ir::ir::{Location, Process, Program};
use quaject_vcode::{Asm, Core, Error, Extension, Machine};
use slot_lengths::SlotLengths;
use value_forms::ValueForms;

/// An entry point of the machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The position of the interpreter at which the code is entered.
    pub position: u32,
    /// Bytes from the start of the buffer.
    pub offset: usize,
}

/// The machine code of a process. It is a function of two pointers: the registers of the frame, and one of the entries;
/// it returns the position at which the interpreter resumes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// Where it is in the buffer.
    pub code: quaject_vcode::Code,
    /// Its entry points.
    pub entries: Vec<Entry>,
    /// The source of the instructions, by offset: each origin holds up to the next one.
    pub origins: Vec<Origin>,
}

/// The source of a run of machine instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Bytes from the start of the buffer.
    pub offset: usize,
    /// The place in the source text; line 0 for code that has none.
    pub location: Location,
}

/// Why a process has no machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitError {
    /// It exceeds the limits on values and instructions.
    TooLarge,
    /// The assembler reported an error.
    Assembler(Error),
}

impl std::fmt::Display for JitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JitError::TooLarge => write!(f, "it is too large to be compiled at once"),
            JitError::Assembler(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for JitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JitError::TooLarge => None,
            JitError::Assembler(error) => Some(error),
        }
    }
}

/// The largest product of values and instructions of a process that is compiled: bits of the liveness sets.
const MAX_LIVENESS_BITS: usize = 1 << 26;
/// The number of values whose cells every machine reaches by the displacement of one instruction.
const MAX_VALUES: usize = 1 << 20;

/// Compiles a process of a verified program to `buffer`, which is as large as the code may be.
///
/// # Errors
/// [`JitError`] if it has no machine code.
pub fn compile<M: Machine>(
    program: &Program,
    process: &Process,
    extents: &Extents,
    constants: &ConstantAddresses,
    checks: Checks,
    buffer: &mut [u8],
    room: &mut Room<M>,
) -> Result<Code, JitError>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    let body = &process.body;
    let instructions: usize = body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
    if body.values.len() > MAX_VALUES || body.values.len().saturating_mul(instructions) > MAX_LIVENESS_BITS {
        return Err(JitError::TooLarge);
    }
    let slots = extents.slots(body);
    let layout = CodeLayout::new(body);
    let guards = BranchFacts::new(&layout);
    let values = ValueForms::new(program, &layout, checks);
    let live = Liveness::new(&layout, &values);
    let lengths = SlotLengths::new(&layout, &live);
    let constant_slots = ConstantSlots::new(&layout);
    let mut allocator = Allocator::new(&layout, &values, &live);
    let analyses = Analyses {
        program,
        extents,
        slots: &slots,
        layout: &layout,
        values: &values,
        live: &live,
        constant_slots: &constant_slots,
        constants,
        guards: &guards,
        lengths: &lengths,
        checks,
    };
    loop {
        let locations = allocator.assign(register_count::<M>());
        match emit::<M>(&analyses, &locations, buffer, room) {
            Ok(code) => return Ok(code),
            Err(Failure::Error(error)) => return Err(JitError::Assembler(error)),
            // Each round keeps one web fewer in registers, so this ends.
            Err(Failure::Shortage(point)) if allocator.evict(point) => {}
            Err(Failure::Shortage(_)) => return Err(JitError::Assembler(Error::Registers)),
        }
    }
}
