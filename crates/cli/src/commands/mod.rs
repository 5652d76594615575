//! The commands of `qj`, one file each.

pub(crate) mod asm;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod documents;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod pipe;
pub(crate) mod profile;
pub(crate) mod promela;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod verify;

use crate::terminal::{CliError, Status, Terminal, say};
use quaject_esp::{Compiled, Mode, NoOutput, Options, Outputs, Refusal};
use quaject_esp_run::HostError;
use quaject_esp_run::disk::open_program;
use quaject_esp_run::files::is_same_file;
use quaject_esp_syntax::span::SourceMap;
use std::path::{Path, PathBuf};

/// Refuses an output that is the program itself, under any name.
fn reject_aliased_files(program: &Path, output: Option<&Path>) -> Result<(), CliError> {
    let Some(output) = output else { return Ok(()) };
    if !is_same_file(program, output) {
        return Ok(());
    }
    let error = HostError::usage(format!("`{}` is the program: it would be overwritten", output.display()));
    Err(CliError::from(error.help("give what is written another name")))
}

/// Compiles a program, with files of fast paths, and says what there is to say; stops if it is wrong.
fn compile(
    terminal: &Terminal,
    file: &Path,
    fast_paths: &[PathBuf],
    options: &Options,
) -> Result<(SourceMap, Outputs), CliError> {
    let (source, mut disk) = open_program(file, fast_paths)?;
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source, &mut disk, options);
    terminal.diagnostics(&sources, &diagnostics);
    let outputs = outputs.map_err(|reason| refused(file, reason))?;
    let asked_for = match options.mode {
        Mode::FastPath => &outputs.extractions[..],
        // What it leaves out, `--report` tells.
        Mode::Process | Mode::Direct | Mode::Automata | Mode::Auto => &[],
    };
    for extraction in asked_for {
        extraction.unreachable_statements(&outputs.ir).iter().for_each(|line| say(&format!("warning: {line}\n")));
    }
    for refused in asked_for {
        match refused.result {
            // A path of processes that are fused is not needed.
            Ok(_) | Err(Refusal::AlreadyFused { .. }) => {}
            Err(_) => say(&format!("warning: {}\n", refused.text(&outputs.ir))),
        }
    }
    Ok((sources, outputs))
}

/// What to say of a program that was refused, beside its diagnostics.
fn refused(file: &Path, reason: NoOutput) -> CliError {
    match reason {
        NoOutput::Errors => CliError::reported(Status::Failed),
        NoOutput::TooLarge { max_instructions } => CliError::from(
            HostError::new(format!(
                "`{}` is too large: its text stands for more than {max_instructions} instructions",
                file.display()
            ))
            .help("read long tables from a channel, or write those of bytes as strings"),
        ),
    }
}
