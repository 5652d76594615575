//! The instructions of LANai as LLVM's back end has them: words to operations. Knows no memory and no time.
//!
//! The encodings are the formats RI, RR, RM, RRM, BR, BRR, SCC, SLS, SLI, SPLS and Special, which LLVM 14 describes in
//! `llvm/lib/Target/Lanai/LanaiInstrFormats.td`. A word is an instruction if LLVM's disassembler accepts it, except
//! for loads and stores of less than a word at a shifted address, where that description and that program disagree.

use crate::processor::Width;

/// One of the 32 registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(u8);

impl Register {
    /// Always 0.
    pub const ZERO: Register = Register(0);
    /// Always 0xffff_ffff.
    pub const ONES: Register = Register(1);
    /// The address of the instruction that reads it.
    pub const PC: Register = Register(2);
    /// The stack pointer.
    pub const SP: Register = Register(4);
    /// The frame pointer.
    pub const FP: Register = Register(5);
    /// The result of a function.
    pub const RV: Register = Register(8);

    /// The register in the five bits of `word` above `lowest_bit`.
    fn of_field(word: u32, lowest_bit: u32) -> Register {
        Register((word >> lowest_bit & 31) as u8)
    }

    /// Its number.
    #[inline]
    pub fn number(self) -> usize {
        usize::from(self.0 & 31)
    }

    /// The set of this register.
    #[inline]
    pub(super) fn mask(self) -> u32 {
        1 << (self.0 & 31)
    }
}

/// An operation of the arithmetic unit, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AluOperation {
    /// a + b
    Add,
    /// a + b + carry
    AddCarry,
    /// a - b, computed as a + !b + 1
    Subtract,
    /// a + !b + carry
    SubtractBorrow,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// A shift to the left by b, or to the right by -b, which shifts in zeros.
    ShiftLogical,
    /// The same, which shifts in copies of the sign.
    ShiftArithmetic,
}

impl AluOperation {
    /// The operation of the three bits `AAA` or `BBB`; 7 is decoded by the format.
    fn of_code(code: u32) -> Option<AluOperation> {
        Some(match code {
            0 => AluOperation::Add,
            1 => AluOperation::AddCarry,
            2 => AluOperation::Subtract,
            3 => AluOperation::SubtractBorrow,
            4 => AluOperation::And,
            5 => AluOperation::Or,
            6 => AluOperation::Xor,
            _ => return None,
        })
    }

    /// The operation of a register format, from `BBB` and `JJJJJ`.
    fn of_register_code(word: u32) -> Option<AluOperation> {
        match (word >> 8 & 7, word >> 3 & 31) {
            (7, 0b10000) => Some(AluOperation::ShiftLogical),
            (7, 0b11000) => Some(AluOperation::ShiftArithmetic),
            (code, _) => AluOperation::of_code(code),
        }
    }
}

/// Whether an operation sets the flags (`F`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// They stay as they are.
    Keep,
    /// They are set from the result.
    Set,
}

impl Flags {
    fn of(word: u32) -> Flags {
        if word >> 17 & 1 == 1 { Flags::Set } else { Flags::Keep }
    }
}

/// The four bits `DDDI`: a function of the flags, and whether it is inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition(u8);

impl Condition {
    /// Holds always.
    pub const TRUE: Condition = Condition(0);

    /// Its code, below 16.
    #[inline]
    pub fn code(self) -> usize {
        usize::from(self.0 & 15)
    }
}

/// Where a load or store takes its address from, and what it adds to the base register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A base register and a constant.
    Offset {
        /// The base.
        base: Register,
        /// The constant.
        offset: i16,
        /// Which of both is the address, and whether the base changes.
        mode: AddressMode,
    },
    /// A base register and another register, combined by an operation.
    Index {
        /// The base.
        base: Register,
        /// The other operand.
        index: Register,
        /// The operation.
        operation: AluOperation,
        /// As for the constant.
        mode: AddressMode,
    },
    /// A constant.
    Absolute(u32),
}

