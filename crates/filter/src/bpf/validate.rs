//! Validation: every instruction is known, jumps stay inside the program, and control cannot run off its end. Follows
//! `bpf_validate` of libpcap and `bpf_check_classic` of Linux where they agree.

use super::{Arithmetic, Instruction, MAX_INSTRUCTIONS, MEMORY_WORDS, Operand, Operation};
use crate::error::Error;

pub(super) fn validate(instructions: &[Instruction]) -> Result<Vec<Operation>, Error> {
    let wrong = |at: usize, why: &'static str| Error::Bytecode { at, why };
    if instructions.is_empty() {
        return Err(wrong(0, "the program has no instruction"));
    }
    if instructions.len() > MAX_INSTRUCTIONS {
        return Err(wrong(MAX_INSTRUCTIONS, "the program has more than 4096 instructions"));
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
