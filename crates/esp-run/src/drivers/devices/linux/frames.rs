//! `tap:` and `packet:`: a network interface, one message for each Ethernet frame. `tap:` is the other end of a virtual
//! interface, which carries traffic of this system; `packet:` receives and sends frames on an existing interface.
//!
//! Frames may be lost, so that no error of one ends the program: frames that arrive faster than they are received, that
//! are longer than the bound of the channel's type, or that the interface refuses are counted. An interface that is
//! down may come up again; one that is removed ends the program, after the frames that arrived before were received.
//!
//! Frames of an existing interface arrive in a ring that is shared with the kernel (`packet_ring.rs`), those of a
//! virtual one are read.
//!
//! With rules, each frame is classified: it is the case of a union that has the name of the first rule that matches.

use super::packet_ring::{PacketRing, read_frame};
use super::sorting::Sorting;
use crate::binding::Interface;
use crate::drivers::devices::{Device, Ends, Received};
use crate::drivers::message_codec::{FieldKind, MessageCodec, Value};
use crate::error::{HostCode, HostError, reason};
use crate::frame_log::FrameLog;
use crate::link_monitor::LinkMonitor;
use crate::poller::Interest;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, Program};
use rustix::event::PollFlags;
use rustix::io::Errno;
use smol_str::SmolStr;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// The largest possible frame, with a VLAN tag.
const MAX_FRAME_BYTES: usize = 65_536 + 4;
/// Frames held while the interface has no room for them.
const MAX_HELD: usize = 64;
/// The errors of a packet socket, or of the other end of a virtual interface, after the interface was removed.
const INTERFACE_REMOVED: [Errno; 3] = [Errno::NODEV, Errno::NXIO, Errno::BADFD];

/// One interface.
pub(super) struct Frames {
    name: SmolStr,
    file: File,
    /// The frames of a `packet:` socket.
    ring: Option<PacketRing>,
    /// Reports the removal of its interface.
    link: Option<LinkMonitor>,
    /// Whether the last wait had an event here: with a ring, that may be an error or a removal.
    had_event: bool,
    input: Option<MessageCodec>,
    sorting: Option<Sorting>,
    output: Option<MessageCodec>,
    log: Option<FrameLog>,
    held: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
    /// Losses that the kernel counts for a `packet:` socket; reading its counter clears it.
    overrun: std::cell::Cell<u64>,
    too_long: u64,
    refused: u64,
}

impl Frames {
    pub(super) fn tap(program: &Program, interface: &Interface, ends: Ends<'_>) -> Result<Frames, HostError> {
        let codecs = Codecs::of(program, "tap", interface, ends)?;
        let interface = interface.name.as_str();
        let opened = open_tap(interface).map_err(|error| {
            HostError::new(HostCode::Device, format!("cannot open the TAP interface `{interface}`: {}", reason(&error)))
                .help(format!("make one that you own: `ip tuntap add mode tap user $USER name {interface}`, as root"))
        })?;
        Ok(Frames::of(interface, opened, None, codecs, ends.log))
    }

    pub(super) fn packet(program: &Program, interface: &Interface, ends: Ends<'_>) -> Result<Frames, HostError> {
        let codecs = Codecs::of(program, "packet", interface, ends)?;
        let interface = interface.name.as_str();
        let (opened, shared) = open_packet(interface).map_err(|error| {
            HostError::new(HostCode::Device, format!("cannot open the interface `{interface}`: {}", reason(&error)))
                .help("this needs the capability CAP_NET_RAW; `ip link` names the interfaces")
        })?;
        Ok(Frames::of(interface, opened, Some(shared), codecs, ends.log))
    }

