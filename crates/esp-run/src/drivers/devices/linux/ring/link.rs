//! The connection of the two sides of a stream: a Unix socket of packets in the file system, over which the shared
//! memory is handed.
//!
//! ```text
//!   first side                                second side
//!   makes the ring, listens at the name
//!                                             connects
//!                          <--- greeting ---  its role
//!   accepts                 --- greeting -->  its role, the size of the ring, its memory
//!   removes the name
//!                          <--- wake-up --->  one byte: poll the ring again
//!                          <---   end   --->  the process has exited
//! ```
//!
//! The memory is an anonymous file that is sealed, so that no peer can truncate it, as it could a file at the name. The
//! name is taken under a lock of its folder: a socket without a listener, which a killed process has left, is replaced.
//! Nothing here blocks but that lock, for a bounded time.

use crate::binding::Ring as RingEndpoint;
use crate::error::{HostCode, HostError, reason};
use crate::poller::Interest;
use quaject_queue::shared::{Ring, bytes_needed};
use quaject_queue::{Mapping, Single};
use rustix::event::PollFlags;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, recv, recvmsg, send, sendmsg,
    socket_with,
};
use std::fs::File;
use std::io::{Error, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One writer and one reader, in sealed memory.
pub(super) type Shared = Ring<Single, Single, Mapping>;

/// "QJRSTRM1": how a greeting begins.
const MAGIC: u64 = 0x314d_5254_5352_4a51;
/// Bytes of a greeting: the magic, the role, the number of slots of the ring (as a power of two).
const GREETING_BYTES: usize = 16;
/// The maximum number of connections without a greeting.
const MAX_CALLERS: usize = 8;
/// How often the other side may connect to another process before this is an error.
const MAX_LOST_CONNECTIONS: u32 = 64;
/// Attempts to lock a folder, and the time between two.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// Wake-ups consumed at once.
const MAX_WAKE_UPS: usize = 64;
/// The owner's number in the ring: not used, because each side has one process.
const OWNER: u8 = 1;

/// The role of a process at a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Role {
    /// It reads.
    Reader = 1,
    /// It writes.
    Writer = 2,
}

/// The connection of a stream.
pub(super) struct RingLink {
    name: RingEndpoint,
    role: Role,
    state: LinkState,
    lost_connections: u32,
}

enum LinkState {
    /// This side came first and listens.
    Listening { listener: Listener, callers: Vec<OwnedFd>, ring: Arc<Shared> },
    /// This side came second and has sent its greeting.
    Greeting { socket: OwnedFd },
    /// Both sides have the memory.
    Connected { socket: OwnedFd },
    /// The peer has disconnected.
    Disconnected,
}

/// A listening socket; its name is removed with it.
struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Before the socket is closed: a name with a listener is not replaced, so that it is still that of this socket.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The content of a greeting.
struct Greeting {
    role: u32,
    slots_log2: u32,
}

