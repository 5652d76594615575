//! A program together with what surrounds it, ready to be explored: by the checker, or as Promela. Says which
//! processes are the program's own, which stand for the world, and what the world may do. Knows no engine.
//!
//! ```text
//!   process P        P | Explored       as it is
//!   process Q        Q | LeftOut        not part of the slice: its code is one `End`, its numbers stay
//!   env host           | Environment    appended; the channels it uses have become internal
//!                      | Outside        appended: what left-out processes may do at a channel that explored
//!                                       processes use at both ends
//! ```
//!
//! Processes and instances keep the numbers they have in the program as it is, so that steps mean the same in both.
//! A channel whose other end is open (the world's without `env`, or left-out processes' alone) is external in
//! `program`: at `FromEnvironment` any message of [`ModelProgram::messages`] can come at any time, at most
//! [`ModelProgram::bounds`] of them; at `ToEnvironment` messages are accepted, or not, at any time. An `after` can be taken
//! at any time: nothing says how long processes take.

use crate::ir::{ChannelId, ExternId, Location, ProcessId, Program, TypeId};
use smol_str::SmolStr;

/// A program and its surroundings.
#[derive(Clone, Debug)]
pub struct ModelProgram {
    /// The model's name; none if the program has no model.
    pub name: Option<SmolStr>,
    /// What is explored.
    pub scope: Scope,
    /// The program's processes, then environments, then stand-ins of processes left out. Well-formed.
    pub program: Program,
    /// Per process of `program`: what it is.
    pub roles: Vec<Role>,
    /// How many of the channels are the program's own; stand-ins use no others.
    pub channels: u32,
    /// How many of the extern functions are the program's own. Later ones give the values of forgotten parts, then the
    /// messages of stand-ins.
    pub externs: u32,
    /// Per channel: most messages that the world sends.
    pub bounds: Vec<Option<u64>>,
    /// Per channel, per value of its message: what the world may send.
    pub messages: Vec<Vec<Values>>,
    /// Per extern function: what it may return. A mutable argument is left as it is.
    pub results: Vec<Values>,
    /// Parts inside that do more here than in the program, in order of text.
    pub abstractions: Vec<Abstracted>,
    /// Properties in Spin's syntax.
    pub properties: Vec<String>,
}

/// What is explored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All processes.
    All,
    /// One process, for its use of memory.
    Process(ProcessId),
    /// These processes.
    Slice(Vec<ProcessId>),
}

/// What a process of a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Of the program, and explored.
    Explored,
    /// Of the program, and left out: its instances have ended from the start.
    LeftOut,
    /// An `env` of the model. It may wait for ever.
    Environment,
    /// Does whatever left-out processes may do at one channel. It may wait for ever.
    Outside,
}

/// Which values of a type can come from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// All of them.
    All,
    /// Those whose integers are at least the first and below the second.
    Range(i128, i128),
    /// One stands for all, as it decides nothing: zero, empty, the first case.
    One,
}

/// A part inside that does more than it does in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abstracted {
    /// How.
    pub kind: Abstraction,
    /// The part, as the model names it.
    pub name: SmolStr,
    /// The function that gives its values, if it is forgotten.
    pub stand_in: Option<ExternId>,
    /// Where a value outside of its range ends a run.
    pub limits: Vec<Location>,
}

/// How a part is abstracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abstraction {
    /// The part is as good as not there: its value can be any.
    Drop,
    /// Its value can be any.
    Forget,
    /// From the first, up to but without the second; another value is a fault.
    Range(i128, i128),
}

impl std::fmt::Display for Abstracted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            Abstraction::Drop => write!(f, "drop {}", self.name),
            Abstraction::Forget => write!(f, "forget {}", self.name),
            Abstraction::Range(from, to) => write!(f, "range {} {from}..{to}", self.name),
        }
    }
}

impl ModelProgram {
    /// The role of an instance's process.
    pub fn role(&self, instance: u32) -> Role {
        let (process, _) = self.program.process_of(instance).expect("instances are numbered by the program");
        self.roles[process.0 as usize]
    }

    /// The processes that are explored.
    pub fn explored(&self) -> impl Iterator<Item = ProcessId> {
        let roles = self.roles.iter().enumerate();
        roles.filter(|(_, role)| **role == Role::Explored).map(|(index, _)| ProcessId(index as u32))
    }

    /// The types of the messages that the world sends, with what may be in them.
    pub fn message(&self, channel: ChannelId) -> impl Iterator<Item = (TypeId, Values)> {
        let payload = &self.program.channels[channel.0 as usize].payload;
        payload.iter().copied().zip(self.messages[channel.0 as usize].iter().copied())
    }
}
