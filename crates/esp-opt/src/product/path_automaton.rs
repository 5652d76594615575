//! The position automaton of a path expression (Glushkov 1961). It accepts the sequences of statements that a member
//! may execute on a fast path ("Fast Paths in Concurrent Programs", section 4.2). Knows no code.
//!
//! The automaton has one state, or *position*, for each occurrence of an element in the expression, and no empty
//! transitions. A transition leads from position p to position q if q can follow p; it is labelled with the element at
//! q.
//!
//! ```text
//!   a (b c)*      positions  1:a 2:b 3:c      first {1}     follow 1 -> {2}   2 -> {3}   3 -> {2}
//! ```
//!
//! Bounded repetitions are expanded, so that each occurrence has a position. The automaton is nondeterministic and
//! simulated on sets of positions. A word is accepted if the set after it is not empty. There are no final states,
//! because the exits of the specification determine where a path ends.

use crate::path_spec::{PathElement, PathRegex, PathStatement};
use std::collections::BTreeSet;

/// The maximal number of positions.
const MAX_POSITIONS: usize = 4096;

/// The states of the automaton after a word.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(crate) enum NfaStates {
    /// Before the first element.
    #[default]
    Initial,
    /// The possible positions of the last element, ascending; none if the word is rejected.
    After(Vec<u32>),
}

impl NfaStates {
    /// Whether the automaton has rejected the word.
    pub(super) fn is_rejected(&self) -> bool {
        matches!(self, NfaStates::After(positions) if positions.is_empty())
    }

    /// Adds positions of the last element.
    pub(super) fn extend(&mut self, more: Vec<u32>) {
        let mut positions = match std::mem::take(self) {
            NfaStates::Initial => Vec::new(),
            NfaStates::After(positions) => positions,
        };
        positions.extend(more);
        positions.sort_unstable();
        *self = NfaStates::After(positions);
    }
}

/// The automaton.
#[derive(Clone, Debug, Default)]
pub(crate) struct PositionAutomaton {
    /// Per position: its element.
    pub(super) elements: Vec<PathElement>,
    /// The positions at which a word can begin, and per position those that can follow it.
    first: BTreeSet<u32>,
    follow: Vec<BTreeSet<u32>>,
}

/// The positions at which the words of a subexpression begin and end, and whether the empty word is one.
#[derive(Clone, Default)]
struct Ends {
    is_nullable: bool,
    first: BTreeSet<u32>,
    last: BTreeSet<u32>,
}

impl PositionAutomaton {
    /// The automaton of an expression; none if it has too many positions.
    pub(crate) fn new(regex: Option<&PathRegex>) -> Option<PositionAutomaton> {
        let mut automaton = PositionAutomaton::default();
        if let Some(regex) = regex {
            automaton.first = automaton.build(regex)?.first;
        }
        Some(automaton)
    }

    fn build(&mut self, regex: &PathRegex) -> Option<Ends> {
        match regex {
            PathRegex::Element(element) => {
                let number = self.elements.len() as u32;
                if self.elements.len() == MAX_POSITIONS {
                    return None;
                }
                self.elements.push(element.clone());
                self.follow.push(BTreeSet::new());
                let only = BTreeSet::from([number]);
                Some(Ends { is_nullable: false, first: only.clone(), last: only })
            }
            PathRegex::Sequence(parts) => {
                let mut all = Ends { is_nullable: true, ..Ends::default() };
                for part in parts {
                    let part = self.build(part)?;
                    all = self.append(all, &part);
                }
                Some(all)
            }
            PathRegex::Choice(parts) => {
                let mut all = Ends::default();
                for part in parts {
                    let part = self.build(part)?;
                    all.is_nullable |= part.is_nullable;
                    all.first.extend(part.first);
                    all.last.extend(part.last);
                }
                Some(all)
            }
            PathRegex::Repeat(part, min, max) => {
                let mut all = Ends { is_nullable: true, ..Ends::default() };
                for number in 0..max.unwrap_or(min + 1) {
                    let mut copy = self.build(part)?;
                    copy.is_nullable |= number >= *min;
                    if max.is_none() && number == *min {
                        self.link(&copy.last.clone(), &copy.first);
                    }
                    all = self.append(all, &copy);
                    // Copies of a subexpression without positions add nothing, however many there are.
                    if copy.last.is_empty() {
                        break;
                    }
                }
                Some(all)
            }
        }
    }

