//! The options of `qj verify` as options of the checker, and the combinations that have no effect.

use crate::arguments::{Verify, VerifyEngine};
use crate::terminal::CliError;
use quaject_esp::{ModelSelection, PartSelection};
use quaject_esp_check::{Compaction, Interrupt, Limits, Liveness, Options, Reduction, Symmetry, Timer};
use quaject_esp_run::{HostCode, HostError, Interrupts, monotonic_time};

/// Rejects options that the engine or the kind of check would ignore.
pub(super) fn refuse_options_without_effect(arguments: &Verify) -> Result<(), CliError> {
    let max_states = ("--max-states", arguments.max_states.is_some());
    let search = [
        ("--starvation", arguments.starvation),
        ("--compact", arguments.compact),
        ("--symmetry", arguments.symmetry),
        ("--threads", arguments.threads > 1),
    ];
    let output = [("--trace", arguments.trace.is_some()), ("--chart", arguments.chart.is_some())];
    let first = |options: &[(&'static str, bool)]| options.iter().find(|(_, is_used)| *is_used).map(|used| used.0);
    if arguments.engine == VerifyEngine::Spin
        && let Some(option) = first(&[&search[..], &[max_states]].concat())
    {
        let error = HostError::usage(HostCode::Conflict, format!("`{option}` has no effect with Spin"));
        return Err(CliError::from(error.help("the built-in engine supports it: leave out `--engine spin`")));
    }
    if arguments.fastpath
        && let Some(option) = first(&[&search[..], &output].concat())
    {
        let error = HostError::usage(HostCode::Conflict, format!("`{option}` has no effect with `--fastpath`"));
        return Err(CliError::from(
            error.help("leave it out; without `--fastpath` it applies to the program without fast paths"),
        ));
    }
    Ok(())
}

/// The part of the program that the command line selects.
pub(super) fn subject(arguments: &Verify) -> ModelSelection {
    let scope = match (&arguments.process, &arguments.slice[..]) {
        (Some(process), _) => Some(PartSelection::Process(process.clone())),
        (None, []) => None,
        (None, names) => Some(PartSelection::Slice(names.to_vec())),
    };
    ModelSelection { model: arguments.model.clone(), scope }
}

/// The options of the search.
pub(super) fn search_options(arguments: &Verify, interrupts: &Interrupts) -> Options {
    Options {
        reduction: if arguments.no_reduction { Reduction::Communications } else { Reduction::On },
        symmetry: if arguments.symmetry { Symmetry::On } else { Symmetry::Off },
        liveness: if arguments.starvation { Liveness::StarvationFreedom } else { Liveness::Ignored },
        compaction: if arguments.compact { Compaction::On } else { Compaction::Off },
        threads: usize::from(arguments.threads),
        limits: Limits {
            states: arguments.max_states,
            bytes: Some(arguments.max_memory.saturating_mul(1_000_000)),
            timer: Some(Timer { now: monotonic_time, limit: arguments.max_time }),
            interrupt: Some(Interrupt(interrupts.asked())),
        },
    }
}
