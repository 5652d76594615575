//! One program of a simulation: the interpreter, and a world that keeps what is said until somebody carries it on. Knows no
//! protocol.

use quaject_esp::{Compiled, Emit, Optimiser, Options};
use quaject_esp_exec::datum::{Datum, print_message};
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{ChannelId, ExternId, PoolId, Program, Type, TypeId};
use quaject_esp_run::disk::open_program;
use quaject_esp_run::{DebugInfo, Driver, MachineCode};
use std::collections::VecDeque;
use std::path::Path;

/// Messages that wait at a channel; nobody here is slow, so that more would be a message that nobody takes.
const HELD: usize = 10_000;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// The program as it is written.
    Interpreter,
    /// What `qj run` chooses: the optimised program, in machine code where there is a generator.
    Best,
}

/// A program of the repository.
pub(crate) fn compile(path: &str) -> Program {
    compile_for(Engine::Interpreter, path)
}

/// The same, for an engine.
pub(crate) fn compile_for(engine: Engine, path: &str) -> Program {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let (source, mut disk) = open_program(&file, &[]).expect("it is part of the repository");
    let optimiser = match engine {
        Engine::Interpreter => Optimiser::Off,
        Engine::Best => Optimiser::On,
    };
    let options = Options { optimiser, ..Options::new(Emit::Ir) };
    let Compiled { outputs, .. } = quaject_esp::compile(source, &mut disk, &options);
    outputs.expect("it is right").ir
}

/// A running program.
pub(crate) struct Node<'p> {
    pub(crate) program: &'p Program,
    interpreter: Interpreter<'p>,
    mail: Mail,
    /// When it wants to go on by itself.
    pub(crate) deadline_ns: Option<i64>,
}

struct Mail {
    /// By channel.
    came: Vec<VecDeque<Vec<Datum>>>,
    said: VecDeque<(ChannelId, Vec<Datum>)>,
    /// By channel: those of the driver `timer:`.
    timers: Vec<Option<Timer>>,
    now_ns: i64,
}

/// The ticks of a channel, as `timer:` gives them: who is late sees one for all that were missed, with its number.
struct Timer {
    period_ns: i64,
    tick: i64,
    message: Option<Vec<Datum>>,
}

