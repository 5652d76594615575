//! Absolute paths that were resolved before, by a hash of their bytes, the last ones first: paths differ most at their
//! ends (the paper hashes names backwards). Every change of a directory makes all of it invalid.

use super::location::Location;
use crate::cell::Global;
use alloc::vec::Vec;

/// The number of paths, a power of two.
const ENTRIES: usize = 256;
/// Longer paths are resolved anew.
const MAX_BYTES: usize = 64;

struct Entry {
    path: [u8; MAX_BYTES],
    length: usize,
    location: Location,
}

struct Cache {
    entries: [Option<Entry>; ENTRIES],
    /// Which entries are in use.
    used: Vec<u8>,
}

static CACHE: Global<Cache> = Global::new(Cache { entries: [const { None }; ENTRIES], used: Vec::new() });

/// The hash of a path: its bytes from the last to the first, as many as there are in a word.
fn hash(path: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let last = match path.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => path.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    let mixed = (last ^ path.len() as u64).wrapping_mul(FACTOR);
    (mixed >> (u64::BITS - ENTRIES.ilog2())) as usize
}

/// Compares a word at a time: what is behind the path is zero.
fn is_same(entry: &Entry, path: &[u8]) -> bool {
    let (words, rest) = path.as_chunks();
    let (own, _) = entry.path.as_chunks::<{ size_of::<u64>() }>();
    let is_equal = |own: &[u8; 8], other: &[u8; 8]| u64::from_le_bytes(*own) == u64::from_le_bytes(*other);
    entry.length == path.len()
        && words.iter().zip(own).all(|(word, own)| is_equal(own, word))
        && rest.iter().zip(&entry.path[words.len() * size_of::<u64>()..]).all(|(byte, own)| byte == own)
}

/// The location of a path, if it is known.
pub(super) fn look_up(path: &[u8]) -> Option<Location> {
    CACHE.with(|cache| {
        let entry = cache.entries[hash(path)].as_ref()?;
        is_same(entry, path).then(|| entry.location.clone())
    })
}

/// Keeps the location of a path.
pub(super) fn remember(path: &[u8], location: &Location) {
    if path.len() > MAX_BYTES {
        return;
    }
    let mut bytes = [0; MAX_BYTES];
    bytes[..path.len()].copy_from_slice(path);
    let entry = Entry { path: bytes, length: path.len(), location: location.clone() };
    // The old entry is dropped afterwards: it may be the last that holds a node.
    let old = CACHE.with(|cache| {
        let index = hash(path);
        if cache.entries[index].is_none() {
            cache.used.push(index as u8);
        }
        cache.entries[index].replace(entry)
    });
    drop(old);
}

/// Forgets all paths: a name has been given or taken away.
pub(super) fn forget_all() {
    while let Some(entry) = CACHE.with(|cache| {
        let index = cache.used.pop()?;
        Some(cache.entries[usize::from(index)].take())
    }) {
        drop(entry);
    }
}
