//! A decision tree that finds the best of filters that are boxes: a range in each number. The root (`root.rs`) reads
//! some bits of several numbers, every other node some of one number; these bits select another node or a leaf, a short
//! list of boxes that are compared sequentially. Cuts are chosen by sample packets, drawn at random from the filters.
//! In a node, a box that a better one covers is omitted. (Gupta and McKeown, "Classifying Packets with Hierarchical
//! Intelligent Cuttings", IEEE Micro 2000, with samples instead of its space measure, and with equal nodes shared.)
//!
//! ```text
//! node   | 0 | number:3 | shift:5 | bits - 1:4 | first child / 4:19 |   child = (number >> shift) & (2^bits - 1)
//! leaf   | 1 | where its list begins                          :31   |
//! list   box, box, .. box, box with LAST; padded to pairs with the number behind all boxes
//! ```

use super::region::{Bounds, NUMBERS, Region, ones};
use super::root::{self, Classes, Root};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A word that is a leaf.
pub(super) const LEAF: u32 = 1 << 31;
/// The last box of a list.
pub(super) const LAST: u32 = 1 << 31;
/// Children begin at multiples of so many words.
pub(super) const UNIT: usize = 4;
/// Bits of the number of the first child.
pub(super) const FIRST_BITS: u32 = 19;

/// The maximum number of boxes of a leaf that is not cut.
const MAX_LEAF_BOXES: usize = 5;
/// The numbers of bits that a node may read; the maximum below other nodes; the maximum for the first node.
const WIDTHS: [u32; 7] = [1, 2, 3, 4, 6, 8, 10];
const BITS: u32 = 6;
const FIRST_NODE_BITS: u32 = 10;
/// The maximum number of children of a node, per box.
const CHILDREN: usize = 4;
/// The number of better boxes that a box is compared with to find whether it is covered: in a node, and in the whole
/// space.
const COVERS: usize = 16;
const COVERS_OF_ALL: usize = 256;
/// The minimum gain of a cut, in the logarithm of the number of boxes left.
const LEAST_GAIN: f32 = 0.02;
/// Costs of copies of boxes in several children, tried in order until the tree is small enough.
const PRICES: [f32; 3] = [0.4, 0.8, 1.2];
/// Sample packets in total, and the minimum for each box.
const SAMPLES: usize = 8000;
const LEAST_SAMPLES: usize = 2;

/// A tree.
#[derive(Debug)]
pub(super) struct Cuts {
    pub(super) root: Root,
    pub(super) nodes: Box<[u32]>,
    pub(super) lists: Box<[u32]>,
}

impl Cuts {
    /// A tree of these boxes, the best first, over numbers of `bits` bits; `None` if it would be too large.
    pub(super) fn new(boxes: &[Bounds], bits: &[u32]) -> Option<Cuts> {
        let are_there =
            |own: &Bounds| (0..bits.len()).all(|at| own.low[at] <= own.high[at] && own.high[at] <= ones(bits[at]));
        debug_assert!(boxes.iter().all(are_there), "boxes have packets");
        let mut builder = Builder::new(boxes, bits);
        let whole = builder.whole;
        let all: Vec<u32> = (0..boxes.len() as u32).collect();
        let list = builder.visible(&all, &whole, COVERS_OF_ALL);
        let classes = match list.len() {
            ..=MAX_LEAF_BOXES => Vec::new(),
            _ => root::choose(boxes, &list, &whole, bits.len(), &builder.samples),
        };
        let root = PRICES.iter().find_map(|price| builder.build(&list, &classes, *price).ok());
        // A table at the root makes a larger tree, if its numbers are of little use.
        root.or_else(|| PRICES.iter().find_map(|price| builder.build(&list, &[], *price).ok()))
    }

    /// The start of the list for a packet with these numbers.
    #[inline]
    pub(super) fn list(&self, numbers: &[u32; NUMBERS]) -> usize {
        let mut word = self.root.word(numbers);
        while word & LEAF == 0 {
            let number = numbers[(word >> 28) as usize & (NUMBERS - 1)];
            let bits = (word >> FIRST_BITS & 0xf) + 1;
            let child = number >> (word >> 23 & 31) & ((1 << bits) - 1);
            word = self.nodes[(word & ((1 << FIRST_BITS) - 1)) as usize * UNIT + child as usize];
        }
        (word & !LEAF) as usize
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.root.bytes() + 4 * (self.nodes.len() + self.lists.len())
    }
}

