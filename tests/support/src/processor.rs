//! Processor time of processes, and whether a process sleeps. Neither depends on the load of the machine: a process
//! that polls computes in every interval, and one that sleeps has an interval in which it does not.

use crate::HANG_TIMEOUT;
use std::time::{Duration, Instant};

/// The length of an interval in which a sleeping process must not compute.
const INTERVAL: Duration = Duration::from_millis(700);

/// Processor time that a process has used, in clock ticks of 10 ms.
///
/// # Panics
/// When the process has ended.
pub fn ticks(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process runs");
    let after_name = status.rsplit_once(')').expect("the name ends").1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11].parse::<u64>().expect("user time") + fields[12].parse::<u64>().expect("system time")
}

/// Waits for an interval in which these processes use at most `allowed` ticks each. What a process does before it first
/// sleeps may take any number of intervals.
///
/// # Panics
/// When there is none: a process polls.
pub fn await_idle(processes: &[u32], allowed: u64, what: &str) {
    let started = Instant::now();
    loop {
        let before: Vec<u64> = processes.iter().map(|process| ticks(*process)).collect();
        std::thread::sleep(INTERVAL);
        let used: Vec<u64> = processes.iter().zip(before).map(|(process, before)| ticks(*process) - before).collect();
        if used.iter().all(|used| *used <= allowed) {
            return;
        }
        assert!(started.elapsed() < HANG_TIMEOUT, "{what}: {used:?} ticks in {INTERVAL:?}");
    }
}

/// Waits until a process has computed for this many ticks.
///
/// # Panics
/// When it does not.
pub fn await_computing(process: u32, wanted: u64, what: &str) {
    let started = Instant::now();
    while ticks(process) < wanted {
        assert!(started.elapsed() < HANG_TIMEOUT, "{what}: {} of {wanted} ticks", ticks(process));
        std::thread::sleep(Duration::from_millis(5));
    }
}
