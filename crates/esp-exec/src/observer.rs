//! What others can see of a program, as a deterministic automaton: a second engine follows another program beside it.

use crate::datum::Datum;
use quaject_esp_ir::ir::{ChannelId, ExternId};

/// Something that others can see.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A message that passes between the program and its surroundings.
    Message(ChannelId, Vec<Datum>),
    /// A call, what it is given, and what it returns.
    Call(ExternId, Vec<Datum>, Option<Datum>),
}

/// What others see, one thing after the other, from state 0 on.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// The channels at which messages are seen.
    pub channels: Vec<ChannelId>,
    /// All that can be seen.
    pub events: Vec<Event>,
    /// Per state: what can be seen next, by number, and the state after it.
    pub edges: Vec<Vec<(u32, u32)>>,
    /// Per state: whether everything can have come to a stand there.
    pub stands: Vec<bool>,
}
