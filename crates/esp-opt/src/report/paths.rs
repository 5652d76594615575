//! The results for fast paths: how each was formed, and how a run used it, in words.

use crate::path::{FormedPath, PathAttempt};
use crate::path_exit::{ExitReason, PathExit};
use quaject_esp_exec::path_counters::PathCounters;
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_ir::text::{counted, location_text};

impl ExitReason {
    /// The reason in words, with these names of the members.
    pub fn text(self, names: &[String]) -> String {
        match self {
            ExitReason::Normal => "exit".to_string(),
            ExitReason::Deviation(member) => format!("side exit: {} deviates from the path", names[member]),
            ExitReason::PredicateFalse(member) => format!("side exit: a predicate of {} is false", names[member]),
            ExitReason::EnvironmentNotReady(member) => {
                format!("side exit: the environment is not ready for {}", names[member])
            }
            ExitReason::NotExecutable(member) => format!(
                "side exit: {} is at a statement that paths do not execute: a fault, `yield`, end, `pri alt`, `else` or \
                 allocation",
                names[member]
            ),
            ExitReason::NoneRunnable => "side exit: no member can run".to_string(),
            ExitReason::Forced(member) => format!("side exit: forced, at {}", names[member]),
            ExitReason::ValuesDiffer => "side exit: values that the path assumes equal differ".to_string(),
            ExitReason::IterationLimit => "side exit: the iteration limit is reached".to_string(),
        }
    }
}

impl PathAttempt {
    /// One line for each statement of the specification that is unreachable on the path.
    pub fn unreachable_statements(&self, program: &Program) -> Vec<String> {
        let Ok(FormedPath { unreachable, .. }) = &self.result else { return Vec::new() };
        let line = |(member, at): &(usize, Location)| {
            let (name, of) = (&self.name, &self.members[*member]);
            format!(
                "fast path {name}: the statement of {of} at {} is unreachable on the path",
                location_text(program, *at)
            )
        };
        unreachable.iter().map(line).collect()
    }

    /// How a run used it: entries, and how many times each exit was taken.
    pub fn run_summary(&self, runs: &PathCounters) -> String {
        let PathCounters { entered, retried, bypassed, exits_taken } = runs;
        let mut text = format!(
            "fast path {}: entered {}, retried {}, bypassed {} because a member was not in position",
            self.name,
            counted(*entered, "time"),
            counted(*retried, "time"),
            counted(*bypassed, "time")
        );
        for (number, count) in exits_taken.iter().enumerate().filter(|(_, count)| **count > 0) {
            let formed = self.result.as_ref().ok();
            let exit = formed.and_then(|formed| formed.exits.iter().chain(&formed.limit_exits).nth(number));
            let exit = match exit {
                Some(PathExit { reason, at }) => {
                    let lines: Vec<String> = at.iter().map(|at| at.line.to_string()).collect();
                    format!("{} ({})", reason.text(&self.members), lines.join(", "))
                }
                None => format!("return value {number}"),
            };
            text += &format!("\n  left {}: {exit}", counted(*count, "time"));
        }
        text
    }

    /// The path, or why there is none.
    pub fn text(&self, program: &Program) -> String {
        let names = self.members.join(", ");
        match &self.result {
            Ok(FormedPath { function: Some(function), .. }) => {
                format!("fast path {}: {names}: the C function `{function}`, which is not analysed", self.name)
            }
            Ok(formed) => {
                let FormedPath { nodes, max_iterations, instructions, .. } = formed;
                let size = [counted(*nodes as u64, "state"), counted(*instructions as u64, "instruction")].join(", ");
                let mut text = format!("fast path {}: {names}: {size}\n", self.name);
                let iterations = counted(u64::from(*max_iterations), "iteration");
                let steps = u64::from(*max_iterations).saturating_mul(*instructions as u64);
                text += &format!("  a run ends after at most {iterations} of its loops, {}\n", counted(steps, "step"));
                if let Some(interval) = formed.bypass_interval {
                    text += &format!("  it makes a choice: one entry in {interval} is bypassed\n");
                }
                for (reason, locations) in formed.exits_by_reason() {
                    text += &format!("  {}: ({})\n", reason.text(&self.members), locations.join("), ("));
                }
                text.pop();
                text
            }
            Err(refusal) => format!("no fast path {}: {}", self.name, refusal.text(program)),
        }
    }
}

impl FormedPath {
    /// The exits by reason, each as the lines at which the members resume, in their order.
    fn exits_by_reason(&self) -> Vec<(ExitReason, Vec<String>)> {
        let mut exits: Vec<(ExitReason, Vec<String>)> = Vec::new();
        for exit in &self.exits {
            let lines: Vec<String> = exit.at.iter().map(|at| at.line.to_string()).collect();
            let lines = lines.join(", ");
            match exits.last_mut() {
                Some((reason, locations)) if *reason == exit.reason => locations.push(lines),
                Some(_) | None => exits.push((exit.reason, vec![lines])),
            }
        }
        exits
    }
}
