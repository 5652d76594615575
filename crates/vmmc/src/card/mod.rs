//! A card: a processor and what is around it. Knows no network.

mod board;
mod registers;

use crate::link::Image;
use crate::processor::{Fault, FaultCause, Processor, Stop};
use board::Board;
pub use board::Interrupt;
pub(crate) use board::{SentPacket, link_cycles};

/// Whether a card's processor works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardState {
    /// It executes instructions, or sleeps until an event.
    Running,
    /// The firmware has returned this value. The engines finish what they have begun.
    Returned(u32),
    /// The firmware did what has no meaning.
    Faulted(Fault),
}

/// A network card and the memory of its host.
pub struct Card<P> {
    processor: P,
    board: Board,
    state: CardState,
}

impl<P: Processor> Card<P> {
    /// A card whose firmware starts at the symbol `entry` of its image, a function without parameters.
    pub(crate) fn new(
        mut processor: P,
        image: &Image,
        entry: u32,
        node: u32,
        nodes: u32,
        host_memory_bytes: usize,
    ) -> Card<P> {
        let mut board = Board::new(node, nodes, host_memory_bytes);
        let mut state = CardState::Running;
        match board.memory.range(image.base, image.bytes.len() as u32) {
            Some(range) => board.memory.bytes_mut()[range].copy_from_slice(&image.bytes),
            None => {
                let cause = FaultCause::Fetch(crate::processor::AccessError::OutOfRange);
                state = CardState::Faulted(Fault { pc: entry, cycle: 0, cause });
            }
        }
        if let Err(fault) = processor.start(&mut board, entry, registers::MEMORY_BYTES) {
            state = CardState::Faulted(fault);
        }
        Card { processor, board, state }
    }

    /// Whether its processor works.
    pub fn state(&self) -> &CardState {
        &self.state
    }

    /// The number of instructions that its processor has executed.
    pub fn instructions(&self) -> u64 {
        self.processor.instructions()
    }

    /// The card's memory, as the host sees it through PCI.
    pub fn memory(&self) -> &[u8] {
        self.board.memory.bytes()
    }

    /// The card's memory, to be written by the host.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.board.memory.bytes_mut()
    }

    /// The host's memory.
    pub fn host_memory(&self) -> &[u8] {
        &self.board.host_memory
    }

    /// The host's memory, to be written.
    pub fn host_memory_mut(&mut self) -> &mut [u8] {
        &mut self.board.host_memory
    }

    /// The host writes the register `QJ_CARD_DOORBELL`.
    pub fn ring_doorbell(&mut self, value: u32) {
        self.board.ring(value);
    }

    /// The interrupts since the start.
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.board.interrupts
    }

    /// Packets that arrived while too many waited for the receive engine.
    pub fn lost_packets(&self) -> u64 {
        self.board.lost_packets
    }

    /// A cycle before which nothing happens that others could see.
    pub(crate) fn next_activity(&self) -> u64 {
        let processor = match (&self.state, self.board.sleep_until) {
            (CardState::Running, Some(_)) if self.board.has_event() => self.processor.cycle(),
            (CardState::Running, Some(deadline)) => deadline.max(self.processor.cycle()),
            (CardState::Running, None) => self.processor.cycle(),
            (CardState::Returned(_) | CardState::Faulted(_), _) => u64::MAX,
        };
        processor.min(self.board.next_event())
    }

    pub(crate) fn take_sent(&mut self) -> Vec<SentPacket> {
        self.board.take_sent()
    }

    pub(crate) fn announce(&mut self, cycle: u64, bytes: Vec<u8>) {
        self.board.announce(cycle, bytes);
    }

    /// Runs to cycle `end`: instructions that start before, and events up to it.
    pub(crate) fn run_to(&mut self, end: u64) {
        while self.state == CardState::Running && self.processor.cycle() < end {
            match self.board.sleep_until {
                Some(deadline) => self.sleep(deadline, end),
                None => self.execute(end),
            }
            self.check_engines();
        }
        self.board.advance(end);
        self.check_engines();
    }

    fn execute(&mut self, end: u64) {
        match self.processor.run(&mut self.board, end) {
            Ok(Stop::Limit | Stop::Paused) => {}
            Ok(Stop::Returned(value)) => self.state = CardState::Returned(value),
            Err(fault) => self.state = CardState::Faulted(fault),
        }
    }

    /// Sleeps until an event, the deadline, or `end`, whichever is first.
    fn sleep(&mut self, deadline: u64, end: u64) {
        let now = self.processor.cycle();
        self.board.advance(now);
        if self.board.has_event() || deadline <= now {
            self.board.sleep_until = None;
            return;
        }
        self.processor.skip_to(self.board.next_event().min(deadline).min(end));
    }

    fn check_engines(&mut self) {
        if let Some(cause) = self.board.fault.take() {
            let fault = Fault { pc: self.processor.pc(), cycle: self.processor.cycle(), cause };
            self.state = CardState::Faulted(fault);
        }
    }
}
