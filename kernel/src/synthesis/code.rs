//! The area of synthesised code, and what is the same for all processes: templates, and routines that have no object.

use super::area::CodeArena;
use super::shapes::{Shapes, make_shapes};
use crate::cell::Global;
use crate::memory::layout::{CODE_BYTES, CODE_EXECUTE, CODE_WRITE};
use crate::trace::Trace;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quaject_synth::arena::{Arena, Found, UNIT, Unit};
use quaject_synth::gate::Gate;
use quaject_synth::grace::Grace;
use quaject_synth::{Error, Routine, Template};

static GRACE: Grace<1> = Grace::new();

const UNITS: usize = CODE_BYTES as usize / UNIT;

/// The area, and what is made from it at the start.
pub(super) struct Code {
    pub(super) arena: CodeArena,
    pub(super) shapes: Shapes,
    trace: Trace,
}

static CODE: Global<Option<Code>> = Global::new(None);

/// Makes the templates. While calls are traced none is specialised, so that every call is seen.
pub(crate) fn initialize(trace: Trace) -> Result<(), Error> {
    let mut units = Vec::new();
    units.try_reserve_exact(UNITS).map_err(|_| Error::NoMemory)?;
    units.resize(UNITS, Unit::NEW);
    // SAFETY: the area is mapped at both addresses, and only the arena uses it: self-tests, which also do, end the
    // machine.
    let mut arena =
        unsafe { Arena::new(CODE_WRITE as *mut u8, CODE_EXECUTE as usize, CODE_BYTES as usize, units.leak(), &GRACE) };
    let shapes = make_shapes(&mut arena)?;
    CODE.with(|code| *code = Some(Code { arena, shapes, trace }));
    Ok(())
}

/// Works with the area; nothing if calls are not specialised.
pub(super) fn with_code<R>(work: impl FnOnce(&mut Code) -> R) -> Option<R> {
    CODE.with(|code| code.as_mut().filter(|code| code.trace == Trace::Off).map(work))
}

/// Works with the area, whether calls are specialised or not.
///
/// # Panics
/// Before the templates are made.
pub(super) fn with_arena<R>(work: impl FnOnce(&mut Code) -> R) -> R {
    CODE.with(|code| work(code.as_mut().expect("the templates are made before threads are")))
}

/// Synthesises a routine; nothing if the area is full, so that the general path does the work.
pub(super) fn instantiate(shape: impl FnOnce(&Shapes) -> &Template, addresses: &[usize]) -> Option<Routine> {
    with_code(|code| shape(&code.shapes).instantiate(&mut code.arena, addresses).ok())?
}

/// The gate of a routine that was made from a template.
pub(super) fn gate(shape: impl FnOnce(&Shapes) -> &Template, routine: &Routine) -> Option<Gate> {
    with_code(|code| shape(&code.shapes).gate(&code.arena, routine).ok())?
}

/// Frees a routine that nothing leads to any more.
pub(super) fn free(routine: Routine) {
    with_code(|code| code.arena.free_routine(routine));
}

/// Where a routine goes on after the instruction at an address has faulted.
pub(crate) fn fix_up(instruction: u64) -> Option<u64> {
    with_code(|code| code.arena.fix_up(instruction as usize))?.map(|address| address as u64)
}

/// The name of a routine, and its code as text.
fn describe(routine: &Found<'_>) -> String {
    format!("{}: {} bytes at {:#x}\n{}", routine.name, routine.code.len(), routine.entry, routine.listing())
}

/// The routine around an address as text.
pub(crate) fn describe_at(address: u64) -> Option<String> {
    with_code(|code| code.arena.routine_at(address as usize).map(|found| describe(&found)))?
}

/// All routines as text.
pub(crate) fn describe_all() -> String {
    with_code(|code| code.arena.routines().map(|found| describe(&found)).collect()).unwrap_or_default()
}

/// The entry of a template, which cannot be executed: its addresses are missing.
pub(crate) fn template_entry() -> usize {
    with_arena(|code| code.shapes.read_file.routine().entry())
}

/// Whether an address is in the area.
pub(crate) fn is_in_area(address: u64) -> bool {
    address >= CODE_EXECUTE
}
