//! Reports as text.

use super::{Answer, Deadlocks, Leaks, Report, Verdict};
use crate::answer_table::MAX_ANSWER_TABLES;
use crate::liveness::ProductStatistics;
use crate::options::{Compaction, Limit, Options, Reduction, Symmetry, Unfinished, omission_bound};
use crate::spuriousness::{Concretization, Spuriousness};
use crate::successors::{MAX_CHOICES, MAX_FUEL};
use quaject_esp_ir::ir::{Location, ProcessId, Program};
use quaject_esp_ir::model::{ModelProgram, Role, Scope};
use quaject_esp_ir::text::counted;
use std::fmt::Write as _;
use std::time::Duration;

impl Report {
    /// A bound on the omission probability; none without hash compaction.
    pub fn omission(&self, options: &Options) -> Option<f64> {
        match options.compaction {
            Compaction::On => Some(omission_bound(self.states)),
            Compaction::Off => None,
        }
    }

    /// The verdict and what it covers, ending with a line end.
    pub fn text(&self, model: &ModelProgram, options: &Options) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
        line(self.verdict_text(model, options));
        if let Verdict::Violated(counterexample) = &self.verdict {
            line(counterexample.text(model).trim_end().to_string());
        }
        let states = format!("{} ({})", counted(self.states, "state"), search_text(options));
        line(format!("{states}, {}", statistics(self.transitions, self.depth, self.elapsed, self.bytes)));
        if self.product.states > 0 {
            let ProductStatistics { states, transitions, bytes } = self.product;
            let states = counted(states, "product state");
            let transitions = counted(transitions, "transition");
            line(format!("with properties: {states}, {transitions}, {:.1} MB", bytes as f64 / 1e6));
        }
        let (covered, undecided) = self.coverage_text(model);
        let verb = match &self.verdict {
            Verdict::Holds if options.compaction == Compaction::On => "covered, except omitted states",
            Verdict::Holds => "covered",
            Verdict::Violated(_) => "checked",
            Verdict::Unfinished(_) => "covered, within the states visited",
        };
        if self.verdict != Verdict::Unfinished(Unfinished::EngineFailed) {
            line(format!("{verb}: {covered}"));
        }
        if !undecided.is_empty() {
            line(format!("not decided: {}", undecided.join(", ")));
        }
        if !self.restrictions.is_empty() {
            line(format!("assumed: {}", self.restrictions.join("; ")));
        }
        if !self.unreached.is_empty() {
            let lines: Vec<String> = self.unreached.iter().map(|at| line_or_place(&model.program, *at)).collect();
            line(format!("never executed: {}", lines.join(", ")));
        }
        text
    }

    /// The first line.
    pub fn verdict_text(&self, model: &ModelProgram, options: &Options) -> String {
        let subject = subject(model);
        match &self.verdict {
            Verdict::Holds => match self.omission(options) {
                None => format!("no errors in {subject}"),
                Some(bound) => {
                    format!("no errors found in {subject}; omission probability at most {bound:.1e} (hash compaction)")
                }
            },
            Verdict::Violated(counterexample) => format!("error `{}` in {subject}", counterexample.violation.name()),
            Verdict::Unfinished(unfinished) => unfinished_text(&subject, *unfinished),
        }
    }

    /// What was checked, and the questions that are not decided.
    fn coverage_text(&self, model: &ModelProgram) -> (String, Vec<String>) {
        let partial = match self.deadlocks {
            Deadlocks::All => "",
            Deadlocks::GlobalOnly => " (not of some processes while others wait for the environment or the clock)",
        };
        let memory = match self.leaks {
            Leaks::ExhaustingPool if !model.program.types.pools().is_empty() => {
                "memory (leaks only where they exhaust a pool)"
            }
            Leaks::ExhaustingPool | Leaks::All => "memory",
        };
        let mut covered =
            vec![format!("deadlock{partial}, assertions, bounds, division, overflow, ranges, pools, {memory}")];
        let starvation_freedom = "no starvation under weak fairness".to_string();
        let mut undecided = Vec::new();
        for (question, answer) in
            self.properties.iter().cloned().chain(self.starvation_freedom.map(|answer| (starvation_freedom, answer)))
        {
            match answer {
                Answer::Holds => covered.push(format!("`{question}`")),
                Answer::Unfinished | Answer::Open => undecided.push(format!("`{question}`")),
                Answer::Violated | Answer::Spurious => {}
            }
        }
        (covered.join(", "), undecided)
    }
}

