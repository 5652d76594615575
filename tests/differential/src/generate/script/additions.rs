//! Communications by what the language has beyond the papers: procedures, templates, services of modules, deadlines,
//! patterns of alternatives.

use super::{Channel, Script};
use crate::generate::Outcome;
use crate::generate::body::Body;
use crate::generate::items;
use crate::generate::shared::{Called, Context, Direction, Kind, Place, Timing};
use crate::generate::types::Ty;
use quaject_esp_syntax::types::IntType;

impl Script {
    /// One communication of these between two processes.
    pub(super) fn addition(&mut self, sender: usize, receiver: usize) {
        match self.rng.u32(0..10) {
            0..=2 if !self.shared.services.is_empty() => self.by_service(sender),
            0..=2 => self.by_procedure(sender, receiver),
            3..=5 => self.by_template(sender, receiver),
            6 => self.by_deadline(sender, receiver),
            7 => self.by_cases(sender, receiver),
            _ => self.by_parts(sender, receiver),
        }
    }

    /// A procedure, perhaps one that has been called before, with any of the channels of a process.
    fn by_procedure(&mut self, caller: usize, partner: usize) {
        let known = self.shared.called.len();
        if known == 0 || self.rng.u32(0..3) == 0 {
            self.declarations += &items::called(&mut self.rng, &mut self.shared, known);
        }
        let called: Called = self.shared.called[self.rng.usize(0..self.shared.called.len())].clone();
        if called.timing == Timing::Observed {
            self.outcome = Outcome::Open;
        }
        let mut channels = Vec::new();
        for (direction, payload) in &called.channels {
            let (sender, receiver) = match direction {
                Direction::Out => (caller, partner),
                Direction::In => (partner, caller),
            };
            let is_fitting = |known: &&Channel| {
                known.sender == sender
                    && known.receiver == receiver
                    && known.payload == *payload
                    && !channels.contains(&known.name)
            };
            let known: Vec<&Channel> = self.channels.iter().filter(is_fitting).collect();
            let known = self.rng.choice(known).map(|channel| channel.name.clone());
            let name = known.unwrap_or_else(|| self.channel_of(sender, receiver, payload.clone()).0);
            channels.push(name);
        }
        self.processes[caller].call_on(&mut self.rng, &self.shared, &called, &channels);
        for ((direction, payload), name) in called.channels.iter().zip(&channels) {
            let opposite = match direction {
                Direction::Out => Direction::In,
                Direction::In => Direction::Out,
            };
            self.processes[partner].communicate(&mut self.rng, &self.shared, opposite, name, payload);
        }
    }

    /// An instance of a template, which passes on what the sender sends, or replicas of it.
    fn by_template(&mut self, sender: usize, receiver: usize) {
        let known = self.shared.templates.len();
        if known == 0 || self.rng.u32(0..3) == 0 {
            self.declarations += &items::template(&mut self.rng, &mut self.shared, known);
        }
        let template = self.shared.templates[self.rng.usize(0..self.shared.templates.len())].clone();
        let (work, done, instance) = (self.name("work"), self.name("done"), self.name("A"));
        let replicas = [1, 1, 2, 3][self.rng.usize(0..4)];
        let (shared, count) = if replicas > 1 {
            self.outcome = Outcome::Open;
            (" shared", format!("[{replicas}]"))
        } else {
            ("", String::new())
        };
        let types = &self.shared.types;
        let (question, answer) = (types.print(&template.question), types.print(&template.answer));
        let name = types.local(&template.name).to_string();
        self.declarations += &format!("channel {work}({question}){shared};\nchannel {done}({answer});\n");
        let constants = Body::new(Place::Function);
        let mut arguments = vec![work.clone(), done.clone()];
        for ty in &template.values {
            arguments.push(constants.expr(&mut self.rng, &self.shared, ty, 0, Context::Typed));
        }
        let arguments = arguments.join(", ");
        self.servers += &format!("process {instance}{count} = {name}({arguments});\n");
        if replicas > 1 && self.rng.bool() {
            // Without replicas it is checked, and nothing else.
            self.servers += &format!("process {instance}none[0] = {name}({arguments});\n");
        }
        let value = self.value(sender, &template.question);
        self.processes[sender].line(&format!("out({work}, {value});"));
        let pattern = self.patterns(receiver, std::slice::from_ref(&template.answer));
        self.processes[receiver].line(&format!("in({done}{pattern});"));
    }

