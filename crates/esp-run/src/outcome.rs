//! Outcomes of runs and of sleeps, and how drivers are closed. Data only, shared by the engines and the drivers.

use crate::error::HostError;
use quaject_esp_exec::path_counters::PathCounters;
use quaject_esp_exec::report::FaultReport;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunOutcome {
    /// Quiescent (0), or by `exit`.
    Exit(u8),
    /// At a fault.
    Fault(Box<FaultReport>),
    /// A driver failed.
    Failed(HostError),
    /// A signal stopped it; its output has been written.
    Signal(i32),
    /// The reader of its output has closed it.
    OutputClosed,
}

/// The outcome of a run, notes and counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunReport {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Messages that a driver has lost, and commands that have failed.
    pub notes: Vec<String>,
    /// Counters of each fast path of the program; empty for compiled C, which does not count.
    pub paths: Vec<PathCounters>,
}

/// What ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WakeReason {
    /// An event for the program, or a spurious wake-up.
    Event,
    /// A signal asks the program to stop.
    Signal(i32),
    /// No event can ever happen: nothing is waited for.
    Never,
}

/// How long closing the drivers may wait for the readers of outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shutdown {
    /// Until all output is written.
    Drain,
    /// For a second at most: a signal stopped the run.
    Interrupted,
}
