//! `quaject-differential FROM TO [process|direct|automata|auto|fastpath] [COMPILER [OPTION ...]]`: tests a range of
//! seeds and prints the findings. `quaject-differential FROM TO all [COMPILER [OPTION ...]]` tests every mode on every
//! engine and prints each part of the range, so that a run that was stopped can go on after the last one.
//! `quaject-differential SEED` prints the program of a seed.

use quaject_differential::generate::generate;
use quaject_differential::machine::{Compiler, Machine};
use quaject_differential::modes::Mode;
use quaject_differential::prove::{Plan, prove};
use quaject_differential::soak::soak;
use std::ops::Range;
use std::process::ExitCode;

/// Programs of a part of a range of seeds; their C is one file.
const PART: u64 = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().map_while(|argument| argument.parse().ok()).collect();
    let mut words = arguments[numbers.len()..].iter().cloned().peekable();
    match numbers[..] {
        [seed] => {
            println!("{}", generate(seed).text());
            ExitCode::SUCCESS
        }
        [start, end] => {
            let is_soak = words.next_if(|word| word == "all").is_some();
            let mode = match words.peek().map(String::as_str) {
                Some("process") => Some(Mode::Process),
                Some("direct") => Some(Mode::Direct),
                Some("automata") => Some(Mode::Automata),
                Some("auto") => Some(Mode::Auto),
                Some("fastpath") => Some(Mode::FastPath),
                Some(_) | None => None,
            };
            if mode.is_some() {
                words.next();
            }
            let mode = mode.unwrap_or(Mode::Process);
            let command = words.next().unwrap_or_else(|| "cc".into());
            let options: Vec<String> = words.collect();
            let options = if options.is_empty() { vec!["-O0".into(), "-w".into()] } else { options };
            let compiler = Compiler { command, options, machine: Machine::native() };
            if is_soak {
                return soak_range(start..end, &compiler);
            }
            let workers = std::thread::available_parallelism().map_or(1, usize::from);
            let found = prove(&Plan { seeds: start..end, batch: 200, workers, mode, compiler, patience: 20 });
            println!("{} programs, {} the same on both engines", found.programs, found.same);
            if found.unknown > 0 {
                println!("{} runs with more choices than were looked at", found.unknown);
            }
            for (seed, error) in &found.failures {
                println!("seed {seed}: {error}");
            }
            if found.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            eprintln!(
                "usage: quaject-differential SEED | FROM TO [all|process|direct|automata|auto|fastpath] \
                 [COMPILER [OPTION ...]]"
            );
            ExitCode::from(2)
        }
    }
}

/// Tests every mode, a part of the range after the other.
fn soak_range(seeds: Range<u64>, compiler: &Compiler) -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut pairs, mut unknown, mut failures) = (0, 0, 0);
    for first in seeds.clone().step_by(PART as usize) {
        let part = first..(first + PART).min(seeds.end);
        let found = soak(part.clone(), compiler, folder.path());
        for (seed, error) in &found.failures {
            println!("seed {seed}: {error}");
        }
        pairs += found.pairs;
        unknown += found.unknown;
        failures += found.failures.len();
        println!("seeds {}..{}: {pairs} pairs, {unknown} not compared, {failures} failures", part.start, part.end);
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
