//! The end of a run: writes the remaining output, closes the drivers, reports their losses.

use super::injection::Due;
use super::{Port, Ports};
use crate::outcome::Shutdown;
use crate::poller::{Interest, Lifetime};
use quaject_esp_ir::text::counted;
use rustix::event::PollFlags;
use std::time::{Duration, Instant};

/// The time that the readers of outputs may delay the end of a program that a signal has stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

impl Ports<'_> {
    /// Writes everything that was sent, waiting for the readers.
    pub(crate) fn finish(&mut self, shutdown: Shutdown) {
        let started = Instant::now();
        self.release(Due::AtEnd);
        // The program has ended and does not read any more.
        self.reset_wanted();
        loop {
            self.flush();
            if self.arm() && self.output_error.is_none() {
                continue;
            }
            let mut watched: Vec<Interest<'_>> = self
                .writers
                .iter()
                .filter(|writer| !writer.is_empty())
                .filter_map(|writer| Some((writer.descriptor()?, PollFlags::OUT)))
                .collect();
            for device in self.devices.iter().filter(|device| device.holds_output()) {
                device.watch(false, &mut watched);
            }
            if watched.is_empty() || self.output_error.is_some() {
                return;
            }
            let timeout = match shutdown {
                Shutdown::Drain => None,
                Shutdown::Interrupted => match SHUTDOWN_TIMEOUT.checked_sub(started.elapsed()) {
                    None => return,
                    left => left,
                },
            };
            let timeout = timeout.into_iter().chain(self.wake_in()).min();
            // In every case the next flush makes progress or fails.
            let _ = self.poller.wait(&watched, Lifetime::Passing, timeout, &mut self.happened);
        }
    }

    /// Closes everything. Returns notes about lost messages and failed commands, which do not end a program.
    pub(crate) fn close(mut self, shutdown: Shutdown) -> Vec<String> {
        let mut notes = Vec::new();
        for (number, device) in self.devices.iter().enumerate() {
            // The channel that the program reads, if there is one: most losses are there.
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
