//! `can:`: a bus of frames, each an identifier and up to eight bytes. `can:NAME` is an interface of SocketCAN;
//! `can:PORT` is a virtual bus of this machine: datagrams of UDP multicast on the loopback interface, in the form of
//! python-can's interface `udp_multicast`, which can join it.
//!
//! The identifier is SocketCAN's `can_id`: bit 31 marks one of 29 bits instead of 11, bit 30 a remote frame, which
//! requests a frame of data. Frames may be lost, so that no error of a single frame ends the program.

mod frame;

use super::platform::{CanInterface, dropped_datagrams};
use super::{Device, Ends, Received};
use crate::binding::CanEndpoint;
use crate::drivers::message_codec::{FieldKind, MessageCodec, Value};
use crate::error::{HostCode, HostError, reason};
use crate::frame_log::FrameLog;
use crate::poller::Interest;
use crate::system;
use frame::{CAN_EFF_FLAG, CAN_EFF_MASK, CAN_ERR_FLAG, CAN_SFF_MASK, CanFrame, MAX_DATA_BYTES};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, Program};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

/// The default address of python-can's interface.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 74, 163, 2);
/// Frames held while the bus has no room for them.
const HELD: usize = 64;

/// One bus.
pub(super) struct Can {
    bus: Bus,
    input: Option<MessageCodec>,
    output: Option<MessageCodec>,
    log: Option<FrameLog>,
    held: VecDeque<CanFrame>,
    buffer: Vec<u8>,
    too_long: u64,
    foreign: u64,
    refused: u64,
}

enum Bus {
    Interface(CanInterface),
    /// `own` is the address of the sender, whose frames are not received.
    Loopback {
        receiver: UdpSocket,
        sender: UdpSocket,
        own: SocketAddr,
        to: SocketAddrV4,
    },
}

impl Can {
    pub(super) fn open(program: &Program, name: &CanEndpoint, ends: Ends<'_>) -> Result<Can, HostError> {
        let codec = |channel: &Channel| {
            let fields = &[FieldKind::Number(u32::MAX as u64), FieldKind::Bytes];
            MessageCodec::of_channel(program, channel, "can", fields, "(u32, bytes[<=8])`: identifier, data")
        };
        let input = ends.input.map(codec).transpose()?;
        let output = ends.output.map(codec).transpose()?;
        let bus = match name {
            CanEndpoint::Interface(interface) => CanInterface::open(interface).map(Bus::Interface).map_err(|os_error| {
                let error = HostError::new(HostCode::Device, format!("cannot open the CAN interface `{interface}`: {}", reason(&os_error)));
                if os_error.kind() == ErrorKind::Unsupported || os_error.raw_os_error() == Some(libc::EAFNOSUPPORT) {
                    error.help(
                        "this system has no SocketCAN; `can:43113` is a bus of this machine that other programs can join",
                    )
                } else {
                    error.help("`ip link` names the interfaces; `can:43113` is a bus of this machine without one")
                }
            })?,
            CanEndpoint::Loopback(port) => open_loopback(*port).map_err(|error| {
                HostError::new(HostCode::Device, format!("cannot open the CAN bus at UDP port {port} of {GROUP}: {}", reason(&error)))
                    .help("the loopback interface must be up: `ip link set lo up`")
            })?,
        };
        Ok(Can {
            bus,
            input,
            output,
            log: ends.log.cloned(),
            held: VecDeque::new(),
            buffer: vec![0; 4096],
            too_long: 0,
            foreign: 0,
            refused: 0,
        })
    }

    /// Sends one frame; whether there was room for it.
    fn transmit(&mut self, frame: &CanFrame) -> Result<bool, HostError> {
        loop {
            let sent = match &mut self.bus {
                Bus::Interface(interface) => interface.write(&frame.to_kernel()),
                Bus::Loopback { sender, to, .. } => sender.send_to(&frame.to_message_pack(), *to),
            };
            match sent {
                Ok(_) => {
                    self.log.as_ref().map_or(Ok(()), |log| log.add(&frame.to_capture()))?;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(_) => {
                    self.refused += 1;
                    return Ok(true);
                }
            }
        }
    }

    fn next(&mut self) -> Result<Option<CanFrame>, Error> {
        loop {
            let (read, own) = match &mut self.bus {
                Bus::Interface(interface) => (interface.read(&mut self.buffer), false),
                Bus::Loopback { receiver, own, .. } => match receiver.recv_from(&mut self.buffer) {
                    Ok((length, from)) => (Ok(length), from == *own),
                    Err(error) => (Err(error), false),
                },
            };
            let frame = match (read, &self.bus) {
                (Ok(_), _) if own => continue,
                (Ok(length), Bus::Interface(_)) => CanFrame::from_kernel(&self.buffer[..length]),
                (Ok(length), Bus::Loopback { .. }) => CanFrame::from_message_pack(&self.buffer[..length]),
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
            Bus::Interface(interface) => (interface.as_fd(), interface.as_fd()),
            Bus::Loopback { receiver, sender, .. } => (receiver.as_fd(), sender.as_fd()),
        }
    }
}

/// Two sockets on the loopback interface, one for sending and one for receiving; frames from the sending one are
/// ignored.
fn open_loopback(port: u16) -> Result<Bus, Error> {
    let to = SocketAddrV4::new(GROUP, port);
    let receiver = system::multicast_receiver(GROUP, port)?;
    // Its address determines the interface by which it sends.
    let sender = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    sender.set_nonblocking(true)?;
    let own = sender.local_addr()?;
    Ok(Bus::Loopback { receiver, sender, own, to })
}

impl Device for Can {
    fn receive(&mut self) -> Result<Received, HostError> {
        loop {
            let frame = self.next().map_err(|error| {
                HostError::new(HostCode::Device, format!("cannot read from the bus: {}", reason(&error)))
            })?;
            let Some(frame) = frame else { return Ok(Received::Nothing) };
            self.log.as_ref().map_or(Ok(()), |log| log.add(&frame.to_capture()))?;
            let Some(codec) = &self.input else { continue };
            match codec.encode(vec![Value::Number(i128::from(frame.id)), Value::Bytes(frame.data)]) {
                Ok(message) => return Ok(Received::Message(message)),
                Err(_) => self.too_long += 1,
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.held.len() < HELD
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let Some(codec) = &self.output else { return Ok(()) };
        let mut values = codec.decode(message);
        let Some(data) = values.pop().map(Value::into_bytes) else { return Ok(()) };
        let id = values.pop().map_or(0, |id| id.number() as u32);
        let largest = if id & CAN_EFF_FLAG != 0 { CAN_EFF_MASK } else { CAN_SFF_MASK };
        if data.len() > MAX_DATA_BYTES || id & CAN_EFF_MASK > largest || id & CAN_ERR_FLAG != 0 {
            self.refused += 1;
            return Ok(());
        }
        let frame = CanFrame { id, data };
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
        let (receiver, sender) = self.descriptors();
        if reading {
            watched.push((receiver, PollFlags::IN));
        }
        if !self.held.is_empty() {
            watched.push((sender, PollFlags::OUT));
        }
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        let overrun = dropped_datagrams(self.descriptors().0);
        vec![
            (overrun, "faster than the program received them"),
            (self.too_long, "longer than the channel's type holds"),
            (self.foreign, "no classic frames"),
            (self.refused, "not sent"),
        ]
    }
}