    fn of(
        name: &str,
        opened: OwnedFd,
        shared: Option<(PacketRing, LinkMonitor)>,
        codecs: Codecs,
        log: Option<&FrameLog>,
    ) -> Frames {
        let (ring, link) = shared.unzip();
        let Codecs { input, sorting, output } = codecs;
        Frames {
            name: name.into(),
            file: File::from(opened),
            ring,
            link,
            had_event: false,
            input,
            sorting,
            output,
            log: log.cloned(),
            held: VecDeque::new(),
            buffer: vec![0; MAX_FRAME_BYTES],
            overrun: std::cell::Cell::new(0),
            too_long: 0,
            refused: 0,
        }
    }

    /// Reads the next frame into the buffer and returns its length; `None` if there is none now.
    ///
    /// With a ring, the socket itself is read only where the ring says that a frame is in its queue: any other read
    /// could take a long frame before the shorter ones that arrived earlier, and without its VLAN tag.
    fn next(&mut self) -> Result<Option<usize>, Error> {
        let Some(ring) = &mut self.ring else { return read_frame(&mut self.file, &mut self.buffer) };
        // Asked before the ring is read, so that the frames that arrived before the removal are received.
        if self.had_event {
            clear_error(&self.file)?;
            self.had_event = self.link.as_ref().is_some_and(LinkMonitor::is_removed);
        }
        let found = ring.take(&mut self.file, &mut self.buffer)?;
        if found.is_none() && self.had_event { Err(Errno::NODEV.into()) } else { Ok(found) }
    }

    /// Sends one frame; whether there was room for it.
    fn transmit(&mut self, frame: &[u8]) -> Result<bool, HostError> {
        loop {
            // A frame is written completely or not at all.
            match rustix::io::write(&self.file, frame) {
                Ok(_) => {
                    self.log.as_ref().map_or(Ok(()), |log| log.add(frame))?;
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) if INTERFACE_REMOVED.contains(&error) => return Err(self.removed()),
                Err(_) => {
                    self.refused += 1;
                    return Ok(true);
                }
            }
        }
    }

    fn removed(&self) -> HostError {
        HostError::new(HostCode::Device, format!("the interface `{}` was removed", self.name)).help(
            "it was deleted, or moved to another network namespace, while the program used it; `ip link` lists the interfaces",
        )
    }
}

/// The conversions of the channels, made before the interface is opened.
struct Codecs {
    input: Option<MessageCodec>,
    sorting: Option<Sorting>,
    output: Option<MessageCodec>,
}

impl Codecs {
    fn of(program: &Program, driver: &str, interface: &Interface, ends: Ends<'_>) -> Result<Codecs, HostError> {
        let plain = |channel: &Channel| {
            MessageCodec::of_channel(program, channel, driver, &[FieldKind::Bytes], ": bytes[<=1514]`: one frame")
        };
        let output = ends.output.map(plain).transpose()?;
        Ok(match (ends.input, &interface.rules) {
            (Some(channel), Some(rules)) => {
                let (sorting, codec) = Sorting::open(program, channel, driver, rules)?;
                Codecs { input: Some(codec), sorting: Some(sorting), output }
            }
            (input, _) => Codecs { input: input.map(plain).transpose()?, sorting: None, output },
        })
    }
}

