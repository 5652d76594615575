//! The states that have been visited: packed one after the other, found by an open-addressing table. Several threads
//! add to it at once; all shared memory is atomics, so that no lock is taken for a state.
//!
//! ```text
//!   chunk      65,536 words of 32 bits; each thread fills chunks of its own
//!   record     word 0       the state it was first reached from (its own reference for the first state)
//!              words 1 ..   the numbers of its parts, 7 bits a byte, padded with zero bytes to whole words;
//!                           with compaction the lower half of the signature instead
//!   table      64 bits a slot, 0 is empty; at most three quarters full, then rebuilt twice as large
//!   slot       upper half of the signature | reference: chunk and word
//!   signature  64 bits, the state's hash mixed once more; its upper bits say where in the table to look first, so
//!              that a larger table is filled from front to back without looking at records
//! ```

use crate::options::Compaction;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{OnceLock, RwLock, RwLockReadGuard};

const CHUNK_WORDS: usize = 1 << 16;
const MOST_CHUNKS: usize = 1 << 16;
/// Logarithm of the first table's length. An eighth of it holds what all threads together have not yet counted.
const FIRST_BITS: u32 = 15;
/// A thread adds so many states before it counts them for all to see, more in a large table: 64 threads stay below an
/// eighth of it.
const UNCOUNTED: usize = 16;
/// States that are looked for together.
pub(crate) const BUNDLE: usize = 32;

/// A visited state. No state has the reference 0.
pub(crate) type StateRef = u32;

/// Something that threads change often, in memory apart from what they only read.
#[repr(align(128))]
struct Apart<T>(T);

/// All visited states.
pub(crate) struct Store {
    /// Numbers per state.
    width: usize,
    compaction: Compaction,
    chunks: Vec<OnceLock<Box<[AtomicU32]>>>,
    taken: Apart<AtomicUsize>,
    table: Apart<RwLock<Table>>,
    count: Apart<AtomicUsize>,
}

struct Table {
    slots: Box<[AtomicU64]>,
    /// 32 less the logarithm of its length.
    shift: u32,
}

/// One thread's place to add states.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    chunk: usize,
    /// The next free word; 0 if there is no chunk yet.
    next: usize,
    /// States added and not yet counted.
    added: usize,
    /// The bundle of states to be added: their words, where each one's end, their signatures.
    words: Vec<u32>,
    ends: Vec<usize>,
    signatures: Vec<u64>,
    /// What was found in each one's first slot.
    first: Vec<u64>,
}

/// The table as it is while a thread works on a batch of states; it does not grow meanwhile.
pub(crate) struct Book<'s> {
    store: &'s Store,
    /// None only while it grows.
    table: Option<RwLockReadGuard<'s, Table>>,
}

/// What became of a state that was to be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// It is new.
    New(StateRef),
    /// It was there.
    Known(StateRef),
    /// There is no room for references to more.
    Full,
}

fn zeroed(length: usize) -> Box<[AtomicU32]> {
    let mut words = Vec::new();
    words.resize_with(length, || AtomicU32::new(0));
    words.into_boxed_slice()
}

impl Table {
    fn new(bits: u32) -> Table {
        let mut slots = Vec::new();
        slots.resize_with(1 << bits, || AtomicU64::new(0));
        Table { slots: slots.into_boxed_slice(), shift: 32 - bits }
    }

    /// Where to look first.
    #[inline]
    fn position(&self, signature: u64) -> usize {
        (signature >> 32 >> self.shift) as usize
    }
}

