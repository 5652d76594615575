//! `qj tickc`: has a program in 'C preprocessed, translates it, and has the translation compiled.

mod compiler;
mod request;
mod sources;

use super::product::{reject_overwriting, write_dependencies};
use super::reject_aliased_files;
use crate::arguments::{Tickc, TickcForm};
use crate::terminal::{CliError, Status, Terminal, print, update_output, write_output};
use compiler::Compiler;
use quaject_esp_run::files::{NewFile, is_same_file, read_text};
use quaject_esp_run::{HostCode, HostError};
use quaject_tickc::{Options, RUNTIME_LIBRARY, Translation};
use request::{Product, Request};
use sources::Sources;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) fn tickc(terminal: &Terminal, arguments: &Tickc) -> Result<Status, CliError> {
    let request = Request::new(arguments)?;
    let written =
        [request.output(), arguments.dependencies.depfile.as_deref(), arguments.dependencies.stamp.as_deref()];
    written.into_iter().try_for_each(|output| reject_aliased_files(&arguments.file, output))?;
    // A file that cannot be read has a better message here than in the C compiler.
    read_text(&arguments.file)?;
    let compiler = Compiler::new(arguments)?;
    let preprocessed = compiler.preprocess(terminal, &arguments.file)?;
    let options = Options { unroll_limit: arguments.unroll_limit };
    let translation = quaject_tickc::translate_with(&preprocessed, options);
    let mut sources = Sources::default();
    let diagnostics = sources.diagnostics(&preprocessed, &translation);
    if terminal.print_diagnostics(sources.map(), &diagnostics) > 0 {
        return Ok(Status::Failed);
    }
    if arguments.report {
        print(report(&translation).as_bytes())?;
    }
    let read = files_read(&arguments.file, &translation);
    reject_overwriting(&read, &written)?;
    let equal = if arguments.dependencies.stamp.is_some() { EqualOutput::Keep } else { EqualOutput::Replace };
    emit(terminal, &request, &compiler, &translation, equal)?;
    write_dependencies(&arguments.dependencies, request.output(), &read)?;
    Ok(Status::Done)
}

/// What becomes of an output that has the right content already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EqualOutput {
    /// It gets the time of this run: a rule of Make that names it is satisfied.
    Replace,
    /// It is not touched, so that nothing is made of it again. A stamp has the time of this run.
    Keep,
}

/// Writes what the command line asks for.
fn emit(
    terminal: &Terminal,
    request: &Request,
    compiler: &Compiler<'_>,
    translation: &Translation,
    equal: EqualOutput,
) -> Result<(), CliError> {
    let text = format!("#include <quaject/tickc.h>\n{}", translation.text);
    match &request.product {
        Product::None => Ok(()),
        Product::Text(output) => match equal {
            EqualOutput::Replace => write_output(output.as_deref(), &text),
            EqualOutput::Keep => update_output(output.as_deref(), &text),
        },
        Product::Compiled(TickcForm::Exe, output) => {
            require_library()?;
            let built = compiler.link(terminal, &text)?;
            install(&built, NewFile::create_program(output)?, equal)
        }
        Product::Compiled(TickcForm::Object | TickcForm::C, output) => {
            let built = compiler.compile(terminal, &text)?;
            install(&built, NewFile::create(output)?, equal)
        }
    }
}

/// Rejects an executable where qj has no run-time library.
fn require_library() -> Result<(), CliError> {
    if !RUNTIME_LIBRARY.is_empty() {
        return Ok(());
    }
    let error = HostError::new(HostCode::Platform, "this `qj` has no run-time library of 'C for this machine");
    Err(CliError::from(error.help("`--emit object` compiles, and the library is built from its sources")))
}

/// Copies a product to its place.
fn install(built: &Path, mut file: NewFile, equal: EqualOutput) -> Result<(), CliError> {
    let copied = File::open(built).and_then(|mut built| io::copy(&mut built, &mut file));
    copied.map_err(|error| HostError::file("write", file.path().display(), &error))?;
    let finished = match equal {
        EqualOutput::Replace => file.finish(),
        EqualOutput::Keep => file.finish_if_changed(),
    };
    finished.map_err(CliError::from)
}

/// What became of each tick, by line.
fn report(translation: &Translation) -> String {
    let mut remarks: Vec<_> = translation.remarks.iter().collect();
    remarks.sort_by_key(|remark| remark.offset);
    let mut text = String::new();
    for remark in remarks {
        let place = translation.lines.locate(remark.offset);
        let _ = writeln!(text, "{}:{}: {}", place.file, place.line, remark.event);
    }
    text
}

/// The files that the translation was made of, the program first, headers of the system left out.
fn files_read(program: &Path, translation: &Translation) -> Vec<PathBuf> {
    let others = translation.lines.files().into_iter().map(PathBuf::from);
    let others = others.filter(|path| path.is_file() && !is_same_file(path, program));
    std::iter::once(program.to_owned()).chain(others).collect()
}
