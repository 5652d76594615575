//! Why a routine could not be synthesised.

use core::fmt;

use quaject_vcode as vcode;

/// Why a routine could not be synthesised. Nothing has changed then: no memory is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The arena has no block of that size; blocks that wait for their grace period do not count.
    NoMemory,
    /// The code is wrong.
    Code(vcode::Error),
    /// There are more instructions that may fault than a routine has room for.
    Exceptions,
    /// A template has more holes or jumps than there is room for, or an address for a hole is missing.
    Holes,
    /// The first instruction of a routine is too short to be replaced by a jump while threads execute it.
    FirstInstruction,
    /// A place of the ready queue is in use, or has no thread, or does not exist.
    Place,
}

impl From<vcode::Error> for Error {
    fn from(error: vcode::Error) -> Error {
        Error::Code(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoMemory => f.write_str("the arena is full: free routines, or pass a quiescent point"),
            Error::Code(error) => write!(f, "{error}"),
            Error::Exceptions => f.write_str("the routine has too many instructions that may fault"),
            Error::Holes => f.write_str("a template has too many holes, or an address for one of them is missing"),
            Error::FirstInstruction => {
                f.write_str("the first instruction has fewer than five bytes: begin with a longer one")
            }
            Error::Place => f.write_str("the place of the ready queue is in use, or empty, or there is none"),
        }
    }
}

impl core::error::Error for Error {}
