//! How a run ends or pauses, and how a fault is told to a person: process, place, channel; for a deadlock who waits
//! for whom.

use quaject_esp_ir::deadlock::WaitForEdge;
use quaject_esp_ir::ir::{Boundary, ChannelId, Direction, Fault, Location, Program};
use quaject_esp_ir::text::{fault_name, location_text};
use smol_str::SmolStr;
use std::fmt::Write as _;

/// What a run has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The budget is used up; run again to go on.
    Budget,
    /// Nothing can happen before the world does something.
    Quiescent(AwaitedEvents),
    /// The program has ended with this status: `exit`, or 0 when everything rests for good.
    Ended(u8),
    /// A fault has stopped the program.
    Faulted(Box<FaultReport>),
}

/// What a resting program waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AwaitedEvents {
    /// The earliest time at which an `after` can be taken.
    pub deadline_ns: Option<i64>,
    /// Channels on which a message is awaited from the world, in order, each once. One that already offers a message
    /// which no pattern takes is not among them.
    pub readable: Vec<ChannelId>,
    /// Channels on which a message is held for the world, in order, each once.
    pub writable: Vec<ChannelId>,
}

/// A fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// Which.
    pub fault: Fault,
    /// Who; for a deadlock the first of those that wait.
    pub instance: u32,
    /// Where.
    pub location: Location,
    /// The channel of the operation it happened in.
    pub channel: Option<ChannelId>,
    /// The function or pool it is about.
    pub name: Option<SmolStr>,
    /// For a deadlock: every instance that waits in vain, with all it waits for.
    pub waits: Vec<WaitForEdge>,
}

impl FaultReport {
    /// Where it happened and the channel of the operation, as people are told: of a deadlock, where the first of those
    /// who wait does.
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
            let whom = if outside {
                "the world".to_string()
            } else if partners.is_empty() {
                "nobody".to_string()
            } else {
                partners.join(" or ")
            };
            write!(text, " for {whom} to {verb} `{}`", channel(id)).expect("writing to a string does not fail");
        }
        text
    }
}
