//! The operating system as the drivers need it: files read and written without waiting, identities of files, signals
//! that wake a poll, sockets. Each function exists for every system, with one signature; [`unix`] uses descriptors and
//! `poll`, [`portable`] the standard library and a thread for each input that would block. Knows no driver.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::net::AddressFamily;
use std::net::SocketAddr;
use std::time::Duration;

#[cfg(any(test, not(unix)))]
#[cfg_attr(unix, expect(dead_code, reason = "on Unix it exists for its tests only"))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use portable::*;
#[cfg(unix)]
pub(crate) use unix::*;

/// The access of a file that is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileMode {
    /// It is read and written.
    Data,
    /// It is executed, too.
    Program,
}

/// Whether an operation on a descriptor would not block. Hang-up and errors count as ready: the operation then reports
/// them.
pub(crate) fn is_ready(descriptor: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, flags)];
    poll(&mut polled, Some(&timespec(Duration::ZERO))).is_ok_and(|count| count > 0)
}

/// A duration as `poll` takes it, whose integers differ among systems.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs().min(i64::MAX as u64) as i64, tv_nsec: duration.subsec_nanos() as _ }
}

/// The family of an address.
fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}
