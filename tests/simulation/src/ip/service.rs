//! The services of a simulated host: HTTP/1.0 with pages of every size, and echo over TCP and UDP. The content of a
//! page is a function of its name.

use super::packets::{LATE, PREFIX};
use crate::SECOND_NS;
use quaject_test_support::random::Random;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{Socket, tcp, udp};
use smoltcp::wire::{EthernetFrame, IpEndpoint, IpProtocol, Ipv4Packet, TcpPacket, TcpSeqNumber};
use std::collections::BTreeMap;

pub(crate) const HTTP: u16 = 80;
pub(crate) const ECHO: u16 = 7;
/// Echo of a datagram, and a late answer after the delay that the datagram requests.
pub(crate) const LATE_ECHO: u16 = 8;

/// Sockets that listen at each port: the number of connections that may begin at the same time.
const LISTENING: usize = 12;
/// The time without progress after which a connection is aborted: a router has dropped its state.
const IDLE_TIMEOUT_NS: i64 = 9_000 * SECOND_NS;

/// The page of a name like `1460-77`, 1,460 bytes that begin from 77; none of any other name.
pub(crate) fn page(name: &str) -> Option<Vec<u8>> {
    let (size, seed) = name.split_once('-')?;
    let (size, seed): (usize, u64) = (size.parse().ok()?, seed.parse().ok()?);
    let mut random = Random(seed + 1);
    Some((0..size).map(|_| random.byte()).collect())
}

/// The whole answer to a request.
pub(crate) fn answer(name: &str) -> Vec<u8> {
    let (status, page) = page(name).map_or(("404 Not Found", Vec::new()), |page| ("200 OK", page));
    [format!("HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n", page.len()).as_bytes(), &page].concat()
}

pub(crate) fn request(name: &str) -> Vec<u8> {
    format!("GET /{name} HTTP/1.0\r\n\r\n").into_bytes()
}

/// Whether a host has services, and their connections.
pub(crate) enum Services {
    None,
    Some(Box<Open>),
}

pub(crate) struct Open {
    /// Apart from the sockets of connections: smoltcp gives a segment to the first socket that takes it, and would
    /// begin a second connection with a SYN that comes twice.
    listeners: SocketSet<'static>,
    /// The last SYN.
    beginning: Option<Beginning>,
    connections: Vec<Connection>,
    datagrams: Vec<SocketHandle>,
    /// Late answers with their targets, by time and a number.
    late: BTreeMap<(i64, u64), (udp::UdpMetadata, Vec<u8>)>,
    number: u64,
}

/// A SYN: its ends and its sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Beginning {
    from: IpEndpoint,
    to: IpEndpoint,
    number: TcpSeqNumber,
}

pub(crate) struct Connection {
    handle: SocketHandle,
    port: u16,
    beginning: Beginning,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    progress: (usize, usize, tcp::State),
    progress_ns: i64,
    /// Whether both sides are closed.
    over: bool,
}

fn listener(port: u16) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; 8_192]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.listen(port).expect("it is new");
    socket
}

impl Services {
    /// With sockets among those of the host.
    pub(crate) fn open(sockets: &mut SocketSet<'static>) -> Services {
        let mut listeners = SocketSet::new(Vec::new());
        for port in [HTTP, ECHO] {
            for _ in 0..LISTENING {
                listeners.add(listener(port));
            }
        }
        let datagrams = [ECHO, LATE_ECHO].map(|port| {
            let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 400], vec![0; 400_000]);
            let mut socket = udp::Socket::new(buffer(), buffer());
            socket.bind(port).expect("it is not bound yet");
            sockets.add(socket)
        });
        let (connections, late) = (Vec::new(), BTreeMap::new());
        Services::Some(Box::new(Open {
            listeners,
            beginning: None,
            connections,
            datagrams: datagrams.to_vec(),
            late,
            number: 0,
        }))
    }

    /// The listening sockets, for a frame that begins a connection. An older connection of the same ends with another
    /// sequence number is removed: smoltcp would not answer, and its peer has closed it.
    pub(crate) fn listeners(
        &mut self,
        frame: &[u8],
        sockets: &mut SocketSet<'static>,
    ) -> Option<&mut SocketSet<'static>> {
        let Services::Some(open) = self else { return None };
        let beginning = Beginning::of(frame)?;
        if let Some(known) = open.connections.iter().position(|connection| connection.beginning.is_between(&beginning))
        {
            if open.connections[known].beginning == beginning {
                return None;
            }
            sockets.remove(open.connections.remove(known).handle);
        }
        open.beginning = Some(beginning);
        Some(&mut open.listeners)
    }

    /// Moves connections that have begun to the host's sockets, and replaces their listeners.
    pub(crate) fn accept(&mut self, sockets: &mut SocketSet<'static>) {
        let Services::Some(open) = self else { return };
        // A connection that is reset during its handshake listens again.
        open.connections.retain(|connection| {
            let listens = sockets.get::<tcp::Socket<'_>>(connection.handle).is_listening();
            if listens {
                sockets.remove(connection.handle);
            }
            !listens
        });
        let begun: Vec<SocketHandle> = open
            .listeners
            .iter()
            .filter_map(|(handle, socket)| match socket {
                Socket::Tcp(socket) => (!socket.is_listening()).then_some(handle),
                Socket::Udp(_) | Socket::Icmp(_) => None,
            })
            .collect();
        for handle in begun {
            let Socket::Tcp(socket) = open.listeners.remove(handle) else { unreachable!("no others listen") };
            let port = socket.listen_endpoint().port;
            open.listeners.add(listener(port));
            let beginning = open.beginning.take().expect("a SYN was heard");
            open.connections.push(Connection::new(sockets.add(socket), port, beginning));
        }
    }

    /// The time of its next action.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        let Services::Some(open) = self else { return None };
        let given_up = open.connections.iter().map(|connection| connection.progress_ns + IDLE_TIMEOUT_NS);
        given_up.chain(open.late.keys().next().map(|(due_ns, _)| *due_ns)).min()
    }

    /// Continues; whether anything has changed.
    pub(crate) fn step(&mut self, sockets: &mut SocketSet<'static>, now_ns: i64) -> bool {
        let Services::Some(open) = self else { return false };
        let mut moved = open.answer(sockets, now_ns);
        for connection in &mut open.connections {
            moved |= connection.step(sockets.get_mut(connection.handle), now_ns);
        }
        for connection in open.connections.extract_if(.., |connection| connection.over) {
            sockets.remove(connection.handle);
        }
        moved
    }
}

