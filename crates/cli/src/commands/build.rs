//! `qj build`

use super::run::{DEFAULT_MODE, FAST_PATHS, checks, chosen, manual, options, paths};
use super::{compile, reject_aliased_files};
use crate::arguments::{Build, EmitForm, ModeChoice, StyleChoice, UnrollChoice};
use crate::terminal::{CliError, Status, Terminal, print, write_output};
use quaject_diagnostic::{Message, Severity};
use quaject_esp::{Dump, Dumped, Emit, Emitted, Optimiser, Options, Outputs, Unrolling};
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_run::files::write_file;
use quaject_esp_run::{HostCode, HostError};
use std::fs;
use std::path::{Path, PathBuf};

/// The default of `--ring`.
const RING_MESSAGES: u32 = 16;

pub(crate) fn build(terminal: &Terminal, arguments: Build) -> Result<Status, CliError> {
    let (mode, reason) = mode(&arguments);
    refuse_options_without_effect(&arguments, mode)?;
    reject_aliased_files(&arguments.file, arguments.output.as_deref())?;
    let stem = arguments
        .file
        .file_stem()
        .filter(|stem| *stem != "-")
        .map_or_else(|| "program".to_string(), |stem| stem.to_string_lossy().into_owned());
    let build = Compilation { terminal, arguments: &arguments, mode, reason, stem };
    match arguments.emit {
        EmitForm::Ir => build.emit_ir()?,
        EmitForm::Promela => return super::promela::emit_promela(terminal, &arguments, checks(arguments.checked)),
        EmitForm::C => build.emit_c()?,
        EmitForm::Exe => build.emit_executable()?,
    }
    Ok(Status::Done)
}

/// One compilation, with the choices of the command line.
struct Compilation<'a> {
    terminal: &'a Terminal,
    arguments: &'a Build,
    mode: ModeChoice,
    /// Of the mode, if the command line does not name it.
    reason: Option<&'static str>,
    /// The name of the output without its ending.
    stem: String,
}

impl Compilation<'_> {
    fn options(&self, emit: Emit) -> Result<Options, CliError> {
        let arguments = self.arguments;
        let unrolling = match (arguments.unroll, self.mode) {
            (Some(UnrollChoice::Off), _) => Unrolling::Off,
            (Some(UnrollChoice::Auto), _) => Unrolling::On,
            // Unrolling costs more code than `auto` spends by default, and tables.
            (None, ModeChoice::Auto) => Unrolling::Off,
            (None, ModeChoice::Process | ModeChoice::Direct | ModeChoice::Fastpath | ModeChoice::Automata) => {
                Unrolling::On
            }
        };
        let dump = Dump { passes: arguments.dump.clone() };
        let options = options(emit, self.mode, &arguments.coding, arguments.checked)?;
        Ok(Options { optimiser: Optimiser::On, unrolling, dump, ..options })
    }

    fn compile(&self, options: &Options) -> Result<Outputs, CliError> {
        let fast_paths = &self.arguments.coding.fast_paths;
        compile(self.terminal, &self.arguments.file, fast_paths, options).map(|(_, outputs)| outputs)
    }

    fn emit_ir(&self) -> Result<(), CliError> {
        let outputs = self.compile(&self.options(Emit::IrText)?)?;
        let Emitted::IrText(text) = &outputs.emitted else { unreachable!("the options ask for text") };
        let dumped: String = outputs.dumped.iter().map(dumped).collect();
        let text = if self.arguments.dump.is_empty() { text } else { &dumped };
        write_output(self.arguments.output.as_deref(), text)?;
        if self.arguments.report {
            let note = Message::new(Severity::Note, "`--report` describes generated C, and none is generated");
            self.terminal.print(&note.help("add `--emit c`"));
        }
        Ok(())
    }

    fn emit_c(&self) -> Result<(), CliError> {
        let arguments = self.arguments;
        let c_options = c::Options {
            prefix: arguments.prefix.clone(),
            header_name: format!("{}.h", self.stem),
            style: match arguments.style {
                Some(StyleChoice::Poll) => c::Style::Poll,
                Some(StyleChoice::Post) => c::Style::Post { ring: arguments.ring.unwrap_or(RING_MESSAGES) },
                Some(StyleChoice::SansIo) | None => c::Style::SansIo,
            },
            checks: checks(arguments.checked),
            ..c::Options::default()
        };
        let folder = arguments.output.clone().unwrap_or_else(|| PathBuf::from("."));
        refuse_file(&folder, &self.stem)?;
        let outputs = self.compile(&self.options(Emit::C(c_options.clone()))?)?;
        let Emitted::C(generated) = &outputs.emitted else { unreachable!("the options ask for C") };
        write_c(&folder, &self.stem, generated)?;
        self.report(&outputs, &c_options, generated.report.clone())
    }

    fn emit_executable(&self) -> Result<(), CliError> {
        let externs = &self.arguments.externs;
        let outputs = self.compile(&Options { manual: manual(externs), ..self.options(Emit::Ir)? })?;
        let path = self.arguments.output.clone().unwrap_or_else(|| PathBuf::from(&self.stem));
        let checks = checks(self.arguments.checked);
        let report = quaject_esp_run::build_executable(&outputs.ir, checks, externs, &path)?;
        self.report(&outputs, &quaject_esp_run::c_options(checks), report)
    }

    /// Prints the report on the generated C, if the command line asks for it.
    fn report(&self, outputs: &Outputs, options: &c::Options, mut report: c::Report) -> Result<(), CliError> {
        if !self.arguments.report {
            return Ok(());
        }
        let mode = chosen(self.mode, self.reason, outputs).into_iter().chain(paths(outputs));
        let mode: String = mode.map(|item| item + "\n").collect();
        print(if mode.is_empty() { mode } else { mode + "\n" }.as_bytes())?;
        quaject_esp_run::measure_code(&outputs.ir, options, &mut report);
        print(report.to_string().as_bytes())
    }
}

