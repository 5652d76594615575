//! `qj check --verify`: a search of some milliseconds in addition to the other checks.

use super::super::ProgramFiles;
use super::models::unknown_name;
use crate::terminal::{CliError, Terminal, print_verdict};
use quaject_esp::ModelSelection;
use quaject_esp_check::{Limits, Options, Timer, Verdict};
use quaject_esp_run::monotonic_time;
use std::time::{Duration, Instant};

/// The time for all models of a program, in milliseconds.
const QUICK_CHECK_MS: u64 = 100;
/// The memory of each search.
const QUICK_CHECK_BYTES: u64 = 256_000_000;

/// Verifies a program within a short time; true if a run has a violation, which is printed.
pub(crate) fn quick_check(terminal: &Terminal, files: ProgramFiles<'_>) -> Result<bool, CliError> {
    let started = Instant::now();
    let (source, mut disk) = ProgramFiles { fast_paths: &[], ..files }.open()?;
    let modelled = quaject_esp::models(source, &mut disk, &ModelSelection::default()).map_err(unknown_name)?;
    let models = modelled.models.unwrap_or_default();
    let (mut is_violated, mut undecided) = (false, Vec::new());
    for (number, model) in models.iter().enumerate() {
        let left = Duration::from_millis(QUICK_CHECK_MS).saturating_sub(started.elapsed());
        let time = left / (models.len() - number) as u32;
        let limits = Limits {
            bytes: Some(QUICK_CHECK_BYTES),
            timer: Some(Timer::limited(monotonic_time, time)),
            ..Limits::default()
        };
        let options = Options { limits, ..Options::default() };
        match quaject_esp_check::check(model, &options, &mut |_| {}) {
            Ok(report) => match report.verdict {
                Verdict::Holds => {}
                Verdict::Violated(_) => {
                    print_verdict(report.text(model, &options).as_bytes())?;
                    is_violated = true;
                }
                Verdict::Unfinished(_) => undecided.push("searches longer"),
            },
            Err(_) => undecided.push("lists what is missing"),
        }
    }
    if let (false, Some(what)) = (is_violated, undecided.first()) {
        terminal
            .print_note(format!("{}: not verified in {QUICK_CHECK_MS} ms; `qj verify` {what}", files.root.display()));
    }
    Ok(is_violated)
}
