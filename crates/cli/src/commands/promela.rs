//! `qj build --emit promela` and `qj verify --engine spin`: models for Spin, and its verdicts in our words.

use super::verify::{choose_one, json_of, open, tell, too_many};
use crate::arguments::{Build, Verify};
use crate::terminal::{Status, Stop, Terminal, deliver, print_verdict, say};
use quaject_esp::{LoweredModels, ModelSelection};
use quaject_esp_check::{
    Answer, Compaction, Deadlocks, Leaks, Limit, Options, Refusal, ReplayOutcome, Report, Symmetry, Verdict,
    replay_external, replay_external_property, restrictions,
};
use quaject_esp_exec::observer::Observer;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::{self, Reduction};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use quaject_esp_run::Trouble;
use quaject_esp_run::spin::{Found, Question, Short, Spin};
use std::sync::Arc;
use std::time::Duration;

/// Writes a program's model, or one of its models.
pub(crate) fn emit(terminal: &Terminal, arguments: &Build, checks: Checks) -> Result<Status, Stop> {
    let modelled = open(terminal, &arguments.file, &ModelSelection { model: arguments.model.clone(), scope: None })?;
    let Some(models) = &modelled.models else { return Ok(Status::Wrong) };
    let [model] = &models[..] else {
        return Err(Stop::at(Trouble::usage("the program has several models").help(choose_one(models))));
    };
    let Some(text) = generate(terminal, &modelled, model, checks, None) else { return Ok(Status::Wrong) };
    deliver(arguments.output.as_deref(), &text.text)?;
    for approximation in &text.approximations {
        let place = location_text(&model.program, approximation.location);
        say(&format!("note: {place}: {}\n", approximation.what));
    }
    Ok(Status::Done)
}

/// The model's text; nothing if Promela cannot say it, which is told then.
pub(crate) fn generate(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    checks: Checks,
    beside: Option<&Observer>,
) -> Option<promela::Model> {
    match promela::generate(model, checks, beside) {
        Ok(text) => Some(text),
        Err(refusals) => {
            let told = |refusal| quaject_esp::inexpressible(modelled, model, refusal);
            let diagnostics: Vec<_> = refusals.iter().map(told).collect();
            terminal.diagnostics(&modelled.sources, &diagnostics);
            None
        }
    }
}

/// How Spin is to search.
pub(crate) fn spin(text: &promela::Model, options: &Options, arguments: &Verify) -> Spin {
    Spin {
        memory_mib: u32::try_from(arguments.max_memory).unwrap_or(u32::MAX),
        time: options.limits.time.unwrap_or(Duration::from_secs(3600)),
        reduction: if arguments.no_reduction { Reduction::Unsound } else { text.reduction },
        interrupt: options.limits.interrupt.as_ref().map(|wish| Arc::clone(&wish.0)),
        ..Spin::default()
    }
}

