//! Captures the packets of an interface.

use crate::commands::filter::sources::Access;
use crate::terminal::Terminal;
use quaject_esp_run::{HostCode, HostError, LinkMonitor, Signals};
use quaject_filter::af_xdp::AfXdp;
use quaject_filter::capture::CapturedPacket;
use quaject_filter::link::{LinkLayer, link_type};
use quaject_filter::pcap::{Live, Pcap, PcapError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// The link layer of frames from AF_XDP.
const ETHERNET: LinkLayer = LinkLayer::native(1);

/// A socket that receives the packets of an interface.
enum Receiver<'p> {
    Packet(Live<'p>),
    Xdp(AfXdp),
}

impl Receiver<'_> {
    /// The next packet, if there is one; `number` is that of the previous packet.
    fn next_packet(&mut self, number: u64, link: LinkLayer) -> Result<Option<CapturedPacket<'_>>, String> {
        Ok(match self {
            Receiver::Packet(live) => {
                live.next_packet().map_err(|error| error.to_string())?.map(|packet| CapturedPacket {
                    number: number + 1,
                    link,
                    seconds: packet.seconds,
                    nanoseconds: packet.nanoseconds,
                    wire_length: packet.wire_length,
                    data: packet.data,
                })
            }
            Receiver::Xdp(own) => own.next_frame().map_err(|error| error.to_string())?.map(|frame| CapturedPacket {
                number: number + 1,
                link,
                seconds: frame.seconds,
                nanoseconds: frame.nanoseconds,
                wire_length: frame.data.len() as u32,
                data: frame.data,
            }),
        })
    }

    fn lost(&mut self) -> u64 {
        match self {
            Receiver::Packet(live) => live.lost(),
            Receiver::Xdp(own) => own.lost(),
        }
    }
}

impl AsFd for Receiver<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Receiver::Packet(live) => live.as_fd(),
            Receiver::Xdp(own) => own.as_fd(),
        }
    }
}

/// A capture of the packets of an interface, from its creation on.
pub(crate) struct InterfaceCapture<'p> {
    name: String,
    receiver: Receiver<'p>,
    link: LinkLayer,
    /// Of an interface that is received through libpcap, except `any`: libpcap waits for one that is down to come up
    /// again, and gets no word when it is removed meanwhile.
    monitor: Option<LinkMonitor>,
    signals: Signals,
    /// The number of packets after which the capture ends; without it, a signal ends the capture.
    max_packets: Option<u64>,
}

impl<'p> InterfaceCapture<'p> {
    /// Opens a socket on an interface.
    pub(crate) fn open(
        terminal: &Terminal,
        pcap: &'p Pcap,
        name: &str,
        access: Access,
        max_packets: Option<u64>,
    ) -> Result<InterfaceCapture<'p>, HostError> {
        let signals = Signals::listen_to_all()?;
        let (receiver, link, operation) = match access {
            Access::Shared => {
                let live = pcap.listen(name).map_err(|error: PcapError| {
                    HostError::new(HostCode::Device, format!("cannot listen to `{name}`: {error}")).help(
                        "`ip link` lists the interfaces; listening requires root, or `setcap cap_net_raw+ep` on `qj`",
                    )
                })?;
                let link = LinkLayer::native(link_type(live.link_type()));
                (Receiver::Packet(live), link, "listening to")
            }
            Access::Exclusive => {
                let own = AfXdp::open(name).map_err(|error| {
                    HostError::new(HostCode::Device, format!("cannot receive the packets of `{name}`: {error}"))
                        .help(error.help())
                })?;
                let operation = if own.is_in_driver() { "taking, in the driver, all of" } else { "taking all of" };
                (Receiver::Xdp(own), ETHERNET, operation)
            }
        };
        let monitor = match receiver {
            Receiver::Packet(_) => LinkMonitor::of(name).ok(),
            Receiver::Xdp(_) => None,
        };
        terminal.print_status(format!("{operation} {name}"));
        Ok(InterfaceCapture { name: name.to_owned(), receiver, link, monitor, signals, max_packets })
    }

    /// The link layer of the packets.
    pub(crate) fn link(&self) -> LinkLayer {
        self.link
    }

    /// Passes every packet to `take` until the maximum is reached, or SIGINT or SIGTERM arrives; the number of lost
    /// packets.
    pub(crate) fn each(
        &mut self,
        mut take: impl FnMut(CapturedPacket<'_>) -> Result<(), HostError>,
    ) -> Result<u64, HostError> {
        let mut number = 0;
        while self.max_packets.is_none_or(|max| number < max) && self.signals.pending().is_none() {
            match self.receiver.next_packet(number, self.link) {
                Err(error) => return Err(self.ended(number, &error)),
                Ok(Some(packet)) => {
                    number += 1;
                    take(packet)?;
                }
                Ok(None) => {
                    if self.monitor.as_ref().is_some_and(LinkMonitor::is_removed) {
                        return Err(self.ended(number, "the interface was removed"));
                    }
                    let mut ready = vec![
                        PollFd::from_borrowed_fd(self.receiver.as_fd(), PollFlags::IN),
                        PollFd::from_borrowed_fd(self.signals.descriptor(), PollFlags::IN),
                    ];
                    ready.extend(self.monitor.as_ref().map(|own| PollFd::from_borrowed_fd(own.as_fd(), PollFlags::IN)));
                    match poll(&mut ready, None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => {
                            return Err(HostError::new(
                                HostCode::System,
                                format!("cannot wait for `{}`: {error}", self.name),
                            ));
                        }
                    }
                }
            }
        }
        Ok(self.receiver.lost())
    }

    /// The error that ends a capture after a packet.
    fn ended(&self, number: u64, cause: &str) -> HostError {
        HostError::new(HostCode::Device, format!("`{}` after packet {number}: {cause}", self.name))
            .help("the packets before were processed; `ip link` lists the interfaces and their states")
    }
}
