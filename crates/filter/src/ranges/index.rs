//! Maps a number to the payload of its interval by branchless binary search, which begins at an entry selected by the
//! top bits.
//!
//! ```text
//! number ── top bits ──> root: first entry that can be it
//! entries   | last number before the interval | payload            |     sorted, then padding that no number exceeds
//! ```

/// The maximum number of top bits of the root.
const MAX_BITS: u32 = 16;

/// An interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct IndexEntry {
    /// Numbers above this are in the interval or after it.
    pub(crate) limit: u32,
    /// The payload of the interval.
    pub(crate) payload: u32,
}

/// Intervals.
#[derive(Debug)]
pub(crate) struct Index {
    /// The number, shifted right by this, is an index into the root.
    pub(crate) shift: u32,
    pub(crate) root: Box<[u16]>,
    /// Comparisons after the root.
    pub(crate) steps: u32,
    pub(crate) entries: Box<[IndexEntry]>,
}

impl Index {
    /// An index of intervals that begin at `starts`, the first at zero, for numbers up to `maximum`. There are fewer
    /// than 65,536.
    pub(crate) fn new(starts: &[u32], payloads: &[u32], maximum: u32) -> Index {
        let width = 32 - maximum.leading_zeros();
        let least = (usize::BITS - starts.len().leading_zeros()).min(width);
        // The fewest comparisons, and among them the smallest root.
        let depth = |bits: u32| (steps(starts, width - bits), bits);
        let (steps, bits) =
            (least..=width.min(MAX_BITS).max(least)).map(depth).min().expect("there is one number of bits at least");
        let shift = width - bits;
        let root = (0..1_u64 << bits).map(|cell| {
            let first = cell << shift;
            (starts.partition_point(|start| u64::from(*start) <= first) - 1) as u16
        });
        let own = starts.iter().zip(payloads);
        let own = own.map(|(start, payload)| IndexEntry { limit: start.saturating_sub(1), payload: *payload });
        // Padding for comparisons beyond the end: no number exceeds it.
        let padding = std::iter::repeat_n(IndexEntry { limit: u32::MAX, payload: 0 }, 1 << steps);
        Index { shift, root: root.collect(), steps, entries: own.chain(padding).collect() }
    }

    /// The payload of a number's interval.
    pub(crate) fn find(&self, number: u32) -> u32 {
        let mut at = usize::from(self.root[(u64::from(number) >> self.shift) as usize]);
        for step in (0..self.steps).rev() {
            at += usize::from(number > self.entries[at + (1 << step)].limit) << step;
        }
        self.entries[at].payload
    }

    /// How many intervals there are.
    pub(crate) fn intervals(&self) -> usize {
        self.entries.len() - (1 << self.steps)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        2 * self.root.len() + 8 * self.entries.len()
    }
}

/// How many comparisons separate the intervals of each cell of a root.
fn steps(starts: &[u32], shift: u32) -> u32 {
    // Starts in a cell other than at its beginning, which the root separates already.
    let inner = starts.iter().filter(|start| u64::from(**start) & ((1 << shift) - 1) != 0);
    let (mut max, mut run, mut last) = (0_u32, 0, u64::MAX);
    for start in inner {
        let cell = u64::from(*start) >> shift;
        run = if cell == last { run + 1 } else { 1 };
        last = cell;
        max = max.max(run);
    }
    32 - max.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_interval_that_begins_last() {
        let mut random = 5_u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 32
        };
        for max in [1_u32, 0xf, 0xff, 0xffff, 0xff_ffff, u32::MAX] {
            for count in [1_usize, 2, 3, 10, 1000, 20_000] {
                let spread = if count % 3 == 0 { 300 } else { u64::from(max) + 1 };
                let mut starts: Vec<u32> =
                    (1..count).map(|_| (next() % spread % (u64::from(max) + 1)) as u32).collect();
                starts.push(0);
                if count == 2 {
                    starts.push(max);
                }
                starts.sort_unstable();
                starts.dedup();
                let payloads: Vec<u32> = (0..starts.len() as u32).map(|at| at * 3 + 1).collect();
                let index = Index::new(&starts, &payloads, max);
                let near = starts.iter().flat_map(|own| [own.saturating_sub(1), *own, own.saturating_add(1)]);
                let far = (0..200).map(|_| (next() % (u64::from(max) + 1)) as u32).collect::<Vec<_>>();
                for number in near.chain(far).chain([0, max]).filter(|own| *own <= max) {
                    let at = starts.partition_point(|own| *own <= number) - 1;
                    assert_eq!(index.find(number), payloads[at], "{number} of {max}, {} intervals", starts.len());
                }
            }
        }
    }
}
