//! Random well-typed programs, small ones first. Processes follow a common script of communications, so that most
//! programs terminate; choices, guards, pools and arithmetic vary their runs.

pub mod body;
pub mod types;

use crate::environment::Script as EnvironmentScript;
use crate::externs::MORE;
use body::{Access, Body, Context, Function, Kind, Memory, Place, Procedure, Refusal, Shared};
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;
use types::{Ty, Types};

/// A random program and its environment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its seed.
    pub seed: u64,
    /// Its text.
    pub source: String,
    /// The script of its environment.
    pub script: EnvironmentScript,
    /// Whether all runs without a fault have the same messages on each channel.
    pub outcome: Outcome,
}

/// Whether a program's choices are observable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// They are not.
    Determined,
    /// They can be.
    Open,
}

/// Limits on the size of programs.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The maximum number of processes.
    pub processes: usize,
    /// The maximum number of communications per round.
    pub events: usize,
    /// The maximum number of successive statements.
    pub statements: u32,
}

impl Size {
    /// Sizes from empty up: the first seeds give the smallest programs, later ones all sizes.
    pub fn of_seed(seed: u64) -> Size {
        let level = if seed < 64 { seed / 8 } else { 1 + seed % 7 } as usize;
        Size { processes: level.min(5), events: level, statements: 1 + level as u32 / 2 }
    }
}

struct Channel {
    name: String,
    sender: usize,
    receiver: usize,
    payload: Vec<Ty>,
}

