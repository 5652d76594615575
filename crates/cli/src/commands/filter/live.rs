//! The packets of an interface, as if they were in a capture.

use crate::terminal::say;
use quaject_esp_run::{HostError, Signals};
use quaject_filter::af_xdp::AfXdp;
use quaject_filter::capture::{CapturedPacket, link_type};
use quaject_filter::pcap::{Live, Pcap, PcapError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// The link type of what AF_XDP gives.
const ETHERNET: i32 = 1;

/// What becomes of packets that are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// They go where they were to go: AF_PACKET.
    Overhear,
    /// They come here and nowhere else: AF_XDP.
    Take,
}

/// An interface that is listened to.
enum Listener<'p> {
    Overhears(Live<'p>),
    Takes(AfXdp),
}

impl Listener<'_> {
    /// The next packet, once there is one; its number is that of the one before.
    fn next_packet(&mut self, number: u64, link_type: i32) -> Result<Option<CapturedPacket<'_>>, String> {
        Ok(match self {
            Listener::Overhears(live) => {
                live.next_packet().map_err(|why| why.to_string())?.map(|packet| CapturedPacket {
                    number: number + 1,
                    link_type,
                    seconds: packet.seconds,
                    nanoseconds: packet.nanoseconds,
                    wire_length: packet.wire_length,
                    data: packet.data,
                })
            }
            Listener::Takes(own) => own.next_frame().map_err(|why| why.to_string())?.map(|frame| CapturedPacket {
                number: number + 1,
                link_type,
                seconds: frame.seconds,
                nanoseconds: frame.nanoseconds,
                wire_length: frame.data.len() as u32,
                data: frame.data,
            }),
        })
    }

    fn lost(&mut self) -> u64 {
        match self {
            Listener::Overhears(live) => live.lost(),
            Listener::Takes(own) => own.lost(),
        }
    }
}

impl AsFd for Listener<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Overhears(live) => live.as_fd(),
            Listener::Takes(own) => own.as_fd(),
        }
    }
}

/// What passes an interface, from the moment this is made.
pub(crate) struct Source<'p> {
    name: String,
    listener: Listener<'p>,
    link_type: i32,
    signals: Signals,
    /// How many are wanted; all until a signal comes if that is not said.
    most: Option<u64>,
}

impl<'p> Source<'p> {
    /// Listens.
    pub(crate) fn open(pcap: &'p Pcap, name: &str, way: Way, most: Option<u64>) -> Result<Source<'p>, HostError> {
        let signals = Signals::listen()?;
        let (listener, link_type, how) = match way {
            Way::Overhear => {
                let live = pcap.listen(name).map_err(|why: PcapError| {
                    HostError::new(format!("cannot listen to `{name}`: {why}")).help(
                        "`ip link` lists the interfaces; it takes root, or a `qj` after `setcap cap_net_raw+ep`, to listen to them",
                    )
                })?;
                let link_type = link_type(live.link_type());
                (Listener::Overhears(live), link_type, "listening to")
            }
            Way::Take => {
                let own = AfXdp::open(name).map_err(|why| {
                    HostError::new(format!("cannot take the packets of `{name}`: {why}")).help(why.help())
                })?;
                let how = if own.is_in_driver() { "taking, in the driver, all of" } else { "taking all of" };
                (Listener::Takes(own), ETHERNET, how)
            }
        };
        say(&format!("{how} {name}\n"));
        Ok(Source { name: name.to_owned(), listener, link_type, signals, most })
    }

    /// The number of its link type in captures.
    pub(crate) fn link_type(&self) -> i32 {
        self.link_type
    }

    /// Gives every packet to `take` until there were as many as wanted, or SIGINT or SIGTERM comes. What was lost is said
    /// in the end: how many.
    pub(crate) fn each(
        &mut self,
        mut take: impl FnMut(CapturedPacket<'_>) -> Result<(), HostError>,
    ) -> Result<u64, HostError> {
        let mut number = 0;
        while self.most.is_none_or(|most| number < most) && self.signals.pending().is_none() {
            let next = self.listener.next_packet(number, self.link_type);
            match next.map_err(|why| {
                HostError::new(format!("`{}` after packet {number}: {why}", self.name))
                    .help("the packets before were looked at; `ip link` tells which interfaces there are, and whether they are up")
            })? {
                Some(packet) => {
                    number += 1;
                    take(packet)?;
                }
                None => {
                    let mut ready = [
                        PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
                        PollFd::from_borrowed_fd(self.signals.descriptor(), PollFlags::IN),
                    ];
                    match poll(&mut ready, None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(HostError::new(format!("cannot wait for `{}`: {error}", self.name))),
                    }
                }
            }
        }
        Ok(self.listener.lost())
    }
}
