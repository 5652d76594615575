//! Prints a verdict, checks a counterexample of an abstract model on the program itself, and writes its files.

use crate::arguments::Verify;
use crate::terminal::{CliError, Status, print_verdict};
use quaject_esp::LoweredModels;
use quaject_esp_check::{
    Answer, Concretization, Counterexample, Engine, Limits, Options, Report, Spuriousness, Timer, Unfinished, Verdict,
    VerdictRecord, ViolationKind, counterexample_file,
};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::files::write_file;
use quaject_esp_run::{HostCode, HostError, monotonic_time};
use std::fs;
use std::time::Duration;

/// The time and memory of checking a counterexample on the program itself.
const CONCRETIZATION_SECONDS: u64 = 10;
const CONCRETIZATION_BYTES: u64 = 1_000_000_000;

/// A violation of a model in relation to the program itself.
pub(super) struct FoundViolation {
    pub(super) report: Report,
    pub(super) counterexample: Counterexample,
    pub(super) concretization: Concretization,
}

/// The result of a check: its report, and the spurious violations that were found before, beyond which it went on.
pub(super) struct Verified {
    pub(super) report: Report,
    /// Of a violation: its relation to the program itself.
    pub(super) concretization: Option<Concretization>,
    pub(super) spurious: Vec<FoundViolation>,
}

/// Whether a search is repeated for other violations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SearchAgain {
    Yes,
    No,
}

/// The spurious violations after which the search ends in any case.
const MAX_SPURIOUS: usize = 32;

/// Adds the violation of a report to the spurious ones, if it is one. The search goes on beyond it, up to their maximum
/// number, at which the report becomes unfinished.
pub(super) fn add_spurious(
    spurious: &mut Vec<FoundViolation>,
    report: &mut Report,
    concretization: Option<&Concretization>,
) -> SearchAgain {
    let (Verdict::Violated(found), Some(concretization)) = (&report.verdict, concretization) else {
        return SearchAgain::No;
    };
    if !concretization.is_spurious() {
        return SearchAgain::No;
    }
    let (counterexample, concretization) = (found.clone(), concretization.clone());
    spurious.push(FoundViolation { report: report.clone(), counterexample, concretization });
    if spurious.len() < MAX_SPURIOUS {
        return SearchAgain::Yes;
    }
    report.verdict = Verdict::Unfinished(Unfinished::SpuriousViolations(MAX_SPURIOUS as u32));
    SearchAgain::No
}

/// Prints a verdict, and writes the files of its counterexample. Without another violation the first spurious one is
/// shown.
pub(super) fn report_verified(
    modelled: &LoweredModels,
    model: &ModelProgram,
    options: &Options,
    verified: &Verified,
    arguments: &Verify,
    engine: Engine,
) -> Result<Status, CliError> {
    let Verified { report, concretization, spurious } = verified;
    let properties = answers_of_program(report, spurious);
    let is_violated = matches!(report.verdict, Verdict::Violated(_));
    let (shown, concretization, others) = match spurious.split_first() {
        Some((first, others)) if !is_violated => (&first.report, Some(&first.concretization), others),
        _ => (report, concretization.as_ref(), &spurious[..]),
    };
    if arguments.json {
        let spurious = others.iter().map(|found| spurious_to_json(model, found)).collect();
        let beyond = (!verified.spurious.is_empty() && !is_violated).then(|| report.verdict.name());
        let record = shown.record(model, options, concretization);
        print_record(&VerdictRecord { engine, spurious, beyond, properties, ..record })?;
    } else {
        print_verdict(shown.text(model, options).as_bytes())?;
        for found in others {
            let (violation, relation) =
                (found.counterexample.violation.text(&model.program), found.concretization.text());
            print_verdict(format!("also {violation}\n  {relation}\n").as_bytes())?;
        }
        if !spurious.is_empty() && !is_violated {
            print_verdict(format!("beyond: {}\n", report.verdict_text(model, options)).as_bytes())?;
        }
        if let Some(concretization) = concretization {
            print_verdict(format!("{}\n", concretization.text()).as_bytes())?;
        }
    }
    if let Verdict::Violated(found) = &shown.verdict {
        write_counterexample(arguments, modelled, model, found)?;
    }
    let is_undecided =
        |found: &FoundViolation| matches!(found.concretization.spuriousness, Spuriousness::SpuriousRun(_));
    Ok(match (&report.verdict, concretization) {
        (Verdict::Unfinished(_), _) => Status::Unfinished,
        (Verdict::Holds, _) if spurious.iter().any(is_undecided) => Status::Unfinished,
        (_, Some(concretization)) if concretization.is_spurious() => Status::Spurious,
        (Verdict::Violated(_), _) => Status::Failed,
        (Verdict::Holds, _) => Status::Done,
    })
}