/// The share of one number in the hash of a state.
#[inline]
pub(crate) fn hash_of(slot: usize, number: u32) -> u64 {
    let mixed = (u64::from(number) | (slot as u64) << 40).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The hash of a state.
pub(crate) fn hash(numbers: &[u32]) -> u64 {
    numbers.iter().enumerate().fold(0u64, |sum, (slot, number)| sum.wrapping_add(hash_of(slot, *number)))
}

/// What is kept of a state in the table, from its hash.
#[inline]
pub(crate) fn signature(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Store {
    /// An empty store for states of so many numbers.
    pub(crate) fn new(width: usize, compaction: Compaction) -> Store {
        let mut chunks = Vec::new();
        chunks.resize_with(MOST_CHUNKS, OnceLock::new);
        Store {
            width,
            compaction,
            chunks,
            taken: Apart(AtomicUsize::new(0)),
            table: Apart(RwLock::new(Table::new(FIRST_BITS))),
            count: Apart(AtomicUsize::new(0)),
        }
    }

    /// How many states there are, but for those that threads have not counted yet.
    pub(crate) fn count(&self) -> usize {
        self.count.0.load(Ordering::Relaxed)
    }

    /// Whether its records can be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.compaction == Compaction::Off
    }

    /// How much memory they take, table included.
    pub(crate) fn bytes(&self) -> usize {
        let slots = self.table.0.read().expect("no thread panics with the table").slots.len();
        4 * self.taken.0.load(Ordering::Relaxed) * CHUNK_WORDS + 8 * slots
    }

    /// Opens the table for a batch, larger if it has become too full.
    pub(crate) fn open(&self) -> Book<'_> {
        let table = self.table.0.read().expect("no thread panics with the table");
        if self.count() * 4 < table.slots.len() * 3 {
            return Book { store: self, table: Some(table) };
        }
        drop(table);
        self.grow();
        Book { store: self, table: Some(self.table.0.read().expect("no thread panics with the table")) }
    }

    fn grow(&self) {
        let mut table = self.table.0.write().expect("no thread panics with the table");
        if self.count() * 4 < table.slots.len() * 3 {
            return;
        }
        let larger = Table::new(33 - table.shift);
        let mask = larger.slots.len() - 1;
        for slot in table.slots.iter() {
            let entry = slot.load(Ordering::Relaxed);
            if entry == 0 {
                continue;
            }
            let mut at = larger.position(entry);
            while larger.slots[at].load(Ordering::Relaxed) != 0 {
                at = (at + 1) & mask;
            }
            larger.slots[at].store(entry, Ordering::Relaxed);
        }
        *table = larger;
    }

    fn chunk(&self, chunk: usize) -> &[AtomicU32] {
        self.chunks[chunk].get_or_init(|| zeroed(CHUNK_WORDS))
    }

    #[inline]
    fn record(&self, state: StateRef) -> &[AtomicU32] {
        &self.chunk(state as usize / CHUNK_WORDS)[state as usize % CHUNK_WORDS..]
    }

    /// The state that this one was first reached from; itself for the first.
    pub(crate) fn parent(&self, state: StateRef) -> StateRef {
        self.record(state)[0].load(Ordering::Relaxed)
    }

    /// Reads the numbers of a state, of a store without compaction.
    #[inline]
    pub(crate) fn read(&self, state: StateRef, numbers: &mut [u32]) {
        unpack(self.record(state)[1..].iter().map(|word| word.load(Ordering::Relaxed)), numbers);
    }

    /// The signatures of states.
    pub(crate) fn signatures(&self, states: &[StateRef]) -> Vec<u64> {
        let mut found: rustc_hash::FxHashMap<StateRef, u64> = states.iter().map(|state| (*state, 0)).collect();
        if self.is_whole() {
            let mut numbers = vec![0; self.width];
            for (state, found) in &mut found {
                self.read(*state, &mut numbers);
                *found = signature(hash(&numbers));
            }
        } else {
            for slot in self.table.0.read().expect("no thread panics with the table").slots.iter() {
                let entry = slot.load(Ordering::Relaxed);
                if let Some(found) = found.get_mut(&(entry as u32)) {
                    let lower = self.record(entry as u32)[1].load(Ordering::Relaxed);
                    *found = entry >> 32 << 32 | u64::from(lower);
                }
            }
        }
        states.iter().map(|state| found[state]).collect()
    }
}

