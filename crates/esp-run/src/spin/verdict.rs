//! The verdict of Spin on a model. Searches for violations of safety, then of each property, and replays the trail that
//! Spin finds on the program, because Spin's model can have more runs.

use super::{Incomplete, Search, Spin, SpinOutcome, SpinProperty, VerifyError};
use crate::error::HostError;
use quaject_esp_check::{
    Answer, Compaction, Concretization, Deadlocks, Engine, Leaks, Limits, Options, ProductStatistics, Reduction,
    Refusal, ReplayOutcome, Report, Symmetry, Unfinished, Verdict, VerdictRecord, ViolationKind, replay_external,
    replay_external_property, restrictions,
};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::trail::Trail;
use quaject_esp_gen::promela::{self, Exclusions};
use quaject_esp_ir::ir::{Fault, Location, Program};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::{counted, location_text};
use std::time::Instant;

/// The report of Spin on a model.
#[derive(Clone, PartialEq, Debug)]
pub struct SpinReport {
    /// The verdict on the program; unfinished if the trail is not reproduced. The statistics are those of the search
    /// that ended in a violation or at a limit, or else of the one for violations of safety.
    pub report: Report,
    /// The options of the search.
    pub options: Options,
    /// The trail that Spin has found, if it is not known to be a run of the program.
    pub unreproduced: Option<UnreproducedTrail>,
    /// The reason why the search is incomplete, if it is.
    pub incomplete: Option<Incomplete>,
}

/// A trail from which nothing about the program follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreproducedTrail {
    /// Why the replay did not reproduce it.
    pub reason: ReplayFailure,
    /// Where Spin's model can do more than the program, and what.
    pub approximations: Vec<String>,
}

/// Why a replay does not reproduce a trail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayFailure {
    /// The program has no such run: the violation is spurious.
    Infeasible,
    /// A limit was reached before the end of the trail.
    Undecided,
}

impl Spin {
    /// Verifies a model: safety first, then its properties up to the first that is violated or not decided. The time
    /// limit is one for all searches.
    ///
    /// Of the `options`, the limits apply to the replay of a trail; Spin has limits of its own.
    ///
    /// # Errors
    ///
    /// Promela cannot express the model, a tool fails, or the trail cannot be replayed.
    pub fn verify(&self, model: &ModelProgram, options: &Options) -> Result<SpinReport, VerifyError> {
        self.verify_beyond(model, options, &[])
    }

    /// As [`Spin::verify`], for violations other than these, which are known.
    ///
    /// A fault or deadlock that is not reproduced by the program does not end the search, either. The first one is
    /// reported if nothing else is found.
    ///
    /// # Errors
    ///
    /// As [`Spin::verify`].
    pub fn verify_beyond(
        &self,
        model: &ModelProgram,
        options: &Options,
        known: &[ViolationKind],
    ) -> Result<SpinReport, VerifyError> {
        let started = Instant::now();
        let mut exclusions = Exclusions { faults: faults_of(known), deadlocks: Vec::new() };
        let mut unreproduced = None;
        loop {
            let text = promela::generate_without(model, Checks::On, &exclusions).map_err(VerifyError::Inexpressible)?;
            let spin = Spin { time: self.time.saturating_sub(started.elapsed()), ..self.clone() };
            let searches = spin.search_until_violation(&text, model, known, &exclusions.faults)?;
            let outcome = searches.search.outcome.clone();
            let mut report = self.conclude(model, &text, searches, options)?;
            report.forget_known(&exclusions.faults);
            let (is_violation, is_known) = match &report.report.verdict {
                Verdict::Violated(found) => (true, known.contains(&found.violation)),
                Verdict::Holds | Verdict::Unfinished(_) => (false, false),
            };
            let goes_on = (report.unreproduced.is_some() || is_known) && exclude(&mut exclusions, &outcome);
            if !goes_on {
                return Ok(if is_violation { report } else { unreproduced.unwrap_or(report) });
            }
            if report.unreproduced.is_some() {
                unreproduced.get_or_insert(report);
            }
        }
    }

