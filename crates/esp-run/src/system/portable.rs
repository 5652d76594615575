//! Systems on which only sockets can be polled, such as Windows. An input that may block is read by a thread, which
//! copies it to a socket of the loopback interface; an output is written at once. A thread that polls the flag of the
//! signal handlers rings the bell of the signals.

use super::{FileMode, family, is_ready};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The maximum delay between a signal and its bell.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The absolute path of a regular file without links.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileIdentity(PathBuf);

/// The identity of a regular file.
pub(crate) fn file_identity(path: &Path) -> Option<FileIdentity> {
    path.metadata().ok().filter(Metadata::is_file)?;
    path.canonicalize().ok().map(FileIdentity)
}

/// Permissions of a file that is created: those that the system gives to any new file.
pub(crate) fn permissions(_mode: FileMode, _old: Option<&Metadata>) -> Option<Permissions> {
    None
}

/// Ends a child process; there is no way to ask it.
pub(crate) fn interrupt(child: &mut Child) {
    // If it has ended meanwhile, the next `try_wait` shows it.
    let _ = child.kill();
}

/// A file, pipe or terminal that is read without blocking.
pub(crate) enum ByteInput {
    /// A regular file, which never blocks.
    File(File),
    /// An input that a thread reads.
    Copied(TcpStream),
}

impl ByteInput {
    /// Standard input.
    pub(crate) fn standard() -> io::Result<ByteInput> {
        copied(io::stdin())
    }

    /// An open regular file.
    pub(crate) fn of(file: File) -> io::Result<ByteInput> {
        Ok(ByteInput::File(file))
    }

    /// Whether it is a directory, which opens but cannot be read: here it does not open.
    pub(crate) fn is_directory(&self) -> bool {
        false
    }

    /// Whether a read would not block.
    pub(crate) fn is_ready(&self) -> bool {
        self.descriptor().is_none_or(|descriptor| is_ready(descriptor, PollFlags::IN))
    }

    /// The descriptor to poll, if it may block.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            ByteInput::File(_) => None,
            ByteInput::Copied(socket) => Some(socket.as_fd()),
        }
    }
}

impl Read for ByteInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ByteInput::File(file) => file.read(buffer),
            ByteInput::Copied(socket) => socket.read(buffer),
        }
    }
}

/// Starts the thread that reads an input. It ends with the input, or when its copy is no longer read.
fn copied(mut input: impl Read + Send + 'static) -> io::Result<ByteInput> {
    let (copy, mut original) = connected_pair()?;
    std::thread::Builder::new().name("input".to_string()).spawn(move || {
        // An input that cannot be read has ended.
        let _ = io::copy(&mut input, &mut original);
        let _ = original.shutdown(Shutdown::Write);
    })?;
    Ok(ByteInput::Copied(copy))
}

/// Two sockets of this process that are connected.
fn connected_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    loop {
        // Another program may connect to the port first.
        let (far, peer) = listener.accept()?;
        if peer == near.local_addr()? {
            return Ok((near, far));
        }
    }
}

/// A file, pipe or terminal that is written; a write may block.
pub(crate) enum ByteOutput {
    /// A file.
    File(File),
    /// Standard output.
    Standard(io::Stdout),
}

impl ByteOutput {
    /// Standard output.
    pub(crate) fn standard() -> io::Result<ByteOutput> {
        Ok(ByteOutput::Standard(io::stdout()))
    }

    /// An open file.
    pub(crate) fn of(file: File) -> io::Result<ByteOutput> {
        Ok(ByteOutput::File(file))
    }

    /// The number of bytes that can be written without blocking: not known here, so the maximum.
    pub(crate) fn room(&self) -> usize {
        usize::MAX
    }

    /// The descriptor to poll: there is none.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Write for ByteOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ByteOutput::File(file) => file.write(bytes),
            ByteOutput::Standard(standard) => {
                let mut standard = standard.lock();
                standard.write_all(bytes)?;
                standard.flush()?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ByteOutput::File(file) => file.flush(),
            ByteOutput::Standard(standard) => standard.flush(),
        }
    }
}

/// A descriptor that becomes readable when one of some signals arrives.
pub(crate) struct SignalBell(TcpStream);

impl SignalBell {
    /// Starts the thread that polls `received`, which the handlers of the signals set. It ends after it has rung, or
    /// with the last other owner of `received`.
    pub(crate) fn register(_signals: &[i32], received: &Arc<AtomicUsize>) -> io::Result<SignalBell> {
        let (bell, mut clapper) = connected_pair()?;
        let received = Arc::downgrade(received);
        std::thread::Builder::new().name("signals".to_string()).spawn(move || {
            // Relaxed: nothing is handed over with the flag.
            while let Some(received) = received.upgrade()
                && received.load(Ordering::Relaxed) == 0
            {
                drop(received);
                std::thread::sleep(SIGNAL_POLL_INTERVAL);
            }
            // Without a reader there is nothing to wake.
            let _ = clapper.write_all(&[0]);
        })?;
        Ok(SignalBell(bell))
    }

    /// The descriptor.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Starts a TCP connection, which is established, or has failed, when its socket can be written to.
pub(crate) fn start_connection(to: SocketAddr) -> io::Result<TcpStream> {
    start_sockets()?;
    let socket = socket(family(to), SocketType::STREAM, None)?;
    let socket = TcpStream::from(socket);
    socket.set_nonblocking(true)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::WOULDBLOCK) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Lets the system reset a connection when it is closed, in place of delivering the rest.
pub(crate) fn reset_on_close(stream: &TcpStream) {
    // Otherwise the peer sees an ordinary end.
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Whether an operation failed because the process or the system has no descriptor or memory left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NOBUFS))
}

/// The number of bytes that have arrived and are not read, as far as a buffer holds them.
pub(crate) fn unread_bytes(stream: &TcpStream) -> u64 {
    stream.peek(&mut vec![0; 256 * 1024]).map_or(0, |length| length as u64)
}

/// A UDP socket that receives what is sent to a multicast group through the loopback interface; others may share its
/// port.
pub(crate) fn multicast_receiver(group: Ipv4Addr, port: u16) -> io::Result<UdpSocket> {
    start_sockets()?;
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    // Windows does not bind to a group.
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
    Ok(socket)
}

/// The standard library starts the library of sockets when it makes the first one; those made here may come before.
#[cfg(windows)]
fn start_sockets() -> io::Result<()> {
    rustix::net::wsa_startup().map(drop).map_err(io::Error::from)
}

#[cfg(not(windows))]
fn start_sockets() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
