//! Why a group was not fused, or a path not formed, in words.

use crate::limits::LimitKind;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{ProcessId, Program};
use quaject_esp_ir::text::location_text;

impl Refusal {
    /// Why, in words.
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
                "`{}` has {what} at {}, so that another order of processes could be seen",
                name(process),
                location_text(program, *location)
            ),
            Refusal::LimitExceeded { kind, limit, costliest: _ } => match kind {
                LimitKind::Instances => format!("more than {limit} instances"),
                LimitKind::States => format!("more than {limit} states"),
                LimitKind::Instructions => format!("more than {limit} instructions"),
                LimitKind::CodeSize => "much more code than on their own".to_string(),
                LimitKind::Fuel => "it would take too long to make".to_string(),
                LimitKind::Paths => format!("more than {limit} fast paths"),
            },
            Refusal::AlreadyFused { process } => format!("`{}` is part of a state machine", name(process)),
            Refusal::ObservesAbsence { channel, process } => format!(
                "`{}` does something else when nobody waits at `{}`, by `pri alt` or `else`, as nobody does where a path is left",
                name(process),
                program.channels[channel.0 as usize].name
            ),
            Refusal::ManualPath { function } => {
                format!("it is the C function `{function}`, which cannot be looked into or called here")
            }
            Refusal::MayStarve { process } => format!("`{}` could wait for ever", name(process)),
        }
    }
}
