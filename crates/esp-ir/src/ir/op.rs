//! Instructions and their operators.

use crate::ir::ids::Value;
use crate::ir::place::{Operand, Place};
use quaject_esp_syntax::hir::{ByteOrder, ExternId, FnId, LabelId};
use quaject_esp_syntax::types::{PoolId, ProcessId};

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
    /// Writes a byte string literal, whose length is within the bound.
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
    /// The time that is `amount` units after now, for `TimeUnit::Absolute`: nanoseconds of the clock, a `time`, or an
    /// `i64` in a fused process.
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
    /// The point at which a predicate of a fast path has been computed: its number, and its value, a `bool`. Does
    /// nothing.
    Predicate(u32, Value),
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
    /// As `Add` on `i64`; a result outside 64 bits is the nearest number inside, without a fault.
    SaturatingAdd,
    /// Likewise.
    SaturatingSubtract,
    /// Likewise.
    SaturatingMultiply,
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
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSubtract
            | BinaryOp::SaturatingMultiply
            | BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual => false,
        }
    }

    /// The comparison that holds if and only if this one does not; none if the operation is not a comparison.
    pub fn inverted(self) -> Option<BinaryOp> {
        match self {
            BinaryOp::Equal => Some(BinaryOp::NotEqual),
            BinaryOp::NotEqual => Some(BinaryOp::Equal),
            BinaryOp::Less => Some(BinaryOp::GreaterEqual),
            BinaryOp::LessEqual => Some(BinaryOp::Greater),
            BinaryOp::Greater => Some(BinaryOp::LessEqual),
            BinaryOp::GreaterEqual => Some(BinaryOp::Less),
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingSubtract
            | BinaryOp::SaturatingMultiply => None,
        }
    }

    /// Whether it is a comparison, whose result is a `bool`.
    pub fn is_comparison(self) -> bool {
        self.inverted().is_some()
    }

    /// Whether it is commutative.
    pub fn commutes(self) -> bool {
        match self {
            BinaryOp::Add
            | BinaryOp::Multiply
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::SaturatingAdd
            | BinaryOp::SaturatingMultiply
            | BinaryOp::Equal
            | BinaryOp::NotEqual => true,
            BinaryOp::Subtract
            | BinaryOp::SaturatingSubtract
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
