//! The flow IR: one control-flow graph per process, SSA values, channel operations as terminators.
//! Data only; what it means is said by `step`, how it is written by `text`, what is well-formed by `verify`.
//!
//! ```text
//!   scalars, pids, references to boxed objects     SSA values, passed along edges as block parameters
//!   flat records, unions, bytes, arrays            slots: process-local memory, reached by places
//!   boxed objects                                  pool memory, reached by places whose base is a reference
//!
//!   block1(v3: int):                               parameters take the place of phi nodes
//!     v4 = binary add v3, v1                       instructions are executed in order
//!     wait fair { .. }                             one terminator; `wait` is in, out, alt and after alike
//! ```
//!
//! **Regions.** Code that must run while an instance waits (a guard that asks `free(T)`, the payload of an `out`
//! branch of an `alt`, the `if` of a pattern) is a *region*: blocks reached only from a [`Wait`], without effects
//! on anything but the region's own values, slots of the branch and new objects, whose paths end in
//! [`Terminator::Result`]. Values that dominate the wait may be used in it; its own values may not be used outside.
//!
//! **Counts in regions.** A guard or condition leaves counts as it finds them. A payload region may allocate, retain
//! and release its own objects, and move counts that the instance holds into the message. All that takes effect when
//! the message is taken; a run whose message is not taken, or that faults, leaves no trace: new objects are free
//! again, added counts are gone. A region never removes the last count of an object that was there before it.

use crate::deadlock::WaitForEdge;
pub use quaject_esp_syntax::hir::{
    Boundary, ByteOrder, ChannelId, Direction, ExternId, FnId, IntType, LabelId, MemoryMode, Mutability, Policy,
    Purity, Sharing, SiteId,
};
pub use quaject_esp_syntax::types::{Aggregate, PoolId, ProcessId, Type, TypeId, TypeTable};
use smol_str::SmolStr;
use std::num::NonZeroU32;

/// Where something stands in the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Location {
    /// Index into [`Program::files`].
    pub file: u16,
    /// Line, from 1; 0 for code that stands for no text.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// In a fused process: whose code it is, of which a fault there is told. The text form does not show it.
    pub member: Option<InstanceId>,
}

impl Location {
    /// The place in the text alone.
    pub fn in_text(self) -> Location {
        Location { member: None, ..self }
    }
}

/// An instance, by its number among all of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstanceId(NonZeroU32);

impl InstanceId {
    /// # Panics
    /// For the last number of `u32`: no program has so many instances.
    pub fn new(number: u32) -> InstanceId {
        InstanceId(NonZeroU32::MIN.checked_add(number).expect("a program has fewer instances than numbers"))
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0.get() - 1
    }
}

/// A whole program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Names of the source files.
    pub files: Vec<String>,
    /// Every type, and the pools.
    pub types: TypeTable,
    /// How counts end. With `Manual`, use of an object with count 0 is the fault `memory`.
    pub memory: MemoryMode,
    /// Channels.
    pub channels: Vec<Channel>,
    /// C interfaces.
    pub interfaces: Vec<Interface>,
    /// Extern functions.
    pub externs: Vec<Extern>,
    /// Pure functions.
    pub functions: Vec<Function>,
    /// Processes, in order of text.
    pub processes: Vec<Process>,
    /// Fast paths, whose code is part of their first process.
    pub paths: Vec<FastPath>,
    /// Who runs when a receiver that has gone on stops.
    pub hand_off: HandOff,
}

/// Who runs when a receiver that has gone on stops. Any order is one that the semantics allow; back ends may fall back
/// to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HandOff {
    /// Whoever is the first of the ready list, which its sender has joined: the order of the reference.
    #[default]
    Queued,
    /// Its sender, as if the receiver were a function that the sender has called.
    Direct,
}

/// A fast path: code in one process, the trigger, that does for a while what several instances do ("Fast Paths in
/// Concurrent Programs", section 4.2; reference, section 10). It is entered by [`Terminator::Enter`] and left by
/// [`Terminator::Leave`]; in between the other members are lent to it and take no steps.
#[derive(Clone, Debug)]
pub struct FastPath {
    /// Its name.
    pub name: SmolStr,
    /// The instance that enters it.
    pub trigger: u32,
    /// The instances that it takes along, in order of the specification.
    pub members: Vec<PathMember>,
}

