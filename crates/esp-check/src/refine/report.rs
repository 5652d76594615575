//! The report of a refinement check: the verdict, the run that violates refinement, and the coverage of the paths.

use crate::counterexample::TraceStep;
use crate::options::Limit;
use crate::report::{
    CheckKind, PathRecord, VerdictRecord, numbered_steps, run_to_json, statistics, subject, unfinished_text,
};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::{counted, location_text};
use smol_str::SmolStr;
use std::fmt::Write as _;
use std::time::Duration;

/// The result of a refinement check.
#[derive(Clone, PartialEq, Debug)]
pub struct Refinement {
    /// The verdict.
    pub verdict: RefinementVerdict,
    /// States of the simulation: implementation states with their sets.
    pub states: u64,
    /// States of the specification.
    pub spec_states: u64,
    /// Steps of the implementation.
    pub transitions: u64,
    /// Steps from the initial state to the farthest state.
    pub depth: u32,
    /// Memory used by the search.
    pub bytes: u64,
    /// Time used.
    pub elapsed: Duration,
    /// The coverage of each path.
    pub paths: Vec<PathCoverage>,
    /// The restrictions of the environment, to which the verdict is limited.
    pub restrictions: Vec<String>,
}

/// The verdict of a refinement check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RefinementVerdict {
    /// Every behaviour of the implementation is one of the specification.
    Holds,
    /// This run is not.
    Violated(RefinementCounterexample),
    /// A limit was reached before a mismatch was found.
    Unfinished(Limit),
}

/// A run of the implementation that the specification does not match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefinementCounterexample {
    /// The mismatch at its end.
    pub mismatch: Mismatch,
    /// Its steps.
    pub steps: Vec<TraceStep>,
}

/// How the end of a run differs from every matching run of the specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// The processes differ beyond their fast paths.
    Code,
    /// The initial states do not correspond.
    InitialState,
    /// The last step has a visible action that the specification does not have there.
    VisibleAction,
    /// The run ends in a different way.
    Termination {
        /// The fault, if it ends in one.
        fault: Option<Box<FaultReport>>,
    },
    /// The last step leaves a path in a state that does not correspond to any reachable one.
    ExitState {
        /// The location of each instance.
        at: Vec<(u32, Location)>,
        /// The instances that are in no reachable state at that location with those values.
        never: Vec<u32>,
    },
    /// One of the programs is quiescent, or deadlocked, where the other one is not.
    Quiescence,
    /// No instance can move while a path is active.
    StuckOnPath,
    /// A cycle of invisible steps of the implementation that stutters at a specification state which has no cycle of
    /// invisible steps.
    Divergence,
}

/// The coverage of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathCoverage {
    /// The name of the path.
    pub name: SmolStr,
    /// Whether it was entered.
    pub is_entered: bool,
    /// Number of its exits that were taken.
    pub exits_taken: usize,
    /// Number of its exits.
    pub exits: usize,
}

impl PathCoverage {
    /// One line of text.
    pub fn text(&self) -> String {
        let PathCoverage { name, exits_taken, exits, .. } = self;
        if self.is_entered {
            format!("fast path `{name}`: entered, {exits_taken} of {} taken", counted(*exits as u64, "exit"))
        } else {
            format!("fast path `{name}`: NEVER ENTERED in this environment, so its refinement is not known")
        }
    }
}

impl Mismatch {
    /// Its word in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Mismatch::Code => "code",
            Mismatch::InitialState => "initial state",
            Mismatch::VisibleAction => "visible action",
            Mismatch::Termination { .. } => "termination",
            Mismatch::ExitState { .. } => "exit state",
            Mismatch::Quiescence => "quiescence",
            Mismatch::StuckOnPath => "stuck on path",
            Mismatch::Divergence => "divergence",
        }
    }

    /// The mismatch in one or several lines, without a line end.
    pub fn text(&self, program: &Program) -> String {
        match self {
            Mismatch::Code => "the processes differ from those of the original beyond their fast paths".to_string(),
            Mismatch::InitialState => "the initial state does not correspond to that of the original".to_string(),
            Mismatch::VisibleAction => "the original does not have this action after the same run".to_string(),
            Mismatch::Termination { fault } => {
                let fault = fault.as_ref().map_or_else(String::new, |fault| format!("{}\n", fault.text(program)));
                fault + "the original does not end in this way after the same run"
            }
            Mismatch::ExitState { at, never } => exit_state_text(program, at, never),
            Mismatch::Quiescence => "the original is not quiescent in this way after the same run".to_string(),
            Mismatch::StuckOnPath => "no process can continue while a fast path is active".to_string(),
            Mismatch::Divergence => {
                "divergence: the last steps, all of them invisible, can repeat forever, where the original has no \
                 infinite sequence of invisible steps"
                    .to_string()
            }
        }
    }
}

