//! `quaject-differential FROM TO [process|direct|automata|auto|fastpath] [COMPILER [OPTION ...]]`: tests a range of
//! seeds and prints the findings. `quaject-differential SEED` prints the program of a seed.

use quaject_differential::generate::generate;
use quaject_differential::machine::{Compiler, Machine};
use quaject_differential::modes::Mode;
use quaject_differential::prove::{Plan, prove};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().map_while(|argument| argument.parse().ok()).collect();
    let mut words = arguments[numbers.len()..].iter().cloned().peekable();
    match numbers[..] {
        [seed] => {
            println!("{}", generate(seed).source);
            ExitCode::SUCCESS
        }
        [start, end] => {
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
                "usage: quaject-differential SEED | FROM TO [process|direct|automata|auto|fastpath] [COMPILER [OPTION ...]]"
            );
            ExitCode::from(2)
        }
    }
}
