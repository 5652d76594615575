//! One run of a program that goes wrong, step by step, with everything that was said: what people, pictures and the
//! interpreter are shown. Says nothing of how it was found.

use quaject_esp_exec::datum::{Datum, print};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::{ChannelId, ExternId, Fault, Location, Program};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use std::fmt::Write as _;

/// A run that goes wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// What is wrong with it.
    pub problem: Problem,
    /// Every step, each with what happens in it. The last one is the fault, if a step is.
    pub steps: Vec<TraceStep>,
    /// For a run that goes on for ever: the first step of those that are repeated.
    pub cycle: Option<usize>,
}

/// What is wrong with a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// It ends in a fault, or in a deadlock.
    Fault(Box<FaultReport>),
    /// An instance computes without end.
    NonTermination {
        /// Who.
        instance: u32,
        /// From where.
        location: Location,
    },
    /// It contradicts a property.
    Property {
        /// The property's text.
        property: String,
    },
    /// An instance waits for ever while others go on.
    Starvation {
        /// Who.
        instance: u32,
        /// Where.
        location: Location,
    },
    /// An object whose count nobody can end any more.
    Leak {
        /// The boxed type.
        pool: String,
        /// Who held it last.
        instance: u32,
    },
}

/// One step of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceStep {
    /// The step.
    pub step: Step,
    /// What passes on which channel, if something does.
    pub message: Option<(ChannelId, Vec<Datum>)>,
    /// Extern functions called, and what they return.
    pub calls: Vec<(ExternId, Option<Datum>)>,
    /// Where in the text those who take part stand: the sender or only one, then the receiver.
    pub locations: Vec<Location>,
}

impl Problem {
    /// A word for it, as faults have.
    pub fn name(&self) -> &'static str {
        match self {
            Problem::Fault(report) => quaject_esp_ir::text::fault_name(report.fault),
            Problem::NonTermination { .. } => "endless",
            Problem::Property { .. } => "property",
            Problem::Starvation { .. } => "starvation",
            Problem::Leak { .. } => "leak",
        }
    }

    /// What is wrong, in a line or, for a deadlock, several; without a line end.
    pub fn text(&self, program: &Program) -> String {
        match self {
            Problem::Fault(report) => report.text(program),
            Problem::NonTermination { instance, location } => format!(
                "`{}` runs without end from {}",
                program.instance_name(*instance),
                location_text(program, *location)
            ),
            Problem::Property { property } => format!("property `{property}` does not hold"),
            Problem::Starvation { instance, location } => format!(
                "`{}` can wait for ever at {} while others go on",
                program.instance_name(*instance),
                location_text(program, *location)
            ),
            Problem::Leak { pool, instance } => {
                format!("an object of `{pool}` is never released: `{}` has lost it", program.instance_name(*instance))
            }
        }
    }

    /// Whether the last step of the run is what is wrong.
    pub fn is_step(&self) -> bool {
        match self {
            Problem::Fault(report) => report.fault != Fault::Deadlock,
            Problem::NonTermination { .. } => true,
            Problem::Property { .. } | Problem::Starvation { .. } | Problem::Leak { .. } => false,
        }
    }
}

impl Counterexample {
    /// The run as text, a line for each step that others can see, and what is wrong at the end.
    pub fn text(&self, model: &ModelProgram) -> String {
        let program = &model.program;
        let mut text = String::new();
        let mut number = 0;
        for (index, traced) in self.steps.iter().enumerate() {
            if self.cycle == Some(index) {
                text.push_str("   from here on again and again\n");
            }
            let last = index + 1 == self.steps.len();
            if let Some(line) = traced.text(program, last && self.problem.is_step()) {
                number += 1;
                writeln!(text, "{number:>4}  {line}").expect("writing to a string does not fail");
            }
        }
        if self.cycle == Some(self.steps.len()) {
            text.push_str("   and so for ever\n");
        }
        text.push_str(&self.problem.text(program));
        text.push('\n');
        text
    }
}

/// Most calls of which each is shown though it is the same.
const MAX_REPEATED_CALLS: usize = 3;
/// Most different calls in a row that the line of a step shows.
pub(crate) const MAX_CALLS: usize = 32;

impl TraceStep {
    /// The step as a line; none for one that nobody else can see, unless it is the one that goes wrong.
    pub fn text(&self, program: &Program, is_violation: bool) -> Option<String> {
        let name = |instance: u32| program.instance_name(instance);
        let at = |index: usize| match self.locations.get(index) {
            Some(location) if location.line > 0 => format!("  ({})", location_text(program, *location)),
            Some(_) | None => String::new(),
        };
        let said = || match &self.message {
            Some((channel, message)) => message_text(program, *channel, message),
            None => "?".into(),
        };
        let mut line = match self.step {
            Step::Local { instance } if is_violation || !self.calls.is_empty() => {
                format!("{}{}", name(instance), at(0))
            }
            Step::Local { .. } => return None,
            Step::Communicate { sender, receiver, .. } => {
                format!("{} -> {}: {}{}", name(sender), name(receiver), said(), at(0))
            }
            Step::FromEnvironment { instance, .. } => format!("world -> {}: {}{}", name(instance), said(), at(0)),
            Step::ToEnvironment { instance, .. } => format!("{} -> world: {}{}", name(instance), said(), at(0)),
            Step::After { instance, .. } => format!("{}: its time has passed{}", name(instance), at(0)),
            Step::Else { instance } => format!("{}: else{}", name(instance), at(0)),
        };
        let groups: Vec<&[(ExternId, Option<Datum>)]> = self.calls.chunk_by(|a, b| a == b).collect();
        for same in groups.iter().take(MAX_CALLS) {
            let shown = if same.len() > MAX_REPEATED_CALLS { 1 } else { same.len() };
            for (function, result) in &same[..shown] {
                let function = &program.externs[function.0 as usize];
                write!(line, ", {}()", function.name).expect("writing to a string does not fail");
                if let (Some(result), Some(ty)) = (result, function.result) {
                    line.push_str(" = ");
                    print(program, ty, result, &mut line);
                }
            }
            if shown < same.len() {
                write!(line, ", {} times", same.len()).expect("writing to a string does not fail");
            }
        }
        if groups.len() > MAX_CALLS {
            line.push_str(", ...");
        }
        Some(line)
    }
}

/// A message as an operation would be written: `c(1, 2)`.
pub(crate) fn message_text(program: &Program, channel: ChannelId, message: &[Datum]) -> String {
    let channel = &program.channels[channel.0 as usize];
    let mut text = format!("{}(", channel.name);
    for (number, (ty, value)) in channel.payload.iter().zip(message).enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        print(program, *ty, value, &mut text);
    }
    text.push(')');
    text
}
