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

use crate::arguments::{Verify, VerifyEngine};
use crate::terminal::{CliError, Status, Terminal};
use models::{choose_model_help, open_models};
use options::{refuse_options_without_effect, search_options, subject};
use quaject_esp_check::Options;
use quaject_esp_run::{HostCode, HostError, Interrupts};
use report::remove_earlier_output;

/// Verifies a program. The status is 1 at a violation, so that an error in the input has that of the command line, 2.
pub(crate) fn verify(terminal: &Terminal, arguments: Verify) -> Result<Status, CliError> {
    verify_program(terminal, arguments).map_err(|error| match error.status {
        Status::Failed => CliError { status: Status::Usage, ..error },
        _ => error,
    })
}

fn verify_program(terminal: &Terminal, arguments: Verify) -> Result<Status, CliError> {
    refuse_options_without_effect(&arguments)?;
    remove_earlier_output(&arguments)?;
    if arguments.fastpath {
        return refinement::verify_refinement(terminal, &arguments);
    }
    let modelled = open_models(terminal, &arguments.file, &subject(&arguments))?;
    let Some(models) = &modelled.models else { return Ok(Status::Usage) };
    if models.len() > 1 && (arguments.trace.is_some() || arguments.chart.is_some()) {
        let error = HostError::usage(
            HostCode::Choice,
            "`--trace` and `--chart` keep one run, and the program has several models",
        );
        return Err(CliError::from(error.help(choose_model_help(models))));
    }
    verify_each(terminal, &arguments, models.iter(), |model, options| match arguments.engine {
        VerifyEngine::Builtin => builtin::verify_model(terminal, &modelled, model, options, &arguments),
        VerifyEngine::Spin => spin::verify_model(terminal, &modelled, model, options, &arguments),
    })
}

/// Verifies each model in turn and combines the statuses: a violation outweighs an error in the input, that an open
/// question, and that a spurious violation. A signal ends the process after the verdict that it interrupted.
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
        let weight = |status: Status| {
            let by_weight = [Status::Spurious, Status::Unfinished, Status::Usage, Status::Failed];
            by_weight.iter().position(|known| *known == status)
        };
        if weight(status) > weight(combined) {
            combined = status;
        }
        if let (Status::Unfinished, Some(signal)) = (status, interrupts.signal()) {
            terminal.die_of(signal);
        }
    }
    Ok(combined)
}
