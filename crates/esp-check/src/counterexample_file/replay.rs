//! Replay of a counterexample file, line by line.

use super::{ParseError, answer_types};
use crate::counterexample::{Counterexample, PureAnswer, TraceStep, ViolationKind};
use crate::domain::results;
use crate::successors::MAX_FUEL;
use quaject_esp_exec::datum::{self, Datum};
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::explore::OpenBranch;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Effect, EnvironmentMode, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{ChannelId, ExternId, Location, Purity};
use quaject_esp_ir::model::{ModelProgram, Role};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Called before the first step and after each step.
type StepCallback<'o> = &'o mut dyn FnMut(&mut Machine<'_>, &mut State, &mut dyn Environment);

/// Replays the numbered lines of a run.
pub(super) fn replay(
    lines: &[(usize, String)],
    model: &ModelProgram,
    observe: StepCallback<'_>,
) -> Result<Result<Counterexample, ParseError>, TooLarge> {
    let mut machine = Machine::new(&model.program, Checks::On)?;
    machine.set_fuel_limit(MAX_FUEL);
    machine.detect_repetition();
    let mut state = machine.start();
    for instance in 0..state.instances() {
        if model.role(instance) == Role::Omitted {
            state.omit_instance(instance);
        }
    }
    let environment = RecordedEnvironment {
        model,
        message: None,
        results: VecDeque::new(),
        answers: Vec::new(),
        calls: Vec::new(),
        missing: None,
    };
    let counterexample = Counterexample {
        violation: ViolationKind::Property { property: String::new(), values: Vec::new() },
        steps: Vec::new(),
        cycle: None,
        answers: Vec::new(),
    };
    Ok(Replay { machine, state, environment, counterexample }.run(lines, observe))
}

struct Replay<'m> {
    machine: Machine<'m>,
    state: State,
    environment: RecordedEnvironment<'m>,
    counterexample: Counterexample,
}

impl Replay<'_> {
    fn run(mut self, lines: &[(usize, String)], observe: StepCallback<'_>) -> Result<Counterexample, ParseError> {
        let mut lines = lines.iter().peekable();
        let mut values = Vec::new();
        observe(&mut self.machine, &mut self.state, &mut self.environment);
        while let Some((number, line)) = lines.next() {
            let error = |message: String| ParseError { line: *number, message };
            if line == "cycle" {
                self.counterexample.cycle = Some(self.counterexample.steps.len());
                continue;
            }
            if let Some(answer) = line.strip_prefix("answer ") {
                self.environment.read_answer(answer).map_err(error)?;
                continue;
            }
            if let Some(value) = line.strip_prefix("value ") {
                let (name, value) = value.split_once(' ').ok_or_else(|| error("a value has a name".to_string()))?;
                values.push((name.to_string(), value.to_string()));
                continue;
            }
            if let Some(ending) = line.strip_prefix("end ") {
                self.environment.message = None;
                let violation = violation_at_end(ending, &mut self.machine, &mut self.state, &mut self.environment);
                self.counterexample.violation =
                    match violation.ok_or_else(|| error(format!("the run does not end in `{ending}`")))? {
                        ViolationKind::Property { property, .. } => ViolationKind::Property { property, values },
                        violation => violation,
                    };
                break;
            }
            let step: Step = line.parse().map_err(|unparsed| error(format!("{unparsed}")))?;
            let channel = self.channel_from_environment(step);
            while let Some((number, line)) =
                lines.next_if(|(_, line)| line.starts_with("message") || line.starts_with("call "))
            {
                let read = self.environment.read_line(line, channel);
                read.map_err(|message| ParseError { line: *number, message })?;
            }
            if self.fire(step, observe).map_err(error)?.is_break() {
                break;
            }
        }
        self.counterexample.answers = self.environment.answers;
        Ok(self.counterexample)
    }

    /// The channel on which the environment sends in a step.
    fn channel_from_environment(&self, step: Step) -> Option<ChannelId> {
        let Step::FromEnvironment { instance, branch } = step else { return None };
        if instance >= self.state.instances() {
            return None;
        }
        match self.machine.instance_view(&self.state, instance).branches.get(branch as usize) {
            Some(Some(OpenBranch::FromEnvironment(channel))) => Some(*channel),
            Some(_) | None => None,
        }
    }

    /// Fires a step and records it; breaks at the violation. The error is the message of a step that the program cannot
    /// take.
    fn fire(&mut self, step: Step, observe: StepCallback<'_>) -> Result<ControlFlow<()>, String> {
        let Replay { machine, state, environment, counterexample } = self;
        if !machine.is_enabled(step, state, environment, EnvironmentMode::AsTraced) {
            return Err(format!("step `{step}` is not possible here"));
        }
        counterexample.steps.push(trace_step(machine, state, environment, step));
        // Those that decided what is enabled are no calls of the step.
        environment.calls.clear();
        let mut effect = machine.step(step, state, environment, &mut { MAX_FUEL });
        if machine.fuel_exhausted() {
            effect = Effect::Unfinished;
        }
        if let Some(name) = environment.missing.take() {
            return Err(format!("`{name}` is called, but the run has no result for it"));
        }
        let last = counterexample.steps.last_mut().expect("one has just been added");
        last.calls = std::mem::take(&mut environment.calls);
        let location = last.locations.first().copied().unwrap_or_default();
        environment.message = None;
        observe(machine, state, environment);
        match effect {
            Effect::Done | Effect::Exited(_) => Ok(ControlFlow::Continue(())),
            Effect::Faulted(report) => {
                counterexample.violation = ViolationKind::Fault(report);
                Ok(ControlFlow::Break(()))
            }
            Effect::Unfinished if !machine.has_repetition() => {
                Err(format!("after `{step}` the process takes more than {MAX_FUEL} steps without an operation"))
            }
            Effect::Unfinished => {
                counterexample.violation =
                    ViolationKind::NonTermination { instance: first_participant(step), location };
                Ok(ControlFlow::Break(()))
            }
        }
    }
}

