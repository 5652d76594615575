//! The search for perfect hash functions: constants under which every key has a slot of its own, by hash and displace
//! (Pagh, "Hash and Displace: Efficient Evaluation of Minimal Perfect Hash Functions", 1999). Deterministic, so that
//! the same filters always give the same table.

use crate::layout::Window;
use crate::table::{Hash, Part, Table, top};

/// The maximum number of keys without displacements: the table is so sparse that some multiplier separates all keys.
const MAX_DIRECT: usize = 40;
/// The most bits of slots of a table without displacements.
const MAX_DIRECT_BITS: u32 = 11;
/// The most bits of slots of a table with templates, which takes a line of the cache for each.
const MAX_TEMPLATE_BITS: u32 = 8;
/// How many multipliers are tried before the table is made larger.
const TRIES: u32 = 40;
/// How many displacements are tried for a bucket.
const DISPLACEMENTS: u32 = 20_000;
/// The same limit when a key is added to a table that readers use.
const FEW_DISPLACEMENTS: u32 = 400;

/// The hash function of a table without keys, or with the empty key.
pub(crate) fn nothing() -> Hash {
    Hash { fold: 1, first: 1, slot_bits: 0, bucket_bits: None, part: None }
}

/// The generator of the constants that are tried.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    state: u64,
}

impl Search {
    pub(crate) fn new() -> Search {
        Search { state: 0x243f_6a88_85a3_08d3 }
    }

    /// SplitMix64 (Steele, Lea, Flood).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Whether the load factor of a table with displacements allows one more key.
    pub(crate) fn has_room(&self, keys: usize, slots: usize) -> bool {
        keys * 8 <= slots * 5
    }

    /// A table in which each of `count` different keys of these windows has a slot of its own, and these slots. The
    /// keys are not written yet. With a mask of templates, a small table has templates.
    pub(crate) fn table(
        &mut self,
        windows: &[Window],
        count: usize,
        keys: &[u64],
        mask: Option<[u64; 4]>,
    ) -> (Table, Vec<u32>) {
        let words = windows.len();
        let table = |hash: Hash| match mask {
            Some(mask) if hash.slot_bits <= MAX_TEMPLATE_BITS => Table::with_templates(words, hash, mask),
            Some(_) | None => Table::new(words, hash),
        };
        if words == 0 {
            return (table(nothing()), vec![0; count]);
        }
        if count <= MAX_DIRECT {
            let least = (count.max(2) * 4).next_power_of_two().trailing_zeros();
            if let Some((hash, slots)) = self.partly(windows, keys, least) {
                return (table(hash), slots);
            }
            for slot_bits in least..=MAX_DIRECT_BITS.max(least) {
                for _ in 0..TRIES {
                    let hash = Hash {
                        fold: self.next() | 1,
                        first: self.next() | 1,
                        slot_bits,
                        bucket_bits: None,
                        part: None,
                    };
                    if let Some(slots) = separate(&hash, words, keys) {
                        return (table(hash), slots);
                    }
                }
            }
        }
        let mut slot_bits = (count * 2 + count / 4).next_power_of_two().trailing_zeros().max(4);
        let mut tries = 0;
        loop {
            let bucket_bits = Some(slot_bits - 2);
            let hash = Hash { fold: self.next() | 1, first: self.next() | 1, slot_bits, bucket_bits, part: None };
            let table = Table::new(words, hash);
            if let Some(slots) = self.displaced(&table, count, keys) {
                return (table, slots);
            }
            tries += 1;
            // Larger tables have fewer conflicts; different keys always separate in the end.
            slot_bits += u32::from(tries % 3 == 0);
        }
    }

