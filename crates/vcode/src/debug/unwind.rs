//! Call frame information for `.eh_frame`, derived from the code by the decoder. Only the prologue, calls with
//! arguments on the stack and the epilogues move the stack pointer.

use std::string::{String, ToString};
use std::vec::Vec;

use super::FunctionInfo;
use super::bytes::{put_u32, put_uleb};
use crate::decode::{self, Table};
use crate::machine::Machine;

/// The properties of a machine that unwinding needs, and the effect of its instructions on the stack.
struct Frames {
    table: &'static Table,
    /// The DWARF number of the stack pointer.
    stack: u64,
    /// The DWARF number of the return address: that of the link register, or a separate one.
    return_address: u8,
    /// The number of bytes that a call pushes: the return address, unless it is in a register.
    pushed: u64,
    /// The effect of an instruction on the frame. The number is the value of the scratch register, by which a large
    /// frame is entered.
    effect: fn(&str, u64) -> Option<Effect>,
}

/// The effect of an instruction on the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The stack pointer is lowered by so many bytes, or raised by the complement.
    Lower(u64),
    /// A register, by its DWARF number, is stored at this offset from the stack pointer.
    Store(u8, u64),
    /// The scratch register is set to this value.
    Scratch(u64),
    /// The function returns.
    Return,
}

impl Frames {
    /// Those of the machines that have code memory.
    fn of(machine: &str) -> Option<Frames> {
        match machine {
            "x86_64" => {
                Some(Frames { table: &decode::X86_64, stack: 7, return_address: 16, pushed: 8, effect: effect_x86_64 })
            }
            "aarch64" => Some(Frames {
                table: &decode::AARCH64,
                stack: 31,
                return_address: 30,
                pushed: 0,
                effect: effect_aarch64,
            }),
            "riscv64" => {
                Some(Frames { table: &decode::RISCV64, stack: 2, return_address: 1, pushed: 0, effect: effect_riscv64 })
            }
            _ => None,
        }
    }
}

/// The register by its place in the list of DWARF.
fn effect_x86_64(text: &str, _: u64) -> Option<Effect> {
    const REGISTERS: [&str; 16] =
        ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    let moved = || operands.strip_prefix('$')?.strip_suffix(",%rsp")?.parse::<u64>().ok();
    match operation {
        "subq" => Some(Effect::Lower(moved()?)),
        "ret" => Some(Effect::Return),
        "addq" => Some(Effect::Lower(moved()?.wrapping_neg())),
        "movq" => {
            let (register, place) = operands.strip_prefix('%')?.split_once(',')?;
            let number = REGISTERS.iter().position(|name| *name == register)?;
            Some(Effect::Store(number as u8, place.strip_suffix("(%rsp)")?.parse().ok()?))
        }
        _ => None,
    }
}

/// `x` registers have their numbers, `d` registers those from 64.
fn effect_aarch64(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    let moved = || match operands.strip_prefix("sp,sp,")? {
        "x16" => Some(scratch),
        bytes => bytes.parse::<u64>().ok(),
    };
    let part = |register: &str| {
        let (bits, shift) = operands.strip_prefix(register)?.split_once(",lsl ")?;
        Some(bits.parse::<u64>().ok()? << shift.parse::<u32>().ok().filter(|shift| *shift < 64)?)
    };
    match operation {
        "sub" => Some(Effect::Lower(moved()?)),
        "add" => Some(Effect::Lower(moved()?.wrapping_neg())),
        "ret" => Some(Effect::Return),
        "movz" => Some(Effect::Scratch(part("w16,")?)),
        "movk" => Some(Effect::Scratch(scratch | part("x16,")?)),
        "str" => {
            let (register, place) = operands.split_once(",[sp,")?;
            let number = match register.split_at_checked(1)? {
                ("x", number) => number.parse().ok()?,
                ("d", number) => number.parse::<u8>().ok()?.checked_add(64)?,
                _ => return None,
            };
            Some(Effect::Store(number, place.strip_suffix(']')?.parse().ok()?))
        }
        _ => None,
    }
}

