//! Failures of the environment as messages to a program: a code that is the same on every system, and a text.

use super::message_codec::Value;
use crate::error::reason;
use std::fmt;
use std::io::{Error, ErrorKind};

/// The reason why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// The code by which a program distinguishes failures: see [`Failure::of`].
    pub(crate) code: u8,
    /// The text.
    pub(crate) reason: String,
}

const OTHER: u8 = 0;
const NOT_THERE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NO_ROOM: u8 = 3;
const WRONG: u8 = 4;
const NOT_OPEN: u8 = 5;
const EXISTS: u8 = 6;
const TOO_LARGE: u8 = 7;
const REFUSED: u8 = 8;
const UNREACHABLE: u8 = 9;
const BROKEN: u8 = 10;

impl Failure {
    /// The failure for an error of the system.
    pub(crate) fn of(error: &Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::NotFound => NOT_THERE,
            // `EXDEV`: the name leads out of the folder.
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::CrossesDevices => NOT_ALLOWED,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => NO_ROOM,
            ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory => WRONG,
            ErrorKind::AlreadyExists => EXISTS,
            ErrorKind::FileTooLarge => TOO_LARGE,
            ErrorKind::ConnectionRefused => REFUSED,
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::TimedOut => UNREACHABLE,
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => BROKEN,
            _ => OTHER,
        };
        let reason = match error.kind() {
            ErrorKind::CrossesDevices => "it is outside the folder".to_string(),
            _ => reason(error),
        };
        Failure { code, reason }
    }

    /// An invalid request.
    pub(crate) fn wrong(reason: &str) -> Failure {
        Failure { code: WRONG, reason: reason.to_string() }
    }

    /// No file or connection is open under this number.
    pub(crate) fn not_open() -> Failure {
        Failure { code: NOT_OPEN, reason: "it is not open".to_string() }
    }

    /// A file of this name exists.
    pub(crate) fn exists() -> Failure {
        Failure { code: EXISTS, reason: "file exists".to_string() }
    }

    /// The answer exceeds the channel's type.
    pub(crate) fn too_large() -> Failure {
        Failure { code: TOO_LARGE, reason: "it is larger than the channel's type holds".to_string() }
    }

    /// The values of the case `failed`; its text has at most `room` bytes.
    pub(crate) fn values(self, room: usize) -> Vec<Value> {
        let mut reason = self.reason;
        while reason.len() > room {
            reason.pop();
        }
        vec![Value::Number(i128::from(self.code)), Value::Bytes(reason.into_bytes())]
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::of(&error)
    }
}