/// An instance that a fast path takes along.
#[derive(Clone, Debug)]
pub struct PathMember {
    /// Which.
    pub instance: u32,
    /// The block that ends in the wait it has to be at, and the branch of that wait which has to be open.
    pub start: (BlockId, u32),
    /// What is taken of its values, in order: the parameters of the block that is entered, after those of the members
    /// before.
    pub values: Vec<Value>,
    /// Its slots that the path uses, and which slots of the trigger's body stand for them on the path.
    pub slots: Vec<(SlotId, SlotId)>,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: SmolStr,
    /// Types of the values of one message.
    pub payload: Vec<TypeId>,
    /// Whether the world is at one end.
    pub boundary: Boundary,
    /// Whether a value determines its reader.
    pub sharing: Sharing,
    /// Who continues after a rendezvous.
    pub policy: Policy,
    /// The default driver's text.
    pub driver: Option<String>,
    /// Its declaration.
    pub location: Location,
}

/// A C interface of an external channel; its patterns bind only parameters (`Bind::Parameter`, `Bind::Slot` into
/// `slots`), which become the C parameters in order.
#[derive(Clone, Debug)]
pub struct Interface {
    /// C prefix.
    pub name: SmolStr,
    /// The channel.
    pub channel: ChannelId,
    /// One C function each.
    pub entries: Vec<InterfaceEntry>,
}

/// One entry of a C interface.
#[derive(Clone, Debug)]
pub struct InterfaceEntry {
    /// C suffix.
    pub name: SmolStr,
    /// Name and type of the C parameters, in order of text.
    pub parameters: Vec<(SmolStr, TypeId)>,
    /// One pattern per value of the channel; `Bind::Parameter(k)` is parameter k, whatever its type.
    pub patterns: Vec<Pattern>,
}

/// An extern function.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its C name.
    pub name: SmolStr,
    /// Whether it has effects, which are then visible.
    pub purity: Purity,
    /// Parameter types; a mutable one may be written by the function.
    pub parameters: Vec<(TypeId, Mutability)>,
    /// Result; none for a procedure.
    pub result: Option<TypeId>,
}

/// A pure function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: SmolStr,
    /// How its parameters arrive, in order: scalars and references as values (the entry block's parameters, in
    /// order), flat aggregates in slots (the first slots, in order).
    pub parameters: Vec<TypeId>,
    /// The result's type.
    pub result: TypeId,
    /// Its code; every path ends in [`Terminator::Return`] or a fault.
    pub body: Body,
    /// Its declaration.
    pub location: Location,
}

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name.
    pub name: SmolStr,
    /// How many instances run.
    pub replicas: u32,
    /// Whether replicas were written, so that instances are named `P[k]`.
    pub replicated: bool,
    /// Its labels, without `#`.
    pub labels: Vec<SmolStr>,
    /// Its channel operations, by order of text.
    pub sites: Vec<Site>,
    /// Its code; the entry block has no parameters.
    pub body: Body,
    /// Of a fused process: the processes of which it does what they do. The text form does not show them.
    pub members: Vec<ProcessId>,
    /// Of a fused process: the places of its members' operations and of what messages are made and tried by, in order,
    /// each with its channel, which a fault there is told with. The text form does not show them.
    pub operations: Vec<(Location, ChannelId)>,
    /// Its declaration.
    pub location: Location,
}

/// A channel operation in a process's text.
#[derive(Clone, Debug)]
pub struct Site {
    /// The channel.
    pub channel: ChannelId,
    /// `in` or `out`.
    pub direction: Direction,
    /// Its place.
    pub location: Location,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)] pub struct $name(pub u32);)*
    };
}

ids! {
    /// An SSA value of one body: an integer, `bool`, `pid`, or reference to a boxed object.
    Value;
    /// Memory of one body that holds a flat record, union, `bytes` or array.
    SlotId;
    /// A block of one body.
    BlockId;
    /// A fast path of the program.
    PathId;
}

/// A control-flow graph.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Every value, by id.
    pub values: Vec<ValueData>,
    /// Every slot, by id.
    pub slots: Vec<Slot>,
    /// Every block, by id; block 0 is the entry.
    pub blocks: Vec<Block>,
}

/// What is known of a value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: TypeId,
    /// The source variable it is a version of.
    pub name: Option<SmolStr>,
}

/// A piece of process-local memory.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its type, never scalar and never boxed.
    pub ty: TypeId,
    /// The source variable it holds.
    pub name: Option<SmolStr>,
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Values that arrive along the edges.
    pub parameters: Vec<Value>,
    /// What is executed, in order.
    pub instructions: Vec<Instruction>,
    /// How it ends.
    pub terminator: Terminator,
    /// The terminator's place.
    pub location: Location,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The value it defines, for those that do.
    pub result: Option<Value>,
    /// What it does.
    pub op: Op,
    /// Its place, which a fault names.
    pub location: Location,
}

