//! `qj build --emit promela` and `qj verify --engine spin`: models for Spin, and its verdicts in our words.

use super::verify::{no_such, tell};
use crate::arguments::{Build, Verify};
use crate::terminal::{Status, Stop, Terminal, deliver, print_verdict, say};
use quaject_esp::{Modelled, Part, Subject};
use quaject_esp_check::{Counterexample, Limit, Options, Problem, Refusal, Report, Verdict, follow, restrictions};
use quaject_esp_gen::promela::{self, Reduction};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::report::location_text;
use quaject_esp_ir::step::Checks;
use quaject_esp_run::Trouble;
use quaject_esp_run::disk::open_program;
use quaject_esp_run::spin::{Found, Question, Search, Short, Spin};
use std::path::Path;
use std::time::Duration;

/// Writes a program's model, or one of its models.
pub(crate) fn emit(terminal: &Terminal, arguments: &Build, checks: Checks) -> Result<Status, Stop> {
    let modelled = open(terminal, &arguments.file, &Subject { model: arguments.model.clone(), scope: None })?;
    let Some(models) = &modelled.models else { return Ok(Status::Wrong) };
    let [model] = &models[..] else {
        let names: Vec<String> =
            models.iter().filter_map(|model| model.name.as_ref()).map(|name| format!("`{name}`")).collect();
        let trouble = Trouble::usage("the program has several models");
        return Err(Stop::at(trouble.help(format!("choose one with `--model`: {}", names.join(", ")))));
    };
    let Some(text) = generate(terminal, model, checks) else { return Ok(Status::Wrong) };
    deliver(arguments.output.as_deref(), &text.text)?;
    for approximation in &text.approximations {
        let place = location_text(&model.program, approximation.location);
        say(&format!("note: {place}: {}\n", approximation.what));
    }
    Ok(Status::Done)
}

fn open(terminal: &Terminal, file: &Path, subject: &Subject) -> Result<Modelled, Stop> {
    let (source, mut disk) = open_program(file, &[]).map_err(Stop::at)?;
    let modelled = quaject_esp::models(source, &mut disk, subject).map_err(no_such)?;
    terminal.diagnostics(&modelled.sources, &modelled.diagnostics);
    Ok(modelled)
}

/// The model's text; nothing if Promela cannot say it, which is told then.
fn generate(terminal: &Terminal, model: &ModelProgram, checks: Checks) -> Option<promela::Model> {
    match promela::generate(model, checks) {
        Ok(text) => Some(text),
        Err(refusals) => {
            for refusal in refusals {
                let place = location_text(&model.program, refusal.location);
                let place = if place.is_empty() { place } else { format!("{place}: ") };
                terminal.trouble(&Trouble::new(format!("{place}{}", refusal.message)).help(refusal.help));
            }
            None
        }
    }
}

/// Verifies with Spin what `qj verify` verifies by itself.
pub(crate) fn verify(terminal: &Terminal, arguments: &Verify, options: &Options) -> Result<Status, Stop> {
    let scope = match (&arguments.process, &arguments.slice[..]) {
        (Some(process), _) => Some(Part::Process(process.clone())),
        (None, []) => None,
        (None, names) => Some(Part::Slice(names.to_vec())),
    };
    let modelled = open(terminal, &arguments.file, &Subject { model: arguments.model.clone(), scope })?;
    let Some(models) = &modelled.models else { return Ok(Status::Wrong) };
    let spin = Spin {
        memory_mib: u32::try_from(arguments.max_memory).unwrap_or(u32::MAX),
        time: arguments
            .max_time
            .map_or(Duration::from_secs(3600), |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        reduction: if arguments.no_reduction { Reduction::Unsound } else { Reduction::Sound },
        ..Spin::default()
    };
    let mut status = Status::Done;
    for model in models {
        let Some(text) = generate(terminal, model, Checks::On) else { return Ok(Status::Wrong) };
        let found = one(&spin, &modelled, model, &text, options, arguments.json)?;
        if status != Status::Wrong && found != Status::Done {
            status = found;
        }
    }
    Ok(status)
}

/// Asks one model for its faults, then for each of its properties.
fn one(
    spin: &Spin,
    modelled: &Modelled,
    model: &ModelProgram,
    text: &promela::Model,
    options: &Options,
    json: bool,
) -> Result<Status, Stop> {
    let instances = model.program.instance_count();
    let mut search = spin.search(text, instances, Question::Safety).map_err(Stop::at)?;
    let mut broken = None;
    if search.found == Found::Nothing {
        for property in &text.properties {
            let next = spin.search(text, instances, Question::Property(property)).map_err(Stop::at)?;
            if next.found != Found::Nothing {
                search = next;
                broken = Some(property.source.clone());
                break;
            }
        }
    }
    let verdict = match &search.found {
        Found::Nothing => Verdict::Holds,
        Found::NothingSoFar(why) => {
            say(&format!("spin: {}\n", why.text()));
            Verdict::Unfinished(match why {
                Short::Memory => Limit::Memory,
                Short::Time => Limit::Time,
                Short::Depth | Short::Broken(_) => Limit::States,
            })
        }
        Found::Property(trail) => Verdict::Violated(Counterexample {
            problem: Problem::Property { property: broken.unwrap_or_default() },
            steps: quaject_esp_check::narrated(model, &trail.steps).map_err(refused)?,
            cycle: trail.cycle,
        }),
        Found::Deadlock(trail) | Found::Fault(trail) => match follow(model, &trail.steps).map_err(refused)? {
            Some(found) => Verdict::Violated(found),
            None => return spurious(model, text, &search, json),
        },
    };
    let status = match &verdict {
        Verdict::Holds => Status::Done,
        Verdict::Violated(_) => Status::Wrong,
        Verdict::Unfinished(_) => Status::Unfinished,
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
        properties: text.properties.iter().map(|property| property.source.clone()).collect(),
    };
    tell(modelled, model, options, &report, json)?;
    Ok(status)
}

fn refused(refusal: Refusal) -> Stop {
    match refusal {
        Refusal::TooLarge(error) => Stop::at(Trouble::new(error.to_string())),
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

/// The model went wrong where the program does not.
fn spurious(model: &ModelProgram, text: &promela::Model, search: &Search, json: bool) -> Result<Status, Stop> {
    let place = |location| location_text(&model.program, location);
    if json {
        let cause = |found: &promela::Approximation| format!("{}: {}", place(found.location), found.what);
        let line = serde_json::json!({
            "model": model.name.as_deref(),
            "verdict": "unfinished",
            "states": search.states,
            "label": "spurious",
            "causes": text.approximations.iter().map(cause).collect::<Vec<_>>(),
        });
        print_verdict(format!("{line}\n").as_bytes())?;
        return Ok(Status::Unfinished);
    }
    let mut told = String::from("NOT VERIFIED: what Spin has found is spurious: the program has no such run\n");
    for approximation in &text.approximations {
        let place = place(approximation.location);
        told.push_str(&format!("the model does more than the program at {place}: {}\n", approximation.what));
    }
    told.push_str(&format!("{} states; the built-in engine is exact here\n", search.states));
    print_verdict(told.as_bytes())?;
    Ok(Status::Unfinished)
}
