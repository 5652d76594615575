//! Validation: every instruction is known, jumps stay inside the program, and control cannot run off its end. Follows
//! `bpf_validate` of libpcap and `bpf_check_classic` of Linux where they agree.

use super::{Arithmetic, Instruction, MAX_INSTRUCTIONS, MEMORY_WORDS, Operand, Operation};
use crate::error::Error;

/// The offsets of data that Linux keeps next to a packet (from `SKF_LL_OFF` to `SKF_AD_OFF + SKF_AD_MAX`): as offsets
/// into the packet they would reject every packet, without a word.
const FIRST_ANCILLARY: u32 = -0x20_0000_i32 as u32;
const LAST_ANCILLARY: u32 = -0x1000_i32 as u32 + 63;

pub(super) fn validate(instructions: &[Instruction]) -> Result<Vec<Operation>, Error> {
    let wrong = |at: usize, why: &'static str| Error::Bytecode { at, why };
    if instructions.is_empty() {
        return Err(wrong(0, "the program has no instruction"));
    }
    if instructions.len() > MAX_INSTRUCTIONS {
        return Err(wrong(MAX_INSTRUCTIONS, "the program has more than 2^20 instructions"));
    }
    let mut operations = Vec::with_capacity(instructions.len());
    for (at, instruction) in instructions.iter().enumerate() {
        let operation = Operation::of(*instruction).ok_or(wrong(at, "no instruction has this code"))?;
        let inside = |by: i64| (0..instructions.len() as i64).contains(&(at as i64 + 1 + by));
        match operation {
            Operation::LoadMemory(k) | Operation::IndexMemory(k) | Operation::Store(k) | Operation::StoreIndex(k) => {
                if k as usize >= MEMORY_WORDS {
                    return Err(wrong(at, "scratch memory has 16 words"));
                }
            }
            Operation::Arithmetic(Arithmetic::Div | Arithmetic::Mod, Operand::Constant(0)) => {
                return Err(wrong(at, "division by the constant zero"));
            }
            Operation::Arithmetic(Arithmetic::Lsh | Arithmetic::Rsh, Operand::Constant(32..)) => {
                return Err(wrong(at, "a shift by 32 or more"));
            }
            Operation::LoadAbsolute(_, FIRST_ANCILLARY..=LAST_ANCILLARY)
            | Operation::IndexHeader(FIRST_ANCILLARY..=LAST_ANCILLARY) => {
                return Err(wrong(at, "a load of data that only the kernel has, such as the direction of a packet"));
            }
            Operation::Jump(by) => {
                if !inside(i64::from(by)) {
                    return Err(wrong(at, "a jump out of the program"));
                }
            }
            Operation::Branch(_, _, jt, jf) => {
                if !inside(i64::from(jt)) || !inside(i64::from(jf)) {
                    return Err(wrong(at, "a jump out of the program"));
                }
            }
            Operation::LoadConstant(_)
            | Operation::LoadAbsolute(..)
            | Operation::LoadIndirect(..)
            | Operation::LoadLength
            | Operation::IndexConstant(_)
            | Operation::IndexLength
            | Operation::IndexHeader(_)
            | Operation::Arithmetic(..)
            | Operation::Negate
            | Operation::Return(_)
            | Operation::ReturnAccumulator
            | Operation::Tax
            | Operation::Txa => {}
        }
        operations.push(operation);
    }
    match operations.last() {
        Some(Operation::Return(_) | Operation::ReturnAccumulator) => Ok(operations),
        Some(_) | None => Err(wrong(instructions.len() - 1, "the last instruction does not return")),
    }
}
