//! Devices of Linux: shared memory rings, TAP and packet interfaces, folders of files, interfaces of SocketCAN.

mod files;
mod frames;
mod link_monitor;
mod packet_ring;
mod ring;
mod socketcan;
mod sorting;

pub(super) use socketcan::CanInterface;

use super::{Device, Ends};
use crate::binding::Device as Name;
use crate::error::HostError;
use quaject_esp_ir::ir::Program;
use rustix::fd::{AsRawFd, BorrowedFd};

/// Opens a device of Linux.
pub(super) fn open(program: &Program, name: &Name, ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    Ok(match name {
        Name::Files(root) => Box::new(files::Files::open(program, root, ends)?),
        Name::Ring(name) => ring::open(program, name, ends)?,
        Name::Tap(interface) => Box::new(frames::Frames::tap(program, interface, ends)?),
        Name::Packet(interface) => Box::new(frames::Frames::packet(program, interface, ends)?),
        Name::Udp(_) | Name::Tcp(_) | Name::Can(_) => unreachable!("`super::open` opens them"),
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