impl<'p> Node<'p> {
    pub(crate) fn new(program: &'p Program) -> Node<'p> {
        Node::on(Engine::Interpreter, program)
    }

    /// Runs a program that was compiled for this engine.
    pub(crate) fn on(engine: Engine, program: &'p Program) -> Node<'p> {
        let mut interpreter = Interpreter::new(program, Checks::Off).expect("it is small");
        match engine {
            Engine::Interpreter => {}
            Engine::Best => {
                if let Ok(code) = MachineCode::compile(program, Checks::Off, DebugInfo::None) {
                    interpreter.use_native(Box::new(code));
                }
            }
        }
        let came = program.channels.iter().map(|_| VecDeque::new()).collect();
        let timers = program.channels.iter().map(|channel| Timer::new(channel.driver.as_deref()?)).collect();
        Node { program, interpreter, mail: Mail { came, said: VecDeque::new(), timers, now_ns: 0 }, deadline_ns: None }
    }

    pub(crate) fn channel(&self, name: &str) -> ChannelId {
        let at = self.program.channels.iter().position(|channel| channel.name == name);
        ChannelId(at.unwrap_or_else(|| panic!("there is no channel {name}")) as u32)
    }

    /// A message for the program.
    pub(crate) fn tell(&mut self, channel: ChannelId, message: Vec<Datum>) {
        let waiting = &mut self.mail.came[channel.0 as usize];
        waiting.push_back(message);
        assert!(waiting.len() < HELD, "nobody takes {}", self.program.channels[channel.0 as usize].name);
    }

    /// Messages of a channel that the program has not taken.
    pub(crate) fn waiting(&self, channel: ChannelId) -> usize {
        self.mail.came[channel.0 as usize].len()
    }

    /// Takes those of them back that are such.
    pub(crate) fn forget(&mut self, channel: ChannelId, is_such: impl Fn(&[Datum]) -> bool) {
        self.mail.came[channel.0 as usize].retain(|message| !is_such(message));
    }

    /// How many objects of all pools are free.
    pub(crate) fn free_objects(&self) -> u32 {
        let pools = 0..self.program.types.pools().len() as u32;
        pools.map(|pool| self.interpreter.state().free_objects(PoolId(pool))).sum()
    }

    /// Lets the program go on until it rests.
    pub(crate) fn run(&mut self, now_ns: i64) {
        self.mail.now_ns = now_ns;
        loop {
            match self.interpreter.run(&mut self.mail, 1_000_000) {
                Outcome::Budget => {}
                Outcome::Quiescent(resting) => {
                    let ticks = resting
                        .readable
                        .iter()
                        .filter_map(|channel| self.mail.timers[channel.0 as usize].as_ref().map(Timer::due_ns));
                    self.deadline_ns = resting.deadline_ns.into_iter().chain(ticks).min();
                    return;
                }
                outcome @ (Outcome::Ended(_) | Outcome::Faulted(_)) => {
                    panic!("after {} s the program has stopped: {outcome:?}", now_ns / super::SECOND_NS)
                }
            }
        }
    }

    /// The next message that the program has sent.
    pub(crate) fn heard(&mut self) -> Option<(ChannelId, Vec<Datum>)> {
        self.mail.said.pop_front()
    }

    /// The number of a case of the union that is this part of a channel's messages.
    pub(crate) fn case(&self, channel: ChannelId, part: usize, name: &str) -> u32 {
        let types = &self.program.types;
        let content = |ty: TypeId| match types.get(ty) {
            Type::Boxed(pool) => types.pool(*pool).content,
            _ => ty,
        };
        let Type::Union(id) = types.get(content(self.program.channels[channel.0 as usize].payload[part])) else {
            panic!("no union")
        };
        let cases = &types.aggregate(*id).parts;
        cases.iter().position(|(case, _)| case == name).unwrap_or_else(|| panic!("there is no case {name}")) as u32
    }

    /// The first of the instances that a channel's messages begin with.
    pub(crate) fn first_instance(&self, channel: ChannelId) -> u32 {
        let types = &self.program.types;
        let Type::Pid(processes) = types.get(self.program.channels[channel.0 as usize].payload[0]) else {
            panic!("no instance")
        };
        self.program.first_instance(processes[0])
    }

    /// A message in words, for people.
    pub(crate) fn words(&self, channel: ChannelId, message: &[Datum]) -> String {
        print_message(self.program, &self.program.channels[channel.0 as usize].payload, message)
    }
}

impl Timer {
    /// None of another driver.
    fn new(driver: &str) -> Option<Timer> {
        match driver.parse() {
            Ok(Driver::Timer { period, .. }) => {
                Some(Timer { period_ns: period.as_nanos() as i64, tick: 0, message: None })
            }
            Ok(Driver::Text(_) | Driver::Bytes(_) | Driver::Device(_)) | Err(_) => None,
        }
    }

    fn due_ns(&self) -> i64 {
        (self.tick + 1) * self.period_ns
    }

    fn look(&mut self, now_ns: i64) -> Offer<'_> {
        if self.due_ns() <= now_ns {
            self.tick = now_ns / self.period_ns;
            self.message = Some(vec![Datum::Int(i128::from(self.tick))]);
        }
        self.message.as_deref().map_or(Offer::Pending, Offer::Message)
    }
}

impl Environment for Mail {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        if let Some(timer) = &mut self.timers[channel.0 as usize] {
            return timer.look(self.now_ns);
        }
        self.came[channel.0 as usize].front().map_or(Offer::Pending, |message| Offer::Message(message))
    }

    fn take(&mut self, channel: ChannelId) {
        if let Some(timer) = &mut self.timers[channel.0 as usize] {
            timer.message = None;
            return;
        }
        self.came[channel.0 as usize].pop_front();
    }

    fn readiness(&mut self, _: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        self.said.push_back((channel, message.to_vec()));
    }

    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn call(&mut self, _: ExternId, _: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}
