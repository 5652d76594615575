//! The small language of user steps and message handlers: instructions on eight registers, checked before they run.
//! Knows no machine; `compose` writes steps as code, [`crate::reference`] and [`crate::handler`] interpret.

mod float;
pub(crate) mod text;
mod verify;

use std::fmt;
use std::sync::Arc;

pub use float::{Conversion, FloatFormat, FloatFunction, FloatOperation, IntegerFormat, Sign};
pub use verify::VerifyError;
pub(crate) use verify::handler as verify_handler;

/// Registers, `r0` to `r7`.
pub const REGISTERS: usize = 8;

/// The most instructions of a step.
pub const MAX_STEP_INSTRUCTIONS: usize = 32;

/// The most instructions of all steps of a pipe together.
pub const MAX_PIPE_INSTRUCTIONS: usize = 64;

/// The most instructions of a handler.
pub const MAX_HANDLER_INSTRUCTIONS: usize = 4096;

/// A register, below [`REGISTERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u8);

/// A register or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// What a register holds.
    Register(Register),
    /// A number.
    Constant(u64),
}

/// An operation on two numbers without signs; results wrap at the width of the registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication, low half.
    Mul,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Shift to the left by a constant below the width.
    Shl,
    /// Shift to the right by a constant below the width.
    Shr,
}

/// The reduction of the values of all elements to one. Those of integers are commutative and associative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// Their sum, which wraps.
    Add,
    /// Their exclusive or.
    Xor,
    /// Their bitwise and.
    And,
    /// Their bitwise or.
    Or,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum of floating-point numbers from 0.0 on, in the order of the elements, rounded after each; the total has
    /// its bits.
    AddFloat(FloatFormat),
}

/// A comparison: of integers without signs, or of floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// A number in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// 1, 2, 4 or 8.
    pub bytes: usize,
    /// The order of its bytes.
    pub order: Order,
}

/// An order of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The lowest first.
    Little,
    /// The highest first, as in network headers.
    Big,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// `d` becomes a number.
    Set {
        /// The destination.
        d: Register,
        /// The number.
        value: Operand,
    },
    /// `d` becomes the result of an operation on `s` and `t`.
    Compute {
        /// The operation.
        operation: Operation,
        /// The destination.
        d: Register,
        /// The first.
        s: Register,
        /// The second.
        t: Operand,
    },
    /// `d` becomes the result of an operation on two floating-point numbers.
    FloatBinary {
        /// The operation.
        operation: FloatOperation,
        /// The format of the operands.
        format: FloatFormat,
        /// The destination.
        d: Register,
        /// The first.
        s: Register,
        /// The second; of a constant the bits.
        t: Operand,
    },
    /// `d` becomes a function of a floating-point number.
    FloatUnary {
        /// The function.
        function: FloatFunction,
        /// The format of the operand.
        format: FloatFormat,
        /// The destination.
        d: Register,
        /// The operand.
        s: Register,
    },
    /// `d` becomes a number in another format.
    Convert {
        /// From which format to which.
        conversion: Conversion,
        /// The destination.
        d: Register,
        /// The operand.
        s: Register,
    },
    /// Steps: `s` is added to the total.
    Total {
        /// How.
        total: Total,
        /// What counts.
        s: Register,
    },
    /// Handlers: loads `d` from an offset of the message. An offset outside of the message rejects it.
    Load {
        /// How it is written.
        element: Element,
        /// The destination.
        d: Register,
        /// Bytes from the start of the message.
        at: Operand,
    },
    /// Handlers: goes on at instruction `to` if the comparison holds.
    If {
        /// The comparison.
        condition: Condition,
        /// The first.
        s: Register,
        /// The second.
        t: Operand,
        /// An instruction, by number.
        to: usize,
    },
    /// Handlers: goes on at instruction `to`.
    Goto {
        /// An instruction, by number.
        to: usize,
    },
    /// Handlers: passes a part of the message through a pipe to a buffer. A part outside of the message, or a
    /// destination outside of the buffer, rejects the message.
    Deliver {
        /// Which pipe.
        pipe: usize,
        /// Where the part starts in the message.
        at: Operand,
        /// Its bytes.
        length: Operand,
        /// Which buffer.
        buffer: usize,
        /// Where in the buffer.
        offset: Operand,
    },
    /// Handlers: `d` becomes the result of a step of the last pipe: sum, CRC, count or total; otherwise 0.
    StepResult {
        /// The destination.
        d: Register,
        /// Which step, from 0.
        step: usize,
    },
    /// Handlers: appends a part of the message to the reply.
    Reply {
        /// Where the part starts in the message.
        at: Operand,
        /// Its bytes.
        length: Operand,
    },
    /// Handlers: appends a number to the reply.
    Send {
        /// How it is written.
        element: Element,
        /// The number.
        value: Operand,
    },
    /// Handlers: ends; the reply is sent, if there is one.
    Accept,
    /// Handlers: ends; nothing is sent.
    Drop,
}

