//! The drivers of external channels as data: `CHANNEL=DRIVER:ARGUMENT` of the command line, else the declared driver,
//! else `text:-`. Opens nothing.

mod parse;
mod resolve;

pub(crate) use resolve::resolve;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The choice of a driver for one channel, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The channel's name.
    pub channel: String,
    /// Its driver.
    pub choice: Choice,
}

impl Binding {
    /// The binding with its relative paths in a folder. A shell command is not changed.
    pub fn in_folder(self, folder: &Path) -> Binding {
        let endpoint = |endpoint: StreamEndpoint| match endpoint {
            StreamEndpoint::Standard | StreamEndpoint::Command(_) => endpoint,
            StreamEndpoint::Path(path) => StreamEndpoint::Path(folder.join(path)),
            StreamEndpoint::Serial(path, speed) => StreamEndpoint::Serial(folder.join(path), speed),
            StreamEndpoint::Pty(path) => StreamEndpoint::Pty(folder.join(path)),
        };
        let interface = |own: Interface| Interface { rules: own.rules.map(|rules| folder.join(rules)), ..own };
        let device = |device: DeviceEndpoint| match device {
            DeviceEndpoint::Udp(_) | DeviceEndpoint::Tcp(_) | DeviceEndpoint::Can(_) => device,
            DeviceEndpoint::Files(path) => DeviceEndpoint::Files(folder.join(path)),
            DeviceEndpoint::Tap(own) => DeviceEndpoint::Tap(interface(own)),
            DeviceEndpoint::Packet(own) => DeviceEndpoint::Packet(interface(own)),
            DeviceEndpoint::Ring(ring) => DeviceEndpoint::Ring(Ring { path: folder.join(ring.path), ..ring }),
        };
        let choice = match self.choice {
            Choice::Data(own) => Choice::Data(endpoint(own)),
            Choice::Driver(Driver::Text(own)) => Choice::Driver(Driver::Text(endpoint(own))),
            Choice::Driver(Driver::Bytes(own)) => Choice::Driver(Driver::Bytes(endpoint(own))),
            Choice::Driver(Driver::Hex(own)) => Choice::Driver(Driver::Hex(endpoint(own))),
            Choice::Driver(Driver::Device(own)) => Choice::Driver(Driver::Device(device(own))),
            Choice::Driver(Driver::Timer { .. }) => self.choice,
        };
        Binding { choice, ..self }
    }
}

/// The driver of a channel, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This driver.
    Driver(Driver),
    /// The declared driver, `text`, `bytes` or `hex`, at this endpoint.
    Data(StreamEndpoint),
}

/// The driver of an external channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// One message per line in ESP's literal syntax, its values separated by blanks.
    Text(StreamEndpoint),
    /// One message per byte.
    Bytes(StreamEndpoint),
    /// One message of bytes per line, in hexadecimal digits.
    Hex(StreamEndpoint),
    /// A message per period.
    Timer {
        /// The time between two messages.
        period: Duration,
        /// The number of messages before the channel closes.
        limit: Option<u64>,
    },
    /// A device, which two channels may share, one for each direction.
    Device(DeviceEndpoint),
}

/// The address of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceEndpoint {
    /// UDP sockets.
    Udp(SocketEndpoint),
    /// TCP connections, incoming ones at this address included.
    Tcp(Option<SocketEndpoint>),
    /// The files of a folder.
    Files(PathBuf),
    /// The other end of a TAP interface.
    Tap(Interface),
    /// A network interface, frame by frame.
    Packet(Interface),
    /// A CAN bus.
    Can(CanEndpoint),
    /// A queue in shared memory, to another process or from it.
    Ring(Ring),
}

/// A queue in shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    /// The name by which its two sides connect.
    pub path: PathBuf,
    /// The number of its slots of 64 bytes, as a power of two, if this side creates it.
    pub slots_log2: u32,
}

impl Ring {
    /// 64 KiB, as pipes have.
    pub(crate) const DEFAULT_SLOTS_LOG2: u32 = 10;
    /// 16 MiB: a process that attaches to a ring checks all of it.
    pub(crate) const MAX_SLOTS_LOG2: u32 = 18;
}

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name in the system.
    pub name: String,
    /// The rules that classify frames into the cases of the channel's union.
    pub rules: Option<PathBuf>,
}

/// The address of a CAN bus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CanEndpoint {
    /// An interface of SocketCAN.
    Interface(String),
    /// A bus of this machine, at this UDP port of the loopback interface.
    Loopback(u16),
}

/// The address of a socket: one of this machine's addresses, `0.0.0.0` or `::` for all of them, and a port; port 0 lets
/// the system choose one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketEndpoint(pub SocketAddr);

impl fmt::Display for SocketEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The source or destination of a byte stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamEndpoint {
    /// Standard input or output, written `-`.
    Standard,
    /// A file, device or named pipe.
    Path(PathBuf),
    /// A shell command: its standard input and output.
    Command(String),
    /// A serial line, and its bits per second if they are set.
    Serial(PathBuf, Option<u32>),
    /// A pseudo-terminal, whose other end has this name.
    Pty(PathBuf),
}

impl StreamEndpoint {
    /// Whether channels in both directions must share what is opened.
    pub(crate) fn is_opened_once(&self) -> bool {
        match self {
            StreamEndpoint::Standard | StreamEndpoint::Path(_) => false,
            StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_) => true,
        }
    }
}

impl Driver {
    /// The name of drivers of this kind on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Driver::Text(_) => "text",
            Driver::Bytes(StreamEndpoint::Command(_)) => "exec",
            Driver::Bytes(StreamEndpoint::Serial(..)) => "serial",
            Driver::Bytes(StreamEndpoint::Pty(_)) => "pty",
            Driver::Bytes(StreamEndpoint::Standard | StreamEndpoint::Path(_)) => "bytes",
            Driver::Hex(_) => "hex",
            Driver::Timer { .. } => "timer",
            Driver::Device(device) => match device {
                DeviceEndpoint::Udp(_) => "udp",
                DeviceEndpoint::Tcp(_) => "tcp",
                DeviceEndpoint::Files(_) => "file",
                DeviceEndpoint::Tap(_) => "tap",
                DeviceEndpoint::Packet(_) => "packet",
                DeviceEndpoint::Can(_) => "can",
                DeviceEndpoint::Ring(_) => "ring",
            },
        }
    }

    /// Its endpoint, if it carries a byte stream.
    pub(crate) fn endpoint(&self) -> Option<&StreamEndpoint> {
        match self {
            Driver::Text(endpoint) | Driver::Bytes(endpoint) | Driver::Hex(endpoint) => Some(endpoint),
            Driver::Timer { .. } | Driver::Device(_) => None,
        }
    }
}
