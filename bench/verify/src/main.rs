//! Explores the same systems with `qj verify` and with Spin, unreduced and reduced, and compares rates, memory and
//! waiting. Processor time is measured beside the clock's: on a busy machine it is what two threads can be judged by.
//! What two threads gain is measured apart, beside what the machine gives: two searches at once that share nothing.

use quaject_bench_harness::median;
use quaject_bench_peers::{SPIN, left_out};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const RUNS: usize = 3;
/// Runs with one thread, with two, and of two searches at once, in turn.
const TURNS: usize = 11;
const SYSTEMS: [&str; 4] = ["figure2", "alternating-bit", "leader", "philosophers"];

/// One exploration.
struct Explored {
    states: f64,
    /// Of the search alone.
    seconds: f64,
    bytes: f64,
    /// From start to end.
    waited: f64,
    /// Of that, to make the verifier; for `qj` none.
    compiled: f64,
    /// Processor seconds of the search, of all threads together.
    worked: f64,
}

fn main() -> io::Result<()> {
    print!("{}", left_out(&[&SPIN]));
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
    println!(
        "{:<28}{:>10}{:>13}{:>9}{:>10}{:>10}{:>11}{:>9}",
        "medians", "states", "states/s", "bytes", "search s", "work s", "compile s", "whole s"
    );
    for system in SYSTEMS {
        let program = here.join("programs").join(format!("{system}.esp"));
        let model = here.join("programs").join(format!("{system}.pml"));
        compare(&qj, system, &program, &model)?;
        println!();
    }
    println!(
        "{:<24}{:>8}{:>8}{:>8}{:>14}{:>16}{:>16}{:>8}",
        "search, ms", "one", "two", "pair", "two : one", "pair : one", "two : pair", "work"
    );
    for system in SYSTEMS {
        threads(&qj, system, &here.join("programs").join(format!("{system}.esp")))?;
    }
    let thirteen = philosophers(13, &here.join("programs/philosophers.esp"))?;
    threads(&qj, "13 philosophers", &thirteen.path().join("philosophers.esp"))?;
    println!();
    large(&qj, &here.join("programs/philosophers.esp"))
}

/// Explores a system with `qj` and with Spin, where it is installed, in turn.
fn compare(qj: &Path, system: &str, program: &Path, model: &Path) -> io::Result<()> {
    let verifier = if SPIN.is_installed() { Some(Verifier::new(model)?) } else { None };
    let (mut ours, mut less) = (Vec::new(), Vec::new());
    let (mut theirs, mut their_less) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(verify(qj, program, &["--no-reduction", "--threads", "1"])?);
        less.push(verify(qj, program, &["--threads", "1"])?);
        if let Some(verifier) = &verifier {
            theirs.push(verifier.run("all")?);
            their_less.push(verifier.run("reduced")?);
        }
    }
    let own = show(&format!("{system}, qj"), &ours);
    let reduced = show(&format!("{system}, qj, reduced"), &less);
    if verifier.is_some() {
        let peer = show(&format!("{system}, Spin"), &theirs);
        let peer_reduced = show(&format!("{system}, Spin, reduced"), &their_less);
        println!(
            "{:<28}rate {:.2} of Spin's (by work {:.2}), bytes {:.2}, whole {:.1} times faster, reduced states {:.2}",
            "",
            rate(&own) / rate(&peer),
            (own.states / own.worked) / (peer.states / peer.worked),
            (own.bytes / own.states) / (peer.bytes / peer.states),
            peer.waited / own.waited,
            reduced.states / peer_reduced.states,
        );
    }
    Ok(())
}

/// How much faster two threads are than one, and two processes at once than one after the other, by medians and by the
/// fastest runs.
fn threads(qj: &Path, name: &str, program: &Path) -> io::Result<()> {
    let (mut one, mut two, mut pair) = (Vec::new(), Vec::new(), Vec::new());
    let (mut work_of_one, mut work_of_two) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let explored = verify(qj, program, &["--no-reduction", "--threads", "1"])?;
        one.push(explored.seconds);
        work_of_one.push(explored.worked);
        let explored = verify(qj, program, &["--no-reduction", "--threads", "2"])?;
        two.push(explored.seconds);
        work_of_two.push(explored.worked);
        pair.push(std::thread::scope(|scope| {
            let other = scope.spawn(|| verify(qj, program, &["--no-reduction", "--threads", "1"]));
            let own = verify(qj, program, &["--no-reduction", "--threads", "1"])?;
            let other = other.join().expect("a search beside does not panic")?;
            io::Result::Ok(own.seconds.max(other.seconds))
        })?);
    }
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let gain = |of: &dyn Fn(&[f64]) -> f64, from: &[f64], to: &[f64], times: f64| times * of(from) / of(to);
    let both = |from: &[f64], to: &[f64], times: f64| {
        format!("{:.2} ({:.2})", gain(&|all| median(all), from, to, times), gain(&least, from, to, times))
    };
    println!(
        "{name:<24}{:>8.1}{:>8.1}{:>8.1}{:>14}{:>16}{:>16}{:>8.2}",
        1e3 * median(&one),
        1e3 * median(&two),
        1e3 * median(&pair),
        both(&one, &two, 1.0),
        both(&one, &pair, 2.0),
        both(&pair, &two, 0.5),
        2.0 * median(&work_of_one) / median(&work_of_two)
    );
    Ok(())
}