    /// The report that follows from the searches of a model's text.
    pub(super) fn conclude(
        &self,
        model: &ModelProgram,
        text: &promela::Model,
        searches: Searches,
        options: &Options,
    ) -> Result<SpinReport, Refusal> {
        let Searches { search, property, mut properties } = searches;
        let (verdict, failure) = judge(model, &search.outcome, property, &options.limits)?;
        if let (Some(number), true) = (property, failure.is_some()) {
            properties[number].1 = Answer::Unfinished;
        }
        let reduction = match self.reduction_of(text, property.is_some()) {
            promela::Reduction::On => Reduction::On,
            promela::Reduction::Off => Reduction::Off,
        };
        let report = Report {
            verdict,
            states: search.states,
            transitions: search.transitions,
            depth: search.depth,
            bytes: search.states * search.state_bytes,
            elapsed: search.elapsed(),
            product: ProductStatistics::default(),
            unreached: Vec::new(),
            restrictions: restrictions(model),
            properties,
            starvation_freedom: None,
            deadlocks: Deadlocks::found_without_quiescence(model),
            leaks: Leaks::ExhaustingPool,
        };
        let unreproduced = |reason| {
            let approximations = approximations(&model.program, text);
            UnreproducedTrail { reason, approximations }
        };
        Ok(SpinReport {
            report,
            options: Options { reduction, symmetry: Symmetry::Off, compaction: Compaction::Off, ..options.clone() },
            unreproduced: failure.map(unreproduced),
            incomplete: match search.outcome {
                SpinOutcome::Unfinished(incomplete) => Some(incomplete),
                SpinOutcome::NoViolation
                | SpinOutcome::Deadlock(_)
                | SpinOutcome::Fault(_)
                | SpinOutcome::Property(_) => None,
            },
        })
    }

    /// Searches for violations of safety, then of each property, up to the first search that does not exclude them.
    /// Beyond known violations it goes on.
    fn search_until_violation(
        &self,
        text: &promela::Model,
        model: &ModelProgram,
        known: &[ViolationKind],
        excluded: &[(Fault, Location)],
    ) -> Result<Searches, HostError> {
        let instances = model.program.instance_count();
        let search = self.search(text, instances, SpinProperty::Safety)?;
        let sources = text.properties.iter().map(|property| property.source.clone());
        let mut properties: Vec<(String, Answer)> = sources.map(|source| (source, Answer::Open)).collect();
        if search.outcome != SpinOutcome::NoViolation {
            return Ok(Searches { search, property: None, properties });
        }
        let mut spin = self.clone();
        spin.time = spin.time.saturating_sub(search.searching);
        for (number, (property, (_, answer))) in text.properties.iter().zip(&mut properties).enumerate() {
            let names_it = |known: &ViolationKind| match known {
                ViolationKind::Property { property: text, .. } => *text == property.source,
                ViolationKind::Fault(_)
                | ViolationKind::NonTermination { .. }
                | ViolationKind::Starvation { .. }
                | ViolationKind::Leak { .. } => false,
            };
            if known.iter().any(names_it) {
                *answer = Answer::Violated;
                continue;
            }
            let mut search = spin.search(text, instances, SpinProperty::Ltl(property))?;
            if search.outcome == SpinOutcome::Unfinished(Incomplete::Exits) && !excluded.is_empty() {
                search.outcome = SpinOutcome::Unfinished(Incomplete::BeyondSpurious);
            }
            spin.time = spin.time.saturating_sub(search.searching);
            *answer = match search.outcome {
                SpinOutcome::NoViolation => Answer::Holds,
                SpinOutcome::Unfinished(_) => Answer::Unfinished,
                SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) => Answer::Violated,
            };
            if search.outcome != SpinOutcome::NoViolation {
                return Ok(Searches { search, property: Some(number), properties });
            }
        }
        Ok(Searches { search, property: None, properties })
    }
}

/// The results of the searches for violations of safety and of each property.
pub(super) struct Searches {
    /// The search that ended in a violation or at a limit, or else the one for violations of safety.
    pub(super) search: Search,
    /// The number of the property that `search` is for; none for safety.
    pub(super) property: Option<usize>,
    /// The properties with their answers.
    pub(super) properties: Vec<(String, Answer)>,
}

/// The verdict on the program that follows from a search. Replays the trail that Spin has found; returns the reason if
/// that does not reproduce it.
fn judge(
    model: &ModelProgram,
    outcome: &SpinOutcome,
    property: Option<usize>,
    limits: &Limits,
) -> Result<(Verdict, Option<ReplayFailure>), Refusal> {
    let replayed = match outcome {
        SpinOutcome::NoViolation => return Ok((Verdict::Holds, None)),
        SpinOutcome::Unfinished(incomplete) => return Ok((Verdict::Unfinished(incomplete.unfinished()), None)),
        SpinOutcome::Property(trail) => {
            let number = property.expect("a search for violations of safety checks no property");
            replay_external_property(model, number, &trail.steps, trail.cycle, limits)?
        }
        SpinOutcome::Deadlock(trail) | SpinOutcome::Fault(trail) => replay_external(model, &trail.steps, limits)?,
    };
    let not_reproduced = |reason| (Verdict::Unfinished(Unfinished::EngineIncomplete), Some(reason));
    Ok(match replayed {
        ReplayOutcome::Reproduced(counterexample) => (Verdict::Violated(counterexample), None),
        ReplayOutcome::Infeasible => not_reproduced(ReplayFailure::Infeasible),
        ReplayOutcome::Undecided => not_reproduced(ReplayFailure::Undecided),
    })
}

