//! Transitions as data: a step with every choice resolved, its outcome, and its effect on the component numbers of a state.

use crate::collapse::ComponentId;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;

/// One step and what it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Transition {
    pub(crate) step: Step,
    /// The message that the world sends, by its number among all of the channel.
    pub(crate) message: Option<u32>,
    /// What extern functions return, in order of calls, by number.
    pub(crate) choices: Box<[u32]>,
    /// The slots that change, and to what.
    pub(crate) changes: Box<[(u32, ComponentId)]>,
    /// The slot that counts messages, if the channel is bounded.
    pub(crate) counter: Option<u32>,
    pub(crate) outcome: TransitionOutcome,
}

impl Transition {
    /// Whether it ends in this fault, or in the same one of another replica.
    pub(crate) fn is_like(&self, report: &FaultReport) -> bool {
        let what = |report: &FaultReport| (report.fault, report.location, report.name.clone());
        matches!(&self.outcome, TransitionOutcome::Faults(own) if what(own) == what(report))
    }
}

/// How a step ends.
#[derive(Clone, Debug)]
pub(crate) enum TransitionOutcome {
    /// The program goes on.
    Continues,
    /// It has ended.
    Exits,
    /// It has been stopped.
    Faults(Box<FaultReport>),
    /// The step itself does not end.
    NonTerminating(u32),
}

/// A move that has been worked out, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TransitionId(pub(crate) u32);

/// What a move does to the numbers of a state and to its hash: short for those that are taken again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CachedDelta {
    /// It has not been taken yet.
    Unknown,
    /// Two slots change, or the same one twice.
    TwoSlots { slots: [u32; 2], components: [ComponentId; 2], change: u64 },
    /// More than that.
    General,
}
