//! The engine `c` on a system that is not Unix: refused.

use crate::error::HostError;
use crate::outcome::RunOutcome;
use crate::ports::Ports;
use crate::signals::Signals;
use quaject_esp_gen::c;
use quaject_esp_ir::ir::Program;
use std::path::PathBuf;

/// A program that has been loaded: there is none.
pub(crate) enum Library {}

impl Library {
    /// Refuses to compile.
    pub(crate) fn build(
        _program: &Program,
        _generated: &c::Output,
        _externs: &[PathBuf],
    ) -> Result<Library, HostError> {
        Err(HostError::unsupported("engine `c` needs Unix").help("use `--engine interp`, or `qj build --emit c`"))
    }

    /// Cannot be called: there is no library.
    pub(crate) fn run(&self, _program: &Program, _ports: &mut Ports<'_>, _signals: &Signals) -> RunOutcome {
        match *self {}
    }
}