fn first_participant(step: Step) -> u32 {
    match step {
        Step::Communicate { sender, .. } => sender,
        Step::Local { instance }
        | Step::FromEnvironment { instance, .. }
        | Step::ToEnvironment { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => instance,
    }
}

/// The violation that the last line names, in the state that the run has reached.
fn violation_at_end(
    ending: &str,
    machine: &mut Machine<'_>,
    state: &mut State,
    environment: &mut dyn Environment,
) -> Option<ViolationKind> {
    let (name, details) = ending.split_once(' ').unwrap_or((ending, ""));
    let instance = |number: &str| number.parse().ok().filter(|instance| *instance < state.instances());
    match name {
        "deadlock" => match machine.classify_quiescence(state, environment) {
            Outcome::Faulted(report) => Some(ViolationKind::Fault(report)),
            Outcome::Ended(_) | Outcome::Quiescent(_) | Outcome::Budget => None,
        },
        "property" => Some(ViolationKind::Property { property: details.to_string(), values: Vec::new() }),
        "starvation" => {
            let instance = instance(details)?;
            Some(ViolationKind::Starvation { instance, location: machine.location(state, instance) })
        }
        "leak" => {
            let (number, pool) = details.split_once(' ')?;
            Some(ViolationKind::Leak { instance: instance(number)?, pool: pool.to_string() })
        }
        _ => None,
    }
}

/// A step that is about to be taken, with its message and locations.
fn trace_step(
    machine: &mut Machine<'_>,
    state: &mut State,
    environment: &mut RecordedEnvironment<'_>,
    step: Step,
) -> TraceStep {
    let branch = |instance, branch| machine.branch_location(state, instance, branch);
    let locations: Vec<Location> = match step {
        Step::Local { instance } | Step::Else { instance } => vec![machine.location(state, instance)],
        Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
            vec![branch(sender, sender_branch), branch(receiver, receiver_branch)]
        }
        Step::FromEnvironment { instance, branch: number }
        | Step::ToEnvironment { instance, branch: number }
        | Step::After { instance, branch: number } => vec![branch(instance, number)],
    };
    let message = match step {
        Step::Communicate { sender, sender_branch, .. } => machine.message(state, environment, sender, sender_branch),
        Step::ToEnvironment { instance, branch } => machine.message(state, environment, instance, branch),
        Step::FromEnvironment { .. } => environment.message.clone(),
        Step::Local { .. } | Step::After { .. } | Step::Else { .. } => None,
    };
    TraceStep { step, message, calls: Vec::new(), locations }
}