struct Script {
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

/// The program of a seed.
pub fn generate(seed: u64) -> Sample {
    let mut rng = Rng::with_seed(seed);
    let size = Size::of_seed(seed);
    let named = rng.usize(0..=size.events.min(4));
    let memory = if rng.u32(0..4) == 0 { Memory::Manual } else { Memory::Automatic };
    // Objects that are never released need larger pools.
    let plenty = if memory == Memory::Manual { 8 } else { 1 };
    let types = Types::random(&mut rng, named, plenty);
    let mut shared = Shared { types, memory, ..Shared::default() };
    let mut declarations = shared.types.declarations();
    if memory == Memory::Manual {
        declarations += "memory manual;\n";
    }
    if size.events > 0 && rng.u32(0..3) == 0 {
        declarations += &externs(&mut rng, &mut shared, size);
    }
    if size.events > 1 && rng.u32(0..3) == 0 {
        declarations += &layout(&mut rng, &mut shared);
    }
    // From numbers of its own, so that the rest of the program does not depend on it.
    if seed.is_multiple_of(3) {
        declarations += &constants(&mut Rng::with_seed(!seed), &mut shared);
    }
    for index in 0..rng.usize(0..=size.events.min(3)) {
        declarations += &function(&mut rng, &mut shared, index, size);
    }
    let count = rng.usize(0..=size.processes);
    let mut script = Script {
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
    };
    let body = script.play();
    Sample { seed, source: body, script: script.environment, outcome: script.outcome }
}

fn layout(rng: &mut Rng, shared: &mut Shared) -> String {
    let mut widths = Vec::new();
    let mut left = rng.u32(1..5) * 8;
    let mut text = format!("layout l{} {{ ", shared.layouts.len());
    while left > 0 {
        let width = rng.u32(1..=left.min(20));
        text += &format!("g{}: {width}, ", widths.len());
        widths.push(width);
        left -= width;
    }
    shared.layouts.push(widths);
    text + "}\n"
}

/// Extern functions: pure ones, those with effects, and [`MORE`].
fn externs(rng: &mut Rng, shared: &mut Shared, size: Size) -> String {
    let mut text = format!("extern fn {MORE}();\n");
    shared.procedures.push(Procedure { name: MORE.into(), parameters: Vec::new(), result: None });
    for index in 0..rng.usize(0..=size.events.min(3)) {
        let absent = if rng.u32(0..12) == 0 { "absent" } else { "" };
        let has_effects = rng.bool();
        let parameters: Vec<(Ty, Access)> = (0..rng.usize(0..3))
            .map(|_| match shared.types.any(rng, 1) {
                ty @ Ty::Bytes(_) if has_effects && rng.bool() => (ty, Access::Writes),
                ty => (ty, Access::Reads),
            })
            .collect();
        let result = (!has_effects || rng.bool()).then(|| shared.types.any(rng, 1));
        let printed: Vec<String> = parameters
            .iter()
            .map(|(ty, access)| match access {
                Access::Reads => shared.types.print(ty),
                Access::Writes => format!("#{}", shared.types.print(ty)),
            })
            .collect();
        let arrow = result.as_ref().map(|ty| format!(" -> {}", shared.types.print(ty))).unwrap_or_default();
        let (pure, kind) = if has_effects { ("", "do") } else { ("pure ", "get") };
        let name = format!("{absent}{kind}{index}");
        text += &format!("extern {pure}fn {name}({}){arrow};\n", printed.join(", "));
        match (has_effects, result) {
            (false, Some(result)) => {
                let parameters = parameters.into_iter().map(|(ty, _)| ty).collect();
                shared.functions.push(Function { name, parameters, result });
            }
            (_, result) => shared.procedures.push(Procedure { name, parameters, result }),
        }
    }
    text
}

/// Constant arrays without boxed parts; some are filled by a function that the compiler executes.
fn constants(rng: &mut Rng, shared: &mut Shared) -> String {
    let mut text = String::new();
    for index in 0..rng.usize(1..4) {
        let element = match shared.types.any(rng, 1) {
            element if shared.types.is_flat(&element) => element,
            _ => shared.types.scalar(rng),
        };
        let length = rng.u32(1..6);
        let ty = Ty::Array(length, Box::new(element.clone()));
        let printed = shared.types.print(&ty);
        let value = Body::new(Place::Function).expr(rng, shared, &ty, 0, Context::Typed);
        let name = format!("k{index}");
        if rng.bool() {
            text += &format!("const {name}: {printed} = {value};\n");
        } else {
            text += &format!(
                "fn make{index}() -> {printed} {{ var t: #{printed} = thaw(from{index}()), i = 0;\n\
                 while (i < {length}) {{ t[i] = from{index}()[{length} - 1 - i]; i += 1; }} return freeze(t); }}\n\
                 fn from{index}() -> {printed} {{ return {value}; }}\nconst {name} = make{index}();\n"
            );
        }
        shared.constants.push((name, length, element));
    }
    text
}

fn function(rng: &mut Rng, shared: &mut Shared, index: usize, size: Size) -> String {
    let mut body = Body::new(Place::Function);
    let parameters: Vec<Ty> = (0..rng.usize(0..3)).map(|_| shared.types.any(rng, 1)).collect();
    let mut printed = Vec::new();
    for ty in &parameters {
        let name = body.fresh();
        printed.push(format!("{name}: {}", shared.types.print(ty)));
        body.push(name, ty.clone(), Kind::Constant);
    }
    let result = shared.types.any(rng, 1);
    let count = rng.u32(0..=size.statements);
    body.statements(rng, shared, count, 1);
    let value = body.expr(rng, shared, &result, 2, Context::Typed);
    body.line(&format!("return {value};"));
    let text = format!("fn f{index}({}) -> {} {{\n{}}}\n", printed.join(", "), shared.types.print(&result), body.text);
    shared.functions.push(Function { name: format!("f{index}"), parameters, result });
    text
}

impl Script {
    fn play(&mut self) -> String {
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
            let payload: Vec<String> = channel.payload.iter().map(|ty| self.shared.types.print(ty)).collect();
            let policy = ["", "", "", " policy sender", " policy queue"][self.rng.usize(0..5)];
            text += &format!("channel {}({}){policy};\n", channel.name, payload.join(", "));
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
        text + &std::mem::take(&mut self.servers)
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
        let body = &mut self.processes[process];
        let targets = body.scope.len();
        let mut used = Vec::new();
        let mut text = String::new();
        for ty in payload {
            let target = if self.rng.u32(0..4) == 0 { body.target(&mut self.rng, ty, &used) } else { None };
            text += ", ";
            match target {
                Some(name) => {
                    text += &name;
                    used.push(name);
                }
                None => {
                    text += &body.pattern(&mut self.rng, &self.shared, ty, Refusal::Never, targets);
                }
            }
        }
        text
    }

