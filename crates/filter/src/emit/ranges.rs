//! The code of a stage of ranges: an index for each number, without branches; then the blocks that have bits in all
//! rows. `ranges/mod.rs` has the picture.

use super::group::{full, load_number};
use super::{Emitter, Last, Reg};
use crate::ranges::{Axis, Dimension, Index, RANKS, Ranges};
use crate::shape::{ShapeBase, ShapeField};
use quaject_vcode::{Core, Error, Extension, Label, Register};

/// The value of an absent base: beyond any packet, and sums with it do not wrap.
const NOWHERE: u64 = 1 << 40;

/// Writes the best rank of a packet to `result`, or a jump to `miss`.
pub(super) fn write(
    emitter: &mut Emitter<'_>,
    ranges: &Ranges,
    result: Reg,
    miss: Label,
    last: Last,
) -> Result<(), Error> {
    let mut bases = vec![None];
    for place in &ranges.places[1..] {
        let base = write_base(emitter, place, &bases, result)?;
        bases.push(Some(base));
    }
    for fixed in &ranges.fixed {
        write_there(emitter, fixed.number, &bases, result, miss);
        let all = write_value(emitter, result, fixed.number, fixed.mask, &bases)?;
        if fixed.low == fixed.high {
            emitter.asm.bneui(result, fixed.low, miss);
            continue;
        }
        if fixed.low > 0 {
            emitter.asm.bltui(result, fixed.low, miss);
        }
        if fixed.high < all {
            emitter.asm.bgtui(result, fixed.high, miss);
        }
    }
    let mut rows = Vec::new();
    for axis in &ranges.axes {
        let row = emitter.temporary()?;
        write_row(emitter, axis, row, &bases, result)?;
        rows.push(row);
    }
    for base in bases.into_iter().flatten() {
        emitter.asm.putreg(base);
    }
    write_blocks(emitter, ranges, &rows, result, miss, last)?;
    for row in rows {
        emitter.asm.putreg(row);
    }
    Ok(())
}

/// Computes a base, in bytes from the start.
fn write_base(emitter: &mut Emitter<'_>, place: &ShapeBase, bases: &[Option<Reg>], t: Reg) -> Result<Reg, Error> {
    let base = emitter.temporary()?;
    let sum = emitter.temporary()?;
    let absent = emitter.asm.label();
    emitter.asm.setul(base, NOWHERE);
    emitter.asm.setul(sum, 0);
    for part in &place.terms {
        write_there(emitter, Some(part.number), bases, t, absent);
        write_value(emitter, t, Some(part.number), part.mask, bases)?;
        match part.shift {
            0 => {}
            left @ 1.. => emitter.asm.lshuli(t, t, left as u64),
            right => emitter.asm.rshuli(t, t, right.unsigned_abs().into()),
        }
        emitter.asm.addul(sum, sum, t);
    }
    emitter.asm.movul(base, sum);
    emitter.asm.bind(absent);
    emitter.asm.putreg(sum);
    Ok(base)
}

/// Jumps to `absent` if a number is not in the packet.
fn write_there(emitter: &mut Emitter<'_>, number: Option<ShapeField>, bases: &[Option<Reg>], t: Reg, absent: Label) {
    let Some(number) = number else { return };
    let end = u64::from(number.offset) + u64::from(number.width);
    match bases[usize::from(number.base)] {
        None => emitter.asm.bltuli(emitter.length, end, absent),
        Some(base) => {
            emitter.asm.adduli(t, base, end);
            emitter.asm.bgtul(t, emitter.length, absent);
        }
    }
}

/// Loads a number under its mask; returns its largest possible value.
fn write_value(
    emitter: &mut Emitter<'_>,
    d: Reg,
    number: Option<ShapeField>,
    mask: u32,
    bases: &[Option<Reg>],
) -> Result<u32, Error> {
    let all = match number {
        Some(number) => {
            match bases[usize::from(number.base)] {
                None => load_number(emitter, d, emitter.data, number),
                Some(base) => {
                    let at = emitter.temporary()?;
                    emitter.asm.addul(at, base, emitter.data);
                    load_number(emitter, d, at, number);
                    emitter.asm.putreg(at);
                }
            }
            full(number.width)
        }
        None => {
            let wire = emitter.wire.expect("a stage with such a number asks for the length");
            emitter.asm.movu(d, wire);
            u32::MAX
        }
    };
    if mask & all != all {
        emitter.asm.andui(d, d, mask);
    }
    Ok(mask & all)
}

/// Computes the address of a row of an axis, from the payloads of its indices.
fn write_row(emitter: &mut Emitter<'_>, axis: &Axis, row: Reg, bases: &[Option<Reg>], value: Reg) -> Result<(), Error> {
    let offset = emitter.temporary()?;
    let rows = axis.rows.as_ptr() as u64;
    let direct = axis.offsets.is_empty();
    emitter.asm.setul(row, if direct { rows } else { axis.offsets.as_ptr() as u64 });
    for dimension in &axis.dimensions {
        let join = emitter.asm.label();
        emitter.asm.setu(offset, dimension.absent);
        write_there(emitter, dimension.number, bases, value, join);
        write_value(emitter, value, dimension.number, dimension.mask, bases)?;
        write_find(emitter, dimension, value, offset)?;
        emitter.asm.bind(join);
        emitter.asm.addul(row, row, offset);
    }
    if !direct {
        emitter.asm.ldui(row, row, 0);
        emitter.asm.setul(offset, rows);
        emitter.asm.addul(row, row, offset);
    }
    emitter.asm.putreg(offset);
    Ok(())
}

