//! Runs a sample on the interpreter: under the reference schedule, or along a trace of another engine.

use crate::environment::ScriptedEnvironment;
use crate::generate::Sample;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::interpreter::{Interpreter, OsrDirection, OsrMap};
use quaject_esp_exec::profile::Profile;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Control, Step};
use quaject_esp_ir::ir::{ChannelId, MemoryMode, PoolId, Program};
use quaject_esp_ir::verify::verify;
use quaject_esp_lower::lower;
use quaject_esp_run::{DebugInfo, MachineCode};
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::diagnostics::Severity;
use quaject_esp_syntax::span::{SourceFile, SourceMap};

/// A maximum of IR steps that no sample reaches.
const BUDGET: u64 = 20_000_000;

/// The deadlines that a run waits for: programs with a periodic timer do not end. `driver.c` has the same limit.
const MAX_DEADLINES: u32 = 200;

/// Checks and lowers a sample's text, which has to be well-typed.
pub fn compile(sample: &Sample) -> Result<Program, String> {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("sample.esp", sample.source.clone()));
    let analysis = analyze(&mut sources, root, &mut sample.loader());
    match analysis.program {
        Some(program) => {
            let program = lower(&program, &sources);
            match verify(&program).first() {
                None => Ok(program),
                Some(error) => Err(format!("lowering breaks a rule of the flow IR: {}", error.text(&program))),
            }
        }
        None => {
            let error = analysis.diagnostics.iter().find(|diagnostic| diagnostic.severity() == Severity::Error);
            let error = error.expect("a program is refused with an error");
            let (file, line) = (&sources.file(error.span.file).name, sources.start(error.span).line);
            Err(format!("{file}:{line}: {:?}: {}", error.code, error.message))
        }
    }
}

/// The observable behaviour of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Behaviour {
    /// The messages and calls of the program, in order.
    pub messages: Vec<(ChannelId, Vec<Datum>)>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Behaviour {
    /// Whether it ended in a fault.
    pub(crate) fn has_faulted(&self) -> bool {
        matches!(self.outcome, Outcome::Faulted(_))
    }

    /// The messages of each of this number of channels. The order between channels depends on the schedule; so does the
    /// order of calls of extern functions, whose numbers are beyond those of the channels.
    pub fn by_channel(&self, channels: usize) -> Vec<Vec<&[Datum]>> {
        let mut by_channel = vec![Vec::new(); channels];
        for (channel, message) in &self.messages {
            if let Some(sent) = by_channel.get_mut(channel.0 as usize) {
                sent.push(message.as_slice());
            }
        }
        by_channel
    }
}

/// Runs under the reference schedule to the end.
pub fn interpret(sample: &Sample, program: &Program) -> Result<Behaviour, String> {
    let mut interpreter = Interpreter::new(program, Checks::Off).map_err(|error| format!("{error:?}"))?;
    run(sample, program, &mut interpreter)
}

/// The communications of a run under the reference schedule.
pub fn profile(sample: &Sample, program: &Program) -> Result<Profile, String> {
    let mut interpreter = Interpreter::new(program, Checks::Off).map_err(|error| format!("{error:?}"))?;
    interpreter.profile();
    run(sample, program, &mut interpreter)?;
    interpreter.take_profile().ok_or_else(|| "no profile was requested".to_string())
}

/// The choices of a run under the reference schedule.
pub fn trace(sample: &Sample, program: &Program) -> Result<Vec<Step>, String> {
    let mut interpreter = Interpreter::new(program, Checks::Off).map_err(|error| format!("{error:?}"))?;
    interpreter.record();
    run(sample, program, &mut interpreter)?;
    Ok(interpreter.take_trace())
}

/// The executor of the local code of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Local {
    /// The interpreter executes local code.
    Interpreted,
    /// Machine code does; the interpreter where there is none.
    Native,
}

/// Runs under the reference schedule, `budget` IR steps at a time. Returns its behaviour, or why it does not end, and
/// every choice.
pub fn run_locally(
    sample: &Sample,
    program: &Program,
    checks: Checks,
    local: Local,
    budget: u64,
) -> (Result<Behaviour, String>, Vec<Step>) {
    let mut interpreter = match Interpreter::new(program, checks) {
        Ok(interpreter) => interpreter,
        Err(error) => return (Err(format!("{error:?}")), Vec::new()),
    };
    match local {
        Local::Interpreted => {}
        Local::Native => match MachineCode::compile(program, checks, DebugInfo::None) {
            Ok(code) => interpreter.use_native(Box::new(code)),
            Err(failure) => return (Err(format!("{failure:?}")), Vec::new()),
        },
    }
    interpreter.record();
    let behaviour = run_in_parts(sample, program, &mut interpreter, budget, &mut |_| {});
    (behaviour, interpreter.take_trace())
}

