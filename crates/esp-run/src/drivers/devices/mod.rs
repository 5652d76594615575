//! Devices: drivers that two channels may share, one for each direction, because both are one thing outside: a socket,
//! a folder of files, a network interface. Two channels that name the same device get the same one.
//!
//! A device never waits. What it cannot do as asked, it tells in one of three ways, in this order: as a message, if the
//! type of the channel has a case for it; as a loss that is counted, if the medium may lose (a datagram, a frame); by
//! stopping the program with a [`HostError`].

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

use crate::binding::Device as Name;
use crate::error::HostError;
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
}

/// What a device has for the channel that the program reads.
pub(crate) enum Received {
    /// A message.
    Message(Vec<Datum>),
    /// None now.
    Nothing,
    /// None, and never again.
    Ended,
}

/// One thing outside, as the channels of a program see it.
pub(crate) trait Device {
    /// The next message, without waiting.
    fn receive(&mut self) -> Result<Received, HostError>;

    /// Whether it takes a message now. One that it does not take now waits in the program.
    fn is_ready(&self) -> bool;

    /// Takes a message.
    fn send(&mut self, message: &[Datum]) -> Result<(), HostError>;

    /// Hands on what it has taken and not yet handed on, as far as that goes without waiting.
    fn flush(&mut self) -> Result<(), HostError>;

    /// Whether it holds something to be handed on.
    fn holds_output(&self) -> bool;

    /// Whether [`Device::receive`] would have something that no descriptor tells of.
    fn holds_input(&self) -> bool;

    /// Before a sleep: asks for a sign those who give one only when asked; for messages if `reading`, and for room for
    /// what is held. Whether what is waited for has come meanwhile.
    fn arm(&mut self, _reading: bool) -> Result<bool, HostError> {
        Ok(false)
    }

    /// What to wait for: for messages if `reading`, and for room for what is held.
    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>);

    /// What a wait has found: for each descriptor that [`Device::watch`] named, in order, whether something has happened
    /// there. Only after a wait for messages; a device that asks the system anyway need not listen.
    fn woken(&mut self, _happened: &[bool]) {}

    /// Whether its descriptors may be closed before the run ends.
    fn lifetime(&self) -> Lifetime {
        Lifetime::Run
    }

    /// How many messages were lost, each kind with its reason.
    fn losses(&self) -> Vec<(u64, &'static str)>;
}

/// How long it is believed that nothing has come, once the system has said so: an engine looks at its inputs at every
/// turn, and each look would be a system call. A program that waits hears of news at once, since the wait asks for itself.
const EMPTY_POLL_VALIDITY: Duration = Duration::from_micros(20);

/// When the system was last asked for news.
#[derive(Default)]
pub(crate) struct PollThrottle(Option<Instant>);

impl PollThrottle {
    /// It has just been asked.
    pub(crate) fn renew(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Whether what it said is still believed.
    pub(crate) fn is_recent(&self) -> bool {
        self.0.is_some_and(|asked| asked.elapsed() < EMPTY_POLL_VALIDITY)
    }
}

/// Opens a device for its channels.
pub(crate) fn open(program: &Program, name: &Name, ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    Ok(match name {
        Name::Udp(place) => Box::new(udp::Udp::open(program, *place, ends)?),
        Name::Tcp(place) => Box::new(tcp::Tcp::open(program, *place, ends)?),
        Name::Can(bus) => Box::new(can::Can::open(program, bus, ends)?),
        Name::Files(_) | Name::Ring(_) | Name::Tap(_) | Name::Packet(_) => platform::open(program, name, ends)?,
    })
}

/// Which of the descriptors can be read now, in one question for all of them.
fn readable<'d>(descriptors: impl Iterator<Item = BorrowedFd<'d>>) -> Vec<bool> {
    let mut asked: Vec<PollFd<'_>> =
        descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
    match poll(&mut asked, Some(&timespec(Duration::ZERO))) {
        // Hang-up and errors count: reading then tells.
        Ok(count) if count > 0 => asked.iter().map(|asked| !asked.revents().is_empty()).collect(),
        Ok(_) | Err(_) => vec![false; asked.len()],
    }
}
