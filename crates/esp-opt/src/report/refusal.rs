//! Why a group was not fused, or a path not formed, in words.

use crate::limits::LimitKind;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{ProcessId, Program};
use quaject_esp_ir::text::location_text;

impl Refusal {
    /// The reason, in words.
    pub(crate) fn text(&self, program: &Program) -> String {
        let name = |process: &ProcessId| program.processes[process.0 as usize].name.as_str();
        match self {
            Refusal::SharedChannel { channel } => {
                format!("`{}` is used by other processes too", program.channels[channel.0 as usize].name)
            }
            Refusal::Unsupported { process, what, location } => {
                format!("`{}` has {what} at {}", name(process), location_text(program, *location))
            }
            Refusal::ScheduleDependent { process, what, location } => format!(
                "`{}` has {what} at {}, which makes the output depend on the schedule",
                name(process),
                location_text(program, *location)
            ),
            Refusal::LimitExceeded { kind, limit, costliest: _ } => match kind {
                LimitKind::Instances => format!("more than {limit} instances"),
                LimitKind::States => format!("more than {limit} states"),
                LimitKind::Instructions => format!("more than {limit} instructions"),
                LimitKind::CodeSize => "much more code than the separate processes".to_string(),
                LimitKind::Fuel => "the construction exceeds its time limit".to_string(),
                LimitKind::Paths => format!("more than {limit} fast paths"),
            },
            Refusal::AlreadyFused { process } => format!("`{}` is part of a state machine", name(process)),
            Refusal::ObservesAbsence { channel, process } => format!(
                "`{}` observes by `pri alt` or `else` that no process waits at `{}`, as is the case after a side exit",
                name(process),
                program.channels[channel.0 as usize].name
            ),
            Refusal::ManualPath { function } => {
                format!("it is the C function `{function}`, which can neither be analysed nor called here")
            }
            Refusal::MayStarve { process } => format!("`{}` may starve", name(process)),
        }
    }
}
