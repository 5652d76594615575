//! A run that goes wrong as a text that can be kept, and taken again step by step on the same program.
//!
//! ```text
//!   quaject counterexample 1
//!   file "count.esp" "channel c: int external in; .."    the program, file by file, the first one being the root
//!   model send                      the model; `process P` or `slice P Q` if only these were explored
//!   run
//!   c 0 0 1 0                       a step, as traces write it
//!   message 3 -7                    what the world sent in the step before
//!   call translate 4096             what a function returned in it
//!   cycle                           from here on again and again
//!   end deadlock                    what is wrong; after `property` its text, after `starvation` the instance, after
//!                                   `leak` the instance and the pool
//! ```

use crate::configuration::Configuration;
use crate::counterexample::{Counterexample, Problem, TraceStep};
use crate::successors::MAX_FUEL;
use quaject_esp_exec::datum::{self, Datum};
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::explore::OpenBranch;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Effect, EnvironmentMode, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{ChannelId, ExternId, Location};
use quaject_esp_ir::model::{ModelProgram, Role, Scope};
use quaject_esp_ir::text::print_bytes;
use std::collections::VecDeque;
use std::fmt::Write as _;

const FIRST_LINE: &str = "quaject counterexample 1";

/// A run that was kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CounterexampleFile {
    /// Name and text of every source file, the root first.
    pub files: Vec<(String, String)>,
    /// The model.
    pub model: Option<String>,
    /// The processes that were explored, if not all.
    pub part: Option<Part>,
    lines: Vec<(usize, String)>,
}

/// The part of a program that was explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// One process.
    Process(String),
    /// Some.
    Slice(Vec<String>),
}

/// Why a script is none, or does not fit its program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Writes a run down, with the files of its program.
pub fn write(model: &ModelProgram, files: &[(String, String)], found: &Counterexample) -> String {
    let program = &model.program;
    let mut text = format!("{FIRST_LINE}\n");
    for (name, content) in files {
        text.push_str("file ");
        print_bytes(name.as_bytes(), &mut text);
        text.push(' ');
        print_bytes(content.as_bytes(), &mut text);
        text.push('\n');
    }
    let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
    if let Some(name) = &model.name {
        line(format!("model {name}"));
    }
    let name = |process: &quaject_esp_ir::ir::ProcessId| program.processes[process.0 as usize].name.to_string();
    match &model.scope {
        Scope::All => {}
        Scope::Process(process) => line(format!("process {}", name(process))),
        Scope::Slice(processes) => {
            line(format!("slice {}", processes.iter().map(name).collect::<Vec<_>>().join(" ")));
        }
    }
    line("run".into());
    for (index, traced) in found.steps.iter().enumerate() {
        if found.cycle == Some(index) {
            line("cycle".into());
        }
        line(traced.step.to_string());
        if let (Step::FromEnvironment { .. }, Some((channel, message))) = (traced.step, &traced.message) {
            let types = &program.channels[channel.0 as usize].payload;
            line(format!("message {}", datum::print_message(program, types, message)).trim_end().to_string());
        }
        for (function, result) in &traced.calls {
            let function = &program.externs[function.0 as usize];
            let types: Vec<_> = function.result.into_iter().collect();
            let result: Vec<Datum> = result.iter().cloned().collect();
            let result = datum::print_message(program, &types, &result);
            line(format!("call {} {result}", function.name).trim_end().to_string());
        }
    }
    if found.cycle == Some(found.steps.len()) {
        line("cycle".into());
    }
    let details = match &found.problem {
        Problem::Fault(_) | Problem::NonTermination { .. } => String::new(),
        Problem::Property { property } => format!(" {property}"),
        Problem::Starvation { instance, .. } => format!(" {instance}"),
        Problem::Leak { pool, instance } => format!(" {instance} {pool}"),
    };
    line(format!("end {}{details}", found.problem.name()));
    text
}

