//! The state of a program: control states, frames, pools, and which channels the environment has closed.

use crate::frame::Frame;
use crate::pools::Pools;
use quaject_esp_ir::ir::PoolId;

/// The configuration of a program (reference, section 8), without its environment. Equal states have equal futures.
/// Dead registers and slots are 0, so that states do not differ by them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub(crate) instances: Vec<Instance>,
    pub(crate) pools: Pools,
    /// Per channel: whether the environment has closed it.
    pub(crate) closed: Vec<bool>,
    /// The instance that was interrupted within its local code. No other instance may run until it is done.
    pub(crate) unfinished: Option<u32>,
    /// The number of free objects per pool at the start of the current step; empty between steps.
    pub(crate) free_before: Vec<u32>,
}

/// One running process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Instance {
    pub(crate) control: Control,
    pub(crate) frame: Frame,
    /// While waiting: one per branch.
    pub(crate) branches: Vec<BranchState>,
}

/// The control state of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Control {
    /// It can run its local code.
    Running {
        /// The position in the code of its process.
        at: u32,
    },
    /// It waits at an operation.
    Waiting {
        /// Which of the process's waits, by order of blocks.
        wait: u32,
    },
    /// It has terminated.
    Ended,
    /// It is a member of a fast path that another instance executes, captured at this wait.
    CapturedByPath {
        /// Which of the process's waits.
        wait: u32,
    },
}

/// One branch of the operation an instance waits at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BranchState {
    pub(crate) open: bool,
    /// Of an `after`: when its time has passed.
    pub(crate) deadline_ns: i64,
}

impl State {
    /// The number of instances.
    pub fn instances(&self) -> u32 {
        self.instances.len() as u32
    }

    /// The control state of an instance.
    #[inline]
    pub fn control(&self, instance: u32) -> Control {
        self.instances[instance as usize].control
    }

    /// Whether a register of some instance holds this number; a constant of the code counts if it is 0.
    pub fn is_in_register(&self, number: i64) -> bool {
        self.instances.iter().any(|instance| instance.frame.registers.contains(&number))
    }

    /// Free objects of a pool.
    pub fn free_objects(&self, pool: PoolId) -> u32 {
        self.pools.get(pool).free
    }
}
