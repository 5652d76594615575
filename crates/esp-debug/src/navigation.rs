//! The position in a run, and the stop to which a request leads.

use crate::breakpoints::Breakpoints;
use crate::debugged_run::DebuggedRun;
use quaject_esp_exec::step::Step;

/// Where a movement ended, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// At the stop that was asked for, for this instance.
    Step(u32),
    /// At breakpoints, which an instance has hit.
    Breakpoint(Vec<u32>, u32),
    /// At the start of the run.
    Start,
    /// At the end of the run.
    End,
}

/// The steps at which a movement stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// Any step.
    Any,
    /// A step of an instance.
    Instance(u32),
    /// A communication of an instance.
    Communication(u32),
    /// No step, only breakpoints.
    Breakpoint,
}

/// The position in a run: the number of a stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Position {
    pub(crate) at: usize,
}

impl Position {
    /// Moves forwards. At the end of a run with a cycle, the run goes on at the start of the cycle.
    pub(crate) fn forward(&mut self, run: &DebuggedRun, target: Target, breakpoints: &Breakpoints) -> Arrival {
        if self.at == run.last() {
            match run.cycle() {
                Some(first) => {
                    self.at = first;
                    if let Some(arrival) = arrival(run, self.at, target, breakpoints) {
                        return arrival;
                    }
                }
                None => return Arrival::End,
            }
        }
        while self.at < run.last() {
            self.at += 1;
            if self.at == run.last() {
                return Arrival::End;
            }
            if let Some(arrival) = arrival(run, self.at, target, breakpoints) {
                return arrival;
            }
        }
        Arrival::End
    }

    /// Moves backwards. Before the first step of the cycle is the step before the cycle.
    pub(crate) fn backward(&mut self, run: &DebuggedRun, target: Target, breakpoints: &Breakpoints) -> Arrival {
        while self.at > 0 {
            // Undoing a step of the instance ends where that step has not happened.
            let undone = self.at;
            self.at -= 1;
            let arrival = match target {
                Target::Breakpoint => arrival(run, self.at, target, breakpoints),
                Target::Any | Target::Instance(_) | Target::Communication(_) => {
                    matching_instance(run, undone, target).map(Arrival::Step)
                }
            };
            if let (Some(arrival), true) = (arrival, self.at > 0) {
                return arrival;
            }
        }
        Arrival::Start
    }
}

/// Why a movement forwards stops here.
fn arrival(run: &DebuggedRun, at: usize, target: Target, breakpoints: &Breakpoints) -> Option<Arrival> {
    if let Some((ids, instance)) = breakpoints.hit(run, at) {
        return Some(Arrival::Breakpoint(ids, instance));
    }
    matching_instance(run, at, target).map(Arrival::Step)
}

/// The instance for which the step before a stop is one of the target's.
fn matching_instance(run: &DebuggedRun, at: usize, target: Target) -> Option<u32> {
    let stop = &run.stops[at];
    let is_actor = |instance: &u32| stop.actors.contains(instance);
    match target {
        Target::Any => stop.actors.last().copied(),
        Target::Instance(instance) => Some(instance).filter(is_actor),
        Target::Communication(instance) => {
            let is_communication = match run.found.steps[stop.step?].step {
                Step::Communicate { .. } | Step::FromEnvironment { .. } | Step::ToEnvironment { .. } => true,
                Step::Local { .. } | Step::After { .. } | Step::Else { .. } => false,
            };
            Some(instance).filter(is_actor).filter(|_| is_communication)
        }
        Target::Breakpoint => None,
    }
}
