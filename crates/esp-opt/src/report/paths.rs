//! What became of a fast path's specification, and what a run did with the path, in words.

use crate::path::{Extraction, Made};
use crate::path_exit::{ExitReason, PathExit};
use quaject_esp_exec::profile::PathCounters;
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_ir::text::location_text;

impl ExitReason {
    /// In words.
    pub fn text(self, names: &[String]) -> String {
        match self {
            ExitReason::Normal => "exit".to_string(),
            ExitReason::Deviation(member) => format!("abort: {} leaves the path", names[member]),
            ExitReason::PredicateFalse(member) => format!("abort: a predicate of {} is false", names[member]),
            ExitReason::EnvironmentNotReady(member) => format!("abort: the world is not ready for {}", names[member]),
            ExitReason::Stops(member) => format!("abort: {} faults, yields or ends", names[member]),
            ExitReason::NoneRunnable => "abort: nobody can run".to_string(),
            ExitReason::Forced(member) => format!("abort: asked for, at {}", names[member]),
            ExitReason::ValuesDiffer => "abort: values differ that the path takes for equal".to_string(),
            ExitReason::IterationLimit => "abort: the bound is reached".to_string(),
        }
    }
}

impl Extraction {
    /// What is in vain in it, for people: one line for each statement that is never come to.
    pub fn in_vain(&self, program: &Program) -> Vec<String> {
        let Ok(Made { unreached, .. }) = &self.result else { return Vec::new() };
        let line = |(member, at): &(usize, Location)| {
            let (name, of) = (&self.name, &self.members[*member]);
            format!("fast path {name}: no run of it comes to the statement of {of} at {}", location_text(program, *at))
        };
        unreached.iter().map(line).collect()
    }

    /// What a run has done with it, for people: how often it was entered, and where it was left how often.
    pub fn told(&self, runs: &PathCounters) -> String {
        let PathCounters { entered, deferred, refused, left } = runs;
        let mut text = format!(
            "fast path {}: entered {entered} times, put off {deferred} times, refused {refused} times, as some process \
             was elsewhere",
            self.name
        );
        for (number, count) in left.iter().enumerate().filter(|(_, count)| **count > 0) {
            let exit =
                self.result.as_ref().ok().and_then(|made| made.exits.iter().chain(&made.limit_exits).nth(number));
            let way = match exit {
                Some(PathExit { reason, at }) => {
                    let lines: Vec<String> = at.iter().map(|at| at.line.to_string()).collect();
                    format!("{} ({})", reason.text(&self.members), lines.join(", "))
                }
                None => format!("{number} returned"),
            };
            text += &format!("\n  left {count} times: {way}");
        }
        text
    }

    /// What became of it, for people.
    pub fn text(&self, program: &Program) -> String {
        let names = self.members.join(", ");
        match &self.result {
            Ok(Made { function: Some(function), .. }) => {
                format!("fast path {}: {names}: the C function `{function}`, of which nothing is known", self.name)
            }
            Ok(made) => {
                let Made { nodes, bound, instructions, .. } = made;
                let mut text =
                    format!("fast path {}: {names}: {nodes} states, {instructions} instructions\n", self.name);
                text += &format!("  a run ends after at most {bound} iterations of its loops");
                text += &format!(", {} steps\n", u64::from(*bound).saturating_mul(*instructions as u64));
                if let Some(decline) = made.decline {
                    text += &format!("  it makes a choice: every {decline}th entry is declined\n");
                }
                for (reason, places) in made.ways_out() {
                    text += &format!("  {}: ({})\n", reason.text(&self.members), places.join("), ("));
                }
                text.pop();
                text
            }
            Err(refusal) => format!("no fast path {}: {}", self.name, refusal.text(program)),
        }
    }
}

impl Made {
    /// Why the path is left, and for each reason where: the lines at which the members stand, in their order.
    fn ways_out(&self) -> Vec<(ExitReason, Vec<String>)> {
        let mut ways: Vec<(ExitReason, Vec<String>)> = Vec::new();
        for exit in &self.exits {
            let lines: Vec<String> = exit.at.iter().map(|at| at.line.to_string()).collect();
            let lines = lines.join(", ");
            match ways.last_mut() {
                Some((reason, places)) if *reason == exit.reason => places.push(lines),
                Some(_) | None => ways.push((exit.reason, vec![lines])),
            }
        }
        ways
    }
}
