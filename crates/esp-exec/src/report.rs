//! Outcomes of runs, and the text of a fault: process, location and channel; for a deadlock, the wait-for graph.

use quaject_esp_ir::ir::{Boundary, ChannelId, Direction, Fault, Location, Program, WaitForEdge};
use quaject_esp_ir::text::{fault_name, location_text};
use smol_str::SmolStr;
use std::fmt::Write as _;

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The budget is used up. The run can be continued.
    Budget,
    /// No step is enabled until the environment or the clock enables one.
    Quiescent(AwaitedEvents),
    /// The program has ended with this status: that of `exit`, or 0 when no step can ever be enabled.
    Ended(u8),
    /// A fault has stopped the program.
    Faulted(Box<FaultReport>),
}

/// What a quiescent program waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AwaitedEvents {
    /// The earliest time at which an `after` can be taken.
    pub deadline_ns: Option<i64>,
    /// Channels on which a message from the environment is awaited, in order, each once. A channel that already offers
    /// a message that no pattern matches is left out.
    pub readable: Vec<ChannelId>,
    /// Channels on which a message to the environment is pending, in order, each once.
    pub writable: Vec<ChannelId>,
}

/// A fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// Its kind.
    pub fault: Fault,
    /// The faulting instance; for a deadlock the first blocked one.
    pub instance: u32,
    /// The location of the fault.
    pub location: Location,
    /// The channel of the operation it happened in.
    pub channel: Option<ChannelId>,
    /// The function or pool that the fault concerns.
    pub name: Option<SmolStr>,
    /// For a deadlock: the edges of the wait-for graph of all instances that are blocked forever.
    pub waits: Vec<WaitForEdge>,
}

/// The wait-for graph of a deadlock, with the edges of each fused process replaced by those of its members, in order of
/// instances. `fused` holds the fused instances, each with an edge of one of its members.
pub fn edges_by_member(mut waits: Vec<WaitForEdge>, fused: &[(u32, &WaitForEdge)]) -> Vec<WaitForEdge> {
    waits.retain(|wait| fused.iter().all(|(instance, _)| *instance != wait.instance));
    waits.extend(fused.iter().map(|(_, wait)| (*wait).clone()));
    waits.sort_by_key(|wait| wait.instance);
    waits
}

impl FaultReport {
    /// The location and channel that the text reports: those of the fault, or of the first blocked instance of a
    /// deadlock.
    pub fn place(&self) -> (Location, Option<ChannelId>) {
        match self.waits.first() {
            Some(wait) => (wait.location, wait.operation.map(|(channel, _)| channel)),
            None => (self.location, self.channel),
        }
    }

    /// The report as text, one line; one more per wait of a deadlock. Ends without a line end.
    pub fn text(&self, program: &Program) -> String {
        let at = |location| match location_text(program, location) {
            text if text.is_empty() => text,
            text => format!(" at {text}"),
        };
        let channel = |channel: ChannelId| program.channels[channel.0 as usize].name.as_str();
        let mut text = format!("fault `{}`", fault_name(self.fault));
        if self.fault != Fault::Deadlock {
            write!(text, " in `{}`{}", program.instance_name(self.instance), at(self.location))
                .expect("writing to a string does not fail");
        }
        if let Some(id) = self.place().1 {
            write!(text, ", channel `{}`", channel(id)).expect("writing to a string does not fail");
        }
        match (&self.name, self.fault) {
            (Some(name), Fault::Extern) => write!(text, ": no extern function `{name}`"),
            (Some(name), _) => write!(text, ": no free object of `{name}`"),
            (None, Fault::Assert) => match program.assert_message(self.location) {
                Some(message) => write!(text, ": {}", message.replace('\n', " ")),
                None => Ok(()),
            },
            (None, _) => Ok(()),
        }
        .expect("writing to a string does not fail");
        for wait in &self.waits {
            let name = program.instance_name(wait.instance);
            write!(text, "\n  `{name}` waits{}", at(wait.location)).expect("writing to a string does not fail");
            let partners: Vec<_> =
                wait.partners.iter().map(|partner| format!("`{}`", program.instance_name(*partner))).collect();
            let (verb, id) = match wait.operation {
                Some((id, Direction::In)) => ("write", id),
                Some((id, Direction::Out)) => ("read", id),
                None => {
                    text.push_str(" for a guard that stays false");
                    continue;
                }
            };
            let outside = match program.channels[id.0 as usize].boundary {
                Boundary::Internal => false,
                Boundary::ToEnvironment | Boundary::FromEnvironment => true,
            };
            let partner = if outside {
                "the environment".to_string()
            } else if partners.is_empty() {
                "no instance".to_string()
            } else {
                partners.join(" or ")
            };
            write!(text, " for {partner} to {verb} `{}`", channel(id)).expect("writing to a string does not fail");
        }
        text
    }
}
