//! The visible actions of a model, and the names by which the model reports them to its monitor. The monitor's
//! transitions are in `monitor`.

use quaject_esp_exec::observer::Observer;
use quaject_esp_ir::ir::{ChannelId, ExternId};
use std::collections::BTreeMap;

/// What a visible action is: a message on an external channel, or a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Observable {
    Message(ChannelId),
    Call(ExternId),
}

/// The monitor automaton and its names in the model.
pub(super) struct Monitor<'a> {
    pub(super) observer: &'a Observer,
    /// The variable that holds its state.
    pub(super) variable: String,
    pub(super) inlines: BTreeMap<Observable, String>,
}
