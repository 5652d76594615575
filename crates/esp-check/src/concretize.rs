//! Whether what goes wrong in a model that does more than its program (a part whose surroundings may do anything,
//! abstractions) goes wrong in the program itself: the run is taken there step by step, and if that fails the program
//! is explored for the same problem.

use crate::counterexample::{Counterexample, Problem};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::liveness::{ForcedPrefix, Goal, LassoOutcome};
use crate::options::{Limit, Limits, Options, Reduction, Symmetry};
use crate::replay_external::{ReplayOutcome, replay_external};
use crate::search::Violation;
use crate::store::Store;
use crate::successors::TransitionOutcome;
use crate::{Refusal, liveness, ltl, search};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::Fault;
use quaject_esp_ir::model::{ModelProgram, Scope};

/// What the program itself has to do with a run of a model that does more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Concretization {
    /// Whether the program goes wrong in the same way.
    pub spuriousness: Spuriousness,
    /// The abstractions that the run depends on, as the model writes them.
    pub causes: Vec<String>,
    /// Whether the model is of a part of the program.
    pub is_slice: bool,
}

/// Whether a program goes wrong as a model of it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spuriousness {
    /// It goes wrong in the same way.
    Real,
    /// No run of it does: the run is spurious.
    Spurious,
    /// It has no such run; whether another one goes wrong in the same way is beyond the limit.
    SpuriousRun(Limit),
    /// It is larger than the limit.
    Unknown(Limit),
    /// It cannot be looked for there.
    NotChecked,
}

impl Spuriousness {
    /// A word for it, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Spuriousness::Real => "real",
            Spuriousness::Spurious => "spurious",
            Spuriousness::SpuriousRun(_) => "spurious run",
            Spuriousness::Unknown(_) => "unknown",
            Spuriousness::NotChecked => "not asked",
        }
    }
}

impl Concretization {
    /// Nothing is known.
    pub fn unchecked(model: &ModelProgram, found: &Counterexample) -> Concretization {
        Concretization {
            spuriousness: Spuriousness::NotChecked,
            causes: causes(model, found),
            is_slice: model.scope != Scope::All,
        }
    }

    /// What is real is due to nothing but the program.
    fn concretize(&mut self, spuriousness: Spuriousness) {
        self.spuriousness = spuriousness;
        if spuriousness == Spuriousness::Real {
            self.causes.clear();
        }
    }

    /// A line that says so, without its end.
    pub fn text(&self) -> String {
        let program = if self.is_slice { "the whole program" } else { "the program itself" };
        let mut causes: Vec<String> = self.causes.iter().map(|cause| format!("`{cause}`")).collect();
        if self.is_slice {
            causes.push("what surrounds the part".to_string());
        }
        let because = match &causes[..] {
            [one] => format!("{one} does more here"),
            many => format!("{} do more here", many.join(", ")),
        };
        match self.spuriousness {
            Spuriousness::Real => format!("{program} goes wrong in the same way"),
            Spuriousness::Spurious => format!("SPURIOUS: no run of {program} goes wrong in this way; {because}"),
            Spuriousness::SpuriousRun(_) => format!(
                "SPURIOUS: {program} has no such run; {because}; whether another run goes violation in this run is not \
                 known, as it is larger than was looked at"
            ),
            Spuriousness::Unknown(_) => format!("{program} may do so or not: it is larger than was looked at"),
            Spuriousness::NotChecked => format!("{program} was not asked"),
        }
    }
}

/// The abstractions without which a run would be another one.
fn causes(model: &ModelProgram, found: &Counterexample) -> Vec<String> {
    let calls = || found.steps.iter().flat_map(|step| &step.calls);
    let is_cause = |part: &&quaject_esp_ir::model::Abstracted| {
        let called = part.stand_in.is_some_and(|function| calls().any(|(called, _)| *called == function));
        let left = match &found.problem {
            Problem::Fault(report) => report.fault == Fault::Range && part.limits.contains(&report.location),
            Problem::NonTermination { .. }
            | Problem::Property { .. }
            | Problem::Starvation { .. }
            | Problem::Leak { .. } => false,
        };
        called || left
    };
    model.abstractions.iter().filter(is_cause).map(ToString::to_string).collect()
}

/// Asks the program itself for the problem of a run of a model of it.
pub fn concretize(
    whole: &ModelProgram,
    model: &ModelProgram,
    found: &Counterexample,
    limits: &Limits,
) -> Result<Concretization, Refusal> {
    let mut concretization = Concretization::unchecked(model, found);
    // Steps of all processes mean the same in the program itself; those of a part do not.
    let steps: Vec<Step> = found.steps.iter().map(|traced| traced.step).collect();
    let mut has_such_a_run = true;
    if let (Problem::Fault(report), false) = (&found.problem, concretization.is_slice) {
        match replay_external(whole, &steps, limits)? {
            ReplayOutcome::Reproduced(Counterexample { problem: Problem::Fault(other), .. })
                if is_same_fault(report, &other) =>
            {
                concretization.concretize(Spuriousness::Real);
                return Ok(concretization);
            }
            ReplayOutcome::Reproduced(_) | ReplayOutcome::Undecided => {}
            ReplayOutcome::Infeasible => has_such_a_run = false,
        }
    }
    let spuriousness = match &found.problem {
        Problem::Fault(_) | Problem::NonTermination { .. } | Problem::Leak { .. } => explore(whole, found, limits)?,
        Problem::Property { property } => check_property(whole, property, limits)?,
        Problem::Starvation { instance, .. } => check_starvation(whole, *instance, limits)?,
    };
    concretization.concretize(match spuriousness {
        Spuriousness::Unknown(limit) if !has_such_a_run => Spuriousness::SpuriousRun(limit),
        spuriousness => spuriousness,
    });
    Ok(concretization)
}