/// The environment as recorded in the file.
struct RecordedEnvironment<'m> {
    model: &'m ModelProgram,
    message: Option<(ChannelId, Vec<Datum>)>,
    results: VecDeque<(ExternId, Option<Datum>)>,
    /// The answers of pure functions.
    answers: Vec<PureAnswer>,
    calls: Vec<(ExternId, Option<Datum>)>,
    missing: Option<String>,
}

impl RecordedEnvironment<'_> {
    fn read_answer(&mut self, answer: &str) -> Result<(), String> {
        let program = &self.model.program;
        let (name, values) = answer.split_once(' ').unwrap_or((answer, ""));
        let function = program.externs.iter().position(|function| function.name == name);
        let index = function.ok_or_else(|| format!("the program has no function `{name}`"))?;
        let function = &program.externs[index];
        let values =
            datum::parse_message(program, &answer_types(function), values).map_err(|error| error.to_string())?;
        let mut values = values.into_iter();
        let result = function.result.and_then(|_| values.next());
        self.answers.push(PureAnswer { function: ExternId(index as u32), arguments: values.collect(), result });
        Ok(())
    }

    /// The answer of a pure function of which the run has answers.
    fn answer(&self, function: ExternId, arguments: &[Datum]) -> Option<Option<Datum>> {
        let mut answers = self.answers.iter().filter(|answer| answer.function == function).peekable();
        answers.peek()?;
        let known = answers.find(|answer| answer.arguments == arguments).map(|answer| answer.result.clone());
        Some(known.unwrap_or_else(|| self.first_result(function)))
    }

    /// The answer to a question without a recorded one.
    fn first_result(&self, function: ExternId) -> Option<Datum> {
        results(self.model, function).ok()?.into_iter().next()?
    }

    fn read_line(&mut self, line: &str, channel: Option<ChannelId>) -> Result<(), String> {
        let program = &self.model.program;
        if let Some(values) = line.strip_prefix("message") {
            let channel = channel.ok_or("no process receives a message from the environment in this step")?;
            let types = &program.channels[channel.0 as usize].payload;
            let message = datum::parse_message(program, types, values.trim()).map_err(|error| error.to_string())?;
            self.message = Some((channel, message));
            return Ok(());
        }
        let (name, result) = line["call ".len()..].split_once(' ').unwrap_or((&line["call ".len()..], ""));
        let function = program.externs.iter().position(|function| function.name == name);
        let function = function.ok_or_else(|| format!("the program has no function `{name}`"))?;
        let types: Vec<_> = program.externs[function].result.into_iter().collect();
        let result = datum::parse_message(program, &types, result).map_err(|error| error.to_string())?;
        self.results.push_back((ExternId(function as u32), result.into_iter().next()));
        Ok(())
    }
}

impl Environment for RecordedEnvironment<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        match &self.message {
            Some((offered, message)) if *offered == channel => Offer::Message(message),
            Some(_) | None => Offer::Pending,
        }
    }

    fn take(&mut self, _channel: ChannelId) {}

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, _channel: ChannelId, _message: &[Datum]) {}

    fn now_ns(&mut self) -> i64 {
        0
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        if let Some(result) = self.answer(function, arguments) {
            self.calls.push((function, result.clone()));
            return Reply::Returned(result);
        }
        match self.results.pop_front() {
            Some((called, result)) if called == function => {
                self.calls.push((function, result.clone()));
                Reply::Returned(result)
            }
            // All of its answers were first results.
            None if self.model.program.externs[function.0 as usize].purity == Purity::Pure => {
                let result = self.first_result(function);
                self.calls.push((function, result.clone()));
                Reply::Returned(result)
            }
            Some(_) | None => {
                self.missing = Some(self.model.program.externs[function.0 as usize].name.to_string());
                Reply::Unresolved
            }
        }
    }
}
