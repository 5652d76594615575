//! `qj run`, and what it shares with `qj replay`: how a run's end is told.

use super::{compile, refused, reject_aliased_files};
use crate::arguments::{self, Coding, DebugTool, ModeChoice, Run, RunOptions};
use crate::terminal::{CliError, Status, Terminal, say};
use clap::ValueEnum;
use quaject_esp::{
    CodeGrowth, Compiled, Emit, Extraction, Limits, ManualPaths, Mode, Optimiser, Options, Outputs, Refusal,
};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_run::disk::open_program;
use quaject_esp_run::files::NewFile;
use quaject_esp_run::{DebugInfo, Engine, Header, HostError, RunOutcome, RunReport, Settings, die_of, render_fault};
use quaject_esp_syntax::span::SourceMap;
use std::path::PathBuf;

pub(crate) fn run(terminal: &Terminal, arguments: Run) -> Result<Status, CliError> {
    if arguments.adaptive {
        return adaptive(terminal, &arguments);
    }
    let settings = run_settings(&arguments)?;
    let (mode, why) = mode(&arguments);
    if let (Some(_), Engine::C) = (&arguments.record, settings.engine) {
        return Err(CliError::from(
            HostError::usage("`--record` needs the interpreter")
                .help("leave out `--engine c`: every engine does the same"),
        ));
    }
    if arguments.record.is_some() && mode != ModeChoice::Process {
        return Err(CliError::from(
            HostError::usage("`--record` needs `--mode process`: a recording counts what processes ask the world for")
                .help("leave out `--mode`: what is recorded can be replayed as often as you like"),
        ));
    }
    reject_aliased_files(&arguments.file, arguments.record.as_deref())?;
    let manual = manual(&arguments.options.externs);
    let optimiser = match (settings.engine, mode) {
        // The reference; and what is recorded is replayed by it.
        (Engine::Interpreter, ModeChoice::Process) => Optimiser::Off,
        _ if arguments.record.is_some() => Optimiser::Off,
        (Engine::Interpreter | Engine::C | Engine::Jit | Engine::Best, _) => Optimiser::On,
    };
    let compilation = options(Emit::Ir, mode, &arguments.coding, arguments.options.checked)?;
    let compilation = Options { manual, optimiser, ..compilation };
    let (sources, outputs) = compile(terminal, &arguments.file, &arguments.coding.fast_paths, &compilation)?;
    tell_manual(mode, &outputs);
    let program = &outputs.ir;
    if arguments.report {
        say(&report(mode, why, &outputs, settings.engine));
    }
    let report = match &arguments.record {
        None => quaject_esp_run::run(program, &settings)?,
        Some(path) => {
            let mut file = NewFile::create(path)?;
            let header = Header {
                files: sources.files().iter().map(|file| (file.name.clone(), file.text.clone())).collect(),
                seed: settings.seed,
                checks: settings.checks,
            };
            let report = quaject_esp_run::record(program, &settings, &header, &mut file)?;
            file.finish()?;
            report
        }
    };
    tell_notes(&report);
    if arguments.report {
        let made = outputs.extractions.iter().filter(|extraction| extraction.result.is_ok());
        made.zip(&report.paths).for_each(|(extraction, runs)| say(&format!("{}\n", extraction.run_summary(runs))));
    }
    Ok(tell(terminal, program, &sources, report.outcome))
}

/// How the processes are run, and why if nobody has asked for that: as they are written where it is about them.
fn mode(arguments: &Run) -> (ModeChoice, Option<&'static str>) {
    if let Some(mode) = arguments.coding.mode {
        return (mode, None);
    }
    let asked_for = [
        (arguments.record.is_some(), ModeChoice::Process, "as `--record` is of the processes"),
        (arguments.options.seed.is_some(), ModeChoice::Process, "as `--seed` is of the processes"),
        (!arguments.coding.fast_paths.is_empty(), ModeChoice::Fastpath, FAST_PATHS),
        (
            arguments.engine == Some(arguments::Engine::Interp),
            ModeChoice::Process,
            "as `--engine interp` is the reference",
        ),
    ];
    match asked_for.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, mode, why)) => (mode, Some(why)),
        None => (ModeChoice::Auto, Some(UNASKED)),
    }
}

/// Why `auto` is the mode.
pub(super) const UNASKED: &str = "as no mode was asked for";

