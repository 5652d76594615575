//! Reads a program and its models; shared by `qj verify`, `qj check`, `qj replay` and `qj build --emit promela`.

use super::super::ProgramFiles;
use crate::terminal::{CliError, Terminal};
use quaject_esp::{LoweredModels, ModelSelection, UnknownName};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::{HostCode, HostError};
use std::path::PathBuf;

/// Reads a program with its models and prints its diagnostics; also returns the files that were read.
pub(crate) fn open_models(
    terminal: &Terminal,
    files: ProgramFiles<'_>,
    subject: &ModelSelection,
) -> Result<(LoweredModels, Vec<PathBuf>), CliError> {
    let (source, mut disk) = ProgramFiles { fast_paths: &[], ..files }.open()?;
    let modelled = quaject_esp::models(source, &mut disk, subject).map_err(unknown_name)?;
    terminal.print_diagnostics(&modelled.sources, &modelled.diagnostics);
    Ok((modelled, disk.paths_read()))
}

/// The help of a command that needs one of several models.
pub(crate) fn choose_model_help(models: &[ModelProgram]) -> String {
    let names: Vec<String> =
        models.iter().filter_map(|model| model.name.as_ref()).map(|name| format!("`{name}`")).collect();
    format!("choose one with `--model`: {}", names.join(", "))
}

/// The error of a model or process that the program does not have.
pub(crate) fn unknown_name(missing: UnknownName) -> CliError {
    let error =
        HostError::usage(HostCode::UnknownName, format!("the program has no {} `{}`", missing.what, missing.name));
    CliError::from(match &missing.known[..] {
        [] => error,
        known => error.help(format!("there is `{}`", known.join("`, `"))),
    })
}
