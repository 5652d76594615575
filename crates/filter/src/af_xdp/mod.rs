//! Live packets of an interface, by AF_XDP: the kernel writes them into this process's memory before its own network
//! stack sees them. Knows Ethernet interfaces of Linux, and nothing of filters.
//!
//! ```text
//!                program: redirect by queue
//! interface ──> queue 0 ──> socket ──> chunks of memory ──> next_frame
//!           └─> queue 1 ──> socket ──> chunks of memory ──┘
//! ```
//!
//! Redirected frames do not reach the network stack of the system while this is open. The program is attached by a BPF
//! link, which is a descriptor: when the process ends for any reason, the kernel closes it, and the stack receives
//! frames again.

mod interface;
mod program;
mod socket;

use interface::{Changes, Interface};
use program::Link;
use socket::{Queue, Segments};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// Chunks of all queues of an interface together, as far as each has at least [`MIN_CHUNKS`].
const CHUNKS: u32 = 16_384;
const MAX_CHUNKS: u32 = 4_096;
const MIN_CHUNKS: u32 = 512;

/// A failed system call, with the step of the set-up in which it failed.
#[derive(Debug)]
pub struct AfXdpError {
    step: Step,
    error: io::Error,
}

/// The steps of the set-up, each of which the kernel may refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Finding the interface.
    Find,
    /// Subscribing to its changes.
    Watch,
    /// Making a socket.
    Socket,
    /// Giving it memory.
    Memory,
    /// Tying it to a queue.
    Bind,
    /// Loading the program that redirects.
    Load,
    /// Attaching it.
    Attach,
    /// Receiving: the interface was removed, or is down.
    Listen,
}

impl AfXdpError {
    fn new(step: Step, error: io::Error) -> AfXdpError {
        AfXdpError { step, error }
    }

    fn last(step: Step) -> AfXdpError {
        AfXdpError::new(step, io::Error::last_os_error())
    }

    fn is(&self, code: i32) -> bool {
        self.error.raw_os_error() == Some(code)
    }

    /// The help text.
    pub fn help(&self) -> &'static str {
        if self.is(libc::EPERM) || self.is(libc::EACCES) {
            return "it requires root, or a program after `setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep`";
        }
        match self.step {
            Step::Find if self.is(libc::EMEDIUMTYPE) => "AF_XDP is for Ethernet; AF_PACKET listens to other interfaces",
            Step::Find => "`ip link` lists the interfaces; AF_XDP listens to one at a time",
            Step::Memory => "raise the limit of locked memory: `ulimit -l unlimited`",
            Step::Bind if self.is(libc::EBUSY) => "another socket has the queue: end its program first",
            // The second if it is attached in the other way, by the driver or by the kernel.
            Step::Attach if self.is(libc::EBUSY) || self.is(libc::EEXIST) => {
                "another XDP program is attached: stop the process that attached it, or run `ip link set dev IFACE xdp off`"
            }
            Step::Watch | Step::Socket | Step::Bind | Step::Load | Step::Attach => {
                "it requires Linux 5.9 with CONFIG_XDP_SOCKETS; AF_PACKET listens without"
            }
            Step::Listen => "all packets that arrived before were delivered",
        }
    }
}

impl fmt::Display for AfXdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match self.step {
            Step::Find if self.is(libc::EMEDIUMTYPE) => return f.write_str("it is no Ethernet interface"),
            Step::Find => "cannot find the interface",
            Step::Watch => "cannot watch the interface",
            Step::Socket => "cannot create an AF_XDP socket",
            Step::Memory => "cannot register memory for an AF_XDP socket",
            Step::Bind => "cannot bind an AF_XDP socket to the interface",
            Step::Load => "cannot load a program for XDP",
            Step::Attach => "cannot attach a program for XDP",
            Step::Listen if self.is(libc::ENODEV) => return f.write_str("the interface was removed"),
            Step::Listen => return f.write_str("the interface went down"),
        };
        write!(f, "{step}: {}", self.error)
    }
}

impl std::error::Error for AfXdpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// An interface whose arriving packets are redirected to this process alone.
#[derive(Debug)]
pub struct AfXdp {
    // Detached before the sockets are closed.
    link: Link,
    queues: Vec<Queue>,
    /// The queue that is polled next, round robin.
    turn: usize,
    interface: Interface,
    changes: Changes,
    /// Ready when a queue is, or the interface has changed.
    ready: OwnedFd,
}

