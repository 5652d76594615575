//! Sleeps until a driver, the clock or a signal has an event.

use super::{Port, Ports};
use crate::clock::Clock;
use crate::drivers::devices::Device;
use crate::drivers::stream::Writer;
use crate::error::{HostCode, HostError, reason};
use crate::fault_injection::FaultInjector;
use crate::outcome::WakeReason;
use crate::poller::{Interest, Lifetime};
use crate::signals::Signals;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::ops::Range;
use std::time::Duration;

/// The events to wait for.
struct Wait<'d> {
    descriptors: Vec<Interest<'d>>,
    /// Whether a descriptor may be closed before the run ends.
    lifetime: Lifetime,
    due_ns: Option<i64>,
    /// By device; its part of `descriptors`, if the program waits for its messages.
    reading: Vec<Option<Range<usize>>>,
}

impl<'d> Wait<'d> {
    /// The inputs that the engine has polled for; none if a device has a message already.
    fn for_inputs(
        channels: &'d [Port],
        injectors: &[Option<FaultInjector>],
        devices: &[Box<dyn Device>],
        deadline_ns: Option<i64>,
        signals: &'d Signals,
    ) -> Option<Wait<'d>> {
        let mut wait = Wait {
            descriptors: vec![(signals.descriptor(), PollFlags::IN)],
            lifetime: Lifetime::Run,
            due_ns: deadline_ns,
            reading: vec![None; devices.len()],
        };
        for (port, injector) in channels.iter().zip(injectors) {
            wait.due_ns = wait.due_ns.into_iter().chain(injector.as_ref().and_then(FaultInjector::due_ns)).min();
            match port {
                Port::Input(input) if input.wanted => {
                    if let Some(descriptor) = input.descriptor() {
                        wait.lifetime = Lifetime::Passing;
                        wait.descriptors.push((descriptor, PollFlags::IN));
                    }
                    wait.due_ns = wait.due_ns.into_iter().chain(input.due_ns()).min();
                }
                Port::From(incoming) if incoming.wanted => {
                    if devices[incoming.device].holds_input() {
                        return None;
                    }
                    wait.reading[incoming.device] = Some(0..0);
                }
                Port::Input(_) | Port::From(_) | Port::Internal | Port::Output(_) | Port::To(_) => {}
            }
        }
        Some(wait)
    }

    /// Adds the descriptors of devices, and of outputs that are not written completely.
    fn watch(&mut self, devices: &'d [Box<dyn Device>], writers: &'d [Writer]) {
        for (device, reading) in devices.iter().zip(&mut self.reading) {
            let start = self.descriptors.len();
            device.watch(reading.is_some(), &mut self.descriptors);
            if device.lifetime() == Lifetime::Passing {
                self.lifetime = Lifetime::Passing;
            }
            if let Some(range) = reading {
                *range = start..self.descriptors.len();
            }
        }
        for writer in writers {
            if !writer.is_empty() {
                self.lifetime = Lifetime::Passing;
                self.descriptors.extend(writer.descriptor().map(|descriptor| (descriptor, PollFlags::OUT)));
            }
        }
    }
}

impl Ports<'_> {
    /// Waits for messages that the engine has polled for, room for output, `deadline_ns`, a timer, or a signal.
    pub(crate) fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> WakeReason {
        let event = || signals.pending().map_or(WakeReason::Event, WakeReason::Signal);
        self.flush();
        let has_arrived = self.arm();
        // `arm` may have made room for held output, which no descriptor reports.
        if self.busy.iter().any(|channel| self.has_room(*channel)) {
            self.reset_wanted();
            return event();
        }
        if self.input_error.is_some() || self.output_error.is_some() || self.output_closed {
            return WakeReason::Event;
        }
        if has_arrived || self.is_wanted_offered() {
            self.reset_wanted();
            return event();
        }
        let inputs = Wait::for_inputs(&self.channels, &self.injectors, &self.devices, deadline_ns, signals);
        let Some(mut wait) = inputs else { return event() };
        wait.watch(&self.devices, &self.writers);
        let wake_in = self.wake_in();
        if wait.descriptors.len() == 1 && wait.due_ns.is_none() && wake_in.is_none() {
            return signals.pending().map_or(WakeReason::Never, WakeReason::Signal);
        }
        let timeout = wait.due_ns.map(|due| match &self.clock {
            Clock::Real(_) => Duration::from_nanos(due.saturating_sub(self.clock.now_ns()).max(0) as u64),
            Clock::Virtual(_) => Duration::ZERO,
        });
        let timeout = timeout.into_iter().chain(wake_in).min();
        let Wait { descriptors, lifetime, due_ns, reading } = wait;
        let count = self.poller.wait(&descriptors, lifetime, timeout, &mut self.happened);
        drop(descriptors);
        self.wake(count, due_ns, &reading, signals)
    }

    /// Handles the result of a wait.
    fn wake(
        &mut self,
        count: Result<usize, Errno>,
        due_ns: Option<i64>,
        reading: &[Option<Range<usize>>],
        signals: &Signals,
    ) -> WakeReason {
        match count {
            // An interrupted wait is repeated; the signal, if it was one of `signals`, is pending.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                self.fail(HostError::new(HostCode::System, format!("cannot wait for input: {}", reason(&error.into()))))
            }
        }
        if let Some(signal) = signals.pending() {
            return WakeReason::Signal(signal);
        }
        for (device, range) in self.devices.iter_mut().zip(reading) {
            if let (Ok(_), Some(range)) = (count, range) {
                device.woken(&self.happened[range.clone()]);
            }
        }
        if let (Clock::Virtual(now_ns), Ok(0), Some(due_ns)) = (&mut self.clock, count, due_ns) {
            *now_ns = (*now_ns).max(due_ns);
        }
        self.reset_wanted();
        WakeReason::Event
    }

    /// The time after which a device has something to do.
    pub(super) fn wake_in(&self) -> Option<Duration> {
        self.devices.iter().filter_map(|device| device.wake_in()).min()
    }

    /// Requests wake-ups from devices whose peers send them only on request. Whether an event has happened meanwhile.
    pub(super) fn arm(&mut self) -> bool {
        let mut has_arrived = false;
        for number in 0..self.devices.len() {
            let reading = self.channels.iter().any(|port| match port {
                Port::From(incoming) => incoming.device == number && incoming.wanted,
                Port::Internal | Port::Input(_) | Port::Output(_) | Port::To(_) => false,
            });
            match self.devices[number].arm(reading) {
                Ok(event) => has_arrived |= event,
                Err(error) => {
                    self.fail(error);
                    has_arrived = true;
                }
            }
        }
        has_arrived
    }

    /// Whether a message that the engine did not find has been read from its descriptor since: no event will follow.
    fn is_wanted_offered(&self) -> bool {
        self.channels.iter().zip(&self.injectors).any(|(port, injector)| {
            let passed = injector.as_ref().is_some_and(|injector| injector.offered.is_some());
            match port {
                Port::Input(input) => input.wanted && (passed || input.is_offered()),
                Port::From(incoming) => incoming.wanted && (passed || incoming.offered),
                Port::Internal | Port::Output(_) | Port::To(_) => false,
            }
        })
    }

    /// Clears the record of what the engine has polled for.
    pub(super) fn reset_wanted(&mut self) {
        self.busy.clear();
        for port in &mut self.channels {
            match port {
                Port::Input(input) => input.wanted = false,
                Port::From(incoming) => incoming.wanted = false,
                Port::Internal | Port::Output(_) | Port::To(_) => {}
            }
        }
    }
}
