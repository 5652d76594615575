//! Devices of Linux: shared memory rings, TAP and packet interfaces, folders of files, interfaces of SocketCAN.

mod files;
mod frames;
mod packet_ring;
mod ring;
mod socketcan;
mod sorting;

pub(super) use socketcan::CanInterface;

use super::{Device, Ends};
use crate::binding::DeviceEndpoint;
use crate::error::HostError;
use quaject_esp_ir::ir::Program;
use rustix::fd::{AsRawFd, BorrowedFd};

/// Opens a device of Linux.
pub(super) fn open(program: &Program, name: &DeviceEndpoint, ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    Ok(match name {
        DeviceEndpoint::Files(root) => Box::new(files::Files::open(program, root, ends)?),
        DeviceEndpoint::Ring(name) => ring::open(program, name, ends)?,
        DeviceEndpoint::Tap(interface) => Box::new(frames::Frames::tap(program, interface, ends)?),
        DeviceEndpoint::Packet(interface) => Box::new(frames::Frames::packet(program, interface, ends)?),
        DeviceEndpoint::Udp(_) | DeviceEndpoint::Tcp(_) | DeviceEndpoint::Can(_) => {
            unreachable!("`super::open` opens them")
        }
    })
}

/// How many datagrams the system has dropped because the socket's buffer was full.
pub(super) fn dropped_datagrams(socket: BorrowedFd<'_>) -> u64 {
    // SK_MEMINFO_DROPS, the last of the nine words (linux/sock_diag.h).
    const DROPS: usize = 8;
    let mut words = [0u32; DROPS + 1];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: 1. The pointers are to `words` and `length`, which outlive the call. 2. `length` is the size of `words`,
    // so that no more is written.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status == 0 { u64::from(words[DROPS]) } else { 0 }
}
