//! Counterexamples as text: a line for each visible step, and the violation.

use crate::counterexample::{Counterexample, TraceStep, ViolationKind};
use quaject_esp_exec::datum::{Datum, print};
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::{ChannelId, ExternId, Program};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use std::fmt::Write as _;

impl ViolationKind {
    /// The violation in one line, or several for a deadlock, without a line end.
    pub fn text(&self, program: &Program) -> String {
        match self {
            ViolationKind::Fault(report) => report.text(program),
            ViolationKind::NonTermination { instance, location } => format!(
                "`{}` does not terminate: its local code from {} on never reaches an operation",
                program.instance_name(*instance),
                location_text(program, *location)
            ),
            ViolationKind::Property { property, values } if values.is_empty() => {
                format!("property `{property}` does not hold")
            }
            ViolationKind::Property { property, values } => {
                let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                format!("property `{property}` is violated here, whatever follows: {}", values.join(", "))
            }
            ViolationKind::Starvation { instance, location } => format!(
                "`{}` starves at {}: it can wait forever while other processes continue",
                program.instance_name(*instance),
                location_text(program, *location)
            ),
            ViolationKind::Leak { pool, instance } => {
                format!("an object of `{pool}` is never released: `{}` has lost it", program.instance_name(*instance))
            }
        }
    }
}

impl Counterexample {
    /// The run as text: one line for each visible step, and the violation at the end.
    pub fn text(&self, model: &ModelProgram) -> String {
        let program = &model.program;
        let mut text = numbered_steps(program, &self.steps, self.cycle, self.violation.is_step());
        if matches!(self.violation, ViolationKind::Property { .. }) && self.violation.is_step() {
            text.truncate(text.trim_end().len());
            let mark = if self.steps.is_empty() { "   the initial state" } else { "   <- violates the property" };
            text.push_str(mark);
            text.push('\n');
        }
        text.push_str(&self.violation.text(program));
        text.push('\n');
        text
    }
}

/// The visible steps of a run, numbered, with its cycle; `is_violation` says that the last step is the violation.
pub(crate) fn numbered_steps(
    program: &Program,
    steps: &[TraceStep],
    cycle: Option<usize>,
    is_violation: bool,
) -> String {
    let mut text = String::new();
    let mut number = 0;
    for (index, traced) in steps.iter().enumerate() {
        if cycle == Some(index) {
            text.push_str("   cycle: the steps from here on repeat forever\n");
        }
        if let Some(line) = traced.text(program, is_violation && index + 1 == steps.len()) {
            number += 1;
            writeln!(text, "{number:>4}  {line}").expect("writing to a string does not fail");
        }
    }
    if cycle == Some(steps.len()) {
        text.push_str("   cycle: the last state repeats forever\n");
    }
    text
}

/// The largest number of repetitions of a call that are shown one by one.
const MAX_REPEATED_CALLS: usize = 3;
/// The largest number of different calls shown for one step.
pub(crate) const MAX_CALLS: usize = 32;

impl TraceStep {
    /// The step as a line; none for an invisible step that is not the violation.
    pub fn text(&self, program: &Program, is_violation: bool) -> Option<String> {
        let name = |instance: u32| program.instance_name(instance);
        let at = |index: usize| match self.locations.get(index) {
            Some(location) if location.line > 0 => format!("  ({})", location_text(program, *location)),
            Some(_) | None => String::new(),
        };
        let message = || match &self.message {
            Some((channel, message)) => message_text(program, *channel, message),
            None => "?".into(),
        };
        let mut line = match self.step {
            Step::Local { instance } if is_violation || !self.calls.is_empty() => {
                format!("{}{}", name(instance), at(0))
            }
            Step::Local { .. } => return None,
            Step::Communicate { sender, receiver, .. } => {
                format!("{} -> {}: {}{}", name(sender), name(receiver), message(), at(0))
            }
            Step::FromEnvironment { instance, .. } => {
                format!("environment -> {}: {}{}", name(instance), message(), at(0))
            }
            Step::ToEnvironment { instance, .. } => {
                format!("{} -> environment: {}{}", name(instance), message(), at(0))
            }
            Step::After { instance, .. } => format!("{}: timeout{}", name(instance), at(0)),
            Step::Else { instance } => format!("{}: else{}", name(instance), at(0)),
        };
        self.append_calls(program, &mut line);
        Some(line)
    }

    /// Appends the calls of extern functions.
    fn append_calls(&self, program: &Program, line: &mut String) {
        let groups: Vec<&[(ExternId, Option<Datum>)]> = self.calls.chunk_by(|a, b| a == b).collect();
        for same in groups.iter().take(MAX_CALLS) {
            let shown = if same.len() > MAX_REPEATED_CALLS { 1 } else { same.len() };
            for (function, result) in &same[..shown] {
                let function = &program.externs[function.0 as usize];
                write!(line, ", {}()", function.name).expect("writing to a string does not fail");
                if let (Some(result), Some(ty)) = (result, function.result) {
                    line.push_str(" = ");
                    print(program, ty, result, line);
                }
            }
            if shown < same.len() {
                write!(line, ", {} times", same.len()).expect("writing to a string does not fail");
            }
        }
        if groups.len() > MAX_CALLS {
            line.push_str(", ...");
        }
    }
}

/// A message in the form of an operation: `c(1, 2)`.
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
