//! Spuriousness check of counterexample-guided abstraction refinement (CEGAR; Clarke, Grumberg, Jha, Lu and Veith,
//! 2000), without the refinement. A model can have more runs than its program: the environment of a slice is arbitrary,
//! abstractions lose values. A fault of a model of all processes is first replayed on the program itself. Otherwise, or
//! if the replay does not reproduce it, the program is searched for the same violation.

use crate::counterexample::{Counterexample, ViolationKind};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::kept_answers::AnswerScope;
use crate::liveness::{ForcedPrefix, Goal, LassoOutcome};
use crate::options::{Limits, Options, Reduction, Symmetry};
use crate::pure_answers::{Consistency, Searched, consistency, search_consistently};
use crate::reconstruct::{ResolvedStep, run_to_state};
use crate::replay_external::{ReplayOutcome, replay_external};
use crate::search::SafetyViolation;
use crate::spuriousness::{Concretization, Spuriousness};
use crate::store::Store;
use crate::successors::TransitionOutcome;
use crate::timer::Stopwatch;
use crate::{Refusal, liveness, ltl, search};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::Fault;
use quaject_esp_ir::model::ModelProgram;

/// Searches the program itself for the violation of a model's counterexample.
pub fn concretize(
    program_model: &ModelProgram,
    model: &ModelProgram,
    counterexample: &Counterexample,
    limits: &Limits,
) -> Result<Concretization, Refusal> {
    let mut concretization = Concretization::unchecked(model, counterexample);
    // The steps of a model of all processes are steps of the program; those of a slice are not.
    let steps: Vec<Step> = counterexample.steps.iter().map(|traced| traced.step).collect();
    let mut has_this_run = true;
    if let (ViolationKind::Fault(report), false) = (&counterexample.violation, concretization.is_slice) {
        match replay_external(program_model, &steps, limits)? {
            ReplayOutcome::Reproduced(Counterexample { violation: ViolationKind::Fault(other), .. })
                if is_same_fault(report, &other) =>
            {
                concretization.decide(Spuriousness::Real);
                return Ok(concretization);
            }
            ReplayOutcome::Reproduced(_) | ReplayOutcome::Undecided => {}
            ReplayOutcome::Infeasible => has_this_run = false,
        }
    }
    let spuriousness = match &counterexample.violation {
        ViolationKind::Fault(_) | ViolationKind::NonTermination { .. } | ViolationKind::Leak { .. } => {
            explore(program_model, counterexample, limits)?
        }
        ViolationKind::Property { property, .. } => check_property(program_model, property, limits)?,
        ViolationKind::Starvation { instance, .. } => check_starvation(program_model, *instance, limits)?,
    };
    concretization.decide(match spuriousness {
        Spuriousness::Unknown(limit) if !has_this_run => Spuriousness::SpuriousRun(limit),
        spuriousness => spuriousness,
    });
    Ok(concretization)
}

/// Searches the reachable states of the program for the violation.
fn explore(
    program_model: &ModelProgram,
    counterexample: &Counterexample,
    limits: &Limits,
) -> Result<Spuriousness, Refusal> {
    // Partial-order reduction would allow another violation of the same run in place of this one.
    let reduction = Reduction::Communications;
    let options = Options { reduction, limits: limits.clone(), ..Options::default() };
    let started = Stopwatch::start(limits.timer);
    let is_it = |violation: &SafetyViolation| is_same_violation(program_model, &counterexample.violation, violation);
    search_consistently(|kept| {
        let answers = AnswerScope::Run(kept);
        let plan = ExplorationPlan::new(program_model, SuccessorMode::EagerLocal, Symmetry::Off, answers);
        let plan = plan.map_err(Refusal::Unbounded)?;
        let options = Options { limits: limits.after(started.elapsed()), ..options.clone() };
        let store = Store::new(plan.width, options.compaction, options.threads).limited(options.limits.bytes);
        let outcome = search::search(&plan, &store, &options, &is_it, &mut |_| {})?;
        Ok(match (outcome.violation, outcome.limit) {
            (Some(located), _) => {
                let (mut run, _, _) = run_to_state(&plan, &store, located.state)?;
                if let SafetyViolation::Transition(transition) = &located.violation {
                    run.push(ResolvedStep::of(transition));
                }
                if_consistent(&run, &plan)
            }
            (None, Some(limit)) => Searched::Done(Spuriousness::Unknown(limit)),
            (None, None) => Searched::Done(Spuriousness::Spurious),
        })
    })
}

