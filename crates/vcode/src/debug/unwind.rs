//! Call frame information for `.eh_frame`, derived from the code by the decoder. Only the prologue, calls with
//! arguments on the stack and the epilogues move the stack pointer. What an instruction does to the frame of a machine
//! is in `effects.rs`.

use std::string::ToString;
use std::vec::Vec;

use super::FunctionInfo;
use super::bytes::put_uleb;
use super::effects::{Effect, Frames};
use crate::machine::Machine;

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

/// Bytes that the unit of offsets from the frame has: half a slot, for MIPS' floating registers.
const UNIT: u64 = 4;

/// The section `.eh_frame` for one function.
pub(super) fn eh_frame<M: Machine>(described: &FunctionInfo<'_>) -> Vec<u8> {
    let frames = Frames::of(M::NAME).expect("each machine's instructions are listed");
    let mut out = Vec::new();
    // The common part: version 1, `R` says how addresses are written: as they are.
    let mut common = Vec::from(&b"\0\0\0\0\x01zR\0"[..]);
    put_uleb(&mut common, 1);
    common.push(0x80 - UNIT as u8); // data is counted in units of so many bytes downwards
    common.push(frames.return_address);
    put_uleb(&mut common, 1);
    common.push(0);
    common.push(DEFINE_CFA);
    put_uleb(&mut common, frames.stack);
    put_uleb(&mut common, frames.pushed + frames.bias);
    if frames.pushed != 0 {
        common.push(OFFSET_EXTENDED);
        put_uleb(&mut common, u64::from(frames.return_address));
        put_uleb(&mut common, frames.pushed / UNIT);
    }
    put_record::<M>(&mut out, common);
    let mut own = Vec::new();
    put_word::<M>(&mut own, out.len() as u32 + 4);
    put_address::<M>(&mut own, described.entry as u64);
    put_address::<M>(&mut own, described.code.len() as u64);
    put_uleb(&mut own, 0);
    let mut before = 0;
    let mut depth = 0;
    let mut saved = Vec::new();
    for (at, change) in changes::<M>(&frames, described) {
        own.push(ADVANCE);
        put_word::<M>(&mut own, (at - before) as u32);
        before = at;
        match change {
            Change::Depth(0) => {
                own.extend([REMEMBER_STATE, DEFINE_CFA_OFFSET]);
                put_uleb(&mut own, frames.pushed + frames.bias);
                for register in &saved {
                    own.push(RESTORE_EXTENDED);
                    put_uleb(&mut own, u64::from(*register));
                }
            }
            Change::Depth(now) => {
                own.push(DEFINE_CFA_OFFSET);
                put_uleb(&mut own, now.wrapping_add(frames.pushed + frames.bias));
                depth = now;
            }
            Change::Saved(register, above) => {
                own.push(OFFSET_EXTENDED);
                put_uleb(&mut own, u64::from(register));
                put_uleb(&mut own, depth.wrapping_add(frames.pushed).saturating_sub(above) / UNIT);
                saved.push(register);
            }
            Change::Left => own.push(RESTORE_STATE),
        }
    }
    put_record::<M>(&mut out, own);
    put_word::<M>(&mut out, 0);
    out
}

/// Adds a record with its length in front, padded.
fn put_record<M: Machine>(out: &mut Vec<u8>, mut body: Vec<u8>) {
    while !(body.len() + 4).is_multiple_of(8) {
        body.push(0);
    }
    put_word::<M>(out, body.len() as u32);
    out.extend(body);
}

/// Adds four bytes in the machine's order.
fn put_word<M: Machine>(out: &mut Vec<u8>, value: u32) {
    out.extend(if M::LITTLE_ENDIAN { value.to_le_bytes() } else { value.to_be_bytes() });
}

/// Adds an address of the machine's size in its order.
fn put_address<M: Machine>(out: &mut Vec<u8>, value: u64) {
    match M::LONG_BITS {
        32 => put_word::<M>(out, value as u32),
        _ => out.extend(if M::LITTLE_ENDIAN { value.to_le_bytes() } else { value.to_be_bytes() }),
    }
}

fn changes<M: Machine>(frames: &Frames, described: &FunctionInfo<'_>) -> Vec<(usize, Change)> {
    let mut changes = Vec::new();
    let (mut depth, mut entered, mut scratch) = (0_u64, 0, 0);
    let mut at = 0;
    while let Some(decoded) = described.code.get(at..).and_then(|rest| frames.table.decode(rest)) {
        let start = at;
        at += decoded.length;
        let text = decoded.to_string().replace(frames.table.prefix, "");
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
            Some(Effect::StorePair(register, above)) if start < described.prologue => {
                changes.push((at, Change::Saved(register + 1, above)));
                changes.push((at, Change::Saved(register, above + 4)));
            }
            Some(Effect::Scratch(holds)) => scratch = holds,
            // In a body that has a frame, which its epilogue has given back.
            Some(Effect::Return) if entered != 0 && depth == 0 => {
                depth = entered;
                // The instruction in the delay slot is executed before the function is left.
                changes.push((at + if M::DELAY_SLOTS { 4 } else { 0 }, Change::Left));
            }
            Some(Effect::Store(..) | Effect::StorePair(..) | Effect::Return) | None => {}
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
    fn what_follows_an_epilogue_is_in_the_body() {
        let epilogue = [0x48, 0x81, 0xc4, 0x18, 0, 0, 0, 0xc3];
        let code = [&[0x48, 0x81, 0xec, 0x18, 0, 0, 0][..], &epilogue, &epilogue].concat();
        let described = FunctionInfo { name: "f", entry: 0, code: &code, prologue: 7, sources: &["f"], lines: &[] };
        let frames = Frames::of("x86_64").expect("it is listed");
        assert_eq!(
            changes::<crate::x86_64::X86_64>(&frames, &described),
            vec![(7, Change::Depth(24)), (14, Change::Depth(0)), (15, Change::Left), (22, Change::Depth(0))]
        );
    }
}