/// Looks a value up in an index.
fn write_find(emitter: &mut Emitter<'_>, dimension: &Dimension, value: Reg, d: Reg) -> Result<(), Error> {
    let Index { shift, root, steps, entries } = &dimension.index;
    let t = emitter.temporary()?;
    let asm = &mut emitter.asm;
    // The root's cell; its word is the number of an entry.
    match shift {
        0 => asm.lshuli(t, value, 1),
        1 => asm.anduli(t, value, !1),
        _ => {
            asm.rshuli(t, value, u64::from(*shift));
            asm.lshuli(t, t, 1);
        }
    }
    asm.setul(d, root.as_ptr() as u64);
    asm.ldus(d, d, t);
    asm.lshuli(d, d, 3);
    asm.setul(t, entries.as_ptr() as u64);
    asm.addul(d, d, t);
    for step in (0..*steps).rev() {
        // Negative if the number is above the limit; its sign bit then advances the entry by one.
        asm.ldui(t, d, 8 << step);
        asm.subul(t, t, value);
        asm.rshuli(t, t, 63);
        asm.lshuli(t, t, u64::from(3 + step));
        asm.addul(d, d, t);
    }
    asm.ldui(d, d, 4);
    asm.putreg(t);
    Ok(())
}

/// The best rank of the bits that are in all rows.
fn write_blocks(
    emitter: &mut Emitter<'_>,
    ranges: &Ranges,
    rows: &[Reg],
    best: Reg,
    miss: Label,
    last: Last,
) -> Result<(), Error> {
    // After the last read of the packet its registers are free.
    let (summary, below) = match last {
        Last::Yes => (emitter.data, emitter.length),
        Last::No => (emitter.temporary()?, emitter.temporary()?),
    };
    let (ranks, t) = (emitter.temporary()?, emitter.temporary()?);
    let mut words = Vec::new();
    for _ in 0..ranges.block_words {
        words.push(emitter.temporary()?);
    }
    let asm = &mut emitter.asm;
    let Some((first, rest)) = rows.split_first() else { return Err(Error::Registers) };
    asm.lduli(summary, *first, 0);
    for row in rest {
        asm.lduli(t, *row, 0);
        asm.andul(summary, summary, t);
    }
    asm.bequli(summary, 0, miss);
    asm.setul(best, 0);
    let again = asm.label();
    asm.bind(again);
    asm.ctzul(t, summary);
    let block_words = ranges.block_words as u64;
    asm.mululi(ranks, t, 8 * block_words * RANKS as u64);
    asm.setul(t, ranges.ranks.as_ptr() as u64);
    asm.addul(ranks, ranks, t);
    // The bits below the lowest, and then the summary without that.
    asm.adduli(t, summary, u64::MAX);
    asm.comul(below, summary);
    asm.andul(below, below, t);
    asm.andul(summary, summary, t);
    write_intersection(emitter, rows, &words, below, t, block_words);
    for (own, word) in words.iter().enumerate() {
        write_best_rank(emitter, *word, own, [best, ranks, below, t]);
    }
    let asm = &mut emitter.asm;
    asm.bneuli(summary, 0, again);
    for register in words.into_iter().chain([ranks, t]) {
        asm.putreg(register);
    }
    if last == Last::No {
        asm.putreg(summary);
        asm.putreg(below);
    }
    Ok(())
}

/// The words of a block: the bits that are in all rows. The rank of the block in a row is the number of bits of its
/// summary in `below`.
fn write_intersection(emitter: &mut Emitter<'_>, rows: &[Reg], words: &[Reg], below: Reg, t: Reg, block_words: u64) {
    let asm = &mut emitter.asm;
    for (at, row) in rows.iter().enumerate() {
        asm.lduli(t, *row, 0);
        asm.andul(t, t, below);
        asm.popcountul(t, t);
        asm.mululi(t, t, 8 * block_words);
        asm.addul(t, t, *row);
        for (own, word) in words.iter().enumerate() {
            let offset = 8 * (own as i32 + 1);
            if at == 0 {
                asm.lduli(*word, t, offset);
            } else if own + 1 < words.len() {
                // The scratch register of instructions, which `and` of registers does not use.
                let other = Reg::from_number(11);
                asm.lduli(other, t, offset);
                asm.andul(*word, *word, other);
            } else {
                asm.lduli(t, t, offset);
                asm.andul(*word, *word, t);
            }
        }
    }
}

/// Raises `best` to the best rank of the bits of word number `own` of a block.
fn write_best_rank(emitter: &mut Emitter<'_>, word: Reg, own: usize, [best, ranks, below, t]: [Reg; 4]) {
    // The first bit of a word has its best rank, unless that filter was removed. The rank behind those of a word's bits
    // is zero: that of a word without bits.
    let asm = &mut emitter.asm;
    let more = asm.label();
    asm.bind(more);
    asm.ctzul(t, word);
    asm.lshuli(t, t, 3);
    asm.addul(t, t, ranks);
    asm.lduli(t, t, (8 * RANKS * own) as i32);
    asm.maxul(best, best, t);
    asm.adduli(below, word, u64::MAX);
    asm.andul(word, word, below);
    asm.setul(below, 0);
    asm.movnzul(word, below, t);
    asm.bneuli(word, 0, more);
}