/// The answers for the model's properties. One that only runs violate that the program does not have is not violated.
fn answers_of_program(report: &Report, spurious: &[FoundViolation]) -> Vec<(String, Answer)> {
    let mut properties = report.properties.clone();
    for FoundViolation { counterexample, concretization, .. } in spurious {
        let ViolationKind::Property { property, .. } = &counterexample.violation else { continue };
        let answer = match concretization.spuriousness {
            Spuriousness::Spurious => Answer::Spurious,
            // Another run of the program may violate it.
            Spuriousness::SpuriousRun(_) => Answer::Unfinished,
            Spuriousness::Real | Spuriousness::Unknown(_) | Spuriousness::NotChecked => continue,
        };
        properties.iter_mut().filter(|(text, _)| text == property).for_each(|(_, own)| *own = answer);
    }
    properties
}

fn spurious_to_json(model: &ModelProgram, found: &FoundViolation) -> serde_json::Value {
    let FoundViolation { counterexample, concretization, .. } = found;
    serde_json::json!({
        "problem": counterexample.violation.name(),
        "explanation": counterexample.violation.text(&model.program),
        "spuriousness": concretization.spuriousness.name(),
        "causes": concretization.causes,
    })
}

/// Prints a verdict as one line of JSON.
pub(super) fn print_record(record: &VerdictRecord) -> Result<(), CliError> {
    print_verdict(format!("{}\n", record.to_json()).as_bytes())
}

/// Of a violation: whether it is one of the program itself.
pub(super) fn concretize_verdict(
    modelled: &LoweredModels,
    model: &ModelProgram,
    verdict: &Verdict,
    options: &Options,
) -> Option<Concretization> {
    match verdict {
        Verdict::Violated(found) => concretize(modelled, model, found, options),
        Verdict::Holds | Verdict::Unfinished(_) => None,
    }
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

/// Removes counterexamples that an earlier run has written to the files that the command line names: after a run
/// without a violation they would be taken for its result. Another file is not overwritten.
pub(super) fn remove_earlier_output(arguments: &Verify) -> Result<(), CliError> {
    let is_trace: fn(&str) -> bool = counterexample_file::CounterexampleFile::has_header;
    let is_chart: fn(&str) -> bool = |text| text.starts_with("<svg ");
    for (path, is_ours) in [(&arguments.trace, is_trace), (&arguments.chart, is_chart)] {
        let Some(path) = path else { continue };
        let Ok(metadata) = fs::metadata(path) else { continue };
        if !metadata.is_file() {
            continue;
        }
        let bytes = fs::read(path).map_err(|error| HostError::file("read", path.display(), &error))?;
        if !bytes.is_empty() && !std::str::from_utf8(&bytes).is_ok_and(is_ours) {
            let message = format!("`{}` exists and is no counterexample of `qj verify`", path.display());
            let error = HostError::usage(HostCode::Conflict, message);
            return Err(CliError::from(error.help("name another file, or remove this one")));
        }
        fs::remove_file(path).map_err(|error| HostError::file("remove", path.display(), &error))?;
    }
    Ok(())
}
