//! The world of a real run: a driver at each external channel, the clock, extern functions; and sleeping until one of
//! them has news. Engines ask it through [`World`]; it knows none of them.
//!
//! Nothing here waits but [`Ports::sleep`] and [`Ports::finish`]. What goes wrong in a driver is kept in
//! [`Ports::take_trouble`], because an engine in the middle of a step could do nothing about it: to the engine the channel
//! merely has nothing to say.

use crate::binding::{self, Binding, Driver};
use crate::clock::{Clock, Time};
use crate::drivers::input::{Input, State};
use crate::drivers::output::Output;
use crate::drivers::stream::{Writer, Written};
use crate::externs::Externs;
use crate::signals::Signals;
use crate::trouble::{Trouble, reason};
use quaject_esp_ir::datum::Datum;
use quaject_esp_ir::ir::{Boundary, ChannelId, ExternId, Program, Purity};
use quaject_esp_ir::world::{Offer, Readiness, Reply, World};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// How long output may keep a stopped program from ending.
const PATIENCE: Duration = Duration::from_secs(1);

/// The drivers of one program.
pub struct Ports<'p> {
    program: &'p Program,
    channels: Vec<Port>,
    writers: Vec<Writer>,
    clock: Clock,
    externs: Externs,
    /// What went wrong in an input; the channel has nothing to say from then on.
    input_trouble: Option<Trouble>,
    /// What went wrong in an output.
    output_trouble: Option<Trouble>,
    gone: bool,
}

enum Port {
    Internal,
    Input(Input),
    Output(Output),
}

/// What ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    /// News for the program, or nothing: look again.
    Event,
    /// A signal asks the program to stop.
    Signal(i32),
    /// Nothing can ever happen: nobody is waited for.
    Never,
}

/// Whether there is time to wait for whoever reads the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hurry {
    /// As long as it takes.
    None,
    /// A signal asked to stop.
    Stopped,
}