impl Greeting {
    fn bytes(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.role.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.slots_log2.to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Greeting> {
        let bytes: &[u8; GREETING_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        bytes.starts_with(&MAGIC.to_ne_bytes()).then(|| Greeting { role: number(8), slots_log2: number(12) })
    }
}

impl RingLink {
    /// Listens at the name if this side is the first one, else connects. Returns the ring if this side has made it.
    pub(super) fn open(name: &RingEndpoint, role: Role) -> Result<(RingLink, Option<Arc<Shared>>), HostError> {
        let state = connect_or_listen(name, role)?;
        let ring = match &state {
            LinkState::Listening { ring, .. } => Some(Arc::clone(ring)),
            LinkState::Greeting { .. } | LinkState::Connected { .. } | LinkState::Disconnected => None,
        };
        Ok((RingLink { name: name.clone(), role, state, lost_connections: 0 }, ring))
    }

    /// Whether both sides have connected.
    pub(super) fn is_connected(&self) -> bool {
        match &self.state {
            LinkState::Listening { .. } | LinkState::Greeting { .. } => false,
            LinkState::Connected { .. } | LinkState::Disconnected => true,
        }
    }

    /// Whether the peer has disconnected.
    pub(super) fn is_disconnected(&self) -> bool {
        match &self.state {
            LinkState::Listening { .. } | LinkState::Greeting { .. } | LinkState::Connected { .. } => false,
            LinkState::Disconnected => true,
        }
    }

    /// Makes progress without blocking: accepts the peer, receives its memory, consumes its wake-ups, notices its end.
    /// Returns the ring when it has arrived.
    pub(super) fn step(&mut self) -> Result<Option<Arc<Shared>>, HostError> {
        match &mut self.state {
            LinkState::Listening { listener, callers, ring } => {
                while callers.len() < MAX_CALLERS {
                    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                    match rustix::net::accept_with(&listener.socket, flags) {
                        Ok(caller) => callers.push(caller),
                        // No connection, or one that was closed before it was accepted.
                        Err(_) => break,
                    }
                }
                let mut at = 0;
                while at < callers.len() {
                    match greet(&callers[at], self.role, self.name.slots_log2, ring) {
                        Caller::Silent => at += 1,
                        Caller::Rejected => drop(callers.swap_remove(at)),
                        Caller::Accepted => {
                            let socket = callers.swap_remove(at);
                            self.state = LinkState::Connected { socket };
                            break;
                        }
                    }
                }
                Ok(None)
            }
            LinkState::Greeting { socket } => match receive_greeting(socket) {
                Ok(None) => Ok(None),
                Ok(Some((greeting, memory))) => {
                    let ring = self.take(&greeting, memory)?;
                    let LinkState::Greeting { socket } = std::mem::replace(&mut self.state, LinkState::Disconnected)
                    else {
                        unreachable!("the state was matched above")
                    };
                    self.state = LinkState::Connected { socket };
                    Ok(Some(ring))
                }
                // The first side connected to another process, or exited.
                Err(Errno::CONNRESET | Errno::PIPE) => {
                    self.lost_connections += 1;
                    if self.lost_connections > MAX_LOST_CONNECTIONS {
                        return Err(self.no_ring());
                    }
                    let (next, ring) = RingLink::open(&self.name, self.role)?;
                    self.state = next.state;
                    Ok(ring)
                }
                Err(error) => Err(self.failed("connect at", error.into())),
            },
            LinkState::Connected { socket } => {
                if !consume_wake_ups(socket) {
                    self.state = LinkState::Disconnected;
                }
                Ok(None)
            }
            LinkState::Disconnected => Ok(None),
        }
    }

    /// Attaches to the ring that the peer has made.
    fn take(&self, greeting: &Greeting, memory: Option<OwnedFd>) -> Result<Arc<Shared>, HostError> {
        let path = self.name.path.display();
        if greeting.role == self.role as u32 {
            let role = match self.role {
                Role::Reader => "reader",
                Role::Writer => "writer",
            };
            return Err(HostError::new(HostCode::Device, format!("ring `{path}` has a {role} already"))
                .help("a ring is from one writer to one reader; choose another name for another pair"));
        }
        let memory =
            memory.filter(|_| greeting.slots_log2 <= RingEndpoint::MAX_SLOTS_LOG2).ok_or_else(|| self.no_ring())?;
        let memory = Mapping::of(memory).map_err(|_| self.no_ring())?;
        Shared::attach(memory, greeting.slots_log2, OWNER).map(Arc::new).map_err(|_| self.no_ring())
    }

    fn no_ring(&self) -> HostError {
        no_ring(&self.name.path)
    }

    fn failed(&self, doing: &str, error: Error) -> HostError {
        HostError::file(doing, self.name.path.display(), &error)
    }

    /// Wakes the peer.
    pub(super) fn wake_peer(&self) {
        if let LinkState::Connected { socket } = &self.state {
            // If the socket is full, the peer has wake-ups already; if it has disconnected, `step` notices.
            let _ = send(socket, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    /// Adds the descriptors to wait for; once both sides have connected, only if `waiting` for a message or room.
    pub(super) fn watch<'d>(&'d self, waiting: bool, watched: &mut Vec<Interest<'d>>) {
        match &self.state {
            LinkState::Listening { listener, callers, .. } => {
                if callers.len() < MAX_CALLERS {
                    watched.push((listener.socket.as_fd(), PollFlags::IN));
                }
                watched.extend(callers.iter().map(|caller| (caller.as_fd(), PollFlags::IN)));
            }
            LinkState::Greeting { socket } => watched.push((socket.as_fd(), PollFlags::IN)),
            LinkState::Connected { socket } if waiting => watched.push((socket.as_fd(), PollFlags::IN)),
            LinkState::Connected { .. } | LinkState::Disconnected => {}
        }
    }
}

fn no_ring(path: &Path) -> HostError {
    HostError::new(HostCode::Device, format!("`{}` is no ring", path.display())).help(
        "a ring has a name of its own, which exists until both sides have connected; remove the file, or choose another name",
    )
}

/// Connects to a listener at the name, or listens there.
fn connect_or_listen(name: &RingEndpoint, role: Role) -> Result<LinkState, HostError> {
    let path = &name.path;
    let failed = |error: Errno| HostError::file("connect at", path.display(), &error.into());
    let address = SocketAddrUnix::new(path.as_path()).map_err(|_| {
        HostError::new(HostCode::Device, format!("cannot connect at `{}`: the name is too long", path.display()))
            .help("names of sockets have at most 107 bytes; a relative one is shorter")
    })?;
    let _lock = lock(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(failed)?;
    match connect(&socket, &address) {
        Ok(()) => {
            let greeting = Greeting { role: role as u32, slots_log2: 0 };
            // If the first side has exited, reading its answer fails.
            let _ = send(&socket, &greeting.bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            return Ok(LinkState::Greeting { socket });
        }
        Err(Errno::NOENT) => {}
        Err(Errno::CONNREFUSED) => match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                std::fs::remove_file(path).map_err(|error| HostError::file("remove", path.display(), &error))?;
            }
            Ok(_) | Err(_) => return Err(no_ring(path)),
        },
        Err(Errno::PROTOTYPE) => return Err(no_ring(path)),
        Err(Errno::AGAIN) => {
            return Err(HostError::new(
                HostCode::Device,
                format!("too many processes wait at ring `{}`", path.display()),
            )
            .help("a ring is from one writer to one reader; choose another name for another pair"));
        }
        Err(error) => return Err(failed(error)),
    }
    let memory = Mapping::new(bytes_needed(name.slots_log2));
    let memory =
        memory.map_err(|error| HostError::new(HostCode::Device, format!("cannot make a ring: {}", reason(&error))))?;
    let ring = Shared::create(memory, name.slots_log2, OWNER).expect("the memory was made for it");
    bind(&socket, &address).map_err(failed)?;
    let listener = Listener { socket, path: path.clone() };
    listen(&listener.socket, MAX_CALLERS as i32).map_err(failed)?;
    Ok(LinkState::Listening { listener, callers: Vec::new(), ring: Arc::new(ring) })
}

/// The lock of the folder that holds the name; it ends with the value.
fn lock(path: &Path) -> Result<File, HostError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let failed = |error: Error| HostError::file("connect at", path.display(), &error);
    let file = File::open(folder).map_err(failed)?;
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_INTERVAL),
            Err(error) => return Err(failed(error.into())),
        }
    }
    Err(HostError::new(
        HostCode::Device,
        format!("cannot connect at `{}`: another process has locked its folder", path.display()),
    )
    .help("choose a name in another folder"))
}

