//! `can:`: a bus of frames, each an identifier and up to eight bytes. `can:NAME` is an interface of SocketCAN;
//! `can:PORT` is a bus of this machine, for where there is none: datagrams of UDP multicast on the loopback interface, in
//! the form of python-can's interface `udp_multicast`, which so joins it.
//!
//! The identifier is SocketCAN's `can_id`: bit 31 says that it has 29 bits instead of 11, bit 30 that the frame asks for
//! another one. Frames may be lost, so nothing that happens to one stops the program.

use super::udp::dropped;
use super::{Device, Ends, Received};
use crate::binding::Bus as Name;
use crate::drivers::form::{Form, Value, Want};
use crate::error::{HostError, reason};
use crate::poller::Interest;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, Program};
use rmpv::Value as Packed;
use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::SystemTime;

/// The address that python-can has for this by default.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 74, 163, 2);
/// Frames held while the bus has no room for them.
const HELD: usize = 64;
/// What a classic frame holds.
const DATA: usize = 8;
/// `struct can_frame`: identifier, length, three bytes that mean nothing here, data.
const FRAME: usize = 16;

/// One bus.
pub(super) struct Can {
    bus: Bus,
    input: Option<Form>,
    output: Option<Form>,
    held: VecDeque<Frame>,
    buffer: Vec<u8>,
    too_long: u64,
    foreign: u64,
    refused: u64,
}

enum Bus {
    Interface(File),
    /// `own` is where our frames come from, which we do not want to receive.
    Loopback {
        receiver: UdpSocket,
        sender: UdpSocket,
        own: SocketAddr,
        to: SocketAddrV4,
    },
}

/// An identifier, as SocketCAN has it, and data.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Frame {
    id: u32,
    data: Vec<u8>,
}

impl Can {
    pub(super) fn open(program: &Program, name: &Name, ends: Ends<'_>) -> Result<Can, HostError> {
        let form = |channel: &Channel| {
            let wants = &[Want::Number(u32::MAX as u64), Want::Bytes];
            Form::fit(program, channel, "can", wants, "(u32, bytes[<=8])`: identifier, data")
        };
        let input = ends.input.map(form).transpose()?;
        let output = ends.output.map(form).transpose()?;
        let bus = match name {
            Name::Interface(interface) => open_interface(interface).map_err(|os_error| {
                let error = HostError::new(format!("cannot open the CAN interface `{interface}`: {}", reason(&os_error)));
                match os_error.raw_os_error() {
                    Some(libc::EAFNOSUPPORT) => error.help(
                        "this system has no SocketCAN; `can:43113` is a bus of this machine that other programs can join",
                    ),
                    _ => error.help("`ip link` names the interfaces; `can:43113` is a bus of this machine without one"),
                }
            })?,
            Name::Loopback(port) => open_loopback(*port).map_err(|error| {
                HostError::new(format!("cannot open the CAN bus at UDP port {port} of {GROUP}: {}", reason(&error)))
                    .help("the loopback interface must be up: `ip link set lo up`")
            })?,
        };
        Ok(Can {
            bus,
            input,
            output,
            held: VecDeque::new(),
            buffer: vec![0; 4096],
            too_long: 0,
            foreign: 0,
            refused: 0,
        })
    }

    /// Sends one frame; whether there was room for it.
    fn transmit(&mut self, frame: &Frame) -> bool {
        loop {
            let sent = match &mut self.bus {
                Bus::Interface(file) => file.write(&kernel_form(frame)),
                Bus::Loopback { sender, to, .. } => sender.send_to(&packed_form(frame), *to),
            };
            match sent {
                Ok(_) => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => {
                    self.refused += 1;
                    return true;
                }
            }
        }
    }

