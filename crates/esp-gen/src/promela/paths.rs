//! Fast paths in Promela. The location of an instance that can be captured is a global number, and its values are global,
//! so that the trigger of a path can capture it and set where it resumes.
//!
//! ```text
//!   place[m]  0           anywhere else
//!             1 ..        at the wait with this number, where a path can capture it
//!             RESUMED ..  about to resume at the block with this number
//!             CAPTURED    captured by a path
//! ```
//!
//! A sender that communicates from such a wait adds its own number to the message. The receiver then updates the
//! locations of both in the step of the rendezvous.

use super::expression::Expr;
use super::lines::{Lines, Mark};
use super::macro_step::MacroStep;
use super::plan::Plan;
use super::process::names_of;
use super::scope::Scope;
use super::value_usage::{Set, Unit, Usage};
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The location of an instance that a path has captured.
const CAPTURED: u32 = 255;
/// The location, plus the number of the block, of an instance that is about to resume.
const RESUMED: u32 = 128;

/// A member's names, which the trigger knows too.
pub(super) struct CapturedMember {
    instance: u32,
    usage: Rc<Usage>,
    pub(super) variables: BTreeMap<Value, String>,
    pub(super) slots: Vec<String>,
}

/// The plan of fast paths.
#[derive(Default)]
pub(super) struct Paths {
    /// The array of locations.
    place: String,
    /// A hidden variable that is set where a path is entered, so that the entry is a reachable statement.
    entered: String,
    /// The waits at which instances can be captured, by number from 1.
    starts: BTreeMap<(ProcessId, BlockId), u32>,
    /// The blocks at which they resume, by number from 0.
    resumes: BTreeMap<ProcessId, BTreeMap<BlockId, u32>>,
    pub(super) captured: BTreeMap<ProcessId, CapturedMember>,
    /// Slots of triggers that stand for a member's.
    aliases: BTreeMap<(ProcessId, SlotId), String>,
    /// The channels on which instances communicate at such waits: messages name their sender.
    named_sender_channels: BTreeSet<ChannelId>,
}

impl Paths {
    /// Whether messages of a channel name their sender.
    pub(super) fn names_sender(&self, channel: ChannelId) -> bool {
        self.named_sender_channels.contains(&channel)
    }

    /// The number of a wait at which an instance can be captured.
    pub(super) fn start(&self, process: ProcessId, block: BlockId) -> Option<u32> {
        self.starts.get(&(process, block)).copied()
    }

    /// The member's slot that a trigger's slot is an alias of.
    pub(super) fn alias(&self, process: ProcessId, slot: SlotId) -> Option<&str> {
        self.aliases.get(&(process, slot)).map(String::as_str)
    }

    /// The location of an instance.
    pub(super) fn place(&self, instance: &Expr) -> Expr {
        Expr::tight(format!("{}[{}]", self.place, instance.text))
    }

    /// The declarations of the locations and of the variable that is set where a path is entered.
    pub(super) fn declarations(&self, program: &Program) -> Option<[String; 2]> {
        let place = || format!("byte {}[{}];", self.place, program.instance_count());
        (!self.place.is_empty()).then(|| [place(), format!("hidden byte {};", self.entered)])
    }

    /// Where a process resumes after a path: at the block if its location is the number.
    pub(super) fn resumes(&self, process: ProcessId) -> impl Iterator<Item = (u32, BlockId)> {
        let blocks = self.resumes.get(&process).into_iter().flatten();
        blocks.map(|(block, number)| (RESUMED + number, *block))
    }
}

