//! `qj verify --engine spin`: asks Spin for violations of safety and of each property, and replays its runs on the
//! program, because Spin's model can have more runs.

use super::report::{print_record, report_verdict};
use super::search::too_many_instances;
use crate::arguments::Verify;
use crate::commands::promela::generate;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp::LoweredModels;
use quaject_esp_check::{
    Answer, Compaction, Counterexample, Deadlocks, Engine, Leaks, Limit, Options, Refusal, ReplayOutcome, Report,
    Symmetry, Unfinished, Verdict, replay_external, replay_external_property, restrictions,
};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::{self, Reduction};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::{counted, location_text};
use quaject_esp_run::spin::{Incomplete, Search, Spin, SpinOutcome, SpinProperty};
use quaject_esp_run::{HostCode, HostError};
use std::sync::Arc;
use std::time::Duration;

/// The options of Spin.
pub(super) fn spin(text: &promela::Model, options: &Options, arguments: &Verify) -> Spin {
    Spin {
        memory_mib: u32::try_from(arguments.max_memory).unwrap_or(u32::MAX),
        time: options.limits.time().unwrap_or(Duration::from_secs(3600)),
        reduction: if arguments.no_reduction { Reduction::Off } else { text.reduction },
        interrupt: options.limits.interrupt.as_ref().map(|interrupt| Arc::clone(&interrupt.0)),
        ..Spin::default()
    }
}

/// Verifies one model.
pub(super) fn verify_model(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let Some(text) = &generate(terminal, modelled, model, Checks::On, None) else { return Ok(Status::Failed) };
    let spin = spin(text, options, arguments);
    let reduction = match spin.reduction {
        Reduction::On => quaject_esp_check::Reduction::On,
        Reduction::Off => quaject_esp_check::Reduction::Off,
    };
    let Answers { search, properties, violated } = ask(spin, text, model)?;
    let (verdict, doubt) = match judge(terminal, model, &search.outcome, violated, options)? {
        Judgement::Verdict(verdict) => (verdict, None),
        Judgement::Doubtful(doubt) => (Verdict::Unfinished(Unfinished::EngineIncomplete), Some(doubt)),
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
        starvation_freedom: None,
        deadlocks: Deadlocks::found_without_quiescence(model),
        leaks: Leaks::ExhaustingPool,
    };
    let options = Options { reduction, symmetry: Symmetry::Off, compaction: Compaction::Off, ..options.clone() };
    match doubt {
        Some(doubt) => report_doubt(model, text, &options, &report, doubt, arguments),
        None => report_verdict(modelled, model, &options, &report, arguments, Engine::Spin),
    }
}

/// The search that has found a violation or reached a limit, or else the search for violations of safety; the answers
/// so far; and the property that is violated.
struct Answers {
    search: Search,
    properties: Vec<(String, Answer)>,
    violated: Option<usize>,
}

/// Asks for violations of safety, then of each property up to the first that does not hold. The time limit is one for
/// all searches.
fn ask(mut spin: Spin, text: &promela::Model, model: &ModelProgram) -> Result<Answers, CliError> {
    let instances = model.program.instance_count();
    let mut search = spin.search(text, instances, SpinProperty::Safety)?;
    let mut searching = search.searching;
    let sources = text.properties.iter().map(|property| property.source.clone());
    let mut properties: Vec<(String, Answer)> = sources.map(|source| (source, Answer::Open)).collect();
    if search.outcome != SpinOutcome::NoViolation {
        return Ok(Answers { search, properties, violated: None });
    }
    for (number, (property, (_, answer))) in text.properties.iter().zip(&mut properties).enumerate() {
        spin.time = spin.time.saturating_sub(searching);
        let next = spin.search(text, instances, SpinProperty::Ltl(property))?;
        searching = next.searching;
        *answer = match next.outcome {
            SpinOutcome::NoViolation => Answer::Holds,
            SpinOutcome::Unfinished(_) => Answer::Unfinished,
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) | SpinOutcome::Property(_) => Answer::Violated,
        };
        if next.outcome != SpinOutcome::NoViolation {
            search = next;
            return Ok(Answers { search, properties, violated: Some(number) });
        }
    }
    Ok(Answers { search, properties, violated: None })
}

