//! The code of a group up to its key: lengths, constants, checks, the words of the key. Loads may read bytes that
//! no filter asks for, never bytes beyond the length that was checked.
//!
//! Most packets have IPv4 headers of 20 bytes. So a shape with one base of the form `4*([k]&0xf)` has a form in which
//! that is known and offsets are constants: the five is one more constant of the header check. Its general form is out
//! of line and fills the same registers.

use super::registers::Registers;
use super::{Emitter, Rare, Reg, lookup};
use crate::group::GroupData;
use crate::ir::Sense;
use crate::layout::{Constant, Window, constants};
use crate::shape::{Byte, Check, Shape, ShapeBase, ShapeField, Span};
use crate::template::OptionlessHeader;
use quaject_vcode::{Core, Error, Extension, Label, Register};

/// The limit on bases, beyond the length of any packet.
const FURTHEST: u64 = 1 << 40;

/// The loads and comparisons before a lookup.
#[derive(Clone, Debug)]
pub(super) struct LoadPlan {
    places: Vec<ShapeBase>,
    header: Vec<Constant>,
    key: Vec<Window>,
    checks: Vec<(Check, Option<Span>)>,
}

/// The general form of a specialised lookup, and its labels of entry and join.
pub(super) struct General {
    plan: LoadPlan,
    begin: Label,
    join: Label,
    miss: Label,
    registers: Registers,
    /// The case of the specialised form.
    optionless: OptionlessHeader,
}

impl LoadPlan {
    /// Registers for what the plan loads.
    pub(super) fn allocate(&self, emitter: &mut Emitter<'_>, scratch: Reg) -> Result<Registers, Error> {
        let numbers = self.checks.iter().filter(|(_, span)| span.is_none()).count();
        Registers::allocate(emitter, self.key.len(), numbers, scratch)
    }

    pub(super) fn general(data: &GroupData) -> LoadPlan {
        let layout = &data.layout;
        let span = |at: usize| (!layout.listed[at]).then(|| layout.common.spans[at]);
        let checks = layout.shape.checks.iter().enumerate();
        LoadPlan {
            places: layout.shape.places.clone(),
            header: layout.header.clone(),
            key: layout.key.clone(),
            checks: checks.map(|(at, check)| (check.clone(), span(at))).collect(),
        }
    }

    /// The form for IPv4 headers of twenty bytes, if the shape has one such header and no other variable base.
    fn specialised(&self, data: &GroupData) -> Option<(LoadPlan, OptionlessHeader)> {
        let layout = &data.layout;
        let optionless = OptionlessHeader::of(&layout.shape)?;
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        let own = layout.shape.bytes.iter().zip(&layout.common.bytes).zip(&layout.varying);
        for ((byte, value), _) in own.filter(|(_, varying)| !**varying) {
            let offset = OptionlessHeader::flat(byte.offset, byte.base)?;
            bytes.push(Byte { base: 0, offset, mask: byte.mask });
            values.push(*value);
        }
        let nibble = Byte { base: 0, offset: optionless.offset, mask: OptionlessHeader::MASK };
        match bytes.iter().position(|byte| byte.offset == nibble.offset) {
            Some(at) if bytes[at].mask & OptionlessHeader::MASK != 0 => return None,
            Some(at) => {
                bytes[at].mask |= OptionlessHeader::MASK;
                values[at] |= OptionlessHeader::WORDS;
            }
            None => {
                bytes.push(nibble);
                values.push(OptionlessHeader::WORDS);
            }
        }
        let mut order: Vec<usize> = (0..bytes.len()).collect();
        order.sort_by_key(|at| bytes[*at].offset);
        if order.windows(2).any(|pair| bytes[pair[0]].offset == bytes[pair[1]].offset) {
            return None;
        }
        let shape = Shape {
            places: vec![ShapeBase { terms: Vec::new(), need: OptionlessHeader::need(&layout.shape) }],
            bytes: order.iter().map(|at| bytes[*at]).collect(),
            checks: Vec::new(),
        };
        let mut common = layout.common.clone();
        common.bytes = order.iter().map(|at| values[*at]).collect();
        let header = constants(&shape.bytes, &shape, &common, &shape.places);
        let flat = |offset: u32, base: u16| if base == 0 { offset } else { offset + OptionlessHeader::BYTES };
        let key = self.key.iter().map(|window| Window { base: 0, offset: flat(window.offset, window.base), ..*window });
        let checks = self.checks.iter().map(|(check, span)| {
            let number = check.number.map(|own| ShapeField { base: 0, offset: flat(own.offset, own.base), ..own });
            (Check { number, ..check.clone() }, *span)
        });
        let plan = LoadPlan { places: shape.places, header, key: key.collect(), checks: checks.collect() };
        Some((plan, optionless))
    }

