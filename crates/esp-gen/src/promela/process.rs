//! A process as a `proctype`: a label for each wait, and for each branch an option of an `if`, followed by the macro
//! step up to the next wait. Messages are written by `message`.

mod macro_step;
mod path_transitions;

use super::expression::Expr;
use super::lines::{Lines, Mark};
use super::message;
use super::names::Names;
use super::plan::Plan;
use super::scope::{Scope, declarations, everything, scope, symbolic};
use super::statement::{INDEX, SWAP, Writer};
use super::value_usage::Set;
use super::{INPUT_ENDED, STUTTER};
use macro_step::{Returns, written_by};
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::model::Role;
use std::collections::{BTreeMap, BTreeSet};

/// The text of a process under construction.
pub(super) struct ProcessWriter<'a> {
    pub(super) plan: &'a Plan<'a>,
    id: ProcessId,
    names: Names,
    labels: Names,
    own: Expr,
    waits: BTreeMap<BlockId, String>,
    /// Waits and targets of `yield` still to be written.
    queue: Vec<(BlockId, PausePoint)>,
    yields: BTreeMap<BlockId, String>,
    functions: BTreeMap<FnId, Scope<'a>>,
    /// Labels of blocks that are written or will be.
    pub(super) written: BTreeSet<String>,
    /// The temporaries for cycles of parallel moves, and how many of them are in use.
    spares: Vec<String>,
    spares_used: usize,
    /// Per variable that the model's properties name: the Promela variable that holds its value at the last wait.
    observed: BTreeMap<String, String>,
    /// Their declarations.
    seen: Vec<String>,
    /// The label of the last pause point before the code that is being written.
    pub(super) here: Option<String>,
}

/// A point at which a macro step ends and the next begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PausePoint {
    Wait,
    Yield,
}

/// A process's lines, and the names of the labels at which it waits.
pub(super) struct ProcessText {
    pub(super) lines: Lines,
    pub(super) waits: BTreeMap<BlockId, String>,
    /// See [`ProcessWriter`].
    pub(super) observed: BTreeMap<String, String>,
}

/// Writes a process.
pub(super) fn write<'a>(plan: &'a Plan<'a>, id: ProcessId) -> ProcessText {
    let process = &plan.program.processes[id.0 as usize];
    let mut names = plan.names.clone();
    let own = match process.replicas {
        1 => Expr::number(i128::from(plan.program.first_instance(id))),
        _ => Expr::tight("_pid"),
    };
    let mut main = match plan.member_scope(id) {
        Some(scope) => scope,
        None => scope(plan, &process.body, "", own.clone(), &mut names),
    };
    for slot in 0..process.body.slots.len() as u32 {
        if let Some(name) = plan.paths.alias(id, SlotId(slot)) {
            main.slots[slot as usize] = name.to_string();
            main.kept.insert(SlotId(slot));
        }
    }
    let mut writer = ProcessWriter {
        plan,
        id,
        names,
        labels: Names::new(),
        own,
        waits: BTreeMap::new(),
        queue: Vec::new(),
        yields: BTreeMap::new(),
        functions: BTreeMap::new(),
        written: BTreeSet::new(),
        spares: Vec::new(),
        spares_used: 0,
        observed: BTreeMap::new(),
        seen: Vec::new(),
        here: None,
    };
    let mut body = Lines::default();
    body.indent();
    match plan.model.roles[id.0 as usize] {
        Role::Omitted => body.plain("goto end_ended;"),
        Role::Explored | Role::Environment | Role::OpenStub => {
            writer.macro_step(&main, BlockId(0), Set::new(), Lines::default(), &mut body);
            // Waits are written in the order in which they are named.
            let mut next = 0;
            while let Some((block, pause_point)) = writer.queue.get(next).copied() {
                next += 1;
                writer.write_pause_point(&main, block, pause_point, &mut body);
            }
        }
    }
    body.dedent();
    let lines = writer.finish(process, &main, body);
    ProcessText { lines, waits: writer.waits, observed: writer.observed }
}