/// The bits `P` and `Q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMode {
    /// The address is the base.
    Base,
    /// The address is the base, which then becomes the sum.
    PostUpdate,
    /// The address is the sum.
    Sum,
    /// The address is the sum, which the base becomes.
    PreUpdate,
}

impl AddressMode {
    fn of_code(code: u32) -> AddressMode {
        match code & 3 {
            0 => AddressMode::Base,
            1 => AddressMode::PostUpdate,
            2 => AddressMode::Sum,
            _ => AddressMode::PreUpdate,
        }
    }

    /// Whether the base register changes.
    pub(super) fn updates_base(self) -> bool {
        matches!(self, AddressMode::PostUpdate | AddressMode::PreUpdate)
    }
}

/// What a load does with the bits above the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// They are copies of the sign.
    Sign,
    /// They are zero.
    Zero,
}

/// A function of one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitCount {
    /// The number of ones.
    Ones,
    /// The number of zeros above the highest one.
    LeadingZeros,
    /// The number of zeros below the lowest one.
    TrailingZeros,
}

/// An instruction. `rd`, `rs1` and `rs2` are the registers that LLVM's description names so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Nothing: the words 1 (`nop`) to 6 (`log_4`), by number.
    Nop(u8),
    /// RI: `rd = rs1 op constant`.
    AluImmediate {
        /// The operation.
        operation: AluOperation,
        /// Whether it sets the flags.
        flags: Flags,
        /// The result.
        rd: Register,
        /// The first operand.
        rs1: Register,
        /// The second operand, extended to 32 bits.
        immediate: u32,
    },
    /// RR: `rd = rs1 op rs2` if the condition holds.
    AluRegister {
        /// The operation.
        operation: AluOperation,
        /// Whether it sets the flags.
        flags: Flags,
        /// Without it, nothing changes.
        condition: Condition,
        /// The result.
        rd: Register,
        /// The first operand.
        rs1: Register,
        /// The second operand.
        rs2: Register,
    },
    /// RR: `rd = condition ? rs1 : rs2`.
    Select {
        /// The condition.
        condition: Condition,
        /// The result.
        rd: Register,
        /// The result if it holds.
        rs1: Register,
        /// The result if it does not.
        rs2: Register,
    },
    /// Special: a count of bits.
    Count {
        /// Which.
        count: BitCount,
        /// The result.
        rd: Register,
        /// The operand.
        rs1: Register,
    },
    /// RM, RRM, SLS, SPLS: a load.
    Load {
        /// The result.
        rd: Register,
        /// From where.
        address: Address,
        /// How much.
        width: Width,
        /// The bits above.
        extension: Extension,
    },
    /// RM, RRM, SLS, SPLS: a store.
    Store {
        /// The value.
        rd: Register,
        /// To where.
        address: Address,
        /// How much.
        width: Width,
    },
    /// SLI: `rd = constant`, with the timing of a load.
    LoadImmediate {
        /// The result.
        rd: Register,
        /// The constant of 21 bits.
        value: u32,
    },
    /// BR: a jump to a constant address.
    Branch {
        /// When it jumps.
        condition: Condition,
        /// To where.
        target: u32,
    },
    /// BRR with base register 0, the only form LLVM decodes: a jump to a sign-extended constant.
    BranchOffset {
        /// When it jumps.
        condition: Condition,
        /// To where.
        target: i16,
    },
    /// SCC: `rd = condition ? 1 : 0`.
    SetCondition {
        /// The condition.
        condition: Condition,
        /// The result.
        rd: Register,
    },
}

impl Instruction {
    /// The instruction of a word, if it is one.
    pub fn decode(word: u32) -> Option<Instruction> {
        match word >> 28 {
            0..=7 => Some(decode_immediate(word)),
            8 | 9 => Some(decode_offset(word)),
            10 | 11 => decode_index(word),
            12 => decode_register(word),
            13 => decode_count(word),
            14 => decode_branch(word),
            _ => decode_special(word),
        }
    }

