//! The states that have been visited: packed one after the other, found by an open-addressing table of 32-bit
//! references. Several threads add to it at once; all shared memory is atomics, so that no lock is taken for a state.
//!
//! ```text
//!   chunk    65,536 words of 32 bits; each thread fills chunks of its own
//!   record   word 0       the state it was first reached from (its own reference for the first state)
//!            words 1 ..   the numbers of its parts, 7 bits a byte, padded with zero bytes to whole words
//!   table    references (chunk and word), 0 is empty; at most three quarters full, rebuilt twice as large
//! ```

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{OnceLock, RwLock, RwLockReadGuard};

const CHUNK_WORDS: usize = 1 << 16;
const MOST_CHUNKS: usize = 1 << 16;
const FIRST_SLOTS: usize = 1 << 12;

/// A visited state. No state has the reference 0.
pub(crate) type StateRef = u32;

/// All visited states.
pub(crate) struct Store {
    /// Numbers per state.
    width: usize,
    chunks: Vec<OnceLock<Box<[AtomicU32]>>>,
    taken: AtomicUsize,
    table: RwLock<Box<[AtomicU32]>>,
    count: AtomicUsize,
}

/// One thread's place to add states.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    chunk: usize,
    /// The next free word; 0 if there is no chunk yet.
    next: usize,
    words: Vec<u32>,
}

/// The table as it is while a thread works on a batch of states; it does not grow meanwhile.
pub(crate) struct Book<'s> {
    store: &'s Store,
    /// None only while it grows.
    table: Option<RwLockReadGuard<'s, Box<[AtomicU32]>>>,
}

/// What became of a state that was to be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// It is new.
    New(StateRef),
    /// It was there.
    Known(StateRef),
    /// The table has to grow first: open it again.
    Crowded,
    /// There is no room for references to more.
    Full,
}

fn zeroed(length: usize) -> Box<[AtomicU32]> {
    let mut words = Vec::new();
    words.resize_with(length, || AtomicU32::new(0));
    words.into_boxed_slice()
}

