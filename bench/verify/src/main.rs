//! Explores the same systems with `qj verify` and with Spin, unreduced, and compares rates, memory and waiting.

use quaject_bench_harness::median;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const RUNS: usize = 5;
const SYSTEMS: [&str; 4] = ["figure2", "alternating-bit", "leader", "philosophers"];

/// One exploration.
struct Explored {
    states: f64,
    /// Of the search alone.
    seconds: f64,
    bytes: f64,
    /// From start to end.
    waited: f64,
}

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = here.join("../..");
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "quaject-cli"])
        .current_dir(&repository)
        .status()?;
    if !built.success() {
        return Err(io::Error::other("qj could not be built"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository.join("target"), PathBuf::from);
    let qj = target.join("release/qj");
    println!("{:<28}{:>10}{:>13}{:>9}{:>10}{:>9}", "medians", "states", "states/s", "bytes", "search s", "whole s");
    for system in SYSTEMS {
        let program = here.join("programs").join(format!("{system}.esp"));
        let model = here.join("programs").join(format!("{system}.pml"));
        let (mut ours, mut two, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            ours.push(verify(&qj, &program, 1)?);
            two.push(verify(&qj, &program, 2)?);
            theirs.push(spin(&model)?);
        }
        let own = show(&format!("{system}, qj"), &ours);
        let both = show(&format!("{system}, qj, 2 threads"), &two);
        let peer = show(&format!("{system}, Spin"), &theirs);
        println!(
            "{:<28}rate {:.2} of Spin's, bytes {:.2}, whole {:.1} times faster; two threads {:.2} times one",
            "",
            rate(&own) / rate(&peer),
            (own.bytes / own.states) / (peer.bytes / peer.states),
            peer.waited / own.waited,
            rate(&both) / rate(&own),
        );
    }
    Ok(())
}

fn rate(explored: &Explored) -> f64 {
    explored.states / explored.seconds.max(1e-6)
}

fn show(name: &str, runs: &[Explored]) -> Explored {
    let of = |pick: &dyn Fn(&Explored) -> f64| median(&runs.iter().map(pick).collect::<Vec<_>>());
    let middle = Explored {
        states: of(&|run| run.states),
        seconds: of(&|run| run.seconds),
        bytes: of(&|run| run.bytes),
        waited: of(&|run| run.waited),
    };
    println!(
        "{name:<28}{:>10}{:>13.0}{:>9.1}{:>10.3}{:>9.3}",
        middle.states,
        rate(&middle),
        middle.bytes / middle.states,
        middle.seconds,
        middle.waited
    );
    middle
}

fn verify(qj: &Path, program: &Path, threads: usize) -> io::Result<Explored> {
    let started = Instant::now();
    let output = Command::new(qj)
        .args(["verify", "--json", "--no-reduction", "--threads", &threads.to_string()])
        .arg(program)
        .stderr(Stdio::null())
        .output()?;
    let waited = started.elapsed().as_secs_f64();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(io::Error::other)?;
    if report["verdict"] != "holds" {
        return Err(io::Error::other(format!("{}: {}", program.display(), report["explanation"])));
    }
    let number = |key: &str| report[key].as_f64().unwrap_or(f64::NAN);
    Ok(Explored { states: number("states"), seconds: number("seconds"), bytes: number("bytes"), waited })
}

fn spin(model: &Path) -> io::Result<Explored> {
    let folder = tempfile::tempdir()?;
    let started = Instant::now();
    run(Command::new("spin").arg("-a").arg(model).current_dir(&folder))?;
    let options = ["-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8000", "-w", "-o", "pan", "pan.c"];
    run(Command::new("gcc").args(options).current_dir(&folder))?;
    let text = run(Command::new("./pan").args(["-m2000000", "-w24"]).current_dir(&folder))?;
    let waited = started.elapsed().as_secs_f64();
    if !text.contains("errors: 0") {
        return Err(io::Error::other(format!("{}: {text}", model.display())));
    }
    let before = |words: &str| {
        let line = text.lines().find(|line| line.contains(words))?;
        let from = if words.starts_with("elapsed") { line.split(' ').nth(3) } else { line.split_whitespace().next() };
        from?.parse::<f64>().ok()
    };
    let states = before("states, stored").unwrap_or(f64::NAN);
    // Compressed memory is printed only where it differs from plain.
    let megabytes = before("actual memory usage for states").or(before("equivalent memory usage for states"));
    let seconds = before("elapsed time").unwrap_or(f64::NAN);
    // The verifier prints hundredths of a second.
    Ok(Explored { states, seconds: seconds.max(0.005), bytes: megabytes.unwrap_or(f64::NAN) * 1048576.0, waited })
}

fn run(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{command:?} failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
