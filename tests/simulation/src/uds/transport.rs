//! A tester's end of ISO-TP (ISO 15765-2, normal addressing, frames of 8 bytes), written from the standard for these
//! tests: one message in each direction, with the standard's timeouts. Knows no services.

use crate::{MILLISECOND_NS, SECOND_NS};
use quaject_test_support::random::Random;

/// The timeouts for a flow control frame and for the next consecutive frame: N_Bs and N_Cr.
const TIMEOUT_NS: i64 = SECOND_NS;
/// The maximal number of successive wait frames.
const MAX_WAITS: u32 = 8;

/// The result of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Sent,
    /// The receiver reports an overflow.
    TooLong,
    /// No flow control frame has arrived.
    NotSent,
    Came(Vec<u8>),
    /// The message is incomplete.
    Lost,
}

struct Sending {
    message: Vec<u8>,
    at: usize,
    number: u8,
    /// Frames that may be sent before the next flow control.
    left: usize,
    separation_ns: i64,
    waits: u32,
    /// When the next frame is sent; if none may be sent, the timeout of flow control.
    next_ns: i64,
}

struct Receiving {
    bytes: Vec<u8>,
    length: usize,
    number: u8,
    /// The block size: frames until the next flow control; 0: unlimited.
    block: u8,
    left: u8,
    gap: u8,
    /// When the flow control frame follows that ends the wait of the sender.
    continue_at_ns: Option<i64>,
    ends_ns: i64,
}

#[derive(Default)]
pub(super) struct Transport {
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    /// Frames for the bus.
    pub(super) out: Vec<Vec<u8>>,
    /// Whether short frames are padded.
    pub(super) pads: bool,
    /// Whether it may request the maximal separation time.
    pub(super) slow: bool,
    pub(super) waits_requested: u64,
}

impl Transport {
    pub(super) fn send(&mut self, message: &[u8], now_ns: i64) -> Option<Event> {
        if message.len() <= 7 {
            self.frame(&[&[message.len() as u8][..], message].concat());
            return Some(Event::Sent);
        }
        let length = 0x1000 | message.len() as u16;
        self.frame(&[&length.to_be_bytes()[..], &message[..6]].concat());
        let (message, next_ns) = (message.to_vec(), now_ns + TIMEOUT_NS);
        self.sending = Some(Sending { message, at: 6, number: 1, left: 0, separation_ns: 0, waits: 0, next_ns });
        None
    }

    fn frame(&mut self, frame: &[u8]) {
        let mut frame = frame.to_vec();
        if self.pads {
            frame.resize(8, 0x55);
        }
        self.out.push(frame);
    }

    /// Whether a message is being received.
    pub(super) fn receives(&self) -> bool {
        self.receiving.is_some()
    }

    pub(super) fn next_ns(&self) -> Option<i64> {
        let sending_ns = self.sending.as_ref().map(|sending| sending.next_ns);
        let receiving_ns =
            self.receiving.as_ref().map(|receiving| receiving.continue_at_ns.unwrap_or(receiving.ends_ns));
        sending_ns.into_iter().chain(receiving_ns).min()
    }

