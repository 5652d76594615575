//! Refinement checks of random programs with random fast paths: the program with paths has no behaviour that the
//! program without has not, for every environment and schedule.

use quaject_differential::generate::{Sample, generate};
use quaject_differential::modes::with_path;
use quaject_differential::talkative;
use quaject_esp_check::{Limits, RefinementInput, RefinementVerdict, Timer, refine};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::model::{ModelProgram, Values};
use quaject_esp_ir::text::print;
use quaject_esp_lower::lower_model;
use quaject_esp_run::monotonic_time;
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::span::{SourceFile, SourceMap};
use quaject_test_support::Effort;
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

fn compare(seeds: impl IntoIterator<Item = u64>, sample: impl Fn(u64) -> Sample) {
    let (mut programs, mut held, mut entered, mut left) = (0, 0, 0, 0);
    for seed in seeds {
        programs += 1;
        let sample = sample(seed);
        let text = sample.text();
        let Some(model) = model(&sample) else { continue };
        let Some(made) = with_path(seed, &model.program, Checks::On) else { continue };
        let input = RefinementInput {
            specification: &model,
            split_specification: &made.without,
            implementation: &made.program,
        };
        let timer = Some(Timer::limited(monotonic_time, Duration::from_secs(1)));
        let limits = Limits { states: Some(20_000), timer, ..Limits::default() };
        let report = refine(input, &limits, &mut |_| {}).expect("samples are small");
        match report.verdict {
            RefinementVerdict::Holds => held += 1,
            RefinementVerdict::Unfinished(_) => {}
            RefinementVerdict::Violated(_) => panic!(
                "seed {seed}: {}\n{}\n{text}\n{}",
                report.text(&model),
                made.path_attempts[0].text(&model.program),
                print(&made.program)
            ),
        }
        entered += usize::from(report.paths.iter().any(|path| path.is_entered));
        left += report.paths.iter().map(|path| path.exits_taken).sum::<usize>();
    }
    println!(
        "of {programs} programs {held} were compared whole; {entered} paths were entered and left at {left} places"
    );
}

#[test]
fn programs_that_end() {
    compare(0..Effort::wanted().pick(30, 120, 100_000), generate);
}

/// Paths that allocate and free objects in another order than the program.
#[test]
fn programs_with_renumbered_objects() {
    compare([1482, 1986], generate);
}

#[test]
fn programs_without_a_common_order() {
    compare(0..Effort::wanted().pick(30, 120, 100_000), talkative::sample);
}
