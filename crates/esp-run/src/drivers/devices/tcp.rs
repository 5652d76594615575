//! `tcp:`: connections as messages. Each message begins with the number of its connection, which the driver chooses for
//! incoming connections and the program for outgoing ones; with a `pid`, it is one of the instances that the `pid` may
//! name.
//!
//! ```text
//!   events    opened address, port    accepted or established        requests    connect address, port
//!             data bytes                                                         data bytes
//!             sent                    all data so far is written                 close
//!             closed                  the peer sends no more
//!             failed code, reason     broken, or not established
//! ```
//!
//! A number is in use from `opened` or `connect` until the program sends `close`, whatever the peer does; while all are
//! in use, further connections wait in the system's queue. Events for which the type of the channel has no case are
//! dropped; without `failed`, a broken connection is reported as `closed`.

use super::{Device, Ends, Received, readable};
use crate::binding::SocketEndpoint;
use crate::drivers::failure::Failure;
use crate::drivers::message_codec::FieldKind::{Bytes, Cases, Id, Number};
use crate::drivers::message_codec::{Case, MessageCodec, Value};
use crate::error::{HostCode, HostError, reason};
use crate::poller::{Interest, Lifetime};
use crate::system::{self, is_ready};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::Program;
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};

/// Unsent bytes of one connection after which the channel takes no more messages.
const MAX_UNSENT_BYTES: usize = 256 * 1024;
/// Connections that the program has closed and the peer has not.
const MAX_LINGERING: usize = 256;
/// The maximum of bytes read at once.
const CHUNK: usize = 64 * 1024;

const OPENED: usize = 0;
const DATA: usize = 1;
const SENT: usize = 2;
const CLOSED: usize = 3;
const FAILED: usize = 4;
/// By the numbers above.
const EVENTS: &[Case<'_>] = &[
    Case { name: "opened", fields: &[Number(u32::MAX as u64), Number(u16::MAX as u64)], least: 0 },
    Case::new("data", &[Bytes]),
    Case::new("sent", &[]),
    Case::new("closed", &[]),
    Case { name: "failed", fields: &[Number(0x7f), Bytes], least: 1 },
];

const CONNECT: usize = 0;
const SEND: usize = 1;
/// By the numbers above, and `close`.
const REQUESTS: &[Case<'_>] = &[
    Case::new("connect", &[Number(u32::MAX as u64), Number(u16::MAX as u64)]),
    Case::new("data", &[Bytes]),
    Case::new("close", &[]),
];

const EVENTS_EXAMPLE: &str = "(pid(P), union { opened, data: bytes[<=1460], closed })`: whose connection it is, then any of \
     `opened: record { address: u32, port: u16 }`, `data`, `sent`, `closed`, `failed: u8`";
const REQUESTS_EXAMPLE: &str = "(pid(P), union { data: bytes[<=1460], close })`: whose connection it is, then any of \
     `connect: record { address: u32, port: u16 }`, `data`, `close`";

/// The connections of a program.
pub(super) struct Tcp {
    events: Option<MessageCodec>,
    requests: Option<MessageCodec>,
    listener: Option<TcpListener>,
    /// The maximum number of connections at once.
    max_connections: i128,
    connections: BTreeMap<i128, Connection>,
    /// The connection that was served last: the next one is served first.
    last: i128,
    lingering: VecDeque<TcpStream>,
    /// Events that the program has not received.
    pending_events: VecDeque<(i128, usize, Vec<Value>)>,
}

struct Connection {
    stream: TcpStream,
    state: ConnectionState,
    unsent: VecDeque<u8>,
    peer: SocketAddrV4,
    /// Whether the event `sent` is due.
    owes_sent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Connecting,
    Open,
    /// The peer sends no more.
    HalfClosed,
    Broken,
    /// The program has sent `close`; data is still to be written.
    Closing,
}

