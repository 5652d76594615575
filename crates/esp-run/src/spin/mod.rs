//! Runs Spin on a model: generates the verifier, compiles it, searches, and reads the result and its counterexample.
//! Works in a temporary folder.
//!
//! ```text
//!   mod         a search of Spin's model, and its outcome
//!   verdict     the verdict on a program: searches for each question, and the trail replayed on the program
//!   refinement  the verdict on the trace refinement of a program with fast paths
//! ```

mod error;
mod refinement;
#[cfg(test)]
mod tests;
mod verdict;

pub use error::VerifyError;
pub use refinement::{SpinRefinement, SpinRefinementVerdict};
pub use verdict::{ReplayFailure, SpinReport, UnreproducedTrail};

use crate::compiler::{BuildDirectory, compiler};
use crate::error::{HostCode, HostError, reason};
use crate::system;
use quaject_esp_check::{Limit, Unfinished};
use quaject_esp_gen::promela::trail::{self, Trail, VerifierFiles};
use quaject_esp_gen::promela::{EXCLUDE_DEADLOCKS, Line, Mark, Model, Property, Reduction, STUTTER};
use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The settings and limits of a search.
#[derive(Clone, Debug)]
pub struct Spin {
    /// The C compiler and its flags; without one `cc -O2`, or what the variable CC says.
    pub compiler: Option<Vec<OsString>>,
    /// The limit on the memory of the search, in MiB.
    pub memory_mib: u32,
    /// The limit on the time of the search.
    pub time: Duration,
    /// The limit on the length of runs, in steps of Spin.
    pub depth: u32,
    /// Whether Spin may omit runs that differ only in the order of independent steps (partial-order reduction).
    pub reduction: Reduction,
    /// Set to end the search: see [`Incomplete::Interrupted`].
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Default for Spin {
    fn default() -> Spin {
        Spin {
            compiler: None,
            memory_mib: 2048,
            time: Duration::from_secs(600),
            depth: 1_000_000,
            reduction: Reduction::On,
            interrupt: None,
        }
    }
}

/// The limit on the bytes of a state; the default of Spin, 1024, is too small.
const MAX_STATE_BYTES: u32 = 1 << 16;

/// The property to search for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpinProperty<'a> {
    /// Faults and deadlocks.
    Safety,
    /// Whether the model has a run that the observer of its specification does not accept. A run may end in any state.
    Refinement,
    /// Whether a property holds under weak fairness: each continuously enabled instance eventually moves.
    Ltl(&'a Property),
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpinOutcome {
    /// No violation, in all states.
    NoViolation,
    /// No violation, but the search is incomplete.
    Unfinished(Incomplete),
    /// An invalid end state: no transition is enabled, and some process is not at an `end` label.
    Deadlock(Trail),
    /// A fault.
    Fault(Trail),
    /// A run that violates the property.
    Property(Trail),
}

/// The reason why a search is incomplete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incomplete {
    /// The time limit was reached.
    Time,
    /// The memory limit was reached.
    Memory,
    /// Some runs are longer than the depth limit.
    Depth,
    /// The user interrupted it.
    Interrupted,
    /// The program can end by `exit`: under fairness Spin omits runs on which a `provided` clause blocks a process that
    /// it schedules after the one that moves.
    Exits,
    /// A spurious fault is known: under fairness Spin omits some of the runs that it ends, as those that end by `exit`.
    BeyondSpurious,
    /// The verifier ended with this message.
    Broken(String),
}

impl Incomplete {
    /// The reason as text.
    pub fn text(&self) -> String {
        match self {
            Incomplete::Time => "the time limit was reached".to_string(),
            Incomplete::Memory => "the memory limit was reached".to_string(),
            Incomplete::Depth => "some runs exceed the depth limit".to_string(),
            Incomplete::Interrupted => "interrupted".to_string(),
            Incomplete::Exits => {
                "Spin omits some runs that `exit` ends; the built-in engine, without `--engine spin`, explores them"
                    .to_string()
            }
            Incomplete::BeyondSpurious => {
                "Spin does not search all fair runs beyond a spurious fault; the built-in engine, without `--engine spin`, \
                 does"
                    .to_string()
            }
            Incomplete::Broken(output) => format!("the verifier failed: {output}"),
        }
    }

