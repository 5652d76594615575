//! Buffers in front of files, pipes and terminals, which are read and written without blocking ([`crate::system`]).

use super::endpoints::{Directions, OpenEndpoints};
use crate::binding::StreamEndpoint;
use crate::error::{HostCode, HostError};
use crate::system::{ByteInput, ByteOutput};
use rustix::fd::BorrowedFd;
use std::io::{self, Read, Write};

/// The size of a read, and the amount of output that is collected before it is written.
const CHUNK: usize = 64 * 1024;

/// The result of an attempt to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// More bytes.
    More,
    /// None now.
    Pending,
    /// None, and never again.
    Ended,
}

/// A buffered input.
pub(crate) struct Reader {
    input: ByteInput,
    /// Its name in messages.
    pub(crate) name: String,
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
}

impl Reader {
    /// Opens an endpoint for reading.
    pub(crate) fn open(
        endpoint: &StreamEndpoint,
        directions: Directions,
        endpoints: &mut OpenEndpoints,
    ) -> Result<Reader, HostError> {
        let (input, name) = endpoints.reader(endpoint, directions)?;
        if input.is_directory() {
            // It opens for reading, but cannot be read: reported here instead of at the first message.
            return Err(HostError::new(HostCode::File, format!("cannot read `{name}`: it is a directory"))
                .help("name a file in it"));
        }
        Ok(Reader { input, name, buffer: Vec::new(), start: 0, ended: false })
    }

    /// The bytes that have been read and not yet consumed.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Removes the first `count` pending bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// Adds to the pending bytes those that can be read without blocking.
    pub(crate) fn fill(&mut self) -> Result<Filled, HostError> {
        if self.ended {
            return Ok(Filled::Ended);
        }
        if !self.input.is_ready() {
            return Ok(Filled::Pending);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let outcome = self.input.read(&mut self.buffer[length..]);
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

    /// The descriptor to wait for, if reading may block.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.input.descriptor()
    }
}

/// A buffered output.
pub(crate) struct Writer {
    output: ByteOutput,
    /// Its name in messages.
    pub(crate) name: String,
    /// Its endpoint, by which channels find a writer that they share.
    pub(crate) endpoint: StreamEndpoint,
    buffer: Vec<u8>,
    start: usize,
}

/// The result of an attempt to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    /// Everything is written.
    All,
    /// The reader is not ready.
    Pending,
    /// The reader has closed it.
    Closed,
}

impl Writer {
    /// Opens an endpoint for writing; a file is emptied or created.
    pub(crate) fn open(
        endpoint: &StreamEndpoint,
        directions: Directions,
        endpoints: &mut OpenEndpoints,
    ) -> Result<Writer, HostError> {
        let (output, name) = endpoints.writer(endpoint, directions)?;
        Ok(Writer { output, name, endpoint: endpoint.clone(), buffer: Vec::new(), start: 0 })
    }

    /// The buffer, to which bytes are appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Whether the buffer should be written before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() - self.start >= CHUNK
    }

    /// Whether everything is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.len() == self.start
    }

    /// Writes as much as is possible without blocking.
    pub(crate) fn flush(&mut self) -> Result<Written, HostError> {
        while !self.is_empty() {
            let pending = &self.buffer[self.start..];
            let piece = match self.output.room() {
                0 => return Ok(Written::Pending),
                room => &pending[..pending.len().min(room)],
            };
            match self.output.write(piece) {
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

    /// The descriptor to wait for, if writing may block.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.output.descriptor()
    }
}
