//! Filters built in Rust: expressions of tests with and, or, not, and scopes for nested headers.

use super::{Base, Conjunction, Field, Filter, Sense, Subject, Term, Test};
use crate::error::Error;
use std::ops::{BitAnd, BitOr, Not, RangeInclusive};

/// The most alternatives an expression may have once `or` is moved outside.
pub const MAX_ALTERNATIVES: usize = 65_536;
/// The limit on the tests of all alternatives together: distributing `and` over `or` copies tests into each
/// alternative.
const MAX_TESTS: usize = 1 << 21;

/// A condition on packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expression {
    /// A test of one field.
    Test(Test),
    /// All must hold; with none, always true.
    All(Vec<Expression>),
    /// One must hold; with none, never true.
    Any(Vec<Expression>),
    /// It must not hold. The negation of a field test requires that the field is in the packet.
    Not(Box<Expression>),
}

impl Expression {
    /// The field has one of these values.
    pub fn any_of(field: &Field, values: impl IntoIterator<Item = u32>) -> Expression {
        Expression::Any(values.into_iter().map(|value| Test::equal(field.clone(), value).into()).collect())
    }

    /// The first `bits` of a field of four bytes are those of `value`.
    pub fn prefix(field: Field, value: u32, bits: u32) -> Expression {
        let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
        Test::masked(field, mask, value & mask).into()
    }

    /// The filter that matches the packets for which it holds.
    ///
    /// # Errors
    /// [`Error::Width`] for a field that is not 1 to 4 bytes wide, [`Error::Shift`] for a base that is shifted by more
    /// than 31 bits, [`Error::Alternatives`] for more than [`MAX_ALTERNATIVES`].
    pub fn filter(&self) -> Result<Filter, Error> {
        let alternatives = self.alternatives(Sense::Inside)?;
        let mut conjunctions: Vec<Conjunction> = alternatives.into_iter().filter_map(Conjunction::new).collect();
        conjunctions.sort();
        conjunctions.dedup();
        Ok(Filter::Any(conjunctions))
    }

    /// Lists of tests, one of which must hold; of the negation, where `sense` is outside.
    fn alternatives(&self, sense: Sense) -> Result<Vec<Vec<Test>>, Error> {
        match (self, sense) {
            (Expression::Test(test), _) => {
                if let Subject::Field(field) = &test.subject {
                    field.check()?;
                }
                let test = if sense == Sense::Inside { test.clone() } else { test.clone().negated() };
                Ok(vec![vec![test]])
            }
            (Expression::Not(inner), Sense::Inside) => inner.alternatives(Sense::Outside),
            (Expression::Not(inner), Sense::Outside) => inner.alternatives(Sense::Inside),
            (Expression::Any(parts), Sense::Inside) | (Expression::All(parts), Sense::Outside) => {
                let (mut all, mut many) = (Vec::new(), 0);
                for part in parts {
                    let next = part.alternatives(sense)?;
                    many += tests(&next);
                    all.extend(next);
                    if all.len() > MAX_ALTERNATIVES || many > MAX_TESTS {
                        return Err(Error::Alternatives(MAX_ALTERNATIVES));
                    }
                }
                Ok(all)
            }
            (Expression::All(parts), Sense::Inside) | (Expression::Any(parts), Sense::Outside) => {
                let mut all = vec![Vec::new()];
                // How many tests there are in `all`.
                let mut many = 0;
                for part in parts {
                    let next = part.alternatives(sense)?;
                    many = many * next.len() + all.len() * tests(&next);
                    if all.len().saturating_mul(next.len()) > MAX_ALTERNATIVES || many > MAX_TESTS {
                        return Err(Error::Alternatives(MAX_ALTERNATIVES));
                    }
                    if let [only] = &next[..] {
                        all.iter_mut().for_each(|one| one.extend(only.iter().cloned()));
                        continue;
                    }
                    let join = |one: &Vec<Test>| {
                        let one = one.clone();
                        next.iter().map(move |other| one.iter().chain(other).cloned().collect()).collect::<Vec<_>>()
                    };
                    all = all.iter().flat_map(join).collect();
                }
                Ok(all)
            }
        }
    }
}

/// How many tests alternatives have together.
fn tests(alternatives: &[Vec<Test>]) -> usize {
    alternatives.iter().map(Vec::len).sum()
}

impl From<Test> for Expression {
    fn from(test: Test) -> Expression {
        Expression::Test(test)
    }
}

impl BitAnd for Expression {
    type Output = Expression;

    fn bitand(self, other: Expression) -> Expression {
        Expression::All(vec![self, other])
    }
}

impl BitOr for Expression {
    type Output = Expression;

    fn bitor(self, other: Expression) -> Expression {
        Expression::Any(vec![self, other])
    }
}

impl Not for Expression {
    type Output = Expression;

    fn not(self) -> Expression {
        Expression::Not(Box::new(self))
    }
}

/// The start of a header. Scopes are immutable: moving one returns a new one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    base: Base,
    offset: u32,
}

impl Scope {
    /// The start of the packet.
    pub fn packet() -> Scope {
        Scope::default()
    }

    /// The number of `width` bytes at `offset` of the header.
    pub fn field(&self, offset: u32, width: u8) -> Field {
        Field { base: self.base.clone(), offset: self.offset.saturating_add(offset), width }
    }

    /// The scope `bytes` after this one: the payload of a header of fixed length.
    #[must_use]
    pub fn skip(&self, bytes: u32) -> Scope {
        Scope { base: self.base.clone(), offset: self.offset.saturating_add(bytes) }
    }

    /// The scope `(number & mask) << shift` bytes after this one (`>> -shift` if that is negative), the number being at
    /// `offset` of the header.
    #[must_use]
    pub fn shift(&self, offset: u32, width: u8, mask: u32, shift: i8) -> Scope {
        let term = Term { field: self.field(offset, width), mask, shift };
        Scope { base: self.base.plus(term), offset: self.offset }
    }

    /// The payload of an IPv4 header that begins here.
    #[must_use]
    pub fn after_ipv4(&self) -> Scope {
        self.shift(0, 1, 0x0f, 2)
    }

    /// The payload of an IPv6 extension header (hop-by-hop, routing, destination) that begins here.
    #[must_use]
    pub fn after_ipv6_extension(&self) -> Scope {
        self.shift(1, 1, 0xff, 3).skip(8)
    }

    /// The field equals.
    pub fn equals(&self, offset: u32, width: u8, value: u32) -> Expression {
        Test::equal(self.field(offset, width), value).into()
    }

    /// The field is in a range.
    pub fn within(&self, offset: u32, width: u8, range: RangeInclusive<u32>) -> Expression {
        Test::range(self.field(offset, width), *range.start(), *range.end()).into()
    }
}
