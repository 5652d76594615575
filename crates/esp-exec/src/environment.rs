//! The environment of a running program: messages at external channels, the time, extern functions. Every engine uses
//! this contract, and the drivers implement it. Knows neither drivers nor engines.

use crate::datum::Datum;
use quaject_esp_ir::ir::{ChannelId, ExternId};

/// The environment of one running program. No method blocks.
pub trait Environment {
    /// The oldest message on offer at an `external out` channel. It stays on offer until [`Environment::take`]: a
    /// reader whose pattern does not match leaves it on offer, and later messages queue behind it.
    fn peek(&mut self, channel: ChannelId) -> Offer<'_>;

    /// The message last seen by [`Environment::peek`] has been received.
    fn take(&mut self, channel: ChannelId);

    /// Whether an `external in` channel accepts a message now. The answer holds until the next [`Environment::put`]
    /// there.
    fn readiness(&mut self, channel: ChannelId) -> Readiness;

    /// Accepts a message; called only right after [`Environment::readiness`] has returned `Ready`.
    fn put(&mut self, channel: ChannelId, message: &[Datum]);

    /// The time in nanoseconds since a fixed moment. Monotonic.
    fn now_ns(&mut self) -> i64;

    /// Whether a fast path is not entered although all its members are at their starts, which the semantics allow.
    /// Engines enter it; the checker explores both choices.
    fn declines_path_entry(&mut self) -> bool {
        false
    }

    /// Calls an extern function. Arguments of mutable parameters may be changed; nothing else is read back.
    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply;
}

/// What a channel from the environment offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer<'a> {
    /// A message, one value for each of the channel's types.
    Message(&'a [Datum]),
    /// None now, perhaps later.
    Pending,
    /// None, and never again.
    Closed,
}

/// Whether the environment accepts a message on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// A message would be accepted.
    Ready,
    /// Not now, perhaps later.
    Busy,
    /// Never again.
    Closed,
}

/// The result of a call of an extern function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// It returned this; nothing for a procedure.
    Returned(Option<Datum>),
    /// Its result, or the new content of an argument, is not a value of the type.
    Malformed,
    /// There is no such function.
    Unresolved,
}
