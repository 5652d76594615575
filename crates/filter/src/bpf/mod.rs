//! Classic BPF programs (BSD packet filter), the target of libpcap's compiler: instructions, validation, and the
//! interpreter that defines the semantics. Knows no generated code.

#[cfg(feature = "pcap")]
mod join;
mod run;
mod scratch;
mod text;
mod validate;

#[cfg(feature = "pcap")]
pub(crate) use join::Joined;
pub use text::{Disassembly, assemble};

use crate::error::Error;
use std::sync::Arc;

/// An instruction, as in `struct bpf_insn`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct Instruction {
    /// Class, size, mode, operation and source, as in `<pcap/bpf.h>`.
    pub code: u16,
    /// How many instructions to pass over if the condition holds.
    pub jt: u8,
    /// How many if it does not.
    pub jf: u8,
    /// The constant.
    pub k: u32,
}

impl Instruction {
    /// An instruction that is no conditional jump.
    pub const fn new(code: u16, k: u32) -> Instruction {
        Instruction { code, jt: 0, jf: 0, k }
    }

    /// A conditional jump.
    pub const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
        Instruction { code, jt, jf, k }
    }
}

/// How many words of scratch memory a program has.
pub const MEMORY_WORDS: usize = 16;
/// The most instructions a program may have. The kernel takes 4096; libpcap has no limit.
pub const MAX_INSTRUCTIONS: usize = 1 << 20;
/// How often a program may jump backwards for one packet. Only libpcap's `protochain` does, once for each header of a
/// chain; a program that does it more often rejects the packet, so that every program ends.
pub const MAX_BACKWARD_JUMPS: u32 = 65_536;

/// The part of a packet that an instruction loads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// Four bytes.
    Word,
}

impl Size {
    /// How many bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Size::Byte => 1,
            Size::Half => 2,
            Size::Word => 4,
        }
    }
}

/// The operations of the machine: the meaning of the codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `A = k`.
    LoadConstant(u32),
    /// `A = packet[k]`.
    LoadAbsolute(Size, u32),
    /// `A = packet[X + k]`.
    LoadIndirect(Size, u32),
    /// `A = length of the packet on the wire`.
    LoadLength,
    /// `A = memory[k]`.
    LoadMemory(u32),
    /// `X = k`.
    IndexConstant(u32),
    /// `X = length of the packet on the wire`.
    IndexLength,
    /// `X = memory[k]`.
    IndexMemory(u32),
    /// `X = 4 * (packet[k] & 15)`: the length of an IPv4 header.
    IndexHeader(u32),
    /// `memory[k] = A`.
    Store(u32),
    /// `memory[k] = X`.
    StoreIndex(u32),
    /// `A = A op operand`.
    Arithmetic(Arithmetic, Operand),
    /// `A = -A`.
    Negate,
    /// A jump by so many instructions; backwards if negative.
    Jump(i32),
    /// A jump by the first number of instructions if the condition holds, else by the second.
    Branch(Condition, Operand, u8, u8),
    /// Ends with this verdict; zero rejects.
    Return(u32),
    /// Ends with the verdict in A.
    ReturnAccumulator,
    /// `X = A`.
    Tax,
    /// `A = X`.
    Txa,
}

/// The second operand of arithmetic and conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A constant.
    Constant(u32),
    /// X.
    Index,
}

/// Arithmetic on 32 bits that wraps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arithmetic {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Division without sign; by zero, the packet is rejected.
    Div,
    /// Remainder; by zero, the packet is rejected.
    Mod,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left; zero for a count of 32 or more.
    Lsh,
    /// Shift right; zero for a count of 32 or more.
    Rsh,
}

/// A condition on A and an operand, without sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// Equal.
    Equal,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterEqual,
    /// A common bit.
    Set,
}

const LD: u16 = 0;
const LDX: u16 = 1;
const ST: u16 = 2;
const STX: u16 = 3;
const ALU: u16 = 4;
const JMP: u16 = 5;
const RET: u16 = 6;
const MISC: u16 = 7;

const ARITHMETIC: [(u16, Arithmetic); 10] = [
    (0x00, Arithmetic::Add),
    (0x10, Arithmetic::Sub),
    (0x20, Arithmetic::Mul),
    (0x30, Arithmetic::Div),
    (0x40, Arithmetic::Or),
    (0x50, Arithmetic::And),
    (0x60, Arithmetic::Lsh),
    (0x70, Arithmetic::Rsh),
    (0x90, Arithmetic::Mod),
    (0xa0, Arithmetic::Xor),
];

const CONDITIONS: [(u16, Condition); 4] =
    [(0x10, Condition::Equal), (0x20, Condition::Greater), (0x30, Condition::GreaterEqual), (0x40, Condition::Set)];

