//! The run loop: opens the environment of a program, chooses the engine, alternates between steps of the engine and
//! waits of the environment until the program ends.

use crate::compiled::{HEADER_NAME, Library};
use crate::error::{HostCode, HostError};
use crate::externs::Externs;
use crate::machine_code::MachineCode;
use crate::outcome::{RunOutcome, RunReport, Shutdown, WakeReason};
use crate::ports::Ports;
use crate::record::{Header, Recorder, Recording, Replayer};
use crate::settings::{Engine, Settings, reserve};
use crate::signals::Signals;
use quaject_esp_exec::environment::Environment;
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::message_log::MessageLog;
use quaject_esp_exec::path_counters::PathCounters;
use quaject_esp_exec::profile::Profile;
use quaject_esp_exec::replay::RandomScheduler;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, TooLarge};
use quaject_esp_gen::RUNTIME_HEADER;
use quaject_esp_gen::c;
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::text::fault_name;
use std::collections::BTreeMap;
use std::io::Write;

/// Each line with code, by the number of its file, and whether a run has executed it.
pub type LineCoverage = BTreeMap<(u16, u32), bool>;

/// IR steps of the interpreter between two polls of signals and pending output: some ten milliseconds.
pub(crate) const BUDGET: u64 = 200_000;

/// Runs a program.
///
/// # Errors
/// The reason why the run could not begin.
pub fn run(program: &Program, settings: &Settings) -> Result<RunReport, HostError> {
    reserve(program, settings)?;
    match settings.engine {
        Engine::Interpreter | Engine::Jit | Engine::Best => {
            let mut ports = open(program, settings)?;
            let signals = Signals::listen()?;
            let (outcome, paths) = interpret(program, settings, &mut ports, &signals);
            Ok(RunReport { paths, ..close(ports, outcome) })
        }
        Engine::C => {
            if settings.seed.is_some() {
                return Err(HostError::usage(HostCode::Conflict, "engine `c` has one order of execution only")
                    .help("leave out `--seed`, or use `--engine interp`"));
            }
            let generated = c::generate(program, &c_options(settings.checks));
            let library = Library::build(program, &generated, &settings.externs)?;
            let mut ports = Ports::open(
                program,
                &settings.bindings,
                &settings.faults,
                Externs::none(),
                settings.time,
                settings.pcap.as_deref(),
            )?;
            let signals = Signals::listen()?;
            let outcome = library.run(program, &mut ports, &signals);
            Ok(close(ports, outcome))
        }
    }
}

/// Runs a program on the interpreter and profiles its communication. A seed is refused.
pub fn profile(program: &Program, settings: &Settings) -> Result<(RunReport, Profile), HostError> {
    if settings.seed.is_some() {
        return Err(
            HostError::usage(HostCode::Conflict, "a profile records the reference schedule").help("leave out `--seed`")
        );
    }
    let (report, mut interpreter) = observe(program, settings, |interpreter| interpreter.profile())?;
    Ok((report, interpreter.take_profile().expect("it was asked for")))
}

/// Runs a program on the interpreter and records which lines of its files it executes.
///
/// # Errors
/// The reason why the run could not begin.
pub fn cover(program: &Program, settings: &Settings) -> Result<(RunReport, LineCoverage), HostError> {
    let (report, mut interpreter) = observe(program, settings, |interpreter| interpreter.record_coverage())?;
    Ok((report, interpreter.coverage().expect("it was asked for").lines(program)))
}

/// Runs a program on the interpreter and logs its first messages, at most `max`.
///
/// # Errors
/// The reason why the run could not begin.
pub fn log_messages(program: &Program, settings: &Settings, max: usize) -> Result<(RunReport, MessageLog), HostError> {
    let (report, mut interpreter) = observe(program, settings, |interpreter| interpreter.log_messages(max))?;
    Ok((report, interpreter.take_message_log().expect("it was asked for")))
}

/// Runs a program on the interpreter, which `prepare` has made record something.
fn observe<'p>(
    program: &'p Program,
    settings: &Settings,
    prepare: impl FnOnce(&mut Interpreter<'p>),
) -> Result<(RunReport, Interpreter<'p>), HostError> {
    reserve(program, settings)?;
    let mut interpreter = Interpreter::new(program, settings.checks).map_err(too_large)?;
    prepare(&mut interpreter);
    let mut ports = open(program, settings)?;
    let signals = Signals::listen()?;
    let mut scheduler = Scheduler::Reference(Box::new(interpreter));
    let outcome = drive(&mut scheduler, &mut ports, &signals);
    let Scheduler::Reference(interpreter) = scheduler else { unreachable!("the scheduler is the reference") };
    Ok((close(ports, outcome), *interpreter))
}

