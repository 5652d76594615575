//! The world of a real run: a driver at each external channel, the clock, extern functions; and sleeping until one of
//! them has news. Engines ask it through [`Environment`]; it knows none of them.
//!
//! Nothing here waits but [`Ports::sleep`] and [`Ports::finish`]. What goes wrong in a driver is kept in
//! [`Ports::take_error`], because an engine in the middle of a step could do nothing about it: to the engine the channel
//! merely has nothing to say.

use crate::binding::{self, Binding, Driver};
use crate::clock::{Clock, Time};
use crate::drivers::devices::{self, Device, Ends, PollThrottle, Received};
use crate::drivers::endpoints::{Directions, OpenEndpoints, reject_aliased_files};
use crate::drivers::input::{Input, State};
use crate::drivers::output::Output;
use crate::drivers::stream::{Writer, Written};
use crate::error::{HostError, reason};
use crate::externs::Externs;
use crate::fault_injection::{self, FaultInjector, FaultPlan};
use crate::outcome::{Shutdown, WakeReason};
use crate::poller::{Interest, Lifetime, Poller};
use crate::signals::Signals;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_ir::ir::{Boundary, Channel, ChannelId, ExternId, Program, Purity};
use quaject_esp_ir::text::counted;
use rustix::event::PollFlags;
use std::time::{Duration, Instant};

/// How long output may keep a stopped program from ending.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The drivers of one program.
pub struct Ports<'p> {
    program: &'p Program,
    channels: Vec<Port>,
    /// By channel; what stands between it and its driver, if anything does.
    injectors: Vec<Option<FaultInjector>>,
    /// Outputs that somebody found busy since the last sleep.
    busy: Vec<ChannelId>,
    writers: Vec<Writer>,
    devices: Vec<Box<dyn Device>>,
    /// By device; when it was last found to have nothing.
    throttles: Vec<PollThrottle>,
    poller: Poller,
    /// What the last wait has found, by descriptor.
    happened: Vec<bool>,
    endpoints: OpenEndpoints,
    clock: Clock,
    externs: Externs,
    /// What went wrong in an input; the channel has nothing to say from then on.
    input_error: Option<HostError>,
    /// What went wrong in an output.
    output_error: Option<HostError>,
    output_closed: bool,
}

enum Port {
    Internal,
    Input(Input),
    Output(Output),
    /// What the program reads of a device.
    From(Incoming),
    /// What it writes to one, by its number.
    To(usize),
}

/// The end of a device that a program reads.
struct Incoming {
    device: usize,
    message: Vec<Datum>,
    offered: bool,
    /// Whether there are no more.
    ended: bool,
    /// Whether somebody asked in vain since the last sleep.
    wanted: bool,
}

/// Drivers while they are opened.
struct Opening<'p, 'd> {
    program: &'p Program,
    drivers: &'d [Option<Driver>],
    writers: Vec<Writer>,
    devices: Vec<Box<dyn Device>>,
    /// Which driver each of the devices is.
    names: Vec<&'d Driver>,
    endpoints: OpenEndpoints,
}

