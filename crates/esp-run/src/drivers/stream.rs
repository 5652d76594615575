//! Files, pipes and terminals read and written without waiting and without touching their flags: a descriptor is
//! asked with `poll` first, because `O_NONBLOCK` would be seen by every program that shares the terminal.

use super::endpoints::{Directions, OpenEndpoints};
use crate::binding::StreamEndpoint;
use crate::error::HostError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// How much is read at once, and how much output is gathered before it is written.
const CHUNK: usize = 64 * 1024;
/// A pipe or terminal that is ready takes at least this much without blocking (`PIPE_BUF` on Linux).
const PIECE: usize = 4096;

/// What a descriptor is, as far as waiting goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A regular file: always ready.
    File,
    /// Anything else.
    Stream,
}

/// What an attempt to read brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// More bytes.
    More,
    /// Nothing now.
    Pending,
    /// Nothing ever.
    Ended,
}

/// Bytes that come in.
pub(crate) struct Reader {
    file: File,
    kind: Kind,
    /// What messages call it.
    pub(crate) name: String,
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
}

impl Reader {
    /// Opens a endpoint for reading.
    pub(crate) fn open(
        endpoint: &StreamEndpoint,
        directions: Directions,
        endpoints: &mut OpenEndpoints,
    ) -> Result<Reader, HostError> {
        let (file, name) = endpoints.reader(endpoint, directions)?;
        let kind = kind(&file, "read", &name)?;
        Ok(Reader { file, kind, name, buffer: Vec::new(), start: 0, ended: false })
    }

    /// What has been read and not yet taken.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// The first `count` pending bytes are taken.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// Adds to the pending bytes what can be had without waiting.
    pub(crate) fn fill(&mut self) -> Result<Filled, HostError> {
        if self.ended {
            return Ok(Filled::Ended);
        }
        if self.kind == Kind::Stream && !ready(self.file.as_fd(), PollFlags::IN) {
            return Ok(Filled::Pending);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let outcome = self.file.read(&mut self.buffer[length..]);
        self.buffer.truncate(length + outcome.as_ref().map_or(0, |count| *count));
        match outcome {
            Ok(0) => {
                self.ended = true;
                Ok(Filled::Ended)
            }
            Ok(_) => Ok(Filled::More),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                Ok(Filled::Pending)
            }
            Err(error) => Err(HostError::file("read", &self.name, &error)),
        }
    }

    /// The descriptor to wait for.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Bytes that go out, gathered in memory first.
pub(crate) struct Writer {
    file: File,
    kind: Kind,
    /// What messages call it.
    pub(crate) name: String,
    /// Where it leads, to find out whether two channels share it.
    pub(crate) endpoint: StreamEndpoint,
    buffer: Vec<u8>,
    start: usize,
}

/// How a write ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    /// Everything is out.
    All,
    /// The other side does not read now.
    Pending,
    /// The other side will never read again.
    Closed,
}

impl Writer {
    /// Opens a endpoint for writing; a file is made anew.
    pub(crate) fn open(
        endpoint: &StreamEndpoint,
        directions: Directions,
        endpoints: &mut OpenEndpoints,
    ) -> Result<Writer, HostError> {
        let (file, name) = endpoints.writer(endpoint, directions)?;
        let kind = kind(&file, "write", &name)?;
        Ok(Writer { file, kind, name, endpoint: endpoint.clone(), buffer: Vec::new(), start: 0 })
    }

    /// Where to put bytes that shall go out.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Whether so much is gathered that it should be written before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() - self.start >= CHUNK
    }

    /// Whether there is anything to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.len() == self.start
    }

    /// Writes what the other side takes without waiting.
    pub(crate) fn flush(&mut self) -> Result<Written, HostError> {
        while !self.is_empty() {
            let pending = &self.buffer[self.start..];
            let piece = match self.kind {
                Kind::File => pending,
                Kind::Stream if !ready(self.file.as_fd(), PollFlags::OUT) => return Ok(Written::Pending),
                Kind::Stream => &pending[..pending.len().min(PIECE)],
            };
            match self.file.write(piece) {
                Ok(count) => self.start += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => return Ok(Written::Pending),
                    io::ErrorKind::BrokenPipe => {
                        self.buffer.clear();
                        self.start = 0;
                        return Ok(Written::Closed);
                    }
                    _ => return Err(HostError::file("write", &self.name, &error)),
                },
            }
        }
        self.buffer.clear();
        self.start = 0;
        Ok(Written::All)
    }

    /// The descriptor to wait for.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A directory can be opened for reading but not read: say so now, not at the first message.
fn kind(file: &File, doing: &str, name: &str) -> Result<Kind, HostError> {
    let metadata = file.metadata().map_err(|error| HostError::file(doing, name, &error))?;
    if metadata.is_dir() {
        return Err(HostError::new(format!("cannot {doing} `{name}`: it is a directory")).help("name a file in it"));
    }
    Ok(if metadata.is_file() { Kind::File } else { Kind::Stream })
}

/// Whether an operation would not wait. Hang-up and errors count as ready: the operation then tells.
fn ready(descriptor: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(descriptor, flags)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_ok_and(|count| count > 0)
}
