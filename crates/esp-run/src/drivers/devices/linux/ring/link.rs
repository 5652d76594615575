//! Where the two sides of a stream meet: a socket in the file system, of Unix and of whole packets, and the memory that
//! is handed over there.
//!
//! ```text
//!   first                                     second
//!   makes the ring, listens at the name
//!                                             connects
//!                          <--- greeting ---  who it is
//!   takes it in             --- greeting -->  who it is, how large the ring is, its memory
//!   removes the name
//!                          <---   bell   -->  one byte: look at the ring again
//!                          <---   end    -->  the process has gone, however it ended
//! ```
//!
//! The memory is an anonymous file that is sealed, so that no peer can make it vanish under us, as one that lay at the
//! name could. The name is taken under a lock of its folder: whoever finds one at which nobody listens, what a killed
//! process has left, takes its place. Nothing here waits but for that lock, and not for long.

use crate::binding::Ring as Name;
use crate::error::{HostError, reason};
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

/// One writer and one reader, in memory that the kernel guards.
pub(super) type Shared = Ring<Single, Single, Mapping>;

/// "QJRSTRM1": how a greeting begins.
const MAGIC: u64 = 0x314d_5254_5352_4a51;
/// Bytes of a greeting: the magic, who speaks, how many slots the ring has (as a power of two).
const GREETING: usize = 16;
/// Callers that have not said who they are.
const CALLERS: usize = 8;
/// How often a name may be lost to somebody else before we give up, and tries at the lock of a folder, with the time
/// between two.
const LOSSES: u32 = 64;
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);
/// Bells taken at one look.
const BELLS: usize = 64;
/// Which side of the memory we are: numbers that mean nothing here, as either side is one process.
const OWNER: u8 = 1;

/// What a process does at a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Role {
    /// It reads.
    Reader = 1,
    /// It writes.
    Writer = 2,
}

/// A stream on its way from a name to a peer.
pub(super) struct RingLink {
    name: Name,
    role: Role,
    state: State,
    losses: u32,
}

enum State {
    /// We came first.
    Waiting { door: Door, callers: Vec<OwnedFd>, ring: Arc<Shared> },
    /// We have said who we are.
    Asking { line: OwnedFd },
    /// Both are there.
    Met { line: OwnedFd },
    /// The other side has gone.
    Parted,
}

/// A socket that has the name; gives it back.
struct Door {
    socket: OwnedFd,
    path: PathBuf,
}

