//! The intermediate representation of filters: a disjunction of conjunctions of tests of fields (disjunctive normal
//! form), or, if a filter cannot be lifted to that form, a classic BPF program. Knows no generated code and no other
//! filter.
//!
//! ```text
//! filter       any of conjunctions                     tcp port 80: over IPv4, over IPv6; to it, from it
//! conjunction  all of tests
//! test         low <= (number at base + offset) & mask <= high, or not
//! base         0, or a sum of numbers in the packet    4*([14]&0xf): the length of the IPv4 header
//! ```
//!
//! A test whose field is not inside the packet is false, and so is its negation: a negated test says that the field is
//! there and holds something else. This is the semantics of a path through a classic BPF program.

mod build;
mod eval;
mod simplify;
mod text;

pub use build::{Expression, MAX_ALTERNATIVES, Scope};
pub use text::parse;

use crate::bpf::Program;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;

/// A number in the packet that moves a base: `(field & mask) << shift`, or `>> -shift`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Term {
    /// Where the number is.
    pub field: Field,
    /// Its bits that count.
    pub mask: u32,
    /// By how many bits it is shifted left; to the right if negative. From -31 to 31.
    pub shift: i8,
}

impl Term {
    /// The displacement for a value of the number.
    pub fn moves(&self, number: u32) -> u64 {
        let number = u64::from(number & self.mask);
        let by = u32::from(self.shift.unsigned_abs()).min(31);
        if self.shift < 0 { number >> by } else { number << by }
    }

    /// Its maximum displacement.
    pub fn max_value(&self) -> u64 {
        self.moves(self.field.full())
    }
}

/// Where offsets count from: the start of the packet, or a sum of terms.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Base(Option<Arc<[Term]>>);

impl Base {
    /// The start of the packet.
    pub const START: Base = Base(None);

    /// The sum of these terms, counted from the start of the packet.
    pub fn sum(mut terms: Vec<Term>) -> Base {
        terms.sort();
        if terms.is_empty() { Base::START } else { Base(Some(terms.into())) }
    }

    /// The terms of the sum.
    pub fn terms(&self) -> &[Term] {
        self.0.as_deref().unwrap_or_default()
    }

    /// This base plus one more term.
    pub fn plus(&self, term: Term) -> Base {
        let mut terms = self.terms().to_vec();
        terms.push(term);
        Base::sum(terms)
    }
}

/// A number in the packet, most significant byte first.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Field {
    /// Where its offset counts from.
    pub base: Base,
    /// Bytes from there.
    pub offset: u32,
    /// Bytes that it has: 1 to 4.
    pub width: u8,
}

impl Field {
    /// A field counted from the start of the packet.
    pub fn new(offset: u32, width: u8) -> Field {
        Field { base: Base::START, offset, width }
    }

    /// All bits of it.
    pub fn full(&self) -> u32 {
        u32::MAX >> (32 - 8 * u32::from(self.width.clamp(1, 4)))
    }

    /// The first byte after it.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.width)
    }

    /// Checks the widths and the shifts of the field and of the terms of its base.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(1..=4).contains(&self.width) {
            return Err(Error::Width(self.width.into()));
        }
        self.base.terms().iter().try_for_each(|term| match term.shift {
            -31..=31 => term.field.check(),
            by => Err(Error::Shift(by)),
        })
    }
}

/// What a test reads.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// A number in the packet.
    Field(Field),
    /// How long the packet was on the wire.
    Length,
}

/// Whether a test holds inside or outside of its range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Sense {
    /// `low <= subject & mask <= high`.
    Inside,
    /// The field is there, and its number is not in the range.
    Outside,
}

/// A test of one number.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Test {
    /// What is read.
    pub subject: Subject,
    /// Its bits that count.
    pub mask: u32,
    /// The smallest number in the range.
    pub low: u32,
    /// The largest number in the range.
    pub high: u32,
    /// Whether the number must be in the range or not.
    pub sense: Sense,
}

impl Test {
    /// The bits of the field under the mask are these.
    pub fn masked(field: Field, mask: u32, value: u32) -> Test {
        let mask = mask & field.full();
        Test { subject: Subject::Field(field), mask, low: value, high: value, sense: Sense::Inside }
    }

