//! Machine code in memory: the local code of each process through `vcode`. Operations, faults and what is rare go back
//! to the interpreter at their position (see `quaject_esp_exec::native`), which is thus the one place where schedule
//! and faults are decided.
//!
//! ```text
//!   body ── flow, ranges, values, live ──> what is known ── allocate ──> homes ── emit ──> code and its entries
//! ```

mod access;
mod allocate;
mod constant_slots;
mod edges;
mod emit;
mod flow;
mod guards;
mod live;
mod operate;
mod ranges;
mod values;
mod ways;

use crate::Checks;
use allocate::Allocator;
use constant_slots::ConstantSlots;
pub use emit::Room;
use emit::{Failure, Known, emit, register_count};
use flow::Flow;
use guards::{Guards, Lengths};
use live::Live;
use quaject_esp_exec::native::Extents;
use quaject_esp_ir::ir::{Location, Process, Program};
use quaject_vcode::{Asm, Core, Error, Extension, Machine};
use values::Values;

/// A way into the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where the interpreter stands then.
    pub position: u32,
    /// Bytes from the start of the buffer.
    pub offset: usize,
}

/// The machine code of a process. It is a function of two pointers: the registers of the frame, and one of the entries;
/// it returns the position at which the interpreter goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// Where it is in the buffer.
    pub code: quaject_vcode::Code,
    /// The ways in.
    pub entries: Vec<Entry>,
    /// Where instructions came from, those up to the next one's, by offset.
    pub origins: Vec<Origin>,
}

/// Where machine code came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Bytes from the start of the buffer.
    pub offset: usize,
    /// The place in the text; line 0 for what stands for none.
    pub location: Location,
}

/// Why a process has no machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It has more values or instructions than are worth the time to compile.
    TooLarge,
    /// The code could not be written.
    Unwritten(Error),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::TooLarge => write!(f, "it is too large to be compiled at once"),
            Refused::Unwritten(error) => write!(f, "{error}"),
        }
    }
}

/// The largest product of values and instructions of a process that is compiled: bits of the sets that say what is live.
const MOST_BITS: usize = 1 << 26;
/// The largest distance of a value's cell from the frame's start that every machine reaches without help.
const MOST_VALUES: usize = 1 << 20;

/// Compiles a process of a verified program to `buffer`, which is as large as the code may be.
///
/// # Errors
/// [`Refused`] if it has no machine code.
pub fn compile<M: Machine>(
    program: &Program,
    process: &Process,
    extents: &Extents,
    checks: Checks,
    buffer: &mut [u8],
    room: &mut Room<M>,
) -> Result<Code, Refused>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    let body = &process.body;
    let instructions: usize = body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
    if body.values.len() > MOST_VALUES || body.values.len().saturating_mul(instructions) > MOST_BITS {
        return Err(Refused::TooLarge);
    }
    let slots = extents.slots(body);
    let flow = Flow::new(body);
    let guards = Guards::new(&flow);
    let values = Values::new(program, &flow, &guards);
    let live = Live::new(&flow, &values);
    let lengths = Lengths::new(&flow, &live);
    let constant_slots = ConstantSlots::new(&flow);
    let mut allocator = Allocator::new(&flow, &values, &live);
    let known = Known {
        program,
        extents,
        slots: &slots,
        flow: &flow,
        values: &values,
        live: &live,
        constant_slots: &constant_slots,
        guards: &guards,
        lengths: &lengths,
        checks,
    };
    loop {
        let homes = allocator.place(register_count::<M>());
        match emit::<M>(&known, &homes, buffer, room) {
            Ok(code) => return Ok(code),
            Err(Failure::Error(error)) => return Err(Refused::Unwritten(error)),
            // Every round leaves one value fewer in registers.
            Err(Failure::Shortage(point)) if allocator.evict(point) => {}
            Err(Failure::Shortage(_)) => return Err(Refused::Unwritten(Error::Registers)),
        }
    }
}
