//! Schedulers other than the reference one: a random choice among the enabled steps, and the replay of a recorded
//! trace. Both take only steps that `step` enables.

use crate::environment::Environment;
use crate::native::Native;
use crate::path_counters::PathCounters;
use crate::report::Outcome;
use crate::state::State;
use crate::step::Checks;
use crate::step::{Effect, EnvironmentMode, Machine, Step, TooLarge};
use quaject_esp_ir::ir::Program;
use std::fmt;

/// A program under a random scheduler: each step is chosen among all enabled ones.
pub struct RandomScheduler<'p> {
    machine: Machine<'p>,
    state: State,
    random: fastrand::Rng,
    trace: Vec<Step>,
    over: Option<Outcome>,
}

impl<'p> RandomScheduler<'p> {
    /// A verified program in its initial state. Equal seeds make equal choices.
    pub fn new(program: &'p Program, checks: Checks, seed: u64) -> Result<RandomScheduler<'p>, TooLarge> {
        let machine = Machine::new(program, checks)?;
        let state = machine.start();
        let random = fastrand::Rng::with_seed(seed);
        Ok(RandomScheduler { machine, state, random, trace: Vec::new(), over: None })
    }

    /// Executes local code by machine code. The program is in its initial state.
    pub fn use_native(&mut self, native: Box<dyn Native>) {
        self.machine.use_native(&mut self.state, native);
    }

    /// The steps taken so far.
    pub fn trace(&self) -> &[Step] {
        &self.trace
    }

    /// The counters of each fast path.
    pub fn path_runs(&self) -> &[PathCounters] {
        &self.machine.work.path_runs
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Runs until the program is quiescent or over, or about `budget` IR steps are done. Never blocks.
    pub fn run(&mut self, environment: &mut dyn Environment, budget: u64) -> Outcome {
        let mut fuel = budget;
        while fuel > 0 {
            if let Some(outcome) = &self.over {
                return outcome.clone();
            }
            let steps = self.machine.enabled(&mut self.state, environment);
            let Some(step) = self.random.choice(&steps).copied() else {
                match self.machine.classify_quiescence(&mut self.state, environment) {
                    Outcome::Quiescent(awaited) => return Outcome::Quiescent(awaited),
                    outcome @ (Outcome::Budget | Outcome::Ended(_) | Outcome::Faulted(_)) => {
                        self.over = Some(outcome);
                        continue;
                    }
                }
            };
            if self.state.unfinished.is_none() {
                self.trace.push(step);
            }
            match self.machine.step(step, &mut self.state, environment, &mut fuel) {
                Effect::Done | Effect::Unfinished => {}
                Effect::Exited(status) => self.over = Some(Outcome::Ended(status)),
                Effect::Faulted(report) => self.over = Some(Outcome::Faulted(report)),
            }
            fuel = fuel.saturating_sub(1);
        }
        self.over.clone().unwrap_or(Outcome::Budget)
    }
}

/// A trace contains a step that is not enabled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayError {
    /// The number of the step in the trace, from 0.
    pub number: usize,
    /// The step.
    pub step: Step,
    /// The steps that are enabled there, as far as the environment allows them.
    pub possible: Vec<Step>,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let possible: Vec<_> = self.possible.iter().map(|step| format!("`{step}`")).collect();
        let possible = if possible.is_empty() { "nothing".to_string() } else { possible.join(", ") };
        write!(f, "step {} of the trace, `{}`, is not possible; possible: {possible}", self.number + 1, self.step)
    }
}

impl std::error::Error for ReplayError {}

/// Takes the steps of a trace, each of which must be enabled. The clock and the readiness of the environment follow the
/// trace; the messages come from the environment. The outcome is `Budget` if the trace ends before the program.
pub fn replay(
    program: &Program,
    checks: Checks,
    trace: &[Step],
    environment: &mut dyn Environment,
) -> Result<Result<Outcome, ReplayError>, TooLarge> {
    let mut machine = Machine::new(program, checks)?;
    let mut state = machine.start();
    for (number, step) in trace.iter().copied().enumerate() {
        if !machine.is_enabled(step, &mut state, environment, EnvironmentMode::AsTraced) {
            let possible = machine.enabled(&mut state, environment);
            return Ok(Err(ReplayError { number, step, possible }));
        }
        let mut fuel = u64::MAX;
        match machine.step(step, &mut state, environment, &mut fuel) {
            Effect::Done => {}
            Effect::Exited(status) => return Ok(Ok(Outcome::Ended(status))),
            Effect::Faulted(report) => return Ok(Ok(Outcome::Faulted(report))),
            Effect::Unfinished => return Ok(Ok(Outcome::Budget)),
        }
    }
    if machine.enabled(&mut state, environment).is_empty() {
        return Ok(Ok(machine.classify_quiescence(&mut state, environment)));
    }
    Ok(Ok(Outcome::Budget))
}
