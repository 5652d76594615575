//! Communications with a choice: of branches, of partners, of the order.

use super::Script;
use crate::generate::Outcome;
use crate::generate::shared::Refusal;
use crate::generate::types::Ty;

impl Script {
    /// An `alt` of reads of one channel: patterns that can refuse, then one that takes everything.
    pub(super) fn branches(&mut self, process: usize, name: &str, payload: &[Ty], idle: &str) {
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

    pub(super) fn branch(&mut self, process: usize, operation: &str, before: usize) {
        self.processes[process].line(&format!("{operation} {{"));
        self.compute_in(process);
        self.processes[process].line("}");
        self.processes[process].scope.truncate(before);
    }

    pub(super) fn choice(&mut self, sender: usize, receiver: usize) {
        let (name, payload) = self.channel(sender, receiver);
        let values = self.values(sender, &payload);
        self.processes[sender].line(&format!("out({name}{values});"));
        self.branches(receiver, &name, &payload, "");
    }

    pub(super) fn union(&mut self, sender: usize, receiver: usize) {
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
    pub(super) fn two_outs(&mut self, sender: usize, receiver: usize) {
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
    pub(super) fn merge(&mut self, sender: usize, receiver: usize) {
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

    /// A receiver that polls: it does something else until the message is there.
    pub(super) fn poll(&mut self, sender: usize, receiver: usize) {
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
}