    /// The reason in the terms of every engine.
    pub fn unfinished(&self) -> Unfinished {
        match self {
            Incomplete::Time => Unfinished::Limit(Limit::Time),
            Incomplete::Memory => Unfinished::Limit(Limit::Memory),
            Incomplete::Depth => Unfinished::Limit(Limit::Depth),
            Incomplete::Interrupted => Unfinished::Limit(Limit::Interrupted),
            Incomplete::Exits | Incomplete::BeyondSpurious => Unfinished::EngineIncomplete,
            Incomplete::Broken(_) => Unfinished::EngineFailed,
        }
    }
}

/// A search.
#[derive(Clone, PartialEq, Debug)]
pub struct Search {
    /// Its outcome.
    pub outcome: SpinOutcome,
    /// States stored.
    pub states: u64,
    /// Transitions taken.
    pub transitions: u64,
    /// Transitions of Spin from the start to the farthest state.
    pub depth: u32,
    /// Bytes of one state.
    pub state_bytes: u64,
    /// Fast paths that are entered in some run; for [`SpinProperty::Refinement`].
    pub entered: Vec<u32>,
    /// Time to make and compile the verifier.
    pub compiling: Duration,
    /// Time of the search.
    pub searching: Duration,
}

impl Search {
    /// A search that was interrupted before it began.
    fn interrupted(compiling: Duration) -> Search {
        Search {
            outcome: SpinOutcome::Unfinished(Incomplete::Interrupted),
            states: 0,
            transitions: 0,
            depth: 0,
            state_bytes: 0,
            entered: Vec::new(),
            compiling,
            searching: Duration::ZERO,
        }
    }

    /// The time to make the verifier and of the search.
    pub fn elapsed(&self) -> Duration {
        self.compiling + self.searching
    }
}

/// The output of a program, and how it ended.
struct PanOutput {
    text: String,
    errors: String,
    ending: PanExit,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PanExit {
    /// By itself, with status 0.
    Success,
    /// By itself, with another status or of a signal.
    Failure,
    /// It was stopped, for this reason.
    Stopped(Stop),
}

/// Why a program was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    Time,
    Interrupt,
}

impl Spin {
    /// Searches a model of this many instances.
    pub fn search(&self, model: &Model, instances: u32, property: SpinProperty<'_>) -> Result<Search, HostError> {
        let directory = BuildDirectory::open()?;
        directory.write(MODEL, &model.text)?;
        let start = Instant::now();
        let made = self
            .translate(&directory, property, Order::Depth)
            .and_then(|()| self.compile(&directory, model, instances, property, Order::Depth));
        let compiling = start.elapsed();
        // The interrupt may have ended the compiler, which is no error.
        if self.is_interrupted() {
            return Ok(Search::interrupted(compiling));
        }
        made?;
        let start = Instant::now();
        let output = self.pan(&directory, property)?;
        let searching = start.elapsed();
        let mut search = Search {
            outcome: SpinOutcome::NoViolation,
            states: number_before(&output.text, " states, stored"),
            transitions: number_before(&output.text, " transitions"),
            depth: number_after(&output.text, "depth reached ") as u32,
            state_bytes: number_before(&output.text, " byte, depth"),
            entered: if property == SpinProperty::Refinement { entered(model, &output.text) } else { Vec::new() },
            compiling,
            searching,
        };
        let Some(what) = violation(&output.text) else {
            search.outcome = match incomplete(&output) {
                Some(why) => SpinOutcome::Unfinished(why),
                None if matches!(property, SpinProperty::Ltl(_)) && model.reduction == Reduction::Off => {
                    SpinOutcome::Unfinished(Incomplete::Exits)
                }
                None => SpinOutcome::NoViolation,
            };
            return Ok(search);
        };
        if property == SpinProperty::Safety {
            // The first counterexample may be long; a breadth-first search finds a shortest one. It may exceed the
            // memory limit: the first one is used then.
            let longer = self.trail(&directory, model, instances, &output, Order::Depth)?;
            let again = self
                .translate(&directory, property, Order::Breadth)
                .and_then(|()| self.compile(&directory, model, instances, property, Order::Breadth))
                .and_then(|()| self.pan(&directory, property));
            let shorter = match again {
                Ok(again) if violation(&again.text).is_some() => {
                    Some(self.trail(&directory, model, instances, &again, Order::Breadth)?)
                }
                Ok(_) => None,
                Err(_) if self.is_interrupted() => None,
                Err(error) => return Err(error),
            };
            let shortest = match shorter {
                Some(trail) if !trail.steps.is_empty() && trail.steps.len() <= longer.steps.len() => trail,
                Some(_) | None => longer,
            };
            search.outcome = match shortest.fault {
                Some(_) => SpinOutcome::Fault(shortest),
                None => SpinOutcome::Deadlock(shortest),
            };
            return Ok(search);
        }
        let trail = self.trail(&directory, model, instances, &output, Order::Depth)?;
        search.outcome = match what {
            Violation::Assertion if trail.fault.is_some() => SpinOutcome::Fault(trail),
            Violation::Assertion | Violation::Claim | Violation::Cycle => SpinOutcome::Property(trail),
            Violation::EndState => SpinOutcome::Deadlock(trail),
        };
        Ok(search)
    }