/// A named list of instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name.
    pub name: String,
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

/// A verified user-defined step: the operation on each element of the data. The element is in `r0`, and the final value
/// of `r0` replaces it, or its low bits; all other registers start as zero. An incomplete last element is unchanged and
/// does not count.
///
/// Registers, and the total, are as wide as an element, or as the widest number that an instruction on floating-point
/// numbers names if that is wider.
#[derive(Clone, PartialEq, Eq)]
pub struct UserStep {
    pub(crate) inner: Arc<Checked>,
}

/// The parts of a user-defined step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) program: Program,
    pub(crate) element: Element,
    /// Bytes of a register, at least those of an element.
    pub(crate) register_bytes: usize,
    pub(crate) writes: bool,
    pub(crate) total: Option<Total>,
    /// Registers besides `r0`.
    pub(crate) registers: Vec<Register>,
    /// Constants that are operands, each once.
    pub(crate) constants: Vec<u64>,
}

impl UserStep {
    /// Checks a step.
    ///
    /// # Errors
    /// A [`VerifyError`]: an instruction that is not for steps, a register that is read before it is written, a shift
    /// by more than the width, a constant wider than the registers, a second total, more than
    /// [`MAX_STEP_INSTRUCTIONS`].
    pub fn new(program: Program, element: Element) -> Result<UserStep, VerifyError> {
        verify::step(program, element).map(|checked| UserStep { inner: Arc::new(checked) })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.program.name
    }

    /// The instructions.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// What it works on.
    pub fn element(&self) -> Element {
        self.inner.element
    }

    /// Whether elements change.
    pub fn writes(&self) -> bool {
        self.inner.writes
    }

    /// The reduction, if the step has one.
    pub fn total(&self) -> Option<Total> {
        self.inner.total
    }
}

impl Checked {
    /// Whether it computes with floating-point numbers.
    pub(crate) fn has_floats(&self) -> bool {
        self.program.instructions.iter().any(|instruction| instruction.float_bytes().is_some())
    }
}

impl Instruction {
    /// The register that a computation sets.
    pub(crate) fn destination(&self) -> Option<Register> {
        match self {
            Instruction::Set { d, .. }
            | Instruction::Compute { d, .. }
            | Instruction::FloatBinary { d, .. }
            | Instruction::FloatUnary { d, .. }
            | Instruction::Convert { d, .. }
            | Instruction::Load { d, .. }
            | Instruction::StepResult { d, .. } => Some(*d),
            Instruction::Total { .. }
            | Instruction::If { .. }
            | Instruction::Goto { .. }
            | Instruction::Deliver { .. }
            | Instruction::Reply { .. }
            | Instruction::Send { .. }
            | Instruction::Accept
            | Instruction::Drop => None,
        }
    }

    /// Bytes of the widest number of an instruction on floating-point numbers; `None` for the others.
    pub(crate) fn float_bytes(&self) -> Option<usize> {
        match self {
            Instruction::FloatBinary { format, .. }
            | Instruction::FloatUnary { format, .. }
            | Instruction::Total { total: Total::AddFloat(format), .. } => Some(format.bytes()),
            Instruction::Convert { conversion, .. } => Some(conversion.bytes()),
            Instruction::Set { .. }
            | Instruction::Compute { .. }
            | Instruction::Total { .. }
            | Instruction::Load { .. }
            | Instruction::If { .. }
            | Instruction::Goto { .. }
            | Instruction::Deliver { .. }
            | Instruction::StepResult { .. }
            | Instruction::Reply { .. }
            | Instruction::Send { .. }
            | Instruction::Accept
            | Instruction::Drop => None,
        }
    }
}

impl fmt::Debug for UserStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.name())
    }
}

/// All bits of a number of so many bytes.
pub(crate) fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

impl Operation {
    /// The result, not yet truncated to a width.
    pub(crate) fn apply(self, s: u64, t: u64) -> u64 {
        match self {
            Operation::Add => s.wrapping_add(t),
            Operation::Sub => s.wrapping_sub(t),
            Operation::Mul => s.wrapping_mul(t),
            Operation::And => s & t,
            Operation::Or => s | t,
            Operation::Xor => s ^ t,
            Operation::Min => s.min(t),
            Operation::Max => s.max(t),
            Operation::Shl => s << t,
            Operation::Shr => s >> t,
        }
    }
}

