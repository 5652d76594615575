//! Requests of a host whose answers must have equal content: datagrams and pings, retransmitted until the answer
//! arrives, and repeated after pauses.

use super::goal::{Expected, Goal, Verdict};
use crate::SECOND_NS;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::{icmp, udp};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress, IpEndpoint, IpListenEndpoint};

/// The time between two transmissions, and their number.
const RETRY_NS: i64 = SECOND_NS;
const MAX_TRIES: u16 = 30;
/// The content of a late answer, after the unique prefix of its request, and how long the host awaits_late_answer for
/// it.
pub(crate) const LATE: &[u8] = b"late";
const LATE_S: i64 = 20;
/// The length of the unique prefix; round and delay of the late answer follow.
pub(crate) const PREFIX: usize = 10;

#[derive(Clone, Debug)]
pub(crate) struct Packets {
    pub(crate) protocol: Protocol,
    pub(crate) content: Vec<u8>,
    /// After each the request is repeated.
    pub(crate) pauses: Vec<i64>,
    /// After all other answers: the delay in seconds of one more.
    pub(crate) late: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Udp,
    Ping,
}

/// Requests in progress.
pub(crate) struct Requests {
    packets: Packets,
    expected: Expected,
    target: IpEndpoint,
    local: u16,
    /// The unique prefix of the content.
    prefix: Vec<u8>,
    /// Receives ICMP errors, if they are expected.
    errors: Option<SocketHandle>,
    pub(crate) received: usize,
    round: usize,
    /// Whether only the late answer is missing.
    awaits_late_answer: bool,
    tries: u16,
    /// The time of its next action.
    pub(crate) next_ns: i64,
}

impl Requests {
    pub(crate) fn begin(
        goal: &Goal,
        packets: Packets,
        local: u16,
        prefix: Vec<u8>,
        sockets: &mut SocketSet<'static>,
    ) -> (SocketHandle, Requests) {
        let from = IpListenEndpoint { addr: Some(IpAddress::Ipv4(goal.source)), port: local };
        let icmp_socket = |endpoint| {
            let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 32], vec![0; 50_000]);
            let mut socket = icmp::Socket::new(buffer(), buffer());
            socket.bind(endpoint).expect("it is not bound yet");
            socket
        };
        let mut errors = None;
        let handle = match packets.protocol {
            Protocol::Udp => {
                if goal.expected == Expected::Refused {
                    errors = Some(sockets.add(icmp_socket(icmp::Endpoint::Udp(local.into()))));
                }
                let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 32], vec![0; 50_000]);
                let mut socket = udp::Socket::new(buffer(), buffer());
                socket.bind(from).expect("it is not bound yet");
                sockets.add(socket)
            }
            Protocol::Ping => sockets.add(icmp_socket(icmp::Endpoint::Ident(local))),
        };
        let target = IpEndpoint::new(IpAddress::Ipv4(goal.target), goal.port);
        let (expected, received, round, awaits_late_answer, tries, next_ns) = (goal.expected, 0, 0, false, 0, 0);
        (
            handle,
            Requests {
                packets,
                expected,
                target,
                local,
                prefix,
                errors,
                received,
                round,
                awaits_late_answer,
                tries,
                next_ns,
            },
        )
    }

    /// Continues: whether anything has changed, and the verdict, if there is one, or a description of the error.
    pub(crate) fn step(
        &mut self,
        sockets: &mut SocketSet<'static>,
        handle: SocketHandle,
        now_ns: i64,
    ) -> (bool, Result<Option<Verdict>, String>) {
        let content = self.content();
        let mut verdict = Ok(None);
        while let Some(received) = self.receive(sockets, handle) {
            if self.awaits_late_answer && received == [&content[..self.prefix.len()], LATE].concat() {
                self.awaits_late_answer = false;
                let forgotten = self.expected == Expected::Forgotten;
                verdict =
                    if forgotten { Err("the late answer has arrived".to_string()) } else { Ok(Some(Verdict::Done)) };
            }
            // A late answer belongs to an earlier round.
            let ours = self.prefix.len() + 1;
            if received.get(..ours) != content.get(..ours) {
                continue;
            }
            if received != content {
                verdict = Err("other bytes have arrived".to_string());
            } else if matches!(self.expected, Expected::Refused | Expected::Ignored) {
                verdict = Err("a peer has answered".to_string());
            } else if self.tries > 0 {
                self.received += received.len();
                self.tries = 0;
                match (self.packets.pauses.get(self.round), self.packets.late) {
                    (Some(pause_ns), _) => self.next_ns = now_ns + pause_ns,
                    (None, Some(late_s)) => {
                        self.awaits_late_answer = true;
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
        if self.tries == MAX_TRIES || self.awaits_late_answer {
            let ignored =
                self.expected == if self.awaits_late_answer { Expected::Forgotten } else { Expected::Ignored };
            return (true, Ok(Some(if ignored { Verdict::Done } else { Verdict::TimedOut })));
        }
        self.tries += 1;
        self.next_ns = now_ns + RETRY_NS;
        self.send(sockets, handle, &self.content());
        (true, Ok(None))
    }

    fn content(&self) -> Vec<u8> {
        match self.expected {
            // A refusal quotes eight bytes, and smoltcp knows it only if those are the whole datagram.
            Expected::Refused => Vec::new(),
            Expected::Served | Expected::Ignored | Expected::Forgotten => {
                let late = self.packets.late.map_or(Vec::new(), |late_s| late_s.to_be_bytes().to_vec());
                [&self.prefix[..], &[self.round as u8], &late, &self.packets.content].concat()
            }
        }
    }

    fn send(&self, sockets: &mut SocketSet<'static>, handle: SocketHandle, content: &[u8]) {
        match self.packets.protocol {
            Protocol::Udp => {
                let socket: &mut udp::Socket<'_> = sockets.get_mut(handle);
                // During address resolution the queue may be full, which equals a loss.
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

    fn receive(&self, sockets: &mut SocketSet<'static>, handle: SocketHandle) -> Option<Vec<u8>> {
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

    /// Whether an ICMP error reports a closed port.
    fn is_refused(&self, sockets: &mut SocketSet<'static>) -> bool {
        let Some(errors) = self.errors else { return false };
        let socket: &mut icmp::Socket<'_> = sockets.get_mut(errors);
        let mut refused = false;
        while let Ok((packet, _)) = socket.recv() {
            let packet = Icmpv4Packet::new_checked(packet);
            let report = packet.as_ref().map(|packet| Icmpv4Repr::parse(packet, &ChecksumCapabilities::default()));
            refused |= matches!(report, Ok(Ok(Icmpv4Repr::DstUnreachable { .. })));
        }
        refused
    }

    pub(crate) fn end(&self, sockets: &mut SocketSet<'static>) {
        if let Some(errors) = self.errors {
            sockets.remove(errors);
        }
    }
}