/// Runs a program on the interpreter and records its inputs and outputs.
pub fn record(
    program: &Program,
    settings: &Settings,
    header: &Header,
    to: &mut dyn Write,
) -> Result<RunReport, HostError> {
    reserve(program, settings)?;
    let mut ports = open(program, settings)?;
    let signals = Signals::listen()?;
    let mut recorder = Recorder::begin(&mut ports, program, header, to);
    let (outcome, _) = interpret(program, settings, &mut recorder, &signals);
    let recorded = recorder.end(&outcome_text(program, &outcome));
    let ended = close(ports, outcome);
    recorded.map(|()| ended)
}

/// Replays a recorded run; `observer` receives every message the program sends, as lines `channel message`.
pub fn replay(
    program: &Program,
    settings: &Settings,
    recording: Recording,
    observer: &mut dyn Write,
) -> Result<RunOutcome, HostError> {
    let signals = Signals::listen()?;
    let mut replayer = Replayer::new(program, recording, observer);
    let (outcome, _) = interpret(program, settings, &mut replayer, &signals);
    let recorded = replayer.expect_end();
    match (replayer.take_difference(), outcome) {
        (Some(difference), _) => Ok(RunOutcome::Failed(difference)),
        (None, outcome @ (RunOutcome::Signal(_) | RunOutcome::Failed(_))) => Ok(outcome),
        (None, outcome) => {
            let again = outcome_text(program, &outcome);
            if again == recorded || recorded.starts_with("stopped") {
                Ok(outcome)
            } else {
                let cause = format!("the recorded run ended with `{recorded}`, this one with `{again}`");
                Ok(RunOutcome::Failed(
                    HostError::new(HostCode::Replay, cause)
                        .help("was it made by another version of qj, or changed since?"),
                ))
            }
        }
    }
}

pub(crate) fn open<'p>(program: &'p Program, settings: &Settings) -> Result<Ports<'p>, HostError> {
    let headers = if settings.externs.is_empty() {
        Vec::new()
    } else {
        let generated = c::generate(program, &c_options(settings.checks));
        vec![("quaject/esp.h".to_string(), RUNTIME_HEADER.to_string()), (HEADER_NAME.to_string(), generated.header)]
    };
    let externs = Externs::new(program, &settings.externs, headers)?;
    Ports::open(program, &settings.bindings, &settings.faults, externs, settings.time, settings.pcap.as_deref())
}

/// The options of C that is generated for a run.
pub fn c_options(checks: Checks) -> c::Options {
    c::Options { header_name: HEADER_NAME.to_string(), style: c::Style::SansIo, checks, ..c::Options::default() }
}

/// Writes pending output, whatever the outcome, and closes the drivers.
pub(crate) fn close(mut ports: Ports<'_>, outcome: RunOutcome) -> RunReport {
    let shutdown = match outcome {
        RunOutcome::Signal(_) | RunOutcome::OutputClosed => Shutdown::Interrupted,
        RunOutcome::Exit(_) | RunOutcome::Fault(_) | RunOutcome::Failed(_) => Shutdown::Drain,
    };
    match outcome {
        RunOutcome::OutputClosed => {}
        RunOutcome::Exit(_) | RunOutcome::Fault(_) | RunOutcome::Failed(_) | RunOutcome::Signal(_) => {
            ports.finish(shutdown)
        }
    }
    let outcome = match (ports.take_output_error(), outcome) {
        (Some(error), RunOutcome::Exit(_)) => RunOutcome::Failed(error),
        (_, outcome) => outcome,
    };
    RunReport { outcome, notes: ports.close(shutdown), paths: Vec::new() }
}

/// An environment that can be waited for.
pub(crate) trait HostEnvironment: Environment {
    /// Waits for an event or a deadline.
    fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> WakeReason;
    /// The outcome if the environment ends the run.
    fn interruption(&mut self) -> Option<RunOutcome>;
    /// Writes pending output.
    fn flush(&mut self);
}

impl HostEnvironment for Ports<'_> {
    fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> WakeReason {
        Ports::sleep(self, deadline_ns, signals)
    }

    fn interruption(&mut self) -> Option<RunOutcome> {
        if self.is_output_closed() {
            return Some(RunOutcome::OutputClosed);
        }
        self.take_error().map(RunOutcome::Failed)
    }

    fn flush(&mut self) {
        Ports::flush(self);
    }
}

impl<'p> HostEnvironment for Recorder<'_, Ports<'p>> {
    fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> WakeReason {
        self.inner().sleep(deadline_ns, signals)
    }

    fn interruption(&mut self) -> Option<RunOutcome> {
        self.inner().interruption()
    }

    fn flush(&mut self) {
        self.inner().flush();
    }
}

