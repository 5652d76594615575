//! The table of a group: a perfect hash table for the present keys, in words that readers load while a writer stores.
//!
//! ```text
//! key words k0 k1 ..   h = k0, then h * fold + ki            one word from several
//! few keys             slot = top bits of h * first          `first` searched until no two keys collide
//!   or, if they differ in 32 bits of a word, these alone are h, and the product has 32 bits
//! more                 g = h * first; bucket = top bits of g; slot = top bits of g * displacement[bucket]
//!
//! slot   | head | k0 | k1 | .. |                             a power of two of words
//! head   rank of the best filter with this key, or the address of a list; 0: none
//!
//! slot   | head | k0 | k1 | k2 | t0 | t1 | t2 | t3 |         with a template, `template.rs`: on a line of its own
//! mask                         | m0 | m1 | m2 | m3 |         of all templates, before the first slot
//! ```
//!
//! A slot is empty (`head` 0), or holds a key and its filters. Readers load the head before the key or template: these
//! are written before the head is, and replaced only when no reader is left that has seen the old head. So a reader
//! that sees a half-written template has seen an empty head, and finds no filter regardless of the comparison.
//! Templates of empty slots hold the constant bytes, so that a packet that must take the general path equals none of
//! them.

use super::sync::{AtomicU32, AtomicU64, OBSERVE, Ordering, PUBLISH};

/// The hash function that maps a key to a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hash {
    pub(crate) fold: u64,
    pub(crate) first: u64,
    /// Bits of the number of slots.
    pub(crate) slot_bits: u32,
    /// Bits of the number of buckets, if there are displacements.
    pub(crate) bucket_bits: Option<u32>,
    /// The part of the key that is hashed, if not all of it.
    pub(crate) part: Option<Part>,
}

/// The 32 bits of a word of a key from a bit on, a multiple of eight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) word: usize,
    pub(crate) shift: u32,
}

impl Part {
    pub(crate) fn of(self, key: &[u64]) -> u32 {
        (key[self.word] >> self.shift) as u32
    }
}

impl Hash {
    /// One word from the words of a key.
    pub(crate) fn fold(&self, key: &[u64]) -> u64 {
        let (first, rest) = key.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        rest.iter().fold(first, |sum, word| sum.wrapping_mul(self.fold).wrapping_add(*word))
    }

    /// The product whose top bits are the index of the key's slot or bucket.
    pub(crate) fn product(&self, key: &[u64]) -> u64 {
        match self.part {
            Some(part) => u64::from(part.of(key).wrapping_mul(self.first as u32)) << 32,
            None => self.fold(key).wrapping_mul(self.first),
        }
    }
}

/// The top bits of a number.
pub(crate) fn top(number: u64, bits: u32) -> usize {
    number.checked_shr(64 - bits).unwrap_or(0) as usize
}

/// Words of a cache line.
const LINE: usize = 8;