/// The text of a program after a pass.
fn dumped(dumped: &Dumped) -> String {
    format!("== {}, round {}\n{}\n", dumped.pass, dumped.round + 1, dumped.text)
}

/// Rejects options that the output format or the mode would ignore.
fn refuse_options_without_effect(arguments: &Build, mode: ModeChoice) -> Result<(), CliError> {
    let options = [
        ("--style", arguments.style.is_some(), EmitForm::C, "c"),
        ("--ring", arguments.ring.is_some(), EmitForm::C, "c"),
        ("--prefix", arguments.prefix.is_some(), EmitForm::C, "c"),
        ("--extern", !arguments.externs.is_empty(), EmitForm::Exe, "exe"),
        ("--dump", !arguments.dump.is_empty(), EmitForm::Ir, "ir"),
        ("--model", arguments.model.is_some(), EmitForm::Promela, "promela"),
    ];
    match options.iter().find(|(_, is_given, form, _)| *is_given && arguments.emit != *form) {
        Some((option, _, _, form)) => {
            let error = HostError::usage(HostCode::Conflict, format!("`{option}` has no meaning here"));
            Err(CliError::from(error.help(format!("it is for `--emit {form}`"))))
        }
        None if arguments.unroll.is_some() && !fuses(mode) => {
            let error = HostError::usage(HostCode::Conflict, "`--unroll` has no meaning here");
            Err(CliError::from(error.help("it is for `--mode automata` and `--mode auto`")))
        }
        None if arguments.ring.is_some() && arguments.style != Some(StyleChoice::Post) => {
            let error = HostError::usage(HostCode::Conflict, "`--ring` has no meaning here");
            Err(CliError::from(error.help("it is for `--style post`, whose interrupts post messages to rings")))
        }
        None => Ok(()),
    }
}

/// Whether a mode fuses processes.
fn fuses(mode: ModeChoice) -> bool {
    match mode {
        ModeChoice::Automata | ModeChoice::Auto => true,
        ModeChoice::Process | ModeChoice::Direct | ModeChoice::Fastpath => false,
    }
}

/// The mode, with the reason if the command line does not name it. IR and models show the processes as written.
fn mode(arguments: &Build) -> (ModeChoice, Option<&'static str>) {
    match (arguments.coding.mode, arguments.emit) {
        (Some(mode), _) => (mode, None),
        (None, EmitForm::C | EmitForm::Exe) if !arguments.coding.fast_paths.is_empty() => {
            (ModeChoice::Fastpath, Some(FAST_PATHS))
        }
        (None, EmitForm::C | EmitForm::Exe) => (ModeChoice::Auto, Some(DEFAULT_MODE)),
        (None, EmitForm::Ir | EmitForm::Promela) => (ModeChoice::Process, None),
    }
}

/// Rejects the name of a C file for the output folder, unless there is such a folder.
fn refuse_file(folder: &Path, stem: &str) -> Result<(), CliError> {
    let looks_like_file = folder.extension().is_some_and(|extension| extension == "c" || extension == "h");
    if !looks_like_file || folder.is_dir() {
        return Ok(());
    }
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.display().to_string(),
        Some(_) | None => ".".to_string(),
    };
    let cause = format!("`{}` names a file, and `--emit c` writes several into a folder", folder.display());
    let help = format!("`-o {parent}` writes `{stem}.c`, `{stem}.h` and `quaject/esp.h` there");
    Err(CliError::from(HostError::usage(HostCode::Argument, cause).help(help)))
}

/// Writes the C file, its header and the run-time header.
fn write_c(folder: &Path, stem: &str, generated: &c::Output) -> Result<(), HostError> {
    let headers = folder.join("quaject");
    fs::create_dir_all(&headers).map_err(|error| HostError::file("make", headers.display(), &error))?;
    write_file(&headers.join("esp.h"), RUNTIME_HEADER.as_bytes())?;
    write_file(&folder.join(format!("{stem}.h")), generated.header.as_bytes())?;
    write_file(&folder.join(format!("{stem}.c")), generated.source.as_bytes())
}
