//! The values that tests allow, as sets of ranges: a prefix is a range.

use super::MaskedSubject;
use crate::ir::{Sense, Subject, Test};

/// Ranges of numbers, from low to high; they are disjoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spans(Vec<(u32, u32)>);

impl Spans {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// The range, if it is one.
    pub(super) fn single(&self) -> Option<(u32, u32)> {
        if let [only] = self.0[..] { Some(only) } else { None }
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> u64 {
        self.iter().map(|(low, high)| u64::from(high) - u64::from(low) + 1).sum()
    }

    /// The intersection.
    pub(super) fn and(&self, other: &Spans) -> Spans {
        let intersect = |one: (u32, u32), two: (u32, u32)| {
            let (low, high) = (one.0.max(two.0), one.1.min(two.1));
            (low <= high).then_some((low, high))
        };
        Spans(self.iter().flat_map(|one| other.iter().filter_map(move |two| intersect(one, two))).collect())
    }
}

/// The masked subject that a test reads, and the values that it allows.
pub(super) fn of(test: &Test) -> (MaskedSubject, Spans) {
    let full = match &test.subject {
        Subject::Field(field) => field.full(),
        Subject::Length => u32::MAX,
    };
    let mask = test.mask & full;
    let rest = full & !mask;
    // If the mask is a prefix, one value of its bits is a range of the complete number.
    let is_prefix = rest & rest.wrapping_add(1) == 0;
    let (mask, low, high) = match test.low == test.high && is_prefix && test.low & !mask == 0 {
        true => (full, test.low, test.low | rest),
        false => (mask, test.low, test.high.min(mask)),
    };
    let inside = if low <= high { vec![(low, high)] } else { Vec::new() };
    let spans = match (test.sense, &inside[..]) {
        (Sense::Inside, _) => inside,
        (Sense::Outside, []) => vec![(0, mask)],
        (Sense::Outside, _) => {
            let below = low.checked_sub(1).map(|last| (0, last));
            let above = high.checked_add(1).filter(|first| *first <= mask).map(|first| (first, mask));
            below.into_iter().chain(above).collect()
        }
    };
    (MaskedSubject { subject: test.subject.clone(), mask }, Spans(spans))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Field;

    fn spans(test: Test) -> (u32, Vec<(u32, u32)>) {
        let (masked_subject, spans) = of(&test);
        (masked_subject.mask, spans.iter().collect())
    }

    #[test]
    fn prefixes_are_ranges() {
        let field = Field::new(26, 4);
        let ten = Test::masked(field.clone(), 0xff00_0000, 0x0a00_0000);
        assert_eq!(spans(ten.clone()), (u32::MAX, vec![(0x0a00_0000, 0x0aff_ffff)]));
        assert_eq!(spans(ten.negated()), (u32::MAX, vec![(0, 0x09ff_ffff), (0x0b00_0000, u32::MAX)]));
        assert_eq!(spans(Test::there(field.clone())), (u32::MAX, vec![(0, u32::MAX)]));
        assert_eq!(spans(Test::equal(field.clone(), u32::MAX)), (u32::MAX, vec![(u32::MAX, u32::MAX)]));
        assert_eq!(spans(Test::equal(field.clone(), 0).negated()), (u32::MAX, vec![(1, u32::MAX)]));
        assert_eq!(spans(Test::masked(field, 0x0f, 5)), (0x0f, vec![(5, 5)]));
        assert_eq!(spans(Test::range(Field::new(0, 2), 5, 70_000)), (0xffff, vec![(5, 0xffff)]));
    }

    #[test]
    fn both_are_what_is_in_each() {
        let (one, two) = (Spans(vec![(0, 5), (10, 20)]), Spans(vec![(5, 12), (20, 30)]));
        assert_eq!(one.and(&two), Spans(vec![(5, 5), (10, 12), (20, 20)]));
        assert_eq!(one.and(&Spans(Vec::new())), Spans(Vec::new()));
    }
}
