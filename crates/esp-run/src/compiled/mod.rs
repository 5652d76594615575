//! The engine `c`: a program compiled to a shared library, driven through its sans-IO entry (`esp_gen::layout::Abi`).
//!
//! ```text
//!   drivers -> batch of messages in C form --+                    +--> messages in C form -> drivers
//!                                            +--> step(state) ----+
//!   clock ----------------------------------+                    +--> sleep until, end, or fault
//! ```
//!
//! Messages are taken from the drivers ahead of time, as many as fit a batch: the program reads the same sequence. The
//! guard that leaves a step in the middle (`resources/guard.h`) needs the signals of Unix; on other systems the engine
//! is refused.

#[cfg(unix)]
mod abi;
#[cfg(unix)]
mod batch;
#[cfg(unix)]
mod library;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
mod watchdog;

#[cfg(unix)]
pub(crate) use library::Library;
#[cfg(not(unix))]
pub(crate) use unsupported::Library;

use crate::compiler::BuildDirectory;
use crate::error::HostError;
use std::path::PathBuf;

/// The file name of the header of generated C, independent of the name of the program.
pub(crate) const HEADER_NAME: &str = "program.h";
/// Macros that are defined for generated C that the guard runs.
pub(crate) const GUARDED: &[&str] = &["ESP_OPTIONAL_EXTERNS", "ESP_INTERRUPTIBLE"];

/// Writes the guard, which leaves a step in the middle (`resources/guard.h`).
pub(crate) fn guard(directory: &BuildDirectory) -> Result<PathBuf, HostError> {
    directory.write("guard.h", include_str!("../../resources/guard.h"))?;
    directory.write("guard.c", include_str!("../../resources/guard.c"))
}
