//! Brings the tests of a conjunction into a form in which equal conditions are written alike: equalities of one field
//! joined, tests that others imply left out, contradictions found. A field that a test reads is still required to be in
//! the packet.

use super::{Field, Sense, Subject, Test};
use std::collections::BTreeMap;

/// The tests that remain; `None` if no packet passes them all.
pub(super) fn simplify(tests: Vec<Test>) -> Option<Vec<Test>> {
    let mut subjects: BTreeMap<Subject, Vec<Test>> = BTreeMap::new();
    for test in tests {
        subjects.entry(test.subject.clone()).or_default().push(test);
    }
    let mut kept = Vec::new();
    for (subject, tests) in subjects {
        let before = kept.len();
        one_subject(&subject, tests, &mut kept)?;
        if let (true, Subject::Field(field)) = (kept.len() == before, &subject) {
            kept.push(Test::there(field.clone()));
        }
    }
    drop_presence_that_follows(&mut kept);
    Some(kept)
}

/// The range of a test on `number & mask`, clipped to the possible values.
fn possible(test: &Test) -> Option<Test> {
    // The largest number under the mask is the mask itself.
    let mut test = test.clone();
    test.high = test.high.min(test.mask);
    let empty = test.low > test.high;
    match (test.sense, empty) {
        (Sense::Inside, true) => None,
        (Sense::Outside, true) => Some(Test { mask: 0, low: 0, high: 0, sense: Sense::Inside, ..test }),
        (Sense::Inside | Sense::Outside, false) => Some(test),
    }
}

fn one_subject(subject: &Subject, tests: Vec<Test>, kept: &mut Vec<Test>) -> Option<()> {
    let full = match subject {
        Subject::Field(field) => field.full(),
        Subject::Length => u32::MAX,
    };
    let (mut mask, mut value) = (0_u32, 0_u32);
    let mut others: BTreeMap<u32, (u32, u32, Vec<Test>)> = BTreeMap::new();
    for mut test in tests {
        test.mask &= full;
        let mut test = possible(&test)?;
        // A mask of one bit: excluding one of its two values is an equality.
        if test.sense == Sense::Outside && test.mask.is_power_of_two() && test.low == test.high {
            let other = if test.low == 0 { test.mask } else { 0 };
            if test.low == 0 || test.low == test.mask {
                test = Test { low: other, high: other, sense: Sense::Inside, ..test };
            }
        }
        if test.is_equality() {
            if test.low & !test.mask != 0 || (value ^ test.low) & mask & test.mask != 0 {
                return None;
            }
            mask |= test.mask;
            value |= test.low;
            continue;
        }
        let (low, high, outside) = others.entry(test.mask).or_insert((0, test.mask, Vec::new()));
        match test.sense {
            Sense::Inside => (*low, *high) = ((*low).max(test.low), (*high).min(test.high)),
            Sense::Outside if !outside.contains(&test) => outside.push(test),
            Sense::Outside => {}
        }
    }
    if mask != 0 {
        kept.push(Test { subject: subject.clone(), mask, low: value, high: value, sense: Sense::Inside });
    }
    for (bits, (mut low, mut high, mut outside)) in others {
        if bits & !mask == 0 {
            // The equality decides.
            let number = value & bits;
            if number < low || number > high || outside.iter().any(|test| !test.accepts(number)) {
                return None;
            }
            continue;
        }
        outside.sort();
        // Exclusions at the ends of the range make it smaller.
        for test in &outside {
            if test.low <= low && test.high >= low {
                low = test.high.checked_add(1)?;
            }
        }
        for test in outside.iter().rev() {
            if test.high >= high && test.low <= high {
                high = test.low.checked_sub(1)?;
            }
        }
        // The remaining range may be a single number that is impossible under the mask.
        if low > high || low == high && low & !bits != 0 {
            return None;
        }
        outside.retain(|test| test.low > low && test.high < high);
        if low > 0 || high < bits {
            kept.push(Test { subject: subject.clone(), mask: bits, low, high, sense: Sense::Inside });
        }
        kept.extend(outside);
    }
    Some(())
}

/// A field is known to be there when another test reads bytes at least as far from the same base.
fn drop_presence_that_follows(tests: &mut Vec<Test>) {
    let mut furthest: BTreeMap<super::Base, u64> = BTreeMap::new();
    let mut note = |field: &Field| {
        let end = furthest.entry(field.base.clone()).or_default();
        *end = field.end().max(*end);
    };
    for test in tests.iter() {
        if let Subject::Field(field) = &test.subject {
            if test.mask != 0 {
                note(field);
            }
            // The terms of a base are read, too.
            let mut bases = vec![field.base.clone()];
            while let Some(base) = bases.pop() {
                for term in base.terms() {
                    note(&term.field);
                    bases.push(term.field.base.clone());
                }
            }
        }
    }
    // The furthest first: it implies the others.
    tests.reverse();
    tests.retain(|test| match &test.subject {
        Subject::Field(field) if test.mask == 0 => {
            let known = furthest.get(&field.base).copied().unwrap_or_default();
            let new = field.end() > known;
            if new {
                furthest.insert(field.base.clone(), field.end());
            }
            new
        }
        Subject::Field(_) | Subject::Length => true,
    });
    tests.reverse();
}