impl Total {
    /// The total of no element, in registers of `bytes` bytes.
    pub(crate) fn initial(self, bytes: usize) -> u64 {
        match self {
            Total::Add | Total::Xor | Total::Or | Total::Max | Total::AddFloat(_) => 0,
            Total::And | Total::Min => mask(bytes),
        }
    }

    /// The operation that adds a number to the total.
    pub(crate) fn operation(self) -> TotalOperation {
        TotalOperation::Integer(match self {
            Total::Add => Operation::Add,
            Total::Xor => Operation::Xor,
            Total::And => Operation::And,
            Total::Or => Operation::Or,
            Total::Min => Operation::Min,
            Total::Max => Operation::Max,
            Total::AddFloat(format) => return TotalOperation::FloatSum(format),
        })
    }

    /// The total with one number more, not yet truncated to a width.
    fn apply(self, sum: u64, number: u64) -> u64 {
        match self.operation() {
            TotalOperation::Integer(operation) => operation.apply(sum, number),
            TotalOperation::FloatSum(format) => FloatOperation::Add.apply(format, sum, number),
        }
    }
}

/// How a number is added to a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TotalOperation {
    /// In any order.
    Integer(Operation),
    /// In the order of the elements.
    FloatSum(FloatFormat),
}

impl Condition {
    pub(crate) fn holds<N: PartialOrd>(self, s: N, t: N) -> bool {
        match self {
            Condition::Eq => s == t,
            Condition::Ne => s != t,
            Condition::Lt => s < t,
            Condition::Le => s <= t,
            Condition::Gt => s > t,
            Condition::Ge => s >= t,
        }
    }
}

impl Element {
    /// Reads the first bytes of `bytes`, which is long enough.
    pub(crate) fn read(self, bytes: &[u8]) -> u64 {
        let own = bytes[..self.bytes].iter();
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self.order {
            Order::Little => own.rev().fold(0, add),
            Order::Big => own.fold(0, add),
        }
    }

    /// The bytes of a number: the first `self.bytes` of what is returned.
    pub(crate) fn write(self, value: u64) -> [u8; 8] {
        match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => (value << (64 - 8 * self.bytes)).to_be_bytes(),
        }
    }
}

impl UserStep {
    /// The total of no data; 0 if the step has no total.
    pub(crate) fn initial_total(&self) -> u64 {
        self.inner.total.map_or(0, |total| total.initial(self.inner.register_bytes))
    }

    /// Applies the step to data and returns the total, which is `sum` before them.
    pub(crate) fn apply(&self, data: &mut [u8], mut sum: u64) -> u64 {
        let Checked { program, element, register_bytes, .. } = &*self.inner;
        let mask = mask(*register_bytes);
        for bytes in data.chunks_exact_mut(element.bytes) {
            let mut registers = [0; REGISTERS];
            registers[0] = element.read(bytes);
            for instruction in &program.instructions {
                let value = |operand: Operand| match operand {
                    Operand::Register(register) => registers[usize::from(register.0)],
                    Operand::Constant(value) => value,
                };
                match *instruction {
                    Instruction::Set { d, value: from } => registers[usize::from(d.0)] = value(from),
                    Instruction::Compute { operation, d, s, t } => {
                        let result = operation.apply(value(Operand::Register(s)), value(t));
                        registers[usize::from(d.0)] = result & mask;
                    }
                    Instruction::FloatBinary { operation, format, d, s, t } => {
                        registers[usize::from(d.0)] = operation.apply(format, value(Operand::Register(s)), value(t));
                    }
                    Instruction::FloatUnary { function, format, d, s } => {
                        registers[usize::from(d.0)] = function.apply(format, value(Operand::Register(s)));
                    }
                    Instruction::Convert { conversion, d, s } => {
                        registers[usize::from(d.0)] = conversion.apply(value(Operand::Register(s)));
                    }
                    Instruction::Total { total, s } => {
                        sum = total.apply(sum, registers[usize::from(s.0)]) & mask;
                    }
                    Instruction::Load { .. }
                    | Instruction::If { .. }
                    | Instruction::Goto { .. }
                    | Instruction::Deliver { .. }
                    | Instruction::StepResult { .. }
                    | Instruction::Reply { .. }
                    | Instruction::Send { .. }
                    | Instruction::Accept
                    | Instruction::Drop => unreachable!("`verify::step` lets no such instruction through"),
                }
            }
            bytes.copy_from_slice(&element.write(registers[0])[..element.bytes]);
        }
        sum
    }
}
