//! `udp:`: messages of an address, a port and bytes. A channel whose messages begin with a `pid` has a socket for each
//! instance that the `pid` may name, and the `pid` selects the socket.
//!
//! Datagrams may be lost, so that no error of a single datagram ends the program: a datagram for which the socket's
//! buffer has no room, that is longer than the bound of the channel's type, or that the system refuses to send is
//! counted.

use super::platform::dropped_datagrams;
use super::{Device, Ends, PollThrottle, Received, readable};
use crate::binding::SocketEndpoint;
use crate::drivers::message_codec::{FieldKind, MessageCodec, Value, begins_with_pid};
use crate::error::{HostCode, HostError, reason};
use crate::poller::Interest;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, Program};
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// The largest possible datagram.
const MAX_DATAGRAM_BYTES: usize = 65_536;
/// Datagrams held while the system has no room for them.
const MAX_HELD: usize = 64;

const PLAIN: &[FieldKind<'_>] = &[FieldKind::Address, FieldKind::Number(u16::MAX as u64), FieldKind::Bytes];
const OWNED: &[FieldKind<'_>] =
    &[FieldKind::Id, FieldKind::Address, FieldKind::Number(u16::MAX as u64), FieldKind::Bytes];

/// The sockets of one or two channels.
pub(super) struct Udp {
    input: Option<MessageCodec>,
    output: Option<MessageCodec>,
    /// One, or one for each instance.
    sockets: Vec<UdpSocket>,
    endpoint_is_ipv6: bool,
    /// Sockets that had datagrams at the last poll.
    ready: VecDeque<usize>,
    /// The time of the last poll.
    last_poll: PollThrottle,
    /// Whether datagrams arrive faster than the program sleeps: a socket is then read until it is empty.
    dense: bool,
    /// Datagrams that could not be sent immediately.
    held: VecDeque<(usize, SocketAddr, Vec<u8>)>,
    buffer: Vec<u8>,
    too_long: u64,
    refused: u64,
}

impl Udp {
    pub(super) fn open(program: &Program, endpoint: SocketEndpoint, ends: Ends<'_>) -> Result<Udp, HostError> {
        let codec = |channel: &Channel| {
            let (fields, example) = if begins_with_pid(program, channel) {
                (OWNED, "(pid(P), u32, u16, bytes[<=1472])`: whose socket, address, port, content")
            } else {
                (PLAIN, "(u32, u16, bytes[<=1472])`: address, port, content")
            };
            let codec = MessageCodec::of_channel(program, channel, "udp", fields, example)?;
            codec.check_family(channel, "udp", endpoint.0)?;
            Ok(codec)
        };
        let input = ends.input.map(codec).transpose()?;
        let output = ends.output.map(codec).transpose()?;
        let owners = |codec: &Option<MessageCodec>| codec.as_ref().map(|codec| codec.instances().map(<[u32]>::to_vec));
        let owners = match (owners(&input), owners(&output)) {
            (Some(one), Some(other)) if one != other => {
                return Err(HostError::usage(
                    HostCode::Type,
                    "the two channels of one `udp` driver name different processes",
                )
                .help("let both begin with the same `pid(...)`, or neither"));
            }
            (Some(owners), _) | (None, Some(owners)) => owners,
            (None, None) => None,
        };
        let count = owners.map_or(1, |owners| owners.len());
        let sockets: Result<Vec<UdpSocket>, HostError> = (0..count).map(|number| bind(endpoint, number)).collect();
        Ok(Udp {
            input,
            output,
            sockets: sockets?,
            endpoint_is_ipv6: endpoint.0.is_ipv6(),
            ready: VecDeque::new(),
            last_poll: PollThrottle::default(),
            dense: false,
            held: VecDeque::new(),
            buffer: vec![0; MAX_DATAGRAM_BYTES],
            too_long: 0,
            refused: 0,
        })
    }

    /// Sends one datagram; whether there was room for it.
    fn transmit(&mut self, socket: usize, to: SocketAddr, content: &[u8]) -> bool {
        loop {
            match self.sockets[socket].send_to(content, to) {
                Ok(_) => return true,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return false,
                    _ => {
                        self.refused += 1;
                        return true;
                    }
                },
            }
        }
    }

    /// The next datagram: its socket, its length in `buffer`, and its sender.
    fn next(&mut self) -> Option<(usize, usize, SocketAddr)> {
        if self.ready.is_empty() && !self.last_poll.is_recent() {
            match self.sockets.as_slice() {
                // Reading polls too.
                [_] => self.ready.push_back(0),
                sockets => {
                    let ready = readable(sockets.iter().map(AsFd::as_fd));
                    self.find(&ready);
                }
            }
            self.last_poll.renew();
        }
        while let Some(socket) = self.ready.pop_front() {
            match self.sockets[socket].recv_from(&mut self.buffer) {
                Ok((length, from)) => {
                    if self.dense {
                        // After the others, so that none of them starves.
                        self.ready.push_back(socket);
                    }
                    return Some((socket, length, from));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // An error is that of an earlier datagram without a receiver.
                Err(_) => self.ready.push_back(socket),
            }
        }
        None
    }

    fn find(&mut self, ready: &[bool]) {
        self.ready = ready.iter().enumerate().filter_map(|(at, ready)| ready.then_some(at)).collect();
    }
}

fn bind(endpoint: SocketEndpoint, number: usize) -> Result<UdpSocket, HostError> {
    let port = match endpoint.0.port() {
        0 => Some(0),
        first => u16::try_from(number).ok().and_then(|number| first.checked_add(number)),
    };
    let Some(port) = port else {
        return Err(HostError::usage(
            HostCode::Driver,
            format!("driver `udp:{endpoint}` needs more ports than there are"),
        )
        .help("write `udp:0`: the system then chooses them"));
    };
    let mut address = endpoint.0;
    address.set_port(port);
    let opened = UdpSocket::bind(address).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    opened.map_err(|error| {
        HostError::new(
            HostCode::Device,
            format!("cannot open UDP port {port} of {}: {}", endpoint.0.ip(), reason(&error)),
        )
    })
}

impl Device for Udp {
    fn receive(&mut self) -> Result<Received, HostError> {
        while let Some((socket, length, from)) = self.next() {
            let Some(codec) = &self.input else { continue };
            // The datagram is dropped instead of truncated.
            if length > codec.bytes_bound() {
                self.too_long += 1;
                continue;
            }
            let mut values = Vec::with_capacity(4);
            if codec.instances().is_some() {
                values.push(Value::Number(socket as i128));
            }
            values.push(Value::Address(Some(from.ip().to_canonical())));
            values.push(Value::Number(i128::from(from.port())));
            values.push(Value::Bytes(self.buffer[..length].to_vec()));
            match codec.encode(values) {
                Ok(message) => return Ok(Received::Message(message)),
                Err(_) => self.too_long += 1,
            }
        }
        Ok(Received::Nothing)
    }

    fn is_ready(&self) -> bool {
        self.held.len() < MAX_HELD
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let Some(codec) = &self.output else { return Ok(()) };
        let mut values = codec.decode(message);
        let Some(content) = values.pop().map(Value::into_bytes) else { return Ok(()) };
        let port = values.pop().map_or(0, |port| port.number() as u16);
        let address = values.pop().and_then(|address| address.address());
        let socket = values.pop().map_or(0, |socket| socket.number().max(0) as usize);
        // No address has another length. An IPv6 socket reaches IPv4 addresses in their mapped form.
        let Some(address) = address else {
            self.refused += 1;
            return Ok(());
        };
        let to = match (address, self.endpoint_is_ipv6) {
            (IpAddr::V4(address), true) => SocketAddr::new(address.to_ipv6_mapped().into(), port),
            (IpAddr::V4(_), false) | (IpAddr::V6(_), _) => SocketAddr::new(address, port),
        };
        if !self.held.is_empty() || !self.transmit(socket, to, &content) {
            self.held.push_back((socket, to, content));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), HostError> {
        while let Some((socket, to, content)) = self.held.pop_front() {
            if !self.transmit(socket, to, &content) {
                self.held.push_front((socket, to, content));
                break;
            }
        }
        Ok(())
    }

    fn holds_output(&self) -> bool {
        !self.held.is_empty()
    }

    fn holds_input(&self) -> bool {
        !self.ready.is_empty()
    }

    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>) {
        if reading {
            watched.extend(self.sockets.iter().map(|socket| (socket.as_fd(), PollFlags::IN)));
        }
        if let Some((socket, ..)) = self.held.front() {
            watched.push((self.sockets[*socket].as_fd(), PollFlags::OUT));
        }
    }

    fn woken(&mut self, happened: &[bool]) {
        // The sockets come first, if they were watched at all.
        if let Some(ready) = happened.get(..self.sockets.len()) {
            self.dense = self.last_poll.is_recent();
            self.find(ready);
            self.last_poll.renew();
        }
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        let overrun = self.sockets.iter().map(|socket| dropped_datagrams(socket.as_fd())).sum();
        vec![
            (overrun, "faster than the program received them"),
            (self.too_long, "longer than the channel's type holds"),
            (self.refused, "not sent"),
        ]
    }
}