/// Clears the error of a socket and returns it. An interface that is down is no error: it may come up again.
fn clear_error(socket: &File) -> Result<(), Error> {
    match rustix::net::sockopt::socket_error(socket)? {
        Ok(()) | Err(Errno::NETDOWN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens the other end of the TAP interface of this name, which is created if it does not exist.
fn open_tap(interface: &str) -> Result<OwnedFd, Error> {
    let file = rustix::fs::open(
        "/dev/net/tun",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    // SAFETY: `ifreq` is plain data, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    put_name(interface, &mut request.ifr_name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if status < 0 { Err(Error::last_os_error()) } else { Ok(file) }
}

/// A socket for the frames of an interface, its ring, and the monitor of the interface. Before it is bound, the socket
/// receives nothing.
fn open_packet(interface: &str) -> Result<(OwnedFd, (PacketRing, LinkMonitor)), Error> {
    let link = LinkMonitor::of(interface)?;
    // SAFETY: No pointers are passed.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: The descriptor was made above and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let yes: libc::c_int = 1;
    // The socket does not receive what this program sends.
    // SAFETY: The option's value is one `int`, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    if status < 0 {
        return Err(Error::last_os_error());
    }
    let ring = PacketRing::open(&socket)?;
    // SAFETY: `sockaddr_ll` is plain data, for which zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = link.index() as i32;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: The address is one of `length` bytes and outlives the call.
    let status = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if status < 0 { Err(Error::last_os_error()) } else { Ok((socket, (ring, link))) }
}

/// Writes a name that ends with a zero byte.
fn put_name(name: &str, to: &mut [libc::c_char]) -> Result<(), Error> {
    if name.len() >= to.len() {
        return Err(Error::new(ErrorKind::InvalidInput, "the name is longer than 15 characters"));
    }
    for (to, from) in to.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(())
}

impl Device for Frames {
    fn receive(&mut self) -> Result<Received, HostError> {
        loop {
            let read = self.next().map_err(|error| match Errno::from_io_error(&error) {
                Some(errno) if INTERFACE_REMOVED.contains(&errno) => self.removed(),
                Some(_) | None => HostError::new(
                    HostCode::Device,
                    format!("cannot read from the interface `{}`: {}", self.name, reason(&error)),
                ),
            })?;
            let (Some(length), Some(codec)) = (read, &self.input) else { return Ok(Received::Nothing) };
            let frame = &self.buffer[..length];
            self.log.as_ref().map_or(Ok(()), |log| log.add(frame))?;
            let value = match &mut self.sorting {
                None if length <= codec.bytes_bound() => Value::Bytes(frame.to_vec()),
                None => {
                    self.too_long += 1;
                    continue;
                }
                Some(sorting) => match sorting.sort(frame) {
                    Some(value) => value,
                    // The program has no case for it.
                    None => continue,
                },
            };
            match codec.encode(vec![value]) {
                Ok(message) => return Ok(Received::Message(message)),
                Err(_) => self.too_long += 1,
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.held.len() < MAX_HELD
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let Some(codec) = &self.output else { return Ok(()) };
        let Some(frame) = codec.decode(message).pop().map(Value::into_bytes) else { return Ok(()) };
        if !self.held.is_empty() || !self.transmit(&frame)? {
            self.held.push_back(frame);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), HostError> {
        while let Some(frame) = self.held.pop_front() {
            if !self.transmit(&frame)? {
                self.held.push_front(frame);
                break;
            }
        }
        Ok(())
    }

    fn holds_output(&self) -> bool {
        !self.held.is_empty()
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>) {
        let mut flags = PollFlags::empty();
        if reading {
            flags |= PollFlags::IN;
        }
        if !self.held.is_empty() {
            flags |= PollFlags::OUT;
        }
        if !flags.is_empty() {
            watched.push((self.file.as_fd(), flags));
        }
        if let (true, Some(link)) = (reading, &self.link) {
            watched.push((link.as_fd(), PollFlags::IN));
        }
    }

    fn woken(&mut self, happened: &[bool]) {
        self.had_event = happened.contains(&true);
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        if self.ring.is_some() {
            self.overrun.set(self.overrun.get() + dropped(&self.file));
        }
        vec![
            (
                self.overrun.get() + self.ring.as_ref().map_or(0, PacketRing::cut),
                "faster than the program received them",
            ),
            (self.too_long, "longer than the channel's type holds"),
            (self.refused, "not sent"),
        ]
    }
}

/// The number of frames that the kernel has dropped since the last call.
fn dropped(socket: &File) -> u64 {
    // `struct tpacket_stats`: packets, drops.
    let mut statistics = [0u32; 2];
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: 1. The pointers are to `statistics` and `length`, which outlive the call. 2. `length` is the size of
    // `statistics`, so that no more is written.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status == 0 { u64::from(statistics[1]) } else { 0 }
}