/// A complete received frame.
#[derive(Debug)]
pub struct Frame<'x> {
    /// When it was read, since 1970.
    pub seconds: u32,
    /// And nanoseconds.
    pub nanoseconds: u32,
    /// Its bytes, from the Ethernet header on.
    pub data: &'x [u8],
}

impl AfXdp {
    /// Redirects the frames that arrive at an interface to this process, in promiscuous mode, as long as this value
    /// lives.
    ///
    /// # Errors
    /// [`AfXdpError`] if there is no such Ethernet interface, or the kernel has no AF_XDP, does not permit it, or
    /// another program uses the interface.
    pub fn open(name: &str) -> Result<AfXdp, AfXdpError> {
        let interface = Interface::find(name)?;
        let changes = Changes::watch()?;
        let count = interface.queues();
        let chunks = 1 << (CHUNKS / count).clamp(MIN_CHUNKS, MAX_CHUNKS).ilog2();
        let map = program::map(count)?;
        let (program, segments) = program::load(&map)?;
        let mut queues = Vec::new();
        for number in 0..count {
            let queue = match Queue::open(interface.index(), number, chunks, segments) {
                // A kernel may support multi-buffer programs, but not multi-buffer sockets.
                Err(error) if segments == Segments::Many && error.is(libc::EINVAL) => {
                    Queue::open(interface.index(), number, chunks, Segments::One)?
                }
                other => other?,
            };
            program::give(&map, number, queue.socket())?;
            queues.push(queue);
        }
        let ready = ready(queues.iter().map(Queue::socket).chain([changes.as_fd()]))?;
        // Last: nothing is redirected before the sockets can receive it.
        let link = Link::attach(&program, interface.index())?;
        Ok(AfXdp { link, queues, turn: 0, interface, changes, ready })
    }

    /// The next frame; none if there is none yet. [`AsFd::as_fd`] becomes readable when there may be one.
    ///
    /// # Errors
    /// [`AfXdpError`] if the interface was removed or is down, and everything that arrived before was delivered.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, AfXdpError> {
        let count = self.queues.len();
        for _ in 0..count {
            self.turn = (self.turn + 1) % count;
            if self.queues[self.turn].advance() {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                return Ok(Some(Frame {
                    seconds: now.as_secs() as u32,
                    nanoseconds: now.subsec_nanos(),
                    data: self.queues[self.turn].frame(),
                }));
            }
        }
        if self.changes.any() {
            self.interface.check()?;
        }
        Ok(None)
    }

    /// The number of dropped frames: not read soon enough, or longer than the kernel passes.
    pub fn lost(&self) -> u64 {
        self.queues.iter().map(Queue::lost).sum()
    }

    /// Whether the driver runs the program (native mode), before the kernel allocates a socket buffer for the frame.
    pub fn is_in_driver(&self) -> bool {
        self.link.is_in_driver()
    }
}

impl AsFd for AfXdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// A descriptor that is ready as soon as one of these is (epoll).
fn ready<'d>(descriptors: impl Iterator<Item = BorrowedFd<'d>>) -> Result<OwnedFd, AfXdpError> {
    // SAFETY: no pointers are passed.
    let set = owned(Step::Watch, unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    for descriptor in descriptors {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the event outlives the call; both descriptors are open.
        let status =
            unsafe { libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor.as_raw_fd(), &raw mut event) };
        if status != 0 {
            return Err(AfXdpError::last(Step::Watch));
        }
    }
    Ok(set)
}

/// The descriptor that a system call has made, unless it failed.
fn owned(step: Step, descriptor: libc::c_int) -> Result<OwnedFd, AfXdpError> {
    if descriptor < 0 {
        return Err(AfXdpError::last(step));
    }
    // SAFETY: it is new, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sets a socket option to a structure.
fn set_option<T>(
    step: Step,
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> Result<(), AfXdpError> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is `length` bytes and outlives the call.
    let status =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
    if status == 0 { Ok(()) } else { Err(AfXdpError::last(step)) }
}