    /// The set of registers that the instruction reads, for the delay of a load's result.
    pub(super) fn registers_read(self) -> u32 {
        match self {
            Instruction::Nop(_) | Instruction::LoadImmediate { .. } => 0,
            Instruction::AluImmediate { rs1, .. } | Instruction::Count { rs1, .. } => rs1.mask(),
            Instruction::AluRegister { rs1, rs2, .. } | Instruction::Select { rs1, rs2, .. } => rs1.mask() | rs2.mask(),
            Instruction::Load { address, .. } => address_registers(address),
            Instruction::Store { rd, address, .. } => rd.mask() | address_registers(address),
            Instruction::Branch { .. } | Instruction::BranchOffset { .. } | Instruction::SetCondition { .. } => 0,
        }
    }
}

fn address_registers(address: Address) -> u32 {
    match address {
        Address::Offset { base, .. } => base.mask(),
        Address::Index { base, index, .. } => base.mask() | index.mask(),
        Address::Absolute(_) => 0,
    }
}

/// `|0.A.A.A| Rd | Rs1 |F.H| constant (16) |`
fn decode_immediate(word: u32) -> Instruction {
    if (1..=6).contains(&word) {
        return Instruction::Nop(word as u8);
    }
    let is_high = word >> 16 & 1 == 1;
    let constant = word & 0xffff;
    let (operation, immediate) = match AluOperation::of_code(word >> 28) {
        Some(AluOperation::And) if is_high => (AluOperation::And, constant << 16 | 0xffff),
        Some(AluOperation::And) => (AluOperation::And, constant | 0xffff_0000),
        Some(operation) if is_high => (operation, constant << 16),
        Some(operation) => (operation, constant),
        None if is_high => (AluOperation::ShiftArithmetic, sign_extend(constant, 16)),
        None => (AluOperation::ShiftLogical, sign_extend(constant, 16)),
    };
    let (rd, rs1) = (Register::of_field(word, 23), Register::of_field(word, 18));
    Instruction::AluImmediate { operation, flags: Flags::of(word), rd, rs1, immediate }
}

/// `|1.0.0.S| Rd | Rs1 |P.Q| constant (16) |`
fn decode_offset(word: u32) -> Instruction {
    let mode = AddressMode::of_code(word >> 16);
    let address = Address::Offset { base: Register::of_field(word, 18), offset: word as u16 as i16, mode };
    let rd = Register::of_field(word, 23);
    match word >> 28 & 1 {
        0 => Instruction::Load { rd, address, width: Width::Word, extension: Extension::Sign },
        _ => Instruction::Store { rd, address, width: Width::Word },
    }
}

/// `|1.0.1.S| Rd | Rs1 |P.Q| Rs2 |B.B.B|J.J.J.J.J|Y.L.E|`
fn decode_index(word: u32) -> Option<Instruction> {
    let operation = AluOperation::of_register_code(word)?;
    let (base, index) = (Register::of_field(word, 18), Register::of_field(word, 11));
    let address = Address::Index { base, index, operation, mode: AddressMode::of_code(word >> 16) };
    let rd = Register::of_field(word, 23);
    let width = match word >> 1 & 3 {
        0 => Width::Half,
        1 => Width::Word,
        2 => Width::Byte,
        _ => return None,
    };
    if word >> 8 & 7 == 7 && width != Width::Word {
        return None;
    }
    let extension = if word & 1 == 1 { Extension::Zero } else { Extension::Sign };
    match (word >> 28 & 1, extension) {
        (0, _) => Some(Instruction::Load { rd, address, width, extension }),
        (_, Extension::Sign) => Some(Instruction::Store { rd, address, width }),
        (_, Extension::Zero) => None,
    }
}

