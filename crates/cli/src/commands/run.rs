//! `qj run`, and the reports on the outcome of a run that other commands share.

use super::{CompiledProgram, ProgramFiles, compile, compile_error, reject_aliased_files};
use crate::arguments::{self, Coding, DebugTool, ModeChoice, Run, RunOptions};
use crate::coverage::LineCounts;
use crate::project::Project;
use crate::terminal::{CliError, Status, Terminal};
use clap::ValueEnum;
use quaject_esp::{CodeGrowth, Compiled, Emit, Limits, ManualPaths, Mode, Optimiser, Options, Outputs, PathAttempt};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_run::files::{NewFile, write_file};
use quaject_esp_run::{
    DebugInfo, Engine, Header, HostCode, HostError, RunOutcome, RunReport, Settings, fault_diagnostic, render_fault,
};
use quaject_esp_syntax::span::{FileId, SourceMap};
use std::path::{Path, PathBuf};

pub(crate) fn run(terminal: &Terminal, mut arguments: Run) -> Result<Status, CliError> {
    let project = Project::find(terminal, &arguments.project, arguments.file.as_slice())?;
    let file = project.program(arguments.file.as_ref())?;
    arguments.imports.import_folders = project.import_folders(&arguments.imports);
    if arguments.options.externs.is_empty() {
        arguments.options.externs.clone_from(&project.externs);
    }
    let (fast_paths, import_folders) = (&arguments.coding.fast_paths, &arguments.imports.import_folders);
    let files = ProgramFiles { root: &file, fast_paths, import_folders };
    if arguments.adaptive {
        return adaptive(terminal, files, &arguments, &project);
    }
    let settings = run_settings(&arguments)?;
    let (mode, why) = mode(&arguments);
    if let (Some(_), Engine::C) = (&arguments.record, settings.engine) {
        return Err(CliError::from(
            HostError::usage(HostCode::Conflict, "`--record` needs the interpreter")
                .help("leave out `--engine c`: all engines have the same semantics"),
        ));
    }
    if arguments.record.is_some() && mode != ModeChoice::Process {
        return Err(CliError::from(
            HostError::usage(
                HostCode::Conflict,
                "`--record` needs `--mode process`: a recording counts the requests of processes to the environment",
            )
            .help("leave out `--mode`"),
        ));
    }
    reject_observation(&arguments, settings.engine, mode)?;
    reject_aliased_files(&file, arguments.record.as_deref())?;
    reject_aliased_files(&file, arguments.coverage.as_deref())?;
    reject_aliased_files(&file, arguments.chart.as_deref())?;
    let manual = manual(&arguments.options.externs);
    let optimiser = match (settings.engine, mode) {
        // The reference, which also replays recordings.
        (Engine::Interpreter, ModeChoice::Process) => Optimiser::Off,
        _ if arguments.record.is_some() || observation(&arguments).is_some() => Optimiser::Off,
        (Engine::Interpreter | Engine::C | Engine::Jit | Engine::Best, _) => Optimiser::On,
    };
    let compilation = options(Emit::Ir, mode, &arguments.coding, arguments.options.checked)?;
    let compilation = Options { manual, optimiser, ..compilation };
    let CompiledProgram { sources, outputs, .. } = compile(terminal, files, &compilation)?;
    let program = &outputs.ir;
    let settings = with_bindings(settings, &project, &file, program);
    if arguments.report {
        report(mode, why, &outputs, settings.engine).into_iter().for_each(|item| terminal.print_status(item));
    }
    let report = match (&arguments.record, &arguments.coverage, &arguments.chart) {
        (None, None, None) => quaject_esp_run::run(program, &settings)?,
        (None, Some(path), _) => {
            let (report, lines) = quaject_esp_run::cover(program, &settings)?;
            write_file(path, LineCounts::of_run(&program.files, &lines).lcov().as_bytes())?;
            report
        }
        (None, None, Some(path)) => {
            let (report, log) = quaject_esp_run::log_messages(program, &settings, MAX_CHART_MESSAGES)?;
            let fault = match &report.outcome {
                RunOutcome::Fault(fault) => Some(&**fault),
                RunOutcome::Exit(_) | RunOutcome::Failed(_) | RunOutcome::Signal(_) | RunOutcome::OutputClosed => None,
            };
            write_file(path, quaject_esp_check::run_chart(program, &log, fault).as_bytes())?;
            report
        }
        (Some(path), ..) => {
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
    print_notes(terminal, &report);
    if arguments.report {
        let made = outputs.path_attempts.iter().filter(|attempt| attempt.result.is_ok());
        made.zip(&report.paths).for_each(|(attempt, runs)| terminal.print_status(attempt.run_summary(runs)));
    }
    Ok(report_outcome(terminal, program, &sources, report.outcome))
}

/// The largest number of messages in the chart of a run.
const MAX_CHART_MESSAGES: usize = 1000;

/// The option that makes the reference interpreter observe processes as written, if one is given.
fn observation(arguments: &Run) -> Option<&'static str> {
    let given = [("--coverage", arguments.coverage.is_some()), ("--chart", arguments.chart.is_some())];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// Rejects options that contradict `--coverage` or `--chart`.
fn reject_observation(arguments: &Run, engine: Engine, mode: ModeChoice) -> Result<(), HostError> {
    let Some(option) = observation(arguments) else { return Ok(()) };
    let refusals = [
        (
            engine == Engine::C,
            format!("`{option}` needs the interpreter"),
            "leave out `--engine c`: all engines have the same semantics",
        ),
        (
            mode != ModeChoice::Process,
            format!("`{option}` needs `--mode process`: it is of processes as written"),
            "leave out `--mode`",
        ),
        (arguments.record.is_some(), format!("`{option}` and `--record` are incompatible"), "leave out one of them"),
        (
            option == "--coverage" && arguments.chart.is_some(),
            "`--coverage` and `--chart` are incompatible".to_string(),
            "leave out one of them",
        ),
        (arguments.options.seed.is_some(), format!("`{option}` is of the reference schedule"), "leave out `--seed`"),
    ];
    match refusals.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, cause, help)) => Err(HostError::usage(HostCode::Conflict, cause).help(help)),
        None => Ok(()),
    }
}