impl<'d> Opening<'_, 'd> {
    fn port(&mut self, channel: &Channel, driver: &'d Driver) -> Result<Port, HostError> {
        if let Driver::Device(_) = driver {
            let device = self.device(driver)?;
            return Ok(match channel.boundary {
                Boundary::Internal => Port::Internal,
                Boundary::FromEnvironment => {
                    Port::From(Incoming { device, message: Vec::new(), offered: false, ended: false, wanted: false })
                }
                Boundary::ToEnvironment => Port::To(device),
            });
        }
        let directions = self.directions(driver);
        let (program, endpoints) = (self.program, &mut self.endpoints);
        match channel.boundary {
            Boundary::Internal => Ok(Port::Internal),
            Boundary::FromEnvironment => Input::open(program, channel, driver, directions, endpoints).map(Port::Input),
            Boundary::ToEnvironment => {
                Output::open(program, channel, driver, directions, endpoints, &mut self.writers).map(Port::Output)
            }
        }
    }

    /// The number of a device, which is opened for all its channels when it is first asked for.
    fn device(&mut self, driver: &'d Driver) -> Result<usize, HostError> {
        if let Some(number) = self.names.iter().position(|name| *name == driver) {
            return Ok(number);
        }
        let Driver::Device(name) = driver else { unreachable!("`port` asks for devices only") };
        let end = |boundary| {
            let channels = self.program.channels.iter().zip(self.drivers);
            let mut ends = channels.filter(|(channel, at)| channel.boundary == boundary && at.as_ref() == Some(driver));
            ends.next().map(|(channel, _)| channel)
        };
        let ends = Ends { input: end(Boundary::FromEnvironment), output: end(Boundary::ToEnvironment) };
        self.devices.push(devices::open(self.program, name, ends)?);
        self.names.push(driver);
        Ok(self.devices.len() - 1)
    }

    fn directions(&self, driver: &Driver) -> Directions {
        let mut directions = Directions::default();
        for (channel, other) in self.program.channels.iter().zip(self.drivers) {
            if other.as_ref().and_then(Driver::endpoint) == driver.endpoint() {
                directions.reads |= channel.boundary == Boundary::FromEnvironment;
                directions.writes |= channel.boundary == Boundary::ToEnvironment;
            }
        }
        directions
    }
}

