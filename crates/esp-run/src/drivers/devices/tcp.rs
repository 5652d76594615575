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
//!
//! What arrived on an older connection is read before what arrived on a newer one, so that a client that closes its
//! connection and connects again is heard in this order. After `close` the driver still writes what the program has
//! sent, and waits for the end of the peer, for a bounded time.

use super::{Device, Ends, Flow, Received};
use crate::binding::SocketEndpoint;
use crate::drivers::failure::Failure;
use crate::drivers::message_codec::FieldKind::{Address, Bytes, Cases, Id, Number};
use crate::drivers::message_codec::{Case, MessageCodec, Value};
use crate::error::{HostCode, HostError, reason};
use crate::poller::{Interest, Lifetime};
use crate::system::{self, is_ready, timespec};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::Program;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Unsent bytes of one connection after which the channel takes no more messages.
const MAX_UNSENT_BYTES: usize = 256 * 1024;
/// Connections that the program has closed and the peer has not.
const MAX_LINGERING: usize = 256;
/// How long a closed connection waits for its peer to read more, and after that for its end.
const LINGER_TIME: Duration = Duration::from_secs(30);
/// The time after which `accept` is tried again when the system had no descriptor or memory left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The maximum of bytes read at once.
const CHUNK: usize = 64 * 1024;

const OPENED: usize = 0;
const DATA: usize = 1;
const SENT: usize = 2;
const CLOSED: usize = 3;
const FAILED: usize = 4;
/// By the numbers above.
const EVENTS: &[Case<'_>] = &[
    Case { name: "opened", fields: &[Address, Number(u16::MAX as u64)], least: 0 },
    Case::new("data", &[Bytes]),
    Case::new("sent", &[]),
    Case::new("closed", &[]),
    Case { name: "failed", fields: &[Number(0x7f), Bytes], least: 1 },
];

const CONNECT: usize = 0;
const SEND: usize = 1;
const CLOSE: usize = 2;
/// By the numbers above.
const REQUESTS: &[Case<'_>] =
    &[Case::new("connect", &[Address, Number(u16::MAX as u64)]), Case::new("data", &[Bytes]), Case::new("close", &[])];

const EVENTS_EXAMPLE: &str = "(pid(P), union { opened, data: bytes[<=1460], closed })`: whose connection it is, then any of \
     `opened: record { address: u32, port: u16 }`, `data`, `sent`, `closed`, `failed: u8`";
const REQUESTS_EXAMPLE: &str = "(pid(P), union { data: bytes[<=1460], close })`: whose connection it is, then any of \
     `connect: record { address: u32, port: u16 }`, `data`, `close`";

/// The connections of a program.
pub(super) struct Tcp {
    events: Option<MessageCodec>,
    requests: Option<MessageCodec>,
    listener: Option<TcpListener>,
    /// Until when no connection is accepted, because the system had no descriptor left.
    accept_pause: Option<Instant>,
    /// The maximum number of connections at once.
    max_connections: i128,
    connections: BTreeMap<i128, Connection>,
    /// The serial number of the next connection.
    next_serial: u64,
    /// The connections that were readable at the last poll and have not been read since, oldest first.
    turns: VecDeque<Turn>,
    lingering: VecDeque<Lingering>,
    /// Events that the program has not received.
    pending_events: VecDeque<(i128, usize, Vec<Value>)>,
}

struct Connection {
    stream: TcpStream,
    state: ConnectionState,
    unsent: VecDeque<u8>,
    peer: SocketAddr,
    /// Whether the event `sent` is due.
    owes_sent: bool,
    /// Increases from connection to connection: its age, and its identity when its number is used again.
    serial: u64,
    /// The number of bytes that arrived before a newer connection was accepted, and one for the end of the stream.
    overdue: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Connecting,
    Open,
    /// The peer sends no more.
    HalfClosed,
    Broken,
}

/// The next action on a connection, by its number and serial number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Read(i128, u64),
    /// It is accepted: `opened` follows what the older connections have received before.
    Announce(i128, u64),
}

/// A connection that the program has closed: its data is still to be written, then its end to be read.
struct Lingering {
    stream: TcpStream,
    unsent: VecDeque<u8>,
    /// Whether the peer has closed it.
    peer_ended: bool,
    deadline: Instant,
}

