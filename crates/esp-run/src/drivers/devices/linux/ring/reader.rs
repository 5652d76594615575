//! The end of a stream that a program reads.

use super::broken;
use super::frames::{Assembly, Frame, SlotError};
use super::link::{RingLink, Role, Shared};
use crate::binding::Ring as RingEndpoint;
use crate::drivers::bytes::Shape;
use crate::drivers::devices::{Device, Received};
use crate::error::{HostCode, HostError};
use crate::poller::{Interest, Lifetime};
use quaject_esp_exec::datum::Datum;
use quaject_queue::shared::Ring;
use quaject_queue::{Consumer, TryError};
use std::sync::Arc;

/// The reading end.
pub(in super::super) struct RingReader {
    path: String,
    channel: String,
    shape: Shape,
    link: RingLink,
    consumer: Option<Consumer<Arc<Shared>>>,
    assembly: Assembly,
    /// Received before a sleep.
    next: Option<Vec<Datum>>,
    end: End,
}

/// Whether there are more messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// There may be.
    Open,
    /// No; the message that ends the stream, if the type has one, is due.
    Due,
    /// No; that message was received.
    Received,
}

impl RingReader {
    pub(in super::super) fn open(name: &RingEndpoint, channel: &str, shape: Shape) -> Result<RingReader, HostError> {
        let (link, ring) = RingLink::open(name, Role::Reader)?;
        let mut reader = RingReader {
            path: name.path.display().to_string(),
            channel: channel.to_string(),
            shape,
            link,
            consumer: None,
            assembly: Assembly::default(),
            next: None,
            end: End::Open,
        };
        reader.use_ring(ring)?;
        Ok(reader)
    }

    fn use_ring(&mut self, ring: Option<Arc<Shared>>) -> Result<(), HostError> {
        if let Some(ring) = ring {
            self.consumer = Some(Ring::consumer(ring).map_err(|_| broken(&self.path))?);
        }
        Ok(())
    }

    /// The next frame in the ring. Terminates even if the peer writes meanwhile: a message has a bounded length.
    fn frame(&mut self) -> Result<Option<Frame>, HostError> {
        let Some(consumer) = &mut self.consumer else { return Ok(None) };
        let (mut taken, bound) = (false, self.shape.wanted());
        let found = loop {
            match consumer.pop() {
                Ok(slot) => {
                    taken = true;
                    match self.assembly.add(slot, bound) {
                        Ok(None) => {}
                        Ok(Some(frame)) => break Ok(Some(frame)),
                        Err(SlotError::NoFrame) => break Err(broken(&self.path)),
                        Err(SlotError::TooLong(length)) => {
                            let (path, channel) = (&self.path, &self.channel);
                            let cause = format!(
                                "ring `{path}` holds a message of {length} bytes, and channel `{channel}` takes at most {bound}"
                            );
                            break Err(HostError::new(HostCode::Message, cause)
                                .help("let its type hold as much as the writer sends"));
                        }
                    }
                }
                Err(TryError::NotReady) => break Ok(None),
                Err(TryError::Held { .. } | TryError::Broken) => break Err(broken(&self.path)),
            }
        };
        if taken {
            let link = &self.link;
            consumer.queue().producer_bell().ring(|| link.wake_peer());
        }
        found
    }

    /// The next frame; the end of the stream, too, if the writer has disconnected.
    fn next_frame(&mut self) -> Result<Option<Frame>, HostError> {
        if let Some(frame) = self.frame()? {
            return Ok(Some(frame));
        }
        let ring = self.link.step()?;
        self.use_ring(ring)?;
        // In this order: the frames that it wrote before it disconnected are read now.
        let is_disconnected = self.link.is_disconnected();
        let frame = self.frame()?;
        if frame.is_none() && is_disconnected {
            if self.assembly.is_open() {
                return Err(HostError::new(
                    HostCode::Device,
                    format!("the writer of ring `{}` has disconnected in the middle of a message", self.path),
                )
                .help("it was killed, or stopped early; start both again"));
            }
            return Ok(Some(Frame::End));
        }
        Ok(frame)
    }

    /// The message of a frame.
    fn message(&self, content: &[u8]) -> Result<Vec<Datum>, HostError> {
        let mut message = Vec::new();
        if !self.shape.holds(content) {
            return Err(HostError::new(
                HostCode::Message,
                format!(
                    "ring `{}` holds a message of {} bytes, and those of channel `{}` are one byte each",
                    self.path,
                    content.len(),
                    self.channel
                ),
            )
            .help("let its type be `bytes`"));
        }
        self.shape.message(content, &mut message);
        Ok(message)
    }
}

impl Device for RingReader {
    fn receive(&mut self) -> Result<Received, HostError> {
        if let Some(message) = self.next.take() {
            return Ok(Received::Message(message));
        }
        if self.end == End::Open {
            match self.next_frame()? {
                None => return Ok(Received::Nothing),
                Some(Frame::Content(content)) => return self.message(&content).map(Received::Message),
                Some(Frame::End) => self.end = End::Due,
            }
        }
        let end = std::mem::replace(&mut self.end, End::Received);
        match self.shape.end() {
            Some(message) if end == End::Due => Ok(Received::Message(vec![message])),
            Some(_) | None => Ok(Received::Ended),
        }
    }

    fn is_ready(&self) -> bool {
        false
    }

    fn send(&mut self, _message: &[Datum]) -> Result<(), HostError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), HostError> {
        // The writer waits for its memory, whether or not the program reads now.
        if !self.link.is_connected() {
            let ring = self.link.step()?;
            self.use_ring(ring)?;
        }
        Ok(())
    }

    fn holds_output(&self) -> bool {
        false
    }

    fn holds_input(&self) -> bool {
        self.next.is_some() || self.end != End::Open
    }

    fn arm(&mut self, reading: bool) -> Result<bool, HostError> {
        if !reading || self.holds_input() {
            return Ok(reading);
        }
        if let Some(consumer) = &self.consumer {
            consumer.queue().consumer_bell().arm();
        }
        match self.receive()? {
            Received::Message(message) => self.next = Some(message),
            Received::Nothing | Received::Ended => {}
        }
        // `receive` may have consumed a wake-up that was sent after the bell was armed, and the bell of a ring that has
        // just arrived is not armed: no further wake-up would come.
        let may_miss = self.consumer.as_ref().is_some_and(|consumer| !consumer.queue().consumer_bell().is_armed());
        Ok(self.holds_input() || may_miss)
    }

    fn watch<'d>(&'d self, reading: bool, watched: &mut Vec<Interest<'d>>) {
        self.link.watch(reading && self.end == End::Open, watched);
    }

    fn lifetime(&self) -> Lifetime {
        if self.link.is_connected() { Lifetime::Run } else { Lifetime::Passing }
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        Vec::new()
    }
}