    fn next(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            let (read, own) = match &mut self.bus {
                Bus::Interface(file) => (file.read(&mut self.buffer), false),
                Bus::Loopback { receiver, own, .. } => match receiver.recv_from(&mut self.buffer) {
                    Ok((length, from)) => (Ok(length), from == *own),
                    Err(error) => (Err(error), false),
                },
            };
            let frame = match (read, &self.bus) {
                (Ok(_), _) if own => continue,
                (Ok(length), Bus::Interface(_)) => from_kernel(&self.buffer[..length]),
                (Ok(length), Bus::Loopback { .. }) => unpacked(&self.buffer[..length]),
                (Err(error), _) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    ErrorKind::Interrupted | ErrorKind::NetworkDown => continue,
                    _ => return Err(error),
                },
            };
            match frame {
                Some(frame) => return Ok(Some(frame)),
                None => self.foreign += 1,
            }
        }
    }

    fn descriptors(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        match &self.bus {
            Bus::Interface(file) => (file.as_fd(), file.as_fd()),
            Bus::Loopback { receiver, sender, .. } => (receiver.as_fd(), sender.as_fd()),
        }
    }
}

/// A socket on an interface of SocketCAN, which gives us the frames of others.
fn open_interface(interface: &str) -> Result<Bus, Error> {
    let name = std::ffi::CString::new(interface).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
    let flags = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: No pointers are passed.
    let socket = unsafe { libc::socket(libc::AF_CAN, flags, libc::CAN_RAW) };
    if socket < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: The descriptor was made above and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: The name ends with a zero byte and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: `sockaddr_can` is plain data, for which zeros are a value.
    let mut address: libc::sockaddr_can = unsafe { std::mem::zeroed() };
    address.can_family = libc::AF_CAN as libc::sa_family_t;
    address.can_ifindex = index as libc::c_int;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: The address is one of `length` bytes and outlives the call.
    let status = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if status < 0 { Err(Error::last_os_error()) } else { Ok(Bus::Interface(File::from(socket))) }
}

/// Two sockets on the loopback interface: what one receives the other has not sent.
fn open_loopback(port: u16) -> Result<Bus, Error> {
    let to = SocketAddrV4::new(GROUP, port);
    let receiver = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // Everybody on the bus has this port.
    sockopt::set_socket_reuseaddr(&receiver, true)?;
    rustix::net::bind(&receiver, &to)?;
    let receiver = UdpSocket::from(receiver);
    receiver.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
    receiver.set_nonblocking(true)?;
    // Its address says by which interface it sends.
    let sender = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    sender.set_nonblocking(true)?;
    let own = sender.local_addr()?;
    Ok(Bus::Loopback { receiver, sender, own, to })
}

fn kernel_form(frame: &Frame) -> [u8; FRAME] {
    let mut bytes = [0; FRAME];
    bytes[..4].copy_from_slice(&frame.id.to_ne_bytes());
    bytes[4] = frame.data.len() as u8;
    bytes[DATA..DATA + frame.data.len()].copy_from_slice(&frame.data);
    bytes
}

fn from_kernel(bytes: &[u8]) -> Option<Frame> {
    let frame: &[u8; FRAME] = bytes.try_into().ok()?;
    let id = u32::from_ne_bytes([frame[0], frame[1], frame[2], frame[3]]);
    let data = frame[DATA..].get(..usize::from(frame[4]))?;
    (id & libc::CAN_ERR_FLAG == 0).then(|| Frame { id, data: data.to_vec() })
}

/// As python-can packs it: a map from names to values (MessagePack).
fn packed_form(frame: &Frame) -> Vec<u8> {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let (extended, remote) = (frame.id & libc::CAN_EFF_FLAG != 0, frame.id & libc::CAN_RTR_FLAG != 0);
    let data = if remote { Vec::new() } else { frame.data.clone() };
    let fields = [
        ("timestamp", Packed::from(time)),
        ("arbitration_id", Packed::from(frame.id & libc::CAN_EFF_MASK)),
        ("is_extended_id", Packed::from(extended)),
        ("is_remote_frame", Packed::from(remote)),
        ("is_error_frame", Packed::from(false)),
        ("channel", Packed::Nil),
        ("dlc", Packed::from(frame.data.len())),
        ("data", Packed::Binary(data)),
        ("is_fd", Packed::from(false)),
        ("bitrate_switch", Packed::from(false)),
        ("error_state_indicator", Packed::from(false)),
    ];
    let map = fields.into_iter().map(|(name, value)| (Packed::from(name), value)).collect();
    let mut bytes = Vec::with_capacity(192);
    rmpv::encode::write_value(&mut bytes, &Packed::Map(map)).expect("a vector takes what is written");
    bytes
}

