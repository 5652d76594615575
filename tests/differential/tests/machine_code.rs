//! Random programs whose local code runs as machine code: every choice, every message and the end are those of the
//! interpreter, whole and in small parts, with and without checks, as processes, after the optimiser's passes, fused,
//! with unrolled, with direct hand-off, and with random fast paths.

use quaject_differential::generate::{Sample, generate};
use quaject_differential::interpret::{Local, compile, run_locally};
use quaject_differential::modes::{Mode, transform};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;
use quaject_test_support::Effort;

/// IR steps per part of a run: all, or so few that loops are left and entered repeatedly.
const BUDGETS: [u64; 2] = [20_000_000, 17];

fn check(sample: &Sample, program: &Program) -> Result<(), String> {
    for checks in [Checks::Off, Checks::On] {
        let wanted = run_locally(sample, program, checks, Local::Interpreted, BUDGETS[0]);
        for budget in BUDGETS {
            let found = run_locally(sample, program, checks, Local::Native, budget);
            if found != wanted {
                return Err(format!("{checks:?}, {budget} steps at a time:\n{found:?}\ninterpreted:\n{wanted:?}"));
            }
        }
    }
    Ok(())
}

/// The optimised program, as machine code and interpreted, against the original program, interpreted.
fn check_optimised(sample: &Sample, program: &Program) -> Result<(), String> {
    for checks in [Checks::Off, Checks::On] {
        let optimised = quaject_esp::optimise(program.clone(), checks == Checks::On);
        let wanted = run_locally(sample, program, checks, Local::Interpreted, BUDGETS[0]);
        for local in [Local::Native, Local::Interpreted] {
            let found = run_locally(sample, &optimised, checks, local, BUDGETS[0]);
            if found != wanted {
                return Err(format!("{checks:?}, {local:?}:\n{found:?}\nas written:\n{wanted:?}"));
            }
        }
    }
    Ok(())
}

fn check_both(sample: &Sample) -> Result<(), String> {
    let program = compile(sample)?;
    check(sample, &program)?;
    check_optimised(sample, &program).map_err(|error| format!("optimised: {error}"))?;
    for mode in [Mode::Automata, Mode::Auto, Mode::FastPath] {
        if let Some(made) = transform(sample.seed, &program, mode)? {
            check(sample, &made).map_err(|error| format!("{mode:?}: {error}"))?;
        }
    }
    Ok(())
}

#[test]
fn machine_code_makes_the_interpreters_choices() {
    let first: u64 = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let count = Effort::wanted().pick(400, 2_500, 200_000);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let sample = generate(seed);
        if let Err(error) = check_both(&sample) {
            failures.push((sample.source.len(), seed, sample.text(), error));
        }
    }
    failures.sort();
    if let Some((_, seed, source, error)) = failures.first() {
        panic!("{} of {count} fail; the smallest, seed {seed}: {error}\n{source}", failures.len());
    }
}