/// Why `fastpath` is the mode.
pub(super) const FAST_PATHS: &str = "as `--fast-paths` asks for it";

/// What was chosen and why, and what became of the processes; `why` is told where the mode was not asked for.
pub(super) fn chosen(mode: ModeChoice, why: Option<&str>, outputs: &Outputs) -> String {
    let attempts = outputs.fusion_attempts.iter().map(|attempt| attempt.text(&outputs.ir));
    let unrolled = outputs.unroll_attempts.iter().map(|attempt| attempt.text(&outputs.ir));
    let mode = why.map(|why| format!("mode: {}, {why}", name(mode)));
    mode.into_iter().chain(attempts).chain(unrolled).map(|line| line + "\n").collect()
}

/// What became of fast paths.
pub(super) fn paths(outputs: &Outputs) -> String {
    outputs.extractions.iter().map(|extraction| extraction.text(&outputs.ir) + "\n").collect()
}

/// As it is asked for.
fn name(mode: ModeChoice) -> String {
    mode.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

/// What is told before a run: nothing of what it counts.
fn report(mode: ModeChoice, why: Option<&str>, outputs: &Outputs, engine: Engine) -> String {
    let is_counted = |extraction: &&Extraction| extraction.result.is_ok() && engine != Engine::C;
    let paths = outputs.extractions.iter().filter(|extraction| !is_counted(extraction));
    let paths: String = paths.map(|extraction| extraction.text(&outputs.ir) + "\n").collect();
    let text = chosen(mode, why, outputs) + &paths;
    match text.is_empty() && outputs.extractions.is_empty() {
        true => format!("mode: {}, as it was asked for\n", name(mode)),
        false => text,
    }
}

/// A run that finds its fast paths itself.
fn adaptive(terminal: &Terminal, arguments: &Run) -> Result<Status, CliError> {
    only_adaptive(arguments)?;
    let settings = run_settings(arguments)?;
    let (source, mut disk) = open_program(&arguments.file, &[])?;
    let options = options(Emit::Ir, ModeChoice::Process, &arguments.coding, arguments.options.checked)?;
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source.clone(), &mut disk, &options);
    terminal.diagnostics(&sources, &diagnostics);
    let program = outputs.map_err(|reason| refused(&arguments.file, reason))?.ir;
    let mut report = |line: &str| {
        if arguments.report {
            say(&format!("{line}\n"));
        }
    };
    let report = quaject_esp_run::adapt(&program, &settings, &source, &mut disk, &mut report)?;
    tell_notes(&report);
    Ok(tell(terminal, &program, &sources, report.outcome))
}

/// Refuses what `--adaptive` does not go with.
fn only_adaptive(arguments: &Run) -> Result<(), HostError> {
    let (coding, options) = (&arguments.coding, &arguments.options);
    let refusals = [
        (
            arguments.engine == Some(arguments::Engine::C),
            "`--adaptive` does not go with `--engine c`: compiled C does not change",
            "leave out `--engine`, or find paths with `qj profile` and `qj fastpath suggest`",
        ),
        (
            coding.mode.is_some_and(|mode| mode != ModeChoice::Process),
            "`--adaptive` needs `--mode process`: it finds the fast paths itself",
            "leave out `--mode`",
        ),
        (
            !coding.fast_paths.is_empty(),
            "`--adaptive` finds the fast paths itself",
            "leave out `--fast-paths`, or `--adaptive` and say `--mode fastpath`",
        ),
        (
            arguments.record.is_some(),
            "`--adaptive` does not go with `--record`: a recording counts what processes ask the world for",
            "leave out one of them",
        ),
        (
            options.seed.is_some(),
            "`--adaptive` does not go with `--seed`: paths are of the order that programs have by themselves",
            "leave out one of them",
        ),
    ];
    match refusals.iter().find(|(is_given, ..)| *is_given) {
        Some((_, cause, help)) => Err(HostError::usage(*cause).help(*help)),
        None => Ok(()),
    }
}

/// Says what people should know beside how a run report.
pub(super) fn tell_notes(report: &RunReport) {
    for note in &report.notes {
        say(&format!("note: {note}\n"));
    }
}

