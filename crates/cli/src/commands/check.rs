//! `qj check`: reports the diagnostics of programs.

use super::verify::quick_check::quick_check;
use crate::arguments::Check;
use crate::terminal::{CliError, Status, Terminal};
use quaject_esp_run::disk::open_program;

pub(crate) fn check(terminal: &Terminal, arguments: Check) -> Result<Status, CliError> {
    let mut status = Status::Done;
    for file in &arguments.files {
        match open_program(file, &arguments.fast_paths) {
            Ok((source, mut disk)) => {
                let checked = quaject_esp::check(source, &mut disk);
                let errors = terminal.print_diagnostics(&checked.sources, &checked.diagnostics);
                if errors > 0 || (arguments.verify && quick_check(terminal, file)?) {
                    status = Status::Failed;
                }
                // The process ends soon; dropping a large program takes longer than checking a small one.
                std::mem::forget(checked);
            }
            Err(error) => {
                terminal.print_error(&error);
                status = Status::Failed;
            }
        }
    }
    Ok(status)
}
