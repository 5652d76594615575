//! Random programs, fused and as they are, on the interpreter: both send the same and end alike, where choices cannot be
//! seen.

use quaject_differential::generate::{Outcome as Visible, Sample, generate};
use quaject_differential::interpret::{Shown, compile, interpret};
use quaject_esp_ir::ir::{ChannelId, Fault, Program};
use quaject_esp_ir::report::Outcome;
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_opt::fuse::Limits;
use quaject_esp_opt::groups::fuse_all;
use quaject_test_support::Effort;

/// How many groups were fused, or why the fused program is wrong.
fn check(sample: &Sample) -> Result<usize, String> {
    let program = compile(sample)?;
    let (fused, attempts) = fuse_all(&program, false, Limits { nodes: 1000, ..Limits::default() });
    let count = attempts.iter().filter(|attempt| attempt.is_fused()).count();
    if count == 0 {
        return Ok(0);
    }
    if let Some(error) = verify(&fused).first() {
        return Err(format!("{}\n{}", error.text(&fused), print(&fused)));
    }
    let (plain, shown) = (interpret(sample, &program)?, interpret(sample, &fused)?);
    let same = match (&plain.outcome, &shown.outcome) {
        (Outcome::Faulted(a), Outcome::Faulted(b)) => a.fault == b.fault || schedule_decides(a.fault, b.fault),
        (Outcome::Faulted(report), _) | (_, Outcome::Faulted(report)) => report.fault == Fault::Pool,
        (a, b) => a == b && same_messages(&program, &plain, &shown),
    };
    if same || sample.outcome == Visible::Open {
        return Ok(count);
    }
    Err(format!("{:?}\n{:?}\nfused:\n{:?}\n{:?}", plain.messages, plain.outcome, shown.messages, shown.outcome))
}

/// Which of two faults stops a program first may depend on the order in which its processes run.
fn schedule_decides(a: Fault, b: Fault) -> bool {
    a != Fault::Deadlock && b != Fault::Deadlock
}

fn same_messages(program: &Program, a: &Shown, b: &Shown) -> bool {
    (0..program.channels.len() as u32).map(ChannelId).all(|channel| {
        let on = |shown: &Shown| -> Vec<_> {
            shown.messages.iter().filter(|(other, _)| *other == channel).cloned().collect()
        };
        on(a) == on(b)
    })
}

#[test]
fn fused_programs_do_the_same() {
    let first: u64 = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let (mut fused, mut failures) = (0, Vec::new());
    let count = Effort::wanted().pick(400, 4_000, 200_000);
    for seed in first..first + count {
        let sample = generate(seed);
        match check(&sample) {
            Ok(count) => fused += count,
            Err(error) => failures.push((sample.source.len(), seed, sample.source, error)),
        }
    }
    failures.sort();
    if let Some((_, seed, source, error)) = failures.first() {
        panic!(
            "{} of {count} fail, {fused} groups fused; the smallest, seed {seed}: {error}\n{source}",
            failures.len()
        );
    }
    println!("{fused} groups fused");
    assert!(fused as u64 > count / 20, "only {fused} groups of {count} programs are fused");
}
