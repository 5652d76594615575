//! Deadlock reports that cannot be emitted before the search ends, because the places at which inert members may
//! be blocked are not known. Data only: `explore/inert_members` decides which members are inert, `deadlock_report`
//! emits the reports.

use super::state::{SymbolicState, SymbolicValue};
use quaject_esp_ir::ir::{BlockId, Location, Wait};

/// The number of a place at which a member is blocked, a run-time value of the product.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockedAtId(pub(super) u32);

impl BlockedAtId {
    /// Nowhere: the member has terminated.
    pub(super) const TERMINATED: BlockedAtId = BlockedAtId(0);

    /// The number of the place with this index.
    pub(super) fn of_index(index: usize) -> BlockedAtId {
        BlockedAtId(index as u32 + 1)
    }

    pub(super) fn as_constant(self) -> SymbolicValue {
        SymbolicValue::Constant(i128::from(self.0))
    }
}

/// The place at which a member is blocked: a wait, and which of its branches are open.
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
    /// It is inert but has syntactic partners, which suppress the report.
    BlockedUnreported,
}

/// A wait that reports members that are blocked forever.
pub(super) struct PendingReport {
    pub(super) path: SymbolicState,
    pub(super) wait: Wait,
    /// Members that wait here.
    pub(super) waiting: Vec<usize>,
    /// Inert members that it does not report.
    pub(super) unreported: Vec<usize>,
    pub(super) location: Location,
}
