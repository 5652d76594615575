//! `qj build --emit promela`: writes a model for Spin.

use super::build_request::BuildRequest;
use super::product::BuildProduct;
use super::run::checks;
use super::verify::models::{choose_model_help, open_models};
use crate::terminal::{CliError, Status, Terminal, update_output};
use quaject_esp::{LoweredModels, ModelSelection};
use quaject_esp_gen::promela;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use quaject_esp_run::{HostCode, HostError};

/// Writes a program's model, or one of its models.
pub(super) fn emit_promela(terminal: &Terminal, request: &BuildRequest) -> Result<BuildProduct, CliError> {
    let subject = ModelSelection { model: request.arguments.model.clone(), scope: None };
    let (modelled, files) = open_models(terminal, request.files(), &subject)?;
    let Some(models) = &modelled.models else { return Err(CliError::reported(Status::Failed)) };
    let [model] = &models[..] else {
        return Err(CliError::from(
            HostError::usage(HostCode::Choice, "the program has several models").help(choose_model_help(models)),
        ));
    };
    let text = match promela::generate(model, checks(request.checked), None) {
        Ok(text) => text,
        Err(refusals) => {
            print_inexpressible(terminal, &modelled, model, &refusals);
            return Err(CliError::reported(Status::Failed));
        }
    };
    update_output(request.output.as_deref(), &text.text)?;
    for approximation in &text.approximations {
        let place = location_text(&model.program, approximation.location);
        terminal.print_note(format!("{place}: {}", approximation.what));
    }
    Ok(BuildProduct { output: request.output.clone().filter(|path| path != "-"), files })
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
