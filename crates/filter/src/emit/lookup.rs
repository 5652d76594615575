//! The code of a group from its key on: hash, slot, comparison, and the walk along a list where filters of one key
//! differ in ranges. `table.rs` says what a slot is.

use super::registers::Registers;
use super::{Emitter, Reg};
use crate::group::GroupData;
use crate::ir::Sense;
use crate::table::Table;
use quaject_vcode::{Core, Error, Label};

/// Writes a lookup: the rank to `result`, or a jump to `miss`.
pub(super) fn write(
    emitter: &mut Emitter<'_>,
    data: &GroupData,
    registers: &Registers,
    result: Reg,
    miss: Label,
) -> Result<(), Error> {
    let table = &data.table;
    let slots = start(table);
    if registers.key.is_empty() {
        emitter.asm.setul(result, slots);
        emitter.asm.lduli(result, result, 0);
    } else {
        let slot = emitter.temporary()?;
        write_slot(emitter, data, registers, slot, result)?;
        // The head is loaded before the key; see `table.rs`.
        let head = result;
        let word = emitter.temporary()?;
        emitter.asm.lduli(head, slot, 0);
        for (at, own) in registers.key.iter().enumerate() {
            emitter.asm.lduli(word, slot, 8 * (at as i32 + 1));
            emitter.asm.bneul(word, *own, miss);
        }
        emitter.asm.putreg(word);
        emitter.asm.putreg(slot);
    }
    if data.layout.has_lists() { write_list(emitter, data, registers, result, miss) } else { Ok(()) }
}

/// The address of the first slot.
pub(super) fn start(table: &Table) -> u64 {
    table.slots[table.origin..].as_ptr() as u64
}

/// The address of the key's slot to `slot`.
fn write_slot(
    emitter: &mut Emitter<'_>,
    data: &GroupData,
    registers: &Registers,
    slot: Reg,
    t: Reg,
) -> Result<(), Error> {
    match data.table.hash.part {
        Some(part) => {
            emitter.asm.rshuli(slot, registers.key[part.word], part.shift.into());
            write_part(emitter, data, slot);
        }
        None => write_offset(emitter, data, &registers.key, slot, t)?,
    }
    emitter.asm.setul(t, start(&data.table));
    emitter.asm.addul(slot, slot, t);
    Ok(())
}

/// The offset in bytes of a key's slot, from the bits of the key in the lower half of `slot`.
pub(super) fn write_part(emitter: &mut Emitter<'_>, data: &GroupData, slot: Reg) {
    let hash = &data.table.hash;
    emitter.asm.mului(slot, slot, hash.first as u32);
    match hash.slot_bits {
        0 => emitter.asm.setul(slot, 0),
        bits => emitter.asm.rshui(slot, slot, 32 - bits),
    }
    emitter.asm.lshuli(slot, slot, 3 + u64::from(data.table.stride_bits));
}

/// The offset of the slot from all words of the key.
pub(super) fn write_offset(
    emitter: &mut Emitter<'_>,
    data: &GroupData,
    key: &[Reg],
    slot: Reg,
    t: Reg,
) -> Result<(), Error> {
    let (table, hash) = (&data.table, &data.table.hash);
    let asm = &mut emitter.asm;
    let Some((first, rest)) = key.split_first() else { return Ok(()) };
    if rest.is_empty() {
        asm.setul(slot, hash.first);
        asm.mulul(slot, slot, *first);
    } else {
        asm.setul(slot, hash.fold);
        asm.mulul(slot, slot, *first);
        for (at, word) in rest.iter().enumerate() {
            if at > 0 {
                asm.setul(t, hash.fold);
                asm.mulul(slot, slot, t);
            }
            asm.addul(slot, slot, *word);
        }
        asm.setul(t, hash.first);
        asm.mulul(slot, slot, t);
    }
    if let Some(bits) = hash.bucket_bits {
        let u = emitter.temporary()?;
        let asm = &mut emitter.asm;
        asm.rshuli(t, slot, 64 - u64::from(bits));
        asm.lshuli(t, t, 2);
        asm.setul(u, table.displacements.as_ptr() as u64);
        asm.ldu(t, u, t);
        asm.mulul(slot, slot, t);
        asm.putreg(u);
    }
    let asm = &mut emitter.asm;
    let unit = 3 + u64::from(table.stride_bits);
    asm.rshuli(slot, slot, 64 - u64::from(hash.slot_bits));
    asm.lshuli(slot, slot, unit);
    Ok(())
}

/// Walks the list at `result`, best rank first; the first member whose ranges all hold has the rank.
///
/// ```text
/// | members | rank | low, high - low | .. | rank | .. |
/// ```
fn write_list(
    emitter: &mut Emitter<'_>,
    data: &GroupData,
    registers: &Registers,
    result: Reg,
    miss: Label,
) -> Result<(), Error> {
    let senses: Vec<Sense> = data
        .layout
        .shape
        .checks
        .iter()
        .zip(&data.layout.listed)
        .filter(|(_, listed)| **listed)
        .map(|(check, _)| check.sense)
        .collect();
    let stride = 8 * (1 + senses.len() as u64);
    let (at, end, t) = (emitter.temporary()?, emitter.temporary()?, emitter.temporary()?);
    let asm = &mut emitter.asm;
    let (again, next, found) = (asm.label(), asm.label(), asm.label());
    // The key has no filter any more.
    asm.bequli(result, 0, miss);
    asm.lduli(end, result, 0);
    asm.addpi(at, result, 8);
    asm.setul(t, stride);
    asm.mulul(end, end, t);
    asm.addul(end, end, at);
    asm.bind(again);
    for (position, (sense, number)) in senses.iter().zip(&registers.numbers).enumerate() {
        let own = 8 * (position as i32 + 1);
        asm.ldui(t, at, own);
        asm.ldui(result, at, own + 4);
        asm.subu(t, *number, t);
        match sense {
            Sense::Inside => asm.bgtu(t, result, next),
            Sense::Outside => asm.bleu(t, result, next),
        }
    }
    asm.j(found);
    asm.bind(next);
    asm.addpi(at, at, stride);
    asm.bneul(at, end, again);
    asm.j(miss);
    asm.bind(found);
    asm.lduli(result, at, 0);
    for register in [at, end, t] {
        asm.putreg(register);
    }
    Ok(())
}
