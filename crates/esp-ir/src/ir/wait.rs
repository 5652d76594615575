//! Waits: the channel operations, times and choices at which an instance blocks.

use crate::ir::ids::{BlockId, Location, SlotId, Value};
use crate::ir::place::{Operand, Passed};
use quaject_esp_syntax::hir::{ChannelId, Direction, SiteId};
use smol_str::SmolStr;

/// A wait for one of several communications or times. A plain `in` or `out` is a wait with one branch.
#[derive(Clone, Debug)]
pub struct Wait {
    /// How a branch is chosen.
    pub order: AltOrder,
    /// Whether blocking here forever is a deadlock.
    pub blocking: Blocking,
    /// The branches, in order of text. Without any, and without `else`, the process has ended, and the wait records the
    /// variables that properties name.
    pub branches: Vec<Branch>,
    /// `else`: possible exactly when no open branch can commit.
    pub otherwise: Option<BlockId>,
    /// Variables that a model's properties name, with their values here. Empty outside models.
    pub observed: Vec<(SmolStr, Value)>,
    /// Of a fused process: by branch, what its members wait for if the process is blocked forever at that branch. The
    /// report of the deadlock lists these edges in place of the fused process's own.
    pub members: Vec<(u32, WaitForEdge)>,
}

/// How a branch is chosen among those that can commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AltOrder {
    /// Fairly: the search starts after the branch taken last.
    Fair,
    /// The first in order of text.
    Priority,
}

/// Whether an instance may block at a wait forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocking {
    /// Blocking forever is a deadlock.
    Deadlock,
    /// It may: the wait is an idle point.
    MayBlockForever,
}

/// One branch of a wait.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Whether the branch is open.
    pub guard: Guard,
    /// The communication or time.
    pub operation: Operation,
    /// The target, of which this branch is the only predecessor. After an `in` the block's parameters are the
    /// pattern's `Bind::Parameter`s in order; else it has none.
    pub then: BlockId,
    /// The location of the operation.
    pub location: Location,
}

/// Whether a branch is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Always.
    Open,
    /// If this `bool`, computed on arrival, is true.
    Value(Value),
    /// If this region's `bool` is true. It reads `free(T)`, so it is evaluated again whenever a number of free objects
    /// changes.
    Region(BlockId),
}

/// What a branch waits for.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Receives a message that matches.
    In {
        /// The operation in the text.
        site: SiteId,
        /// The channel.
        channel: ChannelId,
        /// One per value of the message.
        patterns: Vec<Pattern>,
        /// A region that decides on the values bound (as parameters in the same order, and in the branch's own
        /// slots), for the pattern's `if`s. A fault in it counts as a match and is raised when the branch is chosen.
        condition: Option<BlockId>,
    },
    /// Sends a message.
    Out {
        /// The operation in the text.
        site: SiteId,
        /// The channel.
        channel: ChannelId,
        /// The message.
        payload: Payload,
    },
    /// A time. A time that has passed is enabled at once.
    After {
        /// How many units, any integer type, computed on arrival.
        amount: Value,
        /// The unit.
        unit: TimeUnit,
    },
}

impl Operation {
    /// The channel, and which of its ends; none of a time.
    pub fn channel_end(&self) -> Option<(ChannelId, Direction)> {
        match self {
            Operation::In { channel, .. } => Some((*channel, Direction::In)),
            Operation::Out { channel, .. } => Some((*channel, Direction::Out)),
            Operation::After { .. } => None,
        }
    }
}

/// The unit of a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimeUnit {
    /// This many nanoseconds after arrival. The product saturates.
    Nanoseconds(i64),
    /// The amount is a time: of an `until`, or an `i64` of [`Op::Deadline`](crate::ir::Op::Deadline) in a fused
    /// process, which keeps the deadlines of members that have been waiting since before it arrived.
    Absolute,
}

/// The message of an `out`.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Computed on arrival: a plain `out`.
    Ready(Vec<Passed>),
    /// A region, evaluated when the branch commits: an `out` of an `alt`. If it would fault, the branch matches any
    /// reader and the fault is raised when it is chosen.
    Region(BlockId),
}

/// A pattern of a received value, with binds. A pattern that does not match binds nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Anything.
    Any,
    /// Anything, bound.
    Bind(Bind),
    /// An integer, `bool` or `pid` constant.
    Constant(i128),
    /// These bytes.
    Bytes(Vec<u8>),
    /// The own id.
    OwnId,
    /// Equal to a value computed on arrival.
    Equal(Operand),
    /// This tag; the payload's pattern is absent for a tag without payload.
    Tag(u32, Option<Box<Pattern>>),
    /// All fields of a record, or of a boxed one's content.
    Record(Vec<Pattern>),
    /// All elements of an array.
    Array(Vec<Pattern>),
}

/// The destination of a bound part of a message. Each boxed value bound gets a count when the message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// The next parameter of the `then` block and of the condition: the n-th, from 0, in order of text.
    Parameter(u32),
    /// A slot of this branch alone.
    Slot(SlotId),
}

/// An edge of the wait-for graph of a deadlock: an instance, an operation at which it is blocked, and its possible
/// partners.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitForEdge {
    /// The blocked instance.
    pub instance: u32,
    /// The location of its operation.
    pub location: Location,
    /// The channel and direction of the operation; none for an instance whose guards are all false.
    pub operation: Option<(ChannelId, Direction)>,
    /// The instances that could be its partners and have not terminated.
    pub partners: Vec<u32>,
}