impl<'a> ProcessWriter<'a> {
    fn process(&self) -> &'a Process {
        &self.plan.program.processes[self.id.0 as usize]
    }

    /// A new label.
    pub(super) fn label(&mut self, wanted: &str) -> String {
        self.labels.claim(wanted)
    }

    /// A temporary for a cycle of parallel moves.
    pub(super) fn spare(&mut self) -> String {
        if self.spares_used == self.spares.len() {
            let name = self.names.claim("spare");
            self.spares.push(name);
        }
        self.spares_used += 1;
        self.spares[self.spares_used - 1].clone()
    }

    pub(super) fn clear_spares(&mut self, location: Location, lines: &mut Lines) {
        for spare in &self.spares[..self.spares_used] {
            lines.push(Mark::Local, location, format!("{spare} = 0;"));
        }
        self.spares_used = 0;
    }

    pub(super) fn wait_label(&mut self, block: BlockId) -> String {
        if let Some(label) = self.waits.get(&block) {
            return label.clone();
        }
        let data = &self.process().body.blocks[block.0 as usize];
        let idle = match (&data.terminator, self.plan.model.roles[self.id.0 as usize]) {
            (_, Role::Environment | Role::OpenStub) => true,
            (Terminator::Wait(wait), Role::Explored | Role::Omitted) => wait.blocking == Blocking::MayBlockForever,
            (_, Role::Explored | Role::Omitted) => false,
        };
        let end = if idle { "end_" } else { "" };
        let label = self.labels.claim(&format!("{end}at_{}", data.location.line));
        self.waits.insert(block, label.clone());
        self.queue.push((block, PausePoint::Wait));
        label
    }

    pub(super) fn yield_label(&mut self, block: BlockId) -> String {
        if let Some(label) = self.yields.get(&block) {
            return label.clone();
        }
        let label = self.labels.claim(&format!("yielded_{}", block.0));
        self.yields.insert(block, label.clone());
        self.queue.push((block, PausePoint::Yield));
        label
    }

    pub(super) fn function_scope(&mut self, function: FnId) -> Scope<'a> {
        if let Some(scope) = self.functions.get(&function) {
            return scope.clone();
        }
        let data = &self.plan.program.functions[function.0 as usize];
        let prefix = format!("{}_", data.name);
        let scope = scope(self.plan, &data.body, &prefix, self.own.clone(), &mut self.names);
        self.functions.insert(function, scope.clone());
        scope
    }

    /// Sets the location of an instance at a wait where it can be captured.
    pub(super) fn set_location(&self, scope: &Scope<'a>, block: BlockId, location: Location, lines: &mut Lines) {
        if let Some(number) = self.plan.paths.start(self.id, block) {
            lines.push(Mark::Local, location, format!("{} = {number};", self.plan.paths.place(&scope.own).text));
        }
    }

    /// The condition under which a branch can be taken, if it has one.
    pub(super) fn guard(&mut self, scope: &Scope<'a>, number: u32, branch: &Branch) -> Option<Expr> {
        message::guard(self.plan, scope, number, branch, &mut self.names, &mut self.spares)
    }

    /// Stores the current values of the variables that properties name.
    pub(super) fn observe(&mut self, scope: &Scope<'a>, wait: &Wait, location: Location, lines: &mut Lines) {
        for (name, value) in &wait.observed {
            let variable = self.observed_variable(scope, name, *value);
            lines.push(Mark::Local, location, format!("{variable} = {};", scope.value(*value).text));
        }
    }

    /// The Promela variable that holds a variable that properties name; `value` is of its type.
    fn observed_variable(&mut self, scope: &Scope<'a>, name: &str, value: Value) -> String {
        if let Some(variable) = self.observed.get(name) {
            return variable.clone();
        }
        let variable = self.names.claim(&format!("seen_{name}"));
        self.observed.insert(name.to_string(), variable.clone());
        let initial = self.plan.model.initial_values.iter().find(|(id, own, _)| *id == self.id && own == name);
        let initial = initial.map_or_else(String::new, |(_, _, value)| format!(" = {value}"));
        self.seen.push(format!("{} {variable}{initial};", scope.kind(value).declared()));
        variable
    }

    /// The parameters of the code behind a branch that are variables that properties name, each with the Promela
    /// variable that holds it.
    fn received(&mut self, scope: &Scope<'a>, branch: &Branch, wait: &Wait) -> Vec<(u32, String)> {
        let mut received = Vec::new();
        for (number, parameter) in scope.body.blocks[branch.then.0 as usize].parameters.iter().enumerate() {
            let Some(name) = &scope.body.values[parameter.0 as usize].name else { continue };
            if wait.observed.iter().any(|(known, _)| known == name) {
                received.push((number as u32, self.observed_variable(scope, name, *parameter)));
            }
        }
        received
    }

    /// The code on arrival at a wait: assertions of what would fault, and messages that are computed early.
    pub(super) fn arrive(&mut self, scope: &Scope<'a>, wait: &Wait, location: Location, lines: &mut Lines) {
        let mut guards: Option<Vec<Expr>> = Some(Vec::new());
        for branch in &wait.branches {
            match branch.guard {
                Guard::Value(value) => {
                    if let Some(guards) = &mut guards {
                        guards.push(scope.value(value));
                    }
                }
                Guard::Open | Guard::Region(_) => guards = None,
            }
            match &branch.operation {
                Operation::Out { payload: Payload::Ready(parts), .. } => {
                    for part in parts {
                        let (_, _, demands) = scope.operand(&part.operand);
                        Writer { scope, lines, location: branch.location }.demand(&demands);
                    }
                }
                Operation::Out { payload: Payload::Region(entry), .. } => {
                    if symbolic::region(scope, *entry, &[]).is_none() {
                        // If the guard is false, the program does not compute it, so that it cannot fault.
                        if let Guard::Value(guard) = branch.guard {
                            lines.push(Mark::Local, branch.location, "if");
                            lines.push(Mark::Local, branch.location, format!(":: {} ->", scope.value(guard).operand()));
                            lines.indent();
                            self.compute_early(scope, *entry, branch.location, lines);
                            lines.dedent();
                            lines.push(Mark::Local, branch.location, ":: else");
                            lines.push(Mark::Local, branch.location, "fi;");
                        } else {
                            self.compute_early(scope, *entry, branch.location, lines);
                        }
                    }
                }
                Operation::In { .. } | Operation::After { .. } => {}
            }
        }
        if let (Some(guards), None) = (guards, wait.otherwise) {
            let any = guards.into_iter().reduce(|all, guard| Expr::binary(&all, "||", &guard));
            if let Some(any) = any {
                let (mark, text) = self.plan.assertion(Fault::Alt, location, &any.text);
                lines.push(mark, location, text);
            }
        }
    }

    /// Computes a message on arrival that is too long for an expression.
    fn compute_early(&mut self, scope: &Scope<'a>, entry: BlockId, location: Location, lines: &mut Lines) {
        let blocks = region_blocks(scope.body, entry);
        let all = || blocks.iter().map(|id| &scope.body.blocks[id.0 as usize]);
        let results = all().filter(|block| matches!(block.terminator, Terminator::Result(_))).count();
        let counts = all()
            .flat_map(|block| &block.instructions)
            .any(|instruction| matches!(instruction.op, Op::Allocate(_) | Op::Retain(_) | Op::Release(_)));
        if results != 1 || counts {
            let message = "this message is computed in more steps than the model can take while waiting";
            self.plan.refuse(location, message, "compute it before the `alt`");
            return;
        }
        let dirty = written_by(scope, &blocks);
        let before = lines.lines.len();
        macro_step::write(self, scope, entry, dirty, Returns::Never, lines);
        if lines.lines[before..].iter().any(|line| matches!(line.mark, Mark::Fault(_))) {
            self.plan.approximate(location, "a message that faults does so before it has a reader");
        }
    }

    /// The code from a block on, as one statement, after `first`.
    fn macro_step(&mut self, scope: &Scope<'a>, entry: BlockId, dirty: Set, first: Lines, lines: &mut Lines) {
        let mut code = Lines::default();
        code.append(first);
        let empty = code.lines.is_empty();
        macro_step::write(self, scope, entry, dirty, Returns::Never, &mut code);
        if empty && code.lines.len() == 1 && code.lines[0].text.starts_with("goto ") {
            // A jump alone is not a state of the model. Properties distinguish an instance that has left a label from
            // one that is at the next.
            let to = code.lines[0].text.trim_start_matches("goto ").trim_end_matches(';');
            if lines.lines.last().is_some_and(|head| head.text == ":: true ->") && self.here.as_deref() == Some(to) {
                // Spin rejects a loop without statements.
                lines.push(Mark::None, code.lines[0].location, "atomic {");
                lines.indent();
                lines.push(Mark::Local, code.lines[0].location, "skip;");
                lines.append(code);
                lines.dedent();
                return lines.plain("};");
            }
            if !self.plan.model.properties.is_empty() {
                lines.push(Mark::Local, code.lines[0].location, "skip;");
            }
            return lines.append(code);
        }
        lines.plain("atomic {");
        lines.indent();
        lines.append(code);
        lines.dedent();
        lines.plain("};");
    }

    fn write_pause_point(&mut self, scope: &Scope<'a>, block: BlockId, pause_point: PausePoint, lines: &mut Lines) {
        match pause_point {
            PausePoint::Yield => {
                lines.dedent();
                let label = self.yields[&block].clone();
                lines.plain(format!("{label}:"));
                lines.indent();
                self.here = Some(label);
                let dirty = scope.usage.live_in(block).clone();
                self.macro_step(scope, block, dirty, Lines::default(), lines);
            }
            PausePoint::Wait => {
                let data = &scope.body.blocks[block.0 as usize];
                let Terminator::Wait(wait) = &data.terminator else { unreachable!("only waits are queued as such") };
                self.wait(scope, block, wait, data.location, lines);
            }
        }
    }

    fn wait(&mut self, scope: &Scope<'a>, block: BlockId, wait: &Wait, location: Location, lines: &mut Lines) {
        let live = scope.usage.live_at_end(scope.body, &scope.body.blocks[block.0 as usize].terminator);
        lines.dedent();
        lines.push(Mark::None, location, format!("{}:", self.waits[&block]));
        lines.indent();
        self.here = Some(self.waits[&block].clone());
        if wait.order == AltOrder::Priority && wait.branches.len() + usize::from(wait.otherwise.is_some()) > 1 {
            self.plan.approximate(location, "`pri alt` takes any branch");
        }
        if wait.otherwise.is_some() {
            self.plan.approximate(location, "`else` is always possible");
        }
        // Only a run without end passes a deadline over forever, so that safety does not depend on it.
        let is_deadline = |branch: &Branch| {
            matches!(branch.operation, Operation::After { unit: TimeUnit::Absolute, .. }) && wait.branches.len() > 1
        };
        if !self.plan.model.properties.is_empty() && wait.branches.iter().any(is_deadline) {
            self.plan.approximate(location, "an `until` may be passed over forever");
        }
        if wait.branches.is_empty() && wait.otherwise.is_none() {
            // The process has ended.
            lines.push(Mark::None, location, "false;");
            return;
        }
        lines.plain("if");
        let first = lines.lines.len();
        let start = self.plan.paths.start(self.id, block);
        for (number, branch) in wait.branches.iter().enumerate() {
            let number = number as u32;
            let received = self.received(scope, branch, wait);
            let temporaries = (&mut self.names, &mut self.spares);
            let options = message::options(self.plan, scope, (number, branch), start, &received, temporaries);
            let mut dirty = live.clone();
            // What a pattern binds and nothing reads is not received.
            dirty.extend(scope.usage.live_in(branch.then));
            for option in options {
                lines.append(option.head);
                if let message::OptionBody::Continues(first) = option.then {
                    lines.indent();
                    self.macro_step(scope, branch.then, dirty.clone(), first, lines);
                    lines.dedent();
                }
            }
        }
        if let Some(otherwise) = wait.otherwise {
            let head = match start {
                None => ":: true ->".to_string(),
                Some(number) => {
                    let place = self.plan.paths.place(&scope.own).text;
                    format!(":: atomic {{ {place} == {number} -> {place} = 0 }} ->")
                }
            };
            lines.push(Mark::Else, location, head);
            lines.indent();
            self.macro_step(scope, otherwise, live, Lines::default(), lines);
            lines.dedent();
        }
        let place = self.plan.paths.place(&scope.own).text;
        for (number, to) in self.plan.paths.resumes(self.id).filter(|_| start.is_some()) {
            // The instance was captured; it has local code to execute now.
            lines.push(Mark::Yield, location, format!(":: {place} == {number} ->"));
            lines.indent();
            let mut first = Lines::default();
            first.push(Mark::Local, location, format!("{place} = 0;"));
            self.macro_step(scope, to, everything(scope), first, lines);
            lines.dedent();
        }
        if !self.plan.model.properties.is_empty() {
            let is_open_stub = self.plan.model.roles[self.id.0 as usize] == Role::OpenStub;
            let asks = lines.lines[first..].iter().any(|line| matches!(line.mark, Mark::FromEnvironment { .. }));
            let to = if is_open_stub { Some("end_ended") } else { self.waits.get(&block).map(String::as_str) };
            if let Some(to) = to.filter(|_| is_open_stub || asks) {
                lines.plain(format!("#ifdef {STUTTER}"));
                lines.plain(format!(":: atomic {{ !{INPUT_ENDED} -> {INPUT_ENDED} = true }}; goto {to}"));
                lines.plain("#endif");
            }
        }
        lines.plain("fi;");
    }

    /// The complete `proctype`.
    fn finish(&mut self, process: &Process, main: &Scope<'a>, body: Lines) -> Lines {
        let plan = self.plan;
        let mut lines = Lines::default();
        let count = if process.replicas > 1 { format!(" [{}]", process.replicas) } else { String::new() };
        let provided = if plan.exits { " provided (over == 0 || over == _pid + 1)" } else { "" };
        let text = format!("active{count} proctype {}(){provided} {{", plan.processes[self.id.0 as usize]);
        lines.push(Mark::None, process.location, text);
        lines.indent();
        // The variables of a path's member are global.
        let own = (!plan.paths.captured.contains_key(&self.id)).then_some(main);
        let scopes: Vec<&Scope<'a>> = own.into_iter().chain(self.functions.values()).collect();
        for scope in scopes {
            for (name, declaration) in declarations(scope) {
                if body.mentions(&name) {
                    lines.plain(declaration);
                }
            }
        }
        self.seen.iter().for_each(|declaration| lines.plain(declaration));
        if body.mentions(INPUT_ENDED) {
            lines.plain(format!("bool {INPUT_ENDED};"));
        }
        for name in self.spares.iter().map(String::as_str).chain([INDEX, SWAP]) {
            if body.mentions(name) {
                lines.plain(format!("int {name};"));
            }
        }
        lines.dedent();
        lines.append(body);
        if lines.mentions("end_exited") {
            lines.plain("end_exited:");
            lines.plain("  if");
            lines.plain("  :: over != 0 -> goto end_exited");
            lines.plain("  fi;");
        }
        lines.plain("end_ended:");
        lines.plain("  false");
        lines.plain("}");
        lines
    }
}
