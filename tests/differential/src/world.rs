//! A world that follows a script: it sends given messages and closes, accepts everything, and its clock jumps.

use quaject_esp_ir::datum::Datum;
use quaject_esp_ir::ir::{ChannelId, ExternId, Program};
use quaject_esp_ir::world::{Offer, Readiness, Reply, World};
use std::collections::VecDeque;

/// The world of one run.
pub struct ScriptedWorld {
    offers: Vec<VecDeque<Vec<Datum>>>,
    /// What the program has sent, in order.
    pub received: Vec<(ChannelId, Vec<Datum>)>,
    /// The time.
    pub now_ns: i64,
}

impl ScriptedWorld {
    /// A world that sends these messages, by channel name.
    pub fn new(program: &Program, inputs: &[(String, Vec<Vec<Datum>>)]) -> ScriptedWorld {
        let offers = program.channels.iter().map(|channel| {
            let input = inputs.iter().find(|(name, _)| *name == channel.name.as_str());
            input.map(|(_, messages)| messages.iter().cloned().collect()).unwrap_or_default()
        });
        ScriptedWorld { offers: offers.collect(), received: Vec::new(), now_ns: 0 }
    }
}

impl World for ScriptedWorld {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        self.offers[channel.0 as usize].front().map_or(Offer::Closed, |message| Offer::Message(message))
    }

    fn take(&mut self, channel: ChannelId) {
        self.offers[channel.0 as usize].pop_front();
    }

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        self.received.push((channel, message.to_vec()));
    }

    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn call(&mut self, _function: ExternId, _arguments: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}
