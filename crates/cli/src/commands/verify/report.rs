//! Prints a verdict, checks a counterexample of an abstract model on the program itself, and writes its files.

use crate::arguments::Verify;
use crate::terminal::{CliError, Status, print_verdict};
use quaject_esp::LoweredModels;
use quaject_esp_check::{
    Concretization, Counterexample, Engine, Limits, Options, Report, Timer, Verdict, VerdictRecord, counterexample_file,
};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::files::write_file;
use quaject_esp_run::monotonic_time;
use std::time::Duration;

/// The time and memory of checking a counterexample on the program itself.
const CONCRETIZATION_SECONDS: u64 = 10;
const CONCRETIZATION_BYTES: u64 = 1_000_000_000;

/// Prints a verdict; of a counterexample also whether it is one of the program itself, and writes its files.
pub(super) fn report_verdict(
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    report: &Report,
    arguments: &Verify,
    engine: Engine,
) -> Result<Status, CliError> {
    let concretize = || match &report.verdict {
        Verdict::Violated(found) => concretize(modelled, model, found, options),
        Verdict::Holds | Verdict::Unfinished(_) => None,
    };
    if arguments.json {
        let record = report.record(model, options, concretize().as_ref());
        print_record(&VerdictRecord { engine, ..record })?;
    } else {
        // Before the check on the program itself, which can take seconds.
        print_verdict(report.text(model, options).as_bytes())?;
        if let Some(concretization) = concretize() {
            print_verdict(format!("{}\n", concretization.text()).as_bytes())?;
        }
    }
    Ok(match &report.verdict {
        Verdict::Holds => Status::Done,
        Verdict::Violated(found) => {
            write_counterexample(arguments, modelled, model, found)?;
            Status::Failed
        }
        Verdict::Unfinished(_) => Status::Unfinished,
    })
}

/// Prints a verdict as one line of JSON.
pub(super) fn print_record(record: &VerdictRecord) -> Result<(), CliError> {
    print_verdict(format!("{}\n", record.to_json()).as_bytes())
}

/// Whether a counterexample is one of the program itself; none if the model is the program itself.
pub(super) fn concretize(
    modelled: &LoweredModels,
    model: &ModelProgram,
    found: &Counterexample,
    options: &Options,
) -> Option<Concretization> {
    let whole = quaject_esp::whole_program_model(modelled, model)?;
    let limits = Limits {
        states: None,
        bytes: Some(CONCRETIZATION_BYTES),
        timer: Some(Timer::limited(monotonic_time, Duration::from_secs(CONCRETIZATION_SECONDS))),
        interrupt: options.limits.interrupt.clone(),
    };
    let concretization = quaject_esp_check::concretize(&whole, model, found, &limits);
    // The environment of the program itself can lack ranges.
    Some(concretization.unwrap_or_else(|_| Concretization::unchecked(model, found)))
}

/// Writes a counterexample to the files that the command line names.
fn write_counterexample(
    arguments: &Verify,
    modelled: &LoweredModels,
    model: &ModelProgram,
    found: &Counterexample,
) -> Result<(), CliError> {
    if let Some(path) = &arguments.trace {
        let files: Vec<(String, String)> =
            modelled.sources.files().iter().map(|file| (file.name.clone(), file.text.clone())).collect();
        write_file(path, counterexample_file::write(model, &files, found).as_bytes())?;
    }
    if let Some(path) = &arguments.chart {
        write_file(path, quaject_esp_check::chart(model, found).as_bytes())?;
    }
    Ok(())
}
