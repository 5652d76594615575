//! The environment of a real run: a driver at each external channel, the clock, extern functions. Engines use it
//! through [`Environment`] and sleep in it; it knows none of them.
//!
//! ```text
//!   mod        the drivers by channel, and the environment that they form
//!   opening    opens them          sleep      waits for events of all of them
//!   injection  faults of messages  closing    writes the rest, closes, reports losses
//! ```
//!
//! Only `sleep` and `finish` block. An error of a driver is kept for [`Ports::take_error`], because an engine cannot
//! handle it in the middle of a step: until then the channel has no message.

mod closing;
mod injection;
mod opening;
mod sleep;

use crate::clock::Clock;
use crate::drivers::devices::{Device, PollThrottle, Received};
use crate::drivers::endpoints::OpenEndpoints;
use crate::drivers::input::{Input, InputState};
use crate::drivers::output::Output;
use crate::drivers::stream::{Writer, Written};
use crate::error::HostError;
use crate::externs::Externs;
use crate::fault_injection::{self, FaultInjector};
use crate::poller::Poller;
use injection::Due;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_ir::ir::{ChannelId, ExternId, Program, Purity};

/// The drivers of one program.
pub struct Ports<'p> {
    program: &'p Program,
    channels: Vec<Port>,
    /// By channel; the faults between it and its driver, if any.
    injectors: Vec<Option<FaultInjector>>,
    /// Outputs that the engine found busy since the last sleep.
    busy: Vec<ChannelId>,
    writers: Vec<Writer>,
    devices: Vec<Box<dyn Device>>,
    /// By device; when it was last found empty.
    throttles: Vec<PollThrottle>,
    poller: Poller,
    /// By descriptor: whether the last wait had an event there.
    happened: Vec<bool>,
    endpoints: OpenEndpoints,
    clock: Clock,
    externs: Externs,
    /// The error of an input; no input has messages from then on.
    input_error: Option<HostError>,
    /// The first error of an output.
    output_error: Option<HostError>,
    output_closed: bool,
}

enum Port {
    Internal,
    Input(Input),
    Output(Output),
    /// A channel from a device.
    From(Incoming),
    /// A channel to a device, by its number.
    To(usize),
}

/// A channel from a device.
struct Incoming {
    device: usize,
    message: Vec<Datum>,
    offered: bool,
    /// Whether the device has ended.
    ended: bool,
    /// Whether the engine found no message since the last sleep.
    wanted: bool,
}

impl<'p> Ports<'p> {
    /// The error of a driver, once.
    pub(crate) fn take_error(&mut self) -> Option<HostError> {
        self.output_error.take().or_else(|| self.input_error.take())
    }

    /// The error of an output, once: after the end of the program an error of an input is irrelevant.
    pub(crate) fn take_output_error(&mut self) -> Option<HostError> {
        self.output_error.take()
    }

    /// Whether the reader of standard output or another output has closed it.
    pub(crate) fn is_output_closed(&self) -> bool {
        self.output_closed
    }

    /// Whether two channels write to one endpoint, so that the order of their messages is observable.
    pub(crate) fn shares_outputs(&self) -> bool {
        let outputs = self.channels.iter().filter(|port| match port {
            Port::Output(_) => true,
            Port::Internal | Port::Input(_) | Port::From(_) | Port::To(_) => false,
        });
        outputs.count() > self.writers.len()
    }

    /// Whether a channel is a timer's, whose messages become outdated.
    pub(crate) fn is_timer(&self, channel: ChannelId) -> bool {
        match &self.channels[channel.0 as usize] {
            Port::Input(input) => input.is_timer(),
            Port::Internal | Port::Output(_) | Port::From(_) | Port::To(_) => false,
        }
    }

    /// Writes as much output as is possible without blocking.
    pub(crate) fn flush(&mut self) {
        self.release(Due::Now);
        for index in 0..self.writers.len() {
            self.flush_writer(index);
        }
        for index in 0..self.devices.len() {
            if let Err(error) = self.devices[index].flush() {
                self.fail(error);
            }
        }
    }

    /// Hands a message to the driver of its channel.
    fn deliver(&mut self, channel: ChannelId, message: &[Datum]) {
        let index = channel.0 as usize;
        let outcome = match &mut self.channels[index] {
            Port::Output(output) => {
                let writer = &mut self.writers[output.writer];
                output.put(self.program, &self.program.channels[index], message, writer)
            }
            Port::To(device) => self.devices[*device].send(message),
            Port::Internal | Port::Input(_) | Port::From(_) => Ok(()),
        };
        if let Err(error) = outcome {
            self.fail(error);
        }
    }