/// The share of one number in the hash of a state.
#[inline]
pub(crate) fn hash_of(slot: usize, number: u32) -> u64 {
    let mixed = (u64::from(number) | (slot as u64) << 40).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The hash of a state.
pub(crate) fn hash(numbers: &[u32]) -> u64 {
    numbers.iter().enumerate().fold(0u64, |sum, (slot, number)| sum.wrapping_add(hash_of(slot, *number)))
}

fn position(hash: u64, mask: usize) -> usize {
    (hash.wrapping_mul(0x94d0_49bb_1331_11eb) >> 24) as usize & mask
}

impl Store {
    /// An empty store for states of so many numbers.
    pub(crate) fn new(width: usize) -> Store {
        let mut chunks = Vec::new();
        chunks.resize_with(MOST_CHUNKS, OnceLock::new);
        Store {
            width,
            chunks,
            taken: AtomicUsize::new(0),
            table: RwLock::new(zeroed(FIRST_SLOTS)),
            count: AtomicUsize::new(0),
        }
    }

    /// How many states there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How much memory they take, table included.
    pub(crate) fn bytes(&self) -> usize {
        let table = self.table.read().expect("no thread panics with the table").len();
        4 * (self.taken.load(Ordering::Relaxed) * CHUNK_WORDS + table)
    }

    /// Opens the table for a batch, larger if it has become too full.
    pub(crate) fn open(&self) -> Book<'_> {
        let table = self.table.read().expect("no thread panics with the table");
        if self.count() * 4 < table.len() * 3 {
            return Book { store: self, table: Some(table) };
        }
        drop(table);
        self.grow();
        Book { store: self, table: Some(self.table.read().expect("no thread panics with the table")) }
    }

    fn grow(&self) {
        let mut table = self.table.write().expect("no thread panics with the table");
        if self.count() * 4 < table.len() * 3 {
            return;
        }
        let larger = zeroed(table.len() * 2);
        let mask = larger.len() - 1;
        let mut numbers = vec![0; self.width];
        for slot in table.iter() {
            let state = slot.load(Ordering::Relaxed);
            if state == 0 {
                continue;
            }
            self.read(state, &mut numbers);
            let mut at = position(hash(&numbers), mask);
            while larger[at].load(Ordering::Relaxed) != 0 {
                at = (at + 1) & mask;
            }
            larger[at].store(state, Ordering::Relaxed);
        }
        *table = larger;
    }

    fn chunk(&self, chunk: usize) -> &[AtomicU32] {
        self.chunks[chunk].get_or_init(|| zeroed(CHUNK_WORDS))
    }

    fn record(&self, state: StateRef) -> &[AtomicU32] {
        &self.chunk(state as usize / CHUNK_WORDS)[state as usize % CHUNK_WORDS..]
    }

    /// The state that this one was first reached from; itself for the first.
    pub(crate) fn parent(&self, state: StateRef) -> StateRef {
        self.record(state)[0].load(Ordering::Relaxed)
    }

    /// Reads the numbers of a state.
    #[inline]
    pub(crate) fn read(&self, state: StateRef, numbers: &mut [u32]) {
        let mut words = self.record(state)[1..].iter();
        let mut word = 0u32;
        let mut left = 0;
        for number in numbers {
            let mut shift = 0;
            *number = 0;
            loop {
                if left == 0 {
                    word = words.next().map_or(0, |word| word.load(Ordering::Relaxed));
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
}

#[inline]
fn pack(numbers: &[u32], words: &mut Vec<u32>) {
    words.clear();
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

impl<'s> Book<'s> {
    /// Lets the table grow.
    pub(crate) fn reopen(&mut self) {
        let store = self.store;
        self.table = None;
        *self = store.open();
    }

    /// Adds a state whose numbers have this hash, unless it is there.
    #[inline]
    pub(crate) fn add(&self, pen: &mut Pen, parent: Option<StateRef>, numbers: &[u32], hash: u64) -> Added {
        pack(numbers, &mut pen.words);
        let table = self.table.as_ref().expect("it is open but while it grows");
        let mask = table.len() - 1;
        let mut at = position(hash, mask);
        let mut own = None;
        loop {
            // Pairs with the release below: a record is written before its reference is seen.
            let mut found = table[at].load(Ordering::Acquire);
            if found == 0 {
                if self.store.count() * 16 >= table.len() * 15 {
                    return Added::Crowded;
                }
                let state = match own {
                    Some(state) => state,
                    None => match self.write(pen, parent) {
                        Some(state) => *own.insert(state),
                        None => return Added::Full,
                    },
                };
                match table[at].compare_exchange(0, state, Ordering::Release, Ordering::Acquire) {
                    Ok(_) => {
                        pen.next += pen.words.len() + 1;
                        self.store.count.fetch_add(1, Ordering::Relaxed);
                        return Added::New(state);
                    }
                    Err(other) => found = other,
                }
            }
            // No packed state is the beginning of another, so the words alone decide.
            let record = &self.store.record(found)[1..];
            if record.len() >= pen.words.len()
                && pen.words.iter().zip(record).all(|(own, other)| *own == other.load(Ordering::Relaxed))
            {
                return Added::Known(found);
            }
            at = (at + 1) & mask;
        }
    }

    /// Writes the packed state where nobody looks yet.
    fn write(&self, pen: &mut Pen, parent: Option<StateRef>) -> Option<StateRef> {
        if pen.next == 0 || pen.next + pen.words.len() + 1 > CHUNK_WORDS {
            pen.chunk = self.store.taken.fetch_add(1, Ordering::Relaxed);
            if pen.chunk >= MOST_CHUNKS || pen.words.len() + 2 > CHUNK_WORDS {
                return None;
            }
            // Word 0 of the first chunk would be the reference 0.
            pen.next = 1;
        }
        let state = (pen.chunk * CHUNK_WORDS + pen.next) as StateRef;
        let record = &self.store.chunk(pen.chunk)[pen.next..];
        record[0].store(parent.unwrap_or(state), Ordering::Relaxed);
        for (word, slot) in pen.words.iter().zip(&record[1..]) {
            slot.store(*word, Ordering::Relaxed);
        }
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_found_again_with_their_numbers_and_parents() {
        let store = Store::new(3);
        let mut pen = Pen::default();
        let mut added = Vec::new();
        for number in 0..10_000u32 {
            let numbers = [number, number % 7 * 1000, u32::MAX - number];
            let parent = added.last().copied();
            match store.open().add(&mut pen, parent, &numbers, hash(&numbers)) {
                Added::New(state) => added.push(state),
                other => panic!("{numbers:?} {other:?}"),
            }
        }
        let mut read = [0; 3];
        for (number, state) in added.iter().enumerate() {
            let number = number as u32;
            store.read(*state, &mut read);
            assert_eq!(read, [number, number % 7 * 1000, u32::MAX - number]);
            assert_eq!(store.open().add(&mut pen, None, &read, hash(&read)), Added::Known(*state));
            assert_eq!(store.parent(*state), added[(number as usize).saturating_sub(1)]);
        }
        assert_eq!(store.count(), 10_000);
    }

    #[test]
    fn threads_agree_on_who_was_first() {
        let store = Store::new(2);
        let new = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut pen = Pen::default();
                    for number in 0..20_000u32 {
                        let numbers = [number / 3, number * 5];
                        if let Added::New(_) = store.open().add(&mut pen, None, &numbers, hash(&numbers)) {
                            new.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!((store.count(), new.into_inner()), (20_000, 20_000));
    }
}
