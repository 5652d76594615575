//! The words that a process's part of a fast path may spell: `follows` as an automaton over occurrences of elements
//! ("Fast Paths in Concurrent Programs", section 4.2; Glushkov's construction). Knows no code.

use crate::path_spec::{PathElement, PathRegex, ProgramPoint};
use std::collections::BTreeSet;

/// Most occurrences of elements; bounded repetitions are written out.
const MOST_OCCURRENCES: usize = 4096;

/// Where a word is: which occurrences its last element may be; at its start the list is empty.
pub(crate) type Reached = Vec<u32>;

/// The automaton.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// By occurrence.
    pub(super) elements: Vec<PathElement>,
    first: BTreeSet<u32>,
    follow: Vec<BTreeSet<u32>>,
}

/// What a part of the expression begins and ends with.
#[derive(Clone, Default)]
struct Ends {
    is_nullable: bool,
    first: BTreeSet<u32>,
    last: BTreeSet<u32>,
}

impl Words {
    /// The words of an expression; none if it has too many occurrences.
    pub(crate) fn new(regex: Option<&PathRegex>) -> Option<Words> {
        let mut words = Words::default();
        if let Some(regex) = regex {
            words.first = words.build(regex)?.first;
        }
        Some(words)
    }

    fn build(&mut self, regex: &PathRegex) -> Option<Ends> {
        match regex {
            PathRegex::Element(element) => {
                let number = self.elements.len() as u32;
                if self.elements.len() == MOST_OCCURRENCES {
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
            PathRegex::Repeat(part, least, most) => {
                let mut all = Ends { is_nullable: true, ..Ends::default() };
                for number in 0..most.unwrap_or(least + 1) {
                    let mut one = self.build(part)?;
                    one.is_nullable |= number >= *least;
                    if most.is_none() && number == *least {
                        self.link(&one.last.clone(), &one.first);
                    }
                    all = self.append(all, &one);
                    // An empty part would go on for ever without an occurrence.
                    if one.last.is_empty() {
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

    /// The occurrences with which a word can go on at this statement.
    pub(super) fn next(&self, reached: &Reached, point: ProgramPoint) -> Vec<u32> {
        let mut next: BTreeSet<u32> = BTreeSet::new();
        if reached.is_empty() {
            next.extend(&self.first);
        }
        for occurrence in reached {
            next.extend(&self.follow[*occurrence as usize]);
        }
        next.into_iter().filter(|occurrence| self.elements[*occurrence as usize].point == point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_esp_ir::ir::SiteId;

    fn letter(number: u32) -> PathRegex {
        let point = ProgramPoint::Site(SiteId(number));
        PathRegex::Element(PathElement { point, test: None, peer: None, yield_to: None })
    }

    /// How much of a word of sites can be spelled.
    fn spelled(regex: &PathRegex, word: &[u32]) -> usize {
        let words = Words::new(Some(regex)).expect("it is small");
        let mut reached = Reached::new();
        for (length, site) in word.iter().enumerate() {
            let next = words.next(&reached, ProgramPoint::Site(SiteId(*site)));
            if next.is_empty() {
                return length;
            }
            reached = next;
        }
        word.len()
    }

    #[test]
    fn figure_5() {
        let pair = PathRegex::Repeat(Box::new(PathRegex::Sequence(vec![letter(2), letter(3)])), 0, None);
        let regex = PathRegex::Sequence(vec![letter(1), pair]);
        assert_eq!(spelled(&regex, &[1, 2, 3, 2]), 4);
        assert_eq!(spelled(&regex, &[2]), 0);
        assert_eq!(spelled(&regex, &[1, 3]), 1);
        assert_eq!(spelled(&regex, &[1, 2, 2]), 2);
    }

    #[test]
    fn repetitions_are_bounded() {
        let regex = |least, most| PathRegex::Repeat(Box::new(letter(1)), least, most);
        let ones = [1; 6];
        assert_eq!(spelled(&regex(2, Some(3)), &ones), 3);
        assert_eq!(spelled(&regex(2, None), &ones), 6);
        assert_eq!(spelled(&PathRegex::Sequence(vec![regex(2, Some(3)), letter(2)]), &[1, 2]), 1);
        assert_eq!(spelled(&PathRegex::Sequence(vec![regex(2, Some(3)), letter(2)]), &[1, 1, 2]), 3);
        assert_eq!(spelled(&PathRegex::Sequence(vec![regex(0, Some(1)), letter(2)]), &[2]), 1);
        assert_eq!(spelled(&PathRegex::Choice(vec![letter(1), PathRegex::Sequence(vec![])]), &[1, 1]), 1);
        assert!(Words::new(Some(&regex(0, Some(5000)))).is_none());
        assert!(
            Words::new(Some(&PathRegex::Repeat(Box::new(PathRegex::Sequence(vec![])), 0, Some(u64::MAX)))).is_some()
        );
    }
}
