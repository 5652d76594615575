//! Instructions as LLVM's disassembler prints them. Knows no encoding.

use std::fmt;

use super::instruction::{
    Address, AddressMode, AluOperation, BitCount, Condition, Extension, Flags, Instruction, Register,
};
use crate::processor::Width;

const REGISTERS: [&str; 32] = [
    "r0", "r1", "pc", "r3", "sp", "fp", "r6", "r7", "rv", "r9", "rr1", "rr2", "r12", "r13", "r14", "rca", "r16", "r17",
    "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31",
];

const CONDITIONS: [&str; 16] =
    ["t", "f", "ugt", "ule", "ult", "uge", "ne", "eq", "vc", "vs", "pl", "mi", "ge", "lt", "gt", "le"];

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", REGISTERS[self.number()])
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CONDITIONS[self.code()])
    }
}

impl fmt::Display for AluOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AluOperation::Add => "add",
            AluOperation::AddCarry => "addc",
            AluOperation::Subtract => "sub",
            AluOperation::SubtractBorrow => "subb",
            AluOperation::And => "and",
            AluOperation::Or => "or",
            AluOperation::Xor => "xor",
            AluOperation::ShiftLogical => "sh",
            AluOperation::ShiftArithmetic => "sha",
        })
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flags::Keep => Ok(()),
            Flags::Set => f.write_str(".f"),
        }
    }
}

/// `add.f.ne`, and no suffix for the condition that always holds.
struct Predicate(Condition);

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Condition::TRUE => Ok(()),
            condition => write!(f, ".{condition}"),
        }
    }
}

/// A number as LLVM's `formatHex`: the sign, then the magnitude.
struct SignedHex(i32);

impl fmt::Display for SignedHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

/// An address, for an access of this width.
struct Operand(Address, Width);

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Address::Offset { base, offset, mode } => {
                let is_step = u32::from(offset.unsigned_abs()) == self.1.bytes();
                let step = if offset < 0 { "--" } else { "++" };
                match mode {
                    AddressMode::Base => write!(f, "0[{base}]"),
                    AddressMode::Sum => write!(f, "{offset}[{base}]"),
                    AddressMode::PostUpdate if is_step => write!(f, "[{base}{step}]"),
                    AddressMode::PreUpdate if is_step => write!(f, "[{step}{base}]"),
                    AddressMode::PostUpdate => write!(f, "{offset}[{base}*]"),
                    AddressMode::PreUpdate => write!(f, "{offset}[*{base}]"),
                }
            }
            Address::Index { base, index, operation, mode } => match mode {
                AddressMode::Base => write!(f, "[{base} {operation} {}]", Register::ZERO),
                AddressMode::Sum => write!(f, "[{base} {operation} {index}]"),
                AddressMode::PostUpdate => write!(f, "[{base}* {operation} {index}]"),
                AddressMode::PreUpdate => write!(f, "[*{base} {operation} {index}]"),
            },
            Address::Absolute(address) => write!(f, "[{address:#x}]"),
        }
    }
}

fn width_suffix(width: Width) -> &'static str {
    match width {
        Width::Byte => ".b",
        Width::Half => ".h",
        Width::Word => "",
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Instruction::Nop(1) => write!(f, "nop"),
            Instruction::Nop(number) => write!(f, "log_{}", number.saturating_sub(2)),
            Instruction::AluImmediate { operation, flags, rd, rs1, immediate } => match (operation, flags, rs1) {
                (AluOperation::Add, Flags::Keep, Register::ZERO) | (AluOperation::And, Flags::Keep, Register::ONES) => {
                    write!(f, "mov {immediate:#x}, {rd}")
                }
                (AluOperation::ShiftLogical | AluOperation::ShiftArithmetic, ..) => {
                    write!(f, "{operation}{flags} {rs1}, {}, {rd}", SignedHex(immediate as i32))
                }
                _ => write!(f, "{operation}{flags} {rs1}, {immediate:#x}, {rd}"),
            },
            Instruction::AluRegister { operation, flags, condition, rd, rs1, rs2 } => {
                match (operation, flags, condition, rd, rs1, rs2) {
                    (AluOperation::Add, Flags::Keep, Condition::TRUE, _, _, Register::ZERO) => {
                        write!(f, "mov {rs1}, {rd}")
                    }
                    (AluOperation::Or, Flags::Keep, Condition::TRUE, Register::PC, Register::ZERO, _) => {
                        write!(f, "bt {rs2}")
                    }
                    (AluOperation::Or, Flags::Keep, _, Register::PC, _, Register::ZERO) => {
                        write!(f, "b{condition} {rs1}")
                    }
                    // LLVM's name of this form says `add`; its encoding, and what it does, is `or`.
                    (AluOperation::Or, Flags::Keep, _, Register::PC, ..) => write!(f, "b{condition} {rs1} add {rs2}"),
                    _ => write!(f, "{operation}{flags}{} {rs1}, {rs2}, {rd}", Predicate(condition)),
                }
            }
            Instruction::Select { condition, rd, rs1, rs2 } => write!(f, "sel.{condition} {rs1}, {rs2}, {rd}"),
            Instruction::Count { count, rd, rs1 } => {
                let name = match count {
                    BitCount::Ones => "popc",
                    BitCount::LeadingZeros => "leadz",
                    BitCount::TrailingZeros => "trailz",
                };
                write!(f, "{name} {rs1}, {rd}")
            }
            Instruction::Load { rd, address, width, extension } => {
                let unsigned = if extension == Extension::Zero { "u" } else { "" };
                write!(f, "{unsigned}ld{} {}, {rd}", width_suffix(width), Operand(address, width))
            }
            Instruction::Store { rd, address, width } => {
                write!(f, "st{} {rd}, {}", width_suffix(width), Operand(address, width))
            }
            Instruction::LoadImmediate { rd, value } => write!(f, "mov {value:#x}, {rd}"),
            Instruction::Branch { condition, target } => write!(f, "b{condition} {target:#x}"),
            Instruction::BranchOffset { condition, target } => write!(f, "b{condition}.r {:#x}", target as u16),
            Instruction::SetCondition { condition, rd } => write!(f, "s{condition} {rd}"),
        }
    }
}
