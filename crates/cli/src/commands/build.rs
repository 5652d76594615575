//! `qj build`

use super::run::{FAST_PATHS, UNASKED, checks, chosen, manual, options, paths, tell_manual};
use super::{compile, reject_aliased_files};
use crate::arguments::{Build, EmitForm, ModeChoice, StyleChoice, UnrollChoice};
use crate::terminal::{CliError, Status, Terminal, deliver, print, say};
use quaject_esp::{Dump, Dumped, Emit, Emitted, Optimiser, Options, Outputs, Unrolling};
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_run::HostError;
use quaject_esp_run::files::write_file;
use std::fs;
use std::path::{Path, PathBuf};

/// Messages a ring of the style `post` holds unless `--ring` says another number.
const RING: u32 = 16;

pub(crate) fn build(terminal: &Terminal, arguments: Build) -> Result<Status, CliError> {
    let (mode, why) = mode(&arguments);
    refuse_idle_options(&arguments, mode)?;
    reject_aliased_files(&arguments.file, arguments.output.as_deref())?;
    let stem = arguments
        .file
        .file_stem()
        .filter(|stem| *stem != "-")
        .map_or_else(|| "program".to_string(), |stem| stem.to_string_lossy().into_owned());
    let compilation = |emit| {
        let dump = Dump { passes: arguments.dump.clone() };
        options(emit, mode, &arguments.coding, arguments.checked).map(|options| Options {
            optimiser: Optimiser::On,
            unrolling: match (arguments.unroll, mode) {
                (Some(UnrollChoice::Off), _) => Unrolling::Off,
                (Some(UnrollChoice::Auto), _) => Unrolling::On,
                // Unrolling costs more code than `auto` spends by default, and tables.
                (None, ModeChoice::Auto) => Unrolling::Off,
                (None, ModeChoice::Process | ModeChoice::Direct | ModeChoice::Fastpath | ModeChoice::Automata) => {
                    Unrolling::On
                }
            },
            dump,
            ..options
        })
    };
    let fast_paths = &arguments.coding.fast_paths;
    match arguments.emit {
        EmitForm::Ir => {
            let (_, outputs) = compile(terminal, &arguments.file, fast_paths, &compilation(Emit::IrText)?)?;
            let Emitted::IrText(text) = &outputs.emitted else { unreachable!("asked for text") };
            let dumped: String = outputs.dumped.iter().map(dumped).collect();
            deliver(arguments.output.as_deref(), if arguments.dump.is_empty() { text } else { &dumped })?;
        }
        EmitForm::Promela => return super::promela::emit_promela(terminal, &arguments, checks(arguments.checked)),
        EmitForm::C => {
            let c_options = c::Options {
                prefix: arguments.prefix.clone(),
                header_name: format!("{stem}.h"),
                style: match arguments.style {
                    Some(StyleChoice::Poll) => c::Style::Poll,
                    Some(StyleChoice::Post) => c::Style::Post { ring: arguments.ring.unwrap_or(RING) },
                    Some(StyleChoice::SansIo) | None => c::Style::SansIo,
                },
                checks: checks(arguments.checked),
                ..c::Options::default()
            };
            let folder = arguments.output.clone().unwrap_or_else(|| PathBuf::from("."));
            refuse_file(&folder, &stem)?;
            let (_, outputs) =
                compile(terminal, &arguments.file, fast_paths, &compilation(Emit::C(c_options.clone()))?)?;
            let Emitted::C(generated) = &outputs.emitted else { unreachable!("asked for C") };
            write_c(&folder, &stem, generated)?;
            if arguments.report {
                print(attempts(mode, why, &outputs).as_bytes())?;
                let mut report = generated.report.clone();
                quaject_esp_run::measure_code(&outputs.ir, &c_options, &mut report);
                print(report.to_string().as_bytes())?;
            }
        }
        EmitForm::Exe => {
            let compilation = Options { manual: manual(&arguments.externs), ..compilation(Emit::Ir)? };
            let (_, outputs) = compile(terminal, &arguments.file, fast_paths, &compilation)?;
            tell_manual(mode, &outputs);
            let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(&stem));
            let mut report =
                quaject_esp_run::build_executable(&outputs.ir, checks(arguments.checked), &arguments.externs, &path)?;
            if arguments.report {
                print(attempts(mode, why, &outputs).as_bytes())?;
                let c_options = quaject_esp_run::c_options(checks(arguments.checked));
                quaject_esp_run::measure_code(&outputs.ir, &c_options, &mut report);
                print(report.to_string().as_bytes())?;
            }
        }
    }
    if arguments.report && arguments.emit == EmitForm::Ir {
        say("help: `--report` tells about generated C: add `--emit c`\n");
    }
    Ok(Status::Done)
}

