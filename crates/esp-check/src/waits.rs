//! The operations at which a process can wait.

use quaject_esp_ir::ir::{Process, Wait};

/// All waits in the code of a process.
pub(crate) fn waits(process: &Process) -> impl Iterator<Item = &Wait> {
    process.body.blocks.iter().filter_map(|block| block.terminator.as_wait())
}
