//! The best filter of a stage by a tree of cuts, for common packets: long enough for every filter, and with IPv4
//! headers of 20 bytes. For other packets, and if the best filter was removed, the rows are searched instead. Built
//! once and never changed.
//!
//! ```text
//! packet ── long enough? headers equal? ──> numbers ── cuts ──> list ── first box that has them ──> filter
//! box    | lows, in words of 16 bits | complements of highs |    has it if no word of number, !number is below
//! ```

#[cfg(target_arch = "x86_64")]
pub(super) mod batch;
#[cfg(not(target_arch = "x86_64"))]
pub(super) mod no_batch;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use no_batch as batch;

use super::cuts::{Cuts, LAST};
use super::region::{Bounds, NUMBERS};
use super::{DimensionBuilder, MaskedSubject};
use crate::packet::Packet;
use crate::shape::{ShapeBase, ShapeField};
use batch::{Batch, Vectors};

/// The maximum number of boxes of a filter: negations, and ranges of addresses that are no prefixes, need several.
const MAX_BOXES: usize = 16;
/// The bytes of an IPv4 header without options, in words of four.
const WORDS: u8 = 5;
/// Bytes of a window.
pub(super) const WINDOW: u32 = 16;
/// The maximum numbers of windows on numbers, and of header constants.
pub(super) const MAX_WINDOWS: usize = 3;
const MAX_CONSTANTS: usize = 3;

/// A box in the form in which it is compared, or half of one with more than eight words: the low end and the complement
/// of the high end of each word. Numbers of more than sixteen bits have two words, which are independent of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(32))]
pub(super) struct BoxRecord(pub(super) [u16; RECORD]);

/// Words of a record.
pub(super) const RECORD: usize = 16;

/// Eight bytes that are compared first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeaderConstant {
    pub(super) offset: u32,
    pub(super) mask: u64,
    pub(super) value: u64,
}

/// Sixteen bytes of the packet, and the positions of numbers in them.
#[derive(Clone, Debug)]
pub(super) struct VectorWindow {
    pub(super) offset: u32,
    /// Shuffle mask that extracts numbers to four packed words: bytes of the window, most significant last; 0x80 for
    /// zero.
    pub(super) pack: [u8; 16],
    /// Shuffle mask that extracts the 16-bit words of numbers, least significant byte first; 0x80 for words in another
    /// window.
    pub(super) spread: [u8; 2 * RECORD],
}

/// The location of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FieldLocation {
    /// Bytes from the start of the packet, and how many.
    pub(super) offset: u32,
    pub(super) width: u32,
    pub(super) mask: u32,
    /// Its word among the packed ones, four per window, and its right shift there.
    pub(super) word: u32,
    pub(super) shift: u32,
    /// Its first word in records.
    pub(super) place: usize,
}

/// A result that is no entry: no filter of the tree matches.
pub(super) const NO_FILTER: u32 = u32::MAX;
/// A result that is no entry: the packet is not eligible for the tree.
pub(super) const UNKNOWN: u32 = u32::MAX - 1;

/// A tree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(super) need: u32,
    pub(super) constants: Vec<HeaderConstant>,
    pub(super) locations: Vec<FieldLocation>,
    pub(super) cuts: Cuts,
    /// One or two records per box, and one more that matches no packet.
    pub(super) records: Box<[BoxRecord]>,
    /// How many of each.
    pub(super) halves: usize,
    /// By box: the entry of its filter; one more for "no filter".
    pub(super) entries: Box<[u32]>,
    /// What only batches need.
    vectors: Vectors,
}

/// A byte with a required value.
struct FixedByte {
    offset: u32,
    mask: u8,
    value: u8,
}