    /// Whether offsets fit instructions and sums do not wrap.
    pub(super) fn is_writable(&self) -> bool {
        let near = |offset: u32| offset < 1 << 30;
        self.places.iter().all(|place| {
            let max = place.terms.iter().map(|part| {
                let max = u64::from(part.mask);
                let by = u32::from(part.shift.unsigned_abs());
                if part.shift < 0 { max >> by } else { max << by }
            });
            max.fold(0_u64, u64::saturating_add) < FURTHEST
                && place.need < 1 << 30
                && place.terms.iter().all(|part| near(part.number.offset))
        }) && self.header.iter().all(|constant| near(constant.window.offset))
            && self.key.iter().all(|window| near(window.offset))
            && self.checks.iter().all(|(check, _)| check.number.is_none_or(|number| near(number.offset)))
    }
}

/// Writes the lookup of a packet in a group: the rank to `result`, or a jump to `miss`.
pub(super) fn write(emitter: &mut Emitter<'_>, data: &GroupData, result: Reg, miss: Label) -> Result<(), Error> {
    let general = LoadPlan::general(data);
    if !general.is_writable() {
        return Err(Error::Immediate);
    }
    let registers = general.allocate(emitter, result)?;
    let join = emitter.asm.label();
    match general.specialised(data) {
        Some((plan, optionless)) => {
            let begin = emitter.asm.label();
            write_plan(emitter, &plan, &registers, begin)?;
            let rare = General { plan: general, begin, join, miss, registers: registers.clone(), optionless };
            emitter.rare.push(Rare::General(rare));
        }
        None => write_plan(emitter, &general, &registers, miss)?,
    }
    emitter.asm.bind(join);
    lookup::write(emitter, data, &registers, result, miss)?;
    registers.free(emitter);
    Ok(())
}

/// Writes a general form out of line.
pub(super) fn write_general(emitter: &mut Emitter<'_>, rare: &General) -> Result<(), Error> {
    emitter.asm.bind(rare.begin);
    // Another stage may need the values in the registers of the group, so that these are not allocated again.
    let held: Vec<Reg> = rare.registers.key.iter().chain(&rare.registers.numbers).copied().collect();
    for register in &held {
        emitter.asm.claim(*register)?;
    }
    write_with_options(emitter, &rare.plan, rare.optionless, &rare.registers, rare.miss)?;
    emitter.asm.j(rare.join);
    for register in held {
        emitter.asm.putreg(register);
    }
    Ok(())
}

/// Writes a general form for the packets that the specialised form excludes.
pub(super) fn write_with_options(
    emitter: &mut Emitter<'_>,
    plan: &LoadPlan,
    optionless: OptionlessHeader,
    registers: &Registers,
    miss: Label,
) -> Result<(), Error> {
    let t = registers.scratch;
    let need = plan.places[0].need.max(u64::from(optionless.offset) + 1);
    emitter.asm.bltuli(emitter.length, need, miss);
    emitter.asm.lduci(t, emitter.data, optionless.offset as i32);
    emitter.asm.andui(t, t, OptionlessHeader::MASK.into());
    emitter.asm.bequi(t, OptionlessHeader::WORDS.into(), miss);
    write_plan(emitter, plan, registers, miss)
}

/// Writes the checks of a shape whose ranges all filters of the group have, in the usual case or where nothing moves.
pub(super) fn write_checks(emitter: &mut Emitter<'_>, data: &GroupData, t: Reg, miss: Label) -> Result<(), Error> {
    let bases = [emitter.data];
    for (check, span) in data.layout.shape.checks.iter().zip(&data.layout.common.spans) {
        let mut check = check.clone();
        if let Some(number) = &mut check.number {
            number.offset = OptionlessHeader::flat(number.offset, number.base).ok_or(Error::Immediate)?;
            number.base = 0;
        }
        write_check(emitter, &check, *span, t, &bases, miss);
    }
    Ok(())
}

fn write_plan(emitter: &mut Emitter<'_>, plan: &LoadPlan, registers: &Registers, miss: Label) -> Result<(), Error> {
    let t = registers.scratch;
    let need = plan.places[0].need;
    if need > 0 {
        emitter.asm.bltuli(emitter.length, need, miss);
    }
    // Comparisons that need no base come first.
    let (early, late): (Vec<&Constant>, Vec<&Constant>) = plan.header.iter().partition(|own| own.window.base == 0);
    let mut bases = vec![emitter.data];
    write_header(emitter, &early, &bases, t, miss)?;
    for place in &plan.places[1..] {
        let base = emitter.temporary()?;
        emitter.asm.setul(base, 0);
        for part in &place.terms {
            write_number(emitter, t, part.number, &bases);
            if part.mask != full(part.number.width) {
                emitter.asm.andui(t, t, part.mask);
            }
            match part.shift {
                0 => {}
                left @ 1.. => emitter.asm.lshuli(t, t, left as u64),
                right => emitter.asm.rshuli(t, t, right.unsigned_abs().into()),
            }
            emitter.asm.addul(base, base, t);
        }
        emitter.asm.adduli(t, base, place.need);
        emitter.asm.bgtul(t, emitter.length, miss);
        emitter.asm.addul(base, base, emitter.data);
        bases.push(base);
    }
    write_header(emitter, &late, &bases, t, miss)?;
    let mut numbers = registers.numbers.iter();
    for (check, span) in &plan.checks {
        match span {
            Some(span) => write_check(emitter, check, *span, t, &bases, miss),
            None => {
                let number = *numbers.next().ok_or(Error::Registers)?;
                write_checked(emitter, number, check, &bases);
            }
        }
    }
    for (window, register) in plan.key.iter().zip(&registers.key) {
        write_window(emitter, *register, *window, &bases);
    }
    for base in bases.into_iter().skip(1) {
        emitter.asm.putreg(base);
    }
    Ok(())
}