/// The faults among violations, with their locations, but deadlocks.
fn faults_of(violations: &[ViolationKind]) -> Vec<(Fault, Location)> {
    let fault = |violation: &ViolationKind| match violation {
        ViolationKind::Fault(report) if report.fault != Fault::Deadlock => Some((report.fault, report.location)),
        ViolationKind::Fault(_)
        | ViolationKind::NonTermination { .. }
        | ViolationKind::Property { .. }
        | ViolationKind::Starvation { .. }
        | ViolationKind::Leak { .. } => None,
    };
    violations.iter().filter_map(fault).collect()
}

/// Excludes the fault or deadlock that a search ended in from the next one. Returns false if the search ended
/// otherwise, or did not exclude it.
fn exclude(exclusions: &mut Exclusions, outcome: &SpinOutcome) -> bool {
    match outcome {
        SpinOutcome::Fault(Trail { fault: Some(fault), .. }) if !exclusions.faults.contains(fault) => {
            exclusions.faults.push(*fault);
            // The control states of the next model are others.
            exclusions.deadlocks.clear();
            true
        }
        SpinOutcome::Deadlock(trail) if !exclusions.deadlocks.contains(&trail.end) => {
            exclusions.deadlocks.push(trail.end.clone());
            true
        }
        SpinOutcome::Fault(_)
        | SpinOutcome::Deadlock(_)
        | SpinOutcome::NoViolation
        | SpinOutcome::Unfinished(_)
        | SpinOutcome::Property(_) => false,
    }
}

/// Where Spin's model can do more than the program, and what: `main.esp:3:13: pri alt takes any branch`.
pub(super) fn approximations(program: &Program, text: &promela::Model) -> Vec<String> {
    let line = |approximation: &promela::Approximation| {
        format!("{}: {}", location_text(program, approximation.location), approximation.what)
    };
    text.approximations.iter().map(line).collect()
}

/// An approximation as a sentence, without a line end.
pub(super) fn approximation_text(approximation: &str) -> String {
    format!("the model over-approximates the program at {approximation}")
}

impl SpinReport {
    /// Leaves the verdict open if it is a fault that the search should have excluded: the model has it at another
    /// location than the program.
    fn forget_known(&mut self, excluded: &[(Fault, Location)]) {
        let is_known = match &self.report.verdict {
            Verdict::Violated(found) => {
                faults_of(std::slice::from_ref(&found.violation)).iter().any(|fault| excluded.contains(fault))
            }
            Verdict::Holds | Verdict::Unfinished(_) => false,
        };
        if is_known {
            self.report.verdict = Verdict::Unfinished(Incomplete::BeyondSpurious.unfinished());
            self.incomplete = Some(Incomplete::BeyondSpurious);
        }
    }

    /// The verdict and what it covers, ending with a line end.
    pub fn text(&self, model: &ModelProgram) -> String {
        match &self.unreproduced {
            None => self.report.text(model, &self.options),
            Some(trail) => {
                let states = counted(self.report.states, "state");
                format!("{}{states}; the built-in engine is exact here\n", trail.text())
            }
        }
    }

    /// The record of this report. A `concretization` states whether a counterexample is one of the program itself.
    pub fn record(&self, model: &ModelProgram, concretization: Option<&Concretization>) -> VerdictRecord {
        let record = self.report.record(model, &self.options, concretization);
        let record = VerdictRecord { engine: Engine::Spin, ..record };
        match &self.unreproduced {
            None => record,
            Some(trail) => VerdictRecord {
                spuriousness: Some(trail.reason.name()),
                causes: Some(trail.approximations.clone()),
                ..record
            },
        }
    }
}

impl UnreproducedTrail {
    /// The reason and the approximations, each as a line.
    pub fn text(&self) -> String {
        let reason = match self.reason {
            ReplayFailure::Infeasible => "is spurious: the program has no such run",
            ReplayFailure::Undecided => "may be spurious: it was not replayed to its end on the program",
        };
        let mut text = format!("NOT VERIFIED: Spin's counterexample {reason}\n");
        for approximation in &self.approximations {
            text.push_str(&approximation_text(approximation));
            text.push('\n');
        }
        text
    }
}

impl ReplayFailure {
    /// The spuriousness that follows, as a word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ReplayFailure::Infeasible => "spurious",
            ReplayFailure::Undecided => "unknown",
        }
    }
}
