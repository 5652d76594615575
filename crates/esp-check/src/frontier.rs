//! The states of one level of a search, which are still to be looked at: by reference, and where the store keeps only
//! their signatures by their numbers too.

use crate::store::{StateRef, Store, unpack};

/// The states of one level.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    states: Vec<StateRef>,
    /// With compaction: the packed numbers, and where each state's end.
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Frontier {
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Removes all states, and keeps the memory for others.
    pub(crate) fn clear(&mut self) {
        self.states.clear();
        self.words.clear();
        self.ends.clear();
    }

    /// Adds a state with these packed numbers.
    pub(crate) fn push(&mut self, store: &Store, state: StateRef, words: &[u32]) {
        self.states.push(state);
        if !store.keeps_full_states() {
            self.words.extend_from_slice(words);
            self.ends.push(self.words.len());
        }
    }

    /// A state by its place here, its numbers read.
    pub(crate) fn read(&self, store: &Store, index: usize, numbers: &mut [u32]) -> StateRef {
        let state = self.states[index];
        if store.keeps_full_states() {
            store.read(state, numbers);
        } else {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            unpack(self.words[start..self.ends[index]].iter().copied(), numbers);
        }
        state
    }

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        4 * (self.states.capacity() + self.words.capacity()) + 8 * self.ends.capacity()
    }
}