/// A cut that may be made.
#[derive(Clone, Copy)]
struct Cut {
    number: usize,
    bits: u32,
    shift: u32,
}

/// The tree or its lists would be too large.
struct TooLarge;

/// A hash of words, cheaper than that of the standard library: keys are long, and no adversary profits from collisions.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ mixed >> 29;
        }
    }

    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

struct Builder<'b> {
    boxes: &'b [Bounds],
    count: usize,
    whole: Region,
    price: f32,
    nodes: Vec<u32>,
    lists: Vec<u32>,
    /// Nodes by content, so that equal nodes are shared.
    known: HashMap<Vec<u32>, u32, BuildHasherDefault<Mix>>,
    leaves: HashMap<Vec<u32>, u32, BuildHasherDefault<Mix>>,
    samples: Vec<[u32; NUMBERS]>,
    logarithms: Vec<f32>,
}

impl<'b> Builder<'b> {
    fn new(boxes: &'b [Bounds], bits: &[u32]) -> Builder<'b> {
        let mut whole = Region { first: [0; NUMBERS], bits: [0; NUMBERS] };
        whole.bits[..bits.len()].copy_from_slice(bits);
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut samples = Vec::new();
        for own in boxes {
            for _ in 0..(SAMPLES / boxes.len()).clamp(LEAST_SAMPLES, 64) {
                let mut sample = [0; NUMBERS];
                for (at, number) in sample.iter_mut().enumerate() {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let width = u64::from(own.high[at] - own.low[at]) + 1;
                    *number = own.low[at] + (((state >> 32) * width) >> 32) as u32;
                }
                samples.push(sample);
            }
        }
        let logarithms = (0..=boxes.len()).map(|count| (count.max(1) as f32).ln()).collect();
        Builder {
            boxes,
            count: bits.len(),
            whole,
            price: 0.0,
            nodes: Vec::new(),
            lists: Vec::new(),
            known: HashMap::default(),
            leaves: HashMap::default(),
            samples,
            logarithms,
        }
    }

    /// A tree with these classes at its root.
    fn build(&mut self, list: &[u32], classes: &[Classes], price: f32) -> Result<Cuts, TooLarge> {
        self.price = price;
        self.nodes.clear();
        self.lists.clear();
        self.known.clear();
        self.leaves.clear();
        let samples: Vec<u32> = (0..self.samples.len() as u32).collect();
        let mut cells = vec![0; classes.iter().map(|own| own.cells.len()).product()];
        let places: Vec<u32> = (0..list.len() as u32).collect();
        match classes {
            [] => cells[0] = self.node(list, self.whole, &samples, FIRST_NODE_BITS)?,
            _ => self.fill(classes, &mut cells, list, &places, self.whole, &samples)?,
        }
        let root = Root { factors: root::factors(classes), cells: cells.into() };
        Ok(Cuts { root, nodes: self.nodes[..].into(), lists: self.lists[..].into() })
    }

    /// The words of cells of the root: some boxes of a list are left for these classes.
    fn fill(
        &mut self,
        classes: &[Classes],
        cells: &mut [u32],
        list: &[u32],
        places: &[u32],
        region: Region,
        samples: &[u32],
    ) -> Result<(), TooLarge> {
        let Some((own, others)) = classes.split_first() else {
            let left: Vec<u32> = places.iter().map(|at| list[*at as usize]).collect();
            let visible = self.visible(&left, &region, COVERS);
            cells[0] = self.node(&visible, region, samples, BITS)?;
            return Ok(());
        };
        let mut left = vec![Vec::new(); own.cells.len()];
        for at in places {
            own.members[*at as usize].iter().for_each(|class| left[usize::from(*class)].push(*at));
        }
        let mut sampled = vec![Vec::new(); own.cells.len()];
        for sample in samples {
            sampled[own.of(self.samples[*sample as usize][own.number])].push(*sample);
        }
        let size = cells.len() / own.cells.len();
        for (class, cells) in cells.chunks_mut(size).enumerate() {
            let mut region = region;
            region.first[own.number] = own.cells[class] << own.shift;
            region.bits[own.number] = own.shift;
            self.fill(others, cells, list, &left[class], region, &sampled[class])?;
        }
        Ok(())
    }

    /// The boxes of a list that can be the best of some packet in a region.
    fn visible(&self, list: &[u32], region: &Region, max_covers: usize) -> Vec<u32> {
        let mut kept: Vec<u32> = Vec::new();
        'boxes: for own in list {
            let bounds = &self.boxes[*own as usize];
            let (mut low, mut high) = ([0; NUMBERS], [0; NUMBERS]);
            let mut all = true;
            for at in 0..self.count {
                let (first, last) = (region.first[at], region.last(at));
                if bounds.low[at] > last || bounds.high[at] < first {
                    continue 'boxes;
                }
                all &= bounds.low[at] <= first && bounds.high[at] >= last;
                (low[at], high[at]) = (bounds.low[at].max(first), bounds.high[at].min(last));
            }
            let covers = |better: &u32| {
                let better = &self.boxes[*better as usize];
                (0..self.count).all(|at| better.low[at] <= low[at] && better.high[at] >= high[at])
            };
            if kept.iter().take(max_covers).any(covers) {
                continue;
            }
            kept.push(*own);
            if all {
                break;
            }
        }
        kept
    }

