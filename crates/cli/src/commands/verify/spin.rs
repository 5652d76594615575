//! `qj verify --engine spin`: calls Spin with the options of the command line, and prints its verdicts.

use super::report::{
    FoundViolation, SearchAgain, Verified, add_spurious, concretize_verdict, print_record, report_verified,
};
use super::search::{report_refusal, too_many_instances};
use crate::arguments::Verify;
use crate::commands::promela::print_inexpressible;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp::LoweredModels;
use quaject_esp_check::{Engine, Options, RefinementInput, Refusal, ViolationKind, unfinished_text};
use quaject_esp_gen::promela::Reduction;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::spin::{Spin, SpinRefinementVerdict, VerifyError};
use quaject_esp_run::{HostCode, HostError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The options of Spin.
fn spin(options: &Options, arguments: &Verify) -> Spin {
    Spin {
        memory_mib: u32::try_from(arguments.max_memory).unwrap_or(u32::MAX),
        time: options.limits.time().unwrap_or(Duration::from_secs(3600)),
        reduction: if arguments.no_reduction { Reduction::Off } else { Reduction::On },
        interrupt: options.limits.interrupt.as_ref().map(|interrupt| Arc::clone(&interrupt.0)),
        ..Spin::default()
    }
}

/// Verifies one model. A spurious violation does not end the search: it goes on for others.
pub(super) fn verify_model(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let started = Instant::now();
    let mut spurious: Vec<FoundViolation> = Vec::new();
    let verified = loop {
        let known: Vec<ViolationKind> = spurious.iter().map(|found| found.counterexample.violation.clone()).collect();
        let options = Options { limits: options.limits.after(started.elapsed()), ..options.clone() };
        let verified = match spin(&options, arguments).verify_beyond(model, &options, &known) {
            Ok(verified) => verified,
            Err(VerifyError::Refused(refusal)) => return Err(replay_error(refusal)),
            Err(error) => return report_failure(terminal, modelled, model, error),
        };
        if let Some(incomplete) = &verified.incomplete {
            terminal.print_status(format!("spin: {}", incomplete.text()));
        }
        if verified.unreproduced.is_some() {
            break verified;
        }
        let mut report = verified.report;
        let concretization = concretize_verdict(modelled, model, &report.verdict, &verified.options);
        if add_spurious(&mut spurious, &mut report, concretization.as_ref()) == SearchAgain::Yes {
            continue;
        }
        let found = Verified { report, concretization, spurious };
        return report_verified(modelled, model, &verified.options, &found, arguments, Engine::Spin);
    };
    if arguments.json {
        print_record(&verified.record(model, None))?;
    } else {
        print_verdict(verified.text(model).as_bytes())?;
    }
    Ok(Status::Unfinished)
}

/// Checks that one model's program with fast paths refines the program without.
pub(super) fn verify_refinement(
    terminal: &Terminal,
    modelled: &LoweredModels,
    input: RefinementInput<'_>,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, CliError> {
    let model = input.specification;
    let refinement = match spin(options, arguments).verify_refinement(input, &options.limits) {
        Ok(refinement) => refinement,
        Err(error) => return report_failure(terminal, modelled, model, error),
    };
    if arguments.json {
        print_record(&refinement.record(model))?;
    } else {
        print_verdict(refinement.text(model).as_bytes())?;
    }
    Ok(match &refinement.verdict {
        SpinRefinementVerdict::Holds if refinement.enters_every_path() => Status::Done,
        // Nothing is known of a path that is never entered.
        SpinRefinementVerdict::Holds
        | SpinRefinementVerdict::PossiblySpurious
        | SpinRefinementVerdict::Unfinished(_) => Status::Unfinished,
        SpinRefinementVerdict::Violated => Status::Failed,
    })
}

/// Reports why there is no verdict.
fn report_failure(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    error: VerifyError,
) -> Result<Status, CliError> {
    match error {
        VerifyError::Inexpressible(refusals) => {
            print_inexpressible(terminal, modelled, model, &refusals);
            Ok(Status::Usage)
        }
        VerifyError::Refused(refusal) => {
            report_refusal(terminal, modelled, model, refusal)?;
            Ok(Status::Usage)
        }
        VerifyError::ObserverUnfinished { observer, limit } => {
            print_verdict(format!("{}\n", unfinished_text(&observer, limit.into())).as_bytes())?;
            Ok(Status::Unfinished)
        }
        VerifyError::Host(error) => Err(CliError::from(error)),
    }
}

/// The error of a trail that cannot be replayed.
fn replay_error(refusal: Refusal) -> CliError {
    CliError::from(match refusal {
        Refusal::TooLarge(error) => HostError::new(HostCode::Size, error.to_string()),
        Refusal::TooMany(instances) => too_many_instances(instances),
        Refusal::Property(bad) => {
            let error = HostError::new(HostCode::Content, bad.message);
            match bad.help {
                Some(help) => error.help(help),
                None => error,
            }
        }
        Refusal::Unbounded(_) => {
            HostError::new(HostCode::Content, "the model lacks ranges of what its environment sends")
        }
    })
}
