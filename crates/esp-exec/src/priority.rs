//! Which of the steps that everybody is there for the `pri alt`s allow (reference, section 8). Knows nothing but who
//! takes part in each step by which branch; the semantics and the checker ask here alike.
//!
//! ```text
//!   P: pri alt { a  b }   Q: alt { b  a }        a before b at P: only a goes
//!   P: pri alt { a  b }   Q: pri alt { b  a }    a circle, each before the other, nothing else before any: both go
//!   P prefers a to c, Q prefers b to a, R prefers c to b: a longer one: all three go
//! ```

use crate::trace::Step;

/// Who takes part in a step by a branch of an operation, and by which; nobody by one's own code or an `else`.
pub fn participants(step: Step) -> impl Iterator<Item = (u32, u32)> {
    let (first, second) = match step {
        Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
            (Some((sender, sender_branch)), Some((receiver, receiver_branch)))
        }
        Step::FromEnvironment { instance, branch }
        | Step::ToEnvironment { instance, branch }
        | Step::After { instance, branch } => (Some((instance, branch)), None),
        Step::Local { .. } | Step::Else { .. } => (None, None),
    };
    first.into_iter().chain(second)
}

/// Whether a step may be taken, of all those that everybody is there for: nothing stands before it at a `pri alt`, or
/// only what it stands before itself, around a circle. `is_priority` says who waits at a `pri alt`.
pub fn is_allowed(step: Step, steps: &[Step], is_priority: &dyn Fn(u32) -> bool) -> bool {
    let rivals: Vec<Vec<usize>> = steps
        .iter()
        .map(|later| (0..steps.len()).filter(|earlier| stands_before(steps[*earlier], *later, is_priority)).collect())
        .collect();
    let Some(at) = steps.iter().position(|other| *other == step) else { return false };
    let before = closure(at, |index| rivals[index].iter().copied(), steps.len());
    if (0..steps.len()).any(|index| before[index] && index != at && rivals[index].is_empty()) {
        return false;
    }
    let followers = |index: usize| rivals.iter().enumerate().filter(move |(_, before)| before.contains(&index));
    let after = closure(at, |index| followers(index).map(|(other, _)| other), steps.len());
    (0..steps.len()).all(|index| !before[index] || after[index])
}

/// What can be reached from `at`, itself among it.
fn closure<I: Iterator<Item = usize>>(at: usize, next: impl Fn(usize) -> I, count: usize) -> Vec<bool> {
    let mut reached = vec![false; count];
    reached[at] = true;
    let mut open = vec![at];
    while let Some(index) = open.pop() {
        for other in next(index) {
            if !std::mem::replace(&mut reached[other], true) {
                open.push(other);
            }
        }
    }
    reached
}

/// Whether a `pri alt` ranks a step before another.
fn stands_before(earlier: Step, later: Step, is_priority: &dyn Fn(u32) -> bool) -> bool {
    participants(later)
        .filter(|(instance, _)| is_priority(*instance))
        .any(|(instance, branch)| participants(earlier).any(|(other, earlier)| other == instance && earlier < branch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(sender: u32, sender_branch: u32, receiver: u32, receiver_branch: u32) -> Step {
        Step::Communicate { sender, sender_branch, receiver, receiver_branch }
    }

    fn allowed(steps: &[Step], is_priority: &dyn Fn(u32) -> bool) -> Vec<bool> {
        steps.iter().map(|step| is_allowed(*step, steps, is_priority)).collect()
    }

    #[test]
    fn nothing_is_before_anything_without_priority() {
        assert!(allowed(&[], &|_| false).is_empty());
        assert_eq!(allowed(&[meet(0, 0, 1, 1), meet(0, 1, 1, 0)], &|_| false), [true, true]);
    }

    #[test]
    fn one_order_decides() {
        assert_eq!(allowed(&[meet(0, 0, 1, 1), meet(0, 1, 1, 0)], &|instance| instance == 0), [true, false]);
        let world = Step::FromEnvironment { instance: 1, branch: 0 };
        assert_eq!(allowed(&[meet(0, 0, 1, 1), world], &|instance| instance == 1), [false, true]);
    }

    #[test]
    fn opposite_orders_are_a_circle() {
        assert_eq!(allowed(&[meet(0, 0, 1, 1), meet(0, 1, 1, 0)], &|_| true), [true, true]);
        // A third one, which nobody ranks behind anything, is before one of the two.
        let steps = [meet(0, 0, 1, 1), meet(0, 1, 1, 0), meet(0, 0, 2, 0)];
        assert_eq!(allowed(&steps, &|_| true), [false, false, true]);
    }

    #[test]
    fn a_circle_goes_on_and_what_only_hangs_on_it_does_not() {
        let circle = [meet(0, 0, 1, 1), meet(1, 0, 2, 1), meet(2, 0, 0, 1)];
        assert_eq!(allowed(&circle, &|_| true), [true, true, true]);
        let mut steps = circle.to_vec();
        steps.push(meet(0, 2, 3, 0));
        assert_eq!(allowed(&steps, &|_| true), [true, true, true, false]);
        // Something before one of the circle breaks it.
        let mut broken: Vec<Step> = circle
            .iter()
            .map(|step| match *step {
                Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                    meet(sender, sender_branch + 1, receiver, receiver_branch + 1)
                }
                other => other,
            })
            .collect();
        broken.push(Step::After { instance: 1, branch: 0 });
        assert_eq!(allowed(&broken, &|_| true), [false, false, false, true]);
    }
}
