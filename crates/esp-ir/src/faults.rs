//! Faults as codes of diagnostics, with their explanations.

use crate::ir::Fault;
use crate::text::fault_name;
use quaject_diagnostic::{Code, Explanations, Severity};

/// The explanation of each fault, by its name.
pub const EXPLANATIONS: Explanations = Explanations::new(include_str!("faults.md"));

impl Code for Fault {
    fn name(self) -> &'static str {
        fault_name(self)
    }

    fn severity(self) -> Severity {
        Severity::Fault
    }
}