/// `|1.1.0.0| Rd | Rs1 |F.I| Rs2 |B.B.B|J.J.J.J.J|D.D.D|`
fn decode_register(word: u32) -> Option<Instruction> {
    let condition = Condition(((word & 7) << 1 | word >> 16 & 1) as u8);
    let (rd, rs1) = (Register::of_field(word, 23), Register::of_field(word, 18));
    let (rs2, flags) = (Register::of_field(word, 11), Flags::of(word));
    match (word >> 8 & 7, word >> 3 & 31, flags) {
        (7, 0, Flags::Keep) => return Some(Instruction::Select { condition, rd, rs1, rs2 }),
        (7, 0, Flags::Set) => return None,
        (7, ..) | (_, 0, _) => {}
        _ => return None,
    }
    let operation = AluOperation::of_register_code(word)?;
    Some(Instruction::AluRegister { operation, flags, condition, rd, rs1, rs2 })
}

/// `|1.1.0.1| Rd | Rs1 |F.-| . . . . | . . | . . . . | OP |`
fn decode_count(word: u32) -> Option<Instruction> {
    let count = match word & 0x3ffff {
        1 => BitCount::Ones,
        2 => BitCount::LeadingZeros,
        3 => BitCount::TrailingZeros,
        _ => return None,
    };
    Some(Instruction::Count { count, rd: Register::of_field(word, 23), rs1: Register::of_field(word, 18) })
}

/// `|1.1.1.0|D.D.D| constant (23) |0.I|`, `|1.1.1.0|D.D.D|1|0| Rs1 |0.0| constant (14) |1.I|` with `Rs1` 0, and
/// `|1.1.1.0|D.D.D|0|0| Rs1 |0 ..|1.I|`.
fn decode_branch(word: u32) -> Option<Instruction> {
    let condition = Condition((word >> 24 & 14 | word & 1) as u8);
    if word & 2 == 0 {
        return Some(Instruction::Branch { condition, target: word & 0x01ff_fffc });
    }
    match word & 0x01ff_fffc {
        fields if fields & 0x01ff_0000 == 0x0100_0000 => {
            Some(Instruction::BranchOffset { condition, target: (word & 0xfffc) as u16 as i16 })
        }
        fields if fields & !0x007c_0000 == 0 => {
            Some(Instruction::SetCondition { condition, rd: Register::of_field(word, 18) })
        }
        _ => None,
    }
}

/// `|1.1.1.1| Rd | 5 high bits |0.S| 16 low bits |`, `|1.1.1.1| Rd | 5 high bits |1.0| 16 low bits |`, and
/// `|1.1.1.1| Rd | Rs1 |1.1.0.Y.S.E.P.Q| constant (10) |`.
fn decode_special(word: u32) -> Option<Instruction> {
    let rd = Register::of_field(word, 23);
    let value = (word >> 18 & 31) << 16 | word & 0xffff;
    match word >> 16 & 3 {
        0 => {
            let address = Address::Absolute(value);
            Some(Instruction::Load { rd, address, width: Width::Word, extension: Extension::Sign })
        }
        1 => Some(Instruction::Store { rd, address: Address::Absolute(value), width: Width::Word }),
        2 => Some(Instruction::LoadImmediate { rd, value }),
        _ => decode_part_word(word),
    }
}

fn decode_part_word(word: u32) -> Option<Instruction> {
    if word >> 15 & 1 == 1 {
        return None;
    }
    let rd = Register::of_field(word, 23);
    let offset = sign_extend(word & 0x3ff, 10) as i16;
    let mode = AddressMode::of_code(word >> 10);
    let address = Address::Offset { base: Register::of_field(word, 18), offset, mode };
    let width = if word >> 14 & 1 == 1 { Width::Byte } else { Width::Half };
    let extension = if word >> 12 & 1 == 1 { Extension::Zero } else { Extension::Sign };
    match (word >> 13 & 1, extension) {
        (0, _) => Some(Instruction::Load { rd, address, width, extension }),
        (_, Extension::Sign) => Some(Instruction::Store { rd, address, width }),
        (_, Extension::Zero) => None,
    }
}

/// The low `bits` of a value, with the highest of them as sign.
fn sign_extend(value: u32, bits: u32) -> u32 {
    ((value << (32 - bits)) as i32 >> (32 - bits)) as u32
}
