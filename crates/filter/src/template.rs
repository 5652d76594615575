//! The comparison of a small group in one vector: the constant and the varying bytes in packet order, under one mask
//! for the group. A packet matches the filters of a slot if and only if it equals the slot's template under the mask.
//!
//! ```text
//! packet    ......|08 00|45 .. 06 ..|addresses|ports|      bytes from `start`, none beyond what the filters need
//! mask            |ff ff|0f .. ff ..|ff ..... |ff ..|
//! template        |08 00| 5 .. 06 ..|a slot's own   |
//! ```
//!
//! Where ports are behind an IPv4 header, a template assumes headers of twenty bytes and compares the header length
//! too; other packets take the general path.

use crate::layout::Layout;
use crate::shape::Shape;

/// Bytes of a template.
pub(crate) const BYTES: usize = 32;
/// Words of a template.
pub(crate) const WORDS: usize = BYTES / 8;

/// The IPv4 header of a shape without another variable base, if it has no options: twenty bytes. The low half
/// of the byte at an offset is [`OptionlessHeader::WORDS`], and the second base is [`OptionlessHeader::BYTES`] bytes
/// from the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OptionlessHeader {
    pub(crate) offset: u32,
}

impl OptionlessHeader {
    pub(crate) const MASK: u8 = 0x0f;
    /// Words of four bytes of a header without options.
    pub(crate) const WORDS: u8 = 5;
    pub(crate) const BYTES: u32 = 4 * OptionlessHeader::WORDS as u32;

    pub(crate) fn of(shape: &Shape) -> Option<OptionlessHeader> {
        let [_, other] = &shape.places[..] else { return None };
        let [moved] = &other.terms[..] else { return None };
        let is_header = (moved.number.base, moved.number.width, moved.mask, moved.shift) == (0, 1, 0x0f, 2);
        is_header.then_some(OptionlessHeader { offset: moved.number.offset })
    }

    /// Bytes from the start of the packet that are required then.
    pub(crate) fn need(shape: &Shape) -> u64 {
        shape.places[0].need.max(shape.places[1].need + u64::from(OptionlessHeader::BYTES))
    }

    /// The offset from the start of the packet.
    pub(crate) fn flat(offset: u32, base: u16) -> Option<u32> {
        if base == 0 { Some(offset) } else { offset.checked_add(OptionlessHeader::BYTES) }
    }
}

/// The position of templates in a packet, and their constant bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    /// Its first byte in the packet.
    pub(crate) start: u32,
    /// The required length of the packet.
    pub(crate) need: u64,
    /// The header without options; `None` if all bases are constant.
    pub(crate) optionless: Option<OptionlessHeader>,
    mask: [u8; BYTES],
    common: [u8; BYTES],
}

impl Template {
    /// The template of a layout, if all comparisons are within its bytes and each filter has a key of its own.
    pub(crate) fn of(layout: &Layout) -> Option<Template> {
        let shape = &layout.shape;
        if layout.has_lists() || layout.key.len() > MAX_KEY_WORDS || cfg!(target_endian = "big") {
            return None;
        }
        let (optionless, need) = match &shape.places[..] {
            [start] => (None, start.need),
            _ => (Some(OptionlessHeader::of(shape)?), OptionlessHeader::need(shape)),
        };
        let mut bytes = Vec::new();
        for ((byte, value), varying) in shape.bytes.iter().zip(&layout.common.bytes).zip(&layout.varying) {
            bytes.push((OptionlessHeader::flat(byte.offset, byte.base)?, byte.mask, if *varying { 0 } else { *value }));
        }
        if let Some(optionless) = optionless {
            bytes.push((optionless.offset, OptionlessHeader::MASK, OptionlessHeader::WORDS));
        }
        let first = bytes.iter().map(|(offset, ..)| *offset).min()?;
        // Loads stay within the length that the filters require.
        let start = u32::try_from(need.checked_sub(BYTES as u64)?).ok()?.min(first);
        let mut template = Template { start, need, optionless, mask: [0; BYTES], common: [0; BYTES] };
        for (offset, mask, value) in bytes {
            let at = (offset - start) as usize;
            let own = template.mask.get_mut(at)?;
            if *own & mask != 0 {
                // Two bytes of the shape coincide in such packets, and may require different values.
                return None;
            }
            *own |= mask;
            template.common[at] |= value;
        }
        Some(template)
    }

    pub(crate) fn mask(&self) -> [u64; WORDS] {
        words(self.mask)
    }

    /// The template of a free slot. It holds the constant bytes, so that a packet with a header of another length never
    /// equals it: such a packet takes the general path.
    pub(crate) fn empty(&self) -> [u64; WORDS] {
        words(self.common)
    }

    /// The template of a key.
    pub(crate) fn filled(&self, layout: &Layout, key: &[u64]) -> [u64; WORDS] {
        let mut bytes = self.common;
        for (window, word) in layout.key.iter().zip(key) {
            let Some(offset) = OptionlessHeader::flat(window.offset, window.base) else { continue };
            for (at, byte) in (u64::from(offset)..).zip(&word.to_le_bytes()[..usize::from(window.width)]) {
                // Bytes of a window that are not part of the key are zero, and may be outside the template.
                if let Some(own) = at.checked_sub(self.start.into()).and_then(|at| bytes.get_mut(at as usize)) {
                    *own |= byte;
                }
            }
        }
        words(bytes)
    }
}

/// The maximum number of words of a key in a slot with a template.
pub(crate) const MAX_KEY_WORDS: usize = 3;

fn words(bytes: [u8; BYTES]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}