/// The words that readers see.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) hash: Hash,
    /// Words of a key.
    pub(crate) words: usize,
    /// Bits of the number of words of a slot.
    pub(crate) stride_bits: u32,
    pub(crate) slots: Box<[AtomicU64]>,
    /// The index of the first slot in `slots`.
    pub(crate) origin: usize,
    has_templates: bool,
    pub(crate) displacements: Box<[AtomicU32]>,
    /// By slot: the address of a list of all filters with the key, for [`View::matches`](crate::View::matches); 0 if
    /// there is one only.
    pub(crate) match_list: Box<[AtomicU64]>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(words: usize, hash: Hash) -> Table {
        let stride_bits = (words + 1).next_power_of_two().trailing_zeros();
        let slots = 1_usize << hash.slot_bits;
        let buckets = hash.bucket_bits.map_or(0, |bits| 1_usize << bits);
        Table {
            hash,
            words,
            stride_bits,
            slots: (0..slots << stride_bits).map(|_| AtomicU64::new(0)).collect(),
            origin: 0,
            has_templates: false,
            displacements: (0..buckets).map(|_| AtomicU32::new(1)).collect(),
            match_list: (0..slots).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// An empty table whose slots have templates, with their mask; there are at most three words of a key.
    pub(crate) fn with_templates(words: usize, hash: Hash, mask: [u64; 4]) -> Table {
        let mut table = Table::new(words, hash);
        table.stride_bits = LINE.trailing_zeros();
        let all = (table.slot_count() + 2) << table.stride_bits;
        table.slots = (0..all).map(|_| AtomicU64::new(0)).collect();
        // The first line holds the mask.
        let within = table.slots.as_ptr() as usize / 8 % LINE;
        table.origin = 2 * LINE - within;
        table.has_templates = true;
        for (word, own) in mask.iter().zip(&table.slots[table.origin - mask.len()..]) {
            own.store(*word, Ordering::Relaxed);
        }
        table
    }

    pub(crate) fn has_templates(&self) -> bool {
        self.has_templates
    }

    pub(crate) fn slot_count(&self) -> usize {
        1 << self.hash.slot_bits
    }

    /// Where the words of a slot begin.
    fn at(&self, slot: usize) -> usize {
        self.origin + (slot << self.stride_bits)
    }

    /// The bucket of a key.
    pub(crate) fn bucket(&self, key: &[u64]) -> usize {
        match self.hash.bucket_bits {
            Some(bits) => top(self.hash.product(key), bits),
            None => 0,
        }
    }

    /// The slot of a key.
    pub(crate) fn slot(&self, key: &[u64]) -> usize {
        let g = self.hash.product(key);
        match self.hash.bucket_bits {
            Some(bits) => {
                // Pairs with the release in `displace`: slots are filled before the displacement is published.
                let displacement = self.displacements[top(g, bits)].load(OBSERVE);
                top(g.wrapping_mul(displacement.into()), self.hash.slot_bits)
            }
            None => top(g, self.hash.slot_bits),
        }
    }

    /// Publishes a displacement, which moves a bucket to other slots.
    pub(crate) fn displace(&self, bucket: usize, displacement: u32) {
        // Pairs with the acquire in `slot`, and with the order of loads in generated code.
        self.displacements[bucket].store(displacement, PUBLISH);
    }

    /// The slot of this key and its head, if the slot holds the key: the look-up of generated code.
    pub(crate) fn find(&self, key: &[u64]) -> Option<(usize, u64)> {
        let slot = self.slot(key);
        // Pairs with the release in `set_head`: the key is written before its head. Loaded before the key.
        let head = self.slots[self.at(slot)].load(OBSERVE);
        (head != 0 && self.has_key(slot, key)).then_some((slot, head))
    }

    /// Whether a slot holds this key.
    pub(crate) fn has_key(&self, slot: usize, key: &[u64]) -> bool {
        let at = self.at(slot) + 1;
        key.iter().zip(&self.slots[at..]).all(|(word, own)| own.load(Ordering::Relaxed) == *word)
    }

    /// The words of a slot's key.
    pub(crate) fn key(&self, slot: usize) -> impl Iterator<Item = u64> + '_ {
        let at = self.at(slot) + 1;
        self.slots[at..at + self.words].iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Writes the key of a slot that is empty and that no reader uses.
    pub(crate) fn set_key(&self, slot: usize, key: &[u64]) {
        let at = self.at(slot) + 1;
        for (word, own) in key.iter().zip(&self.slots[at..]) {
            own.store(*word, Ordering::Relaxed);
        }
    }

    /// Writes the template of a slot under the conditions of [`Table::set_key`].
    pub(crate) fn set_template(&self, slot: usize, template: [u64; 4]) {
        let at = self.at(slot) + LINE - template.len();
        for (word, own) in template.iter().zip(&self.slots[at..]) {
            own.store(*word, Ordering::Relaxed);
        }
    }

    pub(crate) fn head(&self, slot: usize) -> u64 {
        self.slots[self.at(slot)].load(Ordering::Relaxed)
    }

    /// Publishes the head of a slot.
    pub(crate) fn set_head(&self, slot: usize, head: u64) {
        // Pairs with the acquire in `find`, and with the order of loads in generated code.
        self.slots[self.at(slot)].store(head, PUBLISH);
    }

    pub(crate) fn match_list(&self, slot: usize) -> u64 {
        // Pairs with the release in `set_match_list`: the list is written before its address.
        self.match_list[slot].load(OBSERVE)
    }

    pub(crate) fn set_match_list(&self, slot: usize, list: u64) {
        // Pairs with the acquire in `match_list`.
        self.match_list[slot].store(list, PUBLISH);
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        8 * (self.slots.len() + self.match_list.len()) + 4 * self.displacements.len()
    }
}
