//! What a command leaves for the tool that runs it, Make or Ninja: the dependency file and the stamp.

use crate::arguments::DependencyOutputs;
use crate::terminal::CliError;
use quaject_esp_run::files::{is_same_file, write_file};
use quaject_esp_run::{HostCode, HostError, dependency_file};
use std::path::{Path, PathBuf};

/// What a build has written, and what of.
pub(super) struct BuildProduct {
    /// The first output; none on standard output.
    pub(super) output: Option<PathBuf>,
    /// The files that were read, the root first.
    pub(super) files: Vec<PathBuf>,
}

/// Whether the output of a command is a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OutputName {
    Named,
    /// It is standard output, or there is none.
    Unnamed,
}

/// Rejects a dependency file without a target: neither the output has a name, nor does the command line have another.
pub(super) fn require_target(wanted: &DependencyOutputs, output: OutputName) -> Result<(), CliError> {
    let is_named = output == OutputName::Named || wanted.stamp.is_some() || !wanted.depfile_target.is_empty();
    if wanted.depfile.is_none() || is_named {
        return Ok(());
    }
    let error = HostError::usage(HostCode::Choice, "`--depfile` needs a target: the output has no name");
    Err(CliError::from(error.help("name it, with `-o FILE` or `--depfile-target NAME`")))
}

/// Rejects outputs that are a file of the program.
pub(super) fn reject_overwriting(files: &[PathBuf], outputs: &[Option<&Path>]) -> Result<(), CliError> {
    for output in outputs.iter().flatten() {
        if files.iter().any(|file| is_same_file(file, output)) {
            let cause = format!("`{}` is part of the program: it would be overwritten", output.display());
            return Err(CliError::from(
                HostError::usage(HostCode::Overwrite, cause).help("give the file another name"),
            ));
        }
    }
    Ok(())
}

/// Writes the dependency file and, last, the stamp: a build that fails in between is repeated.
pub(super) fn write_dependencies(
    wanted: &DependencyOutputs,
    output: Option<&Path>,
    prerequisites: &[PathBuf],
) -> Result<(), CliError> {
    if let Some(path) = &wanted.depfile {
        let default = wanted.stamp.as_deref().or(output).map(Path::to_owned);
        let targets = match &wanted.depfile_target[..] {
            [] => default.as_slice(),
            targets => targets,
        };
        write_file(path, &dependency_file(targets, prerequisites)?)?;
    }
    match &wanted.stamp {
        Some(path) => write_file(path, b"").map_err(CliError::from),
        None => Ok(()),
    }
}
