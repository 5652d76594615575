//! What every benchmark needs: commands run in turn (A B C A B C ...), so that a machine that changes its speed changes
//! it for all; medians and ratios of one run; instruction counts by callgrind, which do not depend on the machine's
//! mood. Knows no question and no peer.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// One of the commands that are compared.
pub struct Contender {
    /// What the table calls it.
    pub name: String,
    /// Makes the command; standard output is discarded.
    pub command: Box<dyn Fn() -> Command>,
}

impl Contender {
    /// A contender from its name and a maker of its command.
    pub fn new(name: impl Into<String>, command: impl Fn() -> Command + 'static) -> Contender {
        Contender { name: name.into(), command: Box::new(command) }
    }
}

/// What was measured of one contender.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The contender's name.
    pub name: String,
    /// Wall-clock seconds of each run, in order.
    pub seconds: Vec<f64>,
    /// Largest resident set of any run, in KiB.
    pub peak_kib: u64,
    /// Instructions of one run, where callgrind could count them.
    pub instructions: Option<u64>,
}

impl Measurement {
    /// The median of the runs, in seconds.
    pub fn median(&self) -> f64 {
        median(&self.seconds)
    }
}

/// The median of some numbers.
///
/// # Panics
/// Without any number.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Runs the contenders in turn, `runs` times each after one run that is not counted.
///
/// # Errors
/// When a command cannot be started or ends with another status than 0.
pub fn compare(runs: usize, contenders: &[Contender]) -> io::Result<Vec<Measurement>> {
    let mut measurements: Vec<Measurement> = contenders
        .iter()
        .map(|contender| Measurement {
            name: contender.name.clone(),
            seconds: Vec::new(),
            peak_kib: 0,
            instructions: None,
        })
        .collect();
    for run in 0..=runs {
        for (contender, measurement) in contenders.iter().zip(&mut measurements) {
            let (seconds, peak_kib) = run_once(&mut (contender.command)())?;
            if run > 0 {
                measurement.seconds.push(seconds);
                measurement.peak_kib = measurement.peak_kib.max(peak_kib);
            }
        }
    }
    Ok(measurements)
}

/// Wall-clock seconds and peak resident KiB of one run.
fn run_once(command: &mut Command) -> io::Result<(f64, u64)> {
    command.stdout(Stdio::null());
    let start = Instant::now();
    let child = command.spawn()?;
    let mut status = 0;
    // SAFETY: `rusage` is a plain C structure for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child was just started and no other thread waits for it; both pointers are to live variables.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    let seconds = start.elapsed().as_secs_f64();
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    if status != 0 {
        return Err(io::Error::other(format!("{command:?} ended with wait status {status:#x}")));
    }
    Ok((seconds, usage.ru_maxrss as u64))
}

/// Instructions one run executes, counted by callgrind; none where valgrind is missing or cannot run the program.
/// With `inside`, only those of the function of that name and what it calls.
pub fn instructions(command: &Command, inside: Option<&str>, directory: &Path) -> Option<u64> {
    let log = directory.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]).arg(format!("--callgrind-out-file={}", log.display()));
    if let Some(function) = inside {
        valgrind.arg(format!("--toggle-collect={function}"));
    }
    valgrind.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => valgrind.env(key, value),
            None => valgrind.env_remove(key),
        };
    }
    let status = valgrind.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    if !status.success() {
        return None;
    }
    let text = std::fs::read_to_string(&log).ok()?;
    let totals =
        text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")))?;
    totals.split_whitespace().next()?.parse().ok()
}

/// Prints a row per measurement: median, range, ratio to the first one, instructions and their ratio, peak memory.
pub fn print(measurements: &[Measurement]) {
    let Some(first) = measurements.first() else { return };
    println!(
        "{:<34} {:>11} {:>23} {:>8} {:>15} {:>8} {:>10}",
        "", "median ms", "min .. max", "x time", "instructions", "x instr", "peak MiB"
    );
    for measurement in measurements {
        let min = measurement.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let max = measurement.seconds.iter().copied().fold(0.0, f64::max);
        let instructions = measurement.instructions.map_or("-".to_owned(), |count| count.to_string());
        let ratio = match (measurement.instructions, first.instructions) {
            (Some(mine), Some(first)) if first > 0 => format!("{:.2}", mine as f64 / first as f64),
            (Some(_), Some(_)) | (None, _) | (_, None) => "-".to_owned(),
        };
        println!(
            "{:<34} {:>11.3} {:>11.3} .. {:>8.3} {:>8.2} {:>15} {:>8} {:>10.1}",
            measurement.name,
            measurement.median() * 1e3,
            min * 1e3,
            max * 1e3,
            measurement.median() / first.median(),
            instructions,
            ratio,
            measurement.peak_kib as f64 / 1024.0
        );
    }
}