/// A place in memory: a slot or a boxed object's content, and a path into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the path begins.
    pub base: Base,
    /// The path.
    pub path: Vec<Projection>,
}

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A slot.
    Slot(SlotId),
    /// The content of a boxed object.
    Object(Value),
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// A record's field.
    Field(u32),
    /// An array's element, or a byte of `bytes` (below its present length); outside: fault `bounds`. The index has
    /// any integer type.
    Element(Value),
    /// Likewise, of an index that a pass has shown to be inside: back ends need not look.
    Inside(Value),
    /// A union's payload; the tag is known to be this one.
    Payload(u32),
}

/// A value of any type: in SSA form, or in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A scalar or reference.
    Value(Value),
    /// A flat aggregate, or anything else in memory.
    Place(Place),
}

/// Instructions. Arithmetic wraps; with checks on, signed overflow, shift counts outside the width and stores
/// that lose bits fault `overflow`.
#[derive(Clone, Debug)]
pub enum Op {
    /// An integer, `bool` (0, 1) or `pid` (instance number) constant.
    Constant(i128),
    /// On one integer or `bool`, of the result's type.
    Unary(UnaryOp, Value),
    /// Arithmetic: operands and result of one type, but a shift's count (second) is any integer. Comparisons:
    /// operands of one type, result `bool`. Division by zero: fault `div`.
    Binary(BinaryOp, Value, Value),
    /// Integer, `bool` or `pid` to the result's type; keeps the low bits. Integer to `bool`: is not 0.
    Convert(Value),
    /// Reads a scalar or reference.
    Load(Place),
    /// Writes a scalar or reference.
    Store(Place, Value),
    /// Copies a flat aggregate. Between `bytes` of different bounds: fault `range` if too long.
    Copy {
        /// Destination.
        to: Place,
        /// Source; may be the destination.
        from: Place,
    },
    /// Writes a byte string literal, which fits.
    SetBytes(Place, Vec<u8>),
    /// Writes the same value to every element of an array.
    Fill(Place, Operand),
    /// Makes this tag the union's; the payload is then written field by field.
    SetTag(Place, u32),
    /// The tag of a union, a `u32`.
    Tag(Place),
    /// The present length of `bytes`, an `int`.
    Length(Place),
    /// Changes the length of `bytes`; growth adds zeros. Negative or above the bound: fault `range`.
    SetLength(Place, Value),
    /// Copies `from[start..end]` of `bytes`; outside: fault `bounds`; too long for `to`: fault `range`.
    CopySlice {
        /// Destination, whole; not the source.
        to: Place,
        /// Source.
        from: Place,
        /// First byte; absent: 0.
        start: Option<Value>,
        /// One past the last; absent: the length.
        end: Option<Value>,
    },
    /// Writes `to[start..end] = from`. Outside: fault `bounds`; lengths differ: fault `range`.
    StoreSlice {
        /// Destination.
        to: Place,
        /// First byte; absent: 0.
        start: Option<Value>,
        /// One past the last; absent: the length.
        end: Option<Value>,
        /// Source; may be the destination.
        from: Place,
    },
    /// Appends to `bytes`; too long: fault `range`.
    Append {
        /// What grows.
        to: Place,
        /// What is added; may be `to`.
        from: Place,
    },
    /// An unsigned number of `bits` bits at byte `offset` of `bytes`; outside: fault `bounds`.
    LoadNumber {
        /// The bytes, or an array of `u8`.
        from: Place,
        /// Byte offset, any integer type.
        offset: Value,
        /// 16, 32 or 64; the result's width.
        bits: u32,
        /// Byte order.
        order: ByteOrder,
    },
    /// Writes a number at byte `offset`; outside: fault `bounds`.
    StoreNumber {
        /// The bytes, or an array of `u8`.
        to: Place,
        /// Byte offset.
        offset: Value,
        /// Width.
        bits: u32,
        /// Byte order.
        order: ByteOrder,
        /// What is written, unsigned, of that width.
        value: Value,
    },
    /// Reads a layout's field: the layout lies at byte `offset`, all of it inside the bytes, else fault `bounds`.
    LoadBits {
        /// The bytes.
        from: Place,
        /// Byte offset of the layout.
        offset: Value,
        /// Which bits.
        field: BitField,
    },
    /// Writes a layout's field; keeps the low bits of the value.
    StoreBits {
        /// The bytes.
        to: Place,
        /// Byte offset of the layout.
        offset: Value,
        /// Which bits.
        field: BitField,
        /// What is written, unsigned.
        value: Value,
    },
    /// Whether two values of one type in memory are equal by content (boxed parts too; `bytes` by length and bytes).
    Equal(Operand, Operand),
    /// A call of a pure function; a flat result goes to `to`, any other to the instruction's result.
    CallFunction {
        /// Which.
        function: FnId,
        /// One per parameter.
        arguments: Vec<Operand>,
        /// Where a flat aggregate result goes.
        to: Option<Place>,
    },
    /// A call of an extern function. Unresolved: fault `extern`.
    CallExtern {
        /// Which.
        function: ExternId,
        /// One per parameter; a mutable parameter's is a place and may be written.
        arguments: Vec<Operand>,
        /// Where a flat aggregate result goes.
        to: Option<Place>,
    },
    /// The executing instance, a `pid`.
    OwnId,
    /// The instance of a process with this replica number; none such: fault `range`.
    InstanceOf(ProcessId, Value),
    /// A `pid`'s replica number, an `int`.
    ReplicaNumber(Value),
    /// A new object with count 1, its content unassigned; none free: fault `pool`.
    Allocate(PoolId),
    /// Whether an object's count is 1, a `bool`: it may be updated in place by its holder.
    IsUnique(Value),
    /// Number of free objects, an `int`.
    FreeObjects(PoolId),
    /// The moment when so much time will have passed, for [`TimeUnit::Moment`]: nanoseconds of the clock, an `i64`.
    Deadline {
        /// How many units, any integer type. Not positive: now.
        amount: Value,
        /// Nanoseconds of one unit. The product saturates.
        unit_ns: i64,
    },
    /// Adds one count to each object the operand refers to: itself, or the boxed parts of a flat aggregate.
    Retain(Operand),
    /// Removes one count from each; an object that reaches 0 is freed and its parts are released in turn. In manual
    /// memory, at count 0: fault `memory`.
    Release(Operand),
    /// A label: a zero-width control point.
    Mark(LabelId),
    /// Where a predicate of a fast path is known, by number, and the `bool` it is. Does nothing.
    Test(u32, Value),
}

