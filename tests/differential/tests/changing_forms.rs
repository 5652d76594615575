//! On-stack replacement of random programs, as in `qj run --adaptive`: by the same program with split blocks, which
//! makes the same choices, and by the program with a random fast path, whose behaviour is one of the program.

use quaject_differential::generate::{Sample, generate};
use quaject_differential::interpret::{Local, compile, interpret, run_changing};
use quaject_differential::modes::{agree, with_path};
use quaject_esp_exec::interpreter::OsrMap;
use quaject_esp_exec::step::Checks;
use quaject_test_support::Effort;

/// IR steps between two replacements: few, so that states of all kinds are replaced; more where each one compiles.
const RUNS: [(u64, Local); 3] = [(1, Local::Interpreted), (9, Local::Interpreted), (100, Local::Native)];

/// The number of replacements; none if the sample has no fast path.
fn check(seed: u64, sample: &Sample) -> Result<Option<u64>, String> {
    let program = compile(sample)?;
    let Some(made) = with_path(seed, &program, Checks::Off) else { return Ok(None) };
    let plain = interpret(sample, &program)?;
    let cut = OsrMap::new(&program, &made.without, &made.without);
    let fast = OsrMap::new(&program, &made.without, &made.program);
    let mut changed = 0;
    for (budget, local) in RUNS {
        let (behaviour, changes) = run_changing(sample, &program, &made.without, &cut, local, budget)?;
        if behaviour != plain {
            return Err(format!("cut, {local:?}, {budget} steps: {behaviour:?}\nit shows by itself: {plain:?}"));
        }
        changed += changes;
        let (behaviour, changes) = run_changing(sample, &program, &made.program, &fast, local, budget)?;
        agree(sample, &program, &plain, &behaviour).map_err(|error| format!("{local:?}, {budget} steps: {error}"))?;
        changed += changes;
    }
    Ok(Some(changed))
}

#[test]
fn on_stack_replacement_preserves_behaviour() {
    let count = Effort::wanted().pick(100, 400, 50_000);
    let (mut failures, mut changed, mut fast) = (Vec::new(), 0, 0);
    for seed in 0..count {
        let sample = generate(seed);
        match check(seed, &sample) {
            Ok(None) => {}
            Ok(Some(changes)) => {
                fast += 1;
                changed += changes;
            }
            Err(error) => failures.push((sample.source.len(), seed, sample.text(), error)),
        }
    }
    failures.sort();
    if let Some((_, seed, source, error)) = failures.first() {
        panic!("{} of {count} fail; the smallest, seed {seed}: {error}\n{source}", failures.len());
    }
    assert!(fast * 4 > count && changed > 10 * fast, "{fast} of {count} programs have a path, {changed} changes");
}