    /// Handles a received frame.
    pub(super) fn receive(&mut self, frame: &[u8], random: &mut Random, now_ns: i64) -> Option<Event> {
        let (kind, low) = (frame.first()? >> 4, frame[0] & 15);
        match kind {
            0 if (1..=7).contains(&low) && usize::from(low) < frame.len() => {
                self.receiving = None;
                Some(Event::Came(frame[1..=usize::from(low)].to_vec()))
            }
            1 => {
                let length = usize::from(u16::from_be_bytes([low, frame[1]]));
                let block = [0, 1, 2, 8, 30][random.below(5) as usize];
                let gaps = [0, 1, 5, 0xf1, 0xf9, if self.slow { 0x7f } else { 2 }];
                let gap = gaps[random.below(6) as usize];
                let (bytes, ends_ns) = (frame[2..].to_vec(), now_ns + TIMEOUT_NS);
                let receiving =
                    Receiving { bytes, length, number: 1, block, left: block, gap, continue_at_ns: None, ends_ns };
                self.receiving = Some(receiving);
                self.send_flow_control(random, now_ns);
                None
            }
            2 => {
                let receiving = self.receiving.as_mut()?;
                if low != receiving.number & 15 {
                    self.receiving = None;
                    return Some(Event::Lost);
                }
                let rest = (receiving.length - receiving.bytes.len()).min(7);
                receiving.bytes.extend(frame.get(1..=rest)?);
                receiving.number = receiving.number.wrapping_add(1);
                receiving.ends_ns = now_ns + TIMEOUT_NS;
                if receiving.bytes.len() == receiving.length {
                    return self.receiving.take().map(|receiving| Event::Came(receiving.bytes));
                }
                if receiving.block > 0 {
                    receiving.left -= 1;
                    if receiving.left == 0 {
                        receiving.left = receiving.block;
                        self.send_flow_control(random, now_ns);
                    }
                }
                None
            }
            3 => self.handle_flow_control(low, frame, now_ns),
            _ => None,
        }
    }

    /// Sends a flow control frame: continue or wait.
    fn send_flow_control(&mut self, random: &mut Random, now_ns: i64) {
        let Some(receiving) = &mut self.receiving else { return };
        let flow = [0x30, receiving.block, receiving.gap];
        if random.below(6) == 0 {
            receiving.continue_at_ns = Some(now_ns + random.below(500 * MILLISECOND_NS as u64) as i64);
            self.waits_requested += 1;
            self.frame(&[0x31, 0, 0]);
        } else {
            receiving.continue_at_ns = None;
            receiving.ends_ns = now_ns + TIMEOUT_NS;
            self.frame(&flow);
        }
    }

    fn handle_flow_control(&mut self, status: u8, frame: &[u8], now_ns: i64) -> Option<Event> {
        let sending = self.sending.as_mut().filter(|sending| sending.left == 0)?;
        match status {
            0 => {
                sending.waits = 0;
                sending.left = if frame[1] == 0 { usize::MAX } else { usize::from(frame[1]) };
                sending.separation_ns = match frame[2] {
                    code @ 0..=0x7f => i64::from(code) * MILLISECOND_NS,
                    code @ 0xf1..=0xf9 => i64::from(code - 0xf0) * MILLISECOND_NS / 10,
                    _ => 127 * MILLISECOND_NS,
                };
                sending.next_ns = now_ns;
                None
            }
            1 if sending.waits < MAX_WAITS => {
                sending.waits += 1;
                sending.next_ns = now_ns + TIMEOUT_NS;
                None
            }
            2 => {
                self.sending = None;
                Some(Event::TooLong)
            }
            _ => {
                self.sending = None;
                Some(Event::NotSent)
            }
        }
    }

    /// Handles timeouts and due frames.
    pub(super) fn fire_timers(&mut self, now_ns: i64) -> Option<Event> {
        if let Some(receiving) = &mut self.receiving {
            if receiving.continue_at_ns.is_some_and(|continue_at_ns| continue_at_ns <= now_ns) {
                receiving.continue_at_ns = None;
                receiving.ends_ns = now_ns + TIMEOUT_NS;
                let flow = [0x30, receiving.block, receiving.gap];
                self.frame(&flow);
            } else if receiving.continue_at_ns.is_none() && receiving.ends_ns <= now_ns {
                self.receiving = None;
                return Some(Event::Lost);
            }
        }
        let sending = self.sending.as_mut().filter(|sending| sending.next_ns <= now_ns)?;
        if sending.left == 0 {
            self.sending = None;
            return Some(Event::NotSent);
        }
        let end = sending.message.len().min(sending.at + 7);
        let frame = [&[0x20 | sending.number & 15][..], &sending.message[sending.at..end]].concat();
        sending.number = sending.number.wrapping_add(1);
        sending.at = end;
        sending.left -= 1;
        sending.next_ns = now_ns + if sending.left == 0 { TIMEOUT_NS } else { sending.separation_ns };
        let done = end == sending.message.len();
        if done {
            self.sending = None;
        }
        self.frame(&frame);
        done.then_some(Event::Sent)
    }
}
