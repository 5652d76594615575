//! Runs ranges of seeds in parallel, and collects the failures.

use crate::c;
use crate::compare::{Conformance, compare_runs};
use crate::generate::generate;
use crate::interpret::{compile, interpret};
use crate::machine::Compiler;
use crate::modes::{Agreement, Mode, agree, same, transform};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The results of a range of seeds.
#[derive(Default, Debug)]
pub struct Findings {
    /// Programs that were run.
    pub programs: u64,
    /// Of those, how many have the same run on both engines; the others have another run of the semantics.
    pub same: u64,
    /// Of other forms: how many could not be compared, because there are too many states.
    pub unknown: u64,
    /// Seeds and their failures.
    pub failures: Vec<(u64, String)>,
}

/// The configuration of a range of seeds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seeds.
    pub seeds: std::ops::Range<u64>,
    /// Programs in one C file.
    pub batch: u64,
    /// Batches at a time.
    pub workers: usize,
    /// The form of the programs.
    pub mode: Mode,
    /// The C compiler.
    pub compiler: Compiler,
    /// The number of failures at which to stop.
    pub patience: usize,
}

/// Runs every seed of the plan.
///
/// # Panics
/// When no temporary folder can be made.
pub fn prove(plan: &Plan) -> Findings {
    // Relaxed: the counter hands out numbers and orders nothing else.
    let next = AtomicU64::new(plan.seeds.start);
    let findings = Mutex::new(Findings::default());
    std::thread::scope(|scope| {
        for _ in 0..plan.workers {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                loop {
                    let first = next.fetch_add(plan.batch, Ordering::Relaxed);
                    if first >= plan.seeds.end {
                        return;
                    }
                    let seeds = first..(first + plan.batch).min(plan.seeds.end);
                    let found = batch(plan, folder.path(), seeds);
                    let mut all = findings.lock().expect("workers do not panic while they hold the lock");
                    all.programs += found.programs;
                    all.same += found.same;
                    all.unknown += found.unknown;
                    all.failures.extend(found.failures);
                    if all.failures.len() >= plan.patience {
                        return;
                    }
                }
            });
        }
    });
    let mut findings = findings.into_inner().expect("workers do not panic while they hold the lock");
    findings.failures.sort();
    findings
}

fn batch(plan: &Plan, folder: &std::path::Path, seeds: std::ops::Range<u64>) -> Findings {
    let mut findings = Findings::default();
    let mut compiled = Vec::new();
    for sample in seeds.map(generate) {
        match compile(&sample) {
            Ok(program) => match transform(sample.seed, &program, plan.mode) {
                Ok(Some(made)) => compiled.push((sample, program, made)),
                Ok(None) => {}
                Err(error) => findings.failures.push((sample.seed, error)),
            },
            Err(error) => findings.failures.push((sample.seed, format!("refused: {error}"))),
        }
    }
    findings.programs = (compiled.len() + findings.failures.len()) as u64;
    let programs: Vec<_> = compiled.iter().map(|(sample, _, made)| (sample, made)).collect();
    match c::run(&plan.compiler, folder, &programs) {
        Ok(results) => {
            for ((sample, program, made), result) in compiled.iter().zip(results) {
                // Passes change no choice: the original program can replay the run of C.
                let like = if matches!(plan.mode, Mode::Process | Mode::Direct) { program } else { made };
                let compared = result.and_then(|c_run| compare_runs(sample, like, &c_run));
                let conformance = compared.and_then(|(conformance, behaviour)| {
                    if plan.mode == Mode::Process {
                        return Ok(conformance);
                    }
                    let plain = interpret(sample, program)?;
                    for behaviour in [behaviour, interpret(sample, made)?] {
                        if plan.mode == Mode::Auto {
                            same(program, &plain, &behaviour)?;
                        } else if agree(sample, program, &plain, &behaviour)? == Agreement::Unknown {
                            findings.unknown += 1;
                        }
                    }
                    Ok(conformance)
                });
                match conformance {
                    Ok(Conformance::Same) => findings.same += 1,
                    Ok(Conformance::Allowed) => {}
                    Err(error) => findings.failures.push((sample.seed, error)),
                }
            }
        }
        Err(error) if programs.len() == 1 => findings.failures.push((programs[0].0.seed, error)),
        Err(_) => {
            // Find the program of the file that is not accepted.
            for program in &programs {
                match c::run(&plan.compiler, folder, std::slice::from_ref(program)) {
                    Ok(_) => {}
                    Err(error) => findings.failures.push((program.0.seed, format!("C compiler: {error}"))),
                }
            }
        }
    }
    findings
}
