//! Memory, registers and DMA engines of a card, as functions of the cycle. Knows no processor and no network: packets
//! that were sent are taken from it, packets that will arrive are given to it with their cycle.

use std::collections::VecDeque;

use super::registers as at;
use crate::memory::{Memory, range_within};
use crate::processor::{AccessError, Bus, FaultCause, Flow, Width};

/// The rates of "Fast Paths" 6.2 as bytes in so many cycles of the card's 33 MHz.
#[derive(Clone, Copy)]
struct Rate {
    bytes: u64,
    cycles: u64,
}

/// PCI: 133 MB/s.
const HOST_RATE: Rate = Rate { bytes: 133, cycles: 33 };
/// Each link: 160 MB/s.
const LINK_RATE: Rate = Rate { bytes: 160, cycles: 33 };

impl Rate {
    fn cycles_for(self, bytes: u64) -> u64 {
        (bytes * self.cycles).div_ceil(self.bytes)
    }

    fn bytes_in(self, cycles: u64) -> u64 {
        cycles * self.bytes / self.cycles
    }
}

/// The cycles that so many bytes take on a link.
pub(crate) fn link_cycles(bytes: usize) -> u64 {
    LINK_RATE.cycles_for(bytes as u64)
}

/// Packets that wait for the receive engine; more are lost.
pub(super) const MAX_WAITING: usize = 64;

/// A value that the firmware has shown to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// When.
    pub cycle: u64,
    /// The value.
    pub value: u32,
}

/// A packet whose last byte has left the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentPacket {
    pub(crate) cycle: u64,
    pub(crate) node: u32,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Direction {
    ToCard,
    ToHost,
}

struct HostTransfer {
    direction: Direction,
    host: usize,
    buffer: usize,
    length: usize,
    start: u64,
    copied: usize,
}

struct SendTransfer {
    buffer: u32,
    bytes: Vec<u8>,
    is_last: bool,
    node: u32,
    done: u64,
}

struct Arrival {
    cycle: u64,
    bytes: Vec<u8>,
}

/// What is written to registers before a command. All are zero at first.
#[derive(Default)]
struct Operands {
    host_address: u32,
    host_buffer: u32,
    host_length: u32,
    send_buffer: u32,
    send_length: u32,
    send_node: u32,
    receive_buffer: u32,
    receive_limit: u32,
}

pub(crate) struct Board {
    pub(super) memory: Memory,
    pub(super) host_memory: Vec<u8>,
    pub(super) interrupts: Vec<Interrupt>,
    /// The cycle at which the processor wakes up without an event.
    pub(super) sleep_until: Option<u64>,
    pub(super) fault: Option<FaultCause>,
    pub(super) lost_packets: u64,
    node: u32,
    nodes: u32,
    events: u32,
    doorbell: u32,
    operands: Operands,
    host: Option<HostTransfer>,
    send: Option<SendTransfer>,
    /// The pieces of a packet whose last piece has not been sent.
    pieces: Vec<u8>,
    sent: Vec<SentPacket>,
    /// Packets on their way, in order of their cycles.
    in_flight: VecDeque<Arrival>,
    waiting: VecDeque<Arrival>,
    /// Since when the receive engine is started.
    receive_since: Option<u64>,
    receive_length: u32,
    /// The cycle of the next change that no access causes: nothing needs to be done before.
    next_event: u64,
}

impl Board {
    pub(super) fn new(node: u32, nodes: u32, host_memory_bytes: usize) -> Board {
        Board {
            memory: Memory::new(at::MEMORY_BYTES as usize),
            host_memory: vec![0; host_memory_bytes],
            interrupts: Vec::new(),
            sleep_until: None,
            fault: None,
            lost_packets: 0,
            node,
            nodes,
            events: 0,
            doorbell: 0,
            operands: Operands::default(),
            host: None,
            send: None,
            pieces: Vec::new(),
            sent: Vec::new(),
            in_flight: VecDeque::new(),
            waiting: VecDeque::new(),
            receive_since: None,
            receive_length: 0,
            next_event: u64::MAX,
        }
    }

    pub(super) fn next_event(&self) -> u64 {
        self.next_event
    }

    pub(super) fn has_event(&self) -> bool {
        self.events != 0
    }

    pub(super) fn ring(&mut self, value: u32) {
        self.doorbell = value;
        self.events |= at::DOORBELL_RUNG;
    }

    pub(super) fn take_sent(&mut self) -> Vec<SentPacket> {
        std::mem::take(&mut self.sent)
    }

    /// A packet will arrive, after all that were announced before.
    pub(super) fn announce(&mut self, cycle: u64, bytes: Vec<u8>) {
        self.in_flight.push_back(Arrival { cycle, bytes });
        self.find_next_event();
    }