    fn leaf(&mut self, list: &[u32]) -> Result<u32, TooLarge> {
        if let Some(leaf) = self.leaves.get(list) {
            return Ok(*leaf);
        }
        let leaf = LEAF | self.lists.len() as u32;
        let no_box = self.boxes.len() as u32;
        let pairs = list.len().div_ceil(2).max(1);
        self.lists.extend(list.iter().copied().chain(std::iter::repeat(no_box)).take(2 * pairs));
        if let Some(last) = self.lists.last_mut() {
            *last |= LAST;
        }
        self.leaves.insert(list.to_vec(), leaf);
        if self.lists.len() > 32 * self.boxes.len() + (1 << 14) { Err(TooLarge) } else { Ok(leaf) }
    }

    /// Builds the node for these boxes, all of which are in the region; returns its word.
    fn node(&mut self, list: &[u32], mut region: Region, samples: &[u32], max_bits: u32) -> Result<u32, TooLarge> {
        if list.len() <= MAX_LEAF_BOXES {
            return self.leaf(list);
        }
        let key = self.key(list, &region);
        if let Some(word) = self.known.get(&key) {
            return Ok(*word);
        }
        self.shrink(list, &mut region);
        let inside = |sample: &&u32| {
            let numbers = &self.samples[**sample as usize];
            (0..self.count).all(|at| (region.first[at]..=region.last(at)).contains(&numbers[at]))
        };
        let samples: Vec<u32> = samples.iter().filter(inside).copied().collect();
        let Some(cut) = self.choose(list, &region, &samples, max_bits) else { return self.leaf(list) };
        let children = self.children(list, region, &samples, cut)?;
        let first = self.nodes.len();
        self.nodes.extend(&children);
        self.nodes.resize(self.nodes.len().next_multiple_of(UNIT), LEAF);
        let max = (64 * self.boxes.len() + (1 << 16)).min(UNIT << FIRST_BITS);
        if self.nodes.len() > max {
            return Err(TooLarge);
        }
        let word = (cut.number as u32) << 28 | cut.shift << 23 | (cut.bits - 1) << FIRST_BITS | (first / UNIT) as u32;
        self.known.insert(key, word);
        Ok(word)
    }

    /// The content of a node independent of its location: its boxes, relative to its region.
    fn key(&self, list: &[u32], region: &Region) -> Vec<u32> {
        let mut key = Vec::with_capacity(NUMBERS + list.len() * (1 + 2 * self.count));
        key.extend(&region.bits[..self.count]);
        for own in list {
            let bounds = &self.boxes[*own as usize];
            key.push(*own);
            for at in 0..self.count {
                key.push(bounds.low[at].max(region.first[at]) - region.first[at]);
                key.push(bounds.high[at].min(region.last(at)) - region.first[at]);
            }
        }
        key
    }

