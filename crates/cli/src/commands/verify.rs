//! `qj verify`

use crate::arguments::{Verify, VerifyEngine};
use crate::terminal::{Status, Stop, Terminal, print_verdict, say};
use quaject_esp::{LoweredModels, ModelSelection, PartSelection, UnknownName};
use quaject_esp_check::{
    Answer, Compaction, Concretization, Counterexample, Interrupt, Limits, Liveness, Options, Progress, Reduction,
    Refusal, Report, Symmetry, TraceStep, Verdict, counterexample_file,
};
use quaject_esp_exec::datum::print_message;
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use quaject_esp_run::disk::{open_program, open_recorded};
use quaject_esp_run::files::write_file;
use quaject_esp_run::{Interrupts, Trouble, die_of};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn verify(terminal: &Terminal, arguments: Verify) -> Result<Status, Stop> {
    refuse_idle_options(&arguments)?;
    if arguments.fastpath {
        return super::refine::refine(terminal, &arguments);
    }
    let modelled = open(terminal, &arguments.file, &subject(&arguments))?;
    let Some(models) = &modelled.models else { return Ok(Status::Wrong) };
    if models.len() > 1 && (arguments.trace.is_some() || arguments.chart.is_some()) {
        let trouble = Trouble::usage("`--trace` and `--chart` keep one run, and the program has several models");
        return Err(Stop::at(trouble.help(choose_one(models))));
    }
    let interrupts = Interrupts::listen().map_err(Stop::at)?;
    let options = options(&arguments, &interrupts);
    let mut status = Status::Done;
    for model in models {
        let found = match arguments.engine {
            VerifyEngine::Builtin => one(terminal, &modelled, model, &options, &arguments)?,
            VerifyEngine::Spin => super::promela::one(terminal, &modelled, model, &options, &arguments)?,
        };
        // An error outweighs an open question.
        if status != Status::Wrong && found != Status::Done {
            status = found;
        }
        if let (Status::Unfinished, Some(signal)) = (found, interrupts.signal()) {
            die_of(signal);
        }
    }
    Ok(status)
}

/// How to choose one of several models.
pub(crate) fn choose_one(models: &[ModelProgram]) -> String {
    let names: Vec<String> =
        models.iter().filter_map(|model| model.name.as_ref()).map(|name| format!("`{name}`")).collect();
    format!("choose one with `--model`: {}", names.join(", "))
}