    /// Does all that happens up to cycle `now`, in order.
    pub(super) fn advance(&mut self, now: u64) {
        while self.next_event <= now {
            let cycle = self.next_event;
            if self.host.as_ref().is_some_and(|transfer| transfer.done() <= cycle) {
                self.finish_host(cycle);
            }
            if self.send.as_ref().is_some_and(|transfer| transfer.done <= cycle) {
                self.finish_send();
            }
            while self.in_flight.front().is_some_and(|arrival| arrival.cycle <= cycle) {
                let arrival = self.in_flight.pop_front().expect("it was looked at");
                if self.waiting.len() < MAX_WAITING {
                    self.waiting.push_back(arrival);
                } else {
                    self.lost_packets += 1;
                }
            }
            if self.receive_done().is_some_and(|done| done <= cycle) {
                self.finish_receive();
            }
            self.find_next_event();
        }
    }

    fn find_next_event(&mut self) {
        let events = [
            self.host.as_ref().map(HostTransfer::done),
            self.send.as_ref().map(|transfer| transfer.done),
            self.in_flight.front().map(|arrival| arrival.cycle),
            self.receive_done(),
        ];
        self.next_event = events.into_iter().flatten().min().unwrap_or(u64::MAX);
    }

    /// When the packet that has arrived first is in the buffer: as it arrives, or after the bytes that had to wait.
    fn receive_done(&self) -> Option<u64> {
        let (since, arrival) = (self.receive_since?, self.waiting.front()?);
        Some(arrival.cycle.max(since + link_cycles(arrival.bytes.len())))
    }

    /// Copies what the host engine has transferred before `now`.
    fn copy_host(&mut self, now: u64) {
        let Some(transfer) = &mut self.host else { return };
        let end = (HOST_RATE.bytes_in(now - transfer.start) as usize).min(transfer.length);
        let card = &mut self.memory.bytes_mut()[transfer.buffer..][transfer.copied..end];
        let host = &mut self.host_memory[transfer.host..][transfer.copied..end];
        match transfer.direction {
            Direction::ToCard => card.copy_from_slice(host),
            Direction::ToHost => host.copy_from_slice(card),
        }
        transfer.copied = end;
    }

    fn finish_host(&mut self, now: u64) {
        self.copy_host(now);
        self.host = None;
        self.events |= at::HOST_DONE;
    }

    fn finish_send(&mut self) {
        let Some(transfer) = self.send.take() else { return };
        let range = transfer.buffer as usize..transfer.buffer as usize + transfer.bytes.len();
        if self.memory.bytes()[range] != transfer.bytes[..] {
            let (address, length) = (transfer.buffer, transfer.bytes.len() as u32);
            self.fault = Some(FaultCause::SendBufferChanged { address, length });
        }
        self.pieces.extend_from_slice(&transfer.bytes);
        if transfer.is_last {
            let bytes = std::mem::take(&mut self.pieces);
            self.sent.push(SentPacket { cycle: transfer.done, node: transfer.node, bytes });
        }
        self.events |= at::SEND_DONE;
    }

    fn finish_receive(&mut self) {
        let Some(arrival) = self.waiting.pop_front() else { return };
        let stored = arrival.bytes.len().min(self.operands.receive_limit as usize);
        let start = self.operands.receive_buffer as usize;
        self.memory.bytes_mut()[start..start + stored].copy_from_slice(&arrival.bytes[..stored]);
        self.receive_length = arrival.bytes.len() as u32;
        self.receive_since = None;
        self.events |= at::RECEIVE_DONE;
    }

    fn read_register(&mut self, register: u32, now: u64) -> Result<u32, AccessError> {
        Ok(match register {
            at::CLOCK => now as u32,
            at::CLOCK_HIGH => (now >> 32) as u32,
            at::EVENTS => self.events,
            at::NODE => self.node,
            at::NODES => self.nodes,
            at::DOORBELL => self.doorbell,
            at::HOST_ADDRESS => self.operands.host_address,
            at::HOST_BUFFER => self.operands.host_buffer,
            at::HOST_LENGTH => self.operands.host_length,
            at::HOST_COMMAND => {
                self.copy_host(now);
                self.host.as_ref().map_or(0, |transfer| (transfer.length - transfer.copied) as u32)
            }
            at::SEND_BUFFER => self.operands.send_buffer,
            at::SEND_LENGTH => self.operands.send_length,
            at::SEND_NODE => self.operands.send_node,
            at::SEND_COMMAND => u32::from(self.send.is_some()),
            at::RECEIVE_BUFFER => self.operands.receive_buffer,
            at::RECEIVE_LIMIT => self.operands.receive_limit,
            at::RECEIVE_COMMAND => u32::from(self.receive_since.is_some()),
            at::RECEIVE_LENGTH => self.receive_length,
            at::WAIT | at::INTERRUPT => return Err(AccessError::WriteOnly),
            _ => return Err(AccessError::OutOfRange),
        })
    }

