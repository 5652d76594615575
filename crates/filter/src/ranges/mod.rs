//! Filters that differ in ranges and prefixes, thousands of shapes in one stage, by aggregated bit vectors. Each number
//! is looked up in an index of intervals, which gives a row: a bit for every filter that allows the interval. The
//! conjunction of the rows of all numbers is the set of matching filters. A summary marks the non-zero blocks of a row,
//! so that few blocks are read. (Lakshman and Stiliadis, "High-Speed Policy-based Packet Forwarding", SIGCOMM 1998;
//! Baboescu and Varghese, "Scalable Packet Classification", SIGCOMM 2001. We order filters so that similar ones share
//! blocks, and take the best rank of all that match instead of the first bit, so that the order is free.)
//!
//! ```text
//! source address ── index ──> row of an axis   | summary | blocks that have bits .. |
//! protocol, port ── indices, added ──> row     | ..      | ..                       |     and of all rows
//! ranks           | 64 ranks, 0 | 64 ranks, 0 | ..        by word of a block; 0: the filter was removed
//! ```
//!
//! Zero blocks are not stored: the position of a block is the number of lower bits in the summary (its rank). In each
//! word the best rank comes first, so that one bit of a word is tested.
//!
//! Rows find all filters that match, also after filters were removed. The best filter of a packet is first looked up in
//! a decision tree (`tree.rs`) of the filters that the stage was built with: if its result was not removed, it is the
//! best one.
//!
//! Nothing but ranks changes once a stage is built: a filter that is removed has rank 0. Knows no generated code.

mod cuts;
mod index;
mod region;
mod root;
mod spans;
mod tree;

pub(crate) use index::Index;

use crate::ir::{Base, Conjunction, Subject};
use crate::packet::Packet;
use crate::shape::{ShapeBase, ShapeField, places_of};
use crate::types::Match;
use spans::Spans;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use tree::batch::MAX_PACKETS;
use tree::{NO_FILTER, Tree, UNKNOWN};

/// The most filters of a stage: 64 blocks of three words, each of which takes a register.
pub(crate) const MAX_FILTERS: usize = 64 * 64 * 3;
/// The most numbers that the filters of a stage read.
pub(crate) const MAX_DIMENSIONS: usize = 8;
/// The maximum number of rows of a conjunction: each takes a register.
const MAX_AXES: usize = 4;
/// The most intervals of a number: they are counted in two bytes.
const MAX_INTERVALS: usize = 65_535;
/// Indices share an axis while its rows take no more bytes than this.
const SHARED_BYTES: usize = 1 << 18;
/// The most bytes of the rows of an axis.
const MAX_ROW_BYTES: usize = 1 << 26;
/// Blocks of a row: as many as the summary has bits.
const BLOCKS: usize = 64;
/// Words of ranks for a word of a row: one more, which is zero, for a word without bits.
pub(crate) const RANKS: usize = 65;
/// Offsets beyond this do not fit instructions.
const FURTHEST: u64 = 1 << 30;

/// The part of a packet that a test reads, a number or the length on the wire, and its mask.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct MaskedSubject {
    subject: Subject,
    mask: u32,
}

/// A number that all filters require in the same range.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    pub(crate) number: Option<ShapeField>,
    pub(crate) mask: u32,
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// A number with its index.
#[derive(Debug)]
pub(crate) struct Dimension {
    /// The number; none for the length on the wire.
    pub(crate) number: Option<ShapeField>,
    pub(crate) mask: u32,
    /// From the number to bytes in the rows of its axis, or in its offsets.
    pub(crate) index: Index,
    /// The same where the number is not in the packet.
    pub(crate) absent: u32,
}

/// Rows, selected by the sum of the payloads of one or more indices.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) dimensions: Vec<Dimension>,
    /// The offsets of rows, in bytes, by the sum of the payloads, if several indices share the axis. Empty if the
    /// payload is the offset.
    pub(crate) offsets: Box<[u32]>,
    pub(crate) rows: Box<[u64]>,
}

/// A stage.
#[derive(Debug)]
pub(crate) struct Ranges {
    pub(crate) places: Vec<ShapeBase>,
    pub(crate) fixed: Vec<Fixed>,
    pub(crate) axes: Vec<Axis>,
    /// Words of bits in a row of which all blocks have bits.
    pub(crate) words: usize,
    /// Words of a block.
    pub(crate) block_words: usize,
    pub(crate) ranks: Box<[AtomicU64]>,
    /// The decision tree, if all filters are boxes.
    pub(crate) tree: Option<Tree>,
}

