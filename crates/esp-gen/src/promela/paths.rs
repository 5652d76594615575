//! Fast paths in Promela. Where an instance that can be a member stands is a number that everybody sees, and its values
//! are global: the trigger takes it along, and says where it goes on.
//!
//! ```text
//!   place[m]  0           anywhere
//!             1 ..        at the wait with this number, where a path can take it along
//!             RESUMED ..  about to go on at the block with this number
//!             LENT        taken along
//! ```
//!
//! Whoever meets somebody on a channel at such a wait says who it is, so that the receiver can say for both that they
//! have left, in the step in which they meet.

use super::expression::Expr;
use super::lines::{Lines, Mark};
use super::plan::Plan;
use super::process::names_of;
use super::quantum::Quantum;
use super::scope::Scope;
use super::usage::{Set, Unit, Usage};
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What `place` is of an instance that a path has taken along.
const LENT: u32 = 255;
/// What it is, plus the number of the block, of one that goes on.
const RESUMED: u32 = 128;

/// A member's names, which the trigger knows too.
pub(super) struct Lent {
    instance: u32,
    usage: Rc<Usage>,
    pub(super) variables: BTreeMap<Value, String>,
    pub(super) slots: Vec<String>,
}

/// What fast paths ask of processes.
#[derive(Default)]
pub(super) struct Paths {
    /// The array that says where everybody stands.
    place: String,
    /// A variable that is no part of states: where a path is entered, it is set, so that there is something to reach.
    entered: String,
    /// Waits at which instances can be taken along, by number from 1.
    starts: BTreeMap<(ProcessId, BlockId), u32>,
    /// Blocks at which they go on, by number from 0.
    resumes: BTreeMap<ProcessId, BTreeMap<BlockId, u32>>,
    pub(super) lent: BTreeMap<ProcessId, Lent>,
    /// Slots of triggers that stand for a member's.
    aliases: BTreeMap<(ProcessId, SlotId), String>,
    /// Channels on which members can be met where they are taken along.
    met: BTreeSet<ChannelId>,
}

impl Paths {
    /// Whether messages say who sends them.
    pub(super) fn is_met(&self, channel: ChannelId) -> bool {
        self.met.contains(&channel)
    }

    /// The number of a wait at which an instance can be taken along.
    pub(super) fn start(&self, process: ProcessId, block: BlockId) -> Option<u32> {
        self.starts.get(&(process, block)).copied()
    }

    /// The slot that a trigger's slot stands for.
    pub(super) fn alias(&self, process: ProcessId, slot: SlotId) -> Option<&str> {
        self.aliases.get(&(process, slot)).map(String::as_str)
    }

    /// Where an instance stands.
    pub(super) fn place(&self, instance: &Expr) -> Expr {
        Expr::tight(format!("{}[{}]", self.place, instance.text))
    }

    /// The declarations of where everybody stands, and of what is set where a path is entered.
    pub(super) fn declarations(&self, program: &Program) -> Option<[String; 2]> {
        let place = || format!("byte {}[{}];", self.place, program.instance_count());
        (!self.place.is_empty()).then(|| [place(), format!("hidden byte {};", self.entered)])
    }

    /// What a process does at such a wait after a path: if `place` is the first number, it goes on at the block.
    pub(super) fn resumes(&self, process: ProcessId) -> impl Iterator<Item = (u32, BlockId)> {
        let blocks = self.resumes.get(&process).into_iter().flatten();
        blocks.map(|(block, number)| (RESUMED + number, *block))
    }
}

impl<'a> Plan<'a> {
    /// Plans fast paths, or refuses them.
    pub(super) fn lend(&mut self) {
        let program = self.program;
        if program.paths.is_empty() {
            return;
        }
        self.paths.place = self.names.claim("place");
        self.paths.entered = self.names.claim("entered");
        for path in &program.paths {
            for member in &path.members {
                let (id, _) = program.process_of(member.instance).expect("a verified path names instances");
                let process = &program.processes[id.0 as usize];
                if process.replicas > 1 {
                    let message = format!("fast path {} takes along one of several `{}`", path.name, process.name);
                    self.refuse(process.location, message, "the built-in engine does it: leave out `--engine spin`");
                    return;
                }
                let next = self.paths.starts.len() as u32 + 1;
                self.paths.starts.entry((id, member.start.0)).or_insert(next);
                if let Terminator::Wait(wait) = &process.body.blocks[member.start.0.0 as usize].terminator {
                    let channels = wait.branches.iter().filter_map(|branch| channel_of(&branch.operation));
                    self.paths.met.extend(channels);
                }
                if !self.paths.lent.contains_key(&id) {
                    let prefix = format!("{}_", self.processes[id.0 as usize]);
                    let mut names = self.names.clone();
                    let (usage, variables, slots) = names_of(self, &process.body, &prefix, &mut names);
                    self.names = names;
                    self.paths.lent.insert(id, Lent { instance: member.instance, usage, variables, slots });
                }
                let (trigger, _) = program.process_of(path.trigger).expect("a verified path names instances");
                for (own, here) in &member.slots {
                    let name = self.paths.lent[&id].slots[own.0 as usize].clone();
                    self.paths.aliases.insert((trigger, *here), name);
                }
            }
        }
        for block in program.processes.iter().flat_map(|process| &process.body.blocks) {
            let Terminator::Leave(leave) = &block.terminator else { continue };
            for (number, resume) in &leave.members {
                let member = &program.paths[leave.path.0 as usize].members[*number as usize];
                let (id, _) = program.process_of(member.instance).expect("a verified path names instances");
                let blocks = self.paths.resumes.entry(id).or_default();
                let next = blocks.len() as u32;
                blocks.entry(resume.to).or_insert(next);
            }
        }
        let crowded = self.paths.resumes.iter().find(|(_, blocks)| blocks.len() as u32 >= LENT - RESUMED);
        let many = self.paths.starts.len() as u32 >= RESUMED;
        if let Some(process) = crowded.map(|(id, _)| *id).or(many.then_some(ProcessId(0))) {
            let process = &program.processes[process.0 as usize];
            let message = format!("`{}` goes on in too many places after fast paths", process.name);
            self.refuse(process.location, message, "the built-in engine does it: leave out `--engine spin`");
        }
    }