impl Operation {
    /// The meaning of an instruction, if its code has one. Exactly these codes are understood by `bpf_filter`; with any
    /// other it aborts.
    pub fn of(instruction: Instruction) -> Option<Operation> {
        let Instruction { code, jt, jf, k } = instruction;
        let size = match code & 0x18 {
            0x00 => Some(Size::Word),
            0x08 => Some(Size::Half),
            0x10 => Some(Size::Byte),
            _ => None,
        };
        let operand = if code & 0x08 == 0 { Operand::Constant(k) } else { Operand::Index };
        let operation = match (code & 0x07, code & !0x07) {
            (LD, 0x00) => Operation::LoadConstant(k),
            (LD, mode) if mode & 0xe0 == 0x20 && mode >> 8 == 0 => Operation::LoadAbsolute(size?, k),
            (LD, mode) if mode & 0xe0 == 0x40 && mode >> 8 == 0 => Operation::LoadIndirect(size?, k),
            (LD, 0x60) => Operation::LoadMemory(k),
            (LD, 0x80) => Operation::LoadLength,
            (LDX, 0x00) => Operation::IndexConstant(k),
            (LDX, 0x60) => Operation::IndexMemory(k),
            (LDX, 0x80) => Operation::IndexLength,
            (LDX, 0xb0) => Operation::IndexHeader(k),
            (ST, 0) => Operation::Store(k),
            (STX, 0) => Operation::StoreIndex(k),
            (ALU, 0x80) => Operation::Negate,
            (ALU, rest) => {
                let (_, arithmetic) = ARITHMETIC.into_iter().find(|(code, _)| *code == rest & !0x08)?;
                Operation::Arithmetic(arithmetic, operand)
            }
            (JMP, 0x00) => Operation::Jump(k as i32),
            (JMP, rest) => {
                let (_, condition) = CONDITIONS.into_iter().find(|(code, _)| *code == rest & !0x08)?;
                Operation::Branch(condition, operand, jt, jf)
            }
            (RET, 0x00) => Operation::Return(k),
            (RET, 0x10) => Operation::ReturnAccumulator,
            (MISC, 0x00) => Operation::Tax,
            (MISC, 0x80) => Operation::Txa,
            _ => return None,
        };
        Some(operation)
    }

    /// The encoding of this operation.
    pub fn instruction(self) -> Instruction {
        let size = |size: Size| match size {
            Size::Word => 0x00,
            Size::Half => 0x08,
            Size::Byte => 0x10,
        };
        let source = |operand: Operand| match operand {
            Operand::Constant(k) => (0x00, k),
            Operand::Index => (0x08, 0),
        };
        match self {
            Operation::LoadConstant(k) => Instruction::new(LD, k),
            Operation::LoadAbsolute(part, k) => Instruction::new(LD | 0x20 | size(part), k),
            Operation::LoadIndirect(part, k) => Instruction::new(LD | 0x40 | size(part), k),
            Operation::LoadMemory(k) => Instruction::new(LD | 0x60, k),
            Operation::LoadLength => Instruction::new(LD | 0x80, 0),
            Operation::IndexConstant(k) => Instruction::new(LDX, k),
            Operation::IndexMemory(k) => Instruction::new(LDX | 0x60, k),
            Operation::IndexLength => Instruction::new(LDX | 0x80, 0),
            Operation::IndexHeader(k) => Instruction::new(LDX | 0xb0, k),
            Operation::Store(k) => Instruction::new(ST, k),
            Operation::StoreIndex(k) => Instruction::new(STX, k),
            Operation::Negate => Instruction::new(ALU | 0x80, 0),
            Operation::Arithmetic(wanted, operand) => {
                let code = ARITHMETIC.into_iter().find(|(_, own)| *own == wanted).map_or(0, |(code, _)| code);
                let (from, k) = source(operand);
                Instruction::new(ALU | code | from, k)
            }
            Operation::Jump(by) => Instruction::new(JMP, by as u32),
            Operation::Branch(wanted, operand, jt, jf) => {
                let code = CONDITIONS.into_iter().find(|(_, own)| *own == wanted).map_or(0, |(code, _)| code);
                let (from, k) = source(operand);
                Instruction::jump(JMP | code | from, k, jt, jf)
            }
            Operation::Return(k) => Instruction::new(RET, k),
            Operation::ReturnAccumulator => Instruction::new(RET | 0x10, 0),
            Operation::Tax => Instruction::new(MISC, 0),
            Operation::Txa => Instruction::new(MISC | 0x80, 0),
        }
    }
}

/// A valid program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Program {
    operations: Arc<[Operation]>,
}

impl Program {
    /// Checks instructions as `bpf_validate` does, and more: codes that `bpf_filter` would abort at and constant shifts
    /// by 32 or more, which C leaves undefined, are refused. Jumps backwards are allowed, as in libpcap; see
    /// [`MAX_BACKWARD_JUMPS`].
    ///
    /// # Errors
    /// [`Error::Bytecode`] with the first instruction that is wrong.
    pub fn new(instructions: &[Instruction]) -> Result<Program, Error> {
        validate::validate(instructions).map(|operations| Program { operations: operations.into() })
    }

    /// The program that returns `accepted` for what joined programs accept.
    ///
    /// # Errors
    /// [`Error::Bytecode`] if they are too long together.
    #[cfg(feature = "pcap")]
    pub(crate) fn join(joined: &Joined, accepted: u32) -> Result<Program, Error> {
        let instructions: Vec<_> = joined.assemble(accepted).into_iter().map(Operation::instruction).collect();
        Program::new(&instructions)
    }

    /// The operations of the program, one for each instruction.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The instructions as libpcap knows them.
    pub fn instructions(&self) -> Vec<Instruction> {
        self.operations.iter().map(|operation| operation.instruction()).collect()
    }

    /// Whether it has no jump backwards.
    pub fn is_acyclic(&self) -> bool {
        !self.operations.iter().any(|operation| matches!(operation, Operation::Jump(by) if *by < 0))
    }
}