/// A frame as python-can packs it; nothing if it is none, or none of classic CAN.
fn unpacked(mut bytes: &[u8]) -> Option<Frame> {
    let map = rmpv::decode::read_value(&mut bytes).ok()?;
    let fields = map.as_map()?;
    let field = |name: &str| fields.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value);
    let is = |name: &str| field(name).and_then(Packed::as_bool).unwrap_or(false);
    let id = u32::try_from(field("arbitration_id")?.as_u64()?).ok()?;
    let largest = if is("is_extended_id") { libc::CAN_EFF_MASK } else { libc::CAN_SFF_MASK };
    if id > largest || is("is_error_frame") || is("is_fd") {
        return None;
    }
    let length = field("dlc").and_then(Packed::as_u64).unwrap_or(0) as usize;
    let (data, remote) = match is("is_remote_frame") {
        true => (vec![0; length.min(DATA)], libc::CAN_RTR_FLAG),
        false => (field("data")?.as_slice()?.to_vec(), 0),
    };
    let extended = if is("is_extended_id") { libc::CAN_EFF_FLAG } else { 0 };
    (data.len() <= DATA).then_some(Frame { id: id | extended | remote, data })
}

impl Device for Can {
    fn receive(&mut self) -> Result<Received, HostError> {
        loop {
            let frame =
                self.next().map_err(|error| HostError::new(format!("cannot read from the bus: {}", reason(&error))))?;
            let Some(frame) = frame else { return Ok(Received::Nothing) };
            let Some(form) = &self.input else { continue };
            match form.message(vec![Value::Number(i128::from(frame.id)), Value::Bytes(frame.data)]) {
                Ok(message) => return Ok(Received::Message(message)),
                Err(_) => self.too_long += 1,
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.held.len() < HELD
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let Some(form) = &self.output else { return Ok(()) };
        let mut values = form.values(message);
        let Some(data) = values.pop().map(Value::into_bytes) else { return Ok(()) };
        let id = values.pop().map_or(0, |id| id.number() as u32);
        let largest = if id & libc::CAN_EFF_FLAG != 0 { libc::CAN_EFF_MASK } else { libc::CAN_SFF_MASK };
        if data.len() > DATA || id & libc::CAN_EFF_MASK > largest || id & libc::CAN_ERR_FLAG != 0 {
            self.refused += 1;
            return Ok(());
        }
        let frame = Frame { id, data };
        if !self.held.is_empty() || !self.transmit(&frame) {
            self.held.push_back(frame);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), HostError> {
        while let Some(frame) = self.held.pop_front() {
            if !self.transmit(&frame) {
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
        let (receiver, sender) = self.descriptors();
        if reading {
            watched.push((receiver, PollFlags::IN));
        }
        if !self.held.is_empty() {
            watched.push((sender, PollFlags::OUT));
        }
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        let overrun = dropped(self.descriptors().0);
        vec![
            (overrun, "faster than the program received them"),
            (self.too_long, "longer than the channel's type holds"),
            (self.foreign, "no classic frames"),
            (self.refused, "not sent"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, from_kernel, kernel_form, packed_form, unpacked};

    #[test]
    fn a_frame_survives_both_forms() {
        for id in [0, 0x7ff, 0x8000_0000, 0x9fff_ffff, 0x4000_0123, 0xc000_0123] {
            for length in 0..=8 {
                let data = if id & 0x4000_0000 != 0 { vec![0; length] } else { (1..=length as u8).collect() };
                let frame = Frame { id, data };
                assert_eq!(from_kernel(&kernel_form(&frame)), Some(frame.clone()));
                assert_eq!(unpacked(&packed_form(&frame)), Some(frame));
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_none() {
        let whole = packed_form(&Frame { id: 0x123, data: vec![1, 2, 3] });
        for length in 0..whole.len() {
            assert_eq!(unpacked(&whole[..length]), None, "the first {length} bytes");
        }
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                if let Some(frame) = unpacked(&damaged) {
                    assert!(frame.data.len() <= 8);
                }
            }
        }
        // Lists within lists, and one that says to be endless.
        assert_eq!(unpacked(&[0x91; 4096]), None);
        assert_eq!(unpacked(&[0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0]), None);
        assert_eq!(from_kernel(&[0; 15]), None);
        assert_eq!(from_kernel(&[9; 16]), None);
    }
}
