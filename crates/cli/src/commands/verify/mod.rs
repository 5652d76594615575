//! `qj verify`: chooses models, engine and kind of check, and combines the verdicts into an exit status.

mod builtin;
pub(crate) mod models;
mod options;
pub(crate) mod quick_check;
mod refinement;
pub(crate) mod replay;
mod report;
mod search;
mod spin;
mod stepper;

use super::ProgramFiles;
use crate::arguments::{Verify, VerifyEngine};
use crate::project::Project;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use models::{choose_model_help, open_models};
use options::{refuse_options_without_effect, search_options, subject};
use quaject_esp_check::Options;
use quaject_esp_run::{HostCode, HostError, Interrupts};
use report::remove_earlier_output;

/// Verifies a program. The status is 1 at a violation, so that an error in the input has that of the command line, 2.
pub(crate) fn verify(terminal: &Terminal, arguments: Verify) -> Result<Status, CliError> {
    verify_programs(terminal, &arguments).map_err(|error| match error.status {
        Status::Failed => CliError { status: Status::Usage, ..error },
        _ => error,
    })
}

/// Verifies each program that the command line or the project names.
fn verify_programs(terminal: &Terminal, arguments: &Verify) -> Result<Status, CliError> {
    refuse_options_without_effect(arguments)?;
    let project = Project::find(terminal, &arguments.project, arguments.file.as_slice())?;
    let import_folders = project.import_folders(&arguments.imports);
    let programs = project.programs(arguments.file.as_slice())?;
    if programs.len() > 1 && (arguments.trace.is_some() || arguments.chart.is_some()) {
        let error = HostError::usage(
            HostCode::Choice,
            "`--trace` and `--chart` keep one run, and the project has several programs",
        );
        return Err(CliError::from(error.help("name one of them: `qj verify --project DIR FILE`")));
    }
    remove_earlier_output(arguments)?;
    let mut combined = Status::Done;
    for program in &programs {
        if programs.len() > 1 && !arguments.json {
            print_verdict(format!("{}\n", program.display()).as_bytes())?;
        }
        let files = ProgramFiles { root: program, fast_paths: &arguments.fast_paths, import_folders: &import_folders };
        combined = worse(combined, verify_program(terminal, files, arguments)?);
    }
    Ok(combined)
}

fn verify_program(terminal: &Terminal, files: ProgramFiles<'_>, arguments: &Verify) -> Result<Status, CliError> {
    if arguments.fastpath {
        return refinement::verify_refinement(terminal, files, arguments);
    }
    let (modelled, _) = open_models(terminal, files, &subject(arguments))?;
    let Some(models) = &modelled.models else { return Ok(Status::Usage) };
    if models.len() > 1 && (arguments.trace.is_some() || arguments.chart.is_some()) {
        let error = HostError::usage(
            HostCode::Choice,
            "`--trace` and `--chart` keep one run, and the program has several models",
        );
        return Err(CliError::from(error.help(choose_model_help(models))));
    }
    verify_each(terminal, arguments, models.iter(), |model, options| match arguments.engine {
        VerifyEngine::Builtin => builtin::verify_model(terminal, &modelled, model, options, arguments),
        VerifyEngine::Spin => spin::verify_model(terminal, &modelled, model, options, arguments),
    })
}

/// The status of two verifications: a violation outweighs an error in the input, that an open question, and that a
/// spurious violation.
fn worse(one: Status, other: Status) -> Status {
    let weight = |status: Status| {
        let by_weight = [Status::Spurious, Status::Unfinished, Status::Usage, Status::Failed];
        by_weight.iter().position(|known| *known == status)
    };
    if weight(other) > weight(one) { other } else { one }
}

/// Verifies each model in turn and combines the statuses. A signal ends the process after the verdict that it
/// interrupted.
fn verify_each<T>(
    terminal: &Terminal,
    arguments: &Verify,
    models: impl Iterator<Item = T>,
    mut verify_model: impl FnMut(T, &Options) -> Result<Status, CliError>,
) -> Result<Status, CliError> {
    let interrupts = Interrupts::listen()?;
    let options = search_options(arguments, &interrupts);
    let mut combined = Status::Done;
    for model in models {
        let status = verify_model(model, &options)?;
        combined = worse(combined, status);
        if let (Status::Unfinished, Some(signal)) = (status, interrupts.signal()) {
            terminal.die_of(signal);
        }
    }
    Ok(combined)
}
