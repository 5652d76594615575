//! Devices that only Linux has, on another system: each is refused with a driver that works there.

use super::{Device, Ends};
use crate::binding::DeviceEndpoint;
use crate::error::HostError;
use quaject_esp_ir::ir::Program;
use rustix::fd::BorrowedFd;
use std::io;

/// Refuses a device of Linux.
pub(super) fn open(_program: &Program, name: &DeviceEndpoint, _ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    let (driver, instead) = match name {
        DeviceEndpoint::Files(_) => ("file", "`bytes:PATH` and `text:PATH` read and write single files"),
        DeviceEndpoint::Ring(_) => ("ring", "`tcp:ADDRESS` and `udp:ADDRESS` connect processes of one machine"),
        DeviceEndpoint::Tap(_) => ("tap", "`udp:ADDRESS` carries frames as datagrams"),
        DeviceEndpoint::Packet(_) => ("packet", "`udp:ADDRESS` carries frames as datagrams"),
        DeviceEndpoint::Udp(_) | DeviceEndpoint::Tcp(_) | DeviceEndpoint::Can(_) => {
            unreachable!("`super::open` opens them")
        }
    };
    Err(HostError::unsupported(format!("driver `{driver}` needs Linux")).help(instead))
}

/// How many datagrams the system has dropped because the socket's buffer was full: not known here.
pub(super) fn dropped_datagrams(_socket: BorrowedFd<'_>) -> u64 {
    0
}

/// An interface of SocketCAN, of which there is none.
pub(super) enum CanInterface {}

impl CanInterface {
    /// Refuses the interface.
    pub(super) fn open(_interface: &str) -> io::Result<CanInterface> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "SocketCAN needs Linux"))
    }

    /// Cannot be called: there is no interface.
    pub(super) fn read(&mut self, _frame: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    /// Cannot be called: there is no interface.
    pub(super) fn write(&mut self, _frame: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    /// Cannot be called: there is no interface.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
