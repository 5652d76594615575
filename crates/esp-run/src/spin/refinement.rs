//! Trace refinement with Spin. The visible behaviour of the specification is computed first, as an observer automaton;
//! Spin searches the product of observer and implementation for an action that the observer does not accept.

use super::verdict::{approximation_text, approximations};
use super::{Incomplete, Search, Spin, SpinOutcome, SpinProperty, VerifyError};
use crate::error::{HostCode, HostError};
use quaject_esp_check::{
    CheckKind, Engine, Limits, ObserverOutcome, PathRecord, RefinementInput, VerdictRecord, build_observer,
    restrictions, subject,
};
use quaject_esp_exec::observer::Observer;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela;
use quaject_esp_ir::ir::FastPath;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::counted;
use std::time::Duration;

/// The report of Spin on trace refinement.
#[derive(Clone, PartialEq, Debug)]
pub struct SpinRefinement {
    /// The verdict.
    pub verdict: SpinRefinementVerdict,
    /// States of the product of observer and implementation.
    pub states: u64,
    /// States of the observer.
    pub observer_states: u64,
    /// Visible steps of the observer.
    pub observer_steps: u64,
    /// Time used.
    pub elapsed: Duration,
    /// The coverage of each path.
    pub paths: Vec<PathRecord>,
    /// Where Spin's model can do more than the program, and what.
    pub approximations: Vec<String>,
    /// The restrictions of the environment, to which the verdict is limited.
    pub restrictions: Vec<String>,
}

/// The verdict of Spin on trace refinement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpinRefinementVerdict {
    /// Every trace of the implementation is one of the specification.
    Holds,
    /// A trace of the implementation is not.
    Violated,
    /// A trace of Spin's model is not, and that model over-approximates the implementation.
    PossiblySpurious,
    /// The search ended before a violation was found.
    Unfinished(Incomplete),
}

impl Spin {
    /// Checks that every trace of the implementation is one of the specification. The `limits` apply to the
    /// construction of the observer; Spin has limits of its own.
    ///
    /// # Errors
    ///
    /// The observer cannot be built or exceeds a limit, Promela cannot express the implementation, the check does not
    /// support the specification, or a tool fails.
    pub fn verify_refinement(
        &self,
        input: RefinementInput<'_>,
        limits: &Limits,
    ) -> Result<SpinRefinement, VerifyError> {
        let observer = specification_observer(input, limits)?;
        let model = ModelProgram {
            program: input.implementation.clone(),
            properties: Vec::new(),
            ..input.specification.clone()
        };
        let text = promela::generate(&model, Checks::On, Some(&observer)).map_err(VerifyError::Inexpressible)?;
        let search = self.search(&text, model.program.instance_count(), SpinProperty::Refinement)?;
        let approximations = approximations(&input.specification.program, &text);
        let paths = input.implementation.paths.iter().enumerate();
        Ok(SpinRefinement {
            verdict: SpinRefinementVerdict::new(&search.outcome, &approximations),
            states: search.states,
            observer_states: observer.edges.len() as u64,
            observer_steps: observer.edges.iter().map(|edges| edges.len() as u64).sum(),
            elapsed: search.elapsed(),
            paths: paths.map(|(number, path)| path_record(path, number as u32, &search)).collect(),
            approximations,
            restrictions: restrictions(input.specification),
        })
    }
}

/// The observer of the specification.
fn specification_observer(input: RefinementInput<'_>, limits: &Limits) -> Result<Observer, VerifyError> {
    let model = input.specification;
    let subject = subject(model);
    let message = match build_observer(input, limits)? {
        ObserverOutcome::Automaton(observer) => return Ok(observer),
        ObserverOutcome::Unfinished(limit) => {
            return Err(VerifyError::ObserverUnfinished { observer: format!("the observer of {subject}"), limit });
        }
        ObserverOutcome::MayTerminate => {
            format!("{subject} can end, fault or fail to terminate, which the check with Spin excludes")
        }
        ObserverOutcome::OpenFunction(function) => {
            let name = &model.program.externs[function.0 as usize].name;
            format!(
                "a condition or a message of {subject} depends on what `{name}` answers, which the check with Spin \
                 excludes"
            )
        }
        ObserverOutcome::SharedChannel(channel) => {
            let name = &model.program.channels[channel.0 as usize].name;
            format!(
                "channel `{name}` connects {subject} both internally and with its environment, which the check with \
                 Spin excludes"
            )
        }
    };
    let error = HostError::new(HostCode::Conflict, message);
    Err(error.help("the built-in engine supports it: leave out `--engine spin`").into())
}

