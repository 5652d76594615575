//! Steps: the operations of a pipe on the bytes that flow through it. Knows neither machines nor memory.

use std::fmt;

use crate::error::Error;
use crate::ir::UserStep;

/// The most steps of a pipe.
pub const MAX_STEPS: usize = 8;

/// The most steps of a pipe that take a key stream.
pub const MAX_STREAMS: usize = 4;

/// One step of a pipe. Steps are applied in order: a checksum before a swap is that of the input bytes, one after
/// it that of the bytes as they leave.
///
/// Elements of swaps are counted from the first byte of the data, whatever its address; an incomplete last element is
/// unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Changes no bytes; a pipe with this step writes them to its target.
    Copy,
    /// The Internet checksum (RFC 1071) of the bytes at this place.
    Checksum,
    /// CRC-32C (Castagnoli; RFC 3720) of the bytes at this place.
    Crc32c,
    /// Reverses the bytes of every 2.
    Swap16,
    /// Reverses the bytes of every 4.
    Swap32,
    /// Reverses the bytes of every 8.
    Swap64,
    /// Exclusive or with a key.
    Xor(Key),
    /// Counts bytes.
    Count,
    /// A step of the user's.
    User(UserStep),
}

/// The key of [`Step::Xor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// These bytes, repeated from the first byte of the data.
    Repeat([u8; 8]),
    /// A key as long as the data, passed with each run: the output of a stream cipher or of a block cipher in counter
    /// mode.
    Stream,
}

impl Key {
    /// A key that repeats 1, 2, 4 or 8 bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for another number of bytes.
    pub fn repeat(bytes: &[u8]) -> Result<Key, Error> {
        if !matches!(bytes.len(), 1 | 2 | 4 | 8) {
            return Err(Error::KeyLength(bytes.len()));
        }
        Ok(Key::Repeat(std::array::from_fn(|index| bytes[index % bytes.len()])))
    }
}

impl Step {
    /// Whether a pipe with this step has a target.
    pub fn writes(&self) -> bool {
        match self {
            Step::Copy | Step::Swap16 | Step::Swap32 | Step::Swap64 | Step::Xor(_) => true,
            Step::User(step) => step.writes(),
            Step::Checksum | Step::Crc32c | Step::Count => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Copy => write!(out, "copy"),
            Step::Checksum => write!(out, "checksum"),
            Step::Crc32c => write!(out, "crc32c"),
            Step::Swap16 => write!(out, "swap16"),
            Step::Swap32 => write!(out, "swap32"),
            Step::Swap64 => write!(out, "swap64"),
            Step::Xor(Key::Repeat(bytes)) => {
                write!(out, "xor 0x")?;
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
            Step::Xor(Key::Stream) => write!(out, "xor stream"),
            Step::Count => write!(out, "count"),
            Step::User(step) => write!(out, "{}", step.name()),
        }
    }
}
