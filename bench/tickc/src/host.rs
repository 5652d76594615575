//! The time that gcc takes for the translated programs, and for the same file without ticks.

use std::process::Command;
use std::time::Instant;

use quaject_bench_harness::median;

const ROUNDS: usize = 5;

/// Seconds of `gcc -O2 -c`.
fn seconds(arguments: &[&str]) -> f64 {
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let own =
                Command::new("gcc").args(["-std=gnu11", "-O2", "-w", "-c", "-o", "/dev/null"]).args(arguments).status();
            assert!(own.is_ok_and(|own| own.success()), "gcc compiles {arguments:?}");
            start.elapsed().as_secs_f64()
        })
        .collect();
    median(&rounds)
}

pub(crate) fn print() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../crates/tickc/include");
    let own = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/c");
    let translated = seconds(&[include, env!("TRANSLATED")]);
    let plain = seconds(&[own, "-DPLAIN", env!("PLAIN")]);
    println!(
        "\nhost compile time of all programs, gcc -O2: {translated:.2} s with ticks, {plain:.2} s as plain C: {:.1} times",
        translated / plain
    );
}