/// Explores one model and says what has come of it.
fn one(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, Stop> {
    let Some(report) = explore(terminal, modelled, model, options)? else { return Ok(Status::Wrong) };
    tell(modelled, model, options, &report, arguments)
}

/// Refuses what Spin cannot do: whoever asks for it expects an answer.
fn refuse_idle_options(arguments: &Verify) -> Result<(), Stop> {
    let options = [
        ("--progress", arguments.progress),
        ("--compact", arguments.compact),
        ("--symmetry", arguments.symmetry),
        ("--max-states", arguments.max_states.is_some()),
        ("--threads", arguments.threads > 1),
    ];
    match options.iter().find(|(_, is_given)| *is_given && arguments.engine == VerifyEngine::Spin) {
        Some((option, _)) => {
            let trouble = Trouble::usage(format!("`{option}` has no meaning for Spin"));
            Err(Stop::at(trouble.help("the built-in engine does it: leave out `--engine spin`")))
        }
        None => Ok(()),
    }
}

/// Reads a program and says what is to be said of it.
pub(crate) fn open(terminal: &Terminal, file: &Path, subject: &ModelSelection) -> Result<LoweredModels, Stop> {
    let (source, mut disk) = open_program(file, &[]).map_err(Stop::at)?;
    let modelled = quaject_esp::models(source, &mut disk, subject).map_err(no_such)?;
    terminal.diagnostics(&modelled.sources, &modelled.diagnostics);
    Ok(modelled)
}

/// How long the whole program is looked at, in seconds, and how much memory that may take.
const CONFIRMING: (u64, u64) = (10, 1_000_000_000);

/// Whether the program itself goes wrong in the same way as a model that does more; nothing for other models.
fn label(
    modelled: &LoweredModels,
    model: &ModelProgram,
    found: &Counterexample,
    options: &Options,
) -> Option<Concretization> {
    let whole = quaject_esp::whole_program_model(modelled, model)?;
    let (seconds, bytes) = CONFIRMING;
    let interrupt = options.limits.interrupt.clone();
    let limits = Limits { states: None, bytes: Some(bytes), time: Some(Duration::from_secs(seconds)), interrupt };
    let label = quaject_esp_check::concretize(&whole, model, found, &limits);
    // What comes from outside can need ranges there.
    Some(label.unwrap_or_else(|_| Concretization::unchecked(model, found)))
}

/// How long `qj check --verify` takes at most, in milliseconds.
const GLANCE_MS: u64 = 100;

/// Explores a program for a short time; whether a run goes wrong, which has been told then.
pub(crate) fn glance(file: &Path) -> Result<bool, Stop> {
    let started = Instant::now();
    let (source, mut disk) = open_program(file, &[]).map_err(Stop::at)?;
    let modelled = quaject_esp::models(source, &mut disk, &ModelSelection::default()).map_err(no_such)?;
    let models = modelled.models.unwrap_or_default();
    let (mut wrong, mut open) = (false, Vec::new());
    for (number, model) in models.iter().enumerate() {
        let left = Duration::from_millis(GLANCE_MS).saturating_sub(started.elapsed());
        let time = left / (models.len() - number) as u32;
        let limits = Limits { bytes: Some(256_000_000), time: Some(time), ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        match quaject_esp_check::check(model, &options, &mut |_| {}) {
            Ok(report) if report.verdict == Verdict::Holds => {}
            Ok(report) if matches!(report.verdict, Verdict::Violated(_)) => {
                print_verdict(report.text(model, &options).as_bytes())?;
                wrong = true;
            }
            Ok(_) => open.push("takes more time"),
            Err(_) => open.push("says what it needs"),
        }
    }
    if let (false, Some(what)) = (wrong, open.first()) {
        say(&format!("note: {}: not verified in {GLANCE_MS} ms; `qj verify` {what}\n", file.display()));
    }
    Ok(wrong)
}

/// Writes the run that goes wrong where it is wanted.
fn keep(
    arguments: &Verify,
    modelled: &LoweredModels,
    model: &ModelProgram,
    found: &Counterexample,
) -> Result<(), Stop> {
    if let Some(path) = &arguments.trace {
        let files: Vec<(String, String)> =
            modelled.sources.files().iter().map(|file| (file.name.clone(), file.text.clone())).collect();
        write_file(path, counterexample_file::write(model, &files, found).as_bytes()).map_err(Stop::at)?;
    }
    if let Some(path) = &arguments.chart {
        write_file(path, quaject_esp_check::chart(model, found).as_bytes()).map_err(Stop::at)?;
    }
    Ok(())
}

/// Takes a run that `qj verify` found again, and tells it.
pub(crate) fn replay(terminal: &Terminal, name: &str, text: &str) -> Result<Status, Stop> {
    let bad = |error: counterexample_file::ParseError| {
        Stop::at(
            Trouble::new(format!("{name}:{}: {}", error.line, error.message))
                .help("counterexamples are made by `qj verify --trace FILE`; make this one again"),
        )
    };
    let file = counterexample_file::CounterexampleFile::parse(text).map_err(bad)?;
    let (source, mut disk) = open_recorded(&file.files).expect("a counterexample without files is refused");
    let scope = file.part.as_ref().map(|part| match part {
        counterexample_file::Part::Process(process) => PartSelection::Process(process.clone()),
        counterexample_file::Part::Slice(processes) => PartSelection::Slice(processes.clone()),
    });
    let subject = ModelSelection { model: file.model.clone(), scope };
    let modelled = quaject_esp::models_with_variables(source, &mut disk, &subject).map_err(no_such)?;
    let Some(models) = &modelled.models else {
        terminal.diagnostics(&modelled.sources, &modelled.diagnostics);
        return Ok(Status::Wrong);
    };
    let Some(model) = models.first() else { return Ok(Status::Wrong) };
    let followed = file.configurations(model).map_err(|error| Stop::at(Trouble::new(error.to_string())))?;
    let (followed, configurations) = followed.map_err(bad)?;
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        let shown = super::stepper::step_through(model, &followed, &configurations);
        shown.map_err(|error| Stop::at(Trouble::new(format!("the terminal cannot be used: {error}"))))?;
    }
    print_verdict(followed.text(model).as_bytes())?;
    if let Some(label) = label(&modelled, model, &followed, &Options::default()) {
        print_verdict(format!("{}\n", label.text()).as_bytes())?;
    }
    Ok(Status::Fault)
}

fn subject(arguments: &Verify) -> ModelSelection {
    let scope = match (&arguments.process, &arguments.slice[..]) {
        (Some(process), _) => Some(PartSelection::Process(process.clone())),
        (None, []) => None,
        (None, names) => Some(PartSelection::Slice(names.to_vec())),
    };
    ModelSelection { model: arguments.model.clone(), scope }
}

pub(crate) fn no_such(error: UnknownName) -> Stop {
    let trouble = Trouble::usage(format!("the program has no {} `{}`", error.what, error.name));
    Stop::at(match &error.known[..] {
        [] => trouble,
        known => trouble.help(format!("there is `{}`", known.join("`, `"))),
    })
}

pub(crate) fn options(arguments: &Verify, interrupts: &Interrupts) -> Options {
    Options {
        reduction: if arguments.no_reduction { Reduction::Communications } else { Reduction::On },
        symmetry: if arguments.symmetry { Symmetry::On } else { Symmetry::Off },
        liveness: if arguments.progress { Liveness::Progress } else { Liveness::Ignored },
        compaction: if arguments.compact { Compaction::On } else { Compaction::Off },
        threads: usize::from(arguments.threads),
        limits: Limits {
            states: arguments.max_states,
            bytes: Some(arguments.max_memory.saturating_mul(1_000_000)),
            time: arguments.max_time,
            interrupt: Some(Interrupt(interrupts.asked())),
        },
    }
}

/// Explores one model; nothing if it cannot be, which has been said then.
fn explore(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
) -> Result<Option<Report>, Stop> {
    let checked = watched(|progress| quaject_esp_check::check(model, options, progress));
    told(terminal, modelled, model, checked)
}

/// Does something that takes time, and says how far it is to whoever watches.
pub(crate) fn watched<T>(work: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let watched = io::stderr().is_terminal();
    let mut shown = false;
    let mut progress = |now: Progress| {
        if watched && now.elapsed > Duration::from_secs(1) {
            shown = true;
            say(&progress_line(&now));
        }
    };
    let done = work(&mut progress);
    if shown {
        say("\r\x1b[K");
    }
    done
}

/// What a search has come to; nothing if the model says too little for it, which is told then.
pub(crate) fn told<T>(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    checked: Result<T, Refusal>,
) -> Result<Option<T>, Stop> {
    match checked {
        Ok(report) => Ok(Some(report)),
        Err(Refusal::TooLarge(error)) => Err(Stop::at(
            Trouble::new(error.to_string())
                .help("make its arrays, messages, pools or replicas smaller in the model, or allow it: `--max-memory`"),
        )),
        Err(Refusal::TooMany(instances)) => Err(Stop::at(too_many(instances))),
        Err(Refusal::Property(bad)) => {
            let program = modelled.program.as_ref().expect("there are models of it");
            terminal.diagnostics(&modelled.sources, &[quaject_esp::invalid_property(program, model, &bad)]);
            Ok(None)
        }
        Err(Refusal::Unbounded(missing)) => {
            let program = modelled.program.as_ref().expect("there are models of it");
            terminal.diagnostics(&modelled.sources, &quaject_esp::missing_ranges(program, model, &missing));
            Ok(None)
        }
    }
}

/// Of more instances than that, runs that go on for ever are not looked for.
pub(crate) fn too_many(instances: u32) -> Trouble {
    let most = quaject_esp_check::MAX_FAIR_INSTANCES;
    Trouble::new(format!("properties and `--progress` are for {most} instances at most, and there are {instances}"))
        .help("a `model` with fewer replicas, or with `slice`, explores a smaller part")
}

fn progress_line(now: &Progress) -> String {
    let rate = now.states as f64 / now.elapsed.as_secs_f64();
    let megabytes = now.bytes as f64 / 1e6;
    format!("\r{} states, {rate:.0}/s, {megabytes:.0} MB, depth {}\x1b[K", now.states, now.depth)
}

/// Says a verdict, and of a run that goes wrong whether it is one of the program itself, and keeps that run.
pub(crate) fn tell(
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    report: &Report,
    arguments: &Verify,
) -> Result<Status, Stop> {
    let label_of = || match &report.verdict {
        Verdict::Violated(found) => label(modelled, model, found, options),
        Verdict::Holds | Verdict::Unfinished(_) => None,
    };
    if arguments.json {
        let mut line = json_of(model, options, report, label_of().as_ref()).to_string();
        line.push('\n');
        print_verdict(line.as_bytes())?;
    } else {
        // The label can take a while.
        print_verdict(report.text(model, options).as_bytes())?;
        if let Some(label) = label_of() {
            print_verdict(format!("{}\n", label.text()).as_bytes())?;
        }
    }
    Ok(match &report.verdict {
        Verdict::Holds => Status::Done,
        Verdict::Violated(found) => {
            keep(arguments, modelled, model, found)?;
            Status::Wrong
        }
        Verdict::Unfinished(_) => Status::Unfinished,
    })
}

/// The steps of a run for programs.
pub(crate) fn json_of_run(program: &Program, steps: &[TraceStep]) -> Vec<serde_json::Value> {
    let step = |traced: &TraceStep| {
        let message = traced.message.as_ref().map(|(channel, message)| {
            let channel = &program.channels[channel.0 as usize];
            let text = print_message(program, &channel.payload, message);
            serde_json::json!({ "channel": channel.name.as_str(), "values": text })
        });
        let at: Vec<String> = traced.locations.iter().map(|at| location_text(program, *at)).collect();
        serde_json::json!({ "step": traced.step.to_string(), "message": message, "at": at })
    };
    steps.iter().map(step).collect()
}

/// The verdict for programs.
pub(crate) fn json_of(
    model: &ModelProgram,
    options: &Options,
    report: &Report,
    label: Option<&Concretization>,
) -> serde_json::Value {
    let program = &model.program;
    let (verdict, counterexample) = match &report.verdict {
        Verdict::Holds => ("holds", None),
        Verdict::Violated(found) => ("violated", Some(found)),
        Verdict::Unfinished(_) => ("unfinished", None),
    };
    let properties = report.properties.iter();
    let properties: Vec<serde_json::Value> = properties
        .map(|(property, answer)| serde_json::json!({ "property": property, "verdict": answer.name() }))
        .collect();
    let limit = match &report.verdict {
        Verdict::Unfinished(limit) => Some(limit.name()),
        Verdict::Holds | Verdict::Violated(_) => None,
    };
    serde_json::json!({
        "model": model.name.as_deref(),
        "verdict": verdict,
        "limit": limit,
        "properties": properties,
        "progress": report.progress.map_or("not asked", Answer::name),
        "states": report.states,
        "steps": report.transitions,
        "depth": report.depth,
        "seconds": report.elapsed.as_secs_f64(),
        "bytes": report.bytes,
        "omission": report.omission(options),
        "restrictions": report.restrictions,
        "unreached": report.unreached.iter().map(|at| quaject_esp_check::line_or_place(program, *at)).collect::<Vec<_>>(),
        "problem": counterexample.map(|found| found.problem.name()),
        "explanation": counterexample.map(|found| found.problem.text(program)),
        "cycle": counterexample.and_then(|found| found.cycle),
        "label": label.map(|label| label.spuriousness.name()),
        "causes": label.map(|label| &label.causes),
        "run": counterexample.map(|found| json_of_run(program, &found.steps)),
    })
}
