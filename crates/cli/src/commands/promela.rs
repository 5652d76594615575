//! `qj build --emit promela`: writes a model for Spin.

use super::verify::models::{choose_model_help, open_models};
use crate::arguments::Build;
use crate::terminal::{CliError, Status, Terminal, write_output};
use quaject_esp::{LoweredModels, ModelSelection};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use quaject_esp_run::{HostCode, HostError};

/// Writes a program's model, or one of its models.
pub(crate) fn emit_promela(terminal: &Terminal, arguments: &Build, checks: Checks) -> Result<Status, CliError> {
    let subject = ModelSelection { model: arguments.model.clone(), scope: None };
    let modelled = open_models(terminal, &arguments.file, &subject)?;
    let Some(models) = &modelled.models else { return Ok(Status::Failed) };
    let [model] = &models[..] else {
        return Err(CliError::from(
            HostError::usage(HostCode::Choice, "the program has several models").help(choose_model_help(models)),
        ));
    };
    let text = match promela::generate(model, checks, None) {
        Ok(text) => text,
        Err(refusals) => {
            print_inexpressible(terminal, &modelled, model, &refusals);
            return Ok(Status::Failed);
        }
    };
    write_output(arguments.output.as_deref(), &text.text)?;
    for approximation in &text.approximations {
        let place = location_text(&model.program, approximation.location);
        terminal.print_note(format!("{place}: {}", approximation.what));
    }
    Ok(Status::Done)
}

/// Prints what Promela cannot express of a model.
pub(super) fn print_inexpressible(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    refusals: &[promela::Refusal],
) {
    let diagnostics: Vec<_> =
        refusals.iter().map(|refusal| quaject_esp::inexpressible(modelled, model, refusal)).collect();
    terminal.print_diagnostics(&modelled.sources, &diagnostics);
}