impl Tree {
    /// A tree of the filters of `builders` with these ranks and entries; `None` if they are no boxes, read the length
    /// on the wire, or have a variable base other than that behind an IPv4 header.
    pub(super) fn new(
        builders: &[DimensionBuilder],
        places: &[ShapeBase],
        number: &impl Fn(&MaskedSubject) -> Option<ShapeField>,
        ranks: &[u64],
        entries: &[u32],
    ) -> Option<Tree> {
        let (mut wanted, mut moved) = (Vec::new(), vec![0]);
        // All windows are inside the required length.
        let mut need = WINDOW;
        for place in &places[1..] {
            let [own] = &place.terms[..] else { return None };
            if (own.number.base, own.number.width, own.mask, own.shift) != (0, 1, 0x0f, 2) {
                return None;
            }
            wanted.push(FixedByte { offset: own.number.offset, mask: 0x0f, value: WORDS });
            // The header length may lie behind the numbers that it displaces.
            need = need.max(own.number.offset + 1);
            moved.push(4 * u32::from(WORDS));
        }
        let at = |own: ShapeField| moved[usize::from(own.base)].saturating_add(own.offset);
        let mut locations = Vec::new();
        let mut free: Vec<&DimensionBuilder> = Vec::new();
        for builder in builders {
            let own = number(&builder.masked_subject)?;
            let (offset, width) = (at(own), u32::from(own.width));
            need = need.max(offset + width);
            match builder.fixed() {
                Some((low, high)) if low == high => {
                    for byte in 0..width {
                        let right = 8 * (width - 1 - byte);
                        let (mask, value) = ((builder.masked_subject.mask >> right) as u8, (low >> right) as u8);
                        wanted.push(FixedByte { offset: offset + byte, mask, value });
                    }
                }
                _ => {
                    let place = locations.last().map_or(0, |before: &FieldLocation| before.place + before.words());
                    locations.push(FieldLocation {
                        offset,
                        width,
                        mask: builder.masked_subject.mask,
                        word: 0,
                        shift: 0,
                        place,
                    });
                    free.push(builder);
                }
            }
        }
        if locations.len() > NUMBERS {
            return None;
        }
        let windows = windows(&mut locations, need)?;
        let (boxes, entries) = boxes(&free, ranks, entries)?;
        let bits: Vec<u32> = locations.iter().map(|location| 32 - location.mask.leading_zeros()).collect();
        let words = locations.last().map_or(1, |last| last.place + last.words());
        let halves = words.div_ceil(RECORD / 2);
        let masks: [u32; NUMBERS] = std::array::from_fn(|at| locations.get(at).map_or(0, |location| location.mask));
        let [BoxRecord(masks), _] = record(&locations, &masks, &[0; NUMBERS], 2);
        let records = boxes.iter().flat_map(|own| {
            let high: [u32; NUMBERS] = std::array::from_fn(|at| !own.high[at]);
            record(&locations, &own.low, &high, halves).into_iter().take(halves)
        });
        // The last record matches no packet: no word and its complement both have all bits.
        let nothing = std::iter::repeat_n(BoxRecord([u16::MAX; RECORD]), halves);
        let records = records.chain(nothing).collect();
        let constants = constants(wanted, need)?;
        let cuts = Cuts::new(&boxes, &bits)?;
        let vectors = Vectors::new(windows, masks);
        Some(Tree { need, constants, locations, cuts, records, halves, entries, vectors })
    }

    /// The best filter of a packet: its entry, [`NO_FILTER`] or [`UNKNOWN`].
    #[inline]
    pub(super) fn find(&self, packet: Packet<'_>) -> u32 {
        let data = packet.data();
        if data.len() < self.need as usize {
            return UNKNOWN;
        }
        for constant in &self.constants {
            let at = constant.offset as usize;
            let Some(bytes) = data[at..].first_chunk() else { return UNKNOWN };
            if u64::from_le_bytes(*bytes) & constant.mask != constant.value {
                return UNKNOWN;
            }
        }
        let mut numbers = [0_u32; NUMBERS];
        let mut words = [0; RECORD + 1];
        for (at, location) in self.locations.iter().enumerate() {
            let from = location.offset as usize;
            // The load ends with the bytes of the number, if enough bytes precede it.
            let end = from + location.width as usize;
            let all = match end.checked_sub(4).and_then(|start| data[start..].first_chunk()) {
                Some(bytes) => u32::from_be_bytes(*bytes),
                None => data[from..end].iter().fold(0, |value, byte| value << 8 | u32::from(*byte)),
            };
            let own = all & location.mask;
            numbers[at] = own;
            // If it has one word only, the next number overwrites the second.
            (words[location.place], words[location.place + 1]) = (own as u16, (own >> 16) as u16);
        }
        let list = &self.cuts.lists[self.cuts.list(&numbers)..];
        match self.halves {
            1 => self.first_of::<{ RECORD / 2 }>(list, words),
            _ => self.first_of::<RECORD>(list, words),
        }
    }