impl Lingering {
    /// Writes and reads as much as is possible without blocking; whether more is expected.
    fn advance(&mut self, now: Instant) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(length) => {
                    self.unsent.drain(..length);
                    self.deadline = now + LINGER_TIME;
                    if self.unsent.is_empty() && self.stream.shutdown(std::net::Shutdown::Write).is_err() {
                        return false;
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    _ => return false,
                },
            }
        }
        // Unread data would make the system reset the connection, and the peer could lose what it has not read.
        let mut waste = [0; 4096];
        if !self.peer_ended {
            match self.stream.read(&mut waste) {
                Ok(0) => self.peer_ended = true,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return false,
            }
        }
        now < self.deadline && !(self.peer_ended && self.unsent.is_empty())
    }
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
        for (codec, channel) in [(&events, ends.input), (&requests, ends.output)] {
            if let (Some(SocketEndpoint(address)), Some(channel)) = (place, channel) {
                codec.check_family(channel, "tcp", address)?;
            }
        }
        let listener = place.map(listen).transpose()?;
        let max_connections = events.largest_id().min(requests.largest_id()).saturating_add(1);
        Ok(Tcp {
            events: Some(events),
            requests: Some(requests),
            listener,
            accept_pause: None,
            max_connections,
            connections: BTreeMap::new(),
            next_serial: 0,
            turns: VecDeque::new(),
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
                ConnectionState::Broken => {}
                ConnectionState::Connecting | ConnectionState::Open | ConnectionState::HalfClosed => {
                    self.push_event(id, FAILED, failure.values(room))
                }
            }
        }
    }

    /// Accepts one connection, if one waits and there is a number for it.
    fn accept(&mut self) -> Result<Option<Turn>, HostError> {
        if self.accept_pause.is_some_and(|end| Instant::now() < end) {
            return Ok(None);
        }
        while let (Some(listener), Some(id)) = (&self.listener, self.free()) {
            let (stream, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => continue,
                    ErrorKind::InvalidInput => {
                        return Err(HostError::new(
                            HostCode::Device,
                            format!("cannot accept a connection: {}", reason(&error)),
                        ));
                    }
                    // No descriptor or memory is left, or the network failed: the connection waits in the queue.
                    _ => {
                        if system::is_exhausted(&error) && self.evict() {
                            continue;
                        }
                        self.accept_pause = Some(Instant::now() + ACCEPT_PAUSE);
                        return Ok(None);
                    }
                },
            };
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            if prepared.is_ok() {
                return Ok(Some(Turn::Announce(id, self.insert(id, stream, peer, ConnectionState::Open))));
            }
        }
        Ok(None)
    }

    /// Ends the closed connection that has waited longest for its peer; whether there was one.
    fn evict(&mut self) -> bool {
        let oldest = self.lingering.iter().position(|lingering| lingering.unsent.is_empty());
        oldest.is_some_and(|oldest| self.lingering.remove(oldest).is_some())
    }

    /// Adds a connection, and returns its serial number.
    fn insert(&mut self, id: i128, stream: TcpStream, peer: SocketAddr, state: ConnectionState) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        let connection =
            Connection { stream, state, unsent: VecDeque::new(), peer, owes_sent: false, serial, overdue: 0 };
        self.connections.insert(id, connection);
        serial
    }

    /// Starts a connection; it is established, or has failed, when it can be written to.
    fn connect(&mut self, id: i128, to: SocketAddr) {
        match system::start_connection(to) {
            Ok(stream) => {
                self.insert(id, stream, to, ConnectionState::Connecting);
            }
            Err(error) => {
                let room = self.events.as_ref().map_or(0, |events| events.bytes_bound_in(FAILED));
                self.push_event(id, FAILED, Failure::of(&error).values(room));
            }
        }
    }

    /// Takes turns until there is an event, and polls for the next ones when none are left.
    fn poll_connections(&mut self) -> Result<(), HostError> {
        if self.turns.is_empty() {
            let accepted = self.accept()?;
            self.find_turns(accepted);
        }
        while self.pending_events.is_empty()
            && let Some(turn) = self.turns.pop_front()
        {
            let (Turn::Read(id, serial) | Turn::Announce(id, serial)) = turn;
            let Some(connection) = self.connections.get(&id) else { continue };
            if connection.serial != serial || connection.state != ConnectionState::Open {
                continue;
            }
            match turn {
                Turn::Announce(..) => self.push_event(id, OPENED, address(connection.peer)),
                Turn::Read(..) => {
                    self.read(id);
                    if self.connections.get(&id).is_some_and(|connection| connection.overdue > 0) {
                        self.turns.push_front(turn);
                    }
                }
            }
        }
        Ok(())
    }

    /// Polls all connections. Each readable one gets a turn, the oldest first; if a connection has just been accepted,
    /// all that the others have received comes before it.
    fn find_turns(&mut self, accepted: Option<Turn>) {
        let announced = match accepted {
            Some(Turn::Announce(_, serial) | Turn::Read(_, serial)) => Some(serial),
            None => None,
        };
        let mut by_age: Vec<(u64, i128)> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.state == ConnectionState::Open && Some(connection.serial) != announced)
            .map(|(id, connection)| (connection.serial, *id))
            .collect();
        by_age.sort_unstable();
        // The newest connection is polled first: what arrived on an older one before that is then seen, too.
        let connections = by_age.iter().rev().map(|(_, id)| (&self.connections[id].stream, PollFlags::IN));
        let lingering = self.lingering.iter().map(|lingering| (&lingering.stream, PollFlags::IN));
        let mut polled: Vec<PollFd<'_>> =
            connections.chain(lingering).map(|(stream, flags)| PollFd::new(stream, flags)).collect();
        let has_events = poll(&mut polled, Some(&timespec(Duration::ZERO))).is_ok_and(|count| count > 0);
        let ready: Vec<bool> = polled.iter().map(|polled| has_events && !polled.revents().is_empty()).collect();
        let (ready, ends) = ready.split_at(by_age.len());
        for ((serial, id), _) in by_age.iter().zip(ready.iter().rev()).filter(|(_, ready)| **ready) {
            self.turns.push_back(Turn::Read(*id, *serial));
            if let (Some(_), Some(connection)) = (announced, self.connections.get_mut(id)) {
                connection.overdue = system::unread_bytes(&connection.stream).saturating_add(1);
            }
        }
        self.turns.extend(accepted);
        let (now, mut ends) = (Instant::now(), ends.iter());
        self.lingering.retain_mut(|lingering| !ends.next().is_some_and(|ready| *ready) || lingering.advance(now));
    }

    fn read(&mut self, id: i128) {
        let room = self.events.as_ref().map_or(0, |events| events.bytes_bound_in(DATA)).clamp(1, CHUNK);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut content = vec![0; room];
        let result = connection.stream.read(&mut content);
        connection.overdue = match &result {
            Ok(length) if *length > 0 => connection.overdue.saturating_sub(*length as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => connection.overdue,
            Ok(_) | Err(_) => 0,
        };
        match result {
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
        if std::mem::take(&mut connection.owes_sent) {
            self.push_event(id, SENT, Vec::new());
        }
    }

    /// Gives up the number of a connection that the program has closed. The connection itself ends later.
    fn close(&mut self, id: i128) {
        let Some(connection) = self.connections.remove(&id) else { return };
        // Pending events do not belong to the next connection with this number.
        self.pending_events.retain(|(other, ..)| *other != id);
        self.accept_pause = None;
        let Connection { stream, unsent, state, .. } = connection;
        let has_end = match state {
            ConnectionState::Broken => return,
            ConnectionState::Connecting if unsent.is_empty() => return,
            ConnectionState::Connecting | ConnectionState::Open => false,
            ConnectionState::HalfClosed => true,
        };
        // A connection that is broken already cannot be shut down, and need not be.
        if unsent.is_empty() && stream.shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        let now = Instant::now();
        let mut lingering = Lingering { stream, unsent, peer_ended: has_end, deadline: now + LINGER_TIME };
        if lingering.advance(now) {
            self.lingering.push_back(lingering);
            if self.lingering.len() > MAX_LINGERING && !self.evict() {
                self.lingering.pop_front();
            }
        }
    }
}

fn address(peer: SocketAddr) -> Vec<Value> {
    vec![Value::Address(Some(peer.ip().to_canonical())), Value::Number(i128::from(peer.port()))]
}

fn listen(place: SocketEndpoint) -> Result<TcpListener, HostError> {
    let listener = TcpListener::bind(place.0);
    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    listener.map_err(|error| {
        HostError::new(
            HostCode::Device,
            format!("cannot listen at TCP port {} of {}: {}", place.0.port(), place.0.ip(), reason(&error)),
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
                let (address, port) = (next().address(), next().number() as u16);
                match address {
                    Some(address) => self.connect(id, SocketAddr::new(address, port)),
                    None => {
                        let room = self.events.as_ref().map_or(0, |events| events.bytes_bound_in(FAILED));
                        let failure = Failure::wrong("an address has 4 or 16 bytes");
                        self.push_event(id, FAILED, failure.values(room));
                    }
                }
            }
            (CONNECT, Some(_)) => {
                return Err(HostError::new(
                    HostCode::Message,
                    format!("connection {id} is made while there is one of this number"),
                )
                .help("`close` it first"));
            }
            // The connection was not established: its data is dropped, as that of a broken one.
            (SEND, None | Some(ConnectionState::Broken)) => {}
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
            (_, Some(_)) => self.close(id),
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
        let now = Instant::now();
        self.accept_pause = self.accept_pause.filter(|end| now < *end);
        self.lingering.retain_mut(|lingering| {
            if lingering.unsent.is_empty() { now < lingering.deadline } else { lingering.advance(now) }
        });
        Ok(())
    }

    fn holds_output(&self) -> bool {
        self.connections.values().any(|connection| !connection.unsent.is_empty())
            || self.lingering.iter().any(|lingering| !lingering.unsent.is_empty())
    }

    fn holds_input(&self) -> bool {
        !self.pending_events.is_empty() || !self.turns.is_empty()
    }

    fn wake_in(&self) -> Option<Duration> {
        let deadlines = self.lingering.iter().map(|lingering| lingering.deadline);
        let next = deadlines.chain(self.accept_pause).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>) {
        if let (true, None, Some(listener), Some(_)) = (reading, self.accept_pause, &self.listener, self.free()) {
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
        for lingering in &self.lingering {
            let mut flags = PollFlags::empty();
            if reading && !lingering.peer_ended {
                flags |= PollFlags::IN;
            }
            if !lingering.unsent.is_empty() {
                flags |= PollFlags::OUT;
            }
            if !flags.is_empty() {
                watched.push((lingering.stream.as_fd(), flags));
            }
        }
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Passing
    }

    fn cut(&mut self, message: &[Datum], flow: Flow) -> bool {
        let codec = match flow {
            Flow::FromDevice => &self.events,
            Flow::ToDevice => &self.requests,
        };
        let values = codec.as_ref().map(|codec| codec.decode(message)).unwrap_or_default();
        let [Value::Number(id), Value::Case(case, _)] = values.as_slice() else { return false };
        let is_new = flow == Flow::FromDevice && *case == OPENED;
        match self.connections.get(id).map(|connection| connection.state) {
            None | Some(ConnectionState::Broken) => return false,
            // The program learns of a connection before it breaks.
            Some(ConnectionState::Connecting | ConnectionState::Open | ConnectionState::HalfClosed) if is_new => {
                return false;
            }
            Some(ConnectionState::Connecting | ConnectionState::Open | ConnectionState::HalfClosed) => {}
        }
        if let Some(connection) = self.connections.get(id) {
            system::reset_on_close(&connection.stream);
        }
        self.pending_events.retain(|(other, ..)| other != id);
        self.fail(*id, Failure::of(&ErrorKind::ConnectionReset.into()));
        true
    }

    fn closes_connection(&self, message: &[Datum]) -> bool {
        let values = self.requests.as_ref().map(|codec| codec.decode(message)).unwrap_or_default();
        matches!(values.get(1), Some(Value::Case(CLOSE, _)))
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{LINGER_TIME, Lingering};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    /// A closed connection with unsent bytes, and its peer.
    fn lingering(unsent: usize, now: Instant) -> (Lingering, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let peer = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (stream, _) = listener.accept().expect("one waits");
        stream.set_nonblocking(true).expect("it is open");
        let unsent = vec![7; unsent].into();
        (Lingering { stream, unsent, peer_ended: false, deadline: now + LINGER_TIME }, peer)
    }

    #[test]
    fn a_closed_connection_waits_a_bounded_time_for_a_peer_that_does_not_read() {
        let now = Instant::now();
        let (mut closed, _peer) = lingering(64 << 20, now);
        assert!(closed.advance(now) && !closed.unsent.is_empty());
        let (mut later, mut left) = (now, closed.unsent.len() + 1);
        // The system moves some of its buffers meanwhile; that is progress.
        while closed.unsent.len() < left {
            left = closed.unsent.len();
            later += LINGER_TIME;
            closed.advance(later);
        }
        assert!(!closed.advance(later + LINGER_TIME));
    }

    #[test]
    fn a_closed_connection_waits_a_bounded_time_for_a_peer_that_does_not_end() {
        let now = Instant::now();
        let (mut closed, mut peer) = lingering(3, now);
        assert!(closed.advance(now));
        let mut received = Vec::new();
        peer.read_to_end(&mut received).expect("the other side ends");
        assert_eq!(received, [7; 3]);
        assert!(closed.advance(now) && !closed.advance(now + LINGER_TIME));
    }
}