/// What is wrong, as the last line tells it of a run that was taken to its end.
fn problem_at_end(
    ending: &str,
    machine: &mut Machine<'_>,
    state: &mut State,
    environment: &mut dyn Environment,
) -> Option<Problem> {
    let (name, details) = ending.split_once(' ').unwrap_or((ending, ""));
    let instance = |number: &str| number.parse().ok().filter(|instance| *instance < state.instances());
    match name {
        "deadlock" => match machine.classify_quiescence(state, environment) {
            Outcome::Faulted(report) => Some(Problem::Fault(report)),
            Outcome::Ended(_) | Outcome::Quiescent(_) | Outcome::Budget => None,
        },
        "property" => Some(Problem::Property { property: details.to_string() }),
        "starvation" => {
            let instance = instance(details)?;
            Some(Problem::Starvation { instance, location: machine.location(state, instance) })
        }
        "leak" => {
            let (number, pool) = details.split_once(' ')?;
            Some(Problem::Leak { instance: instance(number)?, pool: pool.to_string() })
        }
        _ => None,
    }
}

impl CounterexampleFile {
    /// Whether a text is meant to be one.
    pub fn has_header(text: &str) -> bool {
        text.starts_with(FIRST_LINE)
    }

    /// Reads one.
    pub fn parse(text: &str) -> Result<CounterexampleFile, ParseError> {
        let bad = |line, message: &str| ParseError { line, message: message.to_string() };
        let mut file_contents = CounterexampleFile::default();
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
            return Err(bad(1, "a counterexample begins with `quaject counterexample 1`"));
        }
        let mut last = 1;
        loop {
            let Some((number, line)) = lines.next() else { return Err(bad(last, "it ends before `run`")) };
            last = number;
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "run" => break,
                "file" => {
                    let file = datum::parse_string(rest).and_then(|(name, rest)| {
                        let (text, rest) = datum::parse_string(rest.strip_prefix(' ')?)?;
                        rest.is_empty().then_some((name, text))
                    });
                    file_contents.files.push(file.ok_or_else(|| bad(number, "a file is its name and its text"))?);
                }
                "model" => file_contents.model = Some(rest.to_string()),
                "process" => file_contents.part = Some(Part::Process(rest.to_string())),
                "slice" => file_contents.part = Some(Part::Slice(rest.split(' ').map(str::to_string).collect())),
                _ => return Err(bad(number, "neither `file`, `model`, `process`, `slice` nor `run`")),
            }
        }
        if file_contents.files.is_empty() {
            return Err(bad(last, "it holds no program"));
        }
        file_contents.lines = lines.map(|(number, line)| (number, line.to_string())).collect();
        match file_contents.lines.last() {
            Some((_, line)) if line.starts_with("end ") => Ok(file_contents),
            Some(_) | None => Err(bad(last, "it was cut off: it does not say what is wrong")),
        }
    }

    /// Takes the steps again on the program they were found in.
    pub fn replay(&self, model: &ModelProgram) -> Result<Result<Counterexample, ParseError>, TooLarge> {
        self.replay_with(model, &mut |_, _, _| {})
    }

    /// Likewise, and looks at everybody before the first step and after each one.
    pub fn configurations(
        &self,
        model: &ModelProgram,
    ) -> Result<Result<(Counterexample, Vec<Configuration>), ParseError>, TooLarge> {
        let mut configurations = Vec::new();
        let followed = self.replay_with(model, &mut |machine, state, environment| {
            let execution = Configuration::of(machine, state, environment, configurations.last());
            configurations.push(execution);
        })?;
        Ok(followed.map(|found| (found, configurations)))
    }

    fn replay_with(
        &self,
        model: &ModelProgram,
        observe: &mut dyn FnMut(&mut Machine<'_>, &mut State, &mut dyn Environment),
    ) -> Result<Result<Counterexample, ParseError>, TooLarge> {
        let mut machine = Machine::new(&model.program, Checks::On)?;
        machine.set_fuel_limit(MAX_FUEL);
        let mut state = machine.start();
        for instance in 0..state.instances() {
            if model.role(instance) == Role::LeftOut {
                state.leave_out(instance);
            }
        }
        let mut environment =
            RecordedEnvironment { model, message: None, results: VecDeque::new(), calls: Vec::new(), missing: None };
        let mut found =
            Counterexample { problem: Problem::Property { property: String::new() }, steps: Vec::new(), cycle: None };
        let mut lines = self.lines.iter().peekable();
        observe(&mut machine, &mut state, &mut environment);
        while let Some((number, line)) = lines.next() {
            let bad = |message: String| Ok(Err(ParseError { line: *number, message }));
            if line == "cycle" {
                found.cycle = Some(found.steps.len());
                continue;
            }
            if let Some(ending) = line.strip_prefix("end ") {
                environment.message = None;
                match problem_at_end(ending, &mut machine, &mut state, &mut environment) {
                    Some(problem) => found.problem = problem,
                    None => return bad(format!("the run does not end in `{ending}`")),
                }
                break;
            }
            let step: Step = match line.parse() {
                Ok(step) => step,
                Err(error) => return bad(format!("{error}")),
            };
            let channel = match step {
                Step::FromEnvironment { instance, branch } if instance < state.instances() => {
                    match machine.instance_view(&state, instance).branches.get(branch as usize) {
                        Some(Some(OpenBranch::FromEnvironment(channel))) => Some(*channel),
                        Some(_) | None => None,
                    }
                }
                _ => None,
            };
            while let Some((number, line)) =
                lines.next_if(|(_, line)| line.starts_with("message") || line.starts_with("call "))
            {
                if let Err(message) = environment.read_line(line, channel) {
                    return Ok(Err(ParseError { line: *number, message }));
                }
            }
            if !machine.is_enabled(step, &mut state, &mut environment, EnvironmentMode::AsTraced) {
                return bad(format!("step `{step}` is not possible here"));
            }
            found.steps.push(trace_step(&mut machine, &mut state, &mut environment, step));
            let mut effect = machine.step(step, &mut state, &mut environment, &mut { MAX_FUEL });
            if machine.fuel_exhausted() {
                effect = Effect::Unfinished;
            }
            if let Some(name) = environment.missing.take() {
                return bad(format!("`{name}` is called, which the run does not tell of"));
            }
            let last = found.steps.last_mut().expect("one has just been added");
            last.calls = std::mem::take(&mut environment.calls);
            let location = last.locations.first().copied().unwrap_or_default();
            environment.message = None;
            observe(&mut machine, &mut state, &mut environment);
            match effect {
                Effect::Done => {}
                Effect::Exited(_) => {}
                Effect::Faulted(report) => {
                    found.problem = Problem::Fault(report);
                    break;
                }
                Effect::Unfinished => {
                    let instance = match step {
                        Step::Communicate { sender, .. } => sender,
                        Step::Local { instance }
                        | Step::FromEnvironment { instance, .. }
                        | Step::ToEnvironment { instance, .. }
                        | Step::After { instance, .. }
                        | Step::Else { instance } => instance,
                    };
                    found.problem = Problem::NonTermination { instance, location };
                    break;
                }
            }
        }
        Ok(Ok(found))
    }
}

/// What a step that is about to be taken says, and where its actors stand.
fn trace_step(
    machine: &mut Machine<'_>,
    state: &mut quaject_esp_exec::step::State,
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

/// The world as the script tells of it.
struct RecordedEnvironment<'m> {
    model: &'m ModelProgram,
    message: Option<(ChannelId, Vec<Datum>)>,
    results: VecDeque<(ExternId, Option<Datum>)>,
    calls: Vec<(ExternId, Option<Datum>)>,
    missing: Option<String>,
}

impl RecordedEnvironment<'_> {
    fn read_line(&mut self, line: &str, channel: Option<ChannelId>) -> Result<(), String> {
        let program = &self.model.program;
        if let Some(values) = line.strip_prefix("message") {
            let channel = channel.ok_or("nobody takes a message of the world here")?;
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

    fn call(&mut self, function: ExternId, _arguments: &mut [Datum]) -> Reply {
        match self.results.pop_front() {
            Some((called, result)) if called == function => {
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
