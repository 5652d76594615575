//! Reports: the result of a check as data, as text, and as JSON.

mod json;
mod restrictions;
mod text;
mod trace;

pub use json::{CheckKind, Engine, PathRecord, VerdictRecord};
pub use restrictions::restrictions;
pub use text::{line_or_place, subject, unfinished_text};

pub(crate) use json::run_to_json;
pub(crate) use text::statistics;
pub(crate) use trace::{MAX_CALLS, message_text, numbered_steps};

use crate::counterexample::Counterexample;
use crate::liveness::ProductStatistics;
use crate::options::Unfinished;
use crate::waits::waits;
use quaject_esp_ir::ir::{Boundary, Location, Operation};
use quaject_esp_ir::model::ModelProgram;
use std::time::Duration;

/// The result of a check.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// States visited.
    pub states: u64,
    /// Transitions taken.
    pub transitions: u64,
    /// Steps from the initial state to the farthest state.
    pub depth: u32,
    /// Memory used by the search.
    pub bytes: u64,
    /// Time used.
    pub elapsed: Duration,
    /// The products of the properties and of starvation freedom with the program.
    pub product: ProductStatistics,
    /// Lines of checked processes that no run reaches; known of a finished search only.
    pub unreached: Vec<Location>,
    /// The restrictions of the environment, to which the verdict is limited.
    pub restrictions: Vec<String>,
    /// The model's properties, each with its answer.
    pub properties: Vec<(String, Answer)>,
    /// Absence of starvation under weak fairness; none if it was not checked.
    pub starvation_freedom: Option<Answer>,
    /// The deadlocks that were checked.
    pub deadlocks: Deadlocks,
    /// The leaks that were checked.
    pub leaks: Leaks,
}

/// Which leaks an engine finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaks {
    /// All.
    All,
    /// Those that exhaust their pool.
    ExhaustingPool,
}

/// Which deadlocks an engine finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadlocks {
    /// All.
    All,
    /// Those of all instances together; not those of some while others wait for the environment or the clock.
    GlobalOnly,
}

impl Deadlocks {
    /// What an engine finds that treats each wait for the environment or the clock as enabled: it misses partial
    /// deadlocks.
    pub fn found_without_quiescence(model: &ModelProgram) -> Deadlocks {
        let program = &model.program;
        let has_environment = program.channels.iter().any(|channel| channel.boundary != Boundary::Internal);
        let mut branches = program.processes.iter().flat_map(waits).flat_map(|wait| &wait.branches);
        let has_clock = branches.any(|branch| matches!(branch.operation, Operation::After { .. }));
        if has_environment || has_clock { Deadlocks::GlobalOnly } else { Deadlocks::All }
    }
}

/// The answer to a question of liveness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It holds.
    Holds,
    /// A run violates it.
    Violated,
    /// Runs of the model violate it, none of the program itself does.
    Spurious,
    /// The search for such a run ended at a limit.
    Unfinished,
    /// It was not checked, because the check ended before.
    Open,
}

impl Answer {
    /// Its word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::Violated => "violated",
            Answer::Spurious => "spurious",
            Answer::Unfinished => "unfinished",
            Answer::Open => "open",
        }
    }
}

impl From<&Verdict> for Answer {
    fn from(verdict: &Verdict) -> Answer {
        match verdict {
            Verdict::Holds => Answer::Holds,
            Verdict::Violated(_) => Answer::Violated,
            Verdict::Unfinished(_) => Answer::Unfinished,
        }
    }
}

/// The verdict of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No run has a violation.
    Holds,
    /// This run has one.
    Violated(Counterexample),
    /// The search ended before a violation was found.
    Unfinished(Unfinished),
}

impl Verdict {
    /// Its word in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Violated(_) => "violated",
            Verdict::Unfinished(_) => "unfinished",
        }
    }
}