    /// Skips leading bits in which all boxes agree; lists are compared with the whole packet, so this is exact.
    fn shrink(&self, list: &[u32], region: &mut Region) {
        for at in 0..self.count {
            let (mut low, mut high) = (u32::MAX, 0);
            for own in list {
                let bounds = &self.boxes[*own as usize];
                low = low.min(bounds.low[at].max(region.first[at]));
                high = high.max(bounds.high[at].min(region.last(at)));
            }
            let bits = 32 - (low ^ high).leading_zeros();
            if bits < region.bits[at] {
                region.bits[at] = bits;
                region.first[at] = low & !ones(bits);
            }
        }
    }

    /// The children of a box under a cut, from the first to the last.
    fn reach(&self, own: u32, region: &Region, cut: Cut) -> (usize, usize) {
        let bounds = &self.boxes[own as usize];
        let first = region.first[cut.number];
        let low = bounds.low[cut.number].max(first) - first;
        let high = bounds.high[cut.number].min(region.last(cut.number)) - first;
        ((low >> cut.shift) as usize, (high >> cut.shift) as usize)
    }

    /// The cut that leaves the fewest boxes for a sample, penalised by copies of boxes.
    fn choose(&self, list: &[u32], region: &Region, samples: &[u32], max_bits: u32) -> Option<Cut> {
        let mut best: Option<(f32, Cut)> = None;
        let count = list.len() as f32;
        let mut counts: Vec<i32> = Vec::new();
        for number in 0..self.count {
            let max = max_bits.min(region.bits[number]).min((CHILDREN * list.len()).ilog2());
            for bits in WIDTHS.into_iter().filter(|bits| *bits <= max) {
                let cut = Cut { number, bits, shift: region.bits[number] - bits };
                counts.clear();
                counts.resize((1 << bits) + 1, 0);
                for own in list {
                    let (low, high) = self.reach(*own, region, cut);
                    counts[low] += 1;
                    counts[high + 1] -= 1;
                }
                let (mut running, mut copies) = (0, 0_u64);
                for change in &mut counts[..1 << bits] {
                    running += *change;
                    // A child with the boxes of the one before is equal to it.
                    copies += if *change == 0 { 0 } else { running as u64 };
                    *change = running;
                }
                let left = |child: usize| self.logarithms[counts[child] as usize];
                let left = if samples.is_empty() {
                    (0..1 << bits).map(left).sum::<f32>() / (1 << bits) as f32
                } else {
                    let child = |own: &u32| (self.samples[*own as usize][number] - region.first[number]) >> cut.shift;
                    samples.iter().map(|own| left(child(own) as usize)).sum::<f32>() / samples.len() as f32
                };
                let gain = self.logarithms[list.len()] - left;
                let space = (copies as f32 + counts.len() as f32 / 4.0) / count;
                let score = gain - self.price * space.max(1.0).ln();
                if gain > LEAST_GAIN && score > best.map_or(0.0, |(best, _)| best) {
                    best = Some((score, cut));
                }
            }
        }
        best.map(|(_, cut)| cut)
    }