    /// A receiver that waits for a message until a deadline.
    fn by_deadline(&mut self, sender: usize, receiver: usize) {
        self.outcome = Outcome::Open;
        let (name, payload) = self.channel(sender, receiver);
        self.processes[receiver].receive_by_deadline(&mut self.rng, &self.shared, &name, &payload);
        self.compute(sender, 1);
        let values = self.values(sender, &payload);
        self.processes[sender].line(&format!("out({name}{values});"));
    }

    /// An `alt` of which each branch takes some of the cases, tags or numbers of a message.
    fn by_cases(&mut self, sender: usize, receiver: usize) {
        let Some((ty, patterns)) = self.parted() else { return self.by_deadline(sender, receiver) };
        let (name, payload) = self.channel_of(sender, receiver, vec![ty]);
        let values = self.values(sender, &payload);
        self.processes[sender].line(&format!("out({name}{values});"));
        self.processes[receiver].line("alt {");
        for pattern in patterns {
            let body = &mut self.processes[receiver];
            let before = body.scope.len();
            body.line(&format!("in({name}, {pattern}) {{"));
            body.statements(&mut self.rng, &self.shared, 1, 1);
            body.line("}");
            body.scope.truncate(before);
        }
        self.processes[receiver].line("}");
    }

    /// Processes of which each takes some of the cases, tags or numbers of a message, and answers.
    fn by_parts(&mut self, sender: usize, receiver: usize) {
        let Some((ty, patterns)) = self.parted() else { return self.by_deadline(sender, receiver) };
        let answer = self.shared.types.any(&mut self.rng, 1);
        let (part, done) = (self.name("part"), self.name("done"));
        let (question, printed) = (self.shared.types.print(&ty), self.shared.types.print(&answer));
        self.declarations += &format!("channel {part}({question}, int);\nchannel {done}({printed});\n");
        let number = self.value(sender, &Ty::Int(IntType::I32));
        let value = self.value(sender, &ty);
        self.processes[sender].line(&format!("out({part}, {value}, {number});"));
        let pattern = self.patterns(receiver, std::slice::from_ref(&answer));
        self.processes[receiver].line(&format!("in({done}{pattern});"));
        for pattern in patterns {
            let mut body = Body::new(Place::Process);
            body.line(&format!("while {{ idle in({part}, {pattern}, $number);"));
            body.level += 1;
            body.push("number".into(), Ty::Int(IntType::I32), Kind::Plain);
            body.statements(&mut self.rng, &self.shared, 1, 1);
            let value = body.expr(&mut self.rng, &self.shared, &answer, 2, Context::Typed);
            body.line(&format!("out({done}, {value}); }}"));
            let server = self.name("S");
            self.servers += &format!("process {server} {{\n{}}}\n", body.text);
        }
    }

    /// A type and patterns of which exactly one takes each value.
    fn parted(&mut self) -> Option<(Ty, Vec<String>)> {
        let any = Body::new(Place::Function);
        (0..4).find_map(|_| {
            let ty = self.shared.types.any(&mut self.rng, 0);
            let patterns = any.covering(&mut self.rng, &self.shared, &ty)?;
            Some((ty, patterns))
        })
    }

    /// A process of a module, which only one process uses.
    fn by_service(&mut self, client: usize) {
        let service = self.shared.services.pop().expect("a module has such a process that nothing uses yet");
        let value = self.value(client, &service.question);
        self.processes[client].line(&format!("out({}, {value});", service.ask));
        let pattern = self.patterns(client, std::slice::from_ref(&service.answer));
        self.processes[client].line(&format!("in({}{pattern});", service.reply));
    }
}