/// Bits of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Size of the whole layout, in bytes.
    pub layout_bytes: u32,
    /// First bit, from the layout's first, most significant first.
    pub offset_bits: u32,
    /// Number of bits, 1 to 64.
    pub width_bits: u32,
    /// Little-endian ones are 16, 32 or 64 bits wide on a byte boundary.
    pub order: ByteOrder,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Logical not of a `bool`.
    Not,
    /// Bitwise complement.
    Complement,
    /// Arithmetic negation.
    Negate,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    /// Truncates toward zero.
    Divide,
    /// Has the sign of the dividend.
    Remainder,
    /// The count is taken modulo the width.
    ShiftLeft,
    /// Copies the sign of signed values.
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl BinaryOp {
    /// Whether it may fault, whatever its operands are; with `checked`, overflow is a fault.
    pub fn may_fault(self, checked: bool) -> bool {
        match self {
            BinaryOp::Divide | BinaryOp::Remainder => true,
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                checked
            }
            BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual => false,
        }
    }

    /// Whether it compares, which gives a boolean.
    pub fn is_comparison(self) -> bool {
        match self {
            BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual => true,
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor => false,
        }
    }

    /// Whether its operands may change places.
    pub fn commutes(self) -> bool {
        match self {
            BinaryOp::Add
            | BinaryOp::Multiply
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Equal
            | BinaryOp::NotEqual => true,
            BinaryOp::Subtract
            | BinaryOp::Divide
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual => false,
        }
    }
}

/// An edge: where to, and the values of the target's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The block.
    pub to: BlockId,
    /// One value per parameter of it.
    pub arguments: Vec<Value>,
}

/// How a block ends.
#[derive(Clone, Debug)]
pub enum Terminator {
    /// Goes on there.
    Jump(Edge),
    /// On a `bool`.
    Branch {
        /// The condition.
        condition: Value,
        /// If true.
        then: Edge,
        /// If false.
        otherwise: Edge,
    },
    /// On an integer.
    Switch {
        /// What is compared.
        value: Value,
        /// Distinct constants and where they lead.
        cases: Vec<(i128, Edge)>,
        /// For all other values.
        default: Edge,
    },
    /// `in`, `out`, `alt`, `pri alt`.
    Wait(Wait),
    /// Ends the quantum, then goes on there.
    Yield(Edge),
    /// Ends a pure function.
    Return(Operand),
    /// Ends a region: a guard's or condition's `bool`, or the values of a message.
    Result(Vec<Passed>),
    /// Ends the program with this status, any integer, modulo 256.
    Exit(Value),
    /// Ends the instance.
    End,
    /// Ends the program with a fault.
    Fault(Fault),
    /// Enters a fast path if every other member of it is in place.
    Enter(Enter),
    /// Leaves a fast path: the members get their values back and go on where they are.
    Leave(Leave),
}