    /// The words of all children.
    fn children(&mut self, list: &[u32], region: Region, samples: &[u32], cut: Cut) -> Result<Vec<u32>, TooLarge> {
        let many = 1_usize << cut.bits;
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); many];
        // The children at which a box begins or ends.
        let mut begins = vec![false; many + 1];
        for own in list {
            let (low, high) = self.reach(*own, &region, cut);
            begins[low] = true;
            begins[high + 1] = true;
            // A box that ends inside of a child is not the same in the next.
            lists[low..=high].iter_mut().for_each(|child| child.push(*own));
        }
        let inner = ones(cut.shift);
        for own in list {
            let (low, high) = self.reach(*own, &region, cut);
            let bounds = &self.boxes[*own as usize];
            begins[low + 1] |= bounds.low[cut.number] & inner != 0 && bounds.low[cut.number] > region.first[cut.number];
            begins[high] |=
                bounds.high[cut.number] & inner != inner && bounds.high[cut.number] < region.last(cut.number);
        }
        let mut sampled: Vec<Vec<u32>> = vec![Vec::new(); many];
        for own in samples {
            let number = self.samples[*own as usize][cut.number] - region.first[cut.number];
            sampled[(number >> cut.shift) as usize].push(*own);
        }
        let mut words: Vec<u32> = Vec::with_capacity(many);
        for child in 0..many {
            if let Some(before) = words.last().filter(|_| !begins[child]) {
                words.push(*before);
                continue;
            }
            let mut own = region;
            own.first[cut.number] += ((child as u64) << cut.shift) as u32;
            own.bits[cut.number] = cut.shift;
            let visible = self.visible(&lists[child], &own, COVERS);
            words.push(self.node(&visible, own, &sampled[child], BITS)?);
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use quaject_test_support::Random;

    use super::*;

    fn below(random: &mut Random, bound: u64) -> u32 {
        random.below(bound) as u32
    }

    fn boxes(random: &mut Random, count: usize, bits: &[u32]) -> Vec<Bounds> {
        let one = |random: &mut Random| {
            let mut bounds = Bounds { low: [0; NUMBERS], high: [0; NUMBERS] };
            for (at, bits) in bits.iter().enumerate() {
                let all = ones(*bits);
                let any = below(random, u64::from(all) + 1) & [u32::MAX, 0xff, 0x30ff_0f00][below(random, 3) as usize];
                let prefix = ones(below(random, u64::from(*bits) + 1));
                (bounds.low[at], bounds.high[at]) = match below(random, 4) {
                    0 => (0, all),
                    1 => (any, any),
                    2 => (any & !prefix, any | prefix),
                    _ => (any, any + below(random, u64::from(all - any) + 1)),
                };
            }
            bounds
        };
        (0..count).map(|_| one(random)).collect()
    }

    fn first(cuts: &Cuts, boxes: &[Bounds], numbers: &[u32; NUMBERS]) -> Option<usize> {
        for own in &cuts.lists[cuts.list(numbers)..] {
            if boxes.get((own & !LAST) as usize).is_some_and(|own| own.has(numbers)) {
                return Some((own & !LAST) as usize);
            }
            if own & LAST != 0 {
                break;
            }
        }
        None
    }

    #[test]
    fn the_first_box_that_has_a_packet_is_found() {
        let mut random = Random(9);
        for bits in [&[1_u32][..], &[3, 2], &[8, 8, 8], &[32, 32, 16, 16, 8], &[32; 8]] {
            for count in [1, 2, 3, 4, 5, 8, 30, 300] {
                let boxes = boxes(&mut random, count, bits);
                let cuts = Cuts::new(&boxes, bits).expect("it is small");
                for _ in 0..2000 {
                    // A corner of a box, or next to one, or anywhere.
                    let mut numbers = [0; NUMBERS];
                    let near = &boxes[below(&mut random, count as u64) as usize];
                    for (at, bits) in bits.iter().enumerate() {
                        let all = ones(*bits);
                        numbers[at] = match below(&mut random, 6) {
                            0 => near.low[at],
                            1 => near.high[at],
                            2 => near.low[at].saturating_sub(1),
                            3 => near.high[at].saturating_add(1).min(all),
                            4 => near.low[at] + below(&mut random, u64::from(near.high[at] - near.low[at]) + 1),
                            _ => below(&mut random, u64::from(all) + 1),
                        };
                    }
                    let expected = boxes.iter().position(|own| own.has(&numbers));
                    assert_eq!(first(&cuts, &boxes, &numbers), expected, "{count} of {bits:?}: {numbers:x?}");
                }
            }
        }
    }

    #[test]
    fn every_packet_of_small_numbers_finds_its_box() {
        let mut random = Random(10);
        // More bits than are read first, so that boxes begin inside of children.
        let mut roots = [0; 3];
        for round in 0..150 {
            let boxes = boxes(&mut random, 4 + round % 24, &[13, 3]);
            let cuts = Cuts::new(&boxes, &[13, 3]).expect("it is small");
            roots[cuts.root.factors.len()] += 1;
            for packet in 0..1 << 16 {
                let mut numbers = [0; NUMBERS];
                (numbers[0], numbers[1]) = (packet >> 3, packet & 7);
                let expected = boxes.iter().position(|own| own.has(&numbers));
                assert_eq!(first(&cuts, &boxes, &numbers), expected, "round {round}: {numbers:?} in {boxes:?}");
            }
        }
        assert!(roots[0] > 10 && roots[2] > 10, "{roots:?} roots read no, one and two numbers");
    }
}
