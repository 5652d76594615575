//! The root of a tree of cuts: a cross-product table over several numbers. The top bits of each number determine its
//! equivalence class, and the classes together select the child. Cells of a number that contain the same boxes at the
//! same places are one class, so that tables of 65,536 cells for addresses shrink to a few hundred classes. (Gupta and
//! McKeown, "Packet Classification on Multiple Fields", SIGCOMM 1999, call it recursive flow classification; here a
//! tree follows where its last tables would be too large.)
//!
//! ```text
//! number >> shift ──> sums   \
//! number >> shift ──> sums    +──> cells ──> word of a node or of a leaf
//! number >> shift ──> sums   /
//! ```

use super::region::{Bounds, NUMBERS, Region};
use std::collections::HashMap;

/// The contribution of a number to the index of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Factor {
    pub(super) number: usize,
    pub(super) shift: u32,
    /// By the top bits: the class times the number of combinations of the factors behind.
    pub(super) sums: Box<[u16]>,
}

/// The table.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) factors: Vec<Factor>,
    /// The word of a node or of a leaf for every combination of classes.
    pub(super) cells: Box<[u32]>,
}

/// The most numbers that the root reads.
pub(super) const MAX_FACTORS: usize = 4;
/// The maximum number of cells, per box and in total: sums have sixteen bits.
const CELLS: usize = 256;
const MAX_CELLS: usize = 1 << 16;
/// The numbers of top bits that the root may read.
const BITS: [u32; 8] = [3, 4, 6, 8, 10, 12, 14, 16];
/// The maximum number of boxes in all classes of a number together.
const MAX_MEMBERS: usize = 1 << 22;
/// Sample packets for the choice of numbers.
const TRIED: usize = 256;
/// The minimum reduction of the logarithm of the boxes left for which the root reads a number.
const LEAST_GAIN: f32 = 0.15;
/// Costs of classes and of bits, per unit of their logarithms.
const PRICE_OF_CLASSES: f32 = 0.03;
const PRICE_OF_BITS: f32 = 0.002;

impl Root {
    /// The word for a packet with these numbers.
    #[inline]
    pub(super) fn word(&self, numbers: &[u32; NUMBERS]) -> u32 {
        let sum = |own: &Factor| usize::from(own.sums[(numbers[own.number] >> own.shift) as usize]);
        self.cells[self.factors.iter().map(sum).sum::<usize>()]
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let sums: usize = self.factors.iter().map(|own| 2 * own.sums.len()).sum();
        sums + 4 * self.cells.len()
    }
}

/// The classes of a number.
pub(super) struct Classes {
    pub(super) number: usize,
    pub(super) shift: u32,
    /// By cell.
    of: Vec<u16>,
    /// A representative cell of each class.
    pub(super) cells: Vec<u32>,
    /// By box of the list: its classes.
    pub(super) members: Vec<Vec<u16>>,
}

impl Classes {
    pub(super) fn of(&self, number: u32) -> usize {
        usize::from(self.of[(number >> self.shift) as usize])
    }
}

/// Bits of a number at the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Choice {
    number: usize,
    bits: u32,
    shift: u32,
}

impl Choice {
    /// The cells that a box covers, completely or in part.
    fn reach(self, own: &Bounds) -> Reach {
        let (low, high) = (own.low[self.number], own.high[self.number]);
        let inner = u32::MAX.checked_shr(32 - self.shift).unwrap_or(0);
        Reach {
            first: (low >> self.shift) as usize,
            last: (high >> self.shift) as usize,
            low: low & inner,
            high: high & inner,
            inner,
        }
    }

    /// The number of boxes of each cell, and a zero behind the last.
    fn counts(self, boxes: &[Bounds], list: &[u32]) -> Vec<u32> {
        let mut counts = vec![0_u32; (1 << self.bits) + 1];
        for own in list {
            let bounds = &boxes[*own as usize];
            let (low, high) = (bounds.low[self.number] >> self.shift, bounds.high[self.number] >> self.shift);
            counts[low as usize] = counts[low as usize].wrapping_add(1);
            counts[high as usize + 1] = counts[high as usize + 1].wrapping_sub(1);
        }
        let mut count = 0_u32;
        for own in &mut counts {
            count = count.wrapping_add(*own);
            *own = count;
        }
        counts
    }
}

