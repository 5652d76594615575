//! Running a program to its end: opens its world, chooses its engine, sleeps when it sleeps. Knows no command line.

use crate::binding::Binding;
use crate::clock::Time;
use crate::compiled::{HEADER_NAME, Library};
use crate::debug_info::DebugInfo;
use crate::externs::Externs;
use crate::faults::Faults;
use crate::machine_code::MachineCode;
use crate::ports::{Hurry, Ports, Wake};
use crate::record::{Header, Recorder, Recording, Replayer};
use crate::signals::Signals;
use crate::trouble::Trouble;
use quaject_esp_exec::environment::Environment;
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::profile::{PathCounters, Profile};
use quaject_esp_exec::replay::RandomScheduler;
use quaject_esp_exec::report::{FaultReport, Outcome};
use quaject_esp_exec::step::{Checks, TooLarge};
use quaject_esp_gen::RUNTIME_HEADER;
use quaject_esp_gen::c;
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::text::fault_name;
use std::io::Write;
use std::path::PathBuf;

/// IR steps of the interpreter between two looks at signals and output that waits: some ten milliseconds.
pub(crate) const BUDGET: u64 = 200_000;

/// What executes a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The reference interpreter.
    #[default]
    Interpreter,
    /// Generated C, compiled and loaded.
    C,
    /// The reference interpreter, with machine code made in memory for what processes do by themselves.
    Jit,
    /// Machine code where this machine has a code generator and gives memory for code, else the interpreter alone.
    Best,
}

/// What is decided about a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What executes the program.
    pub engine: Engine,
    /// Drivers.
    pub bindings: Vec<Binding>,
    /// What the messages of some channels suffer.
    pub faults: Vec<Faults>,
    /// C sources, objects and libraries.
    pub externs: Vec<PathBuf>,
    /// A random scheduler's seed; none: the reference schedule. For the interpreter.
    pub seed: Option<u64>,
    /// Whether arithmetic that loses bits is a fault.
    pub checks: Checks,
    /// How time passes.
    pub time: Time,
    /// How many bytes the program's data may take.
    pub memory: Memory,
    /// Who is told of machine code.
    pub debug_info: DebugInfo,
}

/// How many bytes a program's data may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory(pub u64);

impl Default for Memory {
    /// With all that is around it, a run stays below 50 MB.
    fn default() -> Memory {
        Memory(32 << 20)
    }
}

impl std::str::FromStr for Memory {
    type Err = Trouble;

    /// `64M`: a number of bytes, or of K, M or G, each 1024 of the one before.
    fn from_str(text: &str) -> Result<Memory, Trouble> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit: Option<u64> = match &text[digits..] {
            "" => Some(1),
            "K" | "k" => Some(1 << 10),
            "M" | "m" => Some(1 << 20),
            "G" | "g" => Some(1 << 30),
            _ => None,
        };
        let bytes = text[..digits].parse::<u64>().ok().zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
        bytes.map(Memory).ok_or_else(|| {
            Trouble::usage(format!("`{text}` is no amount of memory"))
                .help("write a number of bytes, or of K, M or G: `64M`")
        })
    }
}

/// Refuses a program whose data does not fit, before anything is opened.
pub(crate) fn reserve(program: &Program, settings: &Settings) -> Result<(), Trouble> {
    let needed = data_bytes(program) as u64;
    if needed <= settings.memory.0 {
        return Ok(());
    }
    let megabytes = needed.div_ceil(1 << 20);
    let cause =
        format!("the program's data takes up to {megabytes} MiB, and a run may take {} MiB", settings.memory.0 >> 20);
    Err(Trouble::new(cause)
        .help(format!("make its arrays, messages, pools or replicas smaller, or allow it: `--memory {megabytes}M`")))
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// At rest (0), or by `exit`.
    Exit(u8),
    /// At a fault.
    Fault(Box<FaultReport>),
    /// A driver could not go on.
    Trouble(Trouble),
    /// A signal asked it to stop; its output has been written.
    Signal(i32),
    /// Nobody reads its output any more.
    Unread,
}

/// How a run ended, and what did not end it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How it ended.
    pub ending: Ending,
    /// What people should know beside: messages that were lost at a driver, commands that failed.
    pub notes: Vec<String>,
    /// What was done with each fast path of the program; nothing if compiled C ran, which does not count.
    pub paths: Vec<PathCounters>,
}

/// Runs a program. An error says why it could not begin.
pub fn run(program: &Program, settings: &Settings) -> Result<Ended, Trouble> {
    reserve(program, settings)?;
    match settings.engine {
        Engine::Interpreter | Engine::Jit | Engine::Best => {
            let mut ports = open(program, settings)?;
            let signals = Signals::listen()?;
            let (ending, paths) = interpret(program, settings, &mut ports, &signals);
            Ok(Ended { paths, ..close(ports, ending) })
        }
        Engine::C => {
            if settings.seed.is_some() {
                return Err(Trouble::usage("engine `c` has one order of execution only")
                    .help("leave out `--seed`, or use `--engine interp`"));
            }
            let generated = c::generate(program, &c_options(settings.checks));
            let library = Library::build(program, &generated, &settings.externs)?;
            let mut ports = Ports::open(program, &settings.bindings, &settings.faults, Externs::none(), settings.time)?;
            let signals = Signals::listen()?;
            let ending = library.run(program, &mut ports, &signals);
            Ok(close(ports, ending))
        }
    }
}