/// The program after a pass.
fn dumped(dumped: &Dumped) -> String {
    format!("== {}, round {}\n{}\n", dumped.pass, dumped.round + 1, dumped.text)
}

/// Refuses options of other forms: whoever gives one expects it to do something.
fn refuse_idle_options(arguments: &Build, mode: ModeChoice) -> Result<(), CliError> {
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
            let error = HostError::usage(format!("`{option}` has no meaning here"));
            Err(CliError::from(error.help(format!("it is for `--emit {form}`"))))
        }
        None if arguments.unroll.is_some() && !fuses(mode) => {
            let error = HostError::usage("`--unroll` has no meaning here");
            Err(CliError::from(error.help("it is for `--mode automata` and `--mode auto`")))
        }
        None if arguments.ring.is_some() && arguments.style != Some(StyleChoice::Post) => {
            let error = HostError::usage("`--ring` has no meaning here");
            Err(CliError::from(error.help("it is for `--style post`, where interrupts put messages into rings")))
        }
        None => Ok(()),
    }
}

/// Whether processes become one in this mode.
fn fuses(mode: ModeChoice) -> bool {
    match mode {
        ModeChoice::Automata | ModeChoice::Auto => true,
        ModeChoice::Process | ModeChoice::Direct | ModeChoice::Fastpath => false,
    }
}

/// How the processes become code, and why if nobody has asked for that: the forms for people show them as written.
fn mode(arguments: &Build) -> (ModeChoice, Option<&'static str>) {
    match (arguments.coding.mode, arguments.emit) {
        (Some(mode), _) => (mode, None),
        (None, EmitForm::C | EmitForm::Exe) if !arguments.coding.fast_paths.is_empty() => {
            (ModeChoice::Fastpath, Some(FAST_PATHS))
        }
        (None, EmitForm::C | EmitForm::Exe) => (ModeChoice::Auto, Some(UNASKED)),
        (None, EmitForm::Ir | EmitForm::Promela) => (ModeChoice::Process, None),
    }
}

/// What became of the processes, before what the C of them takes.
fn attempts(mode: ModeChoice, why: Option<&str>, outputs: &Outputs) -> String {
    let text = chosen(mode, why, outputs) + &paths(outputs);
    if text.is_empty() { text } else { text + "\n" }
}

/// Refuses the name of a C file where a folder is meant, unless there is such a folder.
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
    Err(CliError::from(HostError::usage(cause).help(help)))
}

/// The C file, its header and the run-time header.
fn write_c(folder: &Path, stem: &str, generated: &c::Output) -> Result<(), HostError> {
    let headers = folder.join("quaject");
    fs::create_dir_all(&headers).map_err(|error| HostError::file("make", headers.display(), &error))?;
    write_file(&headers.join("esp.h"), RUNTIME_HEADER.as_bytes())?;
    write_file(&folder.join(format!("{stem}.h")), generated.header.as_bytes())?;
    write_file(&folder.join(format!("{stem}.c")), generated.source.as_bytes())
}
