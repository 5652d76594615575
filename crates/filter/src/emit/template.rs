//! The code of a small group: the slot from a few bits of the packet, then all compared bytes in one vector, see
//! `template.rs` of the crate. A packet that differs from its template matches no filter; or, if filters allow headers
//! of any length, its header may have another length than the usual one: the general form is out of line and joins
//! behind the comparison.

use super::group::{self, LoadPlan};
use super::lookup;
use super::{Emitter, Rare, Reg};
use crate::group::GroupData;
use crate::layout::Window;
use crate::template::{BYTES, OptionlessHeader, Template};
use quaject_vcode::{Core, Error, Label, Vectors};

/// Bytes of a slot; its template is at the end.
const SLOT: i32 = 64;
const WITHIN: i32 = SLOT - BYTES as i32;

/// Packets that do not equal their template, or are shorter.
pub(super) struct Different<'a> {
    data: &'a GroupData,
    general: LoadPlan,
    optionless: Option<OptionlessHeader>,
    /// The label that the comparison jumps to, while vectors are in use.
    different: Label,
    /// The label that code before the comparison jumps to.
    begin: Label,
    join: Label,
    miss: Label,
    result: Reg,
}

/// Writes the lookup of a packet: the rank to `result`, or a jump to `miss`. Returns false and writes nothing if the
/// processor has no such vectors.
pub(super) fn write<'a>(
    emitter: &mut Emitter<'a>,
    data: &'a GroupData,
    template: &Template,
    result: Reg,
    miss: Label,
) -> Result<bool, Error> {
    let general = LoadPlan::general(data);
    if !general.is_writable() || emitter.asm.vector_width(8 * BYTES as u32).is_err() {
        return Ok(false);
    }
    let (different, join) = (emitter.asm.label(), emitter.asm.label());
    let begin = if template.optionless.is_some() { emitter.asm.label() } else { miss };
    emitter.asm.bltuli(emitter.length, template.need, begin);
    group::write_checks(emitter, data, result, begin)?;
    let slot = emitter.temporary()?;
    write_place(emitter, data, slot, result)?;
    let (packet, own, mask) = (emitter.asm.getvector()?, emitter.asm.getvector()?, emitter.asm.getvector()?);
    let asm = &mut emitter.asm;
    asm.setul(result, lookup::start(&data.table));
    asm.vld(mask, result, WITHIN - SLOT);
    asm.addul(slot, slot, result);
    // The head before the template; see `table.rs`.
    asm.lduli(result, slot, 0);
    asm.vld(own, slot, WITHIN);
    asm.vld(packet, emitter.data, template.start as i32);
    asm.vxor(packet, packet, own);
    asm.vbany(packet, mask, different);
    asm.vend();
    asm.bind(join);
    for vector in [packet, own, mask] {
        asm.putvector(vector);
    }
    asm.putreg(slot);
    let optionless = template.optionless;
    emitter.rare.push(Rare::Different(Different { data, general, optionless, different, begin, join, miss, result }));
    Ok(true)
}

/// Computes the offset of a packet's slot, in bytes.
fn write_place(emitter: &mut Emitter<'_>, data: &GroupData, slot: Reg, t: Reg) -> Result<(), Error> {
    let flat = |window: Window| {
        let offset = OptionlessHeader::flat(window.offset, window.base).ok_or(Error::Immediate)?;
        Ok(Window { base: 0, offset, ..window })
    };
    let bases = [emitter.data];
    if let Some(part) = data.table.hash.part {
        let own = flat(data.layout.key[part.word])?;
        let window = Window {
            offset: own.offset + part.shift / 8,
            width: own.width.min(4),
            mask: own.mask >> part.shift & u64::from(group::full(own.width.min(4))),
            ..own
        };
        group::write_window(emitter, slot, window, &bases);
        lookup::write_part(emitter, data, slot);
        return Ok(());
    }
    if data.layout.key.is_empty() {
        emitter.asm.setul(slot, 0);
    }
    let mut key = Vec::new();
    for window in &data.layout.key {
        let word = emitter.temporary()?;
        group::write_window(emitter, word, flat(*window)?, &bases);
        key.push(word);
    }
    lookup::write_offset(emitter, data, &key, slot, t)?;
    for word in key {
        emitter.asm.putreg(word);
    }
    Ok(())
}

/// Writes the code for packets that differ from their template.
pub(super) fn write_different(emitter: &mut Emitter<'_>, own: &Different<'_>) -> Result<(), Error> {
    emitter.asm.bind(own.different);
    emitter.asm.vend();
    let Some(optionless) = own.optionless else {
        emitter.asm.j(own.miss);
        return Ok(());
    };
    emitter.asm.bind(own.begin);
    let registers = own.general.allocate(emitter, own.result)?;
    group::write_with_options(emitter, &own.general, optionless, &registers, own.miss)?;
    lookup::write(emitter, own.data, &registers, own.result, own.miss)?;
    emitter.asm.j(own.join);
    registers.free(emitter);
    Ok(())
}
