//! Random programs on both engines: a few in a quick run, thousands before a commit, a million in a soak run.

use quaject_differential::generate::generate;
use quaject_differential::machine::Compiler;
use quaject_differential::modes::Mode;
use quaject_differential::prove::{Plan, prove};
use quaject_test_support::{Effort, tool};
use std::ops::Range;

fn check(compiler: &str, options: &[&str], seeds: Range<u64>) {
    let compiler = Compiler::native(compiler, options);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = seeds.end - seeds.start;
    let found = prove(&Plan { seeds, batch: 200, workers, mode: Mode::Process, compiler, patience: 20 });
    let smallest = found.failures.iter().map(|(seed, error)| (generate(*seed).text(), seed, error));
    if let Some((source, seed, error)) = smallest.min_by_key(|(source, _, _)| source.len()) {
        panic!("{} failures; the smallest, seed {seed}: {error}\n{source}", found.failures.len());
    }
    assert_eq!(found.programs, wanted);
    // The semantics has other runs, but both engines follow the reference schedule. Only programs with manual memory
    // that use a freed object, one or two in a thousand, may go on in C.
    let others = wanted - found.same;
    assert!(others <= wanted / 1_000, "{others} of {wanted} programs took another course");
}

/// All programs with the fastest compiler; every fortieth with the others, which expose undefined behaviour of C.
fn programs() -> u64 {
    Effort::wanted().pick(400, 6_000, 1_000_000)
}

#[test]
fn many() {
    let Some(compiler) = tool(&["tcc", "cc", "gcc", "clang"]) else { return };
    check(compiler, &["-w"], 0..programs());
}

#[test]
fn optimised_by_gcc() {
    let Some(compiler) = tool(&["gcc"]) else { return };
    check(compiler, &["-O1", "-w"], 0..programs() / 40);
}

/// For size, instances with equal code share it.
#[test]
fn compiled_for_size() {
    let Some(compiler) = tool(&["gcc", "clang"]) else { return };
    check(compiler, &["-Os", "-w"], 0..programs() / 40);
}

#[test]
fn optimised_by_clang() {
    let Some(compiler) = tool(&["clang"]) else { return };
    // Readers of generated C build it with all warnings on.
    check(
        compiler,
        &["-O1", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror"],
        programs() / 40..programs() / 20,
    );
}
