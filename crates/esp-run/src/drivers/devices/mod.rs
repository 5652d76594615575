//! Devices: drivers that two channels may share, one for each direction: a socket, a folder of files, a network
//! interface. Channels that name the same device share it. Devices of Linux are in [`linux`]; other systems refuse
//! them.
//!
//! A device never blocks. It reports a failure in the first of these ways that applies: as a message, if the type of
//! the channel has a case for it; as a loss that is counted, if the medium may lose (a datagram, a frame); by ending
//! the run with a [`HostError`].

mod can;
#[cfg(target_os = "linux")]
mod linux;
mod tcp;
mod udp;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(not(target_os = "linux"))]
use unsupported as platform;

use crate::binding::DeviceEndpoint;
use crate::error::HostError;
use crate::frame_log::FrameLog;
use crate::poller::{Interest, Lifetime};
use crate::system::timespec;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, Program};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The channels that share a device: at most one in each direction.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'c> {
    /// The one that the program reads.
    pub(crate) input: Option<&'c Channel>,
    /// The one that the program writes.
    pub(crate) output: Option<&'c Channel>,
    /// The capture of its frames.
    pub(crate) log: Option<&'c FrameLog>,
}

/// The result of polling a device for a message.
pub(crate) enum Received {
    /// A message.
    Message(Vec<Datum>),
    /// None now.
    Nothing,
    /// None, and never again.
    Ended,
}

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// To the program.
    FromDevice,
    /// From the program.
    ToDevice,
}

/// A device, as the channels of a program use it.
pub(crate) trait Device {
    /// Polls for the next message.
    fn receive(&mut self) -> Result<Received, HostError>;

    /// Whether it takes a message now. If not, the sender stays blocked.
    fn is_ready(&self) -> bool;

    /// Takes a message.
    fn send(&mut self, message: &[Datum]) -> Result<(), HostError>;

    /// Writes the messages it holds, as far as that is possible without blocking.
    fn flush(&mut self) -> Result<(), HostError>;

    /// Whether it holds messages to be written.
    fn holds_output(&self) -> bool;

    /// Whether [`Device::receive`] would return a message or the end, although no descriptor is ready.
    fn holds_input(&self) -> bool;

    /// Before a sleep: requests a wake-up from a peer that sends one only on request, for messages if `reading`, and
    /// for room if it holds messages. Returns whether the event has happened already.
    fn arm(&mut self, _reading: bool) -> Result<bool, HostError> {
        Ok(false)
    }

    /// Before a sleep: the time after which the device has something to do although no descriptor has an event.
    fn wake_in(&self) -> Option<Duration> {
        None
    }

    /// Adds the descriptors to wait for: for messages if `reading`, and for room if it holds messages.
    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>);

    /// The result of a wait for messages: for each descriptor of [`Device::watch`], in order, whether it had an event.
    /// A device that polls anyway may ignore it.
    fn woken(&mut self, _happened: &[bool]) {}

    /// Whether its descriptors may be closed before the run ends.
    fn lifetime(&self) -> Lifetime {
        Lifetime::Run
    }

    /// Breaks the connection of a message to or from the device, as far as there is one that is not broken already.
    fn cut(&mut self, _message: &[Datum], _flow: Flow) -> bool {
        false
    }

    /// Whether a message to the device ends a connection, whose number may then be used again.
    fn closes_connection(&self, _message: &[Datum]) -> bool {
        false
    }

    /// The numbers of lost messages, each with its reason.
    fn losses(&self) -> Vec<(u64, &'static str)>;
}

/// How long a poll without a message stays valid: an engine polls its inputs at every step, and each poll would be a
/// system call. A sleeping program is woken immediately, because its wait is a system call.
const EMPTY_POLL_VALIDITY: Duration = Duration::from_micros(20);

/// The time of the last poll that found nothing.
#[derive(Default)]
pub(crate) struct PollThrottle(Option<Instant>);

impl PollThrottle {
    /// Records a poll without a message.
    pub(crate) fn renew(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Whether the last poll is still valid.
    pub(crate) fn is_recent(&self) -> bool {
        self.0.is_some_and(|asked| asked.elapsed() < EMPTY_POLL_VALIDITY)
    }
}

/// Opens a device for its channels.
pub(crate) fn open(program: &Program, name: &DeviceEndpoint, ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    Ok(match name {
        DeviceEndpoint::Udp(place) => Box::new(udp::Udp::open(program, *place, ends)?),
        DeviceEndpoint::Tcp(place) => Box::new(tcp::Tcp::open(program, *place, ends)?),
        DeviceEndpoint::Can(bus) => Box::new(can::Can::open(program, bus, ends)?),
        DeviceEndpoint::Files(_) | DeviceEndpoint::Ring(_) | DeviceEndpoint::Tap(_) | DeviceEndpoint::Packet(_) => {
            platform::open(program, name, ends)?
        }
    })
}

/// Whether each descriptor can be read now, by one system call for all of them.
fn readable<'d>(descriptors: impl Iterator<Item = BorrowedFd<'d>>) -> Vec<bool> {
    let mut asked: Vec<PollFd<'_>> =
        descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
    match poll(&mut asked, Some(&timespec(Duration::ZERO))) {
        // Hang-up and errors count: reading then reports them.
        Ok(count) if count > 0 => asked.iter().map(|asked| !asked.revents().is_empty()).collect(),
        Ok(_) | Err(_) => vec![false; asked.len()],
    }
}