impl<'p> Ports<'p> {
    /// Opens the drivers of a program: those of `bindings`, else those it names itself, else `text:-`.
    pub fn open(
        program: &'p Program,
        bindings: &[Binding],
        faults: &[FaultPlan],
        externs: Externs,
        time: Time,
    ) -> Result<Ports<'p>, HostError> {
        let drivers = binding::resolve(program, bindings)?;
        reject_aliased_files(program, &drivers)?;
        let injectors = injectors(program, &drivers, faults)?;
        let mut opening = Opening {
            program,
            drivers: &drivers,
            writers: Vec::new(),
            devices: Vec::new(),
            names: Vec::new(),
            endpoints: OpenEndpoints::default(),
        };
        let mut channels = Vec::with_capacity(drivers.len());
        for (channel, driver) in program.channels.iter().zip(&drivers) {
            channels.push(match driver {
                None => Port::Internal,
                Some(driver) => opening.port(channel, driver).map_err(|error| HostError {
                    cause: error.cause,
                    kind: error.kind,
                    help: error.help.or_else(|| {
                        Some(format!(
                            "channel `{0}` is bound to it; choose another with `--bind {0}=DRIVER`",
                            channel.name
                        ))
                    }),
                })?,
            });
        }
        let Opening { writers, devices, endpoints, .. } = opening;
        Ok(Ports {
            program,
            channels,
            injectors,
            busy: Vec::new(),
            writers,
            throttles: devices.iter().map(|_| PollThrottle::default()).collect(),
            devices,
            poller: Poller::default(),
            happened: Vec::new(),
            endpoints,
            clock: Clock::start(time),
            externs,
            input_error: None,
            output_error: None,
            output_closed: false,
        })
    }

    /// What went wrong in a driver, once.
    pub(crate) fn take_error(&mut self) -> Option<HostError> {
        self.output_error.take().or_else(|| self.input_error.take())
    }

    /// Likewise, but only in an output: a program that has ended does not care for input it has not asked for.
    pub(crate) fn take_output_error(&mut self) -> Option<HostError> {
        self.output_error.take()
    }

    /// Whether nobody reads standard output or another output any more.
    pub(crate) fn is_output_closed(&self) -> bool {
        self.output_closed
    }

    /// Whether two channels write to one endpoint, so that the order of their messages can be seen.
    pub(crate) fn shares_outputs(&self) -> bool {
        let outputs = self.channels.iter().filter(|port| match port {
            Port::Output(_) => true,
            Port::Internal | Port::Input(_) | Port::From(_) | Port::To(_) => false,
        });
        outputs.count() > self.writers.len()
    }

    /// Whether a channel is a timer's, whose messages go out of date.
    pub(crate) fn is_timer(&self, channel: ChannelId) -> bool {
        match &self.channels[channel.0 as usize] {
            Port::Input(input) => input.is_timer(),
            Port::Internal | Port::Output(_) | Port::From(_) | Port::To(_) => false,
        }
    }

    /// Writes what can be written without waiting.
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

    /// Hands to their drivers the messages that have passed a faulty injector.
    fn release(&mut self, due: Due) {
        for index in 0..self.injectors.len() {
            if let (Some(_), Port::Output(_) | Port::To(_)) = (&self.injectors[index], &self.channels[index]) {
                let now_ns = match due {
                    Due::Now => self.clock.now_ns(),
                    Due::Ever => i64::MAX,
                };
                while let Some(message) = self.injectors[index].as_mut().and_then(|injector| injector.leave(now_ns)) {
                    self.deliver(ChannelId(index as u32), &message);
                }
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

    /// What a driver offers at a channel, whatever happens to it on the way.
    fn look(&mut self, channel: ChannelId) -> Result<State, HostError> {
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
                        return Ok(State::Pending);
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
                    (true, _) => State::Offered,
                    (false, true) => State::Closed,
                    (false, false) => State::Pending,
                })
            }
            Port::Internal | Port::Output(_) | Port::To(_) => Ok(State::Closed),
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

    /// Lets what a driver offers into the injector, and out of it what has passed.
    fn look_through(&mut self, channel: ChannelId) -> Result<State, HostError> {
        let index = channel.0 as usize;
        let now_ns = self.clock.now_ns();
        loop {
            let open = self.injectors[index]
                .as_ref()
                .is_some_and(|injector| !injector.closed && injector.len() < fault_injection::MAX_DELAYED);
            if !open {
                break;
            }
            let state = self.look(channel)?;
            let message = (state == State::Offered).then(|| self.offered(channel).to_vec());
            let Some(injector) = &mut self.injectors[index] else { break };
            match message {
                Some(message) => {
                    injector.enter(message, now_ns);
                    self.accept(channel);
                }
                None => {
                    injector.closed = state == State::Closed;
                    break;
                }
            }
        }
        let Some(injector) = &mut self.injectors[index] else { return Ok(State::Closed) };
        if injector.offered.is_none() {
            injector.offered = injector.leave(now_ns);
        }
        Ok(match &injector.offered {
            Some(_) => State::Offered,
            None if injector.closed && injector.len() == 0 => State::Closed,
            None => State::Pending,
        })
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

    /// Waits for data somebody asked for, room for output, `deadline_ns`, a timer, or a signal.
    pub(crate) fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> WakeReason {
        self.flush();
        let news = self.arm();
        // Whatever made room since, nothing will tell of it again: a look at an input can have sent what was held.
        if self.busy.iter().any(|channel| self.has_room(*channel)) {
            self.forget_wishes();
            return signals.pending().map_or(WakeReason::Event, WakeReason::Signal);
        }
        if self.input_error.is_some() || self.output_error.is_some() || self.output_closed {
            return WakeReason::Event;
        }
        if news || self.came_late() {
            self.forget_wishes();
            return signals.pending().map_or(WakeReason::Event, WakeReason::Signal);
        }
        let mut due_ns = deadline_ns;
        let mut lifetime = Lifetime::Run;
        let mut asked: Vec<Interest<'_>> = vec![(signals.descriptor(), PollFlags::IN)];
        let mut reading = vec![false; self.devices.len()];
        for (port, injector) in self.channels.iter().zip(&self.injectors) {
            due_ns = due_ns.into_iter().chain(injector.as_ref().and_then(FaultInjector::due_ns)).min();
            match port {
                Port::Input(input) if input.wanted => {
                    if let Some(descriptor) = input.descriptor() {
                        lifetime = Lifetime::Passing;
                        asked.push((descriptor, PollFlags::IN));
                    }
                    due_ns = due_ns.into_iter().chain(input.due_ns()).min();
                }
                Port::From(incoming) if incoming.wanted => {
                    if self.devices[incoming.device].holds_input() {
                        return signals.pending().map_or(WakeReason::Event, WakeReason::Signal);
                    }
                    reading[incoming.device] = true;
                }
                Port::Input(_) | Port::From(_) | Port::Internal | Port::Output(_) | Port::To(_) => {}
            }
        }
        let mut watched = Vec::with_capacity(self.devices.len());
        for (device, reading) in self.devices.iter().zip(&reading) {
            let before = asked.len();
            device.watch(*reading, &mut asked);
            if device.lifetime() == Lifetime::Passing {
                lifetime = Lifetime::Passing;
            }
            watched.push(before..asked.len());
        }
        for writer in &self.writers {
            if !writer.is_empty() {
                lifetime = Lifetime::Passing;
                asked.extend(writer.descriptor().map(|descriptor| (descriptor, PollFlags::OUT)));
            }
        }
        if asked.len() == 1 && due_ns.is_none() {
            return signals.pending().map_or(WakeReason::Never, WakeReason::Signal);
        }
        let timeout = match &self.clock {
            Clock::Real(_) => {
                due_ns.map(|due| Duration::from_nanos(due.saturating_sub(self.clock.now_ns()).max(0) as u64))
            }
            Clock::Virtual(_) => due_ns.map(|_| Duration::ZERO),
        };
        let news = self.poller.wait(&asked, lifetime, timeout, &mut self.happened);
        drop(asked);
        match news {
            // An interrupted wait is followed by another one; the signal, if it was ours, is seen below.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => self.fail(HostError::new(format!("cannot wait for input: {}", reason(&error.into())))),
        }
        if let Some(signal) = signals.pending() {
            return WakeReason::Signal(signal);
        }
        for (number, of_device) in watched.into_iter().enumerate() {
            if news.is_ok() && reading[number] {
                self.devices[number].woken(&self.happened[of_device]);
            }
        }
        if let (Clock::Virtual(now_ns), Ok(0), Some(due_ns)) = (&mut self.clock, news, due_ns) {
            *now_ns = (*now_ns).max(due_ns);
        }
        self.forget_wishes();
        WakeReason::Event
    }

    /// Asks for a sign those outside who give one only when asked. Whether what is waited for has come meanwhile.
    fn arm(&mut self) -> bool {
        let mut news = false;
        for number in 0..self.devices.len() {
            let reading = self.channels.iter().any(|port| match port {
                Port::From(incoming) => incoming.device == number && incoming.wanted,
                Port::Internal | Port::Input(_) | Port::Output(_) | Port::To(_) => false,
            });
            match self.devices[number].arm(reading) {
                Ok(come) => news |= come,
                Err(error) => {
                    self.fail(error);
                    news = true;
                }
            }
        }
        news
    }

    /// Whether a message that was asked for in vain has come since, and left its descriptor: nothing there will tell.
    fn came_late(&self) -> bool {
        self.channels.iter().zip(&self.injectors).any(|(port, injector)| {
            let passed = injector.as_ref().is_some_and(|injector| injector.offered.is_some());
            match port {
                Port::Input(input) => input.wanted && (passed || input.is_offered()),
                Port::From(incoming) => incoming.wanted && (passed || incoming.offered),
                Port::Internal | Port::Output(_) | Port::To(_) => false,
            }
        })
    }

    fn forget_wishes(&mut self) {
        self.busy.clear();
        for port in &mut self.channels {
            match port {
                Port::Input(input) => input.wanted = false,
                Port::From(incoming) => incoming.wanted = false,
                Port::Internal | Port::Output(_) | Port::To(_) => {}
            }
        }
    }

    /// Writes everything that was sent, waiting for whoever reads it.
    pub(crate) fn finish(&mut self, shutdown: Shutdown) {
        let started = Instant::now();
        self.release(Due::Ever);
        // It reads no more.
        self.forget_wishes();
        loop {
            self.flush();
            if self.arm() && self.output_error.is_none() {
                continue;
            }
            let mut asked: Vec<Interest<'_>> = self
                .writers
                .iter()
                .filter(|writer| !writer.is_empty())
                .filter_map(|writer| Some((writer.descriptor()?, PollFlags::OUT)))
                .collect();
            for device in self.devices.iter().filter(|device| device.holds_output()) {
                device.watch(false, &mut asked);
            }
            if asked.is_empty() || self.output_error.is_some() {
                return;
            }
            let timeout = match shutdown {
                Shutdown::Drain => None,
                Shutdown::Interrupted => match SHUTDOWN_TIMEOUT.checked_sub(started.elapsed()) {
                    None => return,
                    left => left,
                },
            };
            // Whatever ends the wait, the next flush tells what is the case.
            let _ = self.poller.wait(&asked, Lifetime::Passing, timeout, &mut self.happened);
        }
    }

    /// Closes everything, and tells what was lost or went wrong outside meanwhile without ending the program.
    pub(crate) fn close(mut self, shutdown: Shutdown) -> Vec<String> {
        let mut notes = Vec::new();
        for (number, device) in self.devices.iter().enumerate() {
            // The channel that the program reads, if there is one: most is lost there.
            let of_device = |port: &Port| match port {
                Port::From(incoming) => incoming.device == number,
                Port::To(device) => *device == number,
                Port::Internal | Port::Input(_) | Port::Output(_) => false,
            };
            let channel = self.channels.iter().position(of_device).map_or("", |at| &self.program.channels[at].name);
            for (count, what) in device.losses().into_iter().filter(|(count, _)| *count > 0) {
                let messages = counted(count, "message");
                notes.push(format!("{messages} lost at the driver of channel `{channel}`: {what}"));
            }
        }
        for (channel, injector) in self.program.channels.iter().zip(&self.injectors) {
            notes.extend(injector.as_ref().and_then(|injector| injector.note(&channel.name)));
        }
        self.channels.clear();
        self.writers.clear();
        notes.extend(self.endpoints.close(shutdown == Shutdown::Drain));
        notes
    }
}

/// Which of the messages under way are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Those whose time has come.
    Now,
    /// All of them.
    Ever,
}

