//! What is recorded of members that are blocked forever until the report of a deadlock can be emitted. Data only: which
//! members are dead is decided in `explore/dead_members`, and reports are emitted in `deadlock_report`.

use super::state::SymbolicState;
use quaject_esp_ir::ir::{BlockId, Location, Wait};

/// The number of the site of a member that has terminated.
pub(super) const TERMINATED: u32 = 0;

/// A site at which a member is blocked: a wait, and which of its branches are open.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct BlockedAt {
    pub(super) block: BlockId,
    pub(super) open: Vec<bool>,
}

/// The fate of a member in a state without any further step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemberFate {
    Active,
    Terminated,
    Blocked,
    /// It is dead, but the text of a member that may proceed has an operation that it waits for: it is not reported.
    PossiblyBlocked,
}

/// A wait that reports members that are blocked forever.
pub(super) struct PendingReport {
    pub(super) exec: SymbolicState,
    pub(super) wait: Wait,
    /// Members that wait here.
    pub(super) waiting: Vec<usize>,
    /// Dead members that it does not report.
    pub(super) unreported: Vec<usize>,
    pub(super) location: Location,
}
