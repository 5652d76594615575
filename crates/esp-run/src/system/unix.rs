//! Unix: files, pipes, terminals and sockets are descriptors, which `poll` waits for. A descriptor that other programs
//! may share is polled before each operation instead of being made non-blocking: `O_NONBLOCK` belongs to the open file,
//! not to the descriptor.

use super::{FileMode, family, is_ready};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketType, connect, sockopt};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// Device and inode number of a regular file: equal for all of its names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileIdentity(u64, u64);

/// The identity of a regular file.
pub(crate) fn file_identity(path: &Path) -> Option<FileIdentity> {
    let metadata = path.metadata().ok().filter(Metadata::is_file)?;
    Some(FileIdentity(metadata.dev(), metadata.ino()))
}

/// Permissions of a file that is created in the place of `old`, before the user's mask applies.
pub(crate) fn permissions(mode: FileMode, old: Option<&Metadata>) -> Option<Permissions> {
    Some(match (mode, old) {
        (FileMode::Program, _) => Permissions::from_mode(0o777),
        (FileMode::Data, Some(metadata)) => metadata.permissions(),
        (FileMode::Data, None) => Permissions::from_mode(0o666),
    })
}

/// Interrupts a child process (SIGINT), so that it prints its results.
pub(crate) fn interrupt(child: &mut Child) {
    // If it has ended meanwhile, the next `try_wait` shows it.
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, Signal::INT);
    }
}

/// The kind of an open file with respect to blocking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Never blocks.
    RegularFile,
    /// A pipe, terminal or device.
    Stream,
    /// Cannot be read.
    Directory,
}

impl Kind {
    fn of(file: &File) -> io::Result<Kind> {
        let metadata = file.metadata()?;
        Ok(match (metadata.is_dir(), metadata.is_file()) {
            (true, _) => Kind::Directory,
            (false, true) => Kind::RegularFile,
            (false, false) => Kind::Stream,
        })
    }
}

/// A file, pipe or terminal that is read without blocking.
pub(crate) struct ByteInput {
    file: File,
    kind: Kind,
}

impl ByteInput {
    /// Standard input.
    pub(crate) fn standard() -> io::Result<ByteInput> {
        ByteInput::of(File::from(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// An open file.
    pub(crate) fn of(file: File) -> io::Result<ByteInput> {
        Ok(ByteInput { kind: Kind::of(&file)?, file })
    }

    /// Whether it is a directory, which opens but cannot be read.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether a read would not block.
    pub(crate) fn is_ready(&self) -> bool {
        self.kind != Kind::Stream || is_ready(self.file.as_fd(), PollFlags::IN)
    }

    /// The descriptor to poll, if it may block.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

impl Read for ByteInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// The number of bytes that a ready pipe or terminal takes without blocking (`PIPE_BUF` on Linux).
const ATOMIC_WRITE_BYTES: usize = 4096;

/// A file, pipe or terminal that is written without blocking.
pub(crate) struct ByteOutput {
    file: File,
    kind: Kind,
}

impl ByteOutput {
    /// Standard output.
    pub(crate) fn standard() -> io::Result<ByteOutput> {
        ByteOutput::of(File::from(io::stdout().as_fd().try_clone_to_owned()?))
    }

    /// An open file.
    pub(crate) fn of(file: File) -> io::Result<ByteOutput> {
        Ok(ByteOutput { kind: Kind::of(&file)?, file })
    }

    /// How many bytes can be written without blocking: a lower bound.
    pub(crate) fn room(&self) -> usize {
        match self.kind {
            Kind::RegularFile | Kind::Directory => usize::MAX,
            Kind::Stream if is_ready(self.file.as_fd(), PollFlags::OUT) => ATOMIC_WRITE_BYTES,
            Kind::Stream => 0,
        }
    }

    /// The descriptor to poll, if it may block.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

impl Write for ByteOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A descriptor that becomes readable when one of some signals arrives.
pub(crate) struct SignalBell(UnixStream);

impl SignalBell {
    /// Registers a handler for each of the signals. `received`, which other handlers set, is not needed here.
    pub(crate) fn register(signals: &[i32], _received: &Arc<AtomicUsize>) -> io::Result<SignalBell> {
        let (bell, clapper) = UnixStream::pair()?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, clapper.try_clone()?)?;
        }
        Ok(SignalBell(bell))
    }

    /// The descriptor.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Starts a TCP connection, which is established, or has failed, when its socket can be written to.
pub(crate) fn start_connection(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = nonblocking_socket(family(to), SocketType::STREAM)?;
    match connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Lets the system reset a connection when it is closed, in place of delivering the rest.
pub(crate) fn reset_on_close(stream: &TcpStream) {
    // Otherwise the peer sees an ordinary end.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Whether an operation failed because the process or the system has no descriptor or memory left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

/// The number of bytes that have arrived and are not read.
pub(crate) fn unread_bytes(stream: &TcpStream) -> u64 {
    // Without an answer one read follows, which reads what is there.
    rustix::io::ioctl_fionread(stream).unwrap_or(0)
}

/// A UDP socket that receives what is sent to a multicast group through the loopback interface; others may share its
/// port.
pub(crate) fn multicast_receiver(group: Ipv4Addr, port: u16) -> io::Result<UdpSocket> {
    let socket = nonblocking_socket(AddressFamily::INET, SocketType::DGRAM)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(group, port))?;
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn nonblocking_socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, socket_with};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, kind, flags, None)?)
}

#[cfg(not(target_os = "linux"))]
fn nonblocking_socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(family, kind, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}
