//! `cargo xtask test`: everything that guards a commit, as a list of steps with their times.
//!
//! Tests run in the `dev` profile, which the workspace sets to opt-level 1. It keeps overflow checks and debug
//! assertions (the IR verifier runs between passes only there) and is fast enough for the interpreter's suites.
//! The first command of the README is the release build's; the last step types it as a newcomer would.

pub(crate) mod machines;
mod programs;

use std::time::{Duration, Instant};

use crate::run::{Failure, cargo, succeed};
use crate::{kernel, portable, tools};

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Small samples, without documentation tests and the longest programs; the tests read `QJ_TEST=quick` through
    /// `quaject-test-support`.
    Quick,
    /// Everything.
    Full,
}

/// Installs what is missing, then runs the steps in order and stops at the first that fails: later ones would only
/// repeat its reason.
pub(crate) fn run(suite: Suite) -> Result<(), Failure> {
    let mut steps = Steps { finished: Vec::new() };
    let outcome = all(suite, &mut steps);
    steps.print(&outcome);
    outcome
}

fn all(suite: Suite, steps: &mut Steps) -> Result<(), Failure> {
    let effort = match suite {
        Suite::Quick => "quick",
        Suite::Full => "full",
    };
    steps.run("tools of the machine", tools::provide)?;
    steps.run("format and lints of the kernel, tests of its readers of files", kernel::check)?;
    let programs = steps.run("build the tests", programs::build)?;
    steps.run("tests", || programs::run(programs, effort))?;
    if suite == Suite::Full {
        steps
            .run("documentation tests", || succeed(cargo(&["test", "--workspace", "--doc"]).env("QJ_TEST", effort)))?;
        steps.run("check for other systems", portable::run)?;
        let emulated = steps.run("build those of machine code for other machines", machines::build)?;
        // Emulated, a small sample takes as long as a large one here.
        steps.run("machine code on other machines", || programs::run(emulated, "quick"))?;
        let first_command =
            ["run", "--release", "--", "run", "examples/words.esp", "--bind", "inputC=bytes:LICENSE-MIT"];
        steps.run("release build and the README's first command", || succeed(&mut cargo(&first_command)))?;
    }
    Ok(())
}

struct Steps {
    finished: Vec<(&'static str, Duration)>,
}

impl Steps {
    fn run<T>(&mut self, name: &'static str, step: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        eprintln!("== {name}");
        let start = Instant::now();
        let outcome = step();
        self.finished.push((name, start.elapsed()));
        outcome
    }

    fn print(&self, outcome: &Result<(), Failure>) {
        let failed = outcome.is_err().then(|| self.finished.len() - 1);
        println!();
        for (index, (name, time)) in self.finished.iter().enumerate() {
            let verdict = if failed == Some(index) { "FAILED" } else { "ok" };
            println!("{verdict:<7} {:>7.1} s  {name}", time.as_secs_f64());
        }
        let total: Duration = self.finished.iter().map(|(_, time)| *time).sum();
        println!("{:<7} {:>7.1} s", "total", total.as_secs_f64());
    }
}
