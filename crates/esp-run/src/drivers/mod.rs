//! Drivers: what stands between an external channel and a file, a pipe, a terminal, a network or the clock. They never
//! wait; `Ports::sleep` does, for all of them at once. Know channels and their types, not programs that run.

pub(crate) mod bytes;
pub(crate) mod devices;
pub(crate) mod endpoints;
pub(crate) mod failure;
pub(crate) mod form;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod stream;

use quaject_esp_ir::ir::{ProcessId, Program, TypeId};

/// A type as messages name it.
pub(crate) fn type_name(program: &Program, ty: TypeId) -> String {
    let name_of = |process: ProcessId| program.processes[process.0 as usize].name.as_str();
    quaject_esp::type_name(&program.types, &name_of, ty)
}
