//! Reconstruction of a run: from a stored state back to the initial state by parent references, then forward again by
//! signature; last, the steps are annotated with messages, calls and locations.

use crate::counterexample::TraceStep;
use crate::environment::OpenEnvironment;
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::questions::NumberedAnswer;
use crate::search::SafetyViolation;
use crate::store::{StateRef, Store, hash, signature};
use crate::successors::MAX_FUEL;
use crate::successors::{SuccessorGenerator, Transition, TransitionOutcome};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::explore::OpenBranch;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Effect, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{ChannelId, Location};

/// A step with every nondeterministic choice resolved.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedStep {
    pub(crate) step: Step,
    pub(crate) message: Option<u32>,
    /// Results of extern functions that are not pure.
    pub(crate) choices: Box<[u32]>,
    /// The answers of pure functions that it chooses.
    pub(crate) answers: Box<[NumberedAnswer]>,
}

impl ResolvedStep {
    pub(crate) fn of(transition: &Transition) -> ResolvedStep {
        ResolvedStep {
            step: transition.step,
            message: transition.message,
            choices: transition.choices.clone(),
            answers: transition.answers.clone(),
        }
    }

    pub(crate) fn local(instance: u32) -> ResolvedStep {
        ResolvedStep { step: Step::Local { instance }, message: None, choices: Box::default(), answers: Box::default() }
    }

    /// The channel on which the environment sends in this step, and the number of the message.
    pub(crate) fn sent_by_environment(&self, machine: &Machine<'_>, state: &State) -> Option<(ChannelId, usize)> {
        let Step::FromEnvironment { instance, branch } = self.step else { return None };
        match machine.instance_view(state, instance).branches.get(branch as usize) {
            Some(Some(OpenBranch::FromEnvironment(channel))) => Some((*channel, self.message? as usize)),
            Some(_) | None => None,
        }
    }

    /// Fires the step in a state and returns its message; pure functions have these answers, and their first results
    /// otherwise. The environment has recorded the calls then.
    pub(crate) fn fire(
        &self,
        machine: &mut Machine<'_>,
        state: &mut State,
        environment: &mut OpenEnvironment,
        answers: &[NumberedAnswer],
    ) -> (Option<(ChannelId, Vec<Datum>)>, Effect) {
        environment.choose(&self.choices);
        environment.give_all(answers);
        let message = match self.step {
            Step::Communicate { sender, sender_branch: branch, .. }
            | Step::ToEnvironment { instance: sender, branch } => machine.message(state, environment, sender, branch),
            Step::FromEnvironment { .. } => self.sent_by_environment(machine, state).map(|(channel, number)| {
                environment.offer(Some((channel, number)));
                (channel, environment.environment_values().messages[channel.0 as usize][number].clone())
            }),
            Step::Local { .. } | Step::After { .. } | Step::Else { .. } => None,
        };
        environment.rewind();
        machine.set_fuel_limit(MAX_FUEL);
        let effect = machine.step(self.step, state, environment, &mut { MAX_FUEL });
        environment.offer(None);
        (message, effect)
    }
}

/// A run from the initial state to a stored state (with symmetry, to an equivalent one), and the vector of the state
/// that it reaches.
pub(crate) fn run_to_state<'m>(
    plan: &'m ExplorationPlan<'m>,
    store: &Store,
    state: StateRef,
) -> Result<(Vec<ResolvedStep>, SuccessorGenerator<'m>, Vec<u32>), TooLarge> {
    let mut states = vec![state];
    loop {
        let last = states[states.len() - 1];
        let parent = store.parent(last);
        if parent == last {
            break;
        }
        states.push(parent);
    }
    states.reverse();
    let mut generator = SuccessorGenerator::new(plan)?;
    let mut state_vector = generator.start();
    let mut run = Vec::new();
    append_eager_steps(&mut generator, &mut state_vector, 0..plan.instances as u32, &mut run);
    for wanted in &store.signatures(&states)[1..] {
        let is_wanted = |reached: &[u32]| signature(hash(reached)) == *wanted;
        let is_reached = try_step_to(&mut generator, &mut state_vector, &mut run, Continuation::Continues, &is_wanted);
        assert!(is_reached, "every visited state but the first is reached by a transition from its parent");
    }
    Ok((run, generator, state_vector))
}

/// The violation in a state that is equivalent, up to interchanged replicas, to the one in which it was found.
pub(crate) fn violation_in(
    generator: &mut SuccessorGenerator<'_>,
    state_vector: &[u32],
    violation: &SafetyViolation,
) -> SafetyViolation {
    let wanted = match violation {
        SafetyViolation::Deadlock(_) => match generator.quiescence(state_vector) {
            Outcome::Faulted(report) => return SafetyViolation::Deadlock(report),
            Outcome::Ended(_) | Outcome::Quiescent(_) | Outcome::Budget => return violation.clone(),
        },
        SafetyViolation::Leak(_) => return violation.clone(),
        SafetyViolation::Transition(wanted) => wanted,
    };
    generator.find_enabled(state_vector);
    let is_like = |transition: &&Transition| match (&transition.outcome, &wanted.outcome) {
        (TransitionOutcome::Faults(report), _) => wanted.is_like(report),
        (TransitionOutcome::NonTerminating(_), TransitionOutcome::NonTerminating(_)) => true,
        (_, _) => false,
    };
    let similar = || generator.enabled.iter().map(|transition| generator.get(*transition)).filter(is_like);
    let is_same = |transition: &&Transition| {
        (transition.step, transition.message, &transition.choices, &transition.answers)
            == (wanted.step, wanted.message, &wanted.choices, &wanted.answers)
    };
    SafetyViolation::Transition(similar().find(is_same).or_else(|| similar().next()).unwrap_or(wanted).clone())
}