/// Explores one model with Spin: asks for its faults, then for each of its properties.
pub(crate) fn one(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, Stop> {
    let Some(text) = &generate(terminal, modelled, model, Checks::On, None) else { return Ok(Status::Wrong) };
    let mut spin = spin(text, options, arguments);
    let instances = model.program.instance_count();
    let mut search = spin.search(text, instances, Question::Safety).map_err(Stop::at)?;
    let (mut broken, mut searching) = (None, search.searching);
    let sources = text.properties.iter().map(|property| property.source.clone());
    let mut properties: Vec<(String, Answer)> = sources.map(|source| (source, Answer::Open)).collect();
    if search.found == Found::Nothing {
        for (number, (property, (_, answer))) in text.properties.iter().zip(&mut properties).enumerate() {
            // The limit is one for all searches.
            spin.time = spin.time.saturating_sub(searching);
            let next = spin.search(text, instances, Question::Property(property)).map_err(Stop::at)?;
            searching = next.searching;
            *answer = match next.found {
                Found::Nothing => Answer::Holds,
                Found::NothingSoFar(_) => Answer::Unfinished,
                Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) => Answer::Violated,
            };
            if next.found != Found::Nothing {
                search = next;
                broken = Some(number);
                break;
            }
        }
    }
    let mut doubt = None;
    let mut doubted = |why| {
        doubt = Some(why);
        Verdict::Unfinished(Limit::Engine)
    };
    let verdict = match &search.found {
        Found::Nothing => Verdict::Holds,
        Found::NothingSoFar(why) => {
            say(&format!("spin: {}\n", why.text()));
            Verdict::Unfinished(match why {
                Short::Memory => Limit::Memory,
                Short::Time => Limit::Time,
                Short::Interrupted => Limit::Interrupted,
                Short::Depth => Limit::Depth,
                Short::Exits => Limit::Engine,
                Short::Broken(_) => Limit::Broken,
            })
        }
        Found::Property(trail) => {
            let number = broken.unwrap_or_default();
            match replay_external_property(model, number, &trail.steps, trail.cycle, &options.limits)
                .map_err(refused)?
            {
                ReplayOutcome::Reproduced(found) => Verdict::Violated(found),
                ReplayOutcome::Infeasible => doubted(Doubt::NoSuchRun),
                ReplayOutcome::Undecided => doubted(Doubt::NotTaken),
            }
        }
        Found::Deadlock(trail) | Found::Fault(trail) => {
            match replay_external(model, &trail.steps, &options.limits).map_err(refused)? {
                ReplayOutcome::Reproduced(found) => Verdict::Violated(found),
                ReplayOutcome::Infeasible => doubted(Doubt::NoSuchRun),
                ReplayOutcome::Undecided => doubted(Doubt::NotTaken),
            }
        }
    };
    let report = Report {
        verdict,
        states: search.states,
        transitions: search.transitions,
        depth: search.depth,
        bytes: search.states * search.state_bytes,
        elapsed: search.compiling + search.searching,
        unreached: Vec::new(),
        restrictions: restrictions(model),
        properties,
        progress: None,
        deadlocks: Deadlocks::of_engine_without_partial_deadlocks(model),
        leaks: Leaks::ExhaustingPool,
    };
    let options = Options {
        reduction: match spin.reduction {
            Reduction::Sound => quaject_esp_check::Reduction::On,
            Reduction::Unsound => quaject_esp_check::Reduction::Off,
        },
        symmetry: Symmetry::Off,
        compaction: Compaction::Off,
        ..options.clone()
    };
    match doubt {
        Some(doubt) => unsure(model, text, &options, &report, doubt, arguments.json),
        None => tell(modelled, model, &options, &report, arguments),
    }
}

fn refused(refusal: Refusal) -> Stop {
    match refusal {
        Refusal::TooLarge(error) => Stop::at(Trouble::new(error.to_string())),
        Refusal::TooMany(instances) => Stop::at(too_many(instances)),
        Refusal::Property(bad) => {
            let trouble = Trouble::new(bad.message);
            Stop::at(match bad.help {
                Some(help) => trouble.help(help),
                None => trouble,
            })
        }
        Refusal::Unbounded(_) => Stop::at(Trouble::new("the model leaves open what comes from outside")),
    }
}

/// Why a run of the model says nothing of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    /// The program has no such run.
    NoSuchRun,
    /// Nobody has taken it there.
    NotTaken,
}

/// The model went wrong where the program does not, or need not.
fn unsure(
    model: &ModelProgram,
    text: &promela::Model,
    options: &Options,
    report: &Report,
    doubt: Doubt,
    json: bool,
) -> Result<Status, Stop> {
    let place = |location| location_text(&model.program, location);
    let (label, said) = match doubt {
        Doubt::NoSuchRun => ("spurious", "is spurious: the program has no such run"),
        Doubt::NotTaken => ("unknown", "may be spurious: it was not taken to its end on the program"),
    };
    if json {
        let cause = |found: &promela::Approximation| format!("{}: {}", place(found.location), found.what);
        let mut line = json_of(model, options, report, None);
        line["label"] = label.into();
        line["causes"] = text.approximations.iter().map(cause).collect::<Vec<_>>().into();
        print_verdict(format!("{line}\n").as_bytes())?;
        return Ok(Status::Unfinished);
    }
    let mut told = format!("NOT VERIFIED: what Spin has found {said}\n");
    for approximation in &text.approximations {
        let place = place(approximation.location);
        told.push_str(&format!("the model does more than the program at {place}: {}\n", approximation.what));
    }
    told.push_str(&format!("{} states; the built-in engine is exact here\n", report.states));
    print_verdict(told.as_bytes())?;
    Ok(Status::Unfinished)
}
