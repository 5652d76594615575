//! Batches of messages of one channel in C form, between a driver and the compiled program.

use super::abi::{Sink, Source};
use crate::marshal;
use crate::ports::Ports;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness};
use quaject_esp_gen::layout::{ExternalChannel, Layouts};
use quaject_esp_ir::ir::{Channel, ChannelId, Program};

/// The most messages of a batch, and the most bytes.
const MAX_BATCH_MESSAGES: usize = 4096;
const MAX_BATCH_BYTES: usize = 1 << 18;

/// Messages of one channel in C form.
pub(super) struct Batch {
    channel: ChannelId,
    size: usize,
    offsets: Vec<usize>,
    /// Room for `capacity` messages, aligned for any.
    memory: Vec<u64>,
    capacity: usize,
    count: usize,
    closed: bool,
    /// Whether the last message is still on offer at its driver: a tick of a timer may be replaced by a later one until
    /// it is received.
    borrowed: bool,
}

impl Batch {
    pub(super) fn new(external: &ExternalChannel) -> Batch {
        let size = external.extent.size as usize;
        let capacity = (MAX_BATCH_BYTES / size).clamp(1, MAX_BATCH_MESSAGES);
        Batch {
            channel: external.channel,
            size,
            offsets: external.offsets.iter().map(|offset| *offset as usize).collect(),
            memory: vec![0; (capacity * size).div_ceil(8)],
            capacity,
            count: 0,
            closed: false,
            borrowed: false,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let length = size_of_val(self.memory.as_slice());
        // SAFETY: Any initialised memory may be seen as bytes, and any bytes are valid words; the lifetime is the same.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), length) }
    }

    fn declared<'p>(&self, program: &'p Program) -> &'p Channel {
        &program.channels[self.channel.0 as usize]
    }

    /// Takes messages from the driver.
    pub(super) fn fill(&mut self, program: &Program, layouts: &Layouts, ports: &mut Ports<'_>) {
        let keep = ports.is_timer(self.channel);
        if self.borrowed
            && let Offer::Message(message) = ports.peek(self.channel)
        {
            self.count -= 1;
            self.store(program, layouts, message);
            self.count += 1;
        }
        while self.count < self.capacity && !self.closed && !self.borrowed {
            match ports.peek(self.channel) {
                Offer::Pending => return,
                Offer::Closed => self.closed = true,
                Offer::Message(message) => {
                    self.store(program, layouts, message);
                    self.count += 1;
                    if keep {
                        self.borrowed = true;
                    } else {
                        ports.take(self.channel);
                    }
                }
            }
        }
    }

    /// Writes a message behind the others.
    fn store(&mut self, program: &Program, layouts: &Layouts, message: &[Datum]) {
        let types = &self.declared(program).payload;
        let start = self.count * self.size;
        let offsets = std::mem::take(&mut self.offsets);
        let size = self.size;
        let memory = &mut self.bytes()[start..start + size];
        memory.fill(0);
        for ((ty, value), offset) in types.iter().zip(message).zip(&offsets) {
            marshal::store(program, layouts, *ty, value, &mut memory[*offset..]);
        }
        self.offsets = offsets;
    }

    pub(super) fn source(&self) -> Source {
        Source { messages: self.memory.as_ptr().cast(), count: self.count, closed: self.closed }
    }

    /// The program has taken the first messages.
    pub(super) fn take(&mut self, taken: usize, ports: &mut Ports<'_>) {
        if taken == 0 {
            return;
        }
        let (size, count) = (self.size, self.count);
        self.bytes().copy_within(taken * size..count * size, 0);
        self.count -= taken;
        if std::mem::take(&mut self.borrowed) {
            ports.take(self.channel);
        }
    }

    pub(super) fn sink(&mut self, ports: &mut Ports<'_>) -> Sink {
        let capacity = match ports.readiness(self.channel) {
            Readiness::Ready => self.capacity,
            Readiness::Busy | Readiness::Closed => 0,
        };
        Sink { messages: self.memory.as_mut_ptr().cast(), capacity, count: 0, closed: false }
    }

    /// Passes the messages that the program has sent to the driver.
    pub(super) fn drain(&mut self, program: &Program, layouts: &Layouts, ports: &mut Ports<'_>, count: usize) {
        let types = &self.declared(program).payload;
        let mut message = Vec::with_capacity(types.len());
        for index in 0..count {
            message.clear();
            for (number, ty) in types.iter().enumerate() {
                let start = index * self.size + self.offsets[number];
                let value = marshal::load(program, layouts, *ty, &self.bytes()[start..]);
                message.push(value.expect("generated code sends values of the channel's types"));
            }
            ports.put(self.channel, &message);
        }
    }
}
