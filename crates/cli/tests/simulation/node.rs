//! One program of a simulation: the interpreter, and a world that keeps what is said until somebody carries it on. Knows no
//! protocol.

use quaject_esp::{Compiled, Emit, Options};
use quaject_esp_ir::datum::{Datum, print_message};
use quaject_esp_ir::interpreter::Interpreter;
use quaject_esp_ir::ir::{ChannelId, ExternId, PoolId, Program, Type, TypeId};
use quaject_esp_ir::report::Outcome;
use quaject_esp_ir::step::Checks;
use quaject_esp_ir::world::{Offer, Readiness, Reply, World};
use quaject_esp_run::disk::open_program;
use std::collections::VecDeque;
use std::path::Path;

/// Messages that wait at a channel; nobody here is slow, so that more would be a message that nobody takes.
const HELD: usize = 10_000;

/// A program of the repository.
pub(crate) fn compile(path: &str) -> Program {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let (source, mut disk) = open_program(&file, &[]).expect("it is part of the repository");
    let Compiled { outputs, .. } = quaject_esp::compile(source, &mut disk, &Options::new(Emit::Ir));
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
    now_ns: i64,
}

impl<'p> Node<'p> {
    pub(crate) fn new(program: &'p Program) -> Node<'p> {
        let interpreter = Interpreter::new(program, Checks::Off).expect("it is small");
        let came = program.channels.iter().map(|_| VecDeque::new()).collect();
        Node { program, interpreter, mail: Mail { came, said: VecDeque::new(), now_ns: 0 }, deadline_ns: None }
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
                Outcome::Resting(resting) => {
                    self.deadline_ns = resting.deadline_ns;
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

impl World for Mail {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        self.came[channel.0 as usize].front().map_or(Offer::Pending, |message| Offer::Message(message))
    }

    fn take(&mut self, channel: ChannelId) {
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