    fn write_register(&mut self, register: u32, value: u32, now: u64) -> Result<Flow, AccessError> {
        match register {
            at::EVENTS => self.events &= !value,
            at::WAIT => {
                self.sleep_until = Some(now + u64::from(value));
                return Ok(Flow::Pause);
            }
            at::INTERRUPT => self.interrupts.push(Interrupt { cycle: now, value }),
            at::HOST_ADDRESS => self.operands.host_address = value,
            at::HOST_BUFFER => self.operands.host_buffer = value,
            at::HOST_LENGTH => self.operands.host_length = value,
            at::HOST_COMMAND => self.start_host(value, now)?,
            at::SEND_BUFFER => self.operands.send_buffer = value,
            at::SEND_LENGTH => self.operands.send_length = value,
            at::SEND_NODE => self.operands.send_node = value,
            at::SEND_COMMAND => self.start_send(value, now)?,
            at::RECEIVE_BUFFER | at::RECEIVE_LIMIT if self.receive_since.is_some() => {
                return Err(AccessError::EngineBusy);
            }
            at::RECEIVE_BUFFER => self.operands.receive_buffer = value,
            at::RECEIVE_LIMIT => self.operands.receive_limit = value,
            at::RECEIVE_COMMAND => self.start_receive(value, now)?,
            at::CLOCK | at::CLOCK_HIGH | at::NODE | at::NODES | at::DOORBELL | at::RECEIVE_LENGTH => {
                return Err(AccessError::ReadOnly);
            }
            _ => return Err(AccessError::OutOfRange),
        }
        self.find_next_event();
        Ok(Flow::Continue)
    }

    /// The bytes of the card's memory that an engine transfers.
    fn buffer(&self, address: u32, length: u32) -> Result<std::ops::Range<usize>, AccessError> {
        let memory = "the card's memory";
        self.memory.range(address, length).ok_or(AccessError::Transfer { memory, address, length })
    }

    fn start_host(&mut self, command: u32, now: u64) -> Result<(), AccessError> {
        let direction = match command {
            at::HOST_TO_CARD => Direction::ToCard,
            at::CARD_TO_HOST => Direction::ToHost,
            other => return Err(AccessError::Command(other)),
        };
        if self.host.is_some() {
            return Err(AccessError::EngineBusy);
        }
        let (address, length) = (self.operands.host_address, self.operands.host_length);
        let buffer = self.buffer(self.operands.host_buffer, length)?.start;
        let memory = "the host's memory";
        let host = range_within(self.host_memory.len(), address, length)
            .ok_or(AccessError::Transfer { memory, address, length })?
            .start;
        self.host = Some(HostTransfer { direction, host, buffer, length: length as usize, start: now, copied: 0 });
        Ok(())
    }

    fn start_send(&mut self, command: u32, now: u64) -> Result<(), AccessError> {
        let is_last = match command {
            at::SEND_PIECE => false,
            at::SEND_LAST => true,
            other => return Err(AccessError::Command(other)),
        };
        if self.send.is_some() {
            return Err(AccessError::EngineBusy);
        }
        let (buffer, length) = (self.operands.send_buffer, self.operands.send_length);
        let range = self.buffer(buffer, length)?;
        let packet_length = self.pieces.len() as u64 + u64::from(length);
        if packet_length > u64::from(at::MAX_PACKET_BYTES) {
            return Err(AccessError::PacketLength(packet_length));
        }
        let bytes = self.memory.bytes()[range].to_vec();
        let done = now + link_cycles(bytes.len()).max(1);
        self.send = Some(SendTransfer { buffer, bytes, is_last, node: self.operands.send_node, done });
        Ok(())
    }

    fn start_receive(&mut self, command: u32, now: u64) -> Result<(), AccessError> {
        if command != at::RECEIVE_START {
            return Err(AccessError::Command(command));
        }
        if self.receive_since.is_some() {
            return Err(AccessError::EngineBusy);
        }
        self.buffer(self.operands.receive_buffer, self.operands.receive_limit)?;
        self.receive_since = Some(now);
        Ok(())
    }
}

impl HostTransfer {
    fn done(&self) -> u64 {
        self.start + HOST_RATE.cycles_for(self.length as u64).max(1)
    }
}

impl Bus for Board {
    #[inline]
    fn fetch(&self, address: u32) -> Result<u32, AccessError> {
        self.memory.fetch(address)
    }

    #[inline]
    fn load(&mut self, address: u32, width: Width, now: u64) -> Result<u32, AccessError> {
        if now >= self.next_event {
            self.advance(now);
        }
        if address < at::MEMORY_BYTES {
            return self.memory.load(address, width, now);
        }
        self.read_register(register_at(address, width)?, now)
    }

    #[inline]
    fn store(&mut self, address: u32, width: Width, value: u32, now: u64) -> Result<Flow, AccessError> {
        if now >= self.next_event {
            self.advance(now);
        }
        if address < at::MEMORY_BYTES {
            return self.memory.store(address, width, value, now);
        }
        self.write_register(register_at(address, width)?, value, now)
    }
}

/// The offset of a register after the first.
fn register_at(address: u32, width: Width) -> Result<u32, AccessError> {
    match (width, address & 3) {
        (Width::Word, 0) => Ok(address - at::MEMORY_BYTES),
        (Width::Word, _) => Err(AccessError::Unaligned),
        (Width::Byte | Width::Half, _) => Err(AccessError::PartOfRegister),
    }
}