/// What becomes of fast paths that are C functions, with these files.
pub(super) fn manual(externs: &[PathBuf]) -> ManualPaths {
    if externs.is_empty() { ManualPaths::Omit } else { ManualPaths::Call }
}

/// Says what would make fast paths in C run, which have been told to be left out.
pub(super) fn tell_manual(mode: ModeChoice, outputs: &Outputs) {
    let asked_for = outputs.extractions.iter().filter(|_| mode == ModeChoice::Fastpath);
    for extraction in asked_for {
        if let Err(Refusal::ManualPath { function }) = &extraction.result {
            say(&format!("help: give the file that defines `{function}`: `--extern FILE.c`\n"));
        }
    }
}

/// What to compile a program to, as it was asked for.
pub(crate) fn options(emit: Emit, mode: ModeChoice, coding: &Coding, checked: bool) -> Result<Options, CliError> {
    let mode = match mode {
        ModeChoice::Process => Mode::Process,
        ModeChoice::Direct => Mode::Direct,
        ModeChoice::Fastpath => Mode::FastPath,
        ModeChoice::Automata => Mode::Automata,
        ModeChoice::Auto => Mode::Auto,
    };
    let mut limits = Limits::default();
    match (coding.growth, mode) {
        (None, Mode::Auto) => limits.growth = CodeGrowth::Conservative,
        (None, Mode::Process | Mode::Direct | Mode::FastPath | Mode::Automata) => {}
        (Some(times), Mode::Automata | Mode::Auto) => limits.growth = CodeGrowth::Factor(times),
        (Some(_), Mode::Process | Mode::Direct | Mode::FastPath) => {
            let error = HostError::usage("`--growth` has no meaning here");
            return Err(CliError::from(error.help("it is for `--mode automata` and `--mode auto`")));
        }
    }
    Ok(Options { mode, checked, limits, ..Options::new(emit) })
}

pub(crate) fn checks(checked: bool) -> Checks {
    if checked { Checks::On } else { Checks::Off }
}

/// What is decided about a run.
fn run_settings(arguments: &Run) -> Result<Settings, CliError> {
    let settings = settings(&arguments.options, arguments.engine);
    let debug_info = match (arguments.debug_info, settings.engine) {
        (None, _) => return Ok(settings),
        (Some(_), Engine::Interpreter | Engine::C) => {
            let error = HostError::usage("`--debug-info` has no meaning here");
            let help = "it is for machine code in memory: leave out `--engine`; generated C names lines by itself";
            return Err(CliError::from(error.help(help)));
        }
        (Some(DebugTool::Gdb), Engine::Jit | Engine::Best) => DebugInfo::Gdb,
        (Some(DebugTool::Perf), Engine::Jit | Engine::Best) => DebugInfo::Perf,
    };
    Ok(Settings { engine: Engine::Jit, debug_info, ..settings })
}

/// `engine`: none asks for the best there is.
pub(super) fn settings(options: &RunOptions, engine: Option<arguments::Engine>) -> Settings {
    Settings {
        engine: match engine {
            None => Engine::Best,
            Some(arguments::Engine::Interp) => Engine::Interpreter,
            Some(arguments::Engine::C) => Engine::C,
            Some(arguments::Engine::Jit) => Engine::Jit,
        },
        bindings: options.bind.clone(),
        faults: options.fault.clone(),
        externs: options.externs.clone(),
        seed: options.seed,
        checks: checks(options.checked),
        time: options.clock.time(),
        memory: options.memory,
        debug_info: DebugInfo::None,
    }
}

/// Says how a run report, if that needs words, and what the status is.
pub(crate) fn tell(terminal: &Terminal, program: &Program, sources: &SourceMap, ending: RunOutcome) -> Status {
    match ending {
        RunOutcome::Exit(status) => Status::Exit(status),
        RunOutcome::Fault(fault) => {
            let line_of = |place: Location| {
                let text = &sources.files().get(place.file as usize)?.text;
                text.lines().nth(place.line.checked_sub(1)? as usize).map(str::to_string)
            };
            say(&render_fault(&fault, program, &line_of, &|word| terminal.bold_red(word)));
            Status::Fault
        }
        RunOutcome::Failed(error) => {
            terminal.print_error(&error);
            Status::Fault
        }
        RunOutcome::Signal(signal) => die_of(signal),
        RunOutcome::OutputClosed => Status::Done,
    }
}
