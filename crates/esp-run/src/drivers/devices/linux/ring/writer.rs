//! The end of a stream that a program writes.

use super::broken;
use super::frames::Frame;
use super::link::{RingLink, Role, Shared};
use crate::binding::Ring as RingEndpoint;
use crate::drivers::bytes::{Outcome, Shape};
use crate::drivers::devices::{Device, Received};
use crate::error::{HostCode, HostError};
use crate::poller::{Interest, Lifetime};
use quaject_esp_exec::datum::Datum;
use quaject_queue::shared::{Message as Slot, Ring};
use quaject_queue::{Producer, Queue, TryError};
use std::collections::VecDeque;
use std::sync::Arc;

/// The writing end.
pub(in super::super) struct RingWriter {
    path: String,
    channel: String,
    shape: Shape,
    link: RingLink,
    producer: Option<Producer<Arc<Shared>>>,
    /// Messages that are not in the ring yet, and how many slots of the first one are. Generated C sends several
    /// messages after one check of readiness.
    held: VecDeque<Vec<Slot>>,
    pushed: usize,
    ended: bool,
}

impl RingWriter {
    pub(in super::super) fn open(name: &RingEndpoint, channel: &str, shape: Shape) -> Result<RingWriter, HostError> {
        let (link, ring) = RingLink::open(name, Role::Writer)?;
        let mut writer = RingWriter {
            path: name.path.display().to_string(),
            channel: channel.to_string(),
            shape,
            link,
            producer: None,
            held: VecDeque::new(),
            pushed: 0,
            ended: false,
        };
        writer.use_ring(ring)?;
        Ok(writer)
    }

    fn use_ring(&mut self, ring: Option<Arc<Shared>>) -> Result<(), HostError> {
        if let Some(ring) = ring {
            self.producer = Some(Ring::producer(ring).map_err(|_| broken(&self.path))?);
        }
        Ok(())
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Puts messages into the ring as far as there is room. A message that fits one insert is put completely or not at
    /// all.
    fn push(&mut self) -> Result<(), HostError> {
        let Some(producer) = &mut self.producer else { return Ok(()) };
        let longest = producer.queue().max_insert();
        let mut news = false;
        'full: while let Some(message) = self.held.front() {
            while self.pushed < message.len() {
                let count = (message.len() - self.pushed).min(longest);
                match producer.push_slice(&message[self.pushed..self.pushed + count]) {
                    Ok(()) => (self.pushed, news) = (self.pushed + count, true),
                    Err(TryError::NotReady) => break 'full,
                    Err(TryError::Held { .. } | TryError::Broken) => return Err(broken(&self.path)),
                }
            }
            self.held.pop_front();
            self.pushed = 0;
        }
        if news {
            let link = &self.link;
            producer.queue().consumer_bell().ring(|| link.wake_peer());
        }
        Ok(())
    }

    /// Messages that are not in the ring when the reader has disconnected can never be read.
    fn check_reader(&self) -> Result<(), HostError> {
        if self.link.is_disconnected() && self.is_holding() {
            return Err(HostError::new(
                HostCode::Device,
                format!("the reader of ring `{}` has disconnected", self.path),
            )
            .help("what it has not read is lost; start both again"));
        }
        Ok(())
    }
}

impl Device for RingWriter {
    fn receive(&mut self) -> Result<Received, HostError> {
        Ok(Received::Nothing)
    }

    fn is_ready(&self) -> bool {
        !self.is_holding()
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let mut content = Vec::new();
        let outcome = if self.ended { Outcome::NotBytes } else { self.shape.write(message, &mut content) };
        let frame = match outcome {
            Outcome::Written => Frame::Content(content),
            Outcome::End => {
                self.ended = true;
                Frame::End
            }
            Outcome::NotBytes => {
                let cause = if self.ended { "comes after the end of its bytes" } else { "is not a byte" };
                return Err(HostError::new(
                    HostCode::Message,
                    format!("a message on channel `{}` {cause}", self.channel),
                )
                .help("the `ring` driver writes bytes, then once -1 or `eos`, as it reads them"));
            }
        };
        self.held.push_back(frame.slots());
        // The connection is checked first: messages in the ring of a reader that has disconnected are lost without an
        // error.
        self.flush()
    }

    fn flush(&mut self) -> Result<(), HostError> {
        let ring = self.link.step()?;
        self.use_ring(ring)?;
        if !self.link.is_disconnected() {
            self.push()?;
        }
        self.check_reader()
    }

    fn holds_output(&self) -> bool {
        // A reader that connects late receives the end of the stream from this process, which therefore waits for it.
        (self.is_holding() || !self.link.is_connected()) && !self.link.is_disconnected()
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn arm(&mut self, _reading: bool) -> Result<bool, HostError> {
        if !self.is_holding() {
            return Ok(false);
        }
        if let Some(producer) = &self.producer {
            producer.queue().producer_bell().arm();
        }
        self.push()?;
        Ok(!self.is_holding())
    }

    fn watch<'d>(&'d self, _reading: bool, watched: &mut Vec<Interest<'d>>) {
        self.link.watch(self.is_holding(), watched);
    }

    fn lifetime(&self) -> Lifetime {
        if self.link.is_connected() { Lifetime::Run } else { Lifetime::Passing }
    }

    fn losses(&self) -> Vec<(u64, &'static str)> {
        Vec::new()
    }
}