    /// A hash function of 32 bits of the key, if the keys differ in such bits and it separates them, and the slots.
    fn partly(&mut self, windows: &[Window], keys: &[u64], slot_bits: u32) -> Option<(Hash, Vec<u32>)> {
        let parts = windows.iter().enumerate().flat_map(|(word, window)| {
            let shifts = (0..=8 * u32::from(window.width).saturating_sub(4)).step_by(8);
            shifts.map(move |shift| Part { word, shift })
        });
        for part in parts {
            let mut seen: Vec<u32> = keys.chunks_exact(windows.len()).map(|key| part.of(key)).collect();
            seen.sort_unstable();
            if seen.windows(2).any(|pair| pair[0] == pair[1]) {
                continue;
            }
            for _ in 0..TRIES {
                let first = (self.next() >> 32) | 1;
                let hash = Hash { fold: 1, first, slot_bits, bucket_bits: None, part: Some(part) };
                if let Some(slots) = separate(&hash, windows.len(), keys) {
                    return Some((hash, slots));
                }
            }
        }
        None
    }

    /// Finds the displacement of every bucket, the fullest first ("hash and displace").
    fn displaced(&mut self, table: &Table, count: usize, keys: &[u64]) -> Option<Vec<u32>> {
        let key = |at: u32| &keys[at as usize * table.words..][..table.words];
        let mut heads = vec![(0_u32, u32::MAX); table.displacements.len()];
        let mut next = vec![u32::MAX; count];
        for at in 0..count as u32 {
            let (size, head) = &mut heads[table.bucket(key(at))];
            next[at as usize] = std::mem::replace(head, at);
            *size += 1;
        }
        let mut order: Vec<u32> = (0..heads.len() as u32).filter(|bucket| heads[*bucket as usize].0 > 0).collect();
        order.sort_by_key(|bucket| std::cmp::Reverse(heads[*bucket as usize].0));
        let mut taken = vec![false; table.slot_count()];
        let mut slots = vec![0; count];
        let (mut members, mut together) = (Vec::new(), Vec::new());
        for bucket in order {
            members.clear();
            together.clear();
            let mut at = heads[bucket as usize].1;
            while at != u32::MAX {
                members.push(at);
                together.extend(key(at));
                at = next[at as usize];
            }
            let free = |slot: usize| !taken[slot];
            let (displacement, found) = self.find(table, &together, free, DISPLACEMENTS)?;
            table.displace(bucket as usize, displacement);
            for (member, slot) in members.iter().zip(found) {
                taken[slot] = true;
                slots[*member as usize] = slot as u32;
            }
        }
        Some(slots)
    }

    /// A displacement under which these keys of one bucket have free slots, and the slots.
    pub(crate) fn displacement(
        &mut self,
        table: &Table,
        keys: &[u64],
        free: impl Fn(usize) -> bool,
    ) -> Option<(u32, Vec<usize>)> {
        self.find(table, keys, free, FEW_DISPLACEMENTS)
    }

    fn find(
        &mut self,
        table: &Table,
        keys: &[u64],
        free: impl Fn(usize) -> bool,
        tries: u32,
    ) -> Option<(u32, Vec<usize>)> {
        let hashes: Vec<u64> = keys.chunks_exact(table.words).map(|key| table.hash.product(key)).collect();
        let mut slots = Vec::with_capacity(hashes.len());
        for _ in 0..tries {
            let displacement = self.next() as u32 | 1;
            slots.clear();
            for hash in &hashes {
                let slot = top(hash.wrapping_mul(displacement.into()), table.hash.slot_bits);
                if !free(slot) || slots.contains(&slot) {
                    break;
                }
                slots.push(slot);
            }
            if slots.len() == hashes.len() {
                return Some((displacement, slots));
            }
        }
        None
    }
}

/// The slots of these keys, if no two have the same.
fn separate(hash: &Hash, words: usize, keys: &[u64]) -> Option<Vec<u32>> {
    let mut taken = [0_u64; 1 << (MAX_DIRECT_BITS - 6)];
    let mut slots = Vec::with_capacity(keys.len() / words);
    for key in keys.chunks_exact(words) {
        let slot = top(hash.product(key), hash.slot_bits);
        let word = taken.get_mut(slot / 64)?;
        if *word & 1 << (slot % 64) != 0 {
            return None;
        }
        *word |= 1 << (slot % 64);
        slots.push(slot as u32);
    }
    Some(slots)
}