/// The mode of a run, with the reason if the command line does not name it. Options that concern the processes as
/// written select `process`.
fn mode(arguments: &Run) -> (ModeChoice, Option<&'static str>) {
    if let Some(mode) = arguments.coding.mode {
        return (mode, None);
    }
    let requested = [
        (arguments.record.is_some(), ModeChoice::Process, "as `--record` records the processes as written"),
        (arguments.coverage.is_some(), ModeChoice::Process, "as `--coverage` is of the processes as written"),
        (arguments.chart.is_some(), ModeChoice::Process, "as `--chart` shows the processes as written"),
        (arguments.options.seed.is_some(), ModeChoice::Process, "as `--seed` schedules the processes as written"),
        (!arguments.coding.fast_paths.is_empty(), ModeChoice::Fastpath, FAST_PATHS),
        (
            arguments.engine == Some(arguments::Engine::Interp),
            ModeChoice::Process,
            "as `--engine interp` is the reference",
        ),
    ];
    match requested.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, mode, why)) => (mode, Some(why)),
        None => (ModeChoice::Auto, Some(DEFAULT_MODE)),
    }
}

/// The reason for the mode `auto`.
pub(super) const DEFAULT_MODE: &str = "the default";

/// The reason for the mode `fastpath`.
pub(super) const FAST_PATHS: &str = "because of `--fast-paths`";

/// The mode, with the reason if the command line does not name it, and the results of fusion and unrolling.
pub(super) fn chosen(mode: ModeChoice, why: Option<&str>, outputs: &Outputs) -> Vec<String> {
    let attempts = outputs.fusion_attempts.iter().map(|attempt| attempt.text(&outputs.ir));
    let unrolled = outputs.unroll_attempts.iter().map(|attempt| attempt.text(&outputs.ir));
    let mode = why.map(|why| format!("mode: {}, {why}", name(mode)));
    mode.into_iter().chain(attempts).chain(unrolled).collect()
}

/// The results of the formation of fast paths.
pub(super) fn paths(outputs: &Outputs) -> impl Iterator<Item = String> {
    outputs.path_attempts.iter().map(|attempt| attempt.text(&outputs.ir))
}

/// The name of a mode on the command line.
fn name(mode: ModeChoice) -> String {
    mode.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

/// The report before a run, without the fast paths that the run counts.
fn report(mode: ModeChoice, why: Option<&str>, outputs: &Outputs, engine: Engine) -> Vec<String> {
    let is_counted = |attempt: &&PathAttempt| attempt.result.is_ok() && engine != Engine::C;
    let paths = outputs.path_attempts.iter().filter(|attempt| !is_counted(attempt));
    let mut items = chosen(mode, why, outputs);
    items.extend(paths.map(|attempt| attempt.text(&outputs.ir)));
    if items.is_empty() && outputs.path_attempts.is_empty() {
        items.push(format!("mode: {}, as requested", name(mode)));
    }
    items
}

/// A run that forms fast paths while it runs.
fn adaptive(
    terminal: &Terminal,
    files: ProgramFiles<'_>,
    arguments: &Run,
    project: &Project,
) -> Result<Status, CliError> {
    only_adaptive(arguments)?;
    let settings = run_settings(arguments)?;
    let (source, mut disk) = files.open()?;
    let options = options(Emit::Ir, ModeChoice::Process, &arguments.coding, arguments.options.checked)?;
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source.clone(), &mut disk, &options);
    terminal.print_diagnostics(&sources, &diagnostics);
    let program = outputs.map_err(|reason| compile_error(files.root, reason))?.ir;
    let settings = with_bindings(settings, project, files.root, &program);
    let mut report = |line: &str| {
        if arguments.report {
            terminal.print_status(line);
        }
    };
    let report = quaject_esp_run::adapt(&program, &settings, &source, &mut disk, &mut report)?;
    print_notes(terminal, &report);
    Ok(report_outcome(terminal, &program, &sources, report.outcome))
}

