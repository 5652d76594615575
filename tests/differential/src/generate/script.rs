//! The script of a random program's communications, which its processes follow: what one sends, another takes.

mod additions;
mod choices;
mod preferences;
mod servers;

use super::body::Body;
use super::shared::{Context, Kind, Place, Shared};
use super::types::Ty;
use super::{Outcome, Size};
use crate::environment::Script as EnvironmentScript;
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

struct Channel {
    name: String,
    sender: usize,
    receiver: usize,
    payload: Vec<Ty>,
}

/// The communications of one program, and its text so far, while it is made.
pub struct Script {
    rng: Rng,
    shared: Shared,
    size: Size,
    processes: Vec<Body>,
    declarations: String,
    servers: String,
    channels: Vec<Channel>,
    environment: EnvironmentScript,
    rounds: u32,
    names: usize,
    outcome: Outcome,
}

impl Script {
    /// A script without communications, for a program of these items.
    pub fn new(mut rng: Rng, shared: Shared, size: Size, declarations: String) -> Script {
        let count = rng.usize(0..=size.processes);
        Script {
            rounds: rng.u32(1..4),
            rng,
            shared,
            size,
            processes: (0..count).map(|_| Body::new(Place::Process)).collect(),
            declarations,
            servers: String::new(),
            channels: Vec::new(),
            environment: EnvironmentScript::default(),
            names: 0,
            outcome: Outcome::Determined,
        }
    }

    /// Makes the processes. Returns the text of the program, the script of its environment, and whether its choices are
    /// observable.
    pub fn play(mut self) -> (String, EnvironmentScript, Outcome) {
        for index in 0..self.processes.len() {
            let count = self.rng.u32(0..=self.size.statements);
            self.compute(index, count);
            let rounds = self.rounds;
            let body = &mut self.processes[index];
            if self.rng.bool() {
                body.line(&format!("for round in 0..{rounds} {{"));
                body.level += 1;
                body.push("round".into(), Ty::Int(IntType::I32), Kind::Constant);
            } else {
                body.line("var round = 0;");
                body.line(&format!("while (round < {rounds}) {{"));
                body.line("round += 1;");
                body.level += 1;
                body.push("round".into(), Ty::Int(IntType::I32), Kind::Constant);
            }
        }
        if !self.processes.is_empty() {
            for _ in 0..self.rng.usize(self.size.events.div_ceil(2)..=self.size.events) {
                self.event();
                let index = self.any_process();
                self.compute(index, 1);
            }
        }
        let mut text = std::mem::take(&mut self.declarations);
        for channel in &self.channels {
            let payload = self.shared.types.print_message(&mut self.rng, &channel.payload);
            let policy = ["", "", "", " policy sender", " policy queue"][self.rng.usize(0..5)];
            text += &format!("channel {}({payload}){policy};\n", channel.name);
        }
        for index in 0..self.processes.len() {
            self.processes[index].line("}");
            if self.rng.u32(0..6) == 0 {
                // After the loop, variables declared in it are out of scope; constants are not.
                self.processes[index].line("yield;");
            }
        }
        for (index, body) in self.processes.iter().enumerate() {
            text += &format!("process P{index} {{\n{}}}\n", body.text);
        }
        (text + &self.servers, self.environment, self.outcome)
    }

    fn any_process(&mut self) -> usize {
        self.rng.usize(0..self.processes.len())
    }

    fn compute(&mut self, process: usize, max: u32) {
        let count = self.rng.u32(0..=max);
        self.processes[process].statements(&mut self.rng, &self.shared, count, 2);
    }

