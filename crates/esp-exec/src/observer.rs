//! The observable behaviour of a program as a deterministic automaton, by which a second engine monitors another
//! program.

use crate::datum::Datum;
use quaject_esp_ir::ir::{ChannelId, ExternId};

/// A visible action.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A message between the program and its environment.
    Message(ChannelId, Vec<Datum>),
    /// A call of an extern function, its arguments and its result.
    Call(ExternId, Vec<Datum>, Option<Datum>),
}

/// The automaton. State 0 is initial.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// The channels whose messages are visible.
    pub channels: Vec<ChannelId>,
    /// The alphabet.
    pub events: Vec<Event>,
    /// Per state: the transitions, each an event by number and the next state.
    pub edges: Vec<Vec<(u32, u32)>>,
    /// Per state: whether the program can be quiescent there.
    pub quiescent: Vec<bool>,
}