fn path_record(path: &FastPath, number: u32, search: &Search) -> PathRecord {
    PathRecord { name: path.name.to_string(), is_entered: search.entered.contains(&number), exits: None }
}

impl SpinRefinementVerdict {
    /// The verdict that follows from a search of a model with these approximations.
    pub(super) fn new(outcome: &SpinOutcome, approximations: &[String]) -> SpinRefinementVerdict {
        match outcome {
            SpinOutcome::NoViolation => SpinRefinementVerdict::Holds,
            SpinOutcome::Unfinished(incomplete) => SpinRefinementVerdict::Unfinished(incomplete.clone()),
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_)
                if approximations.is_empty() =>
            {
                SpinRefinementVerdict::Violated
            }
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) => {
                SpinRefinementVerdict::PossiblySpurious
            }
        }
    }

    /// Its word in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            SpinRefinementVerdict::Holds => "holds",
            SpinRefinementVerdict::Violated => "violated",
            SpinRefinementVerdict::PossiblySpurious | SpinRefinementVerdict::Unfinished(_) => "unfinished",
        }
    }
}

impl SpinRefinement {
    /// The verdict, statistics, and what the verdict covers, ending with a line end.
    pub fn text(&self, model: &ModelProgram) -> String {
        let mut text = self.verdict_text(model);
        text += &format!(
            "{}, {} with {}, {:.3} s\n",
            counted(self.states, "implementation state"),
            counted(self.observer_states, "observer state"),
            counted(self.observer_steps, "visible step"),
            self.elapsed.as_secs_f64(),
        );
        if self.verdict != SpinRefinementVerdict::Holds {
            return text;
        }
        for PathRecord { name, is_entered, .. } in &self.paths {
            text += &match is_entered {
                true => format!("fast path `{name}`: entered\n"),
                false => {
                    format!("fast path `{name}`: NEVER ENTERED in this environment, so its refinement is not known\n")
                }
            };
        }
        text += "covered: every visible message and call; quiescence\n";
        text += "not covered: the state at each exit of a path; divergence\n";
        if !self.restrictions.is_empty() {
            text += &format!("assumed: {}\n", self.restrictions.join("; "));
        }
        text
    }

    /// The first line, and the lines that explain it.
    fn verdict_text(&self, model: &ModelProgram) -> String {
        let subject = subject(model);
        match &self.verdict {
            SpinRefinementVerdict::Holds => {
                format!("refinement holds: {subject} with fast paths has no trace that the original has not (Spin)\n")
            }
            SpinRefinementVerdict::Violated => format!(
                "refinement violated: {subject} with fast paths has a trace that the original has not (Spin)\n\
                 help: leave out `--engine spin` to see the run\n"
            ),
            SpinRefinementVerdict::PossiblySpurious => {
                let approximations: String =
                    self.approximation_texts().iter().map(|line| format!("{line}\n")).collect();
                format!("NOT VERIFIED: Spin's counterexample may be spurious\n{approximations}")
            }
            SpinRefinementVerdict::Unfinished(incomplete) => {
                format!("NOT VERIFIED: Spin has not compared all of {subject}: {}\n", incomplete.text())
            }
        }
    }

    fn approximation_texts(&self) -> Vec<String> {
        self.approximations.iter().map(|approximation| approximation_text(approximation)).collect()
    }

    /// The record of this report.
    pub fn record(&self, model: &ModelProgram) -> VerdictRecord {
        VerdictRecord {
            engine: Engine::Spin,
            limit: match &self.verdict {
                SpinRefinementVerdict::Unfinished(incomplete) => Some(incomplete.unfinished().name().to_string()),
                SpinRefinementVerdict::Holds
                | SpinRefinementVerdict::Violated
                | SpinRefinementVerdict::PossiblySpurious => None,
            },
            states: self.states,
            spec_states: Some(self.observer_states),
            seconds: self.elapsed.as_secs_f64(),
            restrictions: self.restrictions.clone(),
            causes: Some(self.approximation_texts()),
            paths: self.paths.clone(),
            ..VerdictRecord::new(model, CheckKind::Refinement, self.verdict.name())
        }
    }

    /// Whether a run enters each path; nothing is known of the others.
    pub fn enters_every_path(&self) -> bool {
        self.paths.iter().all(|path| path.is_entered)
    }
}
