//! A vector in chunks, which grows without moving its items. Growing a contiguous vector of the blocks of a large body
//! would need a free range of memory larger than the vector, while the memory that the syntax tree has freed is
//! fragmented.

use std::ops::{Index, IndexMut};

/// The number of items in a chunk. A chunk of blocks takes some hundred kilobytes.
const CHUNK_LENGTH: usize = 1024;

/// A vector in chunks of equal length, except for the last.
pub(super) struct ChunkedVec<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> ChunkedVec<T> {
        ChunkedVec { chunks: Vec::new() }
    }
}

impl<T> ChunkedVec<T> {
    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK_LENGTH + last.len())
    }

    pub(super) fn push(&mut self, item: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK_LENGTH => last.push(item),
            Some(_) | None => self.chunks.push(vec![item]),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }

    /// The items. Each chunk is freed once it is consumed.
    pub(super) fn into_items(self) -> impl Iterator<Item = T> {
        self.chunks.into_iter().flatten()
    }
}

impl<T> Index<usize> for ChunkedVec<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK_LENGTH][index % CHUNK_LENGTH]
    }
}

impl<T> IndexMut<usize> for ChunkedVec<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK_LENGTH][index % CHUNK_LENGTH]
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_LENGTH, ChunkedVec};

    #[test]
    fn a_chunked_vector_behaves_as_a_vector() {
        for length in [0, 1, 2, CHUNK_LENGTH - 1, CHUNK_LENGTH, CHUNK_LENGTH + 1, 3 * CHUNK_LENGTH] {
            let mut list = ChunkedVec::default();
            (0..length).for_each(|item| list.push(item));
            assert_eq!(list.len(), length);
            assert!((0..length).all(|index| list[index] == index));
            list.iter_mut().for_each(|item| *item += 1);
            assert!(list.iter().copied().eq(1..=length));
            assert!(list.into_items().eq(1..=length));
        }
    }
}
