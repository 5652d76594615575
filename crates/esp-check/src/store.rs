//! The visited set: packed states, found by open-addressing hash tables. Each state belongs to one of several shards,
//! by its signature. A thread that inserts into a shard locks it; with a shard of its own, its table and records stay
//! in the caches of its processor. Every thread reads records at any time.
//!
//! ```text
//!   chunk      1,048,576 words of 32 bits, fewer in the first chunks of a shard; each shard fills chunks of its own.
//!              From the second chunk on in huge pages, because an allocation by one thread delays the others
//!   record     word 0       the state it was first reached from (its own reference for the first state)
//!              words 1 ..   the numbers of its components, 7 bits a byte, padded with zero bytes to whole words;
//!                           with hash compaction the lower half of the signature instead
//!   table      64 bits a bucket, 0 is empty; at most three quarters full, then rebuilt twice as large, at least the
//!              size of a huge page
//!   bucket     upper half of the signature | reference: chunk and word
//!   signature  64 bits, the state's hash mixed once more; its lower half selects the shard, its upper bits the first
//!              bucket to probe, so that a larger table is filled from front to back without reading records
//! ```

use crate::options::Compaction;
use quaject_pages::{HUGE, Pages};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

const CHUNK_WORDS: usize = 1 << 20;
const MAX_CHUNKS: usize = 1 << 12;
/// The minimum length in words of the first chunk of a shard, and of the second.
const FIRST_CHUNK: usize = 1 << 14;
const SECOND_CHUNK: usize = HUGE / 4;
/// Logarithms of a table's first length, and of the second.
const FIRST_BITS: u32 = 15;
const SECOND_BITS: u32 = (HUGE / 8).ilog2();
/// States that are looked up together.
pub(crate) const WINDOW: usize = 32;

/// A visited state. No state has the reference 0.
pub(crate) type StateRef = u32;

/// The visited set.
pub(crate) struct Store {
    /// Length of a state vector.
    width: usize,
    compaction: Compaction,
    chunks: Vec<OnceLock<Pages<AtomicU32>>>,
    /// The number of allocated chunks, and of words in them.
    taken: AtomicUsize,
    words: AtomicUsize,
    /// The limit of all memory, beyond which no table grows.
    max_bytes: usize,
    shards: Vec<Shard>,
}

/// On cache lines of its own: other threads write its neighbours.
#[repr(align(128))]
struct Shard {
    table: Mutex<HashTable>,
    /// The numbers of its states and buckets, readable without the lock.
    states: AtomicUsize,
    buckets: AtomicUsize,
}

/// The hash table of one shard, and where its next record goes.
struct HashTable {
    buckets: Pages<u64>,
    /// 32 minus the logarithm of its length.
    shift: u32,
    states: usize,
    chunk: usize,
    /// The next free word of the chunk, and its length; 0 if there is none yet.
    next: usize,
    length: usize,
    /// The first bucket of each state of a window, as prefetched.
    first: Vec<u64>,
}

/// A batch of packed states to insert.
#[derive(Debug, Default)]
pub(crate) struct PackedStates {
    /// 0 for a state without a parent.
    parents: Vec<StateRef>,
    signatures: Vec<u64>,
    words: Vec<u32>,
    /// Where the words of each state end.
    ends: Vec<u32>,
}

/// The result of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Insertion {
    /// The state is new.
    New(StateRef),
    /// The state is in the store already.
    Known(StateRef),
    /// References are exhausted, or a table would grow beyond the limit.
    Full,
}

impl PackedStates {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.parents.clear();
        self.signatures.clear();
        self.words.clear();
        self.ends.clear();
    }

    /// Adds a state; its parent is the state it is reached from, none for the initial state.
    #[inline]
    pub(crate) fn push(&mut self, parent: Option<StateRef>, state_vector: &[u32], signature: u64) {
        self.parents.push(parent.unwrap_or(0));
        self.signatures.push(signature);
        pack(state_vector, &mut self.words);
        self.ends.push(self.words.len() as u32);
    }

    /// A state's packed vector.
    #[inline]
    pub(crate) fn words(&self, index: usize) -> &[u32] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.words[start as usize..self.ends[index] as usize]
    }
}

