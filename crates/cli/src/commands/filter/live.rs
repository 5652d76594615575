//! The packets of an interface, as if they were in a capture.

use super::capture::{Recorded, link_type};
use crate::terminal::say;
use quaject_esp_run::{Signals, Trouble};
use quaject_filter::pcap::{Live, Pcap, Refused};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// What passes an interface, from the moment this is made.
pub(crate) struct Source<'p> {
    name: String,
    live: Live<'p>,
    signals: Signals,
    /// How many are wanted; all until a signal comes if that is not said.
    most: Option<u64>,
}

impl<'p> Source<'p> {
    /// Listens.
    pub(crate) fn open(pcap: &'p Pcap, name: &str, most: Option<u64>) -> Result<Source<'p>, Trouble> {
        let refused = |why: Refused| {
            Trouble::new(format!("cannot listen to `{name}`: {why}")).help(
                "`ip link` lists the interfaces; it takes root, or a `qj` after `setcap cap_net_raw+ep`, to listen to them",
            )
        };
        let live = pcap.listen(name).map_err(refused)?;
        say(&format!("listening to {name}\n"));
        Ok(Source { name: name.to_owned(), live, signals: Signals::listen()?, most })
    }

    /// The number of its link type in captures.
    pub(crate) fn link_type(&self) -> i32 {
        link_type(self.live.link_type())
    }

    /// Gives every packet to `take` until there were as many as wanted, or SIGINT or SIGTERM comes. What was lost is said
    /// in the end: how many.
    pub(crate) fn each(&mut self, mut take: impl FnMut(Recorded<'_>) -> Result<(), Trouble>) -> Result<u64, Trouble> {
        let link_type = self.link_type();
        let mut number = 0;
        while self.most.is_none_or(|most| number < most) && self.signals.pending().is_none() {
            let gone = |why: Refused| Trouble::new(format!("`{}` after packet {number}: {why}", self.name));
            match self.live.next_packet().map_err(gone)? {
                Some(packet) => {
                    number += 1;
                    take(Recorded {
                        number,
                        link_type,
                        seconds: packet.seconds,
                        nanoseconds: packet.nanoseconds,
                        wire_length: packet.wire_length,
                        data: packet.data,
                    })?;
                }
                None => {
                    let mut ready = [
                        PollFd::from_borrowed_fd(self.live.as_fd(), PollFlags::IN),
                        PollFd::from_borrowed_fd(self.signals.descriptor(), PollFlags::IN),
                    ];
                    match poll(&mut ready, None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(Trouble::new(format!("cannot wait for `{}`: {error}", self.name))),
                    }
                }
            }
        }
        Ok(self.live.lost())
    }
}
