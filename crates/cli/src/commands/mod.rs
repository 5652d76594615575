//! The commands of `qj`, one file each.

pub(crate) mod asm;
pub(crate) mod build;
mod build_request;
pub(crate) mod check;
pub(crate) mod dap;
pub(crate) mod documents;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod kernel;
pub(crate) mod lsp;
pub(crate) mod pipe;
mod product;
pub(crate) mod profile;
pub(crate) mod promela;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod tickc;
pub(crate) mod verify;

use crate::terminal::{CliError, Status, Terminal};
use quaject_diagnostic::{Message, Severity};
use quaject_esp::{CompileError, Compiled, Mode, Options, Outputs, Refusal, Source};
use quaject_esp_run::disk::{Disk, open_program};
use quaject_esp_run::files::is_same_file;
use quaject_esp_run::{HostCode, HostError};
use quaject_esp_syntax::span::SourceMap;
use std::path::{Path, PathBuf};

/// Rejects an output that is the program itself, under any name.
fn reject_aliased_files(program: &Path, output: Option<&Path>) -> Result<(), CliError> {
    let Some(output) = output else { return Ok(()) };
    if !is_same_file(program, output) {
        return Ok(());
    }
    let error = HostError::usage(
        HostCode::Overwrite,
        format!("`{}` is the program: it would be overwritten", output.display()),
    );
    Err(CliError::from(error.help("give the output another name")))
}

/// The files of a program, as the command line or its project names them.
#[derive(Clone, Copy)]
pub(crate) struct ProgramFiles<'a> {
    pub(crate) root: &'a Path,
    pub(crate) fast_paths: &'a [PathBuf],
    /// Where imports are searched that are not found relative to the importing file.
    pub(crate) import_folders: &'a [PathBuf],
}

impl ProgramFiles<'_> {
    fn open(&self) -> Result<(Source, Disk), HostError> {
        let (source, mut disk) = open_program(self.root, self.fast_paths)?;
        disk.search_imports_in(self.import_folders);
        Ok((source, disk))
    }
}

/// A program that was compiled, and what it was made of.
struct CompiledProgram {
    sources: SourceMap,
    outputs: Outputs,
    /// The files that were read, the root first.
    files: Vec<PathBuf>,
}

/// Compiles a program and prints its diagnostics; an error if it has no output.
fn compile(terminal: &Terminal, files: ProgramFiles<'_>, options: &Options) -> Result<CompiledProgram, CliError> {
    let (source, mut disk) = files.open()?;
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source, &mut disk, options);
    terminal.print_diagnostics(&sources, &diagnostics);
    let outputs = outputs.map_err(|reason| compile_error(files.root, reason))?;
    let requested = match options.mode {
        Mode::FastPath => &outputs.path_attempts[..],
        // `--report` lists the fast paths that this mode omits.
        Mode::Process | Mode::Direct | Mode::Automata | Mode::Auto => &[],
    };
    for attempt in requested {
        attempt.unreachable_statements(&outputs.ir).into_iter().for_each(|line| terminal.print_warning(line));
    }
    for attempt in requested {
        let warning = || Message::new(Severity::Warning, attempt.text(&outputs.ir));
        match &attempt.result {
            // A path of fused processes is redundant.
            Ok(_) | Err(Refusal::AlreadyFused { .. }) => {}
            Err(Refusal::ManualPath { function }) => {
                let help = format!("give the file that defines `{function}`: `--extern FILE.c`");
                terminal.print(&warning().help(help));
            }
            Err(_) => terminal.print(&warning()),
        }
    }
    Ok(CompiledProgram { sources, outputs, files: disk.paths_read() })
}

/// The error of a program without output; the diagnostics have been printed.
fn compile_error(file: &Path, reason: CompileError) -> CliError {
    match reason {
        CompileError::Diagnostics => CliError::reported(Status::Failed),
        CompileError::TooLarge { max_instructions } => CliError::from(
            HostError::new(
                HostCode::Size,
                format!(
                    "`{}` is too large: its text expands to more than {max_instructions} instructions",
                    file.display()
                ),
            )
            .help("read long tables from a channel, or write those of bytes as strings"),
        ),
    }
}