impl<'a> Plan<'a> {
    /// Plans fast paths, or refuses them.
    pub(super) fn plan_paths(&mut self) {
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
                    self.paths.named_sender_channels.extend(channels);
                }
                if !self.paths.captured.contains_key(&id) {
                    let prefix = format!("{}_", self.processes[id.0 as usize]);
                    let mut names = self.names.clone();
                    let (usage, variables, slots) = names_of(self, &process.body, &prefix, &mut names);
                    self.names = names;
                    self.paths
                        .captured
                        .insert(id, CapturedMember { instance: member.instance, usage, variables, slots });
                }
                let (trigger, _) = program.process_of(path.trigger).expect("a verified path names instances");
                for (own, here) in &member.slots {
                    let name = self.paths.captured[&id].slots[own.0 as usize].clone();
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
        let crowded = self.paths.resumes.iter().find(|(_, blocks)| blocks.len() as u32 >= CAPTURED - RESUMED);
        let many = self.paths.starts.len() as u32 >= RESUMED;
        if let Some(process) = crowded.map(|(id, _)| *id).or(many.then_some(ProcessId(0))) {
            let process = &program.processes[process.0 as usize];
            let message = format!("`{}` goes on in too many places after fast paths", process.name);
            self.refuse(process.location, message, "the built-in engine does it: leave out `--engine spin`");
        }
    }

    /// A member's scope, as in its own code.
    pub(super) fn member_scope(&'a self, process: ProcessId) -> Option<Scope<'a>> {
        let captured = self.paths.captured.get(&process)?;
        Some(Scope {
            plan: self,
            body: &self.program.processes[process.0 as usize].body,
            usage: Rc::clone(&captured.usage),
            variables: captured.variables.clone(),
            slots: captured.slots.clone(),
            own: Expr::number(i128::from(captured.instance)),
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

impl<'a> MacroStep<'_, 'a> {
    /// Captures the members if all are at their waits. If not, either edge is taken: the choice depends on which instances
    /// are ready, and changes only when the path is tried again.
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
            let scope = plan.member_scope(id).expect("members are captured");
            let place = plan.paths.place(&scope.own);
            let number = plan.paths.start(id, member.start.0).expect("starts are numbered");
            in_place = Some(Expr::and(in_place, Expr::binary(&place, "==", &Expr::number(i128::from(number)))));
            if let Terminator::Wait(wait) = &scope.body.blocks[member.start.0.0 as usize].terminator
                && let Some(guard) = self.process.guard(&scope, member.start.1, &wait.branches[member.start.1 as usize])
            {
                in_place = Some(Expr::and(in_place, guard));
            }
            taken.push(Mark::Local, location, format!("{} = {CAPTURED};", place.text));
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
        lines.indent();
        // Spin makes what follows a guard part of it, and never lists that as unreached: so once more behind it.
        let entered = format!("{} = 1;", plan.paths.entered);
        lines.push(Mark::Local, location, &entered);
        lines.append(taken);
        lines.push(Mark::Enter { path: enter.path.0 }, location, entered);
        self.go(enter.then, location, lines);
        lines.dedent();
        // It may be declined all the same, for reasons that are left out.
        lines.push(Mark::Local, location, format!(":: {in_place} ->"));
        lines.indent();
        self.follow(&enter.otherwise, location, lines);
        lines.dedent();
        lines.push(Mark::Local, location, ":: else ->");
        lines.indent();
        lines.push(Mark::Local, location, "if");
        for edge in [&enter.later, &enter.otherwise] {
            lines.push(Mark::Local, location, ":: true ->");
            lines.indent();
            self.follow(edge, location, lines);
            lines.dedent();
        }
        lines.push(Mark::Local, location, "fi;");
        lines.dedent();
        lines.push(Mark::Local, location, "fi;");
    }

    /// Gives the members back and goes on.
    pub(super) fn leave(&mut self, leave: &Leave, location: Location, lines: &mut Lines) {
        let plan = self.scope.plan;
        let path = &plan.program.paths[leave.path.0 as usize];
        for (number, resume) in &leave.members {
            let member = &path.members[*number as usize];
            let (id, _) = plan.program.process_of(member.instance).expect("a verified path names instances");
            let scope = plan.member_scope(id).expect("members are captured");
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