/// The masked subjects that a conjunction tests.
pub(crate) fn masked_subjects(conjunction: &Conjunction) -> impl Iterator<Item = MaskedSubject> + '_ {
    conjunction.tests().iter().map(|test| spans::of(test).0)
}

/// A dimension under construction, before its rows are placed.
struct DimensionBuilder {
    masked_subject: MaskedSubject,
    /// By filter: the values that it allows; none if it does not test the number.
    wanted: Vec<Option<Spans>>,
    /// First numbers of intervals, and the class of each.
    starts: Vec<u32>,
    classes: Vec<u32>,
    /// The class of a packet without the number.
    absent: u32,
    /// By class, the bits.
    rows: Vec<Box<[u64]>>,
}

impl DimensionBuilder {
    fn new(masked_subject: MaskedSubject, wanted: Vec<Option<Spans>>) -> DimensionBuilder {
        let mut starts = vec![0];
        for (low, high) in wanted.iter().flatten().flat_map(Spans::iter) {
            starts.push(low);
            starts.extend(high.checked_add(1));
        }
        starts.sort_unstable();
        starts.dedup();
        DimensionBuilder { masked_subject, wanted, starts, classes: Vec::new(), absent: 0, rows: Vec::new() }
    }

    /// The range of the number if it is the same for all filters.
    fn fixed(&self) -> Option<(u32, u32)> {
        let first = self.wanted.first()?.as_ref()?;
        let same = self.wanted.iter().all(|own| own.as_ref() == Some(first));
        first.single().filter(|_| same)
    }

    /// Whether a filter allows so many values that it is in most rows.
    fn is_wide(&self, filter: usize) -> bool {
        let all = u64::from(self.masked_subject.mask) + 1;
        self.wanted[filter].as_ref().is_none_or(|spans| spans.count() > all / 16)
    }

    /// Computes the rows by a sweep over the interval ends, for filters in this order.
    fn sweep(&mut self, order: &[u32], words: usize) {
        let mut position = vec![0; order.len()];
        for (at, filter) in order.iter().enumerate() {
            position[*filter as usize] = at;
        }
        let mut row: Box<[u64]> = vec![0; words].into();
        // The bits that change, by interval.
        let mut changes: Vec<(u32, u32)> = Vec::new();
        let interval = |start: u32| self.starts.partition_point(|own| *own < start) as u32;
        for (filter, spans) in self.wanted.iter().enumerate() {
            let at = position[filter];
            let Some(spans) = spans else {
                row[at / 64] |= 1 << (at % 64);
                continue;
            };
            for (low, high) in spans.iter() {
                changes.push((interval(low), at as u32));
                if let Some(after) = high.checked_add(1) {
                    changes.push((interval(after), at as u32));
                }
            }
        }
        changes.sort_unstable();
        let mut known: HashMap<Box<[u64]>, u32> = HashMap::new();
        let mut class = |row: &[u64], rows: &mut Vec<Box<[u64]>>| match known.get(row) {
            Some(class) => *class,
            None => {
                let class = rows.len() as u32;
                rows.push(row.into());
                known.insert(row.into(), class);
                class
            }
        };
        self.absent = class(&row, &mut self.rows);
        let mut changes = changes.into_iter().peekable();
        for at in 0..self.starts.len() as u32 {
            while let Some((_, filter)) = changes.next_if(|(own, _)| *own == at) {
                row[filter as usize / 64] ^= 1 << (filter % 64);
            }
            let own = class(&row, &mut self.rows);
            self.classes.push(own);
        }
    }
}