    fn compute_in(&mut self, process: usize) {
        if self.rng.bool() {
            self.processes[process].statements(&mut self.rng, &self.shared, 1, 1);
        }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names - 1)
    }

    fn value(&mut self, process: usize, ty: &Ty) -> String {
        self.processes[process].expr(&mut self.rng, &self.shared, ty, 2, Context::Typed)
    }

    fn values(&mut self, process: usize, types: &[Ty]) -> String {
        types.iter().map(|ty| format!(", {}", self.value(process, ty))).collect()
    }

    fn payload(&mut self) -> Vec<Ty> {
        (0..[0, 1, 1, 1, 2, 3][self.rng.usize(0..6)]).map(|_| self.shared.types.any(&mut self.rng, 1)).collect()
    }

    fn payload_from_outside(&mut self) -> Vec<Ty> {
        let count = [0, 1, 1, 1, 2, 3][self.rng.usize(0..6)];
        (0..count).map(|_| self.shared.types.any_from_outside(&mut self.rng, 1)).collect()
    }

    /// A channel of these two processes, perhaps one used before.
    fn channel(&mut self, sender: usize, receiver: usize) -> (String, Vec<Ty>) {
        let known: Vec<&Channel> =
            self.channels.iter().filter(|c| c.sender == sender && c.receiver == receiver).collect();
        if !known.is_empty() && self.rng.bool() {
            let channel = known[self.rng.usize(0..known.len())];
            return (channel.name.clone(), channel.payload.clone());
        }
        let payload = self.payload();
        self.channel_of(sender, receiver, payload)
    }

    fn channel_of(&mut self, sender: usize, receiver: usize, payload: Vec<Ty>) -> (String, Vec<Ty>) {
        let name = self.name("c");
        self.channels.push(Channel { name: name.clone(), sender, receiver, payload: payload.clone() });
        (name, payload)
    }

    /// Patterns that take every message, and may assign variables.
    fn patterns(&mut self, process: usize, payload: &[Ty]) -> String {
        self.processes[process].message(&mut self.rng, &self.shared, payload)
    }

    fn event(&mut self) {
        let sender = self.any_process();
        let receiver = self.any_process();
        if sender == receiver || self.rng.u32(0..4) == 0 {
            return self.external(sender);
        }
        if self.shared.adds(&mut self.rng, 2) {
            return self.addition(sender, receiver);
        }
        match self.rng.u32(0..16) {
            0..=3 => self.plain(sender, receiver),
            4 | 5 => self.choice(sender, receiver),
            6 => self.union(sender, receiver),
            7 => self.two_outs(sender, receiver),
            8 => self.merge(sender, receiver),
            9 => self.request(sender),
            10 => self.poll(sender, receiver),
            11 | 12 => self.urgent(sender, receiver),
            13 | 14 => self.prefer(sender, receiver),
            _ => self.jobs(sender, receiver),
        }
    }

    fn external(&mut self, process: usize) {
        if self.rng.bool() || self.processes.len() > 1 && self.rng.bool() {
            let payload = self.payload();
            let name = self.name("x");
            let printed = self.shared.types.print_message(&mut self.rng, &payload);
            self.declarations += &format!("channel {name}({printed}) external in;\n");
            let values = self.values(process, &payload);
            let line = match self.rng.u32(0..4) {
                0 => format!("alt {{ out({name}{values}) {{ }} }}"),
                _ => format!("out({name}{values});"),
            };
            self.processes[process].line(&line);
        } else {
            let payload = self.payload_from_outside();
            let name = self.name("w");
            let printed = self.shared.types.print_message(&mut self.rng, &payload);
            self.declarations += &format!("channel {name}({printed}) external out;\n");
            let short = u32::from(self.rng.u32(0..10) == 0);
            let messages = (0..self.rounds - short)
                .map(|_| payload.iter().map(|ty| self.shared.types.datum(&mut self.rng, ty)).collect())
                .collect();
            self.environment.inputs.push((name.clone(), messages));
            let idle = ["", "idle "][self.rng.usize(0..2)];
            if payload.len() == 1 && self.rng.u32(0..3) == 0 {
                self.branches(process, &name, &payload, idle);
            } else {
                let patterns = self.patterns(process, &payload);
                self.processes[process].line(&format!("{idle}in({name}{patterns});"));
            }
        }
    }

    fn plain(&mut self, sender: usize, receiver: usize) {
        let (name, payload) = self.channel(sender, receiver);
        let values = self.values(sender, &payload);
        let out = match self.rng.u32(0..5) {
            0 => format!("alt {{ out({name}{values}) {{ }} }}"),
            _ => format!("out({name}{values});"),
        };
        self.processes[sender].line(&out);
        if self.rng.u32(0..3) == 0 {
            let before = self.processes[receiver].scope.len();
            let patterns = self.patterns(receiver, &payload);
            self.processes[receiver].line(&format!("in({name}{patterns}) {{"));
            self.compute_in(receiver);
            self.processes[receiver].line("}");
            self.processes[receiver].scope.truncate(before);
        } else {
            let patterns = self.patterns(receiver, &payload);
            self.processes[receiver].line(&format!("in({name}{patterns});"));
        }
    }
}
