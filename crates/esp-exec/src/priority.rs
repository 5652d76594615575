//! Priorities: which of the steps whose participants are all ready the `pri alt`s allow (reference, section 8). The
//! semantics and the checker share this function.
//!
//! ```text
//!   P: pri alt { a  b }   Q: alt { b  a }        P prefers a to b: only a is allowed
//!   P: pri alt { a  b }   Q: pri alt { b  a }    a cycle of preferences, and no other step preferred: both are allowed
//!   P prefers a to c, Q prefers b to a, R prefers c to b: a longer cycle: all three are allowed
//! ```

use crate::trace::Step;

/// The instances that take part in a step by a branch, with their branches; none in local code or an `else`.
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

/// Whether a step is allowed among `steps`, those whose participants are all ready: no step is preferred to it, or
/// every preferred one is on a cycle of preferences with it. `is_priority` holds for the instances that wait at a
/// `pri alt`.
pub fn is_allowed(step: Step, steps: &[Step], is_priority: &dyn Fn(u32) -> bool) -> bool {
    let preferred: Vec<Vec<usize>> = steps
        .iter()
        .map(|later| (0..steps.len()).filter(|earlier| is_preferred(steps[*earlier], *later, is_priority)).collect())
        .collect();
    let Some(at) = steps.iter().position(|other| *other == step) else { return false };
    let before = closure(at, |index| preferred[index].iter().copied(), steps.len());
    if (0..steps.len()).any(|index| before[index] && index != at && preferred[index].is_empty()) {
        return false;
    }
    let followers = |index: usize| preferred.iter().enumerate().filter(move |(_, before)| before.contains(&index));
    let after = closure(at, |index| followers(index).map(|(other, _)| other), steps.len());
    (0..steps.len()).all(|index| !before[index] || after[index])
}

/// The reflexive transitive closure of `next` from `at`.
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

/// Whether a `pri alt` prefers the first step to the second.
fn is_preferred(earlier: Step, later: Step, is_priority: &dyn Fn(u32) -> bool) -> bool {
    participants(later)
        .filter(|(instance, _)| is_priority(*instance))
        .any(|(instance, branch)| participants(earlier).any(|(other, earlier)| other == instance && earlier < branch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn communicate(sender: u32, sender_branch: u32, receiver: u32, receiver_branch: u32) -> Step {
        Step::Communicate { sender, sender_branch, receiver, receiver_branch }
    }

    fn allowed(steps: &[Step], is_priority: &dyn Fn(u32) -> bool) -> Vec<bool> {
        steps.iter().map(|step| is_allowed(*step, steps, is_priority)).collect()
    }

    #[test]
    fn without_priorities_every_step_is_allowed() {
        assert!(allowed(&[], &|_| false).is_empty());
        assert_eq!(allowed(&[communicate(0, 0, 1, 1), communicate(0, 1, 1, 0)], &|_| false), [true, true]);
    }

    #[test]
    fn one_preference_decides() {
        assert_eq!(
            allowed(&[communicate(0, 0, 1, 1), communicate(0, 1, 1, 0)], &|instance| instance == 0),
            [true, false]
        );
        let from_environment = Step::FromEnvironment { instance: 1, branch: 0 };
        assert_eq!(allowed(&[communicate(0, 0, 1, 1), from_environment], &|instance| instance == 1), [false, true]);
    }

    #[test]
    fn opposite_preferences_form_a_cycle() {
        assert_eq!(allowed(&[communicate(0, 0, 1, 1), communicate(0, 1, 1, 0)], &|_| true), [true, true]);
        // A third step is preferred to one of the two, and no step to it.
        let steps = [communicate(0, 0, 1, 1), communicate(0, 1, 1, 0), communicate(0, 0, 2, 0)];
        assert_eq!(allowed(&steps, &|_| true), [false, false, true]);
    }

    #[test]
    fn steps_on_a_cycle_are_allowed_and_steps_behind_it_are_not() {
        let cycle = [communicate(0, 0, 1, 1), communicate(1, 0, 2, 1), communicate(2, 0, 0, 1)];
        assert_eq!(allowed(&cycle, &|_| true), [true, true, true]);
        let mut steps = cycle.to_vec();
        steps.push(communicate(0, 2, 3, 0));
        assert_eq!(allowed(&steps, &|_| true), [true, true, true, false]);
        // A step preferred to one on the cycle breaks it.
        let mut broken: Vec<Step> = cycle
            .iter()
            .map(|step| match *step {
                Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                    communicate(sender, sender_branch + 1, receiver, receiver_branch + 1)
                }
                other => other,
            })
            .collect();
        broken.push(Step::After { instance: 1, branch: 0 });
        assert_eq!(allowed(&broken, &|_| true), [false, false, false, true]);
    }
}
