//! Packets of a host that want an answer of equal content: datagrams and pings, sent again until it comes, and again
//! after pauses.

use super::talk::{Fate, Plan, Verdict};
use crate::SECOND_NS;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::{icmp, udp};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress, IpEndpoint, IpListenEndpoint};

/// Between two tries, and how many there are.
const RETRY_NS: i64 = SECOND_NS;
const TRIES: u16 = 30;
/// What a late answer says, behind what makes the question one's own, and how long one waits for it.
pub(crate) const LATE: &[u8] = b"late";
const LATE_S: i64 = 20;
/// Where a question says how late, behind its round.
pub(crate) const OWN: usize = 10;

#[derive(Clone, Debug)]
pub(crate) struct Packets {
    pub(crate) protocol: Protocol,
    pub(crate) content: Vec<u8>,
    /// After each an answer is wanted again.
    pub(crate) pauses: Vec<i64>,
    /// Asks, when all else has been answered, for one answer more so many seconds later.
    pub(crate) late: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Udp,
    Ping,
}

/// How far it has come.
pub(crate) struct Course {
    packets: Packets,
    fate: Fate,
    target: IpEndpoint,
    local: u16,
    /// What makes the content one that nobody else has.
    own: Vec<u8>,
    /// Hears what becomes of datagrams that nobody wants.
    errors: Option<SocketHandle>,
    pub(crate) heard: usize,
    round: usize,
    /// Whether nothing is asked any more, but a late answer is to come.
    waits: bool,
    tries: u16,
    /// When it goes on by itself.
    pub(crate) next_ns: i64,
}