fn run(sample: &Sample, program: &Program, interpreter: &mut Interpreter<'_>) -> Result<Behaviour, String> {
    run_in_parts(sample, program, interpreter, BUDGET, &mut |_| {})
}

/// Runs under the reference schedule and replaces the program by `other`, or `other` by the program, after each
/// `budget` IR steps and at quiescence. Returns its behaviour, and the number of replacements.
pub fn run_changing<'p>(
    sample: &Sample,
    program: &'p Program,
    other: &'p Program,
    map: &OsrMap,
    local: Local,
    budget: u64,
) -> Result<(Behaviour, u64), String> {
    let mut interpreter = Interpreter::new(program, Checks::Off).map_err(|error| format!("{error:?}"))?;
    let mut changes = 0;
    let mut failure = None;
    let mut change = |interpreter: &mut Interpreter<'p>, to: &'p Program, direction| match interpreter.replace_on_stack(
        to,
        Checks::Off,
        map,
        direction,
    ) {
        Ok(Some(mut replaced)) => {
            if local == Local::Native {
                match MachineCode::compile(to, Checks::Off, DebugInfo::None) {
                    Ok(code) => replaced.use_native(Box::new(code)),
                    Err(error) => failure = Some(format!("{error:?}")),
                }
            }
            changes += 1;
            Some(replaced)
        }
        Ok(None) => None,
        Err(error) => {
            failure = Some(format!("{error:?}"));
            None
        }
    };
    let mut is_plain = true;
    let behaviour = run_in_parts(sample, program, &mut interpreter, budget, &mut |interpreter| {
        let (to, direction) = if is_plain { (other, OsrDirection::ToFast) } else { (program, OsrDirection::ToPlain) };
        if let Some(replaced) = change(interpreter, to, direction) {
            *interpreter = replaced;
            is_plain = !is_plain;
        }
    })?;
    failure.map_or(Ok((behaviour, changes)), Err)
}

fn run_in_parts<'p>(
    sample: &Sample,
    program: &Program,
    interpreter: &mut Interpreter<'p>,
    budget: u64,
    between: &mut dyn FnMut(&mut Interpreter<'p>),
) -> Result<Behaviour, String> {
    let mut environment = ScriptedEnvironment::new(program, &sample.script);
    let (mut parts, mut deadlines) = (0, 0);
    loop {
        let outcome = interpreter.run(&mut environment, budget);
        between(interpreter);
        match outcome {
            Outcome::Budget if parts * budget < BUDGET => parts += 1,
            Outcome::Quiescent(resting) => match resting.deadline_ns {
                Some(deadline) if deadlines < MAX_DEADLINES => {
                    deadlines += 1;
                    environment.now_ns = deadline;
                }
                Some(_) => {
                    return Ok(Behaviour { messages: environment.received, outcome: Outcome::Quiescent(resting) });
                }
                None if environment.release() => {}
                // All channels are released and nothing is enabled.
                None => {
                    let outcome = Outcome::Quiescent(resting);
                    return Ok(Behaviour { messages: environment.received, outcome });
                }
            },
            Outcome::Budget => return Err("the program does not end".into()),
            outcome @ (Outcome::Ended(_) | Outcome::Faulted(_)) => {
                let state = interpreter.state();
                let have_all_ended = (0..state.instances()).all(|instance| state.control(instance) == Control::Ended);
                // In manual memory a program can leak objects.
                if have_all_ended && outcome == Outcome::Ended(0) && program.memory == MemoryMode::Automatic {
                    for (index, pool) in program.types.pools().iter().enumerate() {
                        let free = state.free_objects(PoolId(index as u32));
                        if free != pool.capacity {
                            return Err(format!(
                                "{} objects of `{}` are never released",
                                pool.capacity - free,
                                pool.name
                            ));
                        }
                    }
                }
                return Ok(Behaviour { messages: environment.received, outcome });
            }
        }
    }
}