impl Drop for Door {
    fn drop(&mut self) {
        // Before the socket is closed: nobody takes a name at which somebody listens, so it is ours.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What a greeting says.
struct Greeting {
    role: u32,
    slots_log2: u32,
}

impl Greeting {
    fn bytes(&self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.role.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.slots_log2.to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Greeting> {
        let bytes: &[u8; GREETING] = bytes.try_into().ok()?;
        let number = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        bytes.starts_with(&MAGIC.to_ne_bytes()).then(|| Greeting { role: number(8), slots_log2: number(12) })
    }
}

impl RingLink {
    /// Goes to the name: listens there if we are the first, else says who we are. The ring, if we have made it.
    pub(super) fn open(name: &Name, role: Role) -> Result<(RingLink, Option<Arc<Shared>>), HostError> {
        let state = arrive(name, role)?;
        let ring = match &state {
            State::Waiting { ring, .. } => Some(Arc::clone(ring)),
            State::Asking { .. } | State::Met { .. } | State::Parted => None,
        };
        Ok((RingLink { name: name.clone(), role, state, losses: 0 }, ring))
    }

    /// Whether both sides have been there.
    pub(super) fn is_connected(&self) -> bool {
        match &self.state {
            State::Waiting { .. } | State::Asking { .. } => false,
            State::Met { .. } | State::Parted => true,
        }
    }

    /// Whether the other side has gone.
    pub(super) fn is_peer_gone(&self) -> bool {
        match &self.state {
            State::Waiting { .. } | State::Asking { .. } | State::Met { .. } => false,
            State::Parted => true,
        }
    }

    /// Does what can be done without waiting: lets the other side in, takes the memory it hands over, takes its bells,
    /// sees it go. The ring, when it has one that was not there before.
    pub(super) fn step(&mut self) -> Result<Option<Arc<Shared>>, HostError> {
        match &mut self.state {
            State::Waiting { door, callers, ring } => {
                while callers.len() < CALLERS {
                    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                    match rustix::net::accept_with(&door.socket, flags) {
                        Ok(caller) => callers.push(caller),
                        // Whoever has left before we came to it leaves no trace.
                        Err(_) => break,
                    }
                }
                let mut at = 0;
                while at < callers.len() {
                    match greeted(&callers[at], self.role, self.name.slots_log2, ring) {
                        Greeted::NotYet => at += 1,
                        Greeted::Not => drop(callers.swap_remove(at)),
                        Greeted::Welcome => {
                            let line = callers.swap_remove(at);
                            self.state = State::Met { line };
                            break;
                        }
                    }
                }
                Ok(None)
            }
            State::Asking { line } => match answer(line) {
                Ok(None) => Ok(None),
                Ok(Some((greeting, memory))) => {
                    let ring = self.take(&greeting, memory)?;
                    let State::Asking { line } = std::mem::replace(&mut self.state, State::Parted) else {
                        unreachable!("the state was looked at above")
                    };
                    self.state = State::Met { line };
                    Ok(Some(ring))
                }
                // It met another one, or left, before it came to us.
                Err(Errno::CONNRESET | Errno::PIPE) => {
                    self.losses += 1;
                    if self.losses > LOSSES {
                        return Err(self.no_ring());
                    }
                    let (next, ring) = RingLink::open(&self.name, self.role)?;
                    self.state = next.state;
                    Ok(ring)
                }
                Err(error) => Err(self.failed("be answered at", error.into())),
            },
            State::Met { line } => {
                if !listen_to(line) {
                    self.state = State::Parted;
                }
                Ok(None)
            }
            State::Parted => Ok(None),
        }
    }

    /// The ring that the other side has made, if it is one.
    fn take(&self, greeting: &Greeting, memory: Option<OwnedFd>) -> Result<Arc<Shared>, HostError> {
        let path = self.name.path.display();
        if greeting.role == self.role as u32 {
            let who = match self.role {
                Role::Reader => "reader",
                Role::Writer => "writer",
            };
            return Err(HostError::new(format!("ring `{path}` has a {who} already"))
                .help("a ring is from one writer to one reader; choose another name for another pair"));
        }
        let memory = memory.filter(|_| greeting.slots_log2 <= Name::SLOTS_LOG2_MAX).ok_or_else(|| self.no_ring())?;
        let memory = Mapping::of(memory).map_err(|_| self.no_ring())?;
        Shared::attach(memory, greeting.slots_log2, OWNER).map(Arc::new).map_err(|_| self.no_ring())
    }

    fn no_ring(&self) -> HostError {
        no_ring(&self.name.path)
    }

    fn failed(&self, doing: &str, error: Error) -> HostError {
        HostError::file(doing, self.name.path.display(), &error)
    }

    /// Wakes the other side.
    pub(super) fn ring(&self) {
        if let State::Met { line } = &self.state {
            // If its bells pile up, it has one already; if it has gone, that is seen elsewhere.
            let _ = send(line, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    /// What tells of the other side; once both have met, only if somebody waits for it.
    pub(super) fn watch<'d>(&'d self, waits: bool, watched: &mut Vec<Interest<'d>>) {
        match &self.state {
            State::Waiting { door, callers, .. } => {
                if callers.len() < CALLERS {
                    watched.push((door.socket.as_fd(), PollFlags::IN));
                }
                watched.extend(callers.iter().map(|caller| (caller.as_fd(), PollFlags::IN)));
            }
            State::Asking { line } => watched.push((line.as_fd(), PollFlags::IN)),
            State::Met { line } if waits => watched.push((line.as_fd(), PollFlags::IN)),
            State::Met { .. } | State::Parted => {}
        }
    }
}

fn no_ring(path: &Path) -> HostError {
    HostError::new(format!("`{}` is no ring", path.display())).help(
        "a ring has a name of its own, which is there until both sides have come; remove what has it, or choose another",
    )
}

/// A socket at the name, of whichever side comes first.
fn arrive(name: &Name, role: Role) -> Result<State, HostError> {
    let path = &name.path;
    let failed = |error: Errno| HostError::file("meet at", path.display(), &error.into());
    let address = SocketAddrUnix::new(path.as_path()).map_err(|_| {
        HostError::new(format!("cannot meet at `{}`: the name is too long", path.display()))
            .help("names of sockets have at most 107 bytes; a relative one is shorter")
    })?;
    let _lock = lock(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(failed)?;
    match connect(&socket, &address) {
        Ok(()) => {
            let greeting = Greeting { role: role as u32, slots_log2: 0 };
            // If it has gone again, its answer says so.
            let _ = send(&socket, &greeting.bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            return Ok(State::Asking { line: socket });
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
            return Err(HostError::new(format!("too many others wait at ring `{}`", path.display()))
                .help("a ring is from one writer to one reader; choose another name for another pair"));
        }
        Err(error) => return Err(failed(error)),
    }
    let memory = Mapping::new(bytes_needed(name.slots_log2));
    let memory = memory.map_err(|error| HostError::new(format!("cannot make a ring: {}", reason(&error))))?;
    let ring = Shared::create(memory, name.slots_log2, OWNER).expect("the memory was made for it");
    bind(&socket, &address).map_err(failed)?;
    let door = Door { socket, path: path.clone() };
    listen(&door.socket, CALLERS as i32).map_err(failed)?;
    Ok(State::Waiting { door, callers: Vec::new(), ring: Arc::new(ring) })
}

/// The lock of the folder that holds the name; it ends with the value.
fn lock(path: &Path) -> Result<File, HostError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let failed = |error: Error| HostError::file("meet at", path.display(), &error);
    let file = File::open(folder).map_err(failed)?;
    for _ in 0..TRIES {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(PAUSE),
            Err(error) => return Err(failed(error.into())),
        }
    }
    Err(HostError::new(format!("cannot meet at `{}`: somebody else has locked its folder", path.display()))
        .help("choose a name in another folder"))
}

/// How far a caller has come.
enum Greeted {
    /// It has said nothing.
    NotYet,
    /// It is none that we wait for, or has gone.
    Not,
    /// It is the other side, and has our memory.
    Welcome,
}

fn greeted(caller: &OwnedFd, role: Role, slots_log2: u32, ring: &Shared) -> Greeted {
    // One byte more than a greeting: a longer packet is none.
    let mut bytes = [0; GREETING + 1];
    let length = match recv(caller, &mut bytes, RecvFlags::DONTWAIT) {
        Ok((length, _)) => length,
        Err(Errno::AGAIN | Errno::INTR) => return Greeted::NotYet,
        Err(_) => return Greeted::Not,
    };
    let Some(greeting) = Greeting::read(&bytes[..length]) else { return Greeted::Not };
    let ours = Greeting { role: role as u32, slots_log2 }.bytes();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if greeting.role == role as u32 || (greeting.role != Role::Reader as u32 && greeting.role != Role::Writer as u32) {
        // It finds out from our role.
        let _ = send(caller, &ours, flags);
        return Greeted::Not;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let memory = [ring.memory().as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&memory));
    match sendmsg(caller, &[IoSlice::new(&ours)], &mut control, flags) {
        Ok(_) => Greeted::Welcome,
        Err(_) => Greeted::Not,
    }
}

/// What the side that came first says: who it is, and its memory.
fn answer(line: &OwnedFd) -> Result<Option<(Greeting, Option<OwnedFd>)>, Errno> {
    let mut bytes = [0; GREETING + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let length = match recvmsg(line, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
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
        // Somebody who does not speak as we do has no role and no memory.
        (_, None) => Ok(Some((Greeting { role: 0, slots_log2: u32::MAX }, None))),
        (_, Some(greeting)) => Ok(Some((greeting, memory))),
    }
}

/// Takes the bells of the other side; whether it is still there.
fn listen_to(line: &OwnedFd) -> bool {
    let mut bell = [0; 1];
    for _ in 0..BELLS {
        match recv(line, &mut bell, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}
