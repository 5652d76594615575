//! Deadlock reports that cannot be emitted before the search ends, because the possible sites of dead members are not
//! known. Data only: `explore/dead_members` decides which members are dead, `deadlock_report` emits the reports.

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

/// The fate of a member in a state in which no member can proceed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemberFate {
    Active,
    Terminated,
    Blocked,
    /// It is dead but has potential wakers, and is therefore not reported.
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
