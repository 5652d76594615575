//! The oracle for the model checkers: every state of a small program, by breadth-first search with the interpreter's
//! steps, without reduction and compression.

use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Effect, Machine, State};
use quaject_esp_ir::ir::{ChannelId, ExternId, Fault, Program};
use std::collections::{HashSet, VecDeque};
use std::fmt;

/// The result of an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No run has a fault.
    Fine,
    /// A run faults; `deadlock` included.
    Faults(Fault),
    /// There are more states than the limit, or a step does not terminate.
    TooLarge,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Fine => f.write_str("fine"),
            Verdict::Faults(fault) => f.write_str(quaject_esp_ir::text::fault_name(*fault)),
            Verdict::TooLarge => f.write_str("too large"),
        }
    }
}

/// All states of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explored {
    /// The fault nearest to the start.
    pub verdict: Verdict,
    /// Every fault that some run ends with.
    pub faults: Vec<Fault>,
    /// The number of states, faults not included.
    pub states: usize,
}

/// An environment without messages, with a clock after every deadline.
pub struct Silent;

impl Environment for Silent {
    fn peek(&mut self, _channel: ChannelId) -> Offer<'_> {
        Offer::Closed
    }

    fn take(&mut self, _channel: ChannelId) {}

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, _channel: ChannelId, _message: &[Datum]) {}

    fn now_ns(&mut self) -> i64 {
        i64::MAX
    }

    fn call(&mut self, _function: ExternId, _arguments: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}

/// Explores up to this many states of a program that needs no environment.
pub fn explore(program: &Program, checks: Checks, max_states: usize) -> Explored {
    let mut machine = Machine::new(program, checks).expect("the samples are small");
    let start = machine.start();
    let mut seen: HashSet<State> = HashSet::from([start.clone()]);
    let mut queue = VecDeque::from([start]);
    let mut faults: Vec<Fault> = Vec::new();
    let mut truncated = false;
    let mut environment = Silent;
    while let Some(mut state) = queue.pop_front() {
        if seen.len() > max_states {
            truncated = true;
            break;
        }
        let steps = machine.enabled(&mut state, &mut environment);
        if steps.is_empty()
            && let Outcome::Faulted(report) = machine.classify_quiescence(&mut state, &mut environment)
        {
            note(&mut faults, report.fault);
        }
        for step in steps {
            let mut next = state.clone();
            // A step that does not terminate makes the exploration incomplete.
            match machine.step(step, &mut next, &mut environment, &mut 1_000_000) {
                Effect::Done => {
                    if seen.insert(next.clone()) {
                        queue.push_back(next);
                    }
                }
                Effect::Unfinished => truncated = true,
                Effect::Exited(_) => {}
                Effect::Faulted(report) => note(&mut faults, report.fault),
            }
        }
    }
    let verdict = match faults.first() {
        Some(fault) => Verdict::Faults(*fault),
        None if truncated => Verdict::TooLarge,
        None => Verdict::Fine,
    };
    Explored { verdict, faults, states: seen.len() }
}

fn note(faults: &mut Vec<Fault>, fault: Fault) {
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}
