//! Transitions as data: a step with every choice resolved, its outcome, and its effect on the state vector.

use crate::collapse::ComponentId;
use crate::questions::NumberedAnswer;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;

/// A transition.
#[derive(Clone, Debug)]
pub(crate) struct Transition {
    pub(crate) step: Step,
    /// The message that the environment sends, by its number in the channel's domain.
    pub(crate) message: Option<u32>,
    /// The results of extern functions by number, in order of calls; not of pure ones.
    pub(crate) choices: Box<[u32]>,
    /// The answers of pure functions that the step chooses, also for the operations that are waited at after it.
    pub(crate) answers: Box<[NumberedAnswer]>,
    /// The component indices that change, with their new components.
    pub(crate) changes: Box<[(u32, ComponentId)]>,
    /// The component index that counts messages, if the channel is bounded.
    pub(crate) counter: Option<u32>,
    pub(crate) outcome: TransitionOutcome,
}

impl Transition {
    /// Whether no extern function has another result that would make the same step another transition.
    pub(crate) fn is_deterministic(&self) -> bool {
        self.choices.is_empty() && self.answers.is_empty()
    }

    /// Whether it ends in this fault, or in the same fault of another replica.
    pub(crate) fn is_like(&self, report: &FaultReport) -> bool {
        let what = |report: &FaultReport| (report.fault, report.location, report.name.clone());
        matches!(&self.outcome, TransitionOutcome::Faults(own) if what(own) == what(report))
    }
}

/// The outcome of a transition.
#[derive(Clone, Debug)]
pub(crate) enum TransitionOutcome {
    /// The program continues.
    Continues,
    /// The program ends.
    Terminates,
    /// The step is a fault, which stops the program.
    Faults(Box<FaultReport>),
    /// The local code of this instance does not terminate.
    NonTerminating(u32),
}

/// A cached transition, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TransitionId(pub(crate) u32);

/// The cached effect of a transition on the state vector and on its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CachedDelta {
    /// Not computed yet.
    Unknown,
    /// Two components change, or the same one twice; `change` is the difference of the hash.
    TwoComponents { indices: [u32; 2], components: [ComponentId; 2], change: u64 },
    /// The effect is computed each time.
    General,
}