/// Reads numbers as [`pack`] writes them.
#[inline]
pub(crate) fn unpack(mut words: impl Iterator<Item = u32>, numbers: &mut [u32]) {
    let mut word = 0u32;
    let mut left = 0;
    for number in numbers {
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

/// Appends numbers as whole words.
#[inline]
pub(crate) fn pack(numbers: &[u32], words: &mut Vec<u32>) {
    let mut word = 0u32;
    let mut filled = 0;
    for number in numbers {
        let mut rest = *number;
        loop {
            let byte = if rest >= 0x80 { rest & 0x7f | 0x80 } else { rest };
            word |= byte << filled;
            filled += 8;
            if filled == 32 {
                words.push(word);
                (word, filled) = (0, 0);
            }
            if rest < 0x80 {
                break;
            }
            rest >>= 7;
        }
    }
    if filled > 0 {
        words.push(word);
    }
}

impl Pen {
    /// Lets everybody know how many states it has added.
    pub(crate) fn count(&mut self, store: &Store) {
        store.count.0.fetch_add(std::mem::take(&mut self.added), Ordering::Relaxed);
    }
}

impl<'s> Book<'s> {
    /// Lets the table grow if there is hardly room for a bundle.
    fn make_room(&mut self, pen: &mut Pen) {
        loop {
            let length = self.table.as_ref().expect("it is open but while it grows").slots.len();
            if (self.store.count() + pen.added + BUNDLE) * 8 < length * 7 {
                return;
            }
            pen.count(self.store);
            let store = self.store;
            self.table = None;
            *self = store.open();
        }
    }

    /// Adds one state whose numbers have this hash, unless it is there.
    pub(crate) fn add(&mut self, pen: &mut Pen, parent: Option<StateRef>, numbers: &[u32], hash: u64) -> Added {
        let mut added = Added::Full;
        self.add_all(pen, parent, numbers, &[hash], &mut |_, found| added = found);
        added
    }

    /// Adds up to [`BUNDLE`] states, one after the other in `numbers`, unless they are there, and tells of each.
    /// Looks into all their slots, then at all records that could be theirs, before it goes on with the first: the
    /// memory that is far away is then waited for once.
    pub(crate) fn add_all(
        &mut self,
        pen: &mut Pen,
        parent: Option<StateRef>,
        numbers: &[u32],
        hashes: &[u64],
        tell: &mut dyn FnMut(usize, Added),
    ) {
        self.make_room(pen);
        let table = self.table.as_ref().expect("it is open but while it grows");
        pen.words.clear();
        pen.ends.clear();
        pen.signatures.clear();
        pen.first.clear();
        let width = self.store.width;
        for (index, hash) in hashes.iter().enumerate() {
            let (numbers, signature) = (&numbers[index * width..(index + 1) * width], signature(*hash));
            // Pairs with the release in `add_one`: a record is written before its reference is seen.
            pen.first.push(table.slots[table.position(signature)].load(Ordering::Acquire));
            pen.signatures.push(signature);
            match self.store.compaction {
                Compaction::Off => pack(numbers, &mut pen.words),
                Compaction::On => pen.words.push(signature as u32),
            }
            pen.ends.push(pen.words.len());
        }
        let mut start = 0;
        for (index, end) in pen.ends.iter().enumerate() {
            let entry = pen.first[index];
            let same = (entry ^ pen.signatures[index]) >> 32 == 0 && entry != 0;
            // One whose first word differs is another state: with another signature, its slot is passed over.
            if same && self.store.record(entry as u32)[1].load(Ordering::Relaxed) != pen.words[start] {
                pen.first[index] = !pen.signatures[index] | 1;
            }
            start = *end;
        }
        let mut start = 0;
        for index in 0..pen.ends.len() {
            let end = pen.ends[index];
            let found = self.add_one(table, pen, parent, (start, end), index);
            start = end;
            tell(index, found);
        }
        if pen.added >= UNCOUNTED.max(table.slots.len() >> 11) {
            pen.count(self.store);
        }
    }

    #[inline]
    fn add_one(
        &self,
        table: &Table,
        pen: &mut Pen,
        parent: Option<StateRef>,
        (start, end): (usize, usize),
        index: usize,
    ) -> Added {
        let signature = pen.signatures[index];
        let mask = table.slots.len() - 1;
        let mut at = table.position(signature);
        let mut entry = pen.first[index];
        let mut own = None;
        loop {
            if entry == 0 {
                let state = match own {
                    Some(state) => state,
                    None => match self.write(pen, parent, start, end) {
                        Some(state) => *own.insert(state),
                        None => return Added::Full,
                    },
                };
                let new = signature >> 32 << 32 | u64::from(state);
                match table.slots[at].compare_exchange(0, new, Ordering::Release, Ordering::Acquire) {
                    Ok(_) => {
                        pen.next += end - start + 1;
                        pen.added += 1;
                        return Added::New(state);
                    }
                    Err(other) => entry = other,
                }
            }
            if (entry ^ signature) >> 32 == 0 && self.is_same(entry as u32, &pen.words[start..end]) {
                return Added::Known(entry as u32);
            }
            at = (at + 1) & mask;
            entry = table.slots[at].load(Ordering::Acquire);
        }
    }

    /// Whether a record has these words. No packed state is the beginning of another, so the words alone decide.
    #[inline]
    fn is_same(&self, state: StateRef, words: &[u32]) -> bool {
        let record = &self.store.record(state)[1..];
        record.len() >= words.len()
            && words.iter().zip(record).all(|(own, other)| *own == other.load(Ordering::Relaxed))
    }

    /// Writes the packed state where nobody looks yet.
    fn write(&self, pen: &mut Pen, parent: Option<StateRef>, start: usize, end: usize) -> Option<StateRef> {
        let length = end - start + 1;
        if pen.next == 0 || pen.next + length > CHUNK_WORDS {
            pen.chunk = self.store.taken.0.fetch_add(1, Ordering::Relaxed);
            if pen.chunk >= MOST_CHUNKS || length + 1 > CHUNK_WORDS {
                return None;
            }
            // Word 0 of the first chunk would be the reference 0.
            pen.next = 1;
        }
        let state = (pen.chunk * CHUNK_WORDS + pen.next) as StateRef;
        let record = &self.store.chunk(pen.chunk)[pen.next..];
        record[0].store(parent.unwrap_or(state), Ordering::Relaxed);
        for (word, slot) in pen.words[start..end].iter().zip(&record[1..]) {
            slot.store(*word, Ordering::Relaxed);
        }
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(store: &Store, pen: &mut Pen, parent: Option<StateRef>, numbers: &[u32]) -> Added {
        store.open().add(pen, parent, numbers, hash(numbers))
    }

    fn states_and_parents(compaction: Compaction) {
        let store = Store::new(3, compaction);
        let mut pen = Pen::default();
        let mut added = Vec::new();
        let numbers_of = |number: u32| [number, number % 7 * 1000, u32::MAX - number];
        for number in 0..100_000u32 {
            let parent = added.last().copied();
            match add(&store, &mut pen, parent, &numbers_of(number)) {
                Added::New(state) => added.push(state),
                other => panic!("{number} {other:?}"),
            }
        }
        let mut read = [0; 3];
        let signatures = store.signatures(&added);
        for (number, state) in added.iter().enumerate() {
            let numbers = numbers_of(number as u32);
            if store.is_whole() {
                store.read(*state, &mut read);
                assert_eq!(read, numbers);
            }
            assert_eq!(signatures[number], signature(hash(&numbers)));
            assert_eq!(add(&store, &mut pen, None, &numbers), Added::Known(*state));
            assert_eq!(store.parent(*state), added[number.saturating_sub(1)]);
        }
        pen.count(&store);
        assert_eq!(store.count(), 100_000);
    }

    #[test]
    fn states_are_found_again_with_their_numbers_and_parents() {
        states_and_parents(Compaction::Off);
    }

    #[test]
    fn states_are_found_again_by_their_signatures() {
        states_and_parents(Compaction::On);
    }

    #[test]
    fn the_same_state_twice_in_a_bundle_is_added_once() {
        let store = Store::new(1, Compaction::Off);
        let (mut pen, mut found) = (Pen::default(), Vec::new());
        let hashes = [hash(&[5]), hash(&[6]), hash(&[5])];
        store.open().add_all(&mut pen, None, &[5, 6, 5], &hashes, &mut |_, added| found.push(added));
        let [Added::New(five), Added::New(_), Added::Known(known)] = found[..] else { panic!("{found:?}") };
        assert_eq!(five, known);
    }

    #[test]
    fn threads_agree_on_who_was_first() {
        let store = Store::new(2, Compaction::Off);
        let new = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut pen = Pen::default();
                    for number in 0..20_000u32 {
                        if let Added::New(_) = add(&store, &mut pen, None, &[number / 3, number * 5]) {
                            new.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    pen.count(&store);
                });
            }
        });
        assert_eq!((store.count(), new.into_inner()), (20_000, 20_000));
    }
}