/// Integer registers have their numbers, floating ones those from 32.
fn effect_riscv64(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ')?;
    let number = |text: &str| text.parse::<i64>().ok().map(|number| number as u64);
    match operation {
        "addi" => Some(Effect::Lower(number(operands.strip_prefix("sp,sp,")?)?.wrapping_neg())),
        "add" => (operands == "sp,sp,t5").then(|| Effect::Lower(scratch.wrapping_neg())),
        "jalr" => (operands == "zero,0(ra)").then_some(Effect::Return),
        "lui" => Some(Effect::Scratch((number(operands.strip_prefix("t5,")?)? << 12) as i32 as u64)),
        "addiw" => Some(Effect::Scratch(scratch.wrapping_add(number(operands.strip_prefix("t5,t5,")?)?) as i32 as u64)),
        "sd" | "fsd" => {
            let (register, place) = operands.split_once(',')?;
            let names = decode::RISCV64.names.get(usize::from(operation == "fsd"))?;
            let number = names.iter().position(|name| *name == register)? as u8;
            let number = if operation == "fsd" { number + 32 } else { number };
            Some(Effect::Store(number, place.strip_suffix("(sp)")?.parse().ok()?))
        }
        _ => None,
    }
}

const ADVANCE: u8 = 0x04;
const OFFSET_EXTENDED: u8 = 0x05;
const RESTORE_EXTENDED: u8 = 0x06;
const REMEMBER_STATE: u8 = 0x0a;
const RESTORE_STATE: u8 = 0x0b;
const DEFINE_CFA: u8 = 0x0c;
const DEFINE_CFA_OFFSET: u8 = 0x0e;

/// Something that changes how the caller is found, behind the instruction that ends at `at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The stack pointer was lowered by so many bytes in all.
    Depth(u64),
    /// A register is so many bytes above the stack pointer.
    Saved(u8, u64),
    /// The function was left: what follows is in the body, or its end, again.
    Left,
}

/// The section `.eh_frame` for one function, if it is known how frames of this machine are unwound.
pub(super) fn eh_frame<M: Machine>(described: &FunctionInfo<'_>) -> Option<Vec<u8>> {
    let frames = Frames::of(M::NAME)?;
    let mut out = Vec::new();
    // The common part: version 1, `R` says how addresses are written: as they are.
    let mut common = Vec::from(&b"\0\0\0\0\x01zR\0"[..]);
    put_uleb(&mut common, 1);
    common.push(0x78); // data is counted in units of -8
    common.push(frames.return_address);
    put_uleb(&mut common, 1);
    common.push(0);
    common.push(DEFINE_CFA);
    put_uleb(&mut common, frames.stack);
    put_uleb(&mut common, frames.pushed);
    if frames.pushed != 0 {
        common.push(OFFSET_EXTENDED);
        put_uleb(&mut common, u64::from(frames.return_address));
        put_uleb(&mut common, 1);
    }
    record(&mut out, common);
    let mut own = Vec::new();
    put_u32(&mut own, out.len() as u32 + 4);
    own.extend((described.entry as u64).to_le_bytes());
    own.extend((described.code.len() as u64).to_le_bytes());
    put_uleb(&mut own, 0);
    let mut before = 0;
    let mut depth = 0;
    let mut saved = Vec::new();
    for (at, change) in changes(&frames, described) {
        own.push(ADVANCE);
        put_u32(&mut own, (at - before) as u32);
        before = at;
        match change {
            Change::Depth(0) => {
                own.extend([REMEMBER_STATE, DEFINE_CFA_OFFSET]);
                put_uleb(&mut own, frames.pushed);
                for register in &saved {
                    own.push(RESTORE_EXTENDED);
                    put_uleb(&mut own, u64::from(*register));
                }
            }
            Change::Depth(now) => {
                own.push(DEFINE_CFA_OFFSET);
                put_uleb(&mut own, now.wrapping_add(frames.pushed));
                depth = now;
            }
            Change::Saved(register, above) => {
                own.push(OFFSET_EXTENDED);
                put_uleb(&mut own, u64::from(register));
                put_uleb(&mut own, depth.wrapping_add(frames.pushed).saturating_sub(above) / 8);
                saved.push(register);
            }
            Change::Left => own.push(RESTORE_STATE),
        }
    }
    record(&mut out, own);
    put_u32(&mut out, 0);
    Some(out)
}

/// Adds a record with its length in front, padded.
fn record(out: &mut Vec<u8>, mut body: Vec<u8>) {
    while !(body.len() + 4).is_multiple_of(8) {
        body.push(0);
    }
    put_u32(out, body.len() as u32);
    out.extend(body);
}