/// A run of the program with the violation shows that it is real, if its pure functions answer alike.
fn if_consistent(run: &[ResolvedStep], plan: &ExplorationPlan<'_>) -> Searched<Spuriousness> {
    match consistency(run, &plan.environment_values) {
        Consistency::Consistent(_) => Searched::Done(Spuriousness::Real),
        Consistency::Contradictory(questions) => Searched::Contradictory(questions),
    }
}

/// Searches for a run of the program that violates a property.
fn check_property(program_model: &ModelProgram, property: &str, limits: &Limits) -> Result<Spuriousness, Refusal> {
    let (automaton, atoms) =
        ltl::negated(&program_model.program, &program_model.roles, 0, property).map_err(Refusal::Property)?;
    let started = Stopwatch::start(limits.timer);
    search_consistently(|kept| {
        let answers = AnswerScope::Run(kept);
        let plan = ExplorationPlan::new(program_model, SuccessorMode::EagerLocal, Symmetry::Off, answers);
        let mut plan = plan.map_err(Refusal::Unbounded)?.track_deadlines();
        if !plan.track_atoms(atoms.clone()) {
            return Ok(Searched::Done(Spuriousness::NotChecked));
        }
        check_liveness(&plan, Goal::Accepted(automaton.clone()), &limits.after(started.elapsed()))
    })
}

/// Searches for a run of the program on which the same instance starves.
fn check_starvation(program_model: &ModelProgram, instance: u32, limits: &Limits) -> Result<Spuriousness, Refusal> {
    let started = Stopwatch::start(limits.timer);
    search_consistently(|kept| {
        let answers = AnswerScope::Run(kept);
        let plan = ExplorationPlan::new(program_model, SuccessorMode::EagerLocal, Symmetry::Off, answers);
        let plan = plan.map_err(Refusal::Unbounded)?.track_deadlines();
        check_liveness(&plan, Goal::Starved(vec![instance]), &limits.after(started.elapsed()))
    })
}

fn check_liveness(plan: &ExplorationPlan<'_>, goal: Goal, limits: &Limits) -> Result<Searched<Spuriousness>, Refusal> {
    if plan.instances > crate::MAX_CHECKED_INSTANCES {
        return Ok(Searched::Done(Spuriousness::NotChecked));
    }
    Ok(match liveness::search(plan, goal, ForcedPrefix::NONE, Reduction::On, limits, &mut |_| {})?.0 {
        LassoOutcome::Found(lasso) => if_consistent(&lasso.steps, plan),
        LassoOutcome::None => Searched::Done(Spuriousness::Spurious),
        LassoOutcome::Unfinished(limit) => Searched::Done(Spuriousness::Unknown(limit)),
    })
}

pub(crate) fn is_same_violation(
    program_model: &ModelProgram,
    kind: &ViolationKind,
    violation: &SafetyViolation,
) -> bool {
    match (kind, violation) {
        (ViolationKind::Fault(report), SafetyViolation::Deadlock(other)) => is_same_fault(report, other),
        (ViolationKind::Fault(report), SafetyViolation::Transition(transition)) => match &transition.outcome {
            TransitionOutcome::Faults(other) => is_same_fault(report, other),
            TransitionOutcome::Continues | TransitionOutcome::Terminates | TransitionOutcome::NonTerminating(_) => {
                false
            }
        },
        (ViolationKind::NonTermination { instance, .. }, SafetyViolation::Transition(transition)) => {
            match &transition.outcome {
                TransitionOutcome::NonTerminating(other) => instance == other,
                TransitionOutcome::Continues | TransitionOutcome::Terminates | TransitionOutcome::Faults(_) => false,
            }
        }
        (ViolationKind::Leak { pool, .. }, SafetyViolation::Leak(other)) => {
            *program_model.program.types.pool(*other).name == *pool
        }
        (
            ViolationKind::NonTermination { .. }
            | ViolationKind::Property { .. }
            | ViolationKind::Starvation { .. }
            | ViolationKind::Leak { .. },
            _,
        )
        | (ViolationKind::Fault(_), SafetyViolation::Leak(_)) => false,
    }
}

/// The same fault at the same location; for a deadlock, at least the same instances are blocked.
fn is_same_fault(of_model: &FaultReport, of_program: &FaultReport) -> bool {
    let waits = |instance: u32| of_program.waits.iter().any(|wait| wait.instance == instance);
    match (of_model.fault, of_program.fault) {
        (Fault::Deadlock, Fault::Deadlock) => of_model.waits.iter().all(|wait| waits(wait.instance)),
        (fault, other) => {
            fault == other && (of_model.instance, of_model.location) == (of_program.instance, of_program.location)
        }
    }
}
