//! Runs a search with a progress line, and reports why a model cannot be checked.

use crate::terminal::{CliError, Terminal, show_progress};
use quaject_esp::LoweredModels;
use quaject_esp_check::{MAX_CHECKED_INSTANCES, Progress, Refusal};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::{HostCode, HostError};
use std::time::Duration;

/// Runs a search; on a terminal, with a progress line after a second.
pub(super) fn with_progress<T>(terminal: &Terminal, search: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let shows_progress = terminal.shows_progress();
    let mut is_shown = false;
    let mut progress = |now: Progress| {
        if shows_progress && now.elapsed > Duration::from_secs(1) {
            is_shown = true;
            show_progress(&progress_line(&now));
        }
    };
    let result = search(&mut progress);
    if is_shown {
        show_progress("");
    }
    result
}

fn progress_line(now: &Progress) -> String {
    let rate = now.states as f64 / now.elapsed.as_secs_f64();
    let megabytes = now.bytes as f64 / 1e6;
    format!("{} states, {rate:.0}/s, {megabytes:.0} MB, depth {}", now.states, now.depth)
}

/// The result of a search; none if the model is incomplete or a property is malformed, which is reported.
pub(super) fn unwrap_or_report<T>(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    checked: Result<T, Refusal>,
) -> Result<Option<T>, CliError> {
    match checked {
        Ok(report) => Ok(Some(report)),
        Err(refusal) => report_refusal(terminal, modelled, model, refusal).map(|()| None),
    }
}

/// Prints the diagnostics of an incomplete model or a malformed property; an error if the model is too large.
pub(super) fn report_refusal(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    refusal: Refusal,
) -> Result<(), CliError> {
    match refusal {
        Refusal::TooLarge(error) => Err(CliError::from(
            HostError::new(HostCode::Size, error.to_string())
                .help("make its arrays, messages, pools or replicas smaller in the model, or allow it: `--max-memory`"),
        )),
        Refusal::TooMany(instances) => Err(CliError::from(too_many_instances(instances))),
        Refusal::Property(bad) => {
            let program = modelled.program.as_ref().expect("there are models of it");
            terminal.print_diagnostics(&modelled.sources, &[quaject_esp::invalid_property(program, model, &bad)]);
            Ok(())
        }
        Refusal::Unbounded(missing) => {
            let program = modelled.program.as_ref().expect("there are models of it");
            terminal.print_diagnostics(&modelled.sources, &quaject_esp::missing_ranges(program, model, &missing));
            Ok(())
        }
    }
}

/// The error of a program with more instances than a liveness or refinement check supports.
pub(super) fn too_many_instances(instances: u32) -> HostError {
    HostError::new(
        HostCode::Size,
        format!(
            "properties, `--starvation` and `--fastpath` support at most {MAX_CHECKED_INSTANCES} instances; the model has \
             {instances}"
        ),
    )
    .help("a `model` with fewer replicas, or with `slice`, explores a smaller part")
}