/// The state of a connection that was accepted.
enum Caller {
    /// It has sent no greeting.
    Silent,
    /// It is not the peer, or has disconnected.
    Rejected,
    /// It is the peer, and has the memory.
    Accepted,
}

fn greet(caller: &OwnedFd, role: Role, slots_log2: u32, ring: &Shared) -> Caller {
    // One byte more than a greeting, so that a longer packet is noticed.
    let mut bytes = [0; GREETING_BYTES + 1];
    let length = match recv(caller, &mut bytes, RecvFlags::DONTWAIT) {
        Ok((length, _)) => length,
        Err(Errno::AGAIN | Errno::INTR) => return Caller::Silent,
        Err(_) => return Caller::Rejected,
    };
    let Some(greeting) = Greeting::read(&bytes[..length]) else { return Caller::Rejected };
    let ours = Greeting { role: role as u32, slots_log2 }.bytes();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if greeting.role == role as u32 || (greeting.role != Role::Reader as u32 && greeting.role != Role::Writer as u32) {
        // The role in the answer tells the caller why.
        let _ = send(caller, &ours, flags);
        return Caller::Rejected;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let memory = [ring.memory().as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&memory));
    match sendmsg(caller, &[IoSlice::new(&ours)], &mut control, flags) {
        Ok(_) => Caller::Accepted,
        Err(_) => Caller::Rejected,
    }
}

/// Receives the greeting of the first side, and its memory.
fn receive_greeting(socket: &OwnedFd) -> Result<Option<(Greeting, Option<OwnedFd>)>, Errno> {
    let mut bytes = [0; GREETING_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let length = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Ok(received) => received.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error),
    };
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (length, Greeting::read(&bytes[..length])) {
        (0, _) => Err(Errno::CONNRESET),
        // A packet of another protocol: no role and no memory.
        (_, None) => Ok(Some((Greeting { role: 0, slots_log2: u32::MAX }, None))),
        (_, Some(greeting)) => Ok(Some((greeting, memory))),
    }
}

/// Consumes the wake-ups of the peer; whether it is connected.
fn consume_wake_ups(socket: &OwnedFd) -> bool {
    let mut bell = [0; 1];
    for _ in 0..MAX_WAKE_UPS {
        match recv(socket, &mut bell, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}