/// The cells of a box.
struct Reach {
    first: usize,
    last: usize,
    /// Its start in the first cell, its end in the last one, and the last value of a cell.
    low: u32,
    high: u32,
    inner: u32,
}

impl Reach {
    /// The part of a cell that the box covers.
    fn part(&self, cell: usize) -> (u32, u32) {
        (if cell == self.first { self.low } else { 0 }, if cell == self.last { self.high } else { self.inner })
    }
}

/// Chooses numbers and bits greedily, as long as they reduce the boxes left for the samples, and returns their classes.
/// There are `count` numbers, in the complete region; samples are packets.
pub(super) fn choose(
    boxes: &[Bounds],
    list: &[u32],
    whole: &Region,
    count: usize,
    samples: &[[u32; NUMBERS]],
) -> Vec<Classes> {
    let mut chosen: Vec<Classes> = Vec::new();
    let every = samples.len().div_ceil(TRIED).max(1);
    let tried: Vec<&[u32; NUMBERS]> = samples.iter().step_by(every).collect();
    // The boxes left for each sample, after a number has been chosen.
    let mut left: Vec<Vec<u32>> = Vec::new();
    let max_bits = (list.len().ilog2() + 7).min(16);
    let candidates = (0..count).flat_map(|number| {
        let all = whole.bits[number];
        let few = BITS.into_iter().filter(move |bits| *bits < all).chain((all <= 16).then_some(all));
        few.filter(move |bits| *bits <= max_bits).map(move |bits| Choice { number, bits, shift: all - bits })
    });
    let candidates: Vec<(Choice, usize)> =
        candidates.filter_map(|choice| Some((choice, count_classes(boxes, list, choice)?))).collect();
    let max = (CELLS * list.len()).min(MAX_CELLS);
    let mut cells = 1;
    let logarithms: Vec<f32> = (0..=list.len()).map(|many| (many.max(1) as f32).ln()).collect();
    let has = |choice: &Choice, own: u32, sample: &[u32; NUMBERS]| {
        let bounds = &boxes[own as usize];
        let (low, high) = (bounds.low[choice.number] >> choice.shift, bounds.high[choice.number] >> choice.shift);
        (low..=high).contains(&(sample[choice.number] >> choice.shift))
    };
    while chosen.len() < MAX_FACTORS {
        let mut best: Option<(f32, Choice)> = None;
        for (choice, classes) in &candidates {
            if cells * classes > max || chosen.iter().any(|own| own.number == choice.number) {
                continue;
            }
            let gain: f32 = if chosen.is_empty() {
                let many = choice.counts(boxes, list);
                let left = |sample: &&[u32; NUMBERS]| many[(sample[choice.number] >> choice.shift) as usize] as usize;
                tried.iter().map(|sample| logarithms[list.len()] - logarithms[left(sample)]).sum()
            } else {
                let gain = |(sample, left): (&&[u32; NUMBERS], &Vec<u32>)| {
                    let after = left.iter().filter(|own| has(choice, **own, sample)).count();
                    logarithms[left.len()] - logarithms[after]
                };
                tried.iter().zip(&left).map(gain).sum()
            };
            let gain = gain / tried.len() as f32;
            let price = PRICE_OF_CLASSES * (*classes as f32).ln() + PRICE_OF_BITS * choice.bits as f32;
            if gain > LEAST_GAIN && gain - price > best.map_or(0.0, |(best, _)| best) {
                best = Some((gain - price, *choice));
            }
        }
        let Some((_, choice)) = best else { break };
        let Some(classes) = classes(boxes, list, choice) else { break };
        cells *= classes.cells.len();
        if cells > max {
            break;
        }
        let before = |at: usize| if chosen.is_empty() { list } else { &left[at] };
        let after = tried.iter().enumerate().map(|(at, sample)| {
            let after = before(at).iter().copied().filter(|own| has(&choice, *own, sample));
            after.collect()
        });
        left = after.collect();
        chosen.push(classes);
    }
    chosen
}