    /// Polls the driver of a channel, below fault injection.
    fn poll_driver(&mut self, channel: ChannelId) -> Result<InputState, HostError> {
        let index = channel.0 as usize;
        match &mut self.channels[index] {
            Port::Input(input) => {
                let now_ns = if input.due_ns().is_some() { self.clock.now_ns() } else { 0 };
                input.peek(self.program, &self.program.channels[index], now_ns)
            }
            Port::From(incoming) => {
                if !incoming.offered && !incoming.ended {
                    let (device, throttle) = (&mut self.devices[incoming.device], &mut self.throttles[incoming.device]);
                    if !device.holds_input() && throttle.is_recent() {
                        incoming.wanted = true;
                        return Ok(InputState::Pending);
                    }
                    match device.receive()? {
                        Received::Message(message) => {
                            incoming.message = message;
                            incoming.offered = true;
                        }
                        Received::Nothing => {
                            throttle.renew();
                            incoming.wanted = true;
                        }
                        Received::Ended => incoming.ended = true,
                    }
                }
                Ok(match (incoming.offered, incoming.ended) {
                    (true, _) => InputState::Offered,
                    (false, true) => InputState::Closed,
                    (false, false) => InputState::Pending,
                })
            }
            Port::Internal | Port::Output(_) | Port::To(_) => Ok(InputState::Closed),
        }
    }

    /// The message that a driver offers at a channel.
    fn offered(&self, channel: ChannelId) -> &[Datum] {
        match &self.channels[channel.0 as usize] {
            Port::Input(input) => input.message(),
            Port::From(incoming) => &incoming.message,
            Port::Internal | Port::Output(_) | Port::To(_) => &[],
        }
    }

    fn accept(&mut self, channel: ChannelId) {
        match &mut self.channels[channel.0 as usize] {
            Port::Input(input) => input.take(),
            Port::From(incoming) => incoming.offered = false,
            Port::Internal | Port::Output(_) | Port::To(_) => {}
        }
    }

    /// Whether an output takes another message.
    fn has_room(&self, channel: ChannelId) -> bool {
        let accepts = match &self.channels[channel.0 as usize] {
            Port::Output(output) => !self.writers[output.writer].is_full(),
            Port::To(device) => self.devices[*device].is_ready(),
            Port::Internal | Port::Input(_) | Port::From(_) => false,
        };
        accepts
            && self.injectors[channel.0 as usize]
                .as_ref()
                .is_none_or(|injector| injector.len() < fault_injection::MAX_DELAYED)
    }

    fn flush_writer(&mut self, index: usize) {
        match self.writers[index].flush() {
            Ok(Written::All | Written::Pending) => {}
            Ok(Written::Closed) => self.output_closed = true,
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: HostError) {
        self.output_error.get_or_insert(error);
    }
}

impl Environment for Ports<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        if self.input_error.is_some() {
            return Offer::Pending;
        }
        let faulty = self.injectors[channel.0 as usize].is_some();
        match if faulty { self.poll_injector(channel) } else { self.poll_driver(channel) } {
            Ok(InputState::Offered) => {
                let passed =
                    self.injectors[channel.0 as usize].as_ref().and_then(|injector| injector.offered.as_deref());
                Offer::Message(passed.unwrap_or_else(|| self.offered(channel)))
            }
            Ok(InputState::Pending) => Offer::Pending,
            Ok(InputState::Closed) => Offer::Closed,
            Err(error) => {
                self.input_error = Some(error);
                Offer::Pending
            }
        }
    }

    fn take(&mut self, channel: ChannelId) {
        match &mut self.injectors[channel.0 as usize] {
            Some(injector) => injector.offered = None,
            None => self.accept(channel),
        }
    }

    fn readiness(&mut self, channel: ChannelId) -> Readiness {
        match &self.channels[channel.0 as usize] {
            Port::Output(output) => {
                let writer = output.writer;
                if self.writers[writer].is_full() {
                    self.flush_writer(writer);
                }
            }
            Port::To(_) => {}
            Port::Internal | Port::Input(_) | Port::From(_) => return Readiness::Closed,
        }
        if !self.output_closed && self.output_error.is_none() && self.has_room(channel) {
            return Readiness::Ready;
        }
        if !self.busy.contains(&channel) {
            self.busy.push(channel);
        }
        Readiness::Busy
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        match &self.injectors[channel.0 as usize] {
            None => self.deliver(channel, message),
            Some(_) => self.inject(channel, message),
        }
    }

    fn now_ns(&mut self) -> i64 {
        self.clock.now_ns()
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        // The output of the function comes after the messages that the program has sent before.
        match self.program.externs[function.0 as usize].purity {
            Purity::Pure => {}
            Purity::Impure => self.flush(),
        }
        self.externs.call(self.program, function, arguments)
    }
}

#[cfg(test)]
mod tests;
