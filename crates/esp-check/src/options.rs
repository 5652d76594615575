//! The options and limits of a check.

use crate::timer::Timer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a model is checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which reduction is applied.
    pub reduction: Reduction,
    /// Whether symmetry reduction is applied.
    pub symmetry: Symmetry,
    /// What is checked of infinite runs besides the model's properties.
    pub liveness: Liveness,
    /// Whether only a signature of each state is kept.
    pub compaction: Compaction,
    /// Number of threads of the search.
    pub threads: usize,
    /// The limits.
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

/// The reduction of the reachable states. Every choice preserves the verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Partial-order reduction, and eager local steps.
    On,
    /// Every order of communications; local steps that commute with all steps of other instances are eager.
    Communications,
    /// Every interleaving of single steps.
    Off,
}

/// Symmetry reduction: states that differ by a permutation of interchangeable replicas count as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symmetry {
    /// For replicas that no value names.
    On,
    /// None.
    Off,
}

/// Hash compaction (Wolper and Leroy, "Reliable Hashing without Collision Detection", 1993; Stern and Dill, "Improved
/// Probabilistic Verification by Hash Compaction", 1995): only 64 bits are kept of each visited state. A state whose
/// bits collide is omitted, with all states that only it leads to: see [`omission_bound`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// Each state is kept completely.
    Off,
    /// Only a signature is kept.
    On,
}

/// A bound on the omission probability of [`Compaction::On`] for this number of states: that two of them have the same
/// 64 bits, for a uniform hash.
pub fn omission_bound(states: u64) -> f64 {
    let states = states as f64;
    (states * states / 2f64.powi(65)).min(1.0)
}

/// What is checked of infinite runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Nothing.
    Ignored,
    /// Absence of starvation under weak fairness: no instance waits forever while others continue, unless its
    /// operation is `idle`.
    StarvationFreedom,
}

/// The limits at which a search ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Number of states.
    pub states: Option<u64>,
    /// Memory of the search in bytes.
    pub bytes: Option<u64>,
    /// The clock, with a limit of time. Without a clock the elapsed time is zero in all reports, and no progress is
    /// reported.
    pub timer: Option<Timer>,
    /// A request from outside, at any time.
    pub interrupt: Option<Interrupt>,
}

/// A request to end a search, such as Ctrl-C: the flag is set.
#[derive(Clone, Debug)]
pub struct Interrupt(pub Arc<AtomicBool>);

impl PartialEq for Interrupt {
    /// Whether both are the same flag.
    fn eq(&self, other: &Interrupt) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Interrupt {}

impl Limits {
    /// Whether the end of the search is requested.
    pub(crate) fn is_interrupted(&self) -> bool {
        // Relaxed: the flag publishes no other data.
        self.interrupt.as_ref().is_some_and(|flag| flag.0.load(Ordering::Relaxed))
    }

    /// The limits that remain after this time.
    pub fn after(&self, used: Duration) -> Limits {
        let left = |timer: Timer| Timer { limit: timer.limit.map(|time| time.saturating_sub(used)), ..timer };
        Limits { timer: self.timer.map(left), ..self.clone() }
    }

    /// The time that a search may take.
    pub fn time(&self) -> Option<Duration> {
        self.timer.and_then(|timer| timer.limit)
    }
}

/// The limit at which a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Number of states.
    States,
    /// Memory.
    Memory,
    /// Time.
    Time,
    /// Not a limit: the caller requested the end.
    Interrupted,
    /// The length of runs that the engine follows.
    Depth,
    /// The number of IR steps of one instance between two operations.
    LocalSteps,
    /// The number of tables of answers of pure extern functions.
    Answers,
}

impl Limit {
    /// Its word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Limit::States => "states",
            Limit::Memory => "memory",
            Limit::Time => "time",
            Limit::Interrupted => "interrupted",
            Limit::Depth => "depth",
            Limit::LocalSteps => "local-steps",
            Limit::Answers => "answers",
        }
    }
}

/// Why a check has no verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfinished {
    /// The search ended at this limit.
    Limit(Limit),
    /// The engine does not explore a part of the behaviour.
    EngineIncomplete,
    /// The engine failed.
    EngineFailed,
    /// The search found this many violations that the program does not have.
    SpuriousViolations(u32),
}

impl From<Limit> for Unfinished {
    fn from(limit: Limit) -> Unfinished {
        Unfinished::Limit(limit)
    }
}

impl Unfinished {
    /// Its word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unfinished::Limit(limit) => limit.name(),
            Unfinished::EngineIncomplete => "engine",
            Unfinished::EngineFailed => "broken",
            Unfinished::SpuriousViolations(_) => "spurious",
        }
    }
}

/// The progress of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// States visited or in the frontier.
    pub states: u64,
    /// Steps from the initial state.
    pub depth: u32,
    /// Memory used.
    pub bytes: u64,
    /// Time used.
    pub elapsed: Duration,
}