    fn is_interrupted(&self) -> bool {
        // Relaxed: nothing is handed over with the flag.
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn translate(&self, directory: &BuildDirectory, property: SpinProperty<'_>, order: Order) -> Result<(), HostError> {
        let mut command = Command::new("spin");
        match order {
            Order::Depth => {}
            // Spin's breadth-first search refuses variables outside of the state.
            Order::Breadth => {
                command.arg("-Dhidden=");
            }
        }
        match property {
            SpinProperty::Safety => {
                command.arg(format!("-D{EXCLUDE_DEADLOCKS}"));
            }
            SpinProperty::Refinement => {}
            SpinProperty::Ltl(_) => {
                command.arg(format!("-D{STUTTER}"));
            }
        }
        command.args(["-a", MODEL]).current_dir(directory.path(""));
        let output = self.run(&mut command, MAKING).map_err(|error| {
            HostError::new(HostCode::Tool, format!("cannot run `spin`: {}", reason(&error))).help(
                "install it, as in `apt install spin`, or leave out `--engine spin`: the built-in one needs nothing",
            )
        })?;
        // Spin reports errors on its standard output.
        if output.ending == PanExit::Success && !output.text.contains("rror:") {
            return Ok(());
        }
        Err(HostError::new(
            HostCode::ToolFailure,
            format!("`spin` does not accept the model:\n{}{}", output.text.trim_end(), output.errors.trim_end()),
        ))
    }

    /// The reduction of a search. A search for a violation of LTL has none: weak fairness with rendezvous excludes it.
    fn reduction_of(&self, model: &Model, is_ltl: bool) -> Reduction {
        match (model.reduction, self.reduction) {
            (Reduction::On, Reduction::On) if !is_ltl => Reduction::On,
            (Reduction::On | Reduction::Off, Reduction::On | Reduction::Off) => Reduction::Off,
        }
    }

    fn compile(
        &self,
        directory: &BuildDirectory,
        model: &Model,
        instances: u32,
        property: SpinProperty<'_>,
        order: Order,
    ) -> Result<(), HostError> {
        let mut words = match &self.compiler {
            Some(words) => words.clone(),
            None => {
                let mut words = compiler();
                words.push(OsString::from("-O2"));
                words
            }
        };
        let program = words.remove(0);
        let mut command = Command::new(&program);
        command.args(words).args(["-w", "-fwrapv", "-o", "pan", "pan.c"]).current_dir(directory.path(""));
        command.arg(format!("-DMEMLIM={}", self.memory_mib)).arg(format!("-DVECTORSZ={MAX_STATE_BYTES}"));
        match property {
            SpinProperty::Safety | SpinProperty::Refinement => command.args(["-DSAFETY", "-DNOCLAIM", "-DNOFAIR"]),
            SpinProperty::Ltl(_) => command.arg(format!("-DNFAIR={}", fairness_bytes(instances))),
        };
        match self.reduction_of(model, matches!(property, SpinProperty::Ltl(_))) {
            Reduction::On => {}
            Reduction::Off => {
                command.arg("-DNOREDUCE");
            }
        }
        match order {
            Order::Depth => {}
            Order::Breadth => {
                command.arg("-DBFS");
            }
        }
        let output = self.run(&mut command, MAKING).map_err(|error| {
            HostError::new(
                HostCode::Tool,
                format!("cannot run the C compiler `{}`: {}", program.display(), reason(&error)),
            )
            .help("Spin needs one: install it, as in `apt install gcc`, or name yours in the variable CC")
        })?;
        if output.ending == PanExit::Success {
            return Ok(());
        }
        let errors = output.errors.trim_end();
        Err(HostError::new(
            HostCode::ToolFailure,
            format!("the C compiler `{}` failed on Spin's verifier:\n{errors}", program.display()),
        ))
    }

    fn pan(&self, directory: &BuildDirectory, property: SpinProperty<'_>) -> Result<PanOutput, HostError> {
        let mut command = Command::new(directory.path("pan"));
        command.current_dir(directory.path("")).arg(format!("-m{}", self.depth)).arg("-w20");
        match property {
            SpinProperty::Safety => command.arg("-n"),
            // Lists unreached states; a run may end in any state.
            SpinProperty::Refinement => command.arg("-E"),
            SpinProperty::Ltl(property) => command.args(["-n", "-a", "-f", "-N", &property.name]),
        };
        self.run(&mut command, self.time).map_err(|error| {
            HostError::new(HostCode::System, format!("cannot run Spin's verifier: {}", reason(&error)))
        })
    }

    /// Runs a program to its end, or stops it after the time limit or an interrupt.
    fn run(&self, command: &mut Command, time: Duration) -> std::io::Result<PanOutput> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (mut output, mut errors) = (child.stdout.take(), child.stderr.take());
        let read = |stream: &mut dyn Read| {
            let mut bytes = Vec::new();
            // A program that is stopped leaves its output so far.
            let _ = stream.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        std::thread::scope(|scope| {
            let text = scope.spawn(move || output.as_mut().map(|stream| read(stream)).unwrap_or_default());
            let errors = scope.spawn(move || errors.as_mut().map(|stream| read(stream)).unwrap_or_default());
            let ending = self.wait(&mut child, time)?;
            let text = text.join().unwrap_or_default();
            let errors = errors.join().unwrap_or_default();
            Ok(PanOutput { text, errors, ending })
        })
    }

    /// Waits for the end.
    fn wait(&self, child: &mut Child, time: Duration) -> std::io::Result<PanExit> {
        // A time limit beyond the range of the clock is none.
        let mut deadline = Instant::now().checked_add(time);
        let mut stopped = None;
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = child.try_wait()? {
                let by_itself = if status.success() { PanExit::Success } else { PanExit::Failure };
                // A terminal's Ctrl-C reaches the child as well.
                let wish = self.is_interrupted().then_some(Stop::Interrupt);
                return Ok(stopped.or(wish).map_or(by_itself, PanExit::Stopped));
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match stopped {
                Some(_) if is_late => child.kill()?,
                None if is_late || self.is_interrupted() => {
                    stopped = Some(if is_late { Stop::Time } else { Stop::Interrupt });
                    // Spin's verifier then prints its statistics.
                    system::interrupt(child);
                    deadline = Instant::now().checked_add(LAST_WORDS);
                }
                Some(_) | None => {}
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// The run that the verifier has written, as steps.
    fn trail(
        &self,
        directory: &BuildDirectory,
        model: &Model,
        instances: u32,
        output: &PanOutput,
        order: Order,
    ) -> Result<Trail, HostError> {
        let read = |name: &str| {
            let path = directory.path(name);
            std::fs::read_to_string(&path).map_err(|error| HostError::file("read", path.display(), &error))
        };
        let (transitions, cases, header) = (read("pan.t")?, read("pan.m")?, read("pan.h")?);
        let mut trail = read("model.pml.trail")?;
        if order == Order::Breadth && violation(&output.text) == Some(Violation::EndState) {
            // The last line is the transition that the verifier tried last, which is not enabled.
            trail.truncate(trail.trim_end().rfind('\n').map_or(0, |end| end + 1));
        }
        let written = VerifierFiles {
            transitions: &transitions,
            cases: &cases,
            header: &header,
            trail: &trail,
            output: &output.text,
        };
        Ok(trail::read(&model.lines, instances, written))
    }
}

/// The verifier's NFAIR: it counts 4 processes in each byte, and needs room for one more. The claim and the process of
/// runs that have ended are processes, too.
fn fairness_bytes(instances: u32) -> u32 {
    (instances.div_ceil(4) + 1).max(2)
}

/// The fast paths whose entries the verifier does not list among what is never reached.
fn entered(model: &Model, output: &str) -> Vec<u32> {
    let never = |line: usize| output.contains(&format!("{MODEL}:{}, state", line + 1));
    let entry = |(number, line): (usize, &Line)| match line.mark {
        Mark::Enter { path } => Some((path, number)),
        _ => None,
    };
    let entries = model.lines.iter().enumerate().filter_map(entry);
    let mut entered: Vec<u32> = entries.filter(|(_, line)| !never(*line)).map(|(path, _)| path).collect();
    entered.dedup();
    entered
}

const MODEL: &str = "model.pml";
/// The time limits for generating the verifier, and for compiling it.
const MAKING: Duration = Duration::from_secs(600);
/// The time that an interrupted verifier may take to print its statistics.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The order of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Depth,
    Breadth,
}

/// A violation reported by `pan`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Violation {
    Assertion,
    EndState,
    Claim,
    Cycle,
}

fn violation(text: &str) -> Option<Violation> {
    let error = text.lines().find(|line| line.starts_with("pan:1:"))?;
    if error.contains("VECTORSZ") {
        return None;
    }
    Some(if error.contains("invalid end state") {
        Violation::EndState
    } else if error.contains("assertion violated") {
        Violation::Assertion
    } else if error.contains("cycle") {
        Violation::Cycle
    } else {
        Violation::Claim
    })
}

/// Why a search without a violation is incomplete.
fn incomplete(output: &PanOutput) -> Option<Incomplete> {
    match output.ending {
        PanExit::Stopped(Stop::Time) => return Some(Incomplete::Time),
        PanExit::Stopped(Stop::Interrupt) => return Some(Incomplete::Interrupted),
        PanExit::Success | PanExit::Failure => {}
    }
    if output.text.contains("max search depth too small") {
        return Some(Incomplete::Depth);
    }
    if output.text.contains("MEMLIM")
        || output.text.contains("out of memory")
        || output.errors.contains("out of memory")
    {
        return Some(Incomplete::Memory);
    }
    if output.ending != PanExit::Success || !output.text.contains("errors: 0") {
        return Some(Incomplete::Broken(format!("{}{}", output.text.trim_end(), output.errors.trim_end())));
    }
    None
}

/// The number before these words.
fn number_before(text: &str, words: &str) -> u64 {
    let before = text.find(words).map_or("", |at| &text[..at]);
    before.split_ascii_whitespace().next_back().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) as u64
}

/// The number after these words.
fn number_after(text: &str, words: &str) -> u64 {
    let after = text.find(words).map_or("", |at| &text[at + words.len()..]);
    after.split(|c: char| !c.is_ascii_digit()).next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
