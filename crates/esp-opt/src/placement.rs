//! The placement of a member of a fast path: its process, the location at which it is captured, and its slots among
//! those of the path.

use quaject_esp_ir::ir::{BlockId, ProcessId, Value};

/// A member of a path, placed in its process.
pub(crate) struct MemberPlacement {
    pub(crate) instance: u32,
    pub(crate) process: ProcessId,
    /// The block at which the path captures it, and the branch of its wait there.
    pub(crate) start: (BlockId, u32),
    /// Its values that the path takes.
    pub(crate) values: Vec<Value>,
    /// Its slots and sites, numbered within the path, begin with these.
    pub(crate) first_slot: u32,
    pub(crate) slots: u32,
    pub(crate) first_site: u32,
}

impl MemberPlacement {
    pub(crate) fn has_slot(&self, slot: u32) -> bool {
        (self.first_slot..self.first_slot + self.slots).contains(&slot)
    }
}