/// By cell, and one behind: the number of its run, a sequence of cells with the same boxes at the same places. `None`
/// if the boxes are in too many runs.
fn runs(boxes: &[Bounds], list: &[u32], choice: Choice) -> Option<Vec<u32>> {
    let many = 1_usize << choice.bits;
    let mut begins = vec![0_u32; many + 1];
    for own in list {
        let reach = choice.reach(&boxes[*own as usize]);
        begins[reach.first] = 1;
        begins[reach.last + 1] = 1;
        if reach.low != 0 {
            begins[reach.first + 1] = 1;
        }
        if reach.high != reach.inner {
            begins[reach.last] = 1;
        }
    }
    // Prefix sums: from starts of runs to numbers of runs.
    begins[0] = 0;
    let mut run = 0;
    for own in &mut begins {
        run += *own;
        *own = run;
    }
    let members = list.iter().map(|own| {
        let reach = choice.reach(&boxes[*own as usize]);
        (begins[reach.last] - begins[reach.first]) as usize + 1
    });
    (members.sum::<usize>() <= MAX_MEMBERS).then_some(begins)
}

/// The number of classes, by sums of hashed box numbers: an estimate, which collisions make too small.
fn count_classes(boxes: &[Bounds], list: &[u32], choice: Choice) -> Option<usize> {
    let runs = runs(boxes, list, choice)?;
    let mut changes = vec![0_u64; runs[runs.len() - 1] as usize + 2];
    for own in list {
        let reach = choice.reach(&boxes[*own as usize]);
        let mut add = |from: u32, to: u32, (low, high): (u32, u32)| {
            let mixed = (u64::from(*own) << 32 | u64::from(low)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 29 ^ u64::from(high)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
            changes[from as usize] = changes[from as usize].wrapping_add(mixed);
            changes[to as usize] = changes[to as usize].wrapping_sub(mixed);
        };
        let (first, last) = (runs[reach.first], runs[reach.last]);
        add(first, first + 1, reach.part(reach.first));
        if last > first {
            add(last, last + 1, reach.part(reach.last));
            add(first + 1, last, (0, reach.inner));
        }
    }
    let count = runs[runs.len() - 2] as usize + 1;
    let mut sum = 0_u64;
    for change in &mut changes[..count] {
        sum = sum.wrapping_add(*change);
        *change = sum;
    }
    changes.truncate(count);
    changes.sort_unstable();
    changes.dedup();
    Some(changes.len())
}

/// The classes of a number.
fn classes(boxes: &[Bounds], list: &[u32], choice: Choice) -> Option<Classes> {
    let runs = runs(boxes, list, choice)?;
    let count = runs[runs.len() - 2] as usize + 1;
    let mut starts = vec![0_u32; count];
    for (cell, run) in runs[..runs.len() - 1].iter().enumerate().rev() {
        starts[*run as usize] = cell as u32;
    }
    let mut says: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (at, own) in list.iter().enumerate() {
        let reach = choice.reach(&boxes[*own as usize]);
        for run in runs[reach.first]..=runs[reach.last] {
            let (low, high) = reach.part(starts[run as usize] as usize);
            says[run as usize].extend([at as u32, low, high]);
        }
    }
    let mut known: HashMap<&[u32], u16> = HashMap::new();
    let mut cells = Vec::new();
    let mut members = vec![Vec::new(); list.len()];
    let mut class_of_run = Vec::with_capacity(count);
    for (run, own) in says.iter().enumerate() {
        let next = cells.len();
        let class = *known.entry(own).or_insert(u16::try_from(next).ok()?);
        if usize::from(class) == next {
            cells.push(starts[run]);
            own.iter().step_by(3).for_each(|at| members[*at as usize].push(class));
        }
        class_of_run.push(class);
    }
    let of = runs[..runs.len() - 1].iter().map(|run| class_of_run[*run as usize]).collect();
    Some(Classes { number: choice.number, shift: choice.shift, of, cells, members })
}

/// The factors of classes, the last one varying fastest.
pub(super) fn factors(classes: &[Classes]) -> Vec<Factor> {
    let mut factors: Vec<Factor> = Vec::new();
    let mut stride = 1;
    for own in classes.iter().rev() {
        let sums = own.of.iter().map(|class| class * stride).collect();
        factors.push(Factor { number: own.number, shift: own.shift, sums });
        // That of the first factor may overflow, and is not used.
        stride = stride.wrapping_mul(own.cells.len() as u16);
    }
    factors.reverse();
    factors
}