impl Terminator {
    /// The wait, if it is one.
    pub fn as_wait(&self) -> Option<&Wait> {
        match self {
            Terminator::Wait(wait) => Some(wait),
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => None,
        }
    }
}

/// The entry test of a fast path. It is in the trigger's code.
#[derive(Clone, Debug)]
pub struct Enter {
    /// Which path.
    pub path: PathId,
    /// The first block of its code; this is the block's only predecessor. Its parameters are what is taken of the other
    /// members' values ([`PathMember::values`]), one after the other.
    pub then: BlockId,
    /// If a member is not in place and some member is about to run, so that all may get there.
    pub later: Edge,
    /// If a member is not in place and none is about to run, or this instance is not the trigger.
    pub otherwise: Edge,
}

/// Where a fast path is left.
#[derive(Clone, Debug)]
pub struct Leave {
    /// Which path.
    pub path: PathId,
    /// Which of the ways out, as those number them who made the path.
    pub exit: u32,
    /// The trigger, which goes on at once: no edge, as it sets all values that are live there.
    pub trigger: Resume,
    /// The other members, by number in [`FastPath::members`], in the order in which they join the ready list.
    pub members: Vec<(u32, Resume)>,
}

/// Where an instance goes on after a fast path.
#[derive(Clone, Debug)]
pub struct Resume {
    /// At the start of this block of its body.
    pub to: BlockId,
    /// Its values that are live there, the block's parameters included, and what they become.
    pub values: Vec<(Value, Value)>,
}

/// A value handed to another instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The value.
    pub operand: Operand,
    /// Whether the counts that the giver holds on it go along.
    pub transfer: Transfer,
}

/// What becomes of the giver's counts when a message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// The giver keeps them; the taker's binds add one each.
    Keep,
    /// It was the giver's last use: the taker's binds add one each, then the giver's are released, in one step.
    Move,
}

/// The faults that end a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Fault {
    Assert,
    Bounds,
    Div,
    Overflow,
    Pool,
    Range,
    Memory,
    Alt,
    Deadlock,
    /// An extern function without an implementation was called.
    Extern,
}

/// Waiting for one of several things; a plain `in` or `out` is a wait with one branch.
#[derive(Clone, Debug)]
pub struct Wait {
    /// How a branch is chosen.
    pub order: AltOrder,
    /// Whether the instance may rest here for ever.
    pub blocking: Blocking,
    /// The branches, in order of text.
    pub branches: Vec<Branch>,
    /// `else`: possible exactly when no open branch can commit.
    pub otherwise: Option<BlockId>,
    /// Variables that a model's property asks for, with their values here. Only models have any, and the text form
    /// does not show them.
    pub observed: Vec<(SmolStr, Value)>,
    /// Of a fused process: what its members wait for here, each by its own name, to be told when nothing wakes it and it
    /// waits at the branch of this number. The text form does not show them.
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

/// Whether resting at a wait for ever is the program's intention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocking {
    /// It is a deadlock.
    Deadlock,
    /// It may: the wait is an idle point.
    MayBlockForever,
}

/// One branch of a wait.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Whether the branch is open.
    pub guard: Guard,
    /// What it waits for.
    pub operation: Operation,
    /// Where it goes on; this edge is the block's only predecessor. After an `in` the block's parameters are the
    /// pattern's `Bind::Parameter`s in order; else it has none.
    pub then: BlockId,
    /// The operation's place.
    pub location: Location,
}

/// Whether a branch is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Always.
    Open,
    /// If this `bool`, computed on arrival, is true.
    Value(Value),
    /// If this region's `bool` is true. It asks `free(T)`, so it is evaluated again whenever a free count changes.
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
    /// A time. One that has passed: at once.
    After {
        /// How many units, any integer type, computed on arrival.
        amount: Value,
        /// Of what.
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

/// What a time is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimeUnit {
    /// So many nanoseconds from arrival on. The product saturates.
    Nanoseconds(i64),
    /// The amount is a moment, of [`Op::Deadline`]: so a fused process keeps the times of members that have been waiting
    /// since before it arrived.
    Moment,
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

/// What a received value must look like, and what is kept of it. Patterns match whole or do nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Anything.
    Any,
    /// Anything, kept.
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

/// Where a bound part of a message goes. Each boxed value bound gets a count when the message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// The next parameter of the `then` block and of the condition: the n-th, from 0, in order of text.
    Parameter(u32),
    /// A slot of this branch alone.
    Slot(SlotId),
}
