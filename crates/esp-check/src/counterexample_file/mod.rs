//! The file format of counterexamples: a run with its program as text, and its replay by the flow IR's `step`.
//!
//! ```text
//!   quaject counterexample 1
//!   file "count.esp" "channel c: int external in; .."    the program, file by file, the root first
//!   model send                      the model; `process P` or `slice P Q` if only these were checked
//!   run
//!   answer translate 4096 true      a pure function's result in the whole run, and its arguments
//!   c 0 0 1 0                       a step, as traces write it
//!   message 3 -7                    the environment's message in the step before
//!   call translate 4096             the result of a function in the step before
//!   cycle                           the steps from here on repeat forever
//!   value p:n 3                     at the end of a run without a cycle: what the property names
//!   end deadlock                    the violation; after `property` its text, after `starvation` the instance, after
//!                                   `leak` the instance and the pool
//! ```

mod replay;

use crate::configuration::Configuration;
use crate::counterexample::{Counterexample, PureAnswer, ViolationKind};
use quaject_esp_exec::datum::{self, Datum};
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::ir::{Extern, TypeId};
use quaject_esp_ir::model::{ModelProgram, Scope};
use quaject_esp_ir::text::print_bytes;
use std::fmt::Write as _;

const FIRST_LINE: &str = "quaject counterexample 1";

/// A counterexample file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CounterexampleFile {
    /// Name and text of every source file, the root first.
    pub files: Vec<(String, String)>,
    /// The model.
    pub model: Option<String>,
    /// The processes that were checked, if not all.
    pub part: Option<ExploredPart>,
    lines: Vec<(usize, String)>,
}

/// The part of a program that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExploredPart {
    /// One process.
    Process(String),
    /// A slice.
    Slice(Vec<String>),
}

/// The error of a malformed file, or of one that does not match its program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// The text of a counterexample file.
pub fn write(model: &ModelProgram, files: &[(String, String)], counterexample: &Counterexample) -> String {
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
    for PureAnswer { function, arguments, result } in &counterexample.answers {
        let function = &program.externs[function.0 as usize];
        let values: Vec<Datum> = result.iter().chain(arguments).cloned().collect();
        let values = datum::print_message(program, &answer_types(function), &values);
        line(format!("answer {} {values}", function.name).trim_end().to_string());
    }
    for (index, traced) in counterexample.steps.iter().enumerate() {
        if counterexample.cycle == Some(index) {
            line("cycle".into());
        }
        line(traced.step.to_string());
        if let (Step::FromEnvironment { .. }, Some((channel, message))) = (traced.step, &traced.message) {
            let types = &program.channels[channel.0 as usize].payload;
            line(format!("message {}", datum::print_message(program, types, message)).trim_end().to_string());
        }
        for (function, result) in &traced.calls {
            if counterexample.answers.iter().any(|answer| answer.function == *function) {
                continue;
            }
            let function = &program.externs[function.0 as usize];
            let types: Vec<_> = function.result.into_iter().collect();
            let result: Vec<Datum> = result.iter().cloned().collect();
            let result = datum::print_message(program, &types, &result);
            line(format!("call {} {result}", function.name).trim_end().to_string());
        }
    }
    if counterexample.cycle == Some(counterexample.steps.len()) {
        line("cycle".into());
    }
    let details = match &counterexample.violation {
        ViolationKind::Fault(_) | ViolationKind::NonTermination { .. } => String::new(),
        ViolationKind::Property { property, .. } => format!(" {property}"),
        ViolationKind::Starvation { instance, .. } => format!(" {instance}"),
        ViolationKind::Leak { pool, instance } => format!(" {instance} {pool}"),
    };
    if let ViolationKind::Property { values, .. } = &counterexample.violation {
        for (name, value) in values {
            line(format!("value {name} {value}"));
        }
    }
    line(format!("end {}{details}", counterexample.violation.name()));
    text
}

/// The types of an answer: the result, if there is one, and the parameters.
fn answer_types(function: &Extern) -> Vec<TypeId> {
    function.result.into_iter().chain(function.parameters.iter().map(|(ty, _)| *ty)).collect()
}

impl CounterexampleFile {
    /// Whether a text is a counterexample file.
    pub fn has_header(text: &str) -> bool {
        text.starts_with(FIRST_LINE)
    }

    /// Parses a file.
    pub fn parse(text: &str) -> Result<CounterexampleFile, ParseError> {
        let bad = |line, message: &str| ParseError { line, message: message.to_string() };
        let mut file = CounterexampleFile::default();
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
                    let source = datum::parse_string(rest).and_then(|(name, rest)| {
                        let (text, rest) = datum::parse_string(rest.strip_prefix(' ')?)?;
                        rest.is_empty().then_some((name, text))
                    });
                    file.files.push(source.ok_or_else(|| bad(number, "a file is its name and its text"))?);
                }
                "model" => file.model = Some(rest.to_string()),
                "process" => file.part = Some(ExploredPart::Process(rest.to_string())),
                "slice" => file.part = Some(ExploredPart::Slice(rest.split(' ').map(str::to_string).collect())),
                _ => return Err(bad(number, "neither `file`, `model`, `process`, `slice` nor `run`")),
            }
        }
        if file.files.is_empty() {
            return Err(bad(last, "it holds no program"));
        }
        file.lines = lines.map(|(number, line)| (number, line.to_string())).collect();
        match file.lines.last() {
            Some((_, line)) if line.starts_with("end ") => Ok(file),
            Some(_) | None => Err(bad(last, "it is truncated: the violation is missing")),
        }
    }

    /// Replays the run on its program.
    pub fn replay(&self, model: &ModelProgram) -> Result<Result<Counterexample, ParseError>, TooLarge> {
        replay::replay(&self.lines, model, &mut |_, _, _| {})
    }

    /// As [`Self::replay`], with the configuration before the first step and after each step.
    pub fn configurations(
        &self,
        model: &ModelProgram,
    ) -> Result<Result<(Counterexample, Vec<Configuration>), ParseError>, TooLarge> {
        let mut configurations = Vec::new();
        let replayed = replay::replay(&self.lines, model, &mut |machine, state, environment| {
            let configuration = Configuration::of(machine, state, environment, configurations.last());
            configurations.push(configuration);
        })?;
        Ok(replayed.map(|counterexample| (counterexample, configurations)))
    }
}
