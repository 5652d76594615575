//! The test programs that Cargo builds, run in parallel: one more than there are processors, because many of them are
//! one long test, and some wait for clocks and networks. What a program prints is shown when it has ended, all of it
//! only if it failed; the others go on.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::run::{Failure, cargo, output_of};

/// A test program.
pub(crate) struct Program {
    /// Package and target, as in `quaject-esp-ir verify`.
    name: String,
    /// Runs it: its path, after that of an emulator if it is another machine's.
    command: Command,
}

/// The programs whose threads wait for each other in loops. They run before the others and one at a time: a thread that
/// waits takes the processor from the one that it waits for, and from other programs.
const SPINNING: [&str; 1] = ["queue queues"];

/// The programs that take minutes, longest first. They are started first, so that none is left to run alone at the end.
const LONGEST: [&str; 11] = [
    "programs programs",
    "machines machines",
    "ac programs",
    "differential random_programs",
    "queue sanitized",
    "esp suggest",
    "differential models",
    "differential spin_refinement",
    "differential default_mode",
    "house quaject_house",
    "wasm wasm",
];

/// The programs that a quick run leaves out: long, and of parts that others test in samples or that few commits touch.
const FULL_ONLY: [&str; 6] = [
    "programs programs",
    "ac programs",
    "drivers drivers",
    "simulation simulation",
    "differential models",
    "wasm wasm",
];

/// Builds all test programs of the workspace, in the order in which they are to start. What the compiler says goes to
/// standard error.
pub(crate) fn build() -> Result<Vec<Program>, Failure> {
    let mut build = cargo(&["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let mut programs = tests_of(build.stderr(Stdio::inherit()))?;
    if let Some(absent) = SPINNING
        .iter()
        .chain(&LONGEST)
        .chain(&FULL_ONLY)
        .find(|name| programs.iter().all(|program| program.name != **name))
    {
        return Err(Failure(format!("no test program is called `{absent}` (a list of xtask/src/test/programs.rs)")));
    }
    programs.sort_by_key(|program| LONGEST.iter().position(|name| *name == program.name).unwrap_or(LONGEST.len()));
    Ok(programs)
}

/// What a command of Cargo's builds, which says so in JSON.
pub(crate) fn tests_of(build: &mut Command) -> Result<Vec<Program>, Failure> {
    let messages = output_of(build)?;
    let messages = String::from_utf8_lossy(&messages);
    let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut programs: Vec<Program> = messages.iter().filter_map(program).collect();
    if let Some(qj) = messages.iter().find_map(qj) {
        for program in &mut programs {
            program.command.env(QJ_VARIABLE, qj);
        }
    }
    Ok(programs)
}

/// Names the command `qj` for the tests that are not of its package, which build it otherwise
/// (`tests/support/src/qj.rs`).
const QJ_VARIABLE: &str = "QJ_BINARY";

/// The path of the command `qj`, which Cargo builds with the tests of its package.
fn qj(message: &Value) -> Option<&str> {
    let is_qj = message["reason"] == "compiler-artifact"
        && message["target"]["name"] == "qj"
        && message["profile"]["test"] == false;
    message["executable"].as_str().filter(|_| is_qj)
}

/// The test program that a message of Cargo's is about.
fn program(message: &Value) -> Option<Program> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_string_lossy();
    let name = format!("{package} {}", message["target"]["name"].as_str()?);
    let mut command = Command::new(executable);
    // Where Cargo runs a package's tests.
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    Some(Program { name, command })
}

/// Runs them all with so much effort; names those that failed.
pub(crate) fn run(mut programs: Vec<Program>, effort: &str) -> Result<(), Failure> {
    if effort == "quick" {
        programs.retain(|program| {
            let is_kept = !FULL_ONLY.contains(&program.name.as_str());
            if !is_kept {
                eprintln!("skipped in a quick run: {}", program.name);
            }
            is_kept
        });
    }
    let (spinning, others): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|program| SPINNING.contains(&program.name.as_str()));
    let mut failed = Vec::new();
    for mut program in spinning {
        if !program.passes(effort) {
            failed.push(program.name);
        }
    }
    let failed = Mutex::new(failed);
    let waiting = Mutex::new(VecDeque::from(others));
    let next = || waiting.lock().expect("no thread panics").pop_front();
    let work = || {
        while let Some(mut program) = next() {
            if !program.passes(effort) {
                failed.lock().expect("no thread panics").push(program.name);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..=thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no thread panics");
    if failed.is_empty() { Ok(()) } else { Err(Failure(format!("tests failed: {}", failed.join(", ")))) }
}

impl Program {
    /// Whether it was built into a folder of that name.
    pub(crate) fn is_below(&self, folder: &str) -> bool {
        Path::new(self.command.get_program()).iter().any(|part| part == folder)
    }

    /// The same on another machine, which a command emulates.
    pub(crate) fn by(mut self, machine: &str, mut emulator: Command) -> Program {
        emulator.arg(self.command.get_program());
        if let Some(folder) = self.command.get_current_dir() {
            emulator.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        }
        self.name += &format!(" on {machine}");
        Program { name: self.name, command: emulator }
    }

    fn passes(&mut self, effort: &str) -> bool {
        let start = Instant::now();
        let (passes, out, said) = match self.command.env("QJ_TEST", effort).stdin(Stdio::null()).output() {
            Ok(output) => (output.status.success(), output.stdout, output.stderr),
            Err(error) => {
                let started = self.command.get_program().to_string_lossy();
                (false, Vec::new(), format!("cannot start {started}: {error}\n").into())
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let verdict = if passes { "ok" } else { "FAILED" };
        // One call each, so that two programs' lines do not mix. Skipped tests say so on standard error.
        let shown = if passes { count(&out) } else { format!("\n{}", String::from_utf8_lossy(&out)) };
        eprintln!(
            "{verdict:<7} {seconds:>7.1} s  {}: {shown}\n{}",
            self.name,
            String::from_utf8_lossy(&said).trim_end()
        );
        passes
    }
}

/// How many tests a program that passes has run, in its own words.
fn count(out: &[u8]) -> String {
    let text = String::from_utf8_lossy(out);
    let result = text.lines().rev().find_map(|line| line.strip_prefix("test result: ok. "));
    result.and_then(|result| result.split(';').next()).unwrap_or("has a harness of its own").to_string()
}
