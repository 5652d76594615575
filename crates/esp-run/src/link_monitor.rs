//! Monitors whether a network interface exists, by the kernel's messages about interfaces (rtnetlink(7),
//! `RTMGRP_LINK`). A packet socket reports only that its interface is down, which also happens before a removal. Knows
//! no frames.

use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::io::Error;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `RTMGRP_LINK`: interfaces that are added, removed or changed.
const LINK: u32 = libc::RTMGRP_LINK as u32;

/// The monitor of one interface.
pub struct LinkMonitor {
    changes: OwnedFd,
    index: u32,
}

impl LinkMonitor {
    /// Finds an interface by its name and starts to monitor it.
    ///
    /// # Errors
    /// What the system says if there is no such interface.
    pub fn of(interface: &str) -> Result<LinkMonitor, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let changes = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        // Before the look-up, so that no later change is missed.
        bind(&changes, &SocketAddrNetlink::new(0, LINK))?;
        let index = name_to_index(&changes, interface)?;
        Ok(LinkMonitor { changes, index })
    }

    /// The number of the interface.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether it was removed or moved to another network namespace. Drains the messages that have arrived.
    pub fn is_removed(&self) -> bool {
        // The content does not matter, nor a full buffer: the interface is looked up again.
        let mut room = [0_u8; 64];
        while matches!(
            recv(&self.changes, &mut room, RecvFlags::DONTWAIT),
            Ok(_) | Err(rustix::io::Errno::NOBUFS | rustix::io::Errno::INTR)
        ) {}
        index_to_name(&self.changes, self.index).is_err()
    }
}

impl AsFd for LinkMonitor {
    /// Ready when any interface has changed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}
