//! What became of groups of processes, in words.

use crate::groups::{Attempt, Outcome};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{ProcessId, Program};

impl Attempt {
    /// What became of them, in one line.
    pub fn text(&self, program: &Program) -> String {
        let name = |process: &ProcessId| program.processes[process.0 as usize].name.as_str();
        let names = self.processes.iter().map(name).collect::<Vec<_>>().join(", ");
        match &self.outcome {
            Outcome::Fused { nodes, instructions, before } => format!(
                "fused: {names}: one state machine of {nodes} states, {instructions} instructions instead of {before}"
            ),
            Outcome::Divided(why) => format!("divided: {names}: together {}", why.text(program)),
            Outcome::LeftOut(why) => {
                let hint = match why {
                    Refusal::LimitExceeded { .. } => "together with the others, ",
                    Refusal::SharedChannel { .. }
                    | Refusal::Unsupported { .. }
                    | Refusal::ScheduleDependent { .. }
                    | Refusal::AlreadyFused { .. }
                    | Refusal::ManualPath { .. }
                    | Refusal::ObservesAbsence { .. }
                    | Refusal::MayStarve { .. } => "",
                };
                format!("left out: {names}: {hint}{}", why.text(program))
            }
            Outcome::Refused(why) => format!("not fused: {names}: {}", why.text(program)),
            Outcome::Alone => format!("on its own: {names}: no channel leads to another process"),
        }
    }
}