    /// The entry of the first box of a list that contains a packet with these words.
    #[inline]
    fn first_of<const WORDS: usize>(&self, list: &[u32], words: [u16; RECORD + 1]) -> u32 {
        let halves = 2 * WORDS / RECORD;
        for item in list {
            let at = (item & !LAST) as usize;
            let records = &self.records[halves * at..][..halves];
            let (Some(low), Some(high)) = (records[0].0.first_chunk(), records[halves - 1].0.last_chunk()) else {
                break;
            };
            if has::<WORDS>(&words, low, high) {
                return self.entries[at];
            }
            if item & LAST != 0 {
                break;
            }
        }
        NO_FILTER
    }

    /// Classification in batches, if the processor has the vectors.
    #[inline]
    pub(super) fn batch(&self) -> Option<Batch<'_>> {
        self.vectors.batch(self)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.cuts.bytes() + size_of::<BoxRecord>() * self.records.len() + 4 * self.entries.len()
    }

    /// The numbers of boxes, of cells of the root, of words of nodes and of words of lists.
    pub(crate) fn sizes(&self) -> (usize, usize, usize, usize) {
        (self.entries.len() - 1, self.cuts.root.cells.len(), self.cuts.nodes.len(), self.cuts.lists.len())
    }
}

impl FieldLocation {
    /// Words of sixteen bits.
    fn words(&self) -> usize {
        1 + usize::from(self.mask > u32::from(u16::MAX))
    }
}

/// Whether each word is at least its low end, and its complement at least that of the high end.
#[inline]
fn has<const WORDS: usize>(words: &[u16; RECORD + 1], low: &[u16; WORDS], high: &[u16; WORDS]) -> bool {
    let mut below = 0;
    for at in 0..WORDS {
        below |= low[at].saturating_sub(words[at]) | high[at].saturating_sub(!words[at]);
    }
    below == 0
}

/// The words of `numbers`, and behind them those of `others`.
fn record(
    locations: &[FieldLocation],
    numbers: &[u32; NUMBERS],
    others: &[u32; NUMBERS],
    halves: usize,
) -> [BoxRecord; 2] {
    let mut words = [0_u16; 2 * RECORD];
    let behind = RECORD / 2 * halves;
    for ((location, number), other) in locations.iter().zip(numbers).zip(others) {
        for word in 0..location.words() {
            words[location.place + word] = (number >> (16 * word)) as u16;
            words[behind + location.place + word] = (other >> (16 * word)) as u16;
        }
    }
    let (first, second) = words.split_at(RECORD);
    [first, second].map(|half| BoxRecord(std::array::from_fn(|at| half[at])))
}

/// Divides the masked range into parts in which the upper and the lower sixteen bits are independent ranges.
fn parts(low: u32, high: u32, mask: u32) -> impl Iterator<Item = (u32, u32)> {
    let (inner, is_there, high) = (mask & 0xffff, low <= mask, high.min(mask));
    let (mut first, mut last) = (low >> 16, high >> 16);
    let (mut head, mut tail) = (None, None);
    if first != last && low & 0xffff != 0 {
        head = Some((low, first << 16 | inner));
        first += 1;
    }
    if first != last && high & 0xffff != inner {
        tail = Some((last << 16, high));
        last -= 1;
    }
    let low = if head.is_some() { first << 16 } else { low };
    let high = if tail.is_some() { last << 16 | inner } else { high };
    head.into_iter().chain([(low, high)]).chain(tail).filter(move |(low, high)| is_there && low <= high)
}

/// The boxes of the filters, the best first, and the entry of each.
fn boxes(builders: &[&DimensionBuilder], ranks: &[u64], entries: &[u32]) -> Option<(Vec<Bounds>, Box<[u32]>)> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|filter| std::cmp::Reverse(ranks[*filter]));
    let (mut all, mut owners) = (Vec::new(), Vec::new());
    for filter in order {
        let mut own = vec![Bounds { low: [0; NUMBERS], high: [0; NUMBERS] }];
        for (at, builder) in builders.iter().enumerate() {
            let spans: Vec<(u32, u32)> = match &builder.wanted[filter] {
                Some(spans) => {
                    spans.iter().flat_map(|(low, high)| parts(low, high, builder.masked_subject.mask)).collect()
                }
                None => vec![(0, builder.masked_subject.mask)],
            };
            let wider = own.iter().flat_map(|before| {
                spans.iter().map(move |(low, high)| {
                    let mut after = *before;
                    (after.low[at], after.high[at]) = (*low, *high);
                    after
                })
            });
            own = wider.collect();
            if own.len() > MAX_BOXES {
                return None;
            }
        }
        owners.extend(own.iter().map(|_| entries[filter]));
        all.extend(own);
    }
    owners.push(NO_FILTER);
    Some((all, owners.into()))
}