impl Course {
    pub(crate) fn begin(
        plan: &Plan,
        packets: Packets,
        local: u16,
        own: Vec<u8>,
        sockets: &mut SocketSet<'static>,
    ) -> (SocketHandle, Course) {
        let from = IpListenEndpoint { addr: Some(IpAddress::Ipv4(plan.source)), port: local };
        let icmp_socket = |endpoint| {
            let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 32], vec![0; 50_000]);
            let mut socket = icmp::Socket::new(buffer(), buffer());
            socket.bind(endpoint).expect("it is not bound yet");
            socket
        };
        let mut errors = None;
        let handle = match packets.protocol {
            Protocol::Udp => {
                if plan.fate == Fate::Refused {
                    errors = Some(sockets.add(icmp_socket(icmp::Endpoint::Udp(local.into()))));
                }
                let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 32], vec![0; 50_000]);
                let mut socket = udp::Socket::new(buffer(), buffer());
                socket.bind(from).expect("it is not bound yet");
                sockets.add(socket)
            }
            Protocol::Ping => sockets.add(icmp_socket(icmp::Endpoint::Ident(local))),
        };
        let target = IpEndpoint::new(IpAddress::Ipv4(plan.target), plan.port);
        let (fate, heard, round, waits, tries, next_ns) = (plan.fate, 0, 0, false, 0, 0);
        (handle, Course { packets, fate, target, local, own, errors, heard, round, waits, tries, next_ns })
    }

    /// Goes on: whether anything has changed, and what has become of it, if it is over; or what is wrong.
    pub(crate) fn step(
        &mut self,
        sockets: &mut SocketSet<'static>,
        handle: SocketHandle,
        now_ns: i64,
    ) -> (bool, Result<Option<Verdict>, String>) {
        let content = self.content();
        let mut verdict = Ok(None);
        while let Some(heard) = self.hear(sockets, handle) {
            if self.waits && heard == [&content[..self.own.len()], LATE].concat() {
                self.waits = false;
                let forgotten = self.fate == Fate::Forgotten;
                verdict = if forgotten { Err("the late answer has come".to_string()) } else { Ok(Some(Verdict::Done)) };
            }
            // What is late answers another content.
            let ours = self.own.len() + 1;
            if heard.get(..ours) != content.get(..ours) {
                continue;
            }
            if heard != content {
                verdict = Err("other bytes have come".to_string());
            } else if matches!(self.fate, Fate::Refused | Fate::Ignored) {
                verdict = Err("somebody has answered".to_string());
            } else if self.tries > 0 {
                self.heard += heard.len();
                self.tries = 0;
                match (self.packets.pauses.get(self.round), self.packets.late) {
                    (Some(pause_ns), _) => self.next_ns = now_ns + pause_ns,
                    (None, Some(late_s)) => {
                        self.waits = true;
                        self.next_ns = now_ns + (i64::from(late_s) + LATE_S) * SECOND_NS;
                    }
                    (None, None) => verdict = Ok(Some(Verdict::Done)),
                }
                self.round += 1;
            }
        }
        if self.is_refused(sockets) {
            verdict = Ok(Some(Verdict::Done));
        }
        if verdict != Ok(None) || now_ns < self.next_ns {
            return (verdict != Ok(None), verdict);
        }
        if self.tries == TRIES || self.waits {
            let ignored = self.fate == if self.waits { Fate::Forgotten } else { Fate::Ignored };
            return (true, Ok(Some(if ignored { Verdict::Done } else { Verdict::TimedOut })));
        }
        self.tries += 1;
        self.next_ns = now_ns + RETRY_NS;
        self.say(sockets, handle, &self.content());
        (true, Ok(None))
    }

    fn content(&self) -> Vec<u8> {
        match self.fate {
            // A refusal quotes eight bytes, and smoltcp knows it only if those are the whole datagram.
            Fate::Refused => Vec::new(),
            Fate::Served | Fate::Ignored | Fate::Forgotten => {
                let late = self.packets.late.map_or(Vec::new(), |late_s| late_s.to_be_bytes().to_vec());
                [&self.own[..], &[self.round as u8], &late, &self.packets.content].concat()
            }
        }
    }

    fn say(&self, sockets: &mut SocketSet<'static>, handle: SocketHandle, content: &[u8]) {
        match self.packets.protocol {
            Protocol::Udp => {
                let socket: &mut udp::Socket<'_> = sockets.get_mut(handle);
                // While a neighbour is looked for there may be no room, which is as good as a loss.
                let _ = socket.send_slice(content, self.target);
            }
            Protocol::Ping => {
                let socket: &mut icmp::Socket<'_> = sockets.get_mut(handle);
                let ping = Icmpv4Repr::EchoRequest { ident: self.local, seq_no: self.tries, data: content };
                if let Ok(room) = socket.send(ping.buffer_len(), self.target.addr) {
                    ping.emit(&mut Icmpv4Packet::new_unchecked(room), &ChecksumCapabilities::default());
                }
            }
        }
    }

    fn hear(&self, sockets: &mut SocketSet<'static>, handle: SocketHandle) -> Option<Vec<u8>> {
        match self.packets.protocol {
            Protocol::Udp => {
                let socket: &mut udp::Socket<'_> = sockets.get_mut(handle);
                let (content, from) = socket.recv().ok()?;
                Some(if from.endpoint == self.target { content.to_vec() } else { Vec::new() })
            }
            Protocol::Ping => {
                let socket: &mut icmp::Socket<'_> = sockets.get_mut(handle);
                let (packet, from) = socket.recv().ok()?;
                let packet = Icmpv4Packet::new_checked(packet).ok()?;
                match Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()) {
                    Ok(Icmpv4Repr::EchoReply { data, .. }) if from == self.target.addr => Some(data.to_vec()),
                    Ok(_) | Err(_) => Some(Vec::new()),
                }
            }
        }
    }

    /// Whether somebody says that nobody wants it.
    fn is_refused(&self, sockets: &mut SocketSet<'static>) -> bool {
        let Some(errors) = self.errors else { return false };
        let socket: &mut icmp::Socket<'_> = sockets.get_mut(errors);
        let mut refused = false;
        while let Ok((packet, _)) = socket.recv() {
            let packet = Icmpv4Packet::new_checked(packet);
            let said = packet.as_ref().map(|packet| Icmpv4Repr::parse(packet, &ChecksumCapabilities::default()));
            refused |= matches!(said, Ok(Ok(Icmpv4Repr::DstUnreachable { .. })));
        }
        refused
    }

    pub(crate) fn end(&self, sockets: &mut SocketSet<'static>) {
        if let Some(errors) = self.errors {
            sockets.remove(errors);
        }
    }
}