    fn append(&mut self, before: Ends, after: &Ends) -> Ends {
        self.link(&before.last, &after.first);
        let mut all = Ends { is_nullable: before.is_nullable && after.is_nullable, ..before.clone() };
        if before.is_nullable {
            all.first.extend(&after.first);
        }
        if after.is_nullable {
            all.last.extend(&after.last);
        } else {
            all.last = after.last.clone();
        }
        all
    }

    fn link(&mut self, from: &BTreeSet<u32>, to: &BTreeSet<u32>) {
        for from in from {
            self.follow[*from as usize].extend(to);
        }
    }

    /// The states after one more statement; none if the automaton does not accept it.
    pub(super) fn next(&self, states: &NfaStates, statement: PathStatement) -> Vec<u32> {
        let next: BTreeSet<u32> = match states {
            NfaStates::Initial => self.first.clone(),
            NfaStates::After(positions) => {
                positions.iter().flat_map(|position| &self.follow[*position as usize]).copied().collect()
            }
        };
        next.into_iter().filter(|position| self.elements[*position as usize].statement == statement).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_esp_ir::ir::SiteId;

    fn letter(number: u32) -> PathRegex {
        let statement = PathStatement::Site(SiteId(number));
        PathRegex::Element(PathElement { statement, predicate: None, peer: None, yield_to: None })
    }

    /// The length of the longest prefix of a word of sites that is accepted.
    fn accepted_prefix(regex: &PathRegex, word: &[u32]) -> usize {
        let automaton = PositionAutomaton::new(Some(regex)).expect("the expression is small");
        let mut states = NfaStates::default();
        for (length, site) in word.iter().enumerate() {
            let next = automaton.next(&states, PathStatement::Site(SiteId(*site)));
            if next.is_empty() {
                return length;
            }
            states = NfaStates::After(next);
        }
        word.len()
    }

    #[test]
    fn figure_5() {
        let pair = PathRegex::Repeat(Box::new(PathRegex::Sequence(vec![letter(2), letter(3)])), 0, None);
        let regex = PathRegex::Sequence(vec![letter(1), pair]);
        assert_eq!(accepted_prefix(&regex, &[1, 2, 3, 2]), 4);
        assert_eq!(accepted_prefix(&regex, &[2]), 0);
        assert_eq!(accepted_prefix(&regex, &[1, 3]), 1);
        assert_eq!(accepted_prefix(&regex, &[1, 2, 2]), 2);
    }

    #[test]
    fn repetitions_are_bounded() {
        let regex = |min, max| PathRegex::Repeat(Box::new(letter(1)), min, max);
        let ones = [1; 6];
        assert_eq!(accepted_prefix(&regex(2, Some(3)), &ones), 3);
        assert_eq!(accepted_prefix(&regex(2, None), &ones), 6);
        assert_eq!(accepted_prefix(&PathRegex::Sequence(vec![regex(2, Some(3)), letter(2)]), &[1, 2]), 1);
        assert_eq!(accepted_prefix(&PathRegex::Sequence(vec![regex(2, Some(3)), letter(2)]), &[1, 1, 2]), 3);
        assert_eq!(accepted_prefix(&PathRegex::Sequence(vec![regex(0, Some(1)), letter(2)]), &[2]), 1);
        assert_eq!(accepted_prefix(&PathRegex::Choice(vec![letter(1), PathRegex::Sequence(vec![])]), &[1, 1]), 1);
        assert!(PositionAutomaton::new(Some(&regex(0, Some(5000)))).is_none());
        assert!(
            PositionAutomaton::new(Some(&PathRegex::Repeat(Box::new(PathRegex::Sequence(vec![])), 0, Some(u64::MAX))))
                .is_some()
        );
    }
}
