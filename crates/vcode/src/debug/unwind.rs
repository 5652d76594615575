//! How to find the caller at every instruction: call frame information for `.eh_frame`, read off the code itself by the
//! decoder. The prologue, calls with arguments on the stack and the epilogue are all that moves the stack pointer.

use std::string::{String, ToString};
use std::vec::Vec;

use super::Described;
use super::elf::{put_u32, put_uleb};
use crate::decode;

/// What DWARF calls the registers of x86-64, by their names.
const REGISTERS: [(&str, u8); 17] = [
    ("rax", 0),
    ("rdx", 1),
    ("rcx", 2),
    ("rbx", 3),
    ("rsi", 4),
    ("rdi", 5),
    ("rbp", 6),
    ("rsp", 7),
    ("r8", 8),
    ("r9", 9),
    ("r10", 10),
    ("r11", 11),
    ("r12", 12),
    ("r13", 13),
    ("r14", 14),
    ("r15", 15),
    ("return address", 16),
];

const STACK: u64 = 7;
const RETURN_ADDRESS: u8 = 16;

const DEFINE_CFA: u8 = 0x0c;
const DEFINE_CFA_OFFSET: u8 = 0x0e;
const ADVANCE: u8 = 0x04;
const OFFSET: u8 = 0x80;
const RESTORE: u8 = 0xc0;

/// Something that changes how the caller is found, behind the instruction that ends at `at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The stack pointer was lowered by so many bytes in all.
    Depth(u64),
    /// A register is so many bytes above the stack pointer.
    Saved(u8, u64),
}

/// The section `.eh_frame` for one function.
pub(super) fn eh_frame(described: &Described<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    // The common part: version 1, `R` says how addresses are written: as they are.
    let mut common = Vec::from(&b"\0\0\0\0\x01zR\0"[..]);
    put_uleb(&mut common, 1);
    common.push(0x78); // data is counted in units of -8
    common.push(RETURN_ADDRESS);
    put_uleb(&mut common, 1);
    common.push(0);
    common.push(DEFINE_CFA);
    put_uleb(&mut common, STACK);
    put_uleb(&mut common, 8);
    common.push(OFFSET | RETURN_ADDRESS);
    put_uleb(&mut common, 1);
    record(&mut out, common);
    let mut own = Vec::new();
    put_u32(&mut own, out.len() as u32 + 4);
    own.extend((described.entry as u64).to_le_bytes());
    own.extend((described.code.len() as u64).to_le_bytes());
    put_uleb(&mut own, 0);
    let mut before = 0;
    let mut depth = 0;
    let mut saved = Vec::new();
    for (at, change) in changes(described) {
        own.push(ADVANCE);
        put_u32(&mut own, (at - before) as u32);
        before = at;
        match change {
            Change::Depth(now) => {
                own.push(DEFINE_CFA_OFFSET);
                put_uleb(&mut own, now + 8);
                if now == 0 {
                    own.extend(saved.drain(..).map(|register: u8| RESTORE | register));
                }
                depth = now;
            }
            Change::Saved(register, above) => {
                own.push(OFFSET | register);
                put_uleb(&mut own, (depth + 8).saturating_sub(above) / 8);
                saved.push(register);
            }
        }
    }
    record(&mut out, own);
    put_u32(&mut out, 0);
    out
}

/// Adds a record with its length in front, padded.
fn record(out: &mut Vec<u8>, mut body: Vec<u8>) {
    while !(body.len() + 4).is_multiple_of(8) {
        body.push(0);
    }
    put_u32(out, body.len() as u32);
    out.extend(body);
}

fn changes(described: &Described<'_>) -> Vec<(usize, Change)> {
    let mut changes = Vec::new();
    let mut depth = 0_u64;
    let mut at = 0;
    while let Some(decoded) = described.code.get(at..).and_then(|rest| decode::X86_64.decode(rest)) {
        let start = at;
        at += decoded.length;
        let text: String = decoded.to_string();
        if let Some(bytes) = moved(&text, "subq $") {
            depth = depth.wrapping_add(bytes);
            changes.push((at, Change::Depth(depth)));
        } else if let Some(bytes) = moved(&text, "addq $") {
            depth = depth.wrapping_sub(bytes);
            changes.push((at, Change::Depth(depth)));
        } else if start < described.prologue
            && let Some((register, above)) = saved(&text)
        {
            changes.push((at, Change::Saved(register, above)));
        }
    }
    changes
}

/// By how much an instruction moves the stack pointer.
fn moved(text: &str, operation: &str) -> Option<u64> {
    text.strip_prefix(operation)?.strip_suffix(",%rsp")?.parse().ok()
}

/// The register that an instruction of the prologue saves, and where.
fn saved(text: &str) -> Option<(u8, u64)> {
    let (register, place) = text.strip_prefix("movq %")?.split_once(',')?;
    let above = place.strip_suffix("(%rsp)")?.parse().ok()?;
    let (_, number) = REGISTERS.iter().find(|(name, _)| *name == register)?;
    Some((*number, above))
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn what_moves_the_stack_pointer_is_seen() {
        assert_eq!(moved("subq $72,%rsp", "subq $"), Some(72));
        assert_eq!(moved("subq $72,%rax", "subq $"), None);
        assert_eq!(saved("movq %rbx,16(%rsp)"), Some((3, 16)));
        assert_eq!(saved("movq 16(%rsp),%rbx"), None);
        let code = [0x48, 0x81, 0xec, 0x18, 0, 0, 0, 0x48, 0x81, 0xc4, 0x18, 0, 0, 0, 0xc3];
        let described = Described { name: "f", entry: 0, code: &code, prologue: 7, source: "f", lines: &[] };
        assert_eq!(changes(&described), vec![(7, Change::Depth(24)), (14, Change::Depth(0))]);
    }
}
