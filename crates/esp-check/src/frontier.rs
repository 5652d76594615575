//! The frontier of a breadth-first search: the states of one level, to be expanded. Holds references; with hash
//! compaction, where the store keeps signatures only, also the packed states.

use crate::store::{StateRef, Store, unpack};

/// The states of one level.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    states: Vec<StateRef>,
    /// With compaction: the packed states, and where each ends.
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Frontier {
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Removes all states and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.states.clear();
        self.words.clear();
        self.ends.clear();
    }

    /// Adds a state with this packed vector.
    pub(crate) fn push(&mut self, store: &Store, state: StateRef, words: &[u32]) {
        self.states.push(state);
        if !store.keeps_full_states() {
            self.words.extend_from_slice(words);
            self.ends.push(self.words.len());
        }
    }

    /// Reads the vector of the state at this index.
    pub(crate) fn read(&self, store: &Store, index: usize, state_vector: &mut [u32]) -> StateRef {
        let state = self.states[index];
        if store.keeps_full_states() {
            store.read(state, state_vector);
        } else {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            unpack(self.words[start..self.ends[index]].iter().copied(), state_vector);
        }
        state
    }

    /// Memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        4 * (self.states.capacity() + self.words.capacity()) + 8 * self.ends.capacity()
    }
}
