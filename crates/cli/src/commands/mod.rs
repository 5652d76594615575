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

use crate::terminal::{CliError, Status, Terminal, print_message};
use quaject_esp::{CompileError, Compiled, Mode, Options, Outputs, Refusal};
use quaject_esp_run::HostError;
use quaject_esp_run::disk::open_program;
use quaject_esp_run::files::is_same_file;
use quaject_esp_syntax::span::SourceMap;
use std::path::{Path, PathBuf};

/// Rejects an output that is the program itself, under any name.
fn reject_aliased_files(program: &Path, output: Option<&Path>) -> Result<(), CliError> {
    let Some(output) = output else { return Ok(()) };
    if !is_same_file(program, output) {
        return Ok(());
    }
    let error = HostError::usage(format!("`{}` is the program: it would be overwritten", output.display()));
    Err(CliError::from(error.help("give the output another name")))
}

/// Compiles a program, with files of fast paths, and prints its diagnostics; an error if it has no output.
fn compile(
    terminal: &Terminal,
    file: &Path,
    fast_paths: &[PathBuf],
    options: &Options,
) -> Result<(SourceMap, Outputs), CliError> {
    let (source, mut disk) = open_program(file, fast_paths)?;
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source, &mut disk, options);
    terminal.diagnostics(&sources, &diagnostics);
    let outputs = outputs.map_err(|reason| compile_error(file, reason))?;
    let requested = match options.mode {
        Mode::FastPath => &outputs.extractions[..],
        // `--report` lists the fast paths that this mode omits.
        Mode::Process | Mode::Direct | Mode::Automata | Mode::Auto => &[],
    };
    for extraction in requested {
        extraction
            .unreachable_statements(&outputs.ir)
            .iter()
            .for_each(|line| print_message(&format!("warning: {line}\n")));
    }
    for extraction in requested {
        match extraction.result {
            // A path of fused processes is redundant.
            Ok(_) | Err(Refusal::AlreadyFused { .. }) => {}
            Err(_) => print_message(&format!("warning: {}\n", extraction.text(&outputs.ir))),
        }
    }
    Ok((sources, outputs))
}

/// The error of a program without output; the diagnostics have been printed.
fn compile_error(file: &Path, reason: CompileError) -> CliError {
    match reason {
        CompileError::Diagnostics => CliError::reported(Status::Failed),
        CompileError::TooLarge { max_instructions } => CliError::from(
            HostError::new(format!(
                "`{}` is too large: its text stands for more than {max_instructions} instructions",
                file.display()
            ))
            .help("read long tables from a channel, or write those of bytes as strings"),
        ),
    }
}
