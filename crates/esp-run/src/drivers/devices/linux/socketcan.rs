//! An interface of SocketCAN: a raw socket that reads and writes `struct can_frame`.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::fs::File;
use std::io::{self, Read, Write};

/// A socket on an interface of SocketCAN.
pub(in crate::drivers::devices) struct CanInterface(File);

impl CanInterface {
    /// Opens the interface; its frames are those of other nodes.
    pub(in crate::drivers::devices) fn open(interface: &str) -> io::Result<CanInterface> {
        let name = std::ffi::CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let flags = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: No pointers are passed.
        let socket = unsafe { libc::socket(libc::AF_CAN, flags, libc::CAN_RAW) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: The descriptor was made above and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: The name ends with a zero byte and outlives the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `sockaddr_can` is plain data, for which zeros are a value.
        let mut address: libc::sockaddr_can = unsafe { std::mem::zeroed() };
        address.can_family = libc::AF_CAN as libc::sa_family_t;
        address.can_ifindex = index as libc::c_int;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: The address is one of `length` bytes and outlives the call.
        let status = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(CanInterface(File::from(socket))) }
    }

    /// Reads one frame.
    pub(in crate::drivers::devices) fn read(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        self.0.read(frame)
    }

    /// Writes one frame.
    pub(in crate::drivers::devices) fn write(&mut self, frame: &[u8]) -> io::Result<usize> {
        self.0.write(frame)
    }

    /// The descriptor of the socket.
    pub(in crate::drivers::devices) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
