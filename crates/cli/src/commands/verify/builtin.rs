//! Verification by the built-in engine, beyond violations that the program does not have.

use super::report::{FoundViolation, SearchAgain, Verified, add_spurious, concretize_verdict, report_verified};
use super::search::{unwrap_or_report, with_progress};
use crate::arguments::Verify;
use crate::terminal::{CliError, Status, Terminal};
use quaject_esp::LoweredModels;
use quaject_esp_check::{Engine, Options, ViolationKind, check_beyond};
use quaject_esp_ir::model::ModelProgram;
use std::time::Instant;

/// Verifies a model. A spurious violation does not end the search: it goes on for others.
pub(super) fn verify_model(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let started = Instant::now();
    let mut spurious: Vec<FoundViolation> = Vec::new();
    loop {
        let known: Vec<ViolationKind> = spurious.iter().map(|found| found.counterexample.violation.clone()).collect();
        let options = Options { limits: options.limits.after(started.elapsed()), ..options.clone() };
        let checked = with_progress(terminal, |progress| check_beyond(model, &options, &known, progress));
        let Some(report) = unwrap_or_report(terminal, modelled, model, checked)? else { return Ok(Status::Usage) };
        let concretization = concretize_verdict(modelled, model, &report.verdict, &options);
        let mut report = report;
        if add_spurious(&mut spurious, &mut report, concretization.as_ref()) == SearchAgain::Yes {
            continue;
        }
        let verified = Verified { report, concretization, spurious };
        return report_verified(modelled, model, &options, &verified, arguments, Engine::Builtin);
    }
}