/// Compares constants: differences are or-ed, so that one branch decides.
fn write_header(
    emitter: &mut Emitter<'_>,
    constants: &[&Constant],
    bases: &[Reg],
    t: Reg,
    miss: Label,
) -> Result<(), Error> {
    let Some((first, rest)) = constants.split_first() else { return Ok(()) };
    write_window(emitter, t, first.window, bases);
    if rest.is_empty() {
        emitter.asm.bneuli(t, first.value, miss);
        return Ok(());
    }
    let u = emitter.temporary()?;
    difference(emitter, t, first);
    for constant in rest {
        write_window(emitter, u, constant.window, bases);
        difference(emitter, u, constant);
        emitter.asm.orul(t, t, u);
    }
    emitter.asm.bneuli(t, 0, miss);
    emitter.asm.putreg(u);
    Ok(())
}

/// Leaves zero if the value equals the constant.
fn difference(emitter: &mut Emitter<'_>, t: Reg, constant: &Constant) {
    match (constant.value, constant.window.width) {
        (0, _) => {}
        (value, 8) => emitter.asm.xoruli(t, t, value),
        (value, _) => emitter.asm.xorui(t, t, value as u32),
    }
}

pub(super) fn write_window(emitter: &mut Emitter<'_>, d: Reg, window: Window, bases: &[Reg]) {
    let (base, offset) = (bases[usize::from(window.base)], window.offset as i32);
    match window.width {
        1 => emitter.asm.lduci(d, base, offset),
        2 => emitter.asm.uldusi(d, base, offset),
        4 => emitter.asm.uldui(d, base, offset),
        _ => emitter.asm.ulduli(d, base, offset),
    }
    if window.mask != window.full() {
        match window.width {
            8 => emitter.asm.anduli(d, d, window.mask),
            _ => emitter.asm.andui(d, d, window.mask as u32),
        }
    }
}

/// Loads a number, most significant byte first.
fn write_number(emitter: &mut Emitter<'_>, d: Reg, number: ShapeField, bases: &[Reg]) {
    load_number(emitter, d, bases[usize::from(number.base)], number);
}

/// Loads a number behind a base, which is in another register.
pub(super) fn load_number(emitter: &mut Emitter<'_>, d: Reg, base: Reg, number: ShapeField) {
    let offset = number.offset as i32;
    match number.width {
        1 => emitter.asm.lduci(d, base, offset),
        2 => {
            emitter.asm.uldusi(d, base, offset);
            emitter.asm.bswapus(d, d);
        }
        3 => {
            // Two loads that overlap would need one more register; three bytes need none.
            emitter.asm.uldusi(d, base, offset);
            emitter.asm.bswapus(d, d);
            emitter.asm.lshui(d, d, 8);
            // Free inside one instruction, and `or` of registers does not use it.
            let last = Reg::from_number(11);
            emitter.asm.lduci(last, base, offset + 2);
            emitter.asm.oru(d, d, last);
        }
        _ => {
            emitter.asm.uldui(d, base, offset);
            emitter.asm.bswapu(d, d);
        }
    }
}

pub(super) fn full(width: u8) -> u32 {
    u32::MAX >> (32 - 8 * u32::from(width))
}

/// The masked number of a check.
fn write_checked(emitter: &mut Emitter<'_>, d: Reg, check: &Check, bases: &[Reg]) {
    let all = match check.number {
        Some(number) => {
            write_number(emitter, d, number, bases);
            full(number.width)
        }
        None => {
            let wire = emitter.wire.expect("a stage with such a check asks for the length");
            emitter.asm.movu(d, wire);
            u32::MAX
        }
    };
    if check.mask & all != all {
        emitter.asm.andui(d, d, check.mask);
    }
}

/// Tests a number against a range that all filters of the group have.
fn write_check(emitter: &mut Emitter<'_>, check: &Check, span: Span, t: Reg, bases: &[Reg], miss: Label) {
    write_checked(emitter, t, check, bases);
    let max = check.mask & check.number.map_or(u32::MAX, |number| full(number.width));
    match check.sense {
        Sense::Inside if span.low == 0 => emitter.asm.bgtui(t, span.high, miss),
        Sense::Inside if span.high >= max => emitter.asm.bltui(t, span.low, miss),
        Sense::Outside if span.low == span.high => emitter.asm.bequi(t, span.low, miss),
        Sense::Inside => {
            emitter.asm.subui(t, t, span.low);
            emitter.asm.bgtui(t, span.high - span.low, miss);
        }
        Sense::Outside => {
            emitter.asm.subui(t, t, span.low);
            emitter.asm.bleui(t, span.high - span.low, miss);
        }
    }
}
