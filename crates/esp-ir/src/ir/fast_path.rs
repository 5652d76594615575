//! Fast paths: their members, entry tests and exits.

use crate::ir::ids::{BlockId, PathId, SlotId, Value};
use crate::ir::place::Edge;
use smol_str::SmolStr;

/// A fast path: code in one process, the trigger, that does the work of several instances ("Fast Paths in Concurrent
/// Programs", section 4.2; reference, section 10). It is entered by [`Terminator::Enter`](crate::ir::Terminator::Enter)
/// and exited by [`Terminator::Leave`](crate::ir::Terminator::Leave). In between, the other members are captured and
/// take no steps.
#[derive(Clone, Debug)]
pub struct FastPath {
    /// Its name.
    pub name: SmolStr,
    /// The instance that enters it.
    pub trigger: u32,
    /// The instances that it captures, in order of the specification.
    pub members: Vec<PathMember>,
}

/// An instance that a fast path captures.
#[derive(Clone, Debug)]
pub struct PathMember {
    /// The instance.
    pub instance: u32,
    /// The start: the block that ends in the wait at which it has to be, and the branch that has to be open.
    pub start: (BlockId, u32),
    /// The values that are copied, in order, to the parameters of the path's first block, after those of earlier
    /// members.
    pub values: Vec<Value>,
    /// Its slots that the path uses, each with the slot of the trigger's body that replaces it on the path.
    pub slots: Vec<(SlotId, SlotId)>,
}

/// The entry test of a fast path. It is in the trigger's code.
#[derive(Clone, Debug)]
pub struct Enter {
    /// The path.
    pub path: PathId,
    /// The first block of the path, of which this is the only predecessor. Its parameters are the members' values
    /// ([`PathMember::values`]), one after the other.
    pub then: BlockId,
    /// Taken if a member is not at its start and some member is about to run.
    pub later: Edge,
    /// Taken if a member is not at its start and none is about to run, or this instance is not the trigger.
    pub otherwise: Edge,
}

/// The exit of a fast path.
#[derive(Clone, Debug)]
pub struct Leave {
    /// The path.
    pub path: PathId,
    /// The number of the exit, as assigned when the path was made.
    pub exit: u32,
    /// The trigger, which continues at once. Not an edge, because it sets all values that are live at the target.
    pub trigger: Resume,
    /// The other members, by number in [`FastPath::members`], in the order in which they join the ready list.
    pub members: Vec<(u32, Resume)>,
}

/// Where an instance continues after a fast path.
#[derive(Clone, Debug)]
pub struct Resume {
    /// At the start of this block of its body.
    pub to: BlockId,
    /// Its values that are live there, including the block's parameters, each with its new value.
    pub values: Vec<(Value, Value)>,
}
