//! Messages of any length in the slots of a ring:
//!
//! ```text
//!   word   0                                   1 ... 6
//!   first  kind: 32 bits | length: 32 bits     up to 48 bytes of the message
//!   others up to 56 bytes of the message       (kind and length stand in the first slot only)
//! ```
//!
//! Knows no memory and no socket.

use quaject_queue::shared::{Message as Slot, WORDS};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Bytes of a message in its first slot, and in each other one.
const FIRST: usize = (WORDS - 1) * WORD;
const OTHER: usize = WORDS * WORD;

/// The kinds of frames.
const CONTENT: u64 = 1;
const END: u64 = 2;

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// A message.
    Content(Vec<u8>),
    /// There are no more messages.
    End,
}

impl Frame {
    /// Its encoding in slots.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let (kind, content) = match self {
            Frame::Content(content) => (CONTENT, content.as_slice()),
            Frame::End => (END, &[][..]),
        };
        let (start, rest) = content.split_at(content.len().min(FIRST));
        let mut first = [0; WORDS];
        // The types of ESP limit a channel to 2^32 bytes.
        first[0] = kind << 32 | content.len() as u64;
        fill(&mut first[1..], start);
        let others = rest.chunks(OTHER).map(|piece| {
            let mut slot = [0; WORDS];
            fill(&mut slot, piece);
            slot
        });
        std::iter::once(first).chain(others).collect()
    }
}

/// Writes bytes to words, in the order in which memory holds them.
fn fill(words: &mut [u64], bytes: &[u8]) {
    for (word, piece) in words.iter_mut().zip(bytes.chunks(WORD)) {
        let mut whole = [0; WORD];
        whole[..piece.len()].copy_from_slice(piece);
        *word = u64::from_ne_bytes(whole);
    }
}

/// The error of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotError {
    /// It does not begin a frame.
    NoFrame,
    /// A message of so many bytes.
    TooLong(u32),
}

impl std::fmt::Display for SlotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SlotError::NoFrame => f.write_str("the slot does not begin a frame"),
            SlotError::TooLong(bytes) => write!(f, "the message has {bytes} bytes"),
        }
    }
}

impl std::error::Error for SlotError {}

/// Assembles frames of slots.
#[derive(Default)]
pub(super) struct Assembly {
    content: Vec<u8>,
    missing: usize,
}

impl Assembly {
    /// Whether a message has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.missing > 0
    }

    /// Adds a slot; the frame that ends with it. Messages have at most `bound` bytes.
    pub(super) fn add(&mut self, slot: Slot, bound: usize) -> Result<Option<Frame>, SlotError> {
        let words = if self.is_open() {
            &slot[..]
        } else {
            let length = slot[0] as u32;
            match slot[0] >> 32 {
                END if length == 0 => return Ok(Some(Frame::End)),
                CONTENT if length as usize > bound => return Err(SlotError::TooLong(length)),
                CONTENT => self.missing = length as usize,
                _ => return Err(SlotError::NoFrame),
            }
            &slot[1..]
        };
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).take(self.missing);
        let before = self.content.len();
        self.content.extend(bytes);
        self.missing -= self.content.len() - before;
        Ok((!self.is_open()).then(|| Frame::Content(std::mem::take(&mut self.content))))
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembly, CONTENT, END, Frame, SlotError};

    #[test]
    fn a_message_of_any_length_survives() {
        let mut assembly = Assembly::default();
        for length in (0..=2 * 56 + 49).chain([1472, 65_536]) {
            let frame = Frame::Content((0..length).map(|at| at as u8).collect());
            let slots = frame.slots();
            let (last, before) = slots.split_last().expect("a frame has slots");
            for slot in before {
                assert_eq!(assembly.add(*slot, length), Ok(None));
                assert!(assembly.is_open());
            }
            assert_eq!(assembly.add(*last, length), Ok(Some(frame)), "{length}");
            assert_eq!(before.len(), length.saturating_sub(48).div_ceil(56), "{length}");
        }
        assert_eq!(assembly.add(Frame::End.slots()[0], 0), Ok(Some(Frame::End)));
    }

    #[test]
    fn what_begins_no_frame_is_refused() {
        let mut assembly = Assembly::default();
        let mut add = |word| assembly.add([word, 0, 0, 0, 0, 0, 0], 8);
        assert_eq!(add(0), Err(SlotError::NoFrame));
        assert_eq!(add(END << 32 | 1), Err(SlotError::NoFrame));
        assert_eq!(add(u64::MAX), Err(SlotError::NoFrame));
        assert_eq!(add(CONTENT << 32 | 9), Err(SlotError::TooLong(9)));
        assert_eq!(add(CONTENT << 32 | 0xffff_ffff), Err(SlotError::TooLong(u32::MAX)));
        assert_eq!(add(CONTENT << 32 | 8), Ok(Some(Frame::Content(vec![0; 8]))));
    }
}
