//! Static matching: an over-approximation of the receivers of a message, from the constants, tags and ids of their
//! patterns. A pattern with a value that is computed on arrival may match anything.

use crate::waits::waits;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{ChannelId, Operand, Operation, Pattern, Process};

/// The result of matching a pattern without its run-time values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StaticMatch {
    /// It matches.
    Matches,
    /// It does not match.
    Never,
    /// A computed value can fault, which counts as a match.
    Unknown,
}

/// Whether a process has an operation in its code that can receive this message.
pub(crate) fn may_receive(process: &Process, instance: u32, channel: ChannelId, message: &[Datum]) -> bool {
    waits(process).flat_map(|wait| &wait.branches).any(|branch| match &branch.operation {
        Operation::In { channel: read, patterns, .. } if *read == channel => {
            may_match_all(patterns.iter().zip(message), instance) != StaticMatch::Never
        }
        Operation::In { .. } | Operation::Out { .. } | Operation::After { .. } => false,
    })
}

/// Patterns are tried in order; the first one that decides is final.
fn may_match_all<'p>(pairs: impl Iterator<Item = (&'p Pattern, &'p Datum)>, instance: u32) -> StaticMatch {
    for (pattern, value) in pairs {
        match may_match(pattern, value, instance) {
            StaticMatch::Matches => {}
            decided @ (StaticMatch::Never | StaticMatch::Unknown) => return decided,
        }
    }
    StaticMatch::Matches
}

fn may_match(pattern: &Pattern, value: &Datum, instance: u32) -> StaticMatch {
    let only_if = |holds| if holds { StaticMatch::Matches } else { StaticMatch::Never };
    match (pattern, value) {
        (Pattern::Constant(constant), Datum::Int(value)) => only_if(constant == value),
        (Pattern::Constant(constant), Datum::Bool(value)) => only_if((*constant != 0) == *value),
        (Pattern::Constant(constant), Datum::Pid(value)) => only_if(*constant == i128::from(*value)),
        (Pattern::OwnId, Datum::Pid(value)) => only_if(*value == instance),
        (Pattern::Bytes(bytes), Datum::Bytes(value)) => only_if(bytes == value),
        (Pattern::Tag(tag, _), Datum::Union(value, _)) if tag != value => StaticMatch::Never,
        (Pattern::Tag(_, Some(pattern)), Datum::Union(_, Some(value))) => may_match(pattern, value, instance),
        (Pattern::Record(patterns), Datum::Record(values)) | (Pattern::Array(patterns), Datum::Array(values)) => {
            may_match_all(patterns.iter().zip(values), instance)
        }
        (Pattern::Equal(Operand::Place(_)), _) => StaticMatch::Unknown,
        (
            Pattern::Any
            | Pattern::Bind(_)
            | Pattern::Constant(_)
            | Pattern::Bytes(_)
            | Pattern::OwnId
            | Pattern::Equal(Operand::Value(_))
            | Pattern::Tag(..)
            | Pattern::Record(_)
            | Pattern::Array(_),
            _,
        ) => StaticMatch::Matches,
    }
}