impl<'p> Ports<'p> {
    /// Opens the drivers of a program: those of `bindings`, else those it names itself, else `text:-`.
    pub fn open(
        program: &'p Program,
        bindings: &[Binding],
        externs: Externs,
        time: Time,
    ) -> Result<Ports<'p>, Trouble> {
        let drivers = binding::resolve(program, bindings)?;
        let mut writers = Vec::new();
        let mut channels = Vec::with_capacity(drivers.len());
        for (channel, driver) in program.channels.iter().zip(&drivers) {
            let port = |driver: &Driver, writers: &mut Vec<Writer>| match channel.boundary {
                Boundary::Internal => Ok(Port::Internal),
                Boundary::FromWorld => Input::open(program, channel, driver).map(Port::Input),
                Boundary::ToWorld => Output::open(program, channel, driver, writers).map(Port::Output),
            };
            channels.push(match driver {
                None => Port::Internal,
                Some(driver) => port(driver, &mut writers).map_err(|trouble| Trouble {
                    cause: trouble.cause,
                    blame: trouble.blame,
                    help: trouble.help.or_else(|| {
                        Some(format!(
                            "channel `{0}` is bound to it; choose another with `--bind {0}=DRIVER`",
                            channel.name
                        ))
                    }),
                })?,
            });
        }
        let clock = Clock::start(time);
        Ok(Ports { program, channels, writers, clock, externs, input_trouble: None, output_trouble: None, gone: false })
    }

    /// What went wrong in a driver, once.
    pub(crate) fn take_trouble(&mut self) -> Option<Trouble> {
        self.output_trouble.take().or_else(|| self.input_trouble.take())
    }

    /// Likewise, but only in an output: a program that has ended does not care for input it has not asked for.
    pub(crate) fn take_output_trouble(&mut self) -> Option<Trouble> {
        self.output_trouble.take()
    }

    /// Whether nobody reads standard output or another output any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether two channels write to one place, so that the order of their messages can be seen.
    pub(crate) fn shares_outputs(&self) -> bool {
        let outputs = self.channels.iter().filter(|port| match port {
            Port::Output(_) => true,
            Port::Internal | Port::Input(_) => false,
        });
        outputs.count() > self.writers.len()
    }

    /// Whether a channel is a timer's, whose messages go out of date.
    pub(crate) fn is_timer(&self, channel: ChannelId) -> bool {
        match &self.channels[channel.0 as usize] {
            Port::Input(input) => input.descriptor().is_none(),
            Port::Internal | Port::Output(_) => false,
        }
    }

    /// Writes what can be written without waiting.
    pub(crate) fn flush(&mut self) {
        for index in 0..self.writers.len() {
            self.flush_writer(index);
        }
    }

    fn flush_writer(&mut self, index: usize) {
        match self.writers[index].flush() {
            Ok(Written::All | Written::Pending) => {}
            Ok(Written::Gone) => self.gone = true,
            Err(trouble) => self.fail(trouble),
        }
    }

    fn fail(&mut self, trouble: Trouble) {
        self.output_trouble.get_or_insert(trouble);
    }

    /// Waits for data somebody asked for, room for output, `deadline_ns`, a timer, or a signal.
    pub(crate) fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> Wake {
        let held = self.writers.iter().filter(|writer| !writer.is_empty()).count();
        self.flush();
        if self.writers.iter().filter(|writer| !writer.is_empty()).count() < held {
            // There is room again: a channel that was busy may be ready.
            return signals.pending().map_or(Wake::Event, Wake::Signal);
        }
        if self.input_trouble.is_some() || self.output_trouble.is_some() || self.gone {
            return Wake::Event;
        }
        let mut due_ns = deadline_ns;
        let mut asked = vec![PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN)];
        for port in &self.channels {
            let Port::Input(input) = port else { continue };
            if !input.wanted {
                continue;
            }
            if let Some(descriptor) = input.descriptor() {
                asked.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            }
            due_ns = due_ns.into_iter().chain(input.due_ns()).min();
        }
        for writer in &self.writers {
            if !writer.is_empty() {
                asked.push(PollFd::from_borrowed_fd(writer.descriptor(), PollFlags::OUT));
            }
        }
        if asked.len() == 1 && due_ns.is_none() {
            return signals.pending().map_or(Wake::Never, Wake::Signal);
        }
        let timeout = match &self.clock {
            Clock::Real(_) => due_ns.map(|due| due.saturating_sub(self.clock.now_ns()).max(0)),
            Clock::Virtual(_) => due_ns.map(|_| 0),
        };
        let timeout = timeout.map(|ns| Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 });
        let news = poll(&mut asked, timeout.as_ref());
        drop(asked);
        match news {
            // An interrupted wait is followed by another one; the signal, if it was ours, is seen below.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => self.fail(Trouble::new(format!("cannot wait for input: {}", reason(&error.into())))),
        }
        if let Some(signal) = signals.pending() {
            return Wake::Signal(signal);
        }
        if let (Clock::Virtual(now_ns), Ok(0), Some(due_ns)) = (&mut self.clock, news, due_ns) {
            *now_ns = (*now_ns).max(due_ns);
        }
        for port in &mut self.channels {
            if let Port::Input(input) = port {
                input.wanted = false;
            }
        }
        Wake::Event
    }

    /// Writes everything that was sent, waiting for whoever reads it.
    pub(crate) fn finish(&mut self, hurry: Hurry) {
        let started = Instant::now();
        loop {
            self.flush();
            let mut asked: Vec<PollFd<'_>> = self
                .writers
                .iter()
                .filter(|writer| !writer.is_empty())
                .map(|writer| PollFd::from_borrowed_fd(writer.descriptor(), PollFlags::OUT))
                .collect();
            if asked.is_empty() || self.output_trouble.is_some() {
                return;
            }
            let timeout = match hurry {
                Hurry::None => None,
                Hurry::Stopped => match PATIENCE.checked_sub(started.elapsed()) {
                    None => return,
                    Some(left) => Some(Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) }),
                },
            };
            // Whatever ends the wait, the next flush tells what is the case.
            let _ = poll(&mut asked, timeout.as_ref());
        }
    }
}

impl World for Ports<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        let Port::Input(input) = &mut self.channels[channel.0 as usize] else { return Offer::Closed };
        if self.input_trouble.is_some() {
            return Offer::Pending;
        }
        let now_ns = if input.due_ns().is_some() { self.clock.now_ns() } else { 0 };
        match input.peek(self.program, &self.program.channels[channel.0 as usize], now_ns) {
            Ok(State::Offered) => Offer::Message(input.message()),
            Ok(State::Pending) => Offer::Pending,
            Ok(State::Closed) => Offer::Closed,
            Err(trouble) => {
                self.input_trouble = Some(trouble);
                Offer::Pending
            }
        }
    }

    fn take(&mut self, channel: ChannelId) {
        if let Port::Input(input) = &mut self.channels[channel.0 as usize] {
            input.take();
        }
    }

    fn readiness(&mut self, channel: ChannelId) -> Readiness {
        let Port::Output(output) = &self.channels[channel.0 as usize] else { return Readiness::Closed };
        let writer = output.writer;
        if self.writers[writer].is_full() {
            self.flush_writer(writer);
        }
        if self.gone || self.output_trouble.is_some() || self.writers[writer].is_full() {
            Readiness::Busy
        } else {
            Readiness::Ready
        }
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        let Port::Output(output) = &mut self.channels[channel.0 as usize] else { return };
        let writer = &mut self.writers[output.writer];
        let outcome = output.put(self.program, &self.program.channels[channel.0 as usize], message, writer);
        if let Err(trouble) = outcome {
            self.fail(trouble);
        }
    }

    fn now_ns(&mut self) -> i64 {
        self.clock.now_ns()
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        // What the function prints itself comes after what the program has sent so far.
        match self.program.externs[function.0 as usize].purity {
            Purity::Pure => {}
            Purity::Impure => self.flush(),
        }
        self.externs.call(self.program, function, arguments)
    }
}