/// The faulty injectors that were asked for, by channel.
fn injectors(
    program: &Program,
    drivers: &[Option<Driver>],
    faults: &[FaultPlan],
) -> Result<Vec<Option<FaultInjector>>, HostError> {
    let mut injectors: Vec<Option<FaultInjector>> = program.channels.iter().map(|_| None).collect();
    for faults in faults {
        let mut found = false;
        for ((channel, driver), injector) in program.channels.iter().zip(drivers).zip(&mut injectors) {
            let Some(driver) = driver else { continue };
            if faults.selector == driver.name() || faults.selector == channel.name {
                found = true;
                *injector = Some(FaultInjector::new(faults, &channel.name));
            }
        }
        if !found {
            return Err(HostError::usage(format!(
                "no channel is called `{0}` or bound to a driver `{0}`",
                faults.selector
            ))
            .help("faults are those of a driver or of an external channel, as in `--fault udp:loss=5%`"));
        }
    }
    Ok(injectors)
}

impl Environment for Ports<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        if self.input_error.is_some() {
            return Offer::Pending;
        }
        let faulty = self.injectors[channel.0 as usize].is_some();
        match if faulty { self.look_through(channel) } else { self.look(channel) } {
            Ok(State::Offered) => {
                let passed =
                    self.injectors[channel.0 as usize].as_ref().and_then(|injector| injector.offered.as_deref());
                Offer::Message(passed.unwrap_or_else(|| self.offered(channel)))
            }
            Ok(State::Pending) => Offer::Pending,
            Ok(State::Closed) => Offer::Closed,
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
        match &mut self.injectors[channel.0 as usize] {
            None => self.deliver(channel, message),
            Some(injector) => {
                injector.enter(message.to_vec(), self.clock.now_ns());
                self.release(Due::Now);
            }
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

#[cfg(test)]
mod tests;
