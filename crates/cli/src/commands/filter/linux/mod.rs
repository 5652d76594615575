//! The parts of `qj filter` that need Linux: packets of interfaces, and comparisons with the kernel's filters.

mod corpus;
mod fuzz;
mod live;

pub(super) use corpus::corpus;
pub(super) use fuzz::fuzz;
pub(super) use live::InterfaceCapture;

use crate::terminal::CliError;
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::fuzz::Guard;

/// A buffer that ends at an inaccessible page.
fn guard() -> Result<Guard, CliError> {
    Guard::new()
        .map_err(|error| CliError::from(HostError::new(HostCode::System, format!("cannot allocate memory: {error}"))))
}