impl Concretization {
    /// One line of text, without a line end.
    pub fn text(&self) -> String {
        let program = if self.is_slice { "the whole program" } else { "the program itself" };
        let mut causes: Vec<String> = self.causes.iter().map(|cause| format!("`{cause}`")).collect();
        if self.is_slice {
            causes.push("the environment of the slice".to_string());
        }
        let because = match &causes[..] {
            [one] => format!("{one} over-approximates here"),
            many => format!("{} over-approximate here", many.join(", ")),
        };
        match self.spuriousness {
            Spuriousness::Real => format!("{program} has the same violation"),
            Spuriousness::Spurious => format!("SPURIOUS: no run of {program} has this violation; {because}"),
            Spuriousness::SpuriousRun(_) => format!(
                "SPURIOUS: {program} does not have this run; {because}; whether another run has the violation is not \
                 known: the limit was reached"
            ),
            Spuriousness::Unknown(_) => {
                format!("whether {program} has this violation is not known: the limit was reached")
            }
            Spuriousness::NotChecked => format!("{program} was not checked for this violation"),
        }
    }
}

/// The first line of a check without a verdict.
pub fn unfinished_text(subject: &str, unfinished: Unfinished) -> String {
    let reason = match unfinished {
        Unfinished::Limit(Limit::States) => format!("{subject} exceeds the state limit"),
        Unfinished::Limit(Limit::Memory) => format!("{subject} exceeds the memory limit"),
        Unfinished::Limit(Limit::Time) => format!("{subject} exceeds the time limit"),
        Unfinished::Limit(Limit::Interrupted) => format!("interrupted before all states of {subject} were visited"),
        Unfinished::Limit(Limit::Depth) => format!("some runs of {subject} are longer than the engine follows"),
        Unfinished::Limit(Limit::LocalSteps) => {
            format!(
                "a process of {subject} computes too long between two operations: more than {MAX_FUEL} steps, or more \
                 than {MAX_CHOICES} results of the environment"
            )
        }
        Unfinished::Limit(Limit::Answers) => {
            format!(
                "the pure functions that conditions and messages of {subject} call can answer in more than \
                 {MAX_ANSWER_TABLES} ways: restrict their arguments or results with `abstract range`"
            )
        }
        Unfinished::EngineFailed => format!("the engine failed on {subject}"),
        Unfinished::SpuriousViolations(count) => {
            format!("the search ended after {count} violations of {subject} that the program does not have")
        }
        Unfinished::EngineIncomplete => format!("the engine does not explore all runs of {subject}"),
    };
    format!("NOT VERIFIED: {reason}")
}

/// The options of a search, as phrases.
fn search_text(options: &Options) -> String {
    let mut phrases = vec![match options.reduction {
        Reduction::On => "partial-order reduction",
        Reduction::Communications => "eager local steps only",
        Reduction::Off => "no reduction",
    }];
    match options.symmetry {
        Symmetry::On => phrases.push("symmetry reduction"),
        Symmetry::Off => {}
    }
    match options.compaction {
        Compaction::On => phrases.push("hash compaction"),
        Compaction::Off => {}
    }
    phrases.join(", ")
}

/// The statistics of a search besides its states.
pub(crate) fn statistics(transitions: u64, depth: u32, elapsed: Duration, bytes: u64) -> String {
    let transitions = counted(transitions, "transition");
    format!("{transitions}, depth {depth}, {:.3} s, {:.1} MB", elapsed.as_secs_f64(), bytes as f64 / 1e6)
}

/// A line, or a place in it.
pub fn line_or_place(program: &Program, location: Location) -> String {
    let column = if location.column > 0 { format!(":{}", location.column) } else { String::new() };
    format!("{}:{}{column}", program.files[location.file as usize], location.line)
}

/// The subject of a check.
pub fn subject(model: &ModelProgram) -> String {
    let name = |process: &ProcessId| model.program.processes[process.0 as usize].name.to_string();
    let scope = match &model.scope {
        Scope::All => {
            let count = model.roles.iter().filter(|role| **role == Role::Explored).count();
            counted(count as u64, "process")
        }
        Scope::Process(process) => format!("process `{}` alone", name(process)),
        Scope::Slice(processes) => {
            let names: Vec<String> = processes.iter().map(|process| format!("`{}`", name(process))).collect();
            format!("slice {}", names.join(", "))
        }
    };
    match &model.name {
        Some(model) => format!("model `{model}` ({scope})"),
        None => scope,
    }
}
