//! A program with its environment, for exploration by the checker or as Promela: which processes belong to the program,
//! which model its environment, and what the environment may do. Knows no engine.
//!
//! ```text
//!   process P        P | Explored       unchanged
//!   process Q        Q | Omitted        outside the slice: its code is one `End`, its numbers are kept
//!   env host           | Environment    appended; the channels it uses have become internal
//!                      | OpenStub       appended: what omitted processes may do at a channel that explored
//!                                       processes use at both ends
//! ```
//!
//! Processes and instances keep their numbers, so that steps mean the same in both programs. A channel with an
//! open end (the environment's without `env`, or that of omitted processes alone) is external in `program`: at
//! `FromEnvironment` any message of [`ModelProgram::messages`] can arrive at any time, at most [`ModelProgram::bounds`]
//! of them; at `ToEnvironment` messages are accepted, or not, at any time. An `after` is enabled at any time, because
//! execution times are not modelled.

use crate::ir::{ChannelId, ExternId, Location, ProcessId, Program, TypeId};
use smol_str::SmolStr;

/// A program with its environment.
#[derive(Clone, Debug)]
pub struct ModelProgram {
    /// The model's name; none if the program has no model.
    pub name: Option<SmolStr>,
    /// The scope of exploration.
    pub scope: Scope,
    /// The program's processes, then environments, then stand-ins of omitted processes. Well-formed.
    pub program: Program,
    /// The role of each process of `program`.
    pub roles: Vec<Role>,
    /// The number of channels of the original program; stand-ins use no others.
    pub channels: u32,
    /// The number of extern functions of the original program. Later ones return the results of comparisons of times,
    /// then the values of forgotten parts, then the messages of stand-ins.
    pub externs: u32,
    /// Per channel: the maximum number of messages of the environment.
    pub bounds: Vec<Option<u64>>,
    /// Per channel, per value of its message: the values that the environment may send.
    pub messages: Vec<Vec<Values>>,
    /// Per extern function: the values that it may return. A mutable argument is unchanged.
    pub results: Vec<Values>,
    /// Abstracted parts of the program, in order of text.
    pub abstractions: Vec<Abstracted>,
    /// Properties in Spin's syntax.
    pub properties: Vec<String>,
    /// Comparisons of times that the model does not decide soundly; it must not be explored if there are any.
    pub undecided_times: Vec<UndecidedTime>,
    /// The variables that properties name and that are initialised with a constant, each with this value.
    pub initial_values: Vec<(ProcessId, SmolStr, i128)>,
}

/// A comparison of times, or a quotient of durations, of which a model cannot try each result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedTime {
    /// Where it is.
    pub location: Location,
    /// Why.
    pub kind: UndecidedKind,
}

/// Why a model does not try each result of a comparison of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndecidedKind {
    /// It is evaluated whenever a partner is searched: in a pattern, the payload of an `alt` or a guard with `free`.
    Matching,
    /// It is in a pure function.
    Function,
    /// A duration is divided by one that is not known, and may be 0.
    Divisor,
    /// The quotient of durations that are not known influences control.
    Quotient,
}

/// The scope of exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All processes.
    All,
    /// One process; the same as a slice with this process only.
    Process(ProcessId),
    /// These processes.
    Slice(Vec<ProcessId>),
}

/// The role of a process in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A process of the program that is explored.
    Explored,
    /// A process of the program that is omitted: its instances have terminated initially.
    Omitted,
    /// An `env` of the model. It may block forever.
    Environment,
    /// A stand-in that does whatever omitted processes may do at one channel. It may block forever.
    OpenStub,
}

/// The values of a type that the environment may send or return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// All of them.
    All,
    /// Those whose integers are at least the first and below the second.
    Range(i128, i128),
    /// One representative, because no decision depends on it: zero, empty, the first case.
    One,
}

/// An abstracted part of the program.
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
    /// The part is removed: its value is arbitrary.
    Drop,
    /// Its value is arbitrary.
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

    /// The types of the messages that the environment sends on a channel, with their values.
    pub fn message(&self, channel: ChannelId) -> impl Iterator<Item = (TypeId, Values)> {
        let payload = &self.program.channels[channel.0 as usize].payload;
        payload.iter().copied().zip(self.messages[channel.0 as usize].iter().copied())
    }
}
