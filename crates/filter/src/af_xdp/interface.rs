//! A network interface: its index, queues and flags by `ioctl`, its changes by netlink.

use super::{AfXdpError, Step, owned, set_option};
use std::ffi::c_char;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `SIOCETHTOOL`, `ETHTOOL_GCHANNELS`, `ARPHRD_LOOPBACK`: <linux/sockios.h>, <linux/ethtool.h>, <linux/if_arp.h>.
const ETHTOOL: u64 = 0x8946;
const GET_CHANNELS: u32 = 0x3c;
const ETHERNET: [u16; 2] = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK];

/// An Ethernet interface, in promiscuous mode while this value lives.
#[derive(Debug)]
pub(super) struct Interface {
    name: [c_char; libc::IF_NAMESIZE],
    index: u32,
    /// The socket for requests about it.
    socket: OwnedFd,
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    receiving: u32,
    sending: u32,
    other: u32,
    combined: u32,
}

impl Interface {
    /// # Errors
    /// [`AfXdpError`] if there is none of this name, or it is not an Ethernet interface.
    pub(super) fn find(name: &str) -> Result<Interface, AfXdpError> {
        let absent = |code| AfXdpError::new(Step::Find, io::Error::from_raw_os_error(code));
        let mut own = [0; libc::IF_NAMESIZE];
        if name.len() >= own.len() || name.contains('\0') {
            return Err(absent(libc::ENODEV));
        }
        for (to, from) in own.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        // A socket for no protocol: it receives nothing.
        // SAFETY: no pointers are passed.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        let mut interface = Interface { name: own, index: 0, socket: owned(Step::Socket, socket)? };
        interface.index = interface.present_index().ok_or_else(|| absent(libc::ENODEV))?;
        let mut request = interface.request();
        interface.ioctl(libc::SIOCGIFHWADDR, &mut request).map_err(|error| AfXdpError::new(Step::Find, error))?;
        // SAFETY: the kernel has written an address, whose first member is a number.
        let kind = unsafe { request.ifr_ifru.ifru_hwaddr.sa_family };
        if !ETHERNET.contains(&kind) {
            return Err(absent(libc::EMEDIUMTYPE));
        }
        interface.check().map_err(|down| AfXdpError::new(Step::Find, down.error))?;
        let all = libc::packet_mreq {
            mr_ifindex: interface.index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(Step::Find, &interface.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)?;
        Ok(interface)
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// The number of its receive queues; one if the driver does not report it.
    pub(super) fn queues(&self) -> u32 {
        let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
        let mut request = self.request();
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        match self.ioctl(ETHTOOL, &mut request) {
            Ok(()) => (channels.receiving + channels.combined).max(1),
            Err(_) => 1,
        }
    }

    /// # Errors
    /// [`AfXdpError`] if it was removed or is down.
    pub(super) fn check(&self) -> Result<(), AfXdpError> {
        let error = |code| AfXdpError::new(Step::Listen, io::Error::from_raw_os_error(code));
        if self.present_index() != Some(self.index) {
            return Err(error(libc::ENODEV));
        }
        let mut request = self.request();
        self.ioctl(libc::SIOCGIFFLAGS, &mut request).map_err(|error| AfXdpError::new(Step::Listen, error))?;
        // SAFETY: the kernel has written the flags.
        let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        if flags & libc::IFF_UP != 0 {
            return Ok(());
        }
        // An interface that is being removed is set down first. This request is answered when the removal is complete.
        self.queues();
        let is_there = self.present_index() == Some(self.index);
        Err(error(if is_there { libc::ENETDOWN } else { libc::ENODEV }))
    }

    /// The index of the interface that has its name now.
    fn present_index(&self) -> Option<u32> {
        let mut request = self.request();
        self.ioctl(libc::SIOCGIFINDEX, &mut request).ok()?;
        // SAFETY: the kernel has written the number.
        Some(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: `ifreq` is plain data, for which zeros are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request
    }

    fn ioctl(&self, what: u64, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: these requests read and write one `ifreq`, and what it points to is what the request needs.
        let status = unsafe { libc::ioctl(self.socket.as_raw_fd(), what as _, std::ptr::from_mut(request)) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Reports changes of interfaces (rtnetlink). An AF_XDP socket does not: the removal of its interface wakes no waiter.
#[derive(Debug)]
pub(super) struct Changes {
    socket: OwnedFd,
}

impl Changes {
    pub(super) fn watch() -> Result<Changes, AfXdpError> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed.
        let socket = owned(Step::Watch, unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
        // SAFETY: `sockaddr_nl` is plain data, for which zeros are a value.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is one of `length` bytes and outlives the call.
        match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } {
            0 => Ok(Changes { socket }),
            _ => Err(AfXdpError::last(Step::Watch)),
        }
    }

    /// Whether any interface has changed since the last call.
    pub(super) fn any(&self) -> bool {
        let mut any = false;
        let mut room = [0_u8; 64];
        loop {
            // SAFETY: the buffer has the length that is passed; the rest of a message is dropped.
            let length = unsafe {
                libc::recv(self.socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT)
            };
            // ENOBUFS means that messages were lost, so that there was a change.
            if length < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return any;
            }
            any = true;
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