impl Tcp {
    pub(super) fn open(program: &Program, place: Option<SocketEndpoint>, ends: Ends<'_>) -> Result<Tcp, HostError> {
        let events = ends
            .input
            .map(|channel| MessageCodec::of_channel(program, channel, "tcp", &[Id, Cases(EVENTS)], EVENTS_EXAMPLE))
            .transpose()?;
        let requests = ends
            .output
            .map(|channel| MessageCodec::of_channel(program, channel, "tcp", &[Id, Cases(REQUESTS)], REQUESTS_EXAMPLE))
            .transpose()?;
        let (Some(events), Some(requests)) = (events, requests) else {
            return Err(HostError::usage(
                HostCode::Binding,
                "driver `tcp` serves two channels, and only one is bound to it",
            )
            .help("bind the channel of events and the channel of requests to the same `tcp:ADDRESS`"));
        };
        if events.instances() != requests.instances() {
            return Err(HostError::usage(
                HostCode::Type,
                "the two channels of one `tcp` driver name different processes",
            )
            .help("let both begin with the same `pid(...)`, or with integers"));
        }
        let listener = place.map(listen).transpose()?;
        let max_connections = events.largest_id().min(requests.largest_id()).saturating_add(1);
        Ok(Tcp {
            events: Some(events),
            requests: Some(requests),
            listener,
            max_connections,
            connections: BTreeMap::new(),
            last: -1,
            lingering: VecDeque::new(),
            pending_events: VecDeque::new(),
        })
    }

    /// The lowest free number.
    fn free(&self) -> Option<i128> {
        (0..self.max_connections).find(|id| !self.connections.contains_key(id))
    }

    fn push_event(&mut self, id: i128, event: usize, values: Vec<Value>) {
        let Some(events) = &self.events else { return };
        let (event, values) =
            if event == FAILED && !events.has(FAILED) { (CLOSED, Vec::new()) } else { (event, values) };
        if events.has(event) {
            self.pending_events.push_back((id, event, values));
        }
    }

