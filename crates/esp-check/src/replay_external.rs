//! Trace validation: replays a run that another engine reports, by the flow IR's `step`. Decides whether it is a run of
//! the program and which violation it ends in. The run gives the steps; the messages of the environment and results of
//! functions are searched.

use crate::counterexample::{Counterexample, ViolationKind};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::kept_answers::{AnswerScope, KeptAnswers};
use crate::liveness::{self, ForcedPrefix, Goal, LassoOutcome};
use crate::negation::{negations, plan_with_atoms};
use crate::options::{Limits, Reduction, Symmetry};
use crate::pure_answers::{Consistency, Searched, answers_as_data, consistency, search_consistently};
use crate::questions::NumberedAnswer;
use crate::reconstruct::{ResolvedStep, annotate};
use crate::refusal::Refusal;
use crate::store::hash;
use crate::successors::{SuccessorGenerator, TransitionOutcome};
use crate::timer::Stopwatch;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::model::ModelProgram;

/// The largest number of transitions tried, or of states visited.
const MAX_ATTEMPTS: u32 = 1 << 20;

/// The result of replaying a run.
#[derive(Clone, Debug)]
pub enum ReplayOutcome<T> {
    /// The program has the run; it ends in this.
    Reproduced(T),
    /// The program has no such run.
    Infeasible,
    /// A limit was reached before the end.
    Undecided,
}

/// Replays a run and returns the violation in which it ends.
pub fn replay_external(
    model: &ModelProgram,
    steps: &[Step],
    limits: &Limits,
) -> Result<ReplayOutcome<Counterexample>, Refusal> {
    let kept = KeptAnswers::default();
    let plan = ExplorationPlan::new(model, SuccessorMode::SingleStep, Symmetry::Off, AnswerScope::Run(&kept));
    let plan = plan.map_err(Refusal::Unbounded)?;
    let mut generator = SuccessorGenerator::new(&plan)?;
    generator.set_limits(limits, Stopwatch::start(limits.timer));
    let start = generator.start();
    let mut search =
        ReplaySearch { generator, steps, run: Vec::new(), answers: Vec::new(), attempts_left: MAX_ATTEMPTS };
    Ok(match search.run(&start) {
        Some(violation) => {
            let steps = annotate(&plan, &search.run, Some(&search.answers))?;
            let answers = answers_as_data(&search.answers, &plan.environment_values);
            ReplayOutcome::Reproduced(Counterexample { violation, steps, cycle: None, answers })
        }
        // At a limit, transitions may be missing.
        None if search.attempts_left == 0 || search.generator.limit_reached.is_some() => ReplayOutcome::Undecided,
        None => ReplayOutcome::Infeasible,
    })
}

/// Replays a run that violates the model's property of this number. With a `cycle` the steps from there on repeat
/// forever; without, the steps violate the property whatever follows.
pub fn replay_external_property(
    model: &ModelProgram,
    number: usize,
    steps: &[Step],
    cycle: Option<usize>,
    limits: &Limits,
) -> Result<ReplayOutcome<Counterexample>, Refusal> {
    let mut negations = negations(model)?;
    let (automaton, atoms) = negations.swap_remove(number);
    let prefix = ForcedPrefix { steps, cycle };
    let limits = Limits { states: Some(limits.states.unwrap_or(u64::from(MAX_ATTEMPTS))), ..limits.clone() };
    let started = Stopwatch::start(limits.timer);
    search_consistently(|kept| {
        // The steps of the trail are single ones.
        let plan = plan_with_atoms(model, number, atoms.clone(), SuccessorMode::SingleStep, kept)?;
        let limits = limits.after(started.elapsed());
        let goal = Goal::Accepted(automaton.clone());
        Ok(Searched::Done(match liveness::search(&plan, goal, prefix, Reduction::Off, &limits, &mut |_| {})?.0 {
            LassoOutcome::None => ReplayOutcome::Infeasible,
            LassoOutcome::Unfinished(_) => ReplayOutcome::Undecided,
            LassoOutcome::Found(lasso) => {
                let answers = match consistency(&lasso.steps, &plan.environment_values) {
                    Consistency::Consistent(answers) => answers,
                    Consistency::Contradictory(questions) => return Ok(Searched::Contradictory(questions)),
                };
                let steps = annotate(&plan, &lasso.steps, Some(&answers))?;
                let property = model.properties[number].clone();
                let violation = ViolationKind::Property { property, values: lasso.values };
                let answers = answers_as_data(&answers, &plan.environment_values);
                ReplayOutcome::Reproduced(Counterexample { violation, steps, cycle: lasso.cycle, answers })
            }
        }))
    })
}

struct ReplaySearch<'m, 's> {
    generator: SuccessorGenerator<'m>,
    steps: &'s [Step],
    run: Vec<ResolvedStep>,
    /// The answers of pure functions in the run that was found.
    answers: Vec<NumberedAnswer>,
    attempts_left: u32,
}

/// A state of the depth-first search, with the transitions that take the next step and have not been tried.
struct Choicepoint {
    state_vector: Vec<u32>,
    untried: Vec<usize>,
}

impl ReplaySearch<'_, '_> {
    /// The violation at the end; the choices that lead to it are in `run`.
    fn run(&mut self, start: &[u32]) -> Option<ViolationKind> {
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
            let state_vector = choicepoint.state_vector.clone();
            self.generator.find_enabled(&state_vector);
            let transition = self.generator.enabled[index];
            let fired = self.generator.get(transition).clone();
            self.run.push(ResolvedStep::of(&fired));
            match consistency(&self.run, &self.generator.plan.environment_values) {
                Consistency::Consistent(answers) => self.answers = answers,
                Consistency::Contradictory(_) => {
                    self.run.pop();
                    continue;
                }
            }
            match &fired.outcome {
                TransitionOutcome::Faults(report) => return Some(ViolationKind::Fault(report.clone())),
                TransitionOutcome::Terminates | TransitionOutcome::NonTerminating(_) => {
                    self.run.pop();
                    continue;
                }
                TransitionOutcome::Continues => {}
            }
            let mut next = vec![0; state_vector.len()];
            self.generator.apply(transition, &state_vector, hash(&state_vector), &mut next);
            let done = self.run.len();
            if done == self.steps.len() {
                self.generator.find_enabled(&next);
                if self.generator.is_quiescent()
                    && let Outcome::Faulted(report) = self.generator.quiescence(&next)
                {
                    return Some(ViolationKind::Fault(report));
                }
                self.run.pop();
                continue;
            }
            let choicepoint = self.choicepoint(next, done);
            choicepoints.push(choicepoint);
        }
        None
    }

    fn choicepoint(&mut self, state_vector: Vec<u32>, done: usize) -> Choicepoint {
        self.generator.find_enabled(&state_vector);
        let step = self.steps.get(done);
        let untried = (0..self.generator.enabled.len())
            .rev()
            .filter(|index| Some(&self.generator.get(self.generator.enabled[*index]).step) == step)
            .collect();
        Choicepoint { state_vector, untried }
    }
}
