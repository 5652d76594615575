//! Counters of fast paths: entries, failed entry tests, exits.

/// The share of fast paths in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Communications outside fast paths.
    pub communications: u64,
    /// Entries of fast paths.
    pub entries: u64,
    /// Fuel used on fast paths: loop iterations of machine code, IR steps of the interpreter.
    pub fuel_on_paths: u64,
}

/// The counters of one fast path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathCounters {
    /// Entries.
    pub entered: u64,
    /// Entry tests that are retried, because some member was about to run.
    pub retried: u64,
    /// Entry tests that bypassed the path, because some member was not at its start.
    pub bypassed: u64,
    /// Exits, by their numbers.
    pub exits_taken: Vec<u64>,
}

impl PathCounters {
    /// Counts an exit.
    pub(crate) fn leave(&mut self, exit: u32) {
        let exit = exit as usize;
        if exit >= self.exits_taken.len() {
            self.exits_taken.resize(exit + 1, 0);
        }
        self.exits_taken[exit] += 1;
    }
}