impl Ranges {
    /// A stage of these filters and ranks, and the entry of each; `None` if they read too many numbers or their rows
    /// would be too large.
    pub(crate) fn build(filters: &[(&Conjunction, u64)]) -> Option<(Ranges, Vec<u32>)> {
        if filters.is_empty() || filters.len() > MAX_FILTERS {
            return None;
        }
        let builders = builders(filters)?;
        let (bases, places) = places_of(builders.iter().filter_map(|builder| match &builder.masked_subject.subject {
            Subject::Field(field) => Some(field),
            Subject::Length => None,
        }));
        if !are_near(&bases, &places) {
            return None;
        }
        let number = |masked_subject: &MaskedSubject| match &masked_subject.subject {
            Subject::Field(field) => {
                let base = bases.iter().position(|own| *own == field.base).expect("all bases were noted") as u16;
                Some(ShapeField { base, offset: field.offset, width: field.width })
            }
            Subject::Length => None,
        };
        let mut fixed = Vec::new();
        let (same, mut builders): (Vec<DimensionBuilder>, Vec<DimensionBuilder>) =
            builders.into_iter().partition(|own| own.fixed().is_some());
        for builder in &same {
            let Some((low, high)) = builder.fixed() else { continue };
            fixed.push(Fixed { number: number(&builder.masked_subject), mask: builder.masked_subject.mask, low, high });
        }
        if builders.iter().any(|builder| builder.starts.len() > MAX_INTERVALS) {
            return None;
        }
        builders.sort_by_key(|builder| std::cmp::Reverse(builder.starts.len()));
        let mut order = order(&builders, filters.len());
        let block_words = filters.len().div_ceil(BLOCKS * 64);
        for block in order.chunks_mut(64 * block_words) {
            block.sort_by_key(|filter| std::cmp::Reverse(filters[*filter as usize].1));
        }
        let words = filters.len().div_ceil(block_words * 64) * block_words;
        for builder in &mut builders {
            builder.sweep(&order, words);
        }
        let axes = join(&builders, words)?;
        let axes = axes.into_iter().map(|members| Axis::new(&members, &builders, words, block_words, &number));
        let axes = axes.collect();
        let ranks: Box<[AtomicU64]> = (0..words * RANKS).map(|_| AtomicU64::new(0)).collect();
        let mut entries = vec![0; filters.len()];
        for (at, filter) in order.iter().enumerate() {
            let entry = at / 64 * RANKS + at % 64;
            ranks[entry].store(filters[*filter as usize].1, Ordering::Relaxed);
            entries[*filter as usize] = entry as u32;
        }
        builders.extend(same);
        let order: Vec<u64> = filters.iter().map(|(_, rank)| *rank).collect();
        let tree = Tree::new(&builders, &places, &number, &order, &entries);
        Some((Ranges { places, fixed, axes, words, block_words, ranks, tree }, entries))
    }

    /// Removes a filter.
    pub(crate) fn remove(&self, entry: u32) {
        // Pairs with the acquire in `ranks`, and with the order of loads in generated code.
        self.ranks[entry as usize].store(0, Ordering::Release);
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let rows: usize = self.axes.iter().map(|axis| 8 * axis.rows.len() + 4 * axis.offsets.len()).sum();
        let indices = self.axes.iter().flat_map(|axis| &axis.dimensions).map(|own| own.index.bytes());
        rows + indices.sum::<usize>() + 8 * self.ranks.len() + self.tree.as_ref().map_or(0, Tree::bytes)
    }

    /// The best rank of a packet by the tree, zero for no filter; `None` if the rows must be searched.
    #[inline]
    pub(crate) fn best(&self, packet: Packet<'_>) -> Option<u64> {
        self.rank(self.tree.as_ref()?.find(packet))
    }