    /// A member as its own code sees it.
    pub(super) fn member_scope(&'a self, process: ProcessId) -> Option<Scope<'a>> {
        let lent = self.paths.lent.get(&process)?;
        Some(Scope {
            plan: self,
            body: &self.program.processes[process.0 as usize].body,
            usage: Rc::clone(&lent.usage),
            variables: lent.variables.clone(),
            slots: lent.slots.clone(),
            own: Expr::number(i128::from(lent.instance)),
            kept: BTreeSet::new(),
        })
    }
}

pub(super) fn channel_of(operation: &Operation) -> Option<ChannelId> {
    match operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => Some(*channel),
        Operation::After { .. } => None,
    }
}

impl<'a> Quantum<'_, 'a> {
    /// Takes the members along if all are in place. If not, either way is taken: which of them it is depends on who is
    /// about to run, and changes nothing but when it is tried again.
    pub(super) fn enter(&mut self, enter: &Enter, location: Location, lines: &mut Lines) {
        let plan = self.scope.plan;
        let path = &plan.program.paths[enter.path.0 as usize];
        let mut in_place = None;
        if self.scope.own.text != path.trigger.to_string() {
            in_place = Some(Expr::binary(&self.scope.own, "==", &Expr::number(i128::from(path.trigger))));
        }
        let mut taken = Lines::default();
        let mut values = Vec::new();
        for member in &path.members {
            let (id, _) = plan.program.process_of(member.instance).expect("a verified path names instances");
            let scope = plan.member_scope(id).expect("members are lent");
            let place = plan.paths.place(&scope.own);
            let number = plan.paths.start(id, member.start.0).expect("starts are numbered");
            in_place = Some(Expr::and(in_place, Expr::binary(&place, "==", &Expr::number(i128::from(number)))));
            if let Terminator::Wait(wait) = &scope.body.blocks[member.start.0.0 as usize].terminator
                && let Some(guard) = self.process.guard(&scope, member.start.1, &wait.branches[member.start.1 as usize])
            {
                in_place = Some(Expr::and(in_place, guard));
            }
            taken.push(Mark::Local, location, format!("{} = {LENT};", place.text));
            values.extend(member.values.iter().map(|value| scope.value(*value)));
        }
        for (parameter, value) in self.body().blocks[enter.then.0 as usize].parameters.iter().zip(values) {
            if let Some(name) = self.scope.variable(*parameter) {
                taken.push(Mark::Local, location, format!("{name} = {};", value.text));
            }
        }
        let in_place = in_place.map_or_else(|| "true".to_string(), |all| all.text);
        lines.push(Mark::Local, location, "if");
        lines.push(Mark::Local, location, format!(":: {in_place} ->"));
        lines.deeper();
        // Spin makes what follows a guard part of it, and never lists that as unreached: so once more behind it.
        let entered = format!("{} = 1;", plan.paths.entered);
        lines.push(Mark::Local, location, &entered);
        lines.append(taken);
        lines.push(Mark::Enter { path: enter.path.0 }, location, entered);
        self.go(enter.then, location, lines);
        lines.back();
        // It may be declined all the same, for reasons that are left out.
        lines.push(Mark::Local, location, format!(":: {in_place} ->"));
        lines.deeper();
        self.follow(&enter.otherwise, location, lines);
        lines.back();
        lines.push(Mark::Local, location, ":: else ->");
        lines.deeper();
        lines.push(Mark::Local, location, "if");
        for edge in [&enter.later, &enter.otherwise] {
            lines.push(Mark::Local, location, ":: true ->");
            lines.deeper();
            self.follow(edge, location, lines);
            lines.back();
        }
        lines.push(Mark::Local, location, "fi;");
        lines.back();
        lines.push(Mark::Local, location, "fi;");
    }

    /// Gives the members back and goes on.
    pub(super) fn leave(&mut self, leave: &Leave, location: Location, lines: &mut Lines) {
        let plan = self.scope.plan;
        let path = &plan.program.paths[leave.path.0 as usize];
        for (number, resume) in &leave.members {
            let member = &path.members[*number as usize];
            let (id, _) = plan.program.process_of(member.instance).expect("a verified path names instances");
            let scope = plan.member_scope(id).expect("members are lent");
            for (own, becomes) in &resume.values {
                if let Some(name) = scope.variable(*own) {
                    let value = self.scope.value(*becomes);
                    lines.push(Mark::Local, location, format!("{name} = {};", value.text));
                }
            }
            let place = RESUMED + plan.paths.resumes[&id][&resume.to];
            lines.push(Mark::Local, location, format!("{} = {place};", plan.paths.place(&scope.own).text));
        }
        self.assign(&leave.trigger.values, location, lines);
        self.go(leave.trigger.to, location, lines);
    }
}

/// Everything that a body's code may leave behind.
pub(super) fn everything(scope: &Scope<'_>) -> Set {
    let variables = scope.usage.variables().into_iter().map(Unit::Variable);
    variables.chain((0..scope.body.slots.len() as u32).map(|slot| Unit::Slot(SlotId(slot)))).collect()
}
