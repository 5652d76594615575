//! `qj verify --fastpath`: checks that each model's program with fast paths refines the program without.

use super::super::ProgramFiles;
use super::models::unknown_name;
use super::report::print_record;
use super::search::{unwrap_or_report, with_progress};
use super::{spin, verify_each};
use crate::arguments::{Verify, VerifyEngine};
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp::{Limits, LoweredModels, ModelSelection, RefinementModel, refinement_models};
use quaject_esp_check::{Options, RefinementInput, RefinementVerdict, refine};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::{HostCode, HostError};

pub(super) fn verify_refinement(
    terminal: &Terminal,
    files: ProgramFiles<'_>,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let (source, mut disk) = files.open()?;
    let subject = ModelSelection { model: arguments.model.clone(), scope: None };
    let compared = refinement_models(source, &mut disk, &subject, Limits::default()).map_err(unknown_name)?;
    let modelled = &compared.modelled;
    terminal.print_diagnostics(&modelled.sources, &modelled.diagnostics);
    let (Some(models), Some(fast)) = (&modelled.models, &compared.models) else { return Ok(Status::Usage) };
    if fast.iter().all(|fast| fast.path_attempts.is_empty() && fast.excluded.is_empty()) {
        let error = HostError::new(HostCode::Empty, format!("`{}` has no fast paths to compare", files.root.display()));
        return Err(CliError::from(
            error
                .help("write one, name its file with `--fast-paths FILE.fp`, or have one found: `qj fastpath suggest`"),
        ));
    }
    verify_each(terminal, arguments, models.iter().zip(fast), |(model, fast), options| {
        verify_model(terminal, modelled, model, fast, options, arguments)
    })
}

/// Checks one model's program.
fn verify_model(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    fast: &RefinementModel,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, CliError> {
    for attempt in fast.path_attempts.iter().filter(|attempt| attempt.result.is_err()) {
        terminal.print_warning(attempt.text(&fast.implementation));
    }
    for (path, process) in &fast.excluded {
        terminal.print_warning(format!("no fast path {path}: the model omits `{process}`"));
    }
    if fast.implementation.paths.is_empty() {
        let of = model.name.as_ref().map_or_else(String::new, |name| format!(" of model `{name}`"));
        let error = HostError::new(
            HostCode::Empty,
            format!("no fast path{of} could be formed, so that nothing can be compared"),
        );
        return Err(CliError::from(error.help("the warnings above give the reasons; `qj build --report` has details")));
    }
    let input = RefinementInput {
        specification: model,
        split_specification: &fast.specification,
        implementation: &fast.implementation,
    };
    match arguments.engine {
        VerifyEngine::Builtin => {
            let checked = with_progress(terminal, |progress| refine(input, &options.limits, progress));
            let Some(report) = unwrap_or_report(terminal, modelled, model, checked)? else { return Ok(Status::Usage) };
            if arguments.json {
                print_record(&report.record(model))?;
            } else {
                print_verdict(report.text(model).as_bytes())?;
            }
            Ok(match &report.verdict {
                RefinementVerdict::Holds if report.paths.iter().all(|path| path.is_entered) => Status::Done,
                // Nothing is known of a path that is never entered.
                RefinementVerdict::Holds | RefinementVerdict::Unfinished(_) => Status::Unfinished,
                RefinementVerdict::Violated(_) => Status::Failed,
            })
        }
        VerifyEngine::Spin => spin::verify_refinement(terminal, modelled, input, options, arguments),
    }
}
