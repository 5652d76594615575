//! Deadlock reports that cannot be emitted before the search ends, because the waits at which inert members may be
//! blocked are not known. Data only: `explore/inert_members` decides which members are inert, `deadlock_report`
//! emits the reports.

use super::state::{SymbolicState, SymbolicValue};
use quaject_esp_ir::ir::{BlockId, Location, Wait};

/// The number of the wait at which a member is blocked, a run-time value of the product.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockedWaitId(pub(super) u32);

impl BlockedWaitId {
    /// Nowhere: the member has terminated.
    pub(super) const TERMINATED: BlockedWaitId = BlockedWaitId(0);

    /// The number of the wait with this index.
    pub(super) fn of_index(index: usize) -> BlockedWaitId {
        BlockedWaitId(index as u32 + 1)
    }

    pub(super) fn as_constant(self) -> SymbolicValue {
        SymbolicValue::Constant(i128::from(self.0))
    }
}

/// The wait at which a member is blocked, and which of its branches are open.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct BlockedWait {
    pub(super) block: BlockId,
    pub(super) open: Vec<bool>,
}

/// The fate of a member in a state in which no member can proceed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemberFate {
    /// It waits, at an idle point or for the environment, and is not reported.
    WaitingUnreported,
    Terminated,
    /// It is inert: blocked forever, or terminated.
    Inert,
    /// It is inert but wakeable, and not reported.
    InertUnreported,
}

/// A wait that reports members that are blocked forever.
pub(super) struct PendingReport {
    pub(super) state: SymbolicState,
    pub(super) wait: Wait,
    /// Members that wait here.
    pub(super) waiting: Vec<usize>,
    /// Inert members that are wakeable, and therefore not reported.
    pub(super) wakeable: Vec<usize>,
    pub(super) location: Location,
}