/// Runs a program on the interpreter and notes what it communicates. A random scheduler's seed has no meaning here.
pub fn profile(program: &Program, settings: &Settings) -> Result<(Ended, Profile), Trouble> {
    if settings.seed.is_some() {
        return Err(Trouble::usage("a profile is of the order of execution that programs have by themselves")
            .help("leave out `--seed`"));
    }
    reserve(program, settings)?;
    let mut interpreter = Interpreter::new(program, settings.checks).map_err(too_large)?;
    interpreter.profile();
    let mut scheduler = Scheduler::Reference(Box::new(interpreter));
    let mut ports = open(program, settings)?;
    let signals = Signals::listen()?;
    let ending = drive(&mut scheduler, &mut ports, &signals);
    let profile = match &mut scheduler {
        Scheduler::Reference(interpreter) => interpreter.take_profile(),
        Scheduler::Random(_) => None,
    };
    Ok((close(ports, ending), profile.expect("it was asked for")))
}

/// Runs a program on the interpreter and writes down what it learns and says.
pub fn record(program: &Program, settings: &Settings, header: &Header, to: &mut dyn Write) -> Result<Ended, Trouble> {
    reserve(program, settings)?;
    let mut ports = open(program, settings)?;
    let signals = Signals::listen()?;
    let mut recorder = Recorder::begin(&mut ports, program, header, to);
    let (ending, _) = interpret(program, settings, &mut recorder, &signals);
    let recorded = recorder.end(&ending_text(program, &ending));
    let ended = close(ports, ending);
    recorded.map(|()| ended)
}

/// Runs a recorded run again; `said` receives every message the program sends, as lines `channel message`.
pub fn replay(
    program: &Program,
    settings: &Settings,
    recording: Recording,
    said: &mut dyn Write,
) -> Result<Ending, Trouble> {
    let signals = Signals::listen()?;
    let mut replayer = Replayer::new(program, recording, said);
    let (ending, _) = interpret(program, settings, &mut replayer, &signals);
    let recorded = replayer.expect_end();
    match (replayer.take_difference(), ending) {
        (Some(difference), _) => Ok(Ending::Trouble(difference)),
        (None, ending @ (Ending::Signal(_) | Ending::Trouble(_))) => Ok(ending),
        (None, ending) => {
            let again = ending_text(program, &ending);
            if again == recorded || recorded.starts_with("stopped") {
                Ok(ending)
            } else {
                let cause = format!("the recorded run ended with `{recorded}`, this one with `{again}`");
                Ok(Ending::Trouble(Trouble::new(cause).help("was it made by another version of qj, or changed since?")))
            }
        }
    }
}

pub(crate) fn open<'p>(program: &'p Program, settings: &Settings) -> Result<Ports<'p>, Trouble> {
    let headers = if settings.externs.is_empty() {
        Vec::new()
    } else {
        let generated = c::generate(program, &c_options(settings.checks));
        vec![("quaject/esp.h".to_string(), RUNTIME_HEADER.to_string()), (HEADER_NAME.to_string(), generated.header)]
    };
    let externs = Externs::new(program, &settings.externs, headers)?;
    Ports::open(program, &settings.bindings, &settings.faults, externs, settings.time)
}

/// How C is generated for running here.
pub fn c_options(checks: Checks) -> c::Options {
    c::Options {
        header_name: HEADER_NAME.to_string(),
        style: c::Style::SansIo,
        checks: match checks {
            Checks::On => quaject_esp_gen::Checks::Overflow,
            Checks::Off => quaject_esp_gen::Checks::None,
        },
        ..c::Options::default()
    }
}

/// Everything that was sent goes out, however the run ended.
pub(crate) fn close(mut ports: Ports<'_>, ending: Ending) -> Ended {
    let hurry = match ending {
        Ending::Signal(_) | Ending::Unread => Hurry::Stopped,
        Ending::Exit(_) | Ending::Fault(_) | Ending::Trouble(_) => Hurry::None,
    };
    match ending {
        Ending::Unread => {}
        Ending::Exit(_) | Ending::Fault(_) | Ending::Trouble(_) | Ending::Signal(_) => ports.finish(hurry),
    }
    let ending = match (ports.take_output_trouble(), ending) {
        (Some(trouble), Ending::Exit(_)) => Ending::Trouble(trouble),
        (_, ending) => ending,
    };
    Ended { ending, notes: ports.put_away(hurry), paths: Vec::new() }
}