impl HashTable {
    /// The first bucket to probe.
    #[inline]
    fn position(&self, signature: u64) -> usize {
        (signature >> 32 >> self.shift) as usize
    }

    /// The logarithm of the length that the next window requires; none if the table is large enough.
    fn wanted_bits(&self) -> Option<u32> {
        let is_short = (self.states + WINDOW) * 4 > self.buckets.len() * 3;
        is_short.then(|| if self.buckets.is_empty() { FIRST_BITS } else { SECOND_BITS.max(33 - self.shift) })
    }

    /// Rebuilds the table with this length.
    fn grow(&mut self, bits: u32) -> io::Result<()> {
        let smaller = std::mem::replace(&mut self.buckets, Pages::zeroed(1 << bits)?);
        self.shift = 32 - bits;
        let mask = self.buckets.len() - 1;
        for entry in smaller.iter().copied().filter(|entry| *entry != 0) {
            let mut at = self.position(entry);
            while self.buckets[at] != 0 {
                at = (at + 1) & mask;
            }
            self.buckets[at] = entry;
        }
        Ok(())
    }
}

/// The contribution of one component to the hash of a state.
#[inline]
pub(crate) fn hash_of(component_index: usize, number: u32) -> u64 {
    let mixed =
        (u64::from(number) | (component_index as u64) << 40).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The hash of a state.
pub(crate) fn hash(state_vector: &[u32]) -> u64 {
    state_vector.iter().enumerate().fold(0u64, |sum, (index, number)| sum.wrapping_add(hash_of(index, *number)))
}

/// The signature of a state, from its hash.
#[inline]
pub(crate) fn signature(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Store {
    /// An empty store for states of this width.
    pub(crate) fn new(width: usize, compaction: Compaction, shards: usize) -> Store {
        let mut chunks = Vec::new();
        chunks.resize_with(MAX_CHUNKS, OnceLock::new);
        let shard = || Shard {
            table: Mutex::new(HashTable {
                buckets: Pages::default(),
                shift: 32,
                states: 0,
                chunk: 0,
                next: 0,
                length: 0,
                first: Vec::new(),
            }),
            states: AtomicUsize::new(0),
            buckets: AtomicUsize::new(0),
        };
        let shards = std::iter::repeat_with(shard).take(shards.max(1)).collect();
        Store {
            width,
            compaction,
            chunks,
            taken: AtomicUsize::new(0),
            words: AtomicUsize::new(0),
            max_bytes: usize::MAX,
            shards,
        }
    }

    /// The same store with a memory limit.
    pub(crate) fn limited(self, max_bytes: Option<u64>) -> Store {
        Store {
            max_bytes: max_bytes.and_then(|max_bytes| usize::try_from(max_bytes).ok()).unwrap_or(usize::MAX),
            ..self
        }
    }

    /// The number of states.
    pub(crate) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.states.load(Ordering::Relaxed)).sum()
    }

    /// Whether records hold complete states.
    pub(crate) fn keeps_full_states(&self) -> bool {
        self.compaction == Compaction::Off
    }

    /// Memory of records and tables.
    pub(crate) fn memory_bytes(&self) -> usize {
        let buckets: usize = self.shards.iter().map(|shard| shard.buckets.load(Ordering::Relaxed)).sum();
        4 * self.words.load(Ordering::Relaxed) + 8 * buckets
    }

    /// The number of shards.
    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The shard of a state.
    #[inline]
    pub(crate) fn shard(&self, signature: u64) -> usize {
        (((signature & 0xffff_ffff) * self.shards.len() as u64) >> 32) as usize
    }

    fn table(&self, shard: usize) -> MutexGuard<'_, HashTable> {
        self.shards[shard].table.lock().expect("no thread panics with a table")
    }

    #[inline]
    fn record(&self, state: StateRef) -> &[AtomicU32] {
        let chunk =
            self.chunks[state as usize / CHUNK_WORDS].get().expect("a reference points into an allocated chunk");
        &chunk[state as usize % CHUNK_WORDS..]
    }

    /// The parent of a state; itself for the initial state.
    pub(crate) fn parent(&self, state: StateRef) -> StateRef {
        self.record(state)[0].load(Ordering::Relaxed)
    }

    /// Reads the state vector; not with compaction.
    #[inline]
    pub(crate) fn read(&self, state: StateRef, state_vector: &mut [u32]) {
        unpack(self.record(state)[1..].iter().map(|word| word.load(Ordering::Relaxed)), state_vector);
    }

    /// The signatures of states.
    pub(crate) fn signatures(&self, states: &[StateRef]) -> Vec<u64> {
        let mut found: rustc_hash::FxHashMap<StateRef, u64> = states.iter().map(|state| (*state, 0)).collect();
        if self.keeps_full_states() {
            let mut state_vector = vec![0; self.width];
            for (state, found) in &mut found {
                self.read(*state, &mut state_vector);
                *found = signature(hash(&state_vector));
            }
        } else {
            for shard in 0..self.shards.len() {
                for entry in self.table(shard).buckets.iter() {
                    if let Some(found) = found.get_mut(&(*entry as u32)) {
                        let lower = self.record(*entry as u32)[1].load(Ordering::Relaxed);
                        *found = entry >> 32 << 32 | u64::from(lower);
                    }
                }
            }
        }
        states.iter().map(|state| found[state]).collect()
    }

    /// Inserts one state, by way of the batch.
    pub(crate) fn insert(
        &self,
        batch: &mut PackedStates,
        parent: Option<StateRef>,
        state_vector: &[u32],
        signature: u64,
    ) -> Insertion {
        let mut added = Insertion::Full;
        batch.clear();
        batch.push(parent, state_vector, signature);
        self.insert_all(self.shard(signature), batch, &mut |_, found| added = found);
        added
    }

    /// Inserts a batch of states of this shard and reports each result. Reads all buckets of a window, then all records
    /// that can match, before it inserts: their cache misses overlap.
    pub(crate) fn insert_all(&self, shard: usize, batch: &PackedStates, on_inserted: &mut dyn FnMut(usize, Insertion)) {
        let mut table = self.table(shard);
        for start in (0..batch.len()).step_by(WINDOW) {
            let window = start..batch.len().min(start + WINDOW);
            if let Some(bits) = table.wanted_bits() {
                // Both tables exist during the rebuild.
                if self.memory_bytes() + (8 << bits) > self.max_bytes || table.grow(bits).is_err() {
                    (start..batch.len()).for_each(|index| on_inserted(index, Insertion::Full));
                    break;
                }
                // Before another shard adds up the memory.
                self.shards[shard].buckets.store(table.buckets.len(), Ordering::Relaxed);
            }
            self.prefetch(&mut table, batch, window.clone());
            for index in window {
                let first = table.first[index - start];
                on_inserted(index, self.insert_one(&mut table, batch, index, first));
            }
        }
        self.shards[shard].states.store(table.states, Ordering::Relaxed);
    }

    fn prefetch(&self, table: &mut HashTable, batch: &PackedStates, window: Range<usize>) {
        let mut first = std::mem::take(&mut table.first);
        first.clear();
        first
            .extend(batch.signatures[window.clone()].iter().map(|signature| table.buckets[table.position(*signature)]));
        for (entry, index) in first.iter_mut().zip(window) {
            let signature = batch.signatures[index];
            let same = (*entry ^ signature) >> 32 == 0 && *entry != 0;
            // A record with a different first word is another state: a different signature makes the probe skip it.
            if same && self.record(*entry as u32)[1].load(Ordering::Relaxed) != self.first_word(batch, index) {
                *entry = !signature | 1;
            }
        }
        table.first = first;
    }

    #[inline]
    fn first_word(&self, batch: &PackedStates, index: usize) -> u32 {
        match self.compaction {
            Compaction::Off => batch.words(index)[0],
            Compaction::On => batch.signatures[index] as u32,
        }
    }

    #[inline]
    fn insert_one(&self, table: &mut HashTable, batch: &PackedStates, index: usize, first: u64) -> Insertion {
        let signature = batch.signatures[index];
        let mask = table.buckets.len() - 1;
        let mut at = table.position(signature);
        let mut entry = first;
        loop {
            // The bucket may have been filled since it was prefetched.
            if entry == 0 {
                entry = table.buckets[at];
            }
            if entry == 0 {
                let Some(state) = self.write(table, batch, index) else { return Insertion::Full };
                table.buckets[at] = signature >> 32 << 32 | u64::from(state);
                table.states += 1;
                return Insertion::New(state);
            }
            if (entry ^ signature) >> 32 == 0 && self.is_same(entry as u32, batch, index) {
                return Insertion::Known(entry as u32);
            }
            at = (at + 1) & mask;
            entry = table.buckets[at];
        }
    }

    /// Whether a record is that of a state. No packed state is a prefix of another one, so the words decide.
    #[inline]
    fn is_same(&self, state: StateRef, batch: &PackedStates, index: usize) -> bool {
        let record = &self.record(state)[1..];
        match self.compaction {
            Compaction::Off => {
                let words = batch.words(index);
                record.len() >= words.len()
                    && words.iter().zip(record).all(|(own, other)| *own == other.load(Ordering::Relaxed))
            }
            Compaction::On => record[0].load(Ordering::Relaxed) == batch.signatures[index] as u32,
        }
    }

    /// Allocates the next chunk of a shard, with room for this many words; none if there is no memory.
    fn take_chunk(&self, table: &mut HashTable, length: usize) -> Option<()> {
        let least = if table.length == 0 { FIRST_CHUNK } else { SECOND_CHUNK.max(2 * table.length) };
        // Until the chunk exists, and for good if it never does.
        table.length = 0;
        let words = least.max((length + 1).next_power_of_two()).min(CHUNK_WORDS);
        let chunk = self.taken.fetch_add(1, Ordering::Relaxed);
        if length + 1 > words {
            return None;
        }
        let fresh = self.chunks.get(chunk)?.set(Pages::zeroed(words).ok()?);
        fresh.expect("no other thread has this chunk");
        self.words.fetch_add(words, Ordering::Relaxed);
        // Word 0 of the first chunk would be the reference 0.
        (table.chunk, table.next, table.length) = (chunk, 1, words);
        Some(())
    }

    /// Writes the record of a state.
    fn write(&self, table: &mut HashTable, batch: &PackedStates, index: usize) -> Option<StateRef> {
        let lower = [batch.signatures[index] as u32];
        let words = if self.keeps_full_states() { batch.words(index) } else { &lower };
        let length = words.len() + 1;
        if table.next + length > table.length {
            self.take_chunk(table, length)?;
        }
        let state = (table.chunk * CHUNK_WORDS + table.next) as StateRef;
        let record = self.record(state);
        let parent = batch.parents[index];
        record[0].store(if parent == 0 { state } else { parent }, Ordering::Relaxed);
        for (word, target) in words.iter().zip(&record[1..]) {
            target.store(*word, Ordering::Relaxed);
        }
        table.next += length;
        Some(state)
    }
}

