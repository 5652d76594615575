//! The driver: checks a model for safety, then its properties, then starvation, and reports the first violation with a
//! short run that shows it.

use crate::concretize::is_same_violation;
use crate::counterexample::{Counterexample, ViolationKind};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::instance_set::{instance_bit, participant_set};
use crate::kept_answers::AnswerScope;
use crate::liveness::{self, ForcedPrefix, Goal, LassoOutcome, ProductStatistics};
use crate::minimize::minimize;
use crate::negation::{Negations, negations, plan_with_atoms};
use crate::options::{Limits, Liveness, Options, Progress, Reduction, Symmetry};
use crate::pure_answers::{Consistency, Searched, answers_as_data, consistency, search_consistently};
use crate::reconstruct::{ResolvedStep, annotate, location_after, run_to_state, violation_in};
use crate::refusal::{MAX_CHECKED_INSTANCES, Refusal};
use crate::report::{Answer, Deadlocks, Leaks, Report, Verdict, restrictions};
use crate::search::{self, LocatedViolation, SafetyViolation};
use crate::store::Store;
use crate::successors::TransitionOutcome;
use crate::timer::Stopwatch;
use crate::unreached::unreached;
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::model::ModelProgram;

/// Checks a model. Calls `progress` at intervals with the size of the search so far.
pub fn check(model: &ModelProgram, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, Refusal> {
    check_beyond(model, options, &[], progress)
}

/// As [`check`], for violations other than these, which are known: a fault at the same location, a deadlock of at least
/// the same instances, a loss from the same pool, the same property. Without partial-order reduction if there are any,
/// because a known violation ends its run where a reduced graph may have no other run with the same steps.
pub fn check_beyond(
    model: &ModelProgram,
    options: &Options,
    known: &[ViolationKind],
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, Refusal> {
    let reduction = match options.reduction {
        Reduction::On if !known.is_empty() => Reduction::Communications,
        reduction => reduction,
    };
    let options = &Options { reduction, ..options.clone() };
    let started = Stopwatch::start(options.limits.timer);
    let bytes = data_bytes(&model.program);
    if let Some(limit) = options.limits.bytes.map(|limit| limit as usize).filter(|limit| bytes > *limit) {
        return Err(Refusal::TooLarge(TooLarge { bytes, limit }));
    }
    // Before the search: a malformed property is reported at once.
    let negations = negations(model)?;
    let successor_mode = successor_mode(options);
    let is_new = |violation: &SafetyViolation| !known.iter().any(|known| is_same_violation(model, known, violation));
    let (mut verdict, outcome, states) = search_consistently(|kept| {
        let plan = ExplorationPlan::new(model, successor_mode, options.symmetry, AnswerScope::Run(kept));
        let plan = plan.map_err(Refusal::Unbounded)?;
        let store = Store::new(plan.width, options.compaction, options.threads).limited(options.limits.bytes);
        let options = Options { limits: options.limits.after(started.elapsed()), ..options.clone() };
        let outcome = search::search(&plan, &store, &options, &is_new, progress)?;
        let verdict = match (&outcome.violation, outcome.limit) {
            (Some(violation), _) => match safety_counterexample(&plan, &store, violation)? {
                Searched::Done(counterexample) => Verdict::Violated(counterexample),
                Searched::Contradictory(questions) => return Ok(Searched::Contradictory(questions)),
            },
            (None, Some(limit)) => Verdict::Unfinished(limit.into()),
            (None, None) => Verdict::Holds,
        };
        Ok::<_, Refusal>(Searched::Done((verdict, outcome, store.count() as u64)))
    })?;
    let mut properties: Vec<(String, Answer)> =
        model.properties.iter().map(|text| (text.clone(), Answer::Open)).collect();
    let mut product = ProductStatistics::default();
    if verdict == Verdict::Holds {
        verdict =
            check_properties(model, options, started, (negations, known), &mut properties, &mut product, progress)?;
    }
    let mut starvation_freedom = (options.liveness == Liveness::StarvationFreedom).then_some(Answer::Open);
    if let (Verdict::Holds, Some(answer)) = (&verdict, &mut starvation_freedom) {
        let starved = |violation: &ViolationKind| match violation {
            ViolationKind::Starvation { instance, .. } => Some(*instance),
            _ => None,
        };
        let known: Vec<u32> = known.iter().filter_map(starved).collect();
        let instances = 0..model.program.instance_count();
        let goal = Goal::Starved(instances.filter(|instance| !known.contains(instance)).collect());
        verdict = search_consistently(|kept| {
            let answers = AnswerScope::Run(kept);
            let plan = ExplorationPlan::new(model, successor_mode, Symmetry::Off, answers);
            let plan = plan.map_err(Refusal::Unbounded)?.track_deadlines();
            let limits = options.limits.after(started.elapsed());
            check_liveness(&plan, goal.clone(), (options.reduction, &limits), "", &mut product, progress)
        })?;
        *answer = Answer::from(&verdict);
    }
    let unreached = match verdict {
        Verdict::Holds => unreached(model, &outcome.coverage),
        Verdict::Violated(_) | Verdict::Unfinished(_) => Vec::new(),
    };
    Ok(Report {
        verdict,
        states,
        transitions: outcome.transitions,
        depth: outcome.depth,
        bytes: outcome.memory_bytes as u64,
        elapsed: started.elapsed(),
        product,
        unreached,
        restrictions: restrictions(model),
        properties,
        starvation_freedom,
        deadlocks: Deadlocks::All,
        leaks: Leaks::All,
    })
}

fn successor_mode(options: &Options) -> SuccessorMode {
    match options.reduction {
        Reduction::On | Reduction::Communications => SuccessorMode::EagerLocal,
        Reduction::Off => SuccessorMode::SingleStep,
    }
}

/// Checks the properties in order, up to the first that does not hold; `answers` receives what is known of each.
fn check_properties(
    model: &ModelProgram,
    options: &Options,
    started: Stopwatch,
    (negations, known): (Negations, &[ViolationKind]),
    answers: &mut [(String, Answer)],
    product: &mut ProductStatistics,
    progress: &mut dyn FnMut(Progress),
) -> Result<Verdict, Refusal> {
    for (number, (automaton, atoms)) in negations.into_iter().enumerate() {
        let (text, answer) = &mut answers[number];
        let is_it =
            |known: &ViolationKind| matches!(known, ViolationKind::Property { property, .. } if property == text);
        if known.iter().any(is_it) {
            *answer = Answer::Violated;
            continue;
        }
        let verdict = search_consistently(|kept| {
            let plan = plan_with_atoms(model, number, atoms.clone(), successor_mode(options), kept)?;
            let limits = options.limits.after(started.elapsed());
            let goal = Goal::Accepted(automaton.clone());
            check_liveness(&plan, goal, (options.reduction, &limits), text, product, progress)
        })?;
        *answer = Answer::from(&verdict);
        if verdict != Verdict::Holds {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Holds)
}

fn check_liveness(
    plan: &ExplorationPlan<'_>,
    goal: Goal,
    (reduction, limits): (Reduction, &Limits),
    property: &str,
    product: &mut ProductStatistics,
    progress: &mut dyn FnMut(Progress),
) -> Result<Searched<Verdict>, Refusal> {
    if plan.instances > MAX_CHECKED_INSTANCES {
        return Err(Refusal::TooMany(plan.instances as u32));
    }
    let (outcome, size) = liveness::search(plan, goal, ForcedPrefix::NONE, reduction, limits, progress)?;
    product.add(size);
    let lasso = match outcome {
        LassoOutcome::None => return Ok(Searched::Done(Verdict::Holds)),
        LassoOutcome::Unfinished(limit) => return Ok(Searched::Done(Verdict::Unfinished(limit.into()))),
        LassoOutcome::Found(lasso) => lasso,
    };
    let answers = match consistency(&lasso.steps, &plan.environment_values) {
        Consistency::Consistent(answers) => answers,
        Consistency::Contradictory(questions) => return Ok(Searched::Contradictory(questions)),
    };
    let steps = annotate(plan, &lasso.steps, Some(&answers))?;
    let violation = match lasso.starved {
        Some(instance) => {
            ViolationKind::Starvation { instance, location: location_after(plan, &lasso.steps, &answers, instance)? }
        }
        None => ViolationKind::Property { property: property.to_string(), values: lasso.values },
    };
    let answers = answers_as_data(&answers, &plan.environment_values);
    Ok(Searched::Done(Verdict::Violated(Counterexample { violation, cycle: lasso.cycle, steps, answers })))
}

/// A short run that ends in a violation of safety.
fn safety_counterexample(
    plan: &ExplorationPlan<'_>,
    store: &Store,
    located: &LocatedViolation,
) -> Result<Searched<Counterexample>, TooLarge> {
    let (mut run, mut generator, state_vector) = run_to_state(plan, store, located.state)?;
    let violation = violation_in(&mut generator, &state_vector, &located.violation);
    if let SafetyViolation::Transition(transition) = &violation {
        run.push(ResolvedStep::of(transition));
    }
    let answers = match consistency(&run, &plan.environment_values) {
        Consistency::Consistent(answers) => answers,
        Consistency::Contradictory(questions) => return Ok(Searched::Contradictory(questions)),
    };
    let (run, violation) = minimize(plan, run, violation, &answers)?;
    let steps = annotate(plan, &run, Some(&answers))?;
    let violation = match violation {
        SafetyViolation::Deadlock(report) => ViolationKind::Fault(report),
        SafetyViolation::Leak(pool) => {
            let pool = plan.model.program.types.pool(pool).name.to_string();
            ViolationKind::Leak { pool, instance: last_holder(&run) }
        }
        SafetyViolation::Transition(transition) => match transition.outcome {
            TransitionOutcome::Faults(report) => ViolationKind::Fault(report),
            TransitionOutcome::NonTerminating(instance) => {
                let last = steps.last().and_then(|step| step.locations.first());
                ViolationKind::NonTermination { instance, location: last.copied().unwrap_or_default() }
            }
            TransitionOutcome::Continues | TransitionOutcome::Terminates => {
                unreachable!("such a transition is no violation")
            }
        },
    };
    let answers = answers_as_data(&answers, &plan.environment_values);
    Ok(Searched::Done(Counterexample { violation, steps, cycle: None, answers }))
}

/// The instance that lost an object in the last step of a run: the actor of the last step, except an instance that has
/// received nothing so far and so held no object.
fn last_holder(run: &[ResolvedStep]) -> u32 {
    let actor = |step: Step| match step {
        Step::Communicate { receiver, .. } => receiver,
        Step::Local { instance }
        | Step::FromEnvironment { instance, .. }
        | Step::ToEnvironment { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => instance,
    };
    let is_local = |step: Step| matches!(step, Step::Local { .. });
    let has_received = |before: &[ResolvedStep], instance: u32| {
        before.iter().any(|resolved| {
            !is_local(resolved.step) && participant_set(resolved.step) & instance_bit(instance as usize) != 0
        })
    };
    let mut actors = (0..run.len()).rev().map(|index| (index, actor(run[index].step)));
    let last = actors.find(|(index, instance)| !is_local(run[*index].step) || has_received(&run[..*index], *instance));
    last.map_or(0, |(_, instance)| instance)
}
