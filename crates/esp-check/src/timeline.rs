//! A run divided into stops, for stepping through it: the start, and one stop after each visible step. Also the status
//! of an instance as text.

use crate::configuration::{AwaitedEvent, InstanceStatus};
use crate::counterexample::Counterexample;
use quaject_esp_exec::step::{Control, Step};
use quaject_esp_ir::ir::{Direction, Program};
use quaject_esp_ir::text::location_text;

/// A place at which a reader of a run can stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The number of the visible step before, in `Counterexample::steps`. None at the start.
    pub step: Option<usize>,
    /// The step as text; empty at the start.
    pub text: String,
    /// The participants of the step.
    pub actors: Vec<u32>,
    /// The number of the configuration, in which the participants have run up to their next wait.
    pub configuration: usize,
}

/// The stops of a run of which this many configurations are known. Never empty.
pub fn stops(program: &Program, counterexample: &Counterexample, configurations: usize) -> Vec<Stop> {
    let mut stops = vec![Stop { step: None, text: String::new(), actors: Vec::new(), configuration: 0 }];
    for (index, traced) in counterexample.steps.iter().enumerate() {
        let is_last = index + 1 == counterexample.steps.len();
        let configuration = (index + 1).min(configurations.saturating_sub(1));
        match traced.text(program, is_last && counterexample.violation.is_step()) {
            Some(text) => {
                stops.push(Stop { step: Some(index), text, actors: participants(traced.step), configuration });
            }
            // An invisible step belongs to the step before it.
            None => stops.last_mut().expect("there is a first stop").configuration = configuration,
        }
    }
    stops
}

fn participants(step: Step) -> Vec<u32> {
    match step {
        Step::Communicate { sender, receiver, .. } => vec![sender, receiver],
        Step::Local { instance }
        | Step::FromEnvironment { instance, .. }
        | Step::ToEnvironment { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => vec![instance],
    }
}

impl InstanceStatus {
    /// The location of the instance and what it waits for, as text.
    pub fn text(&self, program: &Program) -> String {
        let at = location_text(program, self.location);
        match self.control {
            Control::Ended => "has ended".into(),
            Control::Running { .. } if self.location.line == 0 => "runs its first local code".into(),
            Control::Running { .. } => format!("runs at {at}"),
            Control::CapturedByPath { .. } => format!("at {at} is on a fast path"),
            Control::Waiting { .. } => {
                let waits = self.awaited_texts(program);
                let waits = if waits.is_empty() { "a guard that stays false".to_string() } else { waits.join("; ") };
                format!("at {at} waits for {waits}")
            }
        }
    }

    /// What the instance waits for as texts, each once.
    pub fn awaited_texts(&self, program: &Program) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for text in self.waits.iter().map(|event| event.text(program)) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }
}

impl AwaitedEvent {
    /// The event as text.
    pub fn text(&self, program: &Program) -> String {
        match self {
            AwaitedEvent::Partner(channel, direction, partners) => {
                let verb = match direction {
                    Direction::In => "write",
                    Direction::Out => "read",
                };
                let names: Vec<String> = partners.iter().map(|partner| program.instance_name(*partner)).collect();
                let partners = if names.is_empty() { "no process".to_string() } else { names.join(" or ") };
                format!("{partners} to {verb} {}", program.channels[channel.0 as usize].name)
            }
            AwaitedEvent::Environment(channel) => {
                format!("the environment at {}", program.channels[channel.0 as usize].name)
            }
            AwaitedEvent::Time => "a time".into(),
        }
    }
}