/// Whether a run continues after a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Continuation {
    /// It does.
    Continues,
    /// The transition ends it.
    Ends,
}

/// Fires a transition to a state that satisfies the predicate; false if there is none.
pub(crate) fn try_step_to(
    generator: &mut SuccessorGenerator<'_>,
    state_vector: &mut [u32],
    run: &mut Vec<ResolvedStep>,
    continuation: Continuation,
    is_wanted: &dyn Fn(&[u32]) -> bool,
) -> bool {
    generator.find_enabled(state_vector);
    let mut reached = vec![0; state_vector.len()];
    let from_hash = hash(state_vector);
    for index in 0..generator.enabled.len() {
        let transition = generator.enabled[index];
        let actual = if matches!(generator.get(transition).outcome, TransitionOutcome::Continues) {
            Continuation::Continues
        } else {
            Continuation::Ends
        };
        if actual != continuation {
            continue;
        }
        generator.apply(transition, state_vector, from_hash, &mut reached);
        let mut permuted = reached.clone();
        for group in &generator.plan.groups {
            permuted[group.clone()].sort_unstable();
        }
        if !is_wanted(&permuted) {
            continue;
        }
        let transition = generator.get(transition).clone();
        run.push(ResolvedStep::of(&transition));
        for (component_index, component) in &transition.changes {
            state_vector[*component_index as usize] = *component;
        }
        if let Some(counter) = transition.counter {
            state_vector[counter as usize] += 1;
        }
        let changed: Vec<u32> = transition.changes.iter().map(|(component_index, _)| *component_index).collect();
        append_eager_steps(generator, state_vector, changed.into_iter(), run);
        return true;
    }
    false
}

/// Appends the eager local steps of these components.
pub(crate) fn append_eager_steps(
    generator: &mut SuccessorGenerator<'_>,
    state_vector: &mut [u32],
    component_indices: impl Iterator<Item = u32>,
    run: &mut Vec<ResolvedStep>,
) {
    if generator.plan.successor_mode != SuccessorMode::EagerLocal {
        return;
    }
    for instance in component_indices.filter(|index| (*index as usize) < generator.plan.instances) {
        let eager = generator.after_eager_steps(instance, state_vector[instance as usize]);
        if eager != state_vector[instance as usize] {
            run.push(ResolvedStep::local(instance));
            state_vector[instance as usize] = eager;
        }
    }
}

/// Executes the steps with these answers of pure functions, or those of each step alone, and records messages, calls
/// and locations.
pub(crate) fn annotate(
    plan: &ExplorationPlan<'_>,
    run: &[ResolvedStep],
    answers: Option<&[NumberedAnswer]>,
) -> Result<Vec<TraceStep>, TooLarge> {
    let mut generator = SuccessorGenerator::new(plan)?;
    let state_vector = generator.start();
    generator.load_all(&state_vector);
    let (machine, state, environment) = generator.execution();
    let mut traced = Vec::new();
    for chosen in run {
        let branch = |instance, branch| machine.branch_location(state, instance, branch);
        let locations: Vec<Location> = match chosen.step {
            Step::Local { instance } | Step::Else { instance } => vec![machine.location(state, instance)],
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                vec![branch(sender, sender_branch), branch(receiver, receiver_branch)]
            }
            Step::FromEnvironment { instance, branch: number }
            | Step::ToEnvironment { instance, branch: number }
            | Step::After { instance, branch: number } => vec![branch(instance, number)],
        };
        let (message, effect) = chosen.fire(machine, state, environment, answers.unwrap_or(&chosen.answers));
        traced.push(TraceStep { step: chosen.step, message, calls: environment.calls().to_vec(), locations });
        match effect {
            Effect::Done => {}
            Effect::Exited(_) | Effect::Faulted(_) | Effect::Unfinished => break,
        }
    }
    Ok(traced)
}

/// The location of an instance after these steps.
pub(crate) fn location_after(
    plan: &ExplorationPlan<'_>,
    run: &[ResolvedStep],
    answers: &[NumberedAnswer],
    instance: u32,
) -> Result<Location, TooLarge> {
    let mut generator = SuccessorGenerator::new(plan)?;
    let state_vector = generator.start();
    generator.load_all(&state_vector);
    let (machine, state, environment) = generator.execution();
    for chosen in run {
        chosen.fire(machine, state, environment, answers);
    }
    Ok(machine.location(state, instance))
}