impl Open {
    /// Answers datagrams, at once or late.
    fn answer(&mut self, sockets: &mut SocketSet<'static>, now_ns: i64) -> bool {
        let mut moved = false;
        for handle in &self.datagrams {
            let socket: &mut udp::Socket<'_> = sockets.get_mut(*handle);
            let is_late = socket.endpoint().port == LATE_ECHO;
            while let Ok((content, from)) = socket.recv().map(|(content, from)| (content.to_vec(), from)) {
                moved |= socket.send_slice(&content, from).is_ok();
                if is_late {
                    let late_s = i64::from(u16::from_be_bytes([content[PREFIX + 1], content[PREFIX + 2]]));
                    let prefix = &content[..PREFIX];
                    // A repeated request replaces the earlier one.
                    self.late.retain(|_, (_, words)| !words.starts_with(prefix));
                    // Some may be lost.
                    for again_s in 0..3 {
                        let due_ns = now_ns + (late_s + again_s) * SECOND_NS;
                        self.late.insert((due_ns, self.number), (from, [prefix, LATE].concat()));
                        self.number += 1;
                    }
                }
            }
            while is_late && let Some(first) = self.late.first_entry().filter(|first| first.key().0 <= now_ns) {
                let (from, words) = first.remove();
                moved |= socket.send_slice(&words, from).is_ok();
            }
        }
        moved
    }
}

impl Beginning {
    /// None of a frame that begins no connection.
    fn of(frame: &[u8]) -> Option<Beginning> {
        let packet = Ipv4Packet::new_checked(EthernetFrame::new_checked(frame).ok()?.payload()).ok()?;
        if packet.next_header() != IpProtocol::Tcp {
            return None;
        }
        let segment = TcpPacket::new_checked(packet.payload()).ok()?;
        let from = IpEndpoint::new(packet.src_addr().into(), segment.src_port());
        let to = IpEndpoint::new(packet.dst_addr().into(), segment.dst_port());
        let number = segment.seq_number();
        (segment.syn() && !segment.ack()).then_some(Beginning { from, to, number })
    }

    fn is_between(&self, other: &Beginning) -> bool {
        (self.from, self.to) == (other.from, other.to)
    }
}

impl Connection {
    fn new(handle: SocketHandle, port: u16, beginning: Beginning) -> Connection {
        let (request, answer, progress) = (Vec::new(), Vec::new(), (0, 0, tcp::State::Closed));
        Connection { handle, port, beginning, request, answer, sent: 0, progress, progress_ns: 0, over: false }
    }

    fn step(&mut self, socket: &mut tcp::Socket<'static>, now_ns: i64) -> bool {
        let before = self.sent;
        let mut buffer = [0; 4_096];
        while socket.can_recv() && (self.port == HTTP || socket.can_send()) {
            let room = if self.port == HTTP { buffer.len() } else { socket.send_capacity() - socket.send_queue() };
            let Ok(count) = socket.recv_slice(&mut buffer[..room.min(4_096)]) else { break };
            if self.port == HTTP {
                self.request.extend_from_slice(&buffer[..count]);
                if self.answer.is_empty() && self.request.ends_with(b"\r\n\r\n") {
                    let request = String::from_utf8_lossy(&self.request);
                    self.answer = answer(request.split([' ', '/']).nth(2).unwrap_or(""));
                }
            } else {
                self.sent += socket.send_slice(&buffer[..count]).unwrap_or(0);
            }
        }
        if self.port == HTTP && !self.answer.is_empty() {
            self.sent += socket.send_slice(&self.answer[self.sent..]).unwrap_or(0);
            if self.sent == self.answer.len() {
                socket.close();
            }
        } else if socket.state() == tcp::State::CloseWait && !socket.can_recv() {
            socket.close();
        }
        let progress = (self.sent, socket.send_queue(), socket.state());
        if progress != self.progress {
            self.progress = progress;
            self.progress_ns = now_ns;
        } else if now_ns - self.progress_ns >= IDLE_TIMEOUT_NS {
            socket.abort();
            self.progress_ns = now_ns;
        }
        self.over = socket.state() == tcp::State::Closed && socket.remote_endpoint().is_none();
        before != self.sent
    }
}