/// A world with a way to wait for it.
pub(crate) trait Place: Environment {
    /// Waits for news or a deadline.
    fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> Wake;
    /// Something that ends the run, if there is anything.
    fn interruption(&mut self) -> Option<Ending>;
    /// Writes output that has waited.
    fn flush(&mut self);
}

impl Place for Ports<'_> {
    fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> Wake {
        Ports::sleep(self, deadline_ns, signals)
    }

    fn interruption(&mut self) -> Option<Ending> {
        if self.is_gone() {
            return Some(Ending::Unread);
        }
        self.take_trouble().map(Ending::Trouble)
    }

    fn flush(&mut self) {
        Ports::flush(self);
    }
}

impl<'p> Place for Recorder<'_, Ports<'p>> {
    fn sleep(&mut self, deadline_ns: Option<i64>, signals: &Signals) -> Wake {
        self.world().sleep(deadline_ns, signals)
    }

    fn interruption(&mut self) -> Option<Ending> {
        self.world().interruption()
    }

    fn flush(&mut self) {
        self.world().flush();
    }
}

impl Place for Replayer<'_> {
    fn sleep(&mut self, _deadline_ns: Option<i64>, signals: &Signals) -> Wake {
        // What the recorded run waited for is what it asks about next.
        self.note_sleep();
        signals.pending().map_or(Wake::Event, Wake::Signal)
    }

    fn interruption(&mut self) -> Option<Ending> {
        if let Some(difference) = self.take_difference() {
            return Some(Ending::Trouble(difference));
        }
        // The recorded run did not end by itself here, but was ended.
        self.was_stopped().then_some(Ending::Exit(0))
    }

    fn flush(&mut self) {}
}

/// Who chooses the order of execution.
enum Scheduler<'p> {
    Reference(Box<Interpreter<'p>>),
    Random(Box<RandomScheduler<'p>>),
}

/// Runs a program on the interpreter until it ends or something ends it; what it did with its fast paths.
fn interpret(
    program: &Program,
    settings: &Settings,
    place: &mut impl Place,
    signals: &Signals,
) -> (Ending, Vec<PathCounters>) {
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
        Err(large) => return (Ending::Trouble(too_large(large)), Vec::new()),
    };
    match MachineCode::of_engine(program, settings) {
        Ok(None) => {}
        Ok(Some(code)) => match &mut scheduler {
            Scheduler::Reference(interpreter) => interpreter.use_native(Box::new(code)),
            Scheduler::Random(random) => random.use_native(Box::new(code)),
        },
        Err(trouble) => return (Ending::Trouble(trouble), Vec::new()),
    }
    let ending = drive(&mut scheduler, place, signals);
    let paths = match &scheduler {
        Scheduler::Reference(interpreter) => interpreter.path_runs().to_vec(),
        Scheduler::Random(random) => random.path_runs().to_vec(),
    };
    (ending, paths)
}

/// What to say of a program that no interpreter can hold.
pub(crate) fn too_large(large: TooLarge) -> Trouble {
    Trouble::new(large.to_string()).help("make its arrays, pools or replicas smaller")
}

/// Runs until the program ends or something ends it.
fn drive(scheduler: &mut Scheduler<'_>, place: &mut impl Place, signals: &Signals) -> Ending {
    loop {
        let outcome = match scheduler {
            Scheduler::Reference(interpreter) => interpreter.run(place, BUDGET),
            Scheduler::Random(random) => random.run(place, BUDGET),
        };
        if let Some(ending) = after(outcome, place, signals) {
            return ending;
        }
    }
}

/// What follows an outcome: the run's ending, or sleep.
pub(crate) fn after(outcome: Outcome, place: &mut impl Place, signals: &Signals) -> Option<Ending> {
    if let Some(ending) = place.interruption() {
        return Some(ending);
    }
    let wake = match outcome {
        Outcome::Ended(status) => return Some(Ending::Exit(status)),
        Outcome::Faulted(report) => return Some(Ending::Fault(report)),
        Outcome::Budget => {
            place.flush();
            signals.pending().map_or(Wake::Event, Wake::Signal)
        }
        Outcome::Quiescent(resting) => place.sleep(resting.deadline_ns, signals),
    };
    match wake {
        Wake::Event => None,
        Wake::Signal(signal) => Some(Ending::Signal(signal)),
        Wake::Never => Some(Ending::Trouble(Trouble::new("the program waits for nothing that could happen"))),
    }
}

/// An ending in the words of a recording.
fn ending_text(program: &Program, ending: &Ending) -> String {
    match ending {
        Ending::Exit(status) => format!("exit {status}"),
        Ending::Fault(fault) => format!(
            "fault {} {} {}:{}",
            fault_name(fault.fault),
            program.instance_name(fault.instance),
            fault.location.line,
            fault.location.column
        ),
        Ending::Trouble(_) | Ending::Signal(_) | Ending::Unread => "stopped".to_string(),
    }
}
