//! Alternatives in the patterns of an `in`. A branch of a wait has one pattern, so each way to choose among the
//! alternatives becomes a branch of its own, to the same code; what takes many values is tested by a condition instead.

use quaject_esp_syntax::hir::{Pattern, PatternKind};

/// The maximal number of branches that one `in` becomes on account of its integers; `Either` may add more.
const MAX_BRANCHES: usize = 32;

/// The ways to choose among the alternatives of some patterns.
pub(super) struct Ways {
    /// For each way, the number of the alternative or value of each `Either` and listed `Among`, in order of text.
    pub(super) ways: Vec<Vec<u32>>,
    /// Whether the values of an `Among` are listed; else it is a condition.
    pub(super) integers: Integers,
}

/// What becomes of the integers of an `Among`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Integers {
    /// A branch for each.
    Listed,
    /// A condition on the value.
    Tested,
}

/// The ways of the patterns of one `in`.
pub(super) fn ways(patterns: &[Pattern]) -> Ways {
    let integers = match count(patterns, Integers::Listed) {
        ..=MAX_BRANCHES => Integers::Listed,
        _ => Integers::Tested,
    };
    Ways { ways: product(patterns, integers), integers }
}

/// The values of an `Among`, ascending.
pub(super) fn values(ranges: &[(i128, i128)]) -> impl Iterator<Item = i128> {
    ranges.iter().flat_map(|(low, high)| *low..*high)
}

/// How many ways the patterns have, saturating.
fn count(patterns: &[Pattern], integers: Integers) -> usize {
    patterns.iter().fold(1, |product: usize, pattern| product.saturating_mul(count_one(pattern, integers)))
}

fn count_one(pattern: &Pattern, integers: Integers) -> usize {
    match &pattern.kind {
        PatternKind::Among(ranges) if integers == Integers::Listed => {
            let count: i128 = ranges.iter().map(|(low, high)| high - low).sum();
            usize::try_from(count).unwrap_or(usize::MAX)
        }
        PatternKind::Either(alternatives) => {
            alternatives.iter().fold(0, |sum: usize, alternative| sum.saturating_add(count_one(alternative, integers)))
        }
        PatternKind::Tag(_, payload) => payload.as_ref().map_or(1, |payload| count_one(payload, integers)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => count(parts, integers),
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Assign(_)
        | PatternKind::Constant(_)
        | PatternKind::Among(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Equal(_) => 1,
    }
}

fn product(patterns: &[Pattern], integers: Integers) -> Vec<Vec<u32>> {
    let mut ways = vec![Vec::new()];
    for pattern in patterns {
        let next = ways_of_pattern(pattern, integers);
        if next.len() == 1 && next[0].is_empty() {
            continue;
        }
        ways = ways.iter().flat_map(|way| next.iter().map(|more| [way.as_slice(), more].concat())).collect();
    }
    ways
}

fn ways_of_pattern(pattern: &Pattern, integers: Integers) -> Vec<Vec<u32>> {
    match &pattern.kind {
        PatternKind::Among(ranges) if integers == Integers::Listed => {
            (0u32..).zip(values(ranges)).map(|(number, _)| vec![number]).collect()
        }
        PatternKind::Either(alternatives) => (0u32..)
            .zip(alternatives)
            .flat_map(|(number, alternative)| {
                ways_of_pattern(alternative, integers)
                    .into_iter()
                    .map(move |more| [&[number], more.as_slice()].concat())
            })
            .collect(),
        PatternKind::Tag(_, Some(payload)) => ways_of_pattern(payload, integers),
        PatternKind::Record(parts) | PatternKind::Array(parts) => product(parts, integers),
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Assign(_)
        | PatternKind::Constant(_)
        | PatternKind::Among(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Equal(_)
        | PatternKind::Tag(_, None) => vec![Vec::new()],
    }
}