/// Adds the bindings of the project for channels that the command line does not bind. Those of its other programs are
/// left out.
fn with_bindings(mut settings: Settings, project: &Project, root: &Path, program: &Program) -> Settings {
    for binding in &project.bindings {
        let is_bound = settings.bindings.iter().any(|other| other.channel == binding.channel);
        let is_known = program.channels.iter().any(|channel| channel.name == binding.channel);
        if !is_bound && (is_known || project.roots == [root]) {
            settings.bindings.push(binding.clone());
        }
    }
    settings
}

/// Rejects options that contradict `--adaptive`.
fn only_adaptive(arguments: &Run) -> Result<(), HostError> {
    let (coding, options) = (&arguments.coding, &arguments.options);
    let refusals = [
        (
            arguments.engine == Some(arguments::Engine::C),
            "`--adaptive` and `--engine c` are incompatible: compiled C does not change",
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
            "leave out `--fast-paths`, or replace `--adaptive` by `--mode fastpath`",
        ),
        (
            arguments.coverage.is_some(),
            "`--adaptive` and `--coverage` are incompatible: coverage is of processes as written",
            "leave out one of them",
        ),
        (
            arguments.chart.is_some(),
            "`--adaptive` and `--chart` are incompatible: a chart shows processes as written",
            "leave out one of them",
        ),
        (
            arguments.record.is_some(),
            "`--adaptive` and `--record` are incompatible: a recording counts the requests of processes to the environment",
            "leave out one of them",
        ),
        (
            options.seed.is_some(),
            "`--adaptive` and `--seed` are incompatible: fast paths follow the default schedule",
            "leave out one of them",
        ),
    ];
    match refusals.iter().find(|(is_given, ..)| *is_given) {
        Some((_, cause, help)) => Err(HostError::usage(HostCode::Conflict, *cause).help(*help)),
        None => Ok(()),
    }
}

/// Prints the notes of a run.
pub(super) fn print_notes(terminal: &Terminal, report: &RunReport) {
    report.notes.iter().for_each(|note| terminal.print_note(note));
}

/// Whether fast paths that are C functions are called: these files define them.
pub(super) fn manual(externs: &[PathBuf]) -> ManualPaths {
    if externs.is_empty() { ManualPaths::Omit } else { ManualPaths::Call }
}

/// The options of the compiler.
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
            let error = HostError::usage(HostCode::Conflict, "`--growth` has no meaning here");
            return Err(CliError::from(error.help("it is for `--mode automata` and `--mode auto`")));
        }
    }
    Ok(Options { mode, checked, limits, ..Options::new(emit) })
}

pub(crate) fn checks(checked: bool) -> Checks {
    if checked { Checks::On } else { Checks::Off }
}

/// The settings of a run.
fn run_settings(arguments: &Run) -> Result<Settings, CliError> {
    let settings = settings(&arguments.options, arguments.engine);
    let debug_info = match (arguments.debug_info, settings.engine) {
        (None, _) => return Ok(settings),
        (Some(_), Engine::Interpreter | Engine::C) => {
            let error = HostError::usage(HostCode::Conflict, "`--debug-info` has no meaning here");
            let help = "it is for machine code in memory: leave out `--engine`; generated C names lines by itself";
            return Err(CliError::from(error.help(help)));
        }
        (Some(DebugTool::Gdb), Engine::Jit | Engine::Best) => DebugInfo::Gdb,
        (Some(DebugTool::Perf), Engine::Jit | Engine::Best) => DebugInfo::Perf,
    };
    Ok(Settings { engine: Engine::Jit, debug_info, ..settings })
}

/// The settings that all runs share; without an engine, the fastest one of this machine.
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
        pcap: options.pcap.clone(),
        seed: options.seed,
        checks: checks(options.checked),
        time: options.clock.time(),
        memory: options.memory,
        debug_info: DebugInfo::None,
    }
}

/// Prints a fault or an error that ended a run; its exit status.
pub(crate) fn report_outcome(
    terminal: &Terminal,
    program: &Program,
    sources: &SourceMap,
    outcome: RunOutcome,
) -> Status {
    match outcome {
        RunOutcome::Exit(status) => Status::Exit(status),
        RunOutcome::Fault(fault) => {
            let line_of = |place: Location| {
                let text = &sources.get(FileId(place.file))?.text;
                text.lines().nth(place.line.checked_sub(1)? as usize).map(str::to_string)
            };
            let text = render_fault(&fault, program, &line_of, &|word| terminal.bold_red(word));
            terminal.print_fault(sources, &fault_diagnostic(&fault, program, sources), &text);
            Status::Fault
        }
        RunOutcome::Failed(error) => {
            terminal.print_error(&error);
            Status::Fault
        }
        RunOutcome::Signal(signal) => terminal.die_of(signal),
        RunOutcome::OutputClosed => Status::Done,
    }
}
