//! How a program is to be explored, and how far.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How to explore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether states that make no difference are passed over.
    pub reduction: Reduction,
    /// Whether replicas that nothing tells apart count as one.
    pub symmetry: Symmetry,
    /// What is asked of runs that go on for ever, besides the model's properties.
    pub liveness: Liveness,
    /// Whether only a signature is kept of each state.
    pub compaction: Compaction,
    /// How many threads search.
    pub threads: usize,
    /// How far.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            reduction: Reduction::On,
            symmetry: Symmetry::Off,
            liveness: Liveness::Ignored,
            compaction: Compaction::Off,
            threads: 1,
            limits: Limits::default(),
        }
    }
}

/// Whether states that make no difference to what can go wrong are passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// They are (partial-order reduction).
    On,
    /// Every order of communications is tried; code between them runs at once if nobody can tell when it does.
    Communications,
    /// Every state is visited.
    Off,
}

/// Whether states that differ only in which replica is in which part are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symmetry {
    /// They are, for replicas that no value names.
    On,
    /// They are not.
    Off,
}

/// Whether only 64 bits are kept of each visited state (hash compaction, Wolper and Leroy 1993). A state whose bits are
/// another one's is then left out, with all that only it leads to: see [`omission_bound`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// All of a state is kept.
    Off,
    /// Only its signature is.
    On,
}

/// A bound on the probability that some state was left out of so many by [`Compaction::On`]: that two of them have the
/// same 64 bits, if those are as good as drawn by lot.
pub fn omission_bound(states: u64) -> f64 {
    let states = states as f64;
    (states * states / 2f64.powi(65)).min(1.0)
}

/// What is asked of runs that go on for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Nothing.
    Ignored,
    /// That nobody waits for ever, but where it may, while others go on (under weak fairness).
    Progress,
}

/// Where a search ends even if there is more.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// States.
    pub states: Option<u64>,
    /// Memory in bytes, of what the search itself keeps.
    pub bytes: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
    /// A wish that may come at any time.
    pub interrupt: Option<Interrupt>,
}

/// A wish of somebody else, such as who pressed Ctrl-C, that a search end: uttered by setting the flag.
#[derive(Clone, Debug)]
pub struct Interrupt(pub Arc<AtomicBool>);

impl PartialEq for Interrupt {
    /// Whether both are the same wish.
    fn eq(&self, other: &Interrupt) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Interrupt {}

impl Limits {
    /// Whether the search is wished to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        // Relaxed: nothing is handed over with the flag.
        self.interrupt.as_ref().is_some_and(|wish| wish.0.load(Ordering::Relaxed))
    }

    /// What is left of them after so much time.
    pub(crate) fn after(&self, used: Duration) -> Limits {
        Limits { time: self.time.map(|time| time.saturating_sub(used)), ..self.clone() }
    }
}

/// The limit a search ended at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Number of states.
    States,
    /// Memory.
    Memory,
    /// Time.
    Time,
    /// No limit: somebody wished it to end.
    Interrupted,
    /// Length of runs that the engine follows.
    Depth,
    /// What the engine looks at.
    Engine,
    /// No limit: the engine broke off.
    Broken,
}

impl Limit {
    /// A word for it, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Limit::States => "states",
            Limit::Memory => "memory",
            Limit::Time => "time",
            Limit::Interrupted => "interrupted",
            Limit::Depth => "depth",
            Limit::Engine => "engine",
            Limit::Broken => "broken",
        }
    }
}

/// How far a search is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// States visited or waiting.
    pub states: u64,
    /// Steps from the start.
    pub depth: u32,
    /// Memory used.
    pub bytes: u64,
    /// Time used.
    pub elapsed: Duration,
}