    /// The field has this value.
    pub fn equal(field: Field, value: u32) -> Test {
        let mask = field.full();
        Test::masked(field, mask, value)
    }

    /// The field has a value from `low` to `high`.
    pub fn range(field: Field, low: u32, high: u32) -> Test {
        let mask = field.full();
        Test { subject: Subject::Field(field), mask, low, high, sense: Sense::Inside }
    }

    /// The field is inside the packet.
    pub fn there(field: Field) -> Test {
        Test { subject: Subject::Field(field), mask: 0, low: 0, high: 0, sense: Sense::Inside }
    }

    /// The packet had from `low` to `high` bytes on the wire.
    pub fn length(low: u32, high: u32) -> Test {
        Test { subject: Subject::Length, mask: u32::MAX, low, high, sense: Sense::Inside }
    }

    /// The same test with the other sense.
    #[must_use]
    pub fn negated(self) -> Test {
        let sense = match self.sense {
            Sense::Inside => Sense::Outside,
            Sense::Outside => Sense::Inside,
        };
        Test { sense, ..self }
    }

    /// Whether it asks for one value of some bits.
    pub fn is_equality(&self) -> bool {
        self.sense == Sense::Inside && self.low == self.high
    }
}

/// Tests that must all hold, in canonical form and order, which [`Conjunction::new`] establishes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Conjunction {
    tests: Vec<Test>,
}

impl Conjunction {
    /// The tests, simplified; `None` if no packet passes them all.
    pub fn new(tests: Vec<Test>) -> Option<Conjunction> {
        simplify::simplify(tests).map(|tests| Conjunction { tests })
    }

    /// The tests.
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }
}

/// A packet filter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Filter {
    /// Matches if one of the conjunctions does; with none, never.
    Any(Vec<Conjunction>),
    /// Matches if the program does not reject the packet.
    Program(Program),
}

impl Filter {
    /// A filter of tests that must all hold.
    pub fn all(tests: Vec<Test>) -> Filter {
        Filter::Any(Conjunction::new(tests).into_iter().collect())
    }

    /// Whether it is known that no packet matches.
    pub fn is_empty(&self) -> bool {
        match self {
            Filter::Any(conjunctions) => conjunctions.is_empty(),
            Filter::Program(program) => program.operations().iter().all(|operation| {
                use crate::bpf::Operation;
                !matches!(operation, Operation::Return(1..) | Operation::ReturnAccumulator)
            }),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.shift < 0 { ">>" } else { "<<" };
        write!(f, "(({} & {:#x}) {sign} {})", self.field, self.mask, self.shift.unsigned_abs())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[")?;
        for term in self.base.terms() {
            write!(f, "{term} + ")?;
        }
        write!(f, "{}:{}]", self.offset, self.width)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = match &self.subject {
            Subject::Field(field) => {
                write!(f, "{field}")?;
                if self.mask == 0 {
                    return write!(f, " is there");
                }
                field.full()
            }
            Subject::Length => {
                write!(f, "length")?;
                u32::MAX
            }
        };
        if self.mask != full {
            write!(f, " & {:#x}", self.mask)?;
        }
        match (self.sense, self.low == self.high) {
            (Sense::Inside, true) => write!(f, " == {:#x}", self.low),
            (Sense::Outside, true) => write!(f, " != {:#x}", self.low),
            (Sense::Inside, false) => write!(f, " in {:#x}..={:#x}", self.low, self.high),
            (Sense::Outside, false) => write!(f, " not in {:#x}..={:#x}", self.low, self.high),
        }
    }
}

impl fmt::Display for Conjunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tests.is_empty() {
            return write!(f, "always");
        }
        for (at, test) in self.tests.iter().enumerate() {
            write!(f, "{}{test}", if at == 0 { "" } else { " && " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::Any(conjunctions) if conjunctions.is_empty() => write!(f, "never"),
            Filter::Any(conjunctions) => {
                for (at, conjunction) in conjunctions.iter().enumerate() {
                    write!(f, "{}{conjunction}", if at == 0 { "" } else { "\n|| " })?;
                }
                Ok(())
            }
            Filter::Program(program) => write!(f, "{}", crate::bpf::Disassembly(program)),
        }
    }
}
