//! Fuzzes parser, formatter, renderers and checker: `cargo run --release --example fuzz -- COUNT [FIRST]`. Input number
//! n is the same in every run. Stops at the first that panics, takes a second, or violates a property: every byte is in
//! the tree, formatting changes only white space, formatting is idempotent.

#[path = "../tests/front_end/support.rs"]
mod support;

use quaject_diagnostic::{Color, human, json};
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::format::format;
use quaject_esp_syntax::parser::{parse, parse_fast_paths};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const MAX_TIME: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (count, first) = match numbers[..] {
        [count] => (count, 0),
        [count, first] => (count, first),
        _ => {
            eprintln!("usage: fuzz COUNT [FIRST]");
            return ExitCode::from(2);
        }
    };
    let begin = Instant::now();
    let mut bytes = 0;
    let (mut understood, mut accepted) = (0u64, 0u64);
    let mut slowest = Duration::ZERO;
    for number in first..first + count {
        let text = support::mutation(number);
        bytes += text.len();
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| check(&text));
        let time = start.elapsed();
        slowest = slowest.max(time);
        match outcome {
            Ok(Outcome::Understood) => understood += 1,
            Ok(Outcome::Accepted) => {
                understood += 1;
                accepted += 1;
            }
            Ok(Outcome::Refused) => {}
            Err(_) => {
                eprintln!("input {number}:\n{text}");
                return ExitCode::FAILURE;
            }
        }
        if time > MAX_TIME {
            eprintln!("input {number} took {time:?}:\n{text}");
            return ExitCode::FAILURE;
        }
        if (number - first) % 100_000 == 99_999 {
            println!(
                "{} inputs, {understood} without syntax errors, {accepted} without any, {bytes} bytes",
                number - first + 1
            );
        }
    }
    println!(
        "{count} inputs, {understood} without syntax errors, {accepted} without any, {bytes} bytes, {:?}, slowest {slowest:?}",
        begin.elapsed()
    );
    ExitCode::SUCCESS
}

enum Outcome {
    Accepted,
    Understood,
    Refused,
}

fn check(text: &str) -> Outcome {
    let mut sources = SourceMap::default();
    let file = sources.add(SourceFile::new("fuzz.esp", text));
    parse_fast_paths(file, text);
    let result = parse(file, text);
    assert_eq!(result.tree().text().to_string(), text, "every byte is in the tree");
    let meaning = support::meaning(&result.ast());
    human(&sources, result.diagnostics(), Color::Always);
    json(&sources, result.diagnostics());
    let Ok(laid) = format(&result) else {
        analyze(&mut sources, file, &mut support::NoFiles);
        return Outcome::Refused;
    };
    let again = parse(FileId(0), &laid);
    assert_eq!(support::meaning(&again.ast()), meaning, "formatting keeps the meaning");
    assert_eq!(format(&again).as_ref(), Ok(&laid), "formatting twice changes nothing more");
    let analysis = analyze(&mut sources, file, &mut support::NoFiles);
    human(&sources, &analysis.diagnostics, Color::Always);
    json(&sources, &analysis.diagnostics);
    if analysis.program.is_some() { Outcome::Accepted } else { Outcome::Understood }
}
