//! Whether a network interface is still there. Knows nothing of frames.
//!
//! A packet socket does not tell: it says that its interface is down, which it is before it is gone, and then nothing more.
//! The system's messages about interfaces do (rtnetlink(7), `RTMGRP_LINK`).

use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::io::Error;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `RTMGRP_LINK`: interfaces that come, go, or change.
const LINK: u32 = libc::RTMGRP_LINK as u32;

/// An interface whose end is waited for.
pub(super) struct LinkMonitor {
    changes: OwnedFd,
    index: u32,
}

impl LinkMonitor {
    /// Finds an interface by its name, and listens to what becomes of it.
    pub(super) fn of(interface: &str) -> Result<LinkMonitor, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let changes = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        // First: what happens after it is found is not missed.
        bind(&changes, &SocketAddrNetlink::new(0, LINK))?;
        let index = name_to_index(&changes, interface)?;
        Ok(LinkMonitor { changes, index })
    }

    /// The number of the interface.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Whether it is gone; also if it has another network now. Takes the messages that have come.
    pub(super) fn is_removed(&self) -> bool {
        // What is said does not matter, nor that there was no room to say it: the question is asked afresh.
        let mut room = [0_u8; 64];
        while matches!(
            recv(&self.changes, &mut room, RecvFlags::DONTWAIT),
            Ok(_) | Err(rustix::io::Errno::NOBUFS | rustix::io::Errno::INTR)
        ) {}
        index_to_name(&self.changes, self.index).is_err()
    }
}

impl AsFd for LinkMonitor {
    /// Ready when an interface has changed, whichever.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}
