//! `qj verify --fastpath --engine spin`: checks trace refinement with Spin. The visible behaviour of the specification
//! is computed first as an observer automaton; Spin searches the product of observer and implementation for an action
//! that the observer does not accept.

use super::report::print_record;
use super::search::unwrap_or_report;
use super::spin::{spin, unfinished_by};
use crate::arguments::Verify;
use crate::commands::promela::generate;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp::LoweredModels;
use quaject_esp_check::{
    CheckKind, Engine, ObserverOutcome, Options, PathRecord, RefinementInput, VerdictRecord, build_observer,
    restrictions, subject, unfinished_text,
};
use quaject_esp_exec::observer::Observer;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::{Approximation, Model};
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::{counted, location_text};
use quaject_esp_run::spin::{Search, SpinOutcome, SpinProperty};
use quaject_esp_run::{HostCode, HostError};

/// Checks one model's program.
pub(super) fn verify_model(
    terminal: &Terminal,
    modelled: &LoweredModels,
    input: RefinementInput<'_>,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let model = input.specification;
    let outcome = build_observer(input, &options.limits);
    let Some(outcome) = unwrap_or_report(terminal, modelled, model, outcome)? else { return Ok(Status::Failed) };
    let Some(observer) = observer_or_report(model, outcome)? else { return Ok(Status::Unfinished) };
    let implementation =
        ModelProgram { program: input.implementation.clone(), properties: Vec::new(), ..model.clone() };
    let generated = generate(terminal, modelled, &implementation, Checks::On, Some(&observer));
    let Some(text) = &generated else { return Ok(Status::Failed) };
    let search =
        spin(text, options, arguments).search(text, input.implementation.instance_count(), SpinProperty::Refinement)?;
    let result =
        SpinRefinement { model, implementation: input.implementation, text, search: &search, observer: &observer };
    if arguments.json {
        print_record(&result.record())?;
    } else {
        print_verdict(result.text().as_bytes())?;
    }
    Ok(match &search.outcome {
        SpinOutcome::NoViolation if (0..input.implementation.paths.len()).all(|path| result.is_entered(path)) => {
            Status::Done
        }
        // Nothing is known of a path that is never entered.
        SpinOutcome::NoViolation | SpinOutcome::Unfinished(_) => Status::Unfinished,
        SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) if result.is_exact() => {
            Status::Failed
        }
        SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) => Status::Unfinished,
    })
}

/// The observer; none if a limit was reached, which is reported.
fn observer_or_report(model: &ModelProgram, outcome: ObserverOutcome) -> Result<Option<Observer>, CliError> {
    let subject = subject(model);
    let unsupported = |message: String| {
        Err(CliError::from(
            HostError::new(HostCode::Conflict, message)
                .help("the built-in engine supports it: leave out `--engine spin`"),
        ))
    };
    match outcome {
        ObserverOutcome::Automaton(observer) => Ok(Some(observer)),
        ObserverOutcome::Unfinished(limit) => {
            let text = unfinished_text(&format!("the observer of {subject}"), limit.into());
            print_verdict(format!("{text}\n").as_bytes())?;
            Ok(None)
        }
        ObserverOutcome::MayTerminate => {
            unsupported(format!("{subject} can end, fault or fail to terminate, which the check with Spin excludes"))
        }
        ObserverOutcome::SharedChannel(channel) => {
            let name = &model.program.channels[channel.0 as usize].name;
            unsupported(format!(
                "channel `{name}` connects {subject} both internally and with its environment, which the check with \
                 Spin excludes"
            ))
        }
    }
}

/// The result of Spin's search.
struct SpinRefinement<'a> {
    model: &'a ModelProgram,
    implementation: &'a Program,
    text: &'a Model,
    search: &'a Search,
    observer: &'a Observer,
}

impl SpinRefinement<'_> {
    /// Whether Spin's model has no more runs than the program.
    fn is_exact(&self) -> bool {
        self.text.approximations.is_empty()
    }

    fn is_entered(&self, path: usize) -> bool {
        self.search.entered.contains(&(path as u32))
    }

    fn seconds(&self) -> f64 {
        (self.search.compiling + self.search.searching).as_secs_f64()
    }

    /// Where Spin's model has more runs than the program.
    fn approximations(&self) -> Vec<String> {
        let text = |approximation: &Approximation| {
            let place = location_text(&self.model.program, approximation.location);
            format!("the model over-approximates the program at {place}: {}", approximation.what)
        };
        self.text.approximations.iter().map(text).collect()
    }

    fn text(&self) -> String {
        let mut text = self.verdict_text();
        let actions: usize = self.observer.edges.iter().map(Vec::len).sum();
        text += &format!(
            "{}, {} with {}, {:.3} s\n",
            counted(self.search.states, "implementation state"),
            counted(self.observer.edges.len() as u64, "observer state"),
            counted(actions as u64, "visible step"),
            self.seconds(),
        );
        if self.search.outcome != SpinOutcome::NoViolation {
            return text;
        }
        for (index, path) in self.implementation.paths.iter().enumerate() {
            text += &match self.is_entered(index) {
                true => format!("fast path `{}`: entered\n", path.name),
                false => format!(
                    "fast path `{}`: NEVER ENTERED in this environment, so its refinement is not known\n",
                    path.name
                ),
            };
        }
        text += "covered: every visible message and call; quiescence\n";
        text += "not covered: the state at each exit of a path; divergence";
        let restrictions = restrictions(self.model);
        if !restrictions.is_empty() {
            text += &format!("; anything but {}", restrictions.join("; "));
        }
        text.push('\n');
        text
    }

    /// The first line, with the reason of a doubt.
    fn verdict_text(&self) -> String {
        let subject = subject(self.model);
        match &self.search.outcome {
            SpinOutcome::NoViolation => {
                format!("refinement holds: {subject} with fast paths has no trace that the original has not (Spin)\n")
            }
            SpinOutcome::Unfinished(why) => {
                format!("NOT VERIFIED: Spin has not compared all of {subject}: {}\n", why.text())
            }
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) if self.is_exact() => format!(
                "refinement violated: {subject} with fast paths has a trace that the original has not (Spin)\n\
                 help: leave out `--engine spin` to see the run\n"
            ),
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) => {
                let approximations: String = self.approximations().iter().map(|line| format!("{line}\n")).collect();
                format!("NOT VERIFIED: what Spin has found may be spurious\n{approximations}")
            }
        }
    }

    fn record(&self) -> VerdictRecord {
        let (verdict, limit) = match &self.search.outcome {
            SpinOutcome::NoViolation => ("holds", None),
            SpinOutcome::Unfinished(why) => ("unfinished", Some(unfinished_by(why).name().to_string())),
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) if self.is_exact() => {
                ("violated", None)
            }
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) => ("unfinished", None),
        };
        let paths = self.implementation.paths.iter().enumerate();
        VerdictRecord {
            engine: Engine::Spin,
            limit,
            states: self.search.states,
            spec_states: Some(self.observer.edges.len() as u64),
            seconds: self.seconds(),
            restrictions: restrictions(self.model),
            causes: Some(self.approximations()),
            paths: paths
                .map(|(index, path)| PathRecord {
                    name: path.name.to_string(),
                    is_entered: self.is_entered(index),
                    exits: None,
                })
                .collect(),
            ..VerdictRecord::new(self.model, CheckKind::Refinement, verdict)
        }
    }
}