/// The program with so many philosophers, in a folder of its own.
fn philosophers(count: u32, program: &Path) -> io::Result<tempfile::TempDir> {
    let text = std::fs::read_to_string(program)?;
    let folder = tempfile::tempdir()?;
    let larger = text.replace("const N = 12;", &format!("const N = {count};"));
    assert_ne!(text, larger, "the program says how many philosophers there are");
    std::fs::write(folder.path().join("philosophers.esp"), larger)?;
    Ok(folder)
}

/// More than ten million states: so many philosophers have 3^15.
fn large(qj: &Path, program: &Path) -> io::Result<()> {
    let folder = philosophers(15, program)?;
    let program = folder.path().join("philosophers.esp");
    let whole = show("15 philosophers, qj", &[verify(qj, &program, &["--no-reduction", "--threads", "1"])?]);
    println!("{:<28}{:.0} MB", "", whole.bytes / 1e6);
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
        compiled: of(&|run| run.compiled),
        worked: of(&|run| run.worked),
    };
    println!(
        "{name:<28}{:>10}{:>13.0}{:>9.1}{:>10.3}{:>10.3}{:>11.3}{:>9.3}",
        middle.states,
        rate(&middle),
        middle.bytes / middle.states,
        middle.seconds,
        middle.worked,
        middle.compiled,
        middle.waited
    );
    middle
}

fn verify(qj: &Path, program: &Path, options: &[&str]) -> io::Result<Explored> {
    let started = Instant::now();
    let before = worked();
    let mut command = Command::new(qj);
    let output = command.args(["verify", "--json"]).args(options).arg(program).stderr(Stdio::null()).output()?;
    let (waited, worked) = (started.elapsed().as_secs_f64(), worked() - before);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(io::Error::other)?;
    if report["verdict"] != "holds" {
        return Err(io::Error::other(format!("{}: {}", program.display(), report["explanation"])));
    }
    let number = |key: &str| report[key].as_f64().unwrap_or(f64::NAN);
    let (states, seconds, bytes) = (number("states"), number("seconds"), number("bytes"));
    Ok(Explored { states, seconds, bytes, waited, compiled: 0.0, worked })
}

/// User and system seconds of all child processes that have ended.
fn worked() -> f64 {
    // SAFETY: `rusage` is a plain C structure for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Spin's verifier of one model, generated and compiled once, in two kinds.
struct Verifier {
    folder: tempfile::TempDir,
    compiled: f64,
}

impl Verifier {
    fn new(model: &Path) -> io::Result<Verifier> {
        let folder = tempfile::tempdir()?;
        let started = Instant::now();
        run(Command::new("spin").arg("-a").arg(model).current_dir(&folder))?;
        let options = ["-O2", "-DSAFETY", "-DMEMLIM=8000", "-w", "pan.c", "-o"];
        run(Command::new("gcc").args(options).args(["all", "-DNOREDUCE"]).current_dir(&folder))?;
        let compiled = started.elapsed().as_secs_f64();
        run(Command::new("gcc").args(options).arg("reduced").current_dir(&folder))?;
        Ok(Verifier { folder, compiled })
    }

    fn run(&self, kind: &str) -> io::Result<Explored> {
        let before = worked();
        let started = Instant::now();
        let program = self.folder.path().join(kind);
        let text = run(Command::new(program).args(["-m2000000", "-w24"]).current_dir(&self.folder))?;
        let waited = self.compiled + started.elapsed().as_secs_f64();
        if !text.contains("errors: 0") {
            return Err(io::Error::other(text));
        }
        let before_words = |words: &str| {
            let line = text.lines().find(|line| line.contains(words))?;
            let from =
                if words.starts_with("pan: elapsed") { line.split(' ').nth(3) } else { line.split_whitespace().next() };
            from?.parse::<f64>().ok()
        };
        let states = before_words("states, stored").unwrap_or(f64::NAN);
        // Compressed memory is printed only where it differs from plain.
        let actual = before_words("actual memory usage for states");
        let megabytes = actual.or(before_words("equivalent memory usage for states"));
        // The verifier prints hundredths of a second.
        let seconds = before_words("pan: elapsed time").unwrap_or(f64::NAN).max(0.005);
        let bytes = megabytes.unwrap_or(f64::NAN) * 1048576.0;
        Ok(Explored { states, seconds, bytes, waited, compiled: self.compiled, worked: worked() - before })
    }
}

fn run(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{command:?} failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
