//! Why a group was not fused, or a path not formed, in words: with the names of the program, or as an error by itself.

use crate::limits::LimitKind;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{ChannelId, Location, ProcessId, Program};
use quaject_esp_ir::text::{counted, location_text};
use std::error::Error;
use std::fmt::{Display, Formatter, Result as FormatResult};

impl Refusal {
    /// The reason, with the names of processes and channels.
    pub fn text(&self, program: &Program) -> String {
        let process = |process: &ProcessId| format!("`{}`", program.processes[process.0 as usize].name);
        let channel = |channel: &ChannelId| format!("`{}`", program.channels[channel.0 as usize].name);
        self.with_names(&process, &channel, &|location| location_text(program, location))
    }

    fn with_names(
        &self,
        process_name: &dyn Fn(&ProcessId) -> String,
        channel_name: &dyn Fn(&ChannelId) -> String,
        location_of: &dyn Fn(Location) -> String,
    ) -> String {
        match self {
            Refusal::SharedChannel { channel } => {
                format!("processes outside of the group use channel {}, too", channel_name(channel))
            }
            Refusal::Unsupported { process, what, location } => {
                format!("{} has {what} at {}", process_name(process), location_of(*location))
            }
            Refusal::ScheduleDependent { process, what, location } => format!(
                "{} {what} at {}: the order in which processes run can be seen there, and fusion would fix one",
                process_name(process),
                location_of(*location)
            ),
            Refusal::LimitExceeded { kind, limit, costliest: _ } => match kind {
                LimitKind::Instances => more_than(*limit, "instance"),
                LimitKind::States => more_than(*limit, "state"),
                LimitKind::Instructions => more_than(*limit, "instruction"),
                LimitKind::CodeSize => "the fused code would be much larger than the separate processes".to_string(),
                LimitKind::Fuel => "there are too many combinations of states to analyse".to_string(),
                LimitKind::Paths => more_than(*limit, "fast path"),
            },
            Refusal::AlreadyFused { process } => {
                format!("{} has been fused with others already", process_name(process))
            }
            Refusal::ObservesAbsence { channel, process } => format!(
                "{} observes by `pri alt` or `else` that no process waits at {}, as is the case after a side exit",
                process_name(process),
                channel_name(channel)
            ),
            Refusal::ManualPath { function } => {
                format!("it is the C function `{function}`, which can neither be analysed nor called here")
            }
            Refusal::MayStarve { process } => {
                format!("{} might never run again while the others go on", process_name(process))
            }
        }
    }
}

fn more_than(limit: usize, noun: &str) -> String {
    format!("more than {}", counted(limit as u64, noun))
}

/// As [`Refusal::text`], with numbers where that has names.
impl Display for Refusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FormatResult {
        let process = |process: &ProcessId| format!("process {}", process.0);
        let channel = |channel: &ChannelId| format!("channel {}", channel.0);
        let location = |location: Location| format!("line {}, column {}", location.line, location.column);
        formatter.write_str(&self.with_names(&process, &channel, &location))
    }
}

impl Error for Refusal {}