    /// Raises the ranks of many packets to those of the best filters; `unknown` gets those for which rows must be
    /// searched.
    pub(crate) fn best_of(
        &self,
        packets: &[Packet<'_>],
        best: &mut [Match],
        mut unknown: impl FnMut(usize, &mut Match),
    ) {
        if let Some(batch) = self.tree.as_ref().and_then(Tree::batch) {
            let mut found = [0; MAX_PACKETS];
            let parts = packets.chunks(MAX_PACKETS).zip(best.chunks_mut(MAX_PACKETS));
            for (part, (packets, best)) in parts.enumerate() {
                let known = batch.find_many(packets, &mut found);
                for (at, (found, best)) in found.iter().zip(best).enumerate() {
                    let known = known >> at & 1 != 0;
                    match self.rank(if known { batch.entry(*found) } else { UNKNOWN }) {
                        Some(rank) => best.0 = best.0.max(rank),
                        None => unknown(part * MAX_PACKETS + at, best),
                    }
                }
            }
            return;
        }
        for (at, (packet, best)) in packets.iter().zip(best).enumerate() {
            match self.best(*packet) {
                Some(rank) => best.0 = best.0.max(rank),
                None => unknown(at, best),
            }
        }
    }

    /// The rank of the tree's result, if the filter was not removed.
    #[inline]
    fn rank(&self, found: u32) -> Option<u64> {
        match found {
            NO_FILTER => Some(0),
            UNKNOWN => None,
            // Pairs with the release in `remove`.
            entry => Some(self.ranks[entry as usize].load(Ordering::Acquire)).filter(|rank| *rank != 0),
        }
    }

    /// The ranks of the filters that match: the interpreter of the generated code.
    pub(crate) fn ranks(&self, packet: Packet<'_>, found: &mut impl FnMut(u64)) {
        let bases = self.bases(packet);
        let number = |number: Option<ShapeField>| match number {
            Some(own) => {
                packet.load(bases[usize::from(own.base)]?.saturating_add(own.offset.into()), u32::from(own.width))
            }
            None => Some(packet.wire_length()),
        };
        let holds = |own: &Fixed| number(own.number).is_some_and(|it| (own.low..=own.high).contains(&(it & own.mask)));
        if !self.fixed.iter().all(holds) {
            return;
        }
        let mut rows: [&[u64]; MAX_AXES] = [&[]; MAX_AXES];
        for (axis, row) in self.axes.iter().zip(&mut rows) {
            let offsets = axis.dimensions.iter().map(|own| match number(own.number) {
                Some(it) => own.index.find(it & own.mask),
                None => own.absent,
            });
            let sum: u32 = offsets.sum();
            let start = axis.offsets.get(sum as usize / 4).copied().unwrap_or(sum);
            *row = &axis.rows[start as usize / 8..];
        }
        let rows = &rows[..self.axes.len()];
        for block in bits(rows.iter().fold(u64::MAX, |bits, row| bits & row[0])) {
            for own in 0..self.block_words {
                let word = |row: &&[u64]| {
                    let before = (row[0] & ((1 << block) - 1)).count_ones() as usize;
                    row[1 + before * self.block_words + own]
                };
                for bit in bits(rows.iter().fold(u64::MAX, |bits, row| bits & word(row))) {
                    // Pairs with the release in `remove`.
                    let rank = self.ranks[(block * self.block_words + own) * RANKS + bit].load(Ordering::Acquire);
                    if rank != 0 {
                        found(rank);
                    }
                }
            }
        }
    }

    /// The bases; `None` for one whose terms are not in the packet.
    fn bases(&self, packet: Packet<'_>) -> Vec<Option<u64>> {
        let mut bases: Vec<Option<u64>> = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let sum = place.terms.iter().try_fold(0_u64, |sum, part| {
                let own = part.number;
                let at = bases[usize::from(own.base)]?.saturating_add(own.offset.into());
                Some(sum.saturating_add(part.moved(packet.load(at, u32::from(own.width))?)))
            });
            bases.push(sum);
        }
        bases
    }
}

/// The bits that are set, from the lowest.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}

/// The values that filters allow, for each number; `None` if there are too many numbers.
fn builders(filters: &[(&Conjunction, u64)]) -> Option<Vec<DimensionBuilder>> {
    let mut known: HashMap<MaskedSubject, usize> = HashMap::new();
    let mut all: Vec<(MaskedSubject, Vec<Option<Spans>>)> = Vec::new();
    for (at, (conjunction, _)) in filters.iter().enumerate() {
        for test in conjunction.tests() {
            let (masked_subject, spans) = spans::of(test);
            let dimension = *known.entry(masked_subject).or_insert_with_key(|masked_subject| {
                all.push((masked_subject.clone(), vec![None; filters.len()]));
                all.len() - 1
            });
            if all.len() > MAX_DIMENSIONS {
                return None;
            }
            let own = &mut all[dimension].1[at];
            *own = Some(match own.take() {
                Some(before) => before.and(&spans),
                None => spans,
            });
        }
    }
    Some(all.into_iter().map(|(masked_subject, wanted)| DimensionBuilder::new(masked_subject, wanted)).collect())
}

