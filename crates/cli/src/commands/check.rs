//! `qj check`: reports the diagnostics of programs.

use super::ProgramFiles;
use super::verify::quick_check::quick_check;
use crate::arguments::Check;
use crate::project::Project;
use crate::terminal::{CliError, Status, Terminal};
use quaject_esp_syntax::hir::{Boundary, Program};

pub(crate) fn check(terminal: &Terminal, arguments: Check) -> Result<Status, CliError> {
    let project = Project::find(terminal, &arguments.project, &arguments.files)?;
    let import_folders = project.import_folders(&arguments.imports);
    let mut status = Status::Done;
    // Of each program; none if the channels of one are not known.
    let mut channels = Some(Vec::new());
    for file in project.programs(&arguments.files)? {
        let files = ProgramFiles { root: &file, fast_paths: &arguments.fast_paths, import_folders: &import_folders };
        match files.open() {
            Ok((source, mut disk)) => {
                let checked = quaject_esp::check(source, &mut disk);
                let errors = terminal.print_diagnostics(&checked.sources, &checked.diagnostics);
                if errors > 0 || (arguments.verify && quick_check(terminal, files)?) {
                    status = Status::Failed;
                }
                channels = channels.zip(checked.program.as_ref()).map(|(known, program)| add_channels(known, program));
                // The process ends soon; dropping a large program takes longer than checking a small one.
                std::mem::forget(checked);
            }
            Err(error) => {
                terminal.print_error(&error);
                status = Status::Failed;
                channels = None;
            }
        }
    }
    if let (Some(channels), []) = (channels, &arguments.files[..])
        && project.report_unknown_channels(terminal, &channels) > 0
    {
        status = Status::Failed;
    }
    Ok(status)
}

/// Adds the names of the channels that drivers can serve.
fn add_channels(mut known: Vec<String>, program: &Program) -> Vec<String> {
    let external = program.channels.iter().filter(|channel| channel.boundary != Boundary::Internal);
    known.extend(external.map(|channel| channel.name.to_string()));
    known
}
