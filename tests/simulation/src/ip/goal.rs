//! The goal of an exchange, and how it can end. Knows no protocol.

use smoltcp::wire::Ipv4Address;

/// With which host an exchange is to take place, and its expected result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// An address of the host itself.
    pub(crate) source: Ipv4Address,
    pub(crate) target: Ipv4Address,
    pub(crate) port: u16,
    pub(crate) expected: Expected,
}

/// The result on an unimpaired network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Served,
    /// The target reports that the port is closed.
    Refused,
    /// No answer.
    Ignored,
    /// No further answer after a pause.
    Forgotten,
}

/// How an exchange has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All bytes have arrived, or the result is the expected one.
    Done,
    /// The other side has closed at a timeout before it received anything.
    Dismissed,
    /// The other side has reset the connection.
    Reset,
    /// Nothing has arrived for too long.
    TimedOut,
    /// This side has aborted the connection on purpose.
    Broken,
}