/// Windows that cover all numbers; also sets the location of each number after packing.
fn windows(locations: &mut [FieldLocation], need: u32) -> Option<Vec<VectorWindow>> {
    let mut order: Vec<usize> = (0..locations.len()).collect();
    order.sort_by_key(|at| locations[*at].offset);
    let mut windows: Vec<VectorWindow> = Vec::new();
    // Used bytes of the packed words of the last window.
    let mut taken = 0;
    for at in order {
        let location = &mut locations[at];
        let size = if location.width == 3 { 4 } else { location.width };
        let fits = |window: &VectorWindow, taken: u32| {
            location.offset + location.width <= window.offset + WINDOW && taken.next_multiple_of(size) + size <= WINDOW
        };
        if !windows.last().is_some_and(|window| fits(window, taken)) {
            let offset = location.offset.min(need - WINDOW);
            windows.push(VectorWindow { offset, pack: [0x80; 16], spread: [0x80; 2 * RECORD] });
            taken = 0;
        }
        let many = windows.len() as u32 - 1;
        let window = windows.last_mut()?;
        let place = taken.next_multiple_of(size);
        taken = place + size;
        (location.word, location.shift) = (4 * many + place / 4, 8 * (place % 4));
        for byte in 0..location.width {
            let from = (location.offset - window.offset + location.width - 1 - byte) as u8;
            window.pack[(place + byte) as usize] = from;
            if (byte as usize) < 2 * location.words() {
                window.spread[2 * location.place + byte as usize] = from;
            }
        }
    }
    (windows.len() <= MAX_WINDOWS).then_some(windows)
}

/// Words of eight bytes that cover all required bytes; `None` if these contradict each other.
fn constants(mut wanted: Vec<FixedByte>, need: u32) -> Option<Vec<HeaderConstant>> {
    wanted.retain(|own| own.mask != 0);
    wanted.sort_by_key(|own| own.offset);
    let mut constants: Vec<HeaderConstant> = Vec::new();
    for own in wanted {
        if constants.last().is_none_or(|constant| own.offset >= constant.offset + 8) {
            constants.push(HeaderConstant { offset: own.offset.min(need - 8), mask: 0, value: 0 });
        }
        let constant = constants.last_mut()?;
        let shift = 8 * (own.offset - constant.offset);
        let (mask, value) = (u64::from(own.mask) << shift, u64::from(own.value & own.mask) << shift);
        if (constant.value ^ value) & constant.mask & mask != 0 {
            return None;
        }
        constant.mask |= mask;
        constant.value |= value;
    }
    (constants.len() <= MAX_CONSTANTS).then_some(constants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_of_a_range_and_words_of_each_are_independent() {
        for mask in [u32::MAX, 0xffff_00ff, 0x00ff_ff00, 0xffff] {
            let words = [0, 1, 0x00f0, 0x1_0000, 0x1_0007, 0x2_0000, 0x2_ffff, 0x3_fffe, 0x7_0001, u32::MAX];
            for (low, high) in words.into_iter().flat_map(|low| words.map(|high| (low, high))) {
                if low > high {
                    continue;
                }
                let all: Vec<(u32, u32)> = parts(low, high, mask).collect();
                let tried = words.into_iter().flat_map(|word| [word.wrapping_sub(1), word, word.wrapping_add(1)]);
                for number in tried.chain([0x1_8000, 0x2_8000, 0x4_4444]).map(|number| number & mask) {
                    let has = |(low, high): &(u32, u32)| {
                        let upper = low >> 16 <= number >> 16 && number >> 16 <= high >> 16;
                        upper && low & 0xffff <= number & 0xffff && number & 0xffff <= high & 0xffff
                    };
                    let many = all.iter().filter(|part| has(part)).count();
                    let expected = usize::from((low..=high).contains(&number));
                    assert_eq!(many, expected, "{number:#x} of {low:#x}..={high:#x}, {mask:#x}: {all:x?}");
                }
            }
        }
    }
}
