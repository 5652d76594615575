//! Drivers: each connects an external channel with a file, a pipe, a terminal, a network or the clock. They never
//! block; [`crate::ports`] sleeps for all of them at once. Know channels and their types, not engines.

pub(crate) mod bytes;
pub(crate) mod devices;
pub(crate) mod endpoints;
pub(crate) mod failure;
pub(crate) mod hex;
pub(crate) mod input;
pub(crate) mod message_codec;
pub(crate) mod output;
pub(crate) mod stream;

use quaject_esp_ir::ir::{ProcessId, Program, TypeId};

/// The name of a type in messages.
pub(crate) fn type_name(program: &Program, ty: TypeId) -> String {
    let name_of = |process: ProcessId| program.processes[process.0 as usize].name.as_str();
    quaject_esp::type_name(&program.types, &name_of, ty)
}