/// Explores the program for the problem.
fn explore(whole: &ModelProgram, found: &Counterexample, limits: &Limits) -> Result<Spuriousness, Refusal> {
    let plan = ExplorationPlan::new(whole, SuccessorMode::EagerLocal, Symmetry::Off).map_err(Refusal::Unbounded)?;
    // With reduction, another problem that ends a run could stand for this one.
    let reduction = Reduction::Communications;
    let options = Options { reduction, limits: limits.clone(), ..Options::default() };
    let store = Store::new(plan.width, options.compaction, options.threads).limited(options.limits.bytes);
    let outcome = search::search(
        &plan,
        &store,
        &options,
        &|violation| is_same_violation(whole, &found.problem, violation),
        &mut |_| {},
    )?;
    Ok(match (outcome.violation, outcome.limit) {
        (Some(_), _) => Spuriousness::Real,
        (None, Some(limit)) => Spuriousness::Unknown(limit),
        (None, None) => Spuriousness::Spurious,
    })
}

/// Looks for a run of the program that contradicts a property.
fn check_property(whole: &ModelProgram, property: &str, limits: &Limits) -> Result<Spuriousness, Refusal> {
    let (automaton, atoms) = ltl::negated(&whole.program, &whole.roles, 0, property).map_err(Refusal::Property)?;
    let mut plan = ExplorationPlan::new(whole, SuccessorMode::SingleStep, Symmetry::Off).map_err(Refusal::Unbounded)?;
    if !plan.track_atoms(atoms) {
        return Ok(Spuriousness::NotChecked);
    }
    check_liveness(&plan, Goal::Accepted(automaton), limits)
}

/// Looks for a run of the program on which the same instance waits for ever.
fn check_starvation(whole: &ModelProgram, instance: u32, limits: &Limits) -> Result<Spuriousness, Refusal> {
    let plan = ExplorationPlan::new(whole, SuccessorMode::SingleStep, Symmetry::Off).map_err(Refusal::Unbounded)?;
    check_liveness(&plan, Goal::Starved(instance..instance + 1), limits)
}

fn check_liveness(plan: &ExplorationPlan<'_>, goal: Goal, limits: &Limits) -> Result<Spuriousness, Refusal> {
    if plan.instances > crate::MAX_FAIR_INSTANCES {
        return Ok(Spuriousness::NotChecked);
    }
    Ok(match liveness::search(plan, goal, ForcedPrefix::NONE, limits, &mut |_| {})? {
        LassoOutcome::Found(_) => Spuriousness::Real,
        LassoOutcome::None => Spuriousness::Spurious,
        LassoOutcome::Unfinished(limit) => Spuriousness::Unknown(limit),
    })
}

fn is_same_violation(whole: &ModelProgram, problem: &Problem, violation: &Violation) -> bool {
    match (problem, violation) {
        (Problem::Fault(report), Violation::Deadlock(other)) => is_same_fault(report, other),
        (Problem::Fault(report), Violation::Transition(found)) => match &found.outcome {
            TransitionOutcome::Faults(other) => is_same_fault(report, other),
            TransitionOutcome::Continues | TransitionOutcome::Exits | TransitionOutcome::NonTerminating(_) => false,
        },
        (Problem::NonTermination { instance, .. }, Violation::Transition(found)) => match &found.outcome {
            TransitionOutcome::NonTerminating(other) => instance == other,
            TransitionOutcome::Continues | TransitionOutcome::Exits | TransitionOutcome::Faults(_) => false,
        },
        (Problem::Leak { pool, .. }, Violation::Leak(other)) => *whole.program.types.pool(*other).name == *pool,
        (
            Problem::NonTermination { .. }
            | Problem::Property { .. }
            | Problem::Starvation { .. }
            | Problem::Leak { .. },
            _,
        )
        | (Problem::Fault(_), Violation::Leak(_)) => false,
    }
}

/// The same fault at the same place; a deadlock in which at least the same ones wait.
fn is_same_fault(part: &FaultReport, whole: &FaultReport) -> bool {
    let waits = |instance: u32| whole.waits.iter().any(|wait| wait.instance == instance);
    match (part.fault, whole.fault) {
        (Fault::Deadlock, Fault::Deadlock) => part.waits.iter().all(|wait| waits(wait.instance)),
        (fault, other) => fault == other && (part.instance, part.location) == (whole.instance, whole.location),
    }
}