/// Whether offsets fit instructions and sums do not wrap.
fn are_near(bases: &[Base], places: &[ShapeBase]) -> bool {
    let terms =
        bases.iter().map(|base| base.terms().iter().fold(0_u64, |sum, term| sum.saturating_add(term.max_value())));
    terms.into_iter().all(|max| max < FURTHEST) && places.iter().all(|place| place.need < FURTHEST)
}

/// An order of the filters in which those that are wide in the same of the two numbers with the most intervals, and
/// those that allow the same values, are adjacent.
fn order(builders: &[DimensionBuilder], count: usize) -> Vec<u32> {
    let key = |filter: &u32| -> (u32, Vec<u32>) {
        let own = builders.iter().enumerate();
        let mut wide = 0;
        let mut lows = Vec::new();
        for (at, builder) in own {
            match &builder.wanted[*filter as usize] {
                Some(spans) if !builder.is_wide(*filter as usize) => {
                    lows.push(spans.iter().next().map_or(0, |own| own.0))
                }
                Some(_) | None => wide |= u32::from(at < 2) << at,
            }
        }
        (wide, lows)
    };
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by_cached_key(key);
    order
}

/// The dimensions of each axis; `None` if there are too many axes. Dimensions with the fewest classes share an axis.
fn join(builders: &[DimensionBuilder], words: usize) -> Option<Vec<Vec<usize>>> {
    let row = 8 * (words + 1);
    let mut axes: Vec<(usize, Vec<usize>)> =
        builders.iter().enumerate().map(|(at, builder)| (builder.rows.len(), vec![at])).collect();
    if axes.is_empty() {
        // All filters allow the same values: one row, with all bits.
        axes.push((1, Vec::new()));
    }
    loop {
        axes.sort_by_key(|(classes, _)| std::cmp::Reverse(*classes));
        if axes.iter().any(|(classes, _)| classes.saturating_mul(row) > MAX_ROW_BYTES) {
            return None;
        }
        let [.., (second, _), (first, _)] = &axes[..] else { break };
        let max_bytes = if axes.len() > MAX_AXES { MAX_ROW_BYTES } else { SHARED_BYTES };
        if first.saturating_mul(*second).saturating_mul(row) > max_bytes {
            break;
        }
        let (classes, members) = axes.pop()?;
        let (own, others) = axes.last_mut()?;
        *own *= classes;
        others.extend(members);
    }
    (axes.len() <= MAX_AXES).then(|| axes.into_iter().map(|(_, members)| members).collect())
}

impl Axis {
    fn new(
        members: &[usize],
        builders: &[DimensionBuilder],
        words: usize,
        block_words: usize,
        number: &impl Fn(&MaskedSubject) -> Option<ShapeField>,
    ) -> Axis {
        let classes = |at: &usize| builders[*at].rows.len();
        let count: usize = members.iter().map(classes).product();
        let (mut rows, mut offsets) = (Vec::new(), Vec::with_capacity(count));
        let mut bits = Vec::with_capacity(words);
        for row in 0..count {
            bits.clear();
            bits.resize(words, u64::MAX);
            let mut rest = row;
            for member in members {
                let own = &builders[*member].rows[rest % classes(member)];
                rest /= classes(member);
                bits.iter_mut().zip(own).for_each(|(word, own)| *word &= own);
            }
            offsets.push(8 * rows.len() as u32);
            let summary = rows.len();
            rows.push(0);
            for (at, block) in bits.chunks(block_words).enumerate() {
                if block.iter().any(|word| *word != 0) {
                    rows[summary] |= 1 << at;
                    rows.extend(block);
                }
            }
        }
        let mut factor = 4;
        let mut dimensions = Vec::new();
        for member in members {
            let builder = &builders[*member];
            let place = |class: &u32| if members.len() == 1 { offsets[*class as usize] } else { class * factor };
            let places: Vec<u32> = builder.classes.iter().map(place).collect();
            dimensions.push(Dimension {
                number: number(&builder.masked_subject),
                mask: builder.masked_subject.mask,
                index: Index::new(&builder.starts, &places, builder.masked_subject.mask),
                absent: place(&builder.absent),
            });
            factor = factor.wrapping_mul(builder.rows.len() as u32);
        }
        let offsets = if members.len() > 1 { offsets.into() } else { Box::default() };
        Axis { dimensions, offsets, rows: rows.into() }
    }
}
