//! Minimization of a counterexample by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002). The reduced search takes the transitions of one set of processes before those of
//! another, so its shortest run may contain steps that are irrelevant to the violation. Segments of the run are
//! removed, halves first and single steps last, as long as the remaining steps are a run with the same violation.

use crate::exploration_plan::ExplorationPlan;
use crate::questions::NumberedAnswer;
use crate::reconstruct::ResolvedStep;
use crate::search::SafetyViolation;
use crate::successors::MAX_FUEL;
use crate::successors::waits_for_environment;
use crate::successors::{SuccessorGenerator, Transition, TransitionOutcome};
use quaject_esp_exec::report::{FaultReport, Outcome};
use quaject_esp_exec::step::{Control, Effect, EnvironmentMode, Step, TooLarge};

/// The maximum number of steps replayed; longer runs are minimized in part.
const MAX_STEPS: usize = 1 << 20;

/// A run and the violation at its end.
type ViolatingRun = (Vec<ResolvedStep>, SafetyViolation);

/// A run with the same violation and no more steps, in which pure functions have these answers. A run to
/// non-termination is returned as it is: each replay would take as long.
pub(crate) fn minimize(
    plan: &ExplorationPlan<'_>,
    run: Vec<ResolvedStep>,
    violation: SafetyViolation,
    answers: &[NumberedAnswer],
) -> Result<ViolatingRun, TooLarge> {
    if matches!(&violation, SafetyViolation::Transition(transition) if matches!(transition.outcome, TransitionOutcome::NonTerminating(_)))
    {
        return Ok((run, violation));
    }
    let mut generator = SuccessorGenerator::new(plan)?;
    let start = generator.start();
    let steps_left = MAX_STEPS.max(run.len());
    let mut replayer = Replayer { generator, start, violation: &violation, answers, steps_left };
    let Some(mut best) = replayer.replay(run.iter()) else {
        debug_assert!(false, "a counterexample replays");
        return Ok((run, violation));
    };
    let mut size = best.0.len().div_ceil(2);
    while size > 0 {
        let before = best.0.len();
        let mut end = before;
        while end > 0 {
            let start = end.saturating_sub(size);
            if let Some(shorter) = replayer.replay(best.0[..start].iter().chain(&best.0[end..])) {
                best = shorter;
            }
            end = start.min(best.0.len());
        }
        // A segment removed now may have been needed by an earlier one.
        if size > 1 || best.0.len() == before {
            size /= 2;
        }
    }
    Ok(best)
}

struct Replayer<'m, 'w> {
    generator: SuccessorGenerator<'m>,
    start: Vec<u32>,
    violation: &'w SafetyViolation,
    answers: &'w [NumberedAnswer],
    /// The number of steps that may still be replayed.
    steps_left: usize,
}

impl Replayer<'_, '_> {
    /// Replays these steps, except local steps of instances that have none to take; none if this is not a run with the
    /// same violation.
    fn replay<'c>(&mut self, run: impl Iterator<Item = &'c ResolvedStep>) -> Option<ViolatingRun> {
        self.generator.load_all(&self.start);
        self.generator.environment.give_all(self.answers);
        let mut taken = Vec::new();
        for chosen in run {
            self.steps_left = self.steps_left.checked_sub(1)?;
            let (machine, state, environment) = self.generator.execution();
            if let Step::Local { instance } = chosen.step
                && !matches!(state.control(instance), Control::Running { .. })
            {
                continue;
            }
            environment.offer(chosen.sent_by_environment(machine, state));
            environment.choose(&chosen.choices);
            let is_enabled = machine.is_enabled(chosen.step, state, environment, EnvironmentMode::AsTraced);
            environment.rewind();
            let effect = is_enabled.then(|| machine.step(chosen.step, state, environment, &mut { MAX_FUEL }));
            environment.offer(None);
            taken.push(chosen.clone());
            match (effect?, self.violation) {
                (Effect::Done, _) => {}
                (Effect::Faulted(report), SafetyViolation::Transition(transition)) if transition.is_like(&report) => {
                    return Some((
                        taken,
                        SafetyViolation::Transition(Transition {
                            outcome: TransitionOutcome::Faults(report),
                            ..transition.clone()
                        }),
                    ));
                }
                (Effect::Faulted(_) | Effect::Exited(_) | Effect::Unfinished, _) => return None,
            }
        }
        match self.violation {
            SafetyViolation::Deadlock(_) => self.deadlock().map(|report| (taken, SafetyViolation::Deadlock(report))),
            SafetyViolation::Leak(pool) => {
                (self.generator.leak_in_loaded()? == *pool).then_some((taken, SafetyViolation::Leak(*pool)))
            }
            SafetyViolation::Transition(_) => None,
        }
    }

    /// The deadlock in the loaded state, if there is one.
    fn deadlock(&mut self) -> Option<Box<FaultReport>> {
        let (machine, state, environment) = self.generator.execution();
        environment.choose(&[]);
        if !machine.enabled_under_open_environment(state, environment).into_iter().all(waits_for_environment) {
            return None;
        }
        match self.generator.quiescence_of_loaded() {
            Outcome::Faulted(report) => Some(report),
            Outcome::Ended(_) | Outcome::Quiescent(_) | Outcome::Budget => None,
        }
    }
}
