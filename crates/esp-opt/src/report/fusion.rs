//! The results of fusion, in words.

use crate::groups::{FusionAttempt, FusionOutcome};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{ProcessId, Program};
use quaject_esp_ir::text::counted;

impl FusionAttempt {
    /// The result in one line.
    pub fn text(&self, program: &Program) -> String {
        let name = |process: &ProcessId| program.processes[process.0 as usize].name.as_str();
        let names = self.processes.iter().map(name).collect::<Vec<_>>().join(", ");
        match &self.outcome {
            FusionOutcome::Fused { nodes, instructions, before } => format!(
                "fused: {names}: one process of {} instead of {before}; {} explored",
                counted(*instructions as u64, "instruction"),
                counted(*nodes as u64, "state")
            ),
            FusionOutcome::Divided(refusal) => format!("divided: {names}: together {}", refusal.text(program)),
            FusionOutcome::Excluded(refusal) => {
                let hint = match refusal {
                    Refusal::LimitExceeded { .. } => "together with the others, ",
                    Refusal::SharedChannel { .. }
                    | Refusal::Unsupported { .. }
                    | Refusal::ScheduleDependent { .. }
                    | Refusal::AlreadyFused { .. }
                    | Refusal::ManualPath { .. }
                    | Refusal::ObservesAbsence { .. }
                    | Refusal::MayStarve { .. } => "",
                };
                format!("excluded: {names}: {hint}{}", refusal.text(program))
            }
            FusionOutcome::Refused(refusal) => format!("not fused: {names}: {}", refusal.text(program)),
            FusionOutcome::Alone => format!("on its own: {names}: no channel leads to another process"),
        }
    }
}
