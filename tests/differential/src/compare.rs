//! The comparison of a C run with the interpreter: the interpreter replays the trace of the C run.

use crate::c::CRun;
use crate::environment::ScriptedEnvironment;
use crate::generate::{Outcome as Visible, Sample};
use crate::interpret::{Behaviour, interpret};
use quaject_esp_exec::replay::{ReplayError, replay};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{Fault, MemoryMode, Program};

/// How a run of the interpreter ended, in the format of the C driver.
fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ended(status) => format!("done {status}"),
        Outcome::Faulted(report) => {
            let channel = report.channel.map_or(-1, |channel| channel.0 as i64);
            let (line, column) = (report.location.line, report.location.column);
            format!("fault {} {} {line} {column} {channel}", code(report.fault), report.instance)
        }
        Outcome::Quiescent(_) => "rest".into(),
        Outcome::Budget => "nothing".into(),
    }
}

/// `esp_fault_code`
fn code(fault: Fault) -> u32 {
    match fault {
        Fault::Assert => 1,
        Fault::Bounds => 2,
        Fault::Div => 3,
        Fault::Overflow => 4,
        Fault::Pool => 5,
        Fault::Range => 6,
        Fault::Memory => 7,
        Fault::Alt => 8,
        Fault::Deadlock => 9,
        Fault::Extern => 10,
    }
}

/// Whether the program uses an object after its last release. Compiled code detects this only until the object is
/// reallocated; its further behaviour is unspecified.
fn continues_after_use_of_freed_object(program: &Program, replayed: &Behaviour, c_run: &CRun) -> bool {
    let noticed = matches!(&replayed.outcome, Outcome::Faulted(report) if report.fault == Fault::Memory);
    program.memory == MemoryMode::Manual && noticed && c_run.messages.starts_with(&replayed.messages)
}

/// The fault `memory` of a program in manual memory, if one of the possible steps other than C's leads to it.
fn memory_fault_instead(sample: &Sample, program: &Program, c_run: &CRun, error: &ReplayError) -> Option<Outcome> {
    error.possible.iter().find_map(|step| {
        let mut environment = ScriptedEnvironment::new(program, &sample.script);
        if c_run.released {
            environment.release();
        }
        let trace: Vec<_> = c_run.trace[..error.number].iter().chain([step]).copied().collect();
        let outcome = replay(program, Checks::Off, &trace, &mut environment).ok()?.ok()?;
        let lost = matches!(&outcome, Outcome::Faulted(report) if report.fault == Fault::Memory);
        (lost && program.memory == MemoryMode::Manual).then_some(outcome)
    })
}

/// The relation of two runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conformance {
    /// Both engines have the same output and outcome.
    Same,
    /// The C program has another run of the semantics.
    Allowed,
}

/// Whether the run of the C program is one of the semantics.
pub fn compare(sample: &Sample, program: &Program, c_run: &CRun) -> Result<Conformance, String> {
    compare_runs(sample, program, c_run).map(|(conformance, _)| conformance)
}

/// Likewise; also the replayed run.
///
/// # Errors
/// The difference.
pub fn compare_runs(sample: &Sample, program: &Program, c_run: &CRun) -> Result<(Conformance, Behaviour), String> {
    let interpreted = interpret(sample, program).map_err(|error| format!("interpreter: {error}"))?;
    let mut environment = ScriptedEnvironment::new(program, &sample.script);
    if c_run.released {
        // The trace determines when messages of the environment are taken and accepted.
        environment.release();
    }
    let replayed =
        replay(program, Checks::Off, &c_run.trace, &mut environment).map_err(|error| format!("{error:?}"))?;
    let outcome = match replayed {
        Ok(outcome) => outcome,
        // A condition that reads a freed object faults, which counts as a match; C reads the new content of the object.
        Err(error) => memory_fault_instead(sample, program, c_run, &error)
            .ok_or_else(|| format!("C took a step that is not possible: {error}"))?,
    };
    let replayed = Behaviour { messages: environment.received, outcome };
    let ending_replayed = ending(&replayed.outcome);
    let same_end = replayed.messages == c_run.messages && ending_replayed == c_run.end;
    if !same_end && continues_after_use_of_freed_object(program, &replayed, c_run) {
        return Ok((Conformance::Allowed, replayed));
    }
    if replayed.messages != c_run.messages {
        return Err(format!("C sent {:?}\nreplayed: {:?}", c_run.messages, replayed.messages));
    }
    if ending_replayed != c_run.end {
        return Err(format!("C ended `{}`, replayed: `{ending_replayed}`", c_run.end));
    }
    if interpreted.messages == c_run.messages && ending(&interpreted.outcome) == c_run.end {
        return Ok((Conformance::Same, replayed));
    }
    let faulted = |outcome: &Outcome| match outcome {
        Outcome::Faulted(_) => true,
        Outcome::Ended(_) | Outcome::Quiescent(_) | Outcome::Budget => false,
    };
    if sample.outcome == Visible::Determined && !faulted(&interpreted.outcome) && !faulted(&replayed.outcome) {
        let channels = program.channels.len();
        if interpreted.by_channel(channels) != replayed.by_channel(channels) {
            return Err(format!("C sent {:?}, the interpreter {:?}", replayed.messages, interpreted.messages));
        }
        if interpreted.outcome != replayed.outcome {
            return Err(format!("C ended `{}`, the interpreter: {:?}", c_run.end, interpreted.outcome));
        }
    }
    Ok((Conformance::Allowed, replayed))
}