    fn fail(&mut self, id: i128, failure: Failure) {
        let room = self.events.as_ref().map_or(0, |events| events.bytes_bound_in(FAILED));
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.unsent.clear();
            let before = std::mem::replace(&mut connection.state, ConnectionState::Broken);
            match before {
                ConnectionState::Closing => {
                    self.connections.remove(&id);
                }
                ConnectionState::Broken => {}
                ConnectionState::Connecting | ConnectionState::Open | ConnectionState::HalfClosed => {
                    self.push_event(id, FAILED, failure.values(room))
                }
            }
        }
    }

    fn accept(&mut self) -> Result<(), HostError> {
        while let (Some(listener), Some(id)) = (&self.listener, self.free()) {
            let (stream, peer) = match listener.accept() {
                Ok((stream, SocketAddr::V4(peer))) => (stream, peer),
                Ok((_, SocketAddr::V6(_))) => continue,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    _ => {
                        return Err(HostError::new(
                            HostCode::Device,
                            format!("cannot accept a connection: {}", reason(&error)),
                        ));
                    }
                },
            };
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            if prepared.is_ok() {
                self.insert(id, stream, peer, ConnectionState::Open);
                self.push_event(id, OPENED, address(peer));
            }
        }
        Ok(())
    }

    fn insert(&mut self, id: i128, stream: TcpStream, peer: SocketAddrV4, state: ConnectionState) {
        self.connections.insert(id, Connection { stream, state, unsent: VecDeque::new(), peer, owes_sent: false });
    }

    /// Starts a connection; it is established, or has failed, when it can be written to.
    fn connect(&mut self, id: i128, to: SocketAddrV4) {
        match system::start_connection(to) {
            Ok(stream) => self.insert(id, stream, to, ConnectionState::Connecting),
            Err(error) => {
                let room = self.events.as_ref().map_or(0, |events| events.bytes_bound_in(FAILED));
                self.push_event(id, FAILED, Failure::of(&error).values(room));
            }
        }
    }

    /// Polls every connection once, those after the last one first (round robin).
    fn poll_connections(&mut self) -> Result<(), HostError> {
        self.accept()?;
        let after = self.connections.range(self.last + 1..).map(|(id, _)| *id);
        let ids: Vec<i128> = after.chain(self.connections.range(..=self.last).map(|(id, _)| *id)).collect();
        let ready = readable(ids.iter().map(|id| self.connections[id].stream.as_fd()));
        for (id, ready) in ids.into_iter().zip(ready) {
            let listens = self.connections.get(&id).is_some_and(|connection| connection.state == ConnectionState::Open);
            if ready && listens {
                self.read(id);
                self.last = id;
                if !self.pending_events.is_empty() {
                    return Ok(());
                }
            }
        }
        self.drain();
        Ok(())
    }

    fn read(&mut self, id: i128) {
        let room = self.events.as_ref().map_or(0, |events| events.bytes_bound_in(DATA)).clamp(1, CHUNK);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut content = vec![0; room];
        match connection.stream.read(&mut content) {
            Ok(0) => {
                connection.state = ConnectionState::HalfClosed;
                self.push_event(id, CLOSED, Vec::new());
            }
            Ok(length) => {
                content.truncate(length);
                self.push_event(id, DATA, vec![Value::Bytes(content)]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => self.fail(id, Failure::of(&error)),
        }
    }

    /// Reads and drops what arrives after `close`: unread data would make the system reset the connection, and the peer
    /// could lose data.
    fn drain(&mut self) {
        let mut waste = [0; 4096];
        self.lingering.retain_mut(|stream| match stream.read(&mut waste) {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        });
    }

    /// Writes the data that one connection holds.
    fn push(&mut self, id: i128) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.state == ConnectionState::Connecting {
            match connected(&connection.stream) {
                None => return,
                Some(Ok(())) => {
                    connection.state = ConnectionState::Open;
                    let peer = connection.peer;
                    self.push_event(id, OPENED, address(peer));
                }
                Some(Err(error)) => return self.fail(id, Failure::of(&error)),
            }
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while !connection.unsent.is_empty() {
            match connection.stream.write(connection.unsent.as_slices().0) {
                Ok(length) => drop(connection.unsent.drain(..length)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted => {}
                    _ => return self.fail(id, Failure::of(&error)),
                },
            }
        }
        if connection.state == ConnectionState::Closing {
            self.shut_down(id);
        } else if std::mem::take(&mut connection.owes_sent) {
            self.push_event(id, SENT, Vec::new());
        }
    }

    /// Ends a connection of which everything is written and which the program has closed.
    fn shut_down(&mut self, id: i128) {
        let Some(connection) = self.connections.remove(&id) else { return };
        // A connection that is broken already cannot be shut down, and need not be.
        if connection.stream.shutdown(std::net::Shutdown::Write).is_ok() {
            self.lingering.push_back(connection.stream);
            if self.lingering.len() > MAX_LINGERING {
                self.lingering.pop_front();
            }
        }
    }
}

fn address(peer: SocketAddrV4) -> Vec<Value> {
    vec![Value::Number(i128::from(u32::from(*peer.ip()))), Value::Number(i128::from(peer.port()))]
}

fn listen(place: SocketEndpoint) -> Result<TcpListener, HostError> {
    let listener = TcpListener::bind(SocketAddrV4::new(place.address, place.port));
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    listener.map_err(|error| {
        HostError::new(
            HostCode::Device,
            format!("cannot listen at TCP port {} of {}: {}", place.port, place.address, reason(&error)),
        )
    })
}

/// The result of a connection attempt; none while the socket cannot be written to.
fn connected(stream: &TcpStream) -> Option<Result<(), std::io::Error>> {
    if !is_ready(stream.as_fd(), PollFlags::OUT) {
        return None;
    }
    Some(match stream.take_error() {
        Ok(None) => stream.set_nodelay(true),
        Ok(Some(error)) | Err(error) => Err(error),
    })
}

impl Device for Tcp {
    fn receive(&mut self) -> Result<Received, HostError> {
        if self.pending_events.is_empty() {
            self.flush()?;
        }
        if self.pending_events.is_empty() {
            self.poll_connections()?;
        }
        while let (Some((id, event, values)), Some(events)) = (self.pending_events.pop_front(), &self.events) {
            let message = events.encode(vec![Value::Number(id), Value::Case(event, values)]);
            match message {
                Ok(message) => return Ok(Received::Message(message)),
                Err(_) => debug_assert!(false, "numbers and lengths are kept below the type's bounds"),
            }
        }
        Ok(Received::Nothing)
    }

    fn is_ready(&self) -> bool {
        self.connections.values().all(|connection| connection.unsent.len() < MAX_UNSENT_BYTES)
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let Some(codec) = &self.requests else { return Ok(()) };
        let mut values = codec.decode(message).into_iter();
        let (Some(id), Some(Value::Case(case, values))) = (values.next(), values.next()) else { return Ok(()) };
        let id = id.number();
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or(Value::Number(0));
        let state = self.connections.get(&id).map(|connection| connection.state);
        match (case, state) {
            (CONNECT, None) => {
                let (address, port) = (next().number() as u32, next().number() as u16);
                self.connect(id, SocketAddrV4::new(Ipv4Addr::from(address), port));
            }
            (CONNECT, Some(_)) => {
                return Err(HostError::new(
                    HostCode::Message,
                    format!("connection {id} is made while there is one of this number"),
                )
                .help("`close` it first"));
            }
            // The connection was not established: its data is dropped, as that of a broken one.
            (SEND, None | Some(ConnectionState::Broken | ConnectionState::Closing)) => {}
            (SEND, Some(ConnectionState::Connecting | ConnectionState::Open | ConnectionState::HalfClosed)) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.unsent.extend(next().into_bytes());
                    connection.owes_sent = true;
                }
                // A pending `sent` does not hold any more.
                self.pending_events.retain(|(other, event, _)| (*other, *event) != (id, SENT));
                self.push(id);
            }
            (_, None) => {}
            (_, Some(_)) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    let broken = connection.state == ConnectionState::Broken;
                    connection.state = ConnectionState::Closing;
                    if broken {
                        self.connections.remove(&id);
                    }
                }
                // Pending events do not belong to the next connection with this number.
                self.pending_events.retain(|(other, ..)| *other != id);
                self.push(id);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), HostError> {
        let waiting = |connection: &Connection| {
            connection.state == ConnectionState::Connecting || !connection.unsent.is_empty() || connection.owes_sent
        };
        let ids: Vec<i128> =
            self.connections.iter().filter(|(_, connection)| waiting(connection)).map(|(id, _)| *id).collect();
        for id in ids {
            self.push(id);
        }
        Ok(())
    }

    fn holds_output(&self) -> bool {
        self.connections.values().any(|connection| !connection.unsent.is_empty())
    }

    fn holds_input(&self) -> bool {
        !self.pending_events.is_empty()
    }

    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>) {
        if let (true, Some(listener), Some(_)) = (reading, &self.listener, self.free()) {
            watched.push((listener.as_fd(), PollFlags::IN));
        }
        for connection in self.connections.values() {
            let mut flags = PollFlags::empty();
            if reading && connection.state == ConnectionState::Open {
                flags |= PollFlags::IN;
            }
            if connection.state == ConnectionState::Connecting || !connection.unsent.is_empty() {
                flags |= PollFlags::OUT;
            }
            if !flags.is_empty() {
                watched.push((connection.stream.as_fd(), flags));
            }
        }
        if reading {
            watched.extend(self.lingering.iter().map(|stream| (stream.as_fd(), PollFlags::IN)));
        }
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Passing
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        Vec::new()
    }
}