fn changes(frames: &Frames, described: &FunctionInfo<'_>) -> Vec<(usize, Change)> {
    let mut changes = Vec::new();
    let (mut depth, mut entered, mut scratch) = (0_u64, 0, 0);
    let mut at = 0;
    while let Some(decoded) = described.code.get(at..).and_then(|rest| frames.table.decode(rest)) {
        let start = at;
        at += decoded.length;
        let text: String = decoded.to_string();
        match (frames.effect)(&text, scratch) {
            Some(Effect::Lower(bytes)) => {
                depth = depth.wrapping_add(bytes);
                if start < described.prologue {
                    entered = depth;
                }
                changes.push((at, Change::Depth(depth)));
            }
            Some(Effect::Store(register, above)) if start < described.prologue => {
                changes.push((at, Change::Saved(register, above)));
            }
            Some(Effect::Scratch(holds)) => scratch = holds,
            // In a body that has a frame, which its epilogue has given back.
            Some(Effect::Return) if entered != 0 && depth == 0 => {
                depth = entered;
                changes.push((at, Change::Left));
            }
            Some(Effect::Store(..) | Effect::Return) | None => {}
        }
    }
    // Nothing follows the end of the function.
    if matches!(changes.last(), Some((end, Change::Left)) if *end == described.code.len()) {
        changes.pop();
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn what_moves_the_stack_pointer_is_seen() {
        for (text, expected) in [
            ("subq $72,%rsp", Some(Effect::Lower(72))),
            ("addq $72,%rsp", Some(Effect::Lower(72_u64.wrapping_neg()))),
            ("subq $72,%rax", None),
            ("movq %rbx,16(%rsp)", Some(Effect::Store(3, 16))),
            ("movq 16(%rsp),%rbx", None),
            ("ret", Some(Effect::Return)),
        ] {
            assert_eq!(effect_x86_64(text, 0), expected, "{text}");
        }
        for (text, expected) in [
            ("sub sp,sp,32", Some(Effect::Lower(32))),
            ("add sp,sp,x16", Some(Effect::Lower(0x12345_u64.wrapping_neg()))),
            ("add x1,sp,32", None),
            ("movz w16,18,lsl 16", Some(Effect::Scratch(0x12_0000))),
            ("movk x16,1,lsl 16", Some(Effect::Scratch(0x12345))),
            ("str x30,[sp,0]", Some(Effect::Store(30, 0))),
            ("str d8,[sp,40]", Some(Effect::Store(72, 40))),
            ("str w8,[sp,40]", None),
            ("ret x30", Some(Effect::Return)),
        ] {
            assert_eq!(effect_aarch64(text, 0x12345), expected, "{text}");
        }
        for (text, expected) in [
            ("addi sp,sp,-32", Some(Effect::Lower(32))),
            ("add sp,sp,t5", Some(Effect::Lower(4096))),
            ("addi t5,sp,32", None),
            ("lui t5,1048575", Some(Effect::Scratch(4096_u64.wrapping_neg()))),
            ("addiw t5,t5,-16", Some(Effect::Scratch(4112_u64.wrapping_neg()))),
            ("sd ra,0(sp)", Some(Effect::Store(1, 0))),
            ("fsd fs0,40(sp)", Some(Effect::Store(40, 40))),
            ("sd s0,8(t0)", None),
            ("jalr zero,0(ra)", Some(Effect::Return)),
            ("jalr zero,0(t5)", None),
        ] {
            assert_eq!(effect_riscv64(text, 4096_u64.wrapping_neg()), expected, "{text}");
        }
    }

    #[test]
    fn what_follows_an_epilogue_is_in_the_body() {
        let epilogue = [0x48, 0x81, 0xc4, 0x18, 0, 0, 0, 0xc3];
        let code = [&[0x48, 0x81, 0xec, 0x18, 0, 0, 0][..], &epilogue, &epilogue].concat();
        let described = FunctionInfo { name: "f", entry: 0, code: &code, prologue: 7, sources: &["f"], lines: &[] };
        let frames = Frames::of("x86_64").expect("it has code memory");
        assert_eq!(
            changes(&frames, &described),
            vec![(7, Change::Depth(24)), (14, Change::Depth(0)), (15, Change::Left), (22, Change::Depth(0))]
        );
    }
}