    fn event(&mut self) {
        let sender = self.any_process();
        let receiver = self.any_process();
        if sender == receiver || self.rng.u32(0..4) == 0 {
            return self.external(sender);
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
            let printed: Vec<String> = payload.iter().map(|ty| self.shared.types.print(ty)).collect();
            self.declarations += &format!("channel {name}({}) external in;\n", printed.join(", "));
            let values = self.values(process, &payload);
            let line = match self.rng.u32(0..4) {
                0 => format!("alt {{ out({name}{values}) {{ }} }}"),
                _ => format!("out({name}{values});"),
            };
            self.processes[process].line(&line);
        } else {
            let payload = self.payload();
            let name = self.name("w");
            let printed: Vec<String> = payload.iter().map(|ty| self.shared.types.print(ty)).collect();
            self.declarations += &format!("channel {name}({}) external out;\n", printed.join(", "));
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

    /// An `alt` of reads of one channel: patterns that can refuse, then one that takes everything.
    fn branches(&mut self, process: usize, name: &str, payload: &[Ty], idle: &str) {
        let before = self.processes[process].scope.len();
        let priority = ["", "pri "][self.rng.usize(0..2)];
        self.processes[process].line(&format!("{idle}{priority}alt {{"));
        for _ in 0..self.rng.u32(0..3) {
            let mut patterns = String::new();
            for ty in payload {
                let body = &mut self.processes[process];
                patterns += ", ";
                patterns += &body.pattern(&mut self.rng, &self.shared, ty, Refusal::Dynamic, before);
                patterns += &body.tried_condition(&mut self.rng, &self.shared);
            }
            self.branch(process, &format!("in({name}{patterns})"), before);
        }
        let patterns = self.patterns(process, payload);
        self.branch(process, &format!("in({name}{patterns})"), before);
        self.processes[process].line("}");
        if priority.is_empty() {
            self.outcome = Outcome::Open;
        }
    }

    fn branch(&mut self, process: usize, operation: &str, before: usize) {
        self.processes[process].line(&format!("{operation} {{"));
        self.compute_in(process);
        self.processes[process].line("}");
        self.processes[process].scope.truncate(before);
    }

    fn choice(&mut self, sender: usize, receiver: usize) {
        let (name, payload) = self.channel(sender, receiver);
        let values = self.values(sender, &payload);
        self.processes[sender].line(&format!("out({name}{values});"));
        self.branches(receiver, &name, &payload, "");
    }

    fn union(&mut self, sender: usize, receiver: usize) {
        if self.shared.types.unions.is_empty() {
            return self.choice(sender, receiver);
        }
        let id = self.rng.usize(0..self.shared.types.unions.len());
        let (name, payload) = self.channel_of(sender, receiver, vec![Ty::Union(id)]);
        let value = self.value(sender, &payload[0]);
        self.processes[sender].line(&format!("out({name}, {value});"));
        let before = self.processes[receiver].scope.len();
        self.processes[receiver].line("alt {");
        for (tag, ty) in self.shared.types.unions[id].clone().into_iter().enumerate() {
            let body = &mut self.processes[receiver];
            let pattern = body.tag_pattern(&mut self.rng, &self.shared, tag, ty.as_ref(), before);
            self.branch(receiver, &format!("in({name}, {pattern})"), before);
        }
        self.processes[receiver].line("}");
    }

    /// Two messages sent in any order, to a receiver with a fixed order.
    fn two_outs(&mut self, sender: usize, receiver: usize) {
        self.outcome = Outcome::Open;
        let (first, first_payload) = self.channel(sender, receiver);
        let payload = self.payload();
        let (second, second_payload) = self.channel_of(sender, receiver, payload);
        let (a, b) = (self.processes[sender].fresh(), self.processes[sender].fresh());
        self.processes[sender].line(&format!("var {a} = false, {b} = false;"));
        self.processes[sender].line(&format!("while (!({a} && {b})) {{ alt {{"));
        let values = self.values(sender, &first_payload);
        self.processes[sender].line(&format!("when (!{a}) out({first}{values}) {{ {a} = true; }}"));
        let values = self.values(sender, &second_payload);
        self.processes[sender].line(&format!("when (!{b}) out({second}{values}) {{ {b} = true; }}"));
        self.processes[sender].line("} }");
        for (name, payload) in [(first, first_payload), (second, second_payload)] {
            let patterns = self.patterns(receiver, &payload);
            self.processes[receiver].line(&format!("in({name}{patterns});"));
        }
    }

    /// A receiver that takes from two senders, in any order.
    fn merge(&mut self, sender: usize, receiver: usize) {
        let other = self.any_process();
        if other == receiver {
            return self.plain(sender, receiver);
        }
        self.outcome = Outcome::Open;
        let (first, first_payload) = self.channel(sender, receiver);
        let payload = self.payload();
        let (second, second_payload) = self.channel_of(other, receiver, payload);
        let values = self.values(sender, &first_payload);
        self.processes[sender].line(&format!("out({first}{values});"));
        let values = self.values(other, &second_payload);
        self.processes[other].line(&format!("out({second}{values});"));
        let (a, b) = (self.processes[receiver].fresh(), self.processes[receiver].fresh());
        let before = self.processes[receiver].scope.len();
        self.processes[receiver].line(&format!("var {a} = 0, {b} = 0;"));
        self.processes[receiver].line(&format!("while ({a} + {b} < 2) {{ alt {{"));
        for (flag, name, payload) in [(&a, first, first_payload), (&b, second, second_payload)] {
            let patterns = self.patterns(receiver, &payload);
            self.processes[receiver].line(&format!("when ({flag} == 0) in({name}{patterns}) {{ {flag} += 1;"));
            self.compute_in(receiver);
            self.processes[receiver].line("}");
            self.processes[receiver].scope.truncate(before);
        }
        self.processes[receiver].line("} }");
    }

    /// A server that answers every client.
    fn request(&mut self, client: usize) {
        let (ask, reply, server) = (self.name("ask"), self.name("reply"), self.name("S"));
        let ty = self.shared.types.any(&mut self.rng, 1);
        let result = self.shared.types.any(&mut self.rng, 1);
        let second = self.any_process();
        let mut clients = vec![client];
        if second != client {
            clients.push(second);
            clients.sort_unstable();
            self.outcome = Outcome::Open;
        }
        let names: Vec<String> = clients.iter().map(|index| format!("P{index}")).collect();
        let names = names.join(", ");
        let (printed, printed_result) = (self.shared.types.print(&ty), self.shared.types.print(&result));
        self.declarations += &format!("channel {ask}(pid({names}), {printed});\n");
        self.declarations += &format!("channel {reply}(pid({names}), {printed_result});\n");
        for client in clients {
            let value = self.value(client, &ty);
            self.processes[client].line(&format!("out({ask}, @, {value});"));
            let pattern = self.patterns(client, std::slice::from_ref(&result));
            self.processes[client].line(&format!("in({reply}, @{pattern});"));
        }
        let mut body = Body::new(Place::Process);
        body.line(&format!("while {{ in({ask}, $client, $question);"));
        body.level += 1;
        body.push("question".into(), ty, Kind::Plain);
        body.statements(&mut self.rng, &self.shared, 1, 1);
        let answer = body.expr(&mut self.rng, &self.shared, &result, 2, Context::Typed);
        body.line(&format!("out({reply}, client, {answer}); }}"));
        self.servers += &format!("process {server} {{\n{}}}\n", body.text);
    }

    /// A receiver that polls: it does something else until the message is there.
    fn poll(&mut self, sender: usize, receiver: usize) {
        self.outcome = Outcome::Open;
        let (name, payload) = self.channel(sender, receiver);
        let values = self.values(sender, &payload);
        self.processes[sender].line(&format!("out({name}{values});"));
        let (got, tries) = (self.processes[receiver].fresh(), self.processes[receiver].fresh());
        let before = self.processes[receiver].scope.len();
        self.processes[receiver].line(&format!("var {got} = false, {tries} = 0;"));
        self.processes[receiver].line(&format!("while (!{got} && {tries} < 9) {{ {tries} += 1; pri alt {{"));
        let patterns = self.patterns(receiver, &payload);
        let guard = self.free_guard();
        self.processes[receiver].line(&format!("{guard}in({name}{patterns}) {{ {got} = true;"));
        self.compute_in(receiver);
        self.processes[receiver].scope.truncate(before);
        self.processes[receiver].line(match self.rng.u32(0..3) {
            0 if self.rng.bool() => "} after (1 ms) { } } }",
            0 => "} until (now + (1 ms)) { } } }",
            _ => "} else { yield; } } }",
        });
    }

    /// A guard with `free(T)`, sometimes.
    fn free_guard(&mut self) -> String {
        self.free_condition().map(|condition| format!("when ({condition}) ")).unwrap_or_default()
    }

    fn free_condition(&mut self) -> Option<String> {
        let count = self.shared.types.boxed.len();
        if count == 0 || self.rng.u32(0..3) == 0 {
            return None;
        }
        Some(format!("free(b{}) >= {}", self.rng.usize(0..count), self.rng.u32(0..3)))
    }

    /// A `pri alt` of two partners, whose guards can become true while it waits.
    fn prefer(&mut self, owner: usize, partner: usize) {
        let other = self.any_process();
        if other == owner {
            return self.plain(owner, partner);
        }
        self.outcome = Outcome::Open;
        let sends = self.rng.bool();
        let channels: Vec<(String, Vec<Ty>, usize)> = [partner, other]
            .into_iter()
            .map(|partner| {
                let payload = self.payload();
                let (sender, receiver) = if sends { (owner, partner) } else { (partner, owner) };
                let (name, payload) = self.channel_of(sender, receiver, payload);
                (name, payload, partner)
            })
            .collect();
        let boxed = self.shared.types.boxed.len();
        let held = (boxed > 0).then(|| self.rng.usize(0..boxed));
        let flags = [self.processes[owner].fresh(), self.processes[owner].fresh()];
        let before = self.processes[owner].scope.len();
        let waits = self.processes[owner].fresh();
        self.processes[owner].line(&format!("var {} = 0, {} = 0, {waits} = 0;", flags[0], flags[1]));
        self.processes[owner].line(&format!("while ({} + {} < 2) {{ pri alt {{", flags[0], flags[1]));
        self.processes[owner].level += 1;
        for (flag, (name, payload, _)) in flags.iter().zip(&channels) {
            let free = match held {
                Some(id) if self.rng.u32(0..4) > 0 => self.nearly_all_free(id),
                Some(_) | None => self.free_condition(),
            };
            let free = free.map(|condition| format!(" && {condition}")).unwrap_or_default();
            let operation = if sends {
                format!("out({name}{})", self.values(owner, payload))
            } else {
                format!("in({name}{})", self.patterns(owner, payload))
            };
            self.processes[owner].line(&format!("when ({flag} == 0{free}) {operation} {{ {flag} += 1;"));
            self.compute_in(owner);
            self.processes[owner].line("}");
            self.processes[owner].scope.truncate(before);
        }
        if self.rng.u32(0..4) == 0 {
            self.processes[owner].line(&format!("when ({waits} < 3) after (1 ms) {{ {waits} += 1; }}"));
        }
        self.processes[owner].line("} }");
        self.processes[owner].level -= 1;
        for (name, payload, partner) in channels {
            if let Some(id) = held {
                self.hold_object(partner, id);
            }
            self.meet_preference(partner, &name, &payload, sends);
            self.compute(partner, 1);
        }
    }

    fn nearly_all_free(&mut self, id: usize) -> Option<String> {
        let capacity = self.shared.types.boxed[id].capacity;
        Some(format!("free(b{id}) >= {}", capacity.saturating_sub(self.rng.u32(0..2))))
    }

    /// A process keeps an object for a while and then releases it, which makes guards true.
    fn hold_object(&mut self, process: usize, id: usize) {
        if self.rng.u32(0..3) == 0 {
            return;
        }
        let name = self.processes[process].fresh();
        let value = self.value(process, &Ty::Boxed(id));
        self.processes[process].line(&format!("var {name}: b{id} = {value};"));
        for _ in 0..self.rng.u32(1..4) {
            self.processes[process].line("yield;");
        }
        let end = match self.shared.memory {
            Memory::Automatic => format!("if ({name} != {name}) exit(1);"),
            Memory::Manual => format!("unlink({name});"),
        };
        self.processes[process].line(&end);
    }

    /// The other end of one branch of [`Self::prefer`].
    fn meet_preference(&mut self, partner: usize, name: &str, payload: &[Ty], receives: bool) {
        let before = self.processes[partner].scope.len();
        let operation = if receives {
            format!("in({name}{})", self.patterns(partner, payload))
        } else {
            format!("out({name}{})", self.values(partner, payload))
        };
        let line = match self.rng.u32(0..4) {
            0 => format!("{operation};"),
            1 if !receives => {
                let (given, tries) = (self.processes[partner].fresh(), self.processes[partner].fresh());
                format!(
                    "var {given} = false, {tries} = 0; while (!{given} && {tries} < 9) {{ {tries} += 1; alt {{ \
                     {operation} {{ {given} = true; }} else {{ yield; }} }} }}"
                )
            }
            _ => {
                self.processes[partner].scope.truncate(before);
                format!("alt {{ {}{operation} {{ }} }}", self.free_guard())
            }
        };
        self.processes[partner].line(&line);
    }

    /// A `pri alt` that prefers the environment or the clock to a partner, which can be ready first.
    fn urgent(&mut self, owner: usize, partner: usize) {
        self.outcome = Outcome::Open;
        let sends = self.rng.bool();
        let (sender, receiver) = if sends { (owner, partner) } else { (partner, owner) };
        let (name, payload) = self.channel(sender, receiver);
        let (done, count) = (self.processes[owner].fresh(), self.processes[owner].fresh());
        let before = self.processes[owner].scope.len();
        self.processes[owner].line(&format!("var {done} = false, {count} = 0;"));
        self.processes[owner].line(&format!("while (!{done}) {{ pri alt {{"));
        self.processes[owner].level += 1;
        for position in 0..self.rng.usize(2..4) {
            if position == 1 {
                let guard = self.free_guard();
                let operation = if sends {
                    let values = self.values(owner, &payload);
                    format!("{guard}out({name}{values})")
                } else {
                    let patterns = self.patterns(owner, &payload);
                    format!("{guard}in({name}{patterns})")
                };
                self.processes[owner].line(&format!("{operation} {{ {done} = true;"));
            } else {
                let operation = self.outside(owner);
                self.processes[owner].line(&format!("when ({count} < 2) {operation} {{ {count} += 1;"));
            }
            self.compute_in(owner);
            self.processes[owner].line("}");
            self.processes[owner].scope.truncate(before);
        }
        self.processes[owner].line("} }");
        self.processes[owner].level -= 1;
        if self.shared.procedures.iter().any(|procedure| procedure.name == MORE) && self.rng.bool() {
            self.processes[partner].line(&format!("{MORE}();"));
        }
        let before = self.processes[partner].scope.len();
        let (operation, values) =
            if sends { ("in", self.patterns(partner, &payload)) } else { ("out", self.values(partner, &payload)) };
        let line = match self.rng.u32(0..4) {
            0 => {
                self.processes[partner].scope.truncate(before);
                format!("alt {{ {operation}({name}{values}) {{ }} }}")
            }
            1 if !sends => {
                let (given, tries) = (self.processes[partner].fresh(), self.processes[partner].fresh());
                format!(
                    "var {given} = false, {tries} = 0; while (!{given} && {tries} < 9) {{ {tries} += 1; alt {{ \
                     {operation}({name}{values}) {{ {given} = true; }} else {{ yield; }} }} }}"
                )
            }
            _ => format!("{operation}({name}{values});"),
        };
        self.processes[partner].line(&line);
    }

    /// An operation on the environment or the clock.
    fn outside(&mut self, process: usize) -> String {
        let payload = self.payload();
        let printed: Vec<String> = payload.iter().map(|ty| self.shared.types.print(ty)).collect();
        match self.rng.u32(0..3) {
            0 => {
                let wait = self.rng.u32(0..4) * 200;
                if self.rng.bool() { format!("after ({wait} us)") } else { format!("until (now + ({wait} us))") }
            }
            1 => {
                let name = self.name("x");
                self.declarations += &format!("channel {name}({}) external in;\n", printed.join(", "));
                self.hold(&name);
                format!("out({name}{})", self.values(process, &payload))
            }
            _ => {
                let name = self.name("w");
                self.declarations += &format!("channel {name}({}) external out;\n", printed.join(", "));
                self.hold(&name);
                let messages = (0..self.rng.u32(0..4))
                    .map(|_| payload.iter().map(|ty| self.shared.types.datum(&mut self.rng, ty)).collect())
                    .collect();
                self.environment.inputs.push((name.clone(), messages));
                let before = self.processes[process].scope.len();
                let body = &mut self.processes[process];
                let mut patterns = String::new();
                for ty in &payload {
                    patterns += ", ";
                    patterns += &body.pattern(&mut self.rng, &self.shared, ty, Refusal::Never, before);
                    patterns += &body.tried_condition(&mut self.rng, &self.shared);
                }
                format!("in({name}{patterns})")
            }
        }
    }

    /// Sometimes makes a channel a held one, for which the program calls `more`.
    fn hold(&mut self, name: &str) {
        if self.rng.u32(0..4) > 0 {
            self.environment.held.push(name.to_string());
        }
    }

    /// Work for any of several replicas.
    fn jobs(&mut self, sender: usize, receiver: usize) {
        self.outcome = Outcome::Open;
        let (job, done, worker) = (self.name("job"), self.name("done"), self.name("W"));
        let ty = self.shared.types.any(&mut self.rng, 1);
        let result = self.shared.types.any(&mut self.rng, 1);
        let (printed, printed_result) = (self.shared.types.print(&ty), self.shared.types.print(&result));
        self.declarations += &format!("channel {job}({printed}) shared;\nchannel {done}({printed_result});\n");
        let value = self.value(sender, &ty);
        self.processes[sender].line(&format!("out({job}, {value});"));
        let pattern = self.patterns(receiver, std::slice::from_ref(&result));
        self.processes[receiver].line(&format!("in({done}{pattern});"));
        let mut body = Body::new(Place::Process);
        body.line(&format!("while {{ in({job}, $question);"));
        body.level += 1;
        body.push("question".into(), ty, Kind::Plain);
        body.statements(&mut self.rng, &self.shared, 1, 1);
        let answer = body.expr(&mut self.rng, &self.shared, &result, 2, Context::Typed);
        body.line(&format!("out({done}, {answer}); }}"));
        let replicas = self.rng.u32(1..4);
        self.servers += &format!("process {worker}[{replicas}] {{\n{}}}\n", body.text);
    }
}
