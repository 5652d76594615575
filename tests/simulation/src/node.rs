//! One program of a simulation: the interpreter, and an environment that queues inputs and outputs. Knows no protocol.

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

/// Messages that may be queued at a channel. More mean that the program does not read the channel.
const MAX_PENDING: usize = 10_000;

/// The engine of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// The program as it is written.
    Interpreter,
    /// What `qj run` chooses: the optimised program, as machine code where the JIT supports the machine.
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
    outputs.expect("programs of the repository compile").ir
}

/// A running program.
pub(crate) struct Node<'p> {
    pub(crate) program: &'p Program,
    interpreter: Interpreter<'p>,
    environment: QueueEnvironment,
    /// When it continues without further input.
    pub(crate) deadline_ns: Option<i64>,
}

struct QueueEnvironment {
    /// By channel.
    inputs: Vec<VecDeque<Vec<Datum>>>,
    outputs: VecDeque<(ChannelId, Vec<Datum>)>,
    /// By channel: the timers of the driver `timer:`.
    timers: Vec<Option<Timer>>,
    now_ns: i64,
}

/// The ticks of a channel, as `timer:` offers them: a late reader receives one tick for all that it has missed, with
/// the number of the last.
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
        let inputs = program.channels.iter().map(|_| VecDeque::new()).collect();
        let timers = program.channels.iter().map(|channel| Timer::new(channel.driver.as_deref()?)).collect();
        Node {
            program,
            interpreter,
            environment: QueueEnvironment { inputs, outputs: VecDeque::new(), timers, now_ns: 0 },
            deadline_ns: None,
        }
    }

    pub(crate) fn channel(&self, name: &str) -> ChannelId {
        let at = self.program.channels.iter().position(|channel| channel.name == name);
        ChannelId(at.unwrap_or_else(|| panic!("there is no channel {name}")) as u32)
    }

    /// Queues a message for the program.
    pub(crate) fn offer(&mut self, channel: ChannelId, message: Vec<Datum>) {
        let pending = &mut self.environment.inputs[channel.0 as usize];
        pending.push_back(message);
        assert!(pending.len() < MAX_PENDING, "no process reads {}", self.program.channels[channel.0 as usize].name);
    }

    /// The number of messages at a channel that the program has not received.
    pub(crate) fn pending(&self, channel: ChannelId) -> usize {
        self.environment.inputs[channel.0 as usize].len()
    }

    /// Removes queued messages that the program has not received.
    pub(crate) fn withdraw(&mut self, channel: ChannelId, is_withdrawn: impl Fn(&[Datum]) -> bool) {
        self.environment.inputs[channel.0 as usize].retain(|message| !is_withdrawn(message));
    }

    /// The number of free objects of all pools.
    pub(crate) fn free_objects(&self) -> u32 {
        let pools = 0..self.program.types.pools().len() as u32;
        pools.map(|pool| self.interpreter.state().free_objects(PoolId(pool))).sum()
    }

    /// Runs the program until it is quiescent.
    pub(crate) fn run(&mut self, now_ns: i64) {
        self.environment.now_ns = now_ns;
        loop {
            match self.interpreter.run(&mut self.environment, 1_000_000) {
                Outcome::Budget => {}
                Outcome::Quiescent(awaited) => {
                    let ticks = awaited
                        .readable
                        .iter()
                        .filter_map(|channel| self.environment.timers[channel.0 as usize].as_ref().map(Timer::due_ns));
                    self.deadline_ns = awaited.deadline_ns.into_iter().chain(ticks).min();
                    return;
                }
                outcome @ (Outcome::Ended(_) | Outcome::Faulted(_)) => {
                    panic!("after {} s the program has stopped: {outcome:?}", now_ns / super::SECOND_NS)
                }
            }
        }
    }

    /// The next message that the program has sent.
    pub(crate) fn next_output(&mut self) -> Option<(ChannelId, Vec<Datum>)> {
        self.environment.outputs.pop_front()
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

    /// A message as text.
    pub(crate) fn message_text(&self, channel: ChannelId, message: &[Datum]) -> String {
        print_message(self.program, &self.program.channels[channel.0 as usize].payload, message)
    }
}

impl Timer {
    /// None for another driver.
    fn new(driver: &str) -> Option<Timer> {
        match driver.parse() {
            Ok(Driver::Timer { period, .. }) => {
                Some(Timer { period_ns: period.as_nanos() as i64, tick: 0, message: None })
            }
            Ok(Driver::Text(_) | Driver::Bytes(_) | Driver::Hex(_) | Driver::Device(_)) | Err(_) => None,
        }
    }

    fn due_ns(&self) -> i64 {
        (self.tick + 1) * self.period_ns
    }

    fn peek_tick(&mut self, now_ns: i64) -> Offer<'_> {
        if self.due_ns() <= now_ns {
            self.tick = now_ns / self.period_ns;
            self.message = Some(vec![Datum::Int(i128::from(self.tick))]);
        }
        self.message.as_deref().map_or(Offer::Pending, Offer::Message)
    }
}

impl Environment for QueueEnvironment {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        if let Some(timer) = &mut self.timers[channel.0 as usize] {
            return timer.peek_tick(self.now_ns);
        }
        self.inputs[channel.0 as usize].front().map_or(Offer::Pending, |message| Offer::Message(message))
    }

    fn take(&mut self, channel: ChannelId) {
        if let Some(timer) = &mut self.timers[channel.0 as usize] {
            timer.message = None;
            return;
        }
        self.inputs[channel.0 as usize].pop_front();
    }

    fn readiness(&mut self, _: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        self.outputs.push_back((channel, message.to_vec()));
    }

    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn call(&mut self, _: ExternId, _: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}
