//! The flow IR: one control-flow graph per process, SSA values, channel operations as terminators. Data only:
//! `esp-exec` defines its meaning, `text` its written form, `verify` well-formedness.
//!
//! ```text
//!   scalars, pids, references to boxed objects     SSA values, passed along edges as block parameters
//!   flat records, unions, bytes, arrays            slots: process-local memory, accessed by places
//!   boxed objects                                  pool memory, accessed by places whose base is a reference
//!
//!   block1(v3: int):                               block parameters replace phi nodes
//!     v4: int = add v3, v1                         instructions are executed in order
//!     wait fair { .. }                             one terminator; `wait` is in, out, alt and after alike
//! ```
//!
//! **Regions.** Code that is evaluated while an instance waits (a guard with `free(T)`, the payload of an `out` branch
//! of an `alt`, the `if` of a pattern) is a *region*: blocks reached only from a [`Wait`], whose paths end in
//! [`Terminator::Result`]. A region writes only its own values, slots of the branch and new objects. It may use values
//! that dominate the wait; its own values may not be used outside.
//!
//! **Reference counts in regions.** A guard or condition leaves the counts unchanged. A payload region may allocate,
//! may retain and release its own objects, and may move counts of the instance into the message. These effects are
//! committed when the message is taken; otherwise, or after a fault, they are rolled back. A region never removes the
//! last count of an object that existed before it.

mod body;
mod fast_path;
mod ids;
mod op;
mod place;
mod program;
mod wait;

pub use body::{Block, Body, Instruction, Slot, Terminator, ValueData};
pub use fast_path::{Enter, FastPath, Leave, PathMember, Resume};
pub use ids::{BlockId, InstanceId, Location, PathId, SlotId, Value};
pub use op::{BinaryOp, BitField, Op, UnaryOp};
pub use place::{Base, Edge, Fault, Operand, Passed, Place, Projection, Transfer};
pub use program::{
    Call, Channel, Constant, Extern, Function, HandOff, Interface, InterfaceEntry, Literal, Process, Program, Site,
};
pub use quaject_esp_syntax::hir::{
    Boundary, ByteOrder, ChannelId, ConstantId, Direction, ExternId, FnId, IntType, LabelId, MemoryMode, Mutability,
    Policy, Purity, Sharing, SiteId,
};
pub use quaject_esp_syntax::types::{Aggregate, PoolId, ProcessId, Type, TypeId, TypeTable};
pub use wait::{AltOrder, Bind, Blocking, Branch, Guard, Operation, Pattern, Payload, TimeUnit, Wait, WaitForEdge};
