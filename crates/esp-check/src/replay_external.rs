//! A run that another engine has found, taken once more by the flow IR's `step`: whether it is one of the program, and
//! what goes wrong at its end. The other engine says the steps; what the world sends in them is tried here.

use crate::check::{negations, plan_with_atoms};
use crate::counterexample::{Counterexample, Problem};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::liveness::{self, ForcedPrefix, Goal, LassoOutcome};
use crate::options::{Limits, Symmetry};
use crate::reconstruct::{ResolvedStep, annotate};
use crate::refusal::Refusal;
use crate::store::hash;
use crate::successors::{SuccessorGenerator, TransitionOutcome};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::model::ModelProgram;
use std::time::Instant;

/// More moves than this are not tried, or states visited.
const MAX_ATTEMPTS: u32 = 1 << 20;

/// Where the steps of a run lead.
#[derive(Clone, Debug)]
pub enum ReplayOutcome<T> {
    /// There.
    Reproduced(T),
    /// The program has no such run.
    Infeasible,
    /// There was too much to try.
    Undecided,
}

/// What goes wrong at the end of a run, with all that is said in it.
pub fn replay_external(
    model: &ModelProgram,
    steps: &[Step],
    limits: &Limits,
) -> Result<ReplayOutcome<Counterexample>, Refusal> {
    let plan = ExplorationPlan::new(model, SuccessorMode::SingleStep, Symmetry::Off).map_err(Refusal::Unbounded)?;
    let mut generator = SuccessorGenerator::new(&plan)?;
    generator.set_limits(limits, Instant::now());
    let start = generator.start();
    let mut search = ReplaySearch { generator, steps, run: Vec::new(), attempts_left: MAX_ATTEMPTS };
    Ok(match search.run(&start) {
        Some(problem) => {
            let steps = annotate(&plan, &search.run)?;
            ReplayOutcome::Reproduced(Counterexample { problem, steps, cycle: None })
        }
        // At a limit, moves may have been left out.
        None if search.attempts_left == 0 || search.generator.limit_reached.is_some() => ReplayOutcome::Undecided,
        None => ReplayOutcome::Infeasible,
    })
}

/// A run with these steps, those from `cycle` on again and again, on which the model's property of this number does not
/// hold. Without a cycle it is the steps that contradict the property, and what comes after them does not matter.
pub fn replay_external_property(
    model: &ModelProgram,
    number: usize,
    steps: &[Step],
    cycle: Option<usize>,
    limits: &Limits,
) -> Result<ReplayOutcome<Counterexample>, Refusal> {
    let mut negations = negations(model)?;
    let (automaton, atoms) = negations.swap_remove(number);
    let plan = plan_with_atoms(model, number, atoms)?;
    let prefix = ForcedPrefix { steps, cycle };
    let limits = Limits { states: Some(limits.states.unwrap_or(u64::from(MAX_ATTEMPTS))), ..limits.clone() };
    Ok(match liveness::search(&plan, Goal::Accepted(automaton), prefix, &limits, &mut |_| {})? {
        LassoOutcome::None => ReplayOutcome::Infeasible,
        LassoOutcome::Unfinished(_) => ReplayOutcome::Undecided,
        LassoOutcome::Found(mut lasso) => {
            if cycle.is_none() {
                lasso.steps.truncate(steps.len());
            }
            let steps = annotate(&plan, &lasso.steps)?;
            let problem = Problem::Property { property: model.properties[number].clone() };
            ReplayOutcome::Reproduced(Counterexample { problem, steps, cycle: cycle.map(|_| lasso.cycle) })
        }
    })
}

struct ReplaySearch<'m, 's> {
    generator: SuccessorGenerator<'m>,
    steps: &'s [Step],
    run: Vec<ResolvedStep>,
    attempts_left: u32,
}

/// A state on the way: its numbers, and the moves from it that take the next step and are still to be tried.
struct Choicepoint {
    numbers: Vec<u32>,
    untried: Vec<usize>,
}

impl ReplaySearch<'_, '_> {
    /// The problem at the end, the choices made on the way in `way`.
    fn run(&mut self, start: &[u32]) -> Option<Problem> {
        let mut choicepoints = vec![self.choicepoint(start.to_vec(), 0)];
        while let Some(choicepoint) = choicepoints.last_mut() {
            let Some(index) = choicepoint.untried.pop() else {
                choicepoints.pop();
                self.run.pop();
                continue;
            };
            if self.generator.is_at_limit(0) {
                return None;
            }
            self.attempts_left = self.attempts_left.checked_sub(1)?;
            let numbers = choicepoint.numbers.clone();
            self.generator.find_enabled(&numbers);
            let found = self.generator.enabled[index];
            let taken = self.generator.get(found).clone();
            self.run.push(ResolvedStep::of(&taken));
            match &taken.outcome {
                TransitionOutcome::Faults(report) => return Some(Problem::Fault(report.clone())),
                TransitionOutcome::Exits | TransitionOutcome::NonTerminating(_) => {
                    self.run.pop();
                    continue;
                }
                TransitionOutcome::Continues => {}
            }
            let mut next = vec![0; numbers.len()];
            self.generator.apply(found, &numbers, hash(&numbers), &mut next);
            let done = self.run.len();
            if done == self.steps.len() {
                self.generator.find_enabled(&next);
                if self.generator.is_quiescent()
                    && let Outcome::Faulted(report) = self.generator.quiescence(&next)
                {
                    return Some(Problem::Fault(report));
                }
                self.run.pop();
                continue;
            }
            let choicepoint = self.choicepoint(next, done);
            choicepoints.push(choicepoint);
        }
        None
    }

    fn choicepoint(&mut self, numbers: Vec<u32>, done: usize) -> Choicepoint {
        self.generator.find_enabled(&numbers);
        let wanted = self.steps.get(done);
        let untried = (0..self.generator.enabled.len())
            .rev()
            .filter(|index| Some(&self.generator.get(self.generator.enabled[*index]).step) == wanted)
            .collect();
        Choicepoint { numbers, untried }
    }
}
