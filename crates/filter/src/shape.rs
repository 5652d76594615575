//! The shape of a conjunction: the parts of a packet that it reads, without the expected values. Filters of one shape
//! differ in values only, so that they share code and one table: shapes are the tuples of tuple space search
//! (Srinivasan, Suri, Varghese, "Packet Classification Using Tuple Space Search", SIGCOMM 1999).
//!
//! ```text
//! conjunction  [12:2] == 0x800 && [23] == 6 && [(([14] & 0xf) << 2) + 16:2] == 80
//! shape        start + 12, 13, 23; X + 16, 17       X = ([14] & 0xf) << 2; 24 bytes needed at start, 18 at X
//! values       08 00 06 00 50
//! ```

use crate::ir::{Base, Conjunction, Field, Sense, Subject, Term};

/// A byte of the packet of which some bits must have a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Byte {
    /// The number of its base.
    pub(crate) base: u16,
    /// Bytes from there.
    pub(crate) offset: u32,
    /// The mask; not zero.
    pub(crate) mask: u8,
}

/// A number in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ShapeField {
    pub(crate) base: u16,
    pub(crate) offset: u32,
    pub(crate) width: u8,
}

/// A test other than an equality, without its range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Check {
    /// The number that is read; `None` for the length on the wire.
    pub(crate) number: Option<ShapeField>,
    pub(crate) mask: u32,
    pub(crate) sense: Sense,
}

/// A term of a base.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ShapeTerm {
    pub(crate) number: ShapeField,
    pub(crate) mask: u32,
    pub(crate) shift: i8,
}

impl ShapeTerm {
    /// The displacement for a value of the number.
    pub(crate) fn moved(&self, number: u32) -> u64 {
        let (number, by) = (u64::from(number & self.mask), u32::from(self.shift.unsigned_abs()));
        if self.shift < 0 { number >> by } else { number << by }
    }
}

/// A base, and the number of bytes required from it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ShapeBase {
    /// The terms of the sum, relative to earlier bases. Empty for the start of the packet.
    pub(crate) terms: Vec<ShapeTerm>,
    /// Bytes needed from there.
    pub(crate) need: u64,
}

/// The parts of a packet that a conjunction reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    /// The start of the packet, then others.
    pub(crate) places: Vec<ShapeBase>,
    pub(crate) bytes: Vec<Byte>,
    pub(crate) checks: Vec<Check>,
}

/// The range of a check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Span {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// The values that a conjunction expects, for its shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Values {
    /// One for each byte of the shape, under its mask.
    pub(crate) bytes: Vec<u8>,
    /// One for each check.
    pub(crate) spans: Vec<Span>,
    /// For each byte of the shape, the test it comes from: bytes of one field vary together.
    pub(crate) fields: Vec<u16>,
    /// Whether two tests ask for different values of one bit.
    pub(crate) impossible: bool,
}

impl Shape {
    /// Divides a conjunction into shape and values.
    pub(crate) fn of(conjunction: &Conjunction) -> (Shape, Values) {
        let (bases, places) = places_of(conjunction.tests().iter().filter_map(|test| match &test.subject {
            Subject::Field(field) => Some(field),
            Subject::Length => None,
        }));
        let index = |base: &Base| bases.iter().position(|own| own == base).unwrap_or_default() as u16;
        let number = |field: &Field| ShapeField { base: index(&field.base), offset: field.offset, width: field.width };
        let mut impossible = false;
        // Base, offset, mask, value, and the test it comes from.
        let mut bytes: Vec<(Byte, u8, u16)> = Vec::new();
        let (mut checks, mut spans) = (Vec::new(), Vec::new());
        for (source, test) in conjunction.tests().iter().enumerate() {
            match &test.subject {
                Subject::Field(field) if test.is_equality() => {
                    for at in 0..u32::from(field.width) {
                        let right = 8 * (u32::from(field.width) - 1 - at);
                        let (mask, value) = ((test.mask >> right) as u8, (test.low >> right) as u8);
                        if mask == 0 {
                            continue;
                        }
                        let offset = field.offset.saturating_add(at);
                        bytes.push((Byte { base: index(&field.base), offset, mask }, value & mask, source as u16));
                    }
                }
                Subject::Field(field) => {
                    checks.push(Check { number: Some(number(field)), mask: test.mask, sense: test.sense });
                    spans.push(Span { low: test.low, high: test.high });
                }
                Subject::Length => {
                    checks.push(Check { number: None, mask: test.mask, sense: test.sense });
                    spans.push(Span { low: test.low, high: test.high });
                }
            }
        }
        bytes.sort_unstable_by_key(|(byte, _, source)| (byte.base, byte.offset, *source));
        bytes.dedup_by(|again, first| {
            let (one, other) = (first.0, again.0);
            if (one.base, one.offset) != (other.base, other.offset) {
                return false;
            }
            impossible |= (first.1 ^ again.1) & one.mask & other.mask != 0;
            first.0.mask |= other.mask;
            first.1 |= again.1;
            true
        });
        let values = Values {
            bytes: bytes.iter().map(|(_, value, _)| *value).collect(),
            spans,
            fields: bytes.iter().map(|(_, _, source)| *source).collect(),
            impossible,
        };
        (Shape { places, bytes: bytes.iter().map(|(byte, _, _)| *byte).collect(), checks }, values)
    }
}

/// The bases of fields, the start of the packet first and each after the bases that it depends on, and their places.
pub(crate) fn places_of<'f>(fields: impl Iterator<Item = &'f Field>) -> (Vec<Base>, Vec<ShapeBase>) {
    let (mut bases, mut needs) = (vec![Base::START], vec![0]);
    for field in fields {
        note(&mut bases, &mut needs, field);
    }
    let index = |base: &Base| bases.iter().position(|own| own == base).unwrap_or_default() as u16;
    let places = bases.iter().zip(&needs).map(|(base, need)| {
        let part = |term: &Term| ShapeTerm {
            number: ShapeField { base: index(&term.field.base), offset: term.field.offset, width: term.field.width },
            mask: term.mask & term.field.full(),
            shift: term.shift,
        };
        ShapeBase { terms: base.terms().iter().map(part).collect(), need: *need }
    });
    let places = places.collect();
    (bases, places)
}

/// Records the bases and lengths that a field needs, those of its base first.
fn note(bases: &mut Vec<Base>, needs: &mut Vec<u64>, field: &Field) {
    for term in field.base.terms() {
        note(bases, needs, &term.field);
    }
    let at = match bases.iter().position(|base| *base == field.base) {
        Some(at) => at,
        None => {
            bases.push(field.base.clone());
            needs.push(0);
            bases.len() - 1
        }
    };
    needs[at] = needs[at].max(field.end());
}
