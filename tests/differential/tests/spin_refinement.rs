//! Refinement checks of random programs with random fast paths by Spin: it agrees with the built-in checker, and finds
//! the violations of mutants.

use quaject_differential::generate::{Sample, generate};
use quaject_differential::modes::with_path;
use quaject_differential::talkative;
use quaject_esp_check::{
    Limits, Mismatch, ObserverOutcome, RefinementInput, RefinementVerdict, Timer, build_observer, refine,
};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::{self, Reduction};
use quaject_esp_ir::ir::{Block, BlockId, Leave, Program, Terminator};
use quaject_esp_ir::model::{ModelProgram, Values};
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_lower::lower_model;
use quaject_esp_run::monotonic_time;
use quaject_esp_run::spin::{Spin, SpinOutcome, SpinProperty};
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::span::{SourceFile, SourceMap};
use quaject_test_support::{Effort, tool};
use std::ffi::OsString;
use std::time::Duration;

/// A program in an environment with one message; none if it is not well-typed.
fn model(sample: &Sample) -> Option<ModelProgram> {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("sample.esp", sample.source.clone()));
    let program = analyze(&mut sources, root, &mut sample.loader()).program?;
    let mut model = lower_model(&program, None, None, &sources);
    model.messages.iter_mut().flatten().for_each(|values| *values = Values::One);
    model.results.iter_mut().for_each(|values| *values = Values::One);
    Some(model)
}

fn limits() -> Limits {
    let timer = Some(Timer::limited(monotonic_time, Duration::from_secs(1)));
    Limits { states: Some(5_000), timer, ..Limits::default() }
}

/// What Spin finds in the product of observer and implementation; none if the model is beyond it or over-approximates.
fn check_with_spin(input: RefinementInput<'_>) -> Option<(SpinOutcome, bool)> {
    let Ok(ObserverOutcome::Automaton(observer)) = build_observer(input, &limits()) else { return None };
    let with =
        ModelProgram { program: input.implementation.clone(), properties: Vec::new(), ..input.specification.clone() };
    let model = promela::generate(&with, Checks::On, Some(&observer)).ok()?;
    if !model.approximations.is_empty() {
        return None;
    }
    let spin = Spin {
        compiler: Some(vec![OsString::from("tcc")]),
        memory_mib: 1024,
        time: Duration::from_secs(10),
        depth: 200_000,
        reduction: Reduction::Off,
        interrupt: None,
    };
    match spin.search(&model, input.implementation.instance_count(), SpinProperty::Refinement) {
        Ok(search) => Some((search.outcome, !search.entered.is_empty())),
        // A mutant can loop without a statement, which Spin rejects.
        Err(trouble) if trouble.to_string().contains("infinite goto loop") => None,
        Err(trouble) => panic!("{trouble}\n{}", model.text),
    }
}

/// Mutants of a program: at one exit of a path, the trigger resumes at another wait, or a member is omitted.
fn mutants(program: &Program) -> Vec<Program> {
    let mut mutants = Vec::new();
    for (process, body) in program.processes.iter().map(|process| &process.body).enumerate() {
        for (block, leave) in body.blocks.iter().enumerate().filter_map(|(index, block)| match &block.terminator {
            Terminator::Leave(leave) => Some((index, leave)),
            _ => None,
        }) {
            let mut add = |leave: Leave| {
                let mut mutant = program.clone();
                mutant.processes[process].body.blocks[block].terminator = Terminator::Leave(leave);
                if verify(&mutant).is_empty() {
                    mutants.push(mutant);
                }
            };
            for member in 0..leave.members.len() {
                let mut wrong = leave.clone();
                wrong.members.remove(member);
                add(wrong);
            }
            let is_wait = |(_, block): &(usize, &Block)| matches!(block.terminator, Terminator::Wait(_));
            for (other, _) in body.blocks.iter().enumerate().filter(is_wait) {
                let mut wrong = leave.clone();
                wrong.trigger.to = BlockId(other as u32);
                add(wrong);
            }
        }
    }
    mutants
}

/// Checks samples and their mutants; the number of mutants that Spin finds. None if a tool is missing.
fn compare(seeds: impl IntoIterator<Item = u64>, sample: impl Fn(u64) -> Sample) -> Option<usize> {
    if tool(&["spin"]).is_none() || tool(&["tcc"]).is_none() {
        return None;
    }
    let (mut compared, mut entered, mut wrong) = (0, 0, 0);
    for seed in seeds {
        let sample = sample(seed);
        let text = sample.text();
        let Some(model) = model(&sample) else { continue };
        let Some(made) = with_path(seed, &model.program, Checks::On) else { continue };
        let input = RefinementInput {
            specification: &model,
            split_specification: &made.without,
            implementation: &made.program,
        };
        let report = refine(input, &limits(), &mut |_| {}).expect("samples are small");
        if report.verdict != RefinementVerdict::Holds {
            continue;
        }
        let Some((found, is_entered)) = check_with_spin(input) else { continue };
        let whole = || format!("seed {seed}\n{text}\n{}", print(&made.program));
        match found {
            SpinOutcome::NoViolation => {}
            SpinOutcome::Unfinished(_) => continue,
            _ => panic!("Spin finds {found:?} in {}", whole()),
        }
        compared += 1;
        assert_eq!(is_entered, report.paths.iter().any(|path| path.is_entered), "{}", whole());
        entered += usize::from(is_entered);
        for mutant in mutants(&made.program).iter().take(3) {
            let input = RefinementInput { implementation: mutant, ..input };
            let report = refine(input, &limits(), &mut |_| {}).expect("samples are small");
            // A mismatch of the exit state can be invisible; Spin finds some of them.
            let RefinementVerdict::Violated(difference) = &report.verdict else { continue };
            let Some((found, _)) = check_with_spin(input) else { continue };
            let is_found = !matches!(found, SpinOutcome::NoViolation | SpinOutcome::Unfinished(_));
            let must_be = difference.mismatch == Mismatch::VisibleAction;
            assert!(is_found || !must_be, "Spin misses: {}\n{}\n{}", report.text(&model), whole(), print(mutant));
            wrong += usize::from(is_found);
        }
    }
    println!("{compared} programs compared, in {entered} a path was entered; {wrong} wrong ones found");
    assert!(entered > 0, "the samples say nothing");
    Some(wrong)
}

#[test]
fn programs_that_end() {
    // Promela replaces one value of the environment by another one where a pattern tests for it.
    let is_closed = |seed: &u64| !generate(*seed).source.contains("external out");
    let wrong = compare((0..Effort::wanted().pick(100, 500, 10_000)).filter(is_closed), generate);
    assert_ne!(wrong, Some(0), "Spin finds nothing in what was made wrong");
}

/// Few of these mutants are visible.
#[test]
fn programs_without_a_common_order() {
    compare(0..Effort::wanted().pick(50, 500, 10_000), talkative::sample);
}