/// The inverse of [`pack`].
#[inline]
pub(crate) fn unpack(mut words: impl Iterator<Item = u32>, state_vector: &mut [u32]) {
    let mut word = 0u32;
    let mut left = 0;
    for number in state_vector {
        let mut shift = 0;
        *number = 0;
        loop {
            if left == 0 {
                word = words.next().unwrap_or(0);
                left = 4;
            }
            let byte = word & 0xff;
            word >>= 8;
            left -= 1;
            *number |= (byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
    }
}

/// Appends a state vector in variable-length encoding, as whole words.
#[inline]
pub(crate) fn pack(state_vector: &[u32], words: &mut Vec<u32>) {
    let (mut pending, mut filled) = (0u64, 0);
    for number in state_vector {
        // Less than a word is pending, so five more bytes do not overflow.
        let (bytes, bits) = if *number < 0x80 { (u64::from(*number), 8) } else { encode_varint(*number) };
        pending |= bytes << filled;
        filled += bits;
        while filled >= 32 {
            words.push(pending as u32);
            pending >>= 32;
            filled -= 32;
        }
    }
    if filled > 0 {
        words.push(pending as u32);
    }
}

/// The encoding of one number, and its length in bits.
#[inline]
fn encode_varint(number: u32) -> (u64, u32) {
    let (mut bytes, mut bits, mut rest) = (0u64, 0, number);
    while rest >= 0x80 {
        bytes |= u64::from(rest & 0x7f | 0x80) << bits;
        bits += 8;
        rest >>= 7;
    }
    (bytes | u64::from(rest) << bits, bits + 8)
}

#[cfg(test)]
mod tests;
