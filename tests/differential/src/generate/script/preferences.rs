//! Preferences: `pri alt`s of partners, the environment and the clock, and guards that become true.

use super::Script;
use crate::externs::MORE;
use crate::generate::Outcome;
use crate::generate::shared::{Memory, Refusal};
use crate::generate::types::Ty;

impl Script {
    /// A guard with `free(T)`, sometimes.
    pub(super) fn free_guard(&mut self) -> String {
        self.free_condition().map(|condition| format!("when ({condition}) ")).unwrap_or_default()
    }

    pub(super) fn free_condition(&mut self) -> Option<String> {
        let count = self.shared.types.boxed.len();
        if count == 0 || self.rng.u32(0..3) == 0 {
            return None;
        }
        let ty = Ty::Boxed(self.rng.usize(0..count));
        Some(format!("free({}) >= {}", self.shared.types.print(&ty), self.rng.u32(0..3)))
    }

    /// A `pri alt` of two partners, whose guards can become true while it waits.
    pub(super) fn prefer(&mut self, owner: usize, partner: usize) {
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

    pub(super) fn nearly_all_free(&mut self, id: usize) -> Option<String> {
        let capacity = self.shared.types.boxed[id].capacity;
        Some(format!(
            "free({}) >= {}",
            self.shared.types.print(&Ty::Boxed(id)),
            capacity.saturating_sub(self.rng.u32(0..2))
        ))
    }

    /// A process keeps an object for a while and then releases it, which makes guards true.
    pub(super) fn hold_object(&mut self, process: usize, id: usize) {
        if self.rng.u32(0..3) == 0 {
            return;
        }
        let name = self.processes[process].fresh();
        let value = self.value(process, &Ty::Boxed(id));
        let printed = self.shared.types.print(&Ty::Boxed(id));
        self.processes[process].line(&format!("var {name}: {printed} = {value};"));
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
    pub(super) fn meet_preference(&mut self, partner: usize, name: &str, payload: &[Ty], receives: bool) {
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
    pub(super) fn urgent(&mut self, owner: usize, partner: usize) {
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
    pub(super) fn outside(&mut self, process: usize) -> String {
        let payload = self.payload_from_outside();
        let printed = self.shared.types.print_message(&mut self.rng, &payload);
        match self.rng.u32(0..3) {
            0 => {
                let wait = self.rng.u32(0..4) * 200;
                if self.rng.bool() { format!("after ({wait} us)") } else { format!("until (now + ({wait} us))") }
            }
            1 => {
                let name = self.name("x");
                self.declarations += &format!("channel {name}({printed}) external in;\n");
                self.hold(&name);
                format!("out({name}{})", self.values(process, &payload))
            }
            _ => {
                let name = self.name("w");
                self.declarations += &format!("channel {name}({printed}) external out;\n");
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
    pub(super) fn hold(&mut self, name: &str) {
        if self.rng.u32(0..4) > 0 {
            self.environment.held.push(name.to_string());
        }
    }
}
