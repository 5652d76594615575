//! A list that grows without moving: a large body's blocks would else need a stretch of memory half as large again
//! each time they outgrow theirs, while what the syntax tree left free lies idle in smaller ones.

use std::ops::{Index, IndexMut};

/// Items in a piece. A piece of blocks is some hundred kilobytes.
const PIECE: usize = 1024;

/// A list in pieces of equal length, but for the last.
pub(super) struct Pieces<T> {
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Pieces<T> {
    fn default() -> Pieces<T> {
        Pieces { pieces: Vec::new() }
    }
}

impl<T> Pieces<T> {
    pub(super) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    pub(super) fn push(&mut self, item: T) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(item),
            Some(_) | None => self.pieces.push(vec![item]),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.pieces.iter_mut().flatten()
    }

    /// The items; each piece is freed when it has been read.
    pub(super) fn into_items(self) -> impl Iterator<Item = T> {
        self.pieces.into_iter().flatten()
    }
}

impl<T> Index<usize> for Pieces<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.pieces[index / PIECE][index % PIECE]
    }
}

impl<T> IndexMut<usize> for Pieces<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pieces[index / PIECE][index % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE, Pieces};

    #[test]
    fn a_list_in_pieces_is_a_list() {
        for length in [0, 1, 2, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let mut list = Pieces::default();
            (0..length).for_each(|item| list.push(item));
            assert_eq!(list.len(), length);
            assert!((0..length).all(|index| list[index] == index));
            list.iter_mut().for_each(|item| *item += 1);
            assert!(list.iter().copied().eq(1..=length));
            assert!(list.into_items().eq(1..=length));
        }
    }
}