/// The conclusion about the program from a search of Spin.
enum Judgement {
    Verdict(Verdict),
    Doubtful(Doubt),
}

/// Why nothing about the program follows from a run of Spin's model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    /// The program has no such run.
    Infeasible,
    /// The run was not replayed to its end.
    NotReplayed,
}

/// Replays the run that Spin has found, on the program.
fn judge(
    terminal: &Terminal,
    model: &ModelProgram,
    outcome: &SpinOutcome,
    violated: Option<usize>,
    options: &Options,
) -> Result<Judgement, CliError> {
    let replayed = match outcome {
        SpinOutcome::NoViolation => return Ok(Judgement::Verdict(Verdict::Holds)),
        SpinOutcome::Unfinished(why) => {
            terminal.print_status(format!("spin: {}", why.text()));
            return Ok(Judgement::Verdict(Verdict::Unfinished(unfinished_by(why))));
        }
        SpinOutcome::Property(trail) => {
            let number = violated.unwrap_or_default();
            replay_external_property(model, number, &trail.steps, trail.cycle, &options.limits)
        }
        SpinOutcome::Deadlock(trail) | SpinOutcome::Fault(trail) => {
            replay_external(model, &trail.steps, &options.limits)
        }
    };
    let replayed: ReplayOutcome<Counterexample> = replayed.map_err(refusal_error)?;
    Ok(match replayed {
        ReplayOutcome::Reproduced(found) => Judgement::Verdict(Verdict::Violated(found)),
        ReplayOutcome::Infeasible => Judgement::Doubtful(Doubt::Infeasible),
        ReplayOutcome::Undecided => Judgement::Doubtful(Doubt::NotReplayed),
    })
}

pub(super) fn unfinished_by(why: &Incomplete) -> Unfinished {
    match why {
        Incomplete::Memory => Unfinished::Limit(Limit::Memory),
        Incomplete::Time => Unfinished::Limit(Limit::Time),
        Incomplete::Interrupted => Unfinished::Limit(Limit::Interrupted),
        Incomplete::Depth => Unfinished::Limit(Limit::Depth),
        Incomplete::Exits => Unfinished::EngineIncomplete,
        Incomplete::Broken(_) => Unfinished::EngineFailed,
    }
}

fn refusal_error(refusal: Refusal) -> CliError {
    match refusal {
        Refusal::TooLarge(error) => CliError::from(HostError::new(HostCode::Size, error.to_string())),
        Refusal::TooMany(instances) => CliError::from(too_many_instances(instances)),
        Refusal::Property(bad) => {
            let error = HostError::new(HostCode::Content, bad.message);
            CliError::from(match bad.help {
                Some(help) => error.help(help),
                None => error,
            })
        }
        Refusal::Unbounded(_) => {
            CliError::from(HostError::new(HostCode::Content, "the model lacks ranges of what its environment sends"))
        }
    }
}

/// Reports a run of Spin's model that the program does not have, or need not have.
fn report_doubt(
    model: &ModelProgram,
    text: &promela::Model,
    options: &Options,
    report: &Report,
    doubt: Doubt,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let place = |location| location_text(&model.program, location);
    let (spuriousness, explanation) = match doubt {
        Doubt::Infeasible => ("spurious", "is spurious: the program has no such run"),
        Doubt::NotReplayed => ("unknown", "may be spurious: it was not replayed to its end on the program"),
    };
    if arguments.json {
        let cause = |found: &promela::Approximation| format!("{}: {}", place(found.location), found.what);
        let mut record = report.record(model, options, None);
        record.engine = Engine::Spin;
        record.spuriousness = Some(spuriousness);
        record.causes = Some(text.approximations.iter().map(cause).collect());
        print_record(&record)?;
        return Ok(Status::Unfinished);
    }
    let mut lines = format!("NOT VERIFIED: what Spin has found {explanation}\n");
    for approximation in &text.approximations {
        let place = place(approximation.location);
        lines.push_str(&format!("the model over-approximates the program at {place}: {}\n", approximation.what));
    }
    lines.push_str(&format!("{}; the built-in engine is exact here\n", counted(report.states, "state")));
    print_verdict(lines.as_bytes())?;
    Ok(Status::Unfinished)
}
