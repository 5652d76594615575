//! An environment that follows a script: it sends given messages, closes its channels, accepts everything, and advances
//! its clock with every message it gets. A held channel offers or accepts one more message at each call of `more`; at
//! quiescence, all held channels are released.

use crate::externs::{self, MORE, is_absent, is_seen};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_ir::ir::{ChannelId, ExternId, Program};
use std::collections::VecDeque;

/// How far a message that the environment takes advances its clock; `driver.c` does the same.
const PUT_NS: i64 = 300_000;

/// Calls of extern functions are recorded as messages, on channels numbered from this.
pub const CALLS: u32 = 1000;

/// The script of a sample's environment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Script {
    /// Messages the environment sends, by channel name; the channel closes after them.
    pub inputs: Vec<(String, Vec<Vec<Datum>>)>,
    /// Names of held channels.
    pub held: Vec<String>,
}

/// The environment of one run.
#[derive(Clone)]
pub struct ScriptedEnvironment<'p> {
    program: &'p Program,
    offers: Vec<VecDeque<Vec<Datum>>>,
    /// Per channel: how many messages it can still carry, if it is held.
    allowed: Vec<Option<usize>>,
    /// The messages and calls of the program, in order.
    pub received: Vec<(ChannelId, Vec<Datum>)>,
    /// The time.
    pub now_ns: i64,
}

impl<'p> ScriptedEnvironment<'p> {
    /// An environment that follows this script.
    pub fn new(program: &'p Program, script: &Script) -> ScriptedEnvironment<'p> {
        let offers = program.channels.iter().map(|channel| {
            let input = script.inputs.iter().find(|(name, _)| *name == channel.name.as_str());
            input.map(|(_, messages)| messages.iter().cloned().collect()).unwrap_or_default()
        });
        let allowed = program.channels.iter().map(|channel| {
            let is_held = script.held.iter().any(|name| *name == channel.name.as_str());
            is_held.then_some(0)
        });
        ScriptedEnvironment {
            program,
            offers: offers.collect(),
            allowed: allowed.collect(),
            received: Vec::new(),
            now_ns: 0,
        }
    }

    /// The position in the script, and the number of messages and calls.
    pub fn position(&self) -> Vec<usize> {
        let allowed = self.allowed.iter().map(|allowed| allowed.map_or(0, |allowed| allowed + 1));
        self.offers.iter().map(VecDeque::len).chain(allowed).chain([self.received.len()]).collect()
    }

    /// Releases all held channels; returns whether there were any.
    pub fn release(&mut self) -> bool {
        self.allowed.iter_mut().filter_map(Option::take).count() > 0
    }
}

impl Environment for ScriptedEnvironment<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        let index = channel.0 as usize;
        match (self.offers[index].front(), self.allowed[index]) {
            (None, _) => Offer::Closed,
            (Some(_), Some(0)) => Offer::Pending,
            (Some(message), _) => Offer::Message(message),
        }
    }

    fn take(&mut self, channel: ChannelId) {
        self.offers[channel.0 as usize].pop_front();
        if let Some(allowed) = &mut self.allowed[channel.0 as usize] {
            *allowed -= 1;
        }
    }

    fn readiness(&mut self, channel: ChannelId) -> Readiness {
        if self.allowed[channel.0 as usize] == Some(0) { Readiness::Busy } else { Readiness::Ready }
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        if let Some(allowed) = &mut self.allowed[channel.0 as usize] {
            *allowed -= 1;
        }
        self.now_ns += PUT_NS;
        self.received.push((channel, message.to_vec()));
    }

    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        let data = &self.program.externs[function.0 as usize];
        if is_absent(data) {
            return Reply::Unresolved;
        }
        let (number, result) = externs::call(self.program, function.0, arguments);
        if is_seen(data) {
            self.received.push((ChannelId(CALLS + function.0), vec![Datum::Int(i128::from(number))]));
        }
        if data.name == MORE {
            self.allowed.iter_mut().flatten().for_each(|allowed| *allowed += 1);
        }
        Reply::Returned(result)
    }
}