impl HostEnvironment for Replayer<'_> {
    fn sleep(&mut self, _deadline_ns: Option<i64>, signals: &Signals) -> WakeReason {
        // The next queries return the events that the recorded run waited for.
        self.note_sleep();
        signals.pending().map_or(WakeReason::Event, WakeReason::Signal)
    }

    fn interruption(&mut self) -> Option<RunOutcome> {
        if let Some(difference) = self.take_difference() {
            return Some(RunOutcome::Failed(difference));
        }
        // The recorded run was stopped here.
        self.was_stopped().then_some(RunOutcome::Exit(0))
    }

    fn flush(&mut self) {}
}

/// The scheduler of the interpreter.
enum Scheduler<'p> {
    Reference(Box<Interpreter<'p>>),
    Random(Box<RandomScheduler<'p>>),
}

/// Runs a program on the interpreter to its end. Returns the outcome and the counters of its fast paths.
fn interpret(
    program: &Program,
    settings: &Settings,
    environment: &mut impl HostEnvironment,
    signals: &Signals,
) -> (RunOutcome, Vec<PathCounters>) {
    let scheduler = match settings.seed {
        None => {
            Interpreter::new(program, settings.checks).map(|interpreter| Scheduler::Reference(Box::new(interpreter)))
        }
        Some(seed) => {
            RandomScheduler::new(program, settings.checks, seed).map(|random| Scheduler::Random(Box::new(random)))
        }
    };
    let mut scheduler = match scheduler {
        Ok(scheduler) => scheduler,
        Err(large) => return (RunOutcome::Failed(too_large(large)), Vec::new()),
    };
    match MachineCode::of_engine(program, settings) {
        Ok(None) => {}
        Ok(Some(code)) => match &mut scheduler {
            Scheduler::Reference(interpreter) => interpreter.use_native(Box::new(code)),
            Scheduler::Random(random) => random.use_native(Box::new(code)),
        },
        Err(error) => return (RunOutcome::Failed(error), Vec::new()),
    }
    let outcome = drive(&mut scheduler, environment, signals);
    let paths = match &scheduler {
        Scheduler::Reference(interpreter) => interpreter.path_runs().to_vec(),
        Scheduler::Random(random) => random.path_runs().to_vec(),
    };
    (outcome, paths)
}

/// The error for a program that exceeds the limits of the interpreter.
pub(crate) fn too_large(large: TooLarge) -> HostError {
    HostError::new(HostCode::Size, large.to_string()).help("make its arrays, pools or replicas smaller")
}

/// Runs until the program ends or something ends it.
fn drive(scheduler: &mut Scheduler<'_>, environment: &mut impl HostEnvironment, signals: &Signals) -> RunOutcome {
    loop {
        let pause = match scheduler {
            Scheduler::Reference(interpreter) => interpreter.run(environment, BUDGET),
            Scheduler::Random(random) => random.run(environment, BUDGET),
        };
        if let Some(outcome) = after(pause, environment, signals) {
            return outcome;
        }
    }
}

/// Handles a pause of the engine: the outcome of the run, or none after a wait.
pub(crate) fn after(pause: Outcome, environment: &mut impl HostEnvironment, signals: &Signals) -> Option<RunOutcome> {
    if let Some(outcome) = environment.interruption() {
        return Some(outcome);
    }
    let wake = match pause {
        Outcome::Ended(status) => return Some(RunOutcome::Exit(status)),
        Outcome::Faulted(report) => return Some(RunOutcome::Fault(report)),
        Outcome::Budget => {
            environment.flush();
            signals.pending().map_or(WakeReason::Event, WakeReason::Signal)
        }
        Outcome::Quiescent(resting) => environment.sleep(resting.deadline_ns, signals),
    };
    match wake {
        WakeReason::Event => None,
        WakeReason::Signal(signal) => Some(RunOutcome::Signal(signal)),
        WakeReason::Never => Some(RunOutcome::Failed(HostError::new(
            HostCode::Defect,
            "the program waits for nothing that could happen",
        ))),
    }
}

/// The outcome of a run, as text in a recording.
fn outcome_text(program: &Program, outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Exit(status) => format!("exit {status}"),
        RunOutcome::Fault(fault) => format!(
            "fault {} {} {}:{}",
            fault_name(fault.fault),
            program.instance_name(fault.instance),
            fault.location.line,
            fault.location.column
        ),
        RunOutcome::Failed(_) | RunOutcome::Signal(_) | RunOutcome::OutputClosed => "stopped".to_string(),
    }
}