fn exit_state_text(program: &Program, at: &[(u32, Location)], never: &[u32]) -> String {
    let name = |instance: u32| format!("`{}`", program.instance_name(instance));
    let location = |(instance, location): &(u32, Location)| match location.line {
        0 => format!("{} at its end", name(*instance)),
        _ => format!("{} at {}", name(*instance), location_text(program, *location)),
    };
    let at: Vec<String> = at.iter().map(location).collect();
    let never: Vec<String> = never.iter().map(|instance| name(*instance)).collect();
    let which = match &never[..] {
        [] => "each process reaches its part of it, but not all together".to_string(),
        [one] => format!("{one} never reaches this location with these values"),
        many => format!("{} never reach these locations with these values", many.join(", ")),
    };
    format!("the original never reaches this state: {}\n{which}", at.join(", "))
}

impl Refinement {
    /// The verdict and what it covers, ending with a line end.
    pub fn text(&self, model: &ModelProgram) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
        let subject = subject(model);
        match &self.verdict {
            RefinementVerdict::Holds => {
                line(format!("refinement holds: {subject} with fast paths has no behaviour that the original has not"));
            }
            RefinementVerdict::Violated(counterexample) => {
                line(format!(
                    "refinement violated: {subject} with fast paths has a behaviour that the original has not"
                ));
                line(counterexample.text(model));
            }
            RefinementVerdict::Unfinished(limit) => line(unfinished_text(&subject, (*limit).into())),
        }
        line(format!(
            "{}, {}, {}",
            counted(self.states, "implementation state"),
            counted(self.spec_states, "specification state"),
            statistics(self.transitions, self.depth, self.elapsed, self.bytes)
        ));
        self.paths.iter().for_each(|path| line(path.text()));
        let covered = match &self.verdict {
            RefinementVerdict::Holds => "covered",
            RefinementVerdict::Violated(_) => "checked",
            RefinementVerdict::Unfinished(_) => "covered, within the states visited",
        };
        line(format!(
            "{covered}: every message, call, fault and end; the state at each exit of a path; deadlock; divergence"
        ));
        if !self.restrictions.is_empty() {
            line(format!("assumed: {}", self.restrictions.join("; ")));
        }
        text
    }

    /// The record of this report.
    pub fn record(&self, model: &ModelProgram) -> VerdictRecord {
        let program = &model.program;
        let (verdict, limit, counterexample) = match &self.verdict {
            RefinementVerdict::Holds => ("holds", None, None),
            RefinementVerdict::Violated(counterexample) => ("violated", None, Some(counterexample)),
            RefinementVerdict::Unfinished(limit) => ("unfinished", Some(limit.name().to_string()), None),
        };
        let path = |path: &PathCoverage| PathRecord {
            name: path.name.to_string(),
            is_entered: path.is_entered,
            exits: Some((path.exits_taken, path.exits)),
        };
        VerdictRecord {
            limit,
            states: self.states,
            spec_states: Some(self.spec_states),
            transitions: Some(self.transitions),
            depth: Some(self.depth),
            seconds: self.elapsed.as_secs_f64(),
            bytes: Some(self.bytes),
            restrictions: self.restrictions.clone(),
            paths: self.paths.iter().map(path).collect(),
            problem: counterexample.map(|counterexample| counterexample.mismatch.name()),
            explanation: counterexample.map(|counterexample| counterexample.mismatch.text(program)),
            never: counterexample.map(|counterexample| counterexample.mismatch.unreachable_instances(program)),
            run: counterexample.map(|counterexample| run_to_json(program, &counterexample.steps)),
            ..VerdictRecord::new(model, CheckKind::Refinement, verdict)
        }
    }
}

impl Mismatch {
    /// The names of the instances that are in no reachable state.
    fn unreachable_instances(&self, program: &Program) -> Vec<String> {
        match self {
            Mismatch::ExitState { never, .. } => {
                never.iter().map(|instance| program.instance_name(*instance)).collect()
            }
            Mismatch::Code
            | Mismatch::InitialState
            | Mismatch::VisibleAction
            | Mismatch::Termination { .. }
            | Mismatch::Quiescence
            | Mismatch::StuckOnPath
            | Mismatch::Divergence => Vec::new(),
        }
    }
}

impl RefinementCounterexample {
    fn text(&self, model: &ModelProgram) -> String {
        numbered_steps(&model.program, &self.steps, None, true) + &self.mismatch.text(&model.program)
    }
}
