//! A macro step: the code of an instance from one wait to the next, as one `atomic` sequence. Blocks that several edges
//! lead to are labelled; calls of functions are inlined or jumped to. Knows waits only as labels.

use super::ProcessWriter;
use crate::promela::expression::Expr;
use crate::promela::lines::{Lines, Mark};
use crate::promela::scope::Scope;
use crate::promela::statement::Writer;
use crate::promela::value_usage::{Placement, Set, Unit};
use quaject_esp_ir::access::Access;
use quaject_esp_ir::cfg::{Regions, edges, successors};
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// The target of a `return` in the code.
pub(super) enum Returns<'r> {
    /// Nowhere: it is a process.
    Never,
    /// Stores the result in these cells of the caller and continues at this label.
    To { caller: &'r Scope<'r>, result: Option<Value>, place: Option<&'r Place>, label: String },
}

/// The code of one body from one entry up to its waits.
pub(super) struct MacroStep<'q, 'a> {
    pub(super) process: &'q mut ProcessWriter<'a>,
    pub(super) scope: &'q Scope<'a>,
    /// Labels of blocks that several edges lead to.
    labels: BTreeMap<BlockId, String>,
    /// Labelled blocks still to be written.
    pending: Vec<BlockId>,
    /// Per block: the storage that may differ from zero when it is reached.
    dirty: BTreeMap<BlockId, Set>,
    returns: Returns<'q>,
    /// The first block.
    entry: BlockId,
    /// The label after the code, for results of an expression from which other blocks follow in the text.
    end: Option<String>,
}

/// Writes the code from a block on. `dirty` is the storage that may differ from zero before it.
pub(super) fn write<'a>(
    process: &mut ProcessWriter<'a>,
    scope: &Scope<'a>,
    entry: BlockId,
    dirty: Set,
    returns: Returns<'_>,
    lines: &mut Lines,
) {
    let mut step = MacroStep {
        process,
        scope,
        labels: BTreeMap::new(),
        pending: Vec::new(),
        dirty: BTreeMap::new(),
        returns,
        entry,
        end: None,
    };
    step.prepare(dirty);
    if let Some(label) = step.labels.get(&entry) {
        lines.plain("skip;");
        let text = format!("{label}:");
        lines.plain(text);
    }
    step.block(entry, lines);
    while let Some(block) = step.pending.pop() {
        let text = format!("{}:", step.labels[&block]);
        lines.plain(text);
        step.block(block, lines);
    }
    if let Some(end) = step.end {
        lines.plain(format!("{end}:"));
        lines.plain("skip;");
    }
}

/// The blocks that an edge leads to within a step.
fn inner(terminator: &Terminator) -> Vec<BlockId> {
    match terminator {
        Terminator::Wait(_) | Terminator::Yield(_) => Vec::new(),
        Terminator::Jump(_)
        | Terminator::Branch { .. }
        | Terminator::Switch { .. }
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_)
        | Terminator::Enter(_) => successors(terminator, Regions::Skip),
        Terminator::Leave(leave) => vec![leave.trigger.to],
    }
}

impl<'a> MacroStep<'_, 'a> {
    pub(super) fn body(&self) -> &'a Body {
        self.scope.body
    }

    fn data(&self, id: BlockId) -> &'a Block {
        &self.body().blocks[id.0 as usize]
    }

    /// Finds the blocks that need labels, and per block the storage that may differ from zero.
    fn prepare(&mut self, dirty: Set) {
        let mut entries: BTreeMap<BlockId, u32> = BTreeMap::from([(self.entry, 1)]);
        let mut seen = BTreeSet::from([self.entry]);
        let mut work = vec![self.entry];
        while let Some(block) = work.pop() {
            for next in inner(&self.data(block).terminator) {
                *entries.entry(next).or_default() += 1;
                if seen.insert(next) {
                    work.push(next);
                }
            }
        }
        for (block, count) in entries {
            if count > 1 {
                self.labels.insert(block, self.process.label(&format!("b{}", block.0)));
            }
        }
        self.dirty.insert(self.entry, dirty);
        let mut work = vec![self.entry];
        while let Some(block) = work.pop() {
            let mut dirty = self.dirty[&block].clone();
            self.after(block, &mut dirty);
            for next in inner(&self.data(block).terminator) {
                let known = self.dirty.get(&next);
                if known.is_none_or(|known| !dirty.is_subset(known)) {
                    self.dirty.entry(next).or_default().extend(dirty.iter().copied());
                    work.push(next);
                }
            }
        }
    }

    /// Adds what a block writes.
    fn after(&self, id: BlockId, dirty: &mut Set) {
        let block = self.data(id);
        let usage = &self.scope.usage;
        for instruction in &block.instructions {
            let mut access = Access::default();
            access.op(&instruction.op);
            for place in access.writes {
                if let Base::Slot(slot) = place.base {
                    dirty.insert(Unit::Slot(slot));
                }
            }
            let zero = matches!(instruction.op, Op::Constant(0));
            if let Some(Placement::Variable(variable)) = instruction.result.map(|result| usage.placement(result)) {
                match zero {
                    true => dirty.remove(&Unit::Variable(variable)),
                    false => dirty.insert(Unit::Variable(variable)),
                };
            }
        }
        let mut written: Vec<Value> = Vec::new();
        for edge in edges(&block.terminator) {
            written.extend(&self.data(edge.to).parameters);
        }
        match &block.terminator {
            Terminator::Enter(enter) => written.extend(&self.data(enter.then).parameters),
            Terminator::Leave(leave) => written.extend(leave.trigger.values.iter().map(|(own, _)| *own)),
            _ => {}
        }
        for value in written {
            if let Placement::Variable(variable) = usage.placement(value) {
                dirty.insert(Unit::Variable(variable));
            }
        }
    }

    fn block(&mut self, id: BlockId, lines: &mut Lines) {
        let block = self.data(id);
        for instruction in &block.instructions {
            if let Op::CallFunction { function, arguments, to } = &instruction.op
                && !matches!(
                    instruction.result.map(|result| self.scope.usage.placement(result)),
                    Some(Placement::Inline(..))
                )
            {
                self.call(*function, arguments, instruction.result, to.as_ref(), instruction.location, lines);
                continue;
            }
            Writer { scope: self.scope, lines, location: instruction.location }.instruction(instruction);
        }
        let mut dirty = self.dirty[&id].clone();
        self.after(id, &mut dirty);
        self.terminator(id, dirty, lines);
    }

    fn terminator(&mut self, id: BlockId, dirty: Set, lines: &mut Lines) {
        let block = self.data(id);
        let location = block.location;
        match &block.terminator {
            Terminator::Jump(edge) => self.follow(edge, location, lines),
            Terminator::Branch { condition, then, otherwise } => {
                let condition = self.scope.value(*condition);
                for (edge, holds, other) in [(otherwise, condition.clone(), then), (then, condition.not(), otherwise)] {
                    if let Some((fault, at)) = self.only_faults(edge) {
                        let (mark, text) = self.process.plan.assertion(fault, at, &holds.text);
                        lines.push(mark, at, text);
                        return self.follow(other, location, lines);
                    }
                }
                lines.push(Mark::Local, location, "if");
                for (condition, edge) in [(condition.operand(), then), ("else".to_string(), otherwise)] {
                    lines.push(Mark::Local, location, format!(":: {condition} ->"));
                    lines.indent();
                    self.follow(edge, location, lines);
                    lines.dedent();
                }
                lines.push(Mark::Local, location, "fi;");
            }
            Terminator::Switch { value, cases, default } => {
                let value = self.scope.value(*value);
                lines.push(Mark::Local, location, "if");
                for (case, edge) in cases {
                    let condition = Expr::binary(&value, "==", &Expr::number(*case));
                    lines.push(Mark::Local, location, format!(":: {} ->", condition.text));
                    lines.indent();
                    self.follow(edge, location, lines);
                    lines.dedent();
                }
                lines.push(Mark::Local, location, ":: else ->");
                lines.indent();
                self.follow(default, location, lines);
                lines.dedent();
                lines.push(Mark::Local, location, "fi;");
            }
            Terminator::Wait(wait) => {
                self.process.arrive(self.scope, wait, location, lines);
                self.process.observe(self.scope, wait, location, lines);
                self.process.set_location(self.scope, id, location, lines);
                let live = self.scope.usage.live_at_end(self.body(), &block.terminator);
                self.clear(&dirty, &live, location, lines);
                let label = self.process.wait_label(id);
                lines.push(Mark::Local, location, format!("goto {label};"));
            }
            Terminator::Yield(edge) => {
                self.moves(edge, location, lines);
                self.clear(&dirty, self.scope.usage.live_in(edge.to), location, lines);
                let label = self.process.yield_label(edge.to);
                // Spin does not stop at a jump alone, and refuses a loop in which it finds no statement.
                let is_loop = lines.lines.is_empty() && self.process.here.as_deref() == Some(label.as_str());
                lines.push(Mark::Yield, location, if is_loop { "_pid >= 0;" } else { "skip;" });
                lines.push(Mark::None, location, format!("goto {label};"));
            }
            Terminator::Enter(enter) => self.enter(enter, location, lines),
            Terminator::Leave(leave) => self.leave(leave, location, lines),
            Terminator::Return(operand) => self.return_to(operand, location, lines),
            Terminator::Result(_) => self.end_expression(location, lines),
            Terminator::Exit(_) => {
                lines.push(Mark::Local, location, "over = _pid + 1;");
                lines.push(Mark::Local, location, "goto end_exited;");
            }
            Terminator::End => {
                self.clear(&dirty, &Set::new(), location, lines);
                lines.push(Mark::Local, location, "goto end_ended;");
            }
            Terminator::Fault(fault) => {
                let (mark, text) = self.process.plan.assertion(*fault, location, "false");
                lines.push(mark, location, text);
            }
        }
    }

    /// Continues after the code of an expression: labelled blocks may follow in the text.
    fn end_expression(&mut self, location: Location, lines: &mut Lines) {
        if self.labels.is_empty() {
            return;
        }
        let end = match self.end.take() {
            Some(end) => end,
            None => self.process.label("computed"),
        };
        lines.push(Mark::Local, location, format!("goto {end};"));
        self.end = Some(end);
    }

    /// The fault of an edge that does nothing else.
    fn only_faults(&self, edge: &Edge) -> Option<(Fault, Location)> {
        let block = self.data(edge.to);
        match block.terminator {
            Terminator::Fault(fault) if block.instructions.is_empty() => Some((fault, block.location)),
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Wait(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => None,
        }
    }

    pub(super) fn follow(&mut self, edge: &Edge, location: Location, lines: &mut Lines) {
        self.moves(edge, location, lines);
        self.continue_at(edge.to, location, lines);
    }

    /// Continues at a block whose parameters are set.
    pub(super) fn continue_at(&mut self, to: BlockId, location: Location, lines: &mut Lines) {
        match self.labels.get(&to).cloned() {
            Some(label) => {
                lines.push(Mark::Local, location, format!("goto {label};"));
                if to != self.entry && !self.process.written.contains(&label) {
                    self.process.written.insert(label);
                    self.pending.push(to);
                }
            }
            None => self.block(to, lines),
        }
    }

    /// Gives an edge's arguments to the parameters of its target, all at once.
    fn moves(&mut self, edge: &Edge, location: Location, lines: &mut Lines) {
        let parameters = self.data(edge.to).parameters.iter().copied();
        let pairs: Vec<(Value, Value)> = parameters.zip(edge.arguments.iter().copied()).collect();
        self.assign(&pairs, location, lines);
    }

    /// Gives values to others, all at once.
    pub(super) fn assign(&mut self, pairs: &[(Value, Value)], location: Location, lines: &mut Lines) {
        let scope = self.scope;
        let mut pending: Vec<(String, Expr, Set)> = Vec::new();
        for (parameter, argument) in pairs {
            let Some(name) = scope.variable(*parameter) else { continue };
            let value = scope.value(*argument);
            if value.text == name {
                continue;
            }
            let mut read = Set::new();
            scope.usage.leaves(scope.body, *argument, &mut read);
            pending.push((name.to_string(), value, read));
        }
        let variable = |name: &str| {
            let found = scope.variables.iter().find(|(_, own)| own.as_str() == name);
            Unit::Variable(*found.expect("parameters are variables").0)
        };
        while !pending.is_empty() {
            let free = pending.iter().position(|(name, _, _)| {
                let unit = variable(name);
                pending.iter().filter(|(other, _, _)| other != name).all(|(_, _, read)| !read.contains(&unit))
            });
            // A cycle: the first value is computed into a variable of its own.
            let at = free.unwrap_or(0);
            let (name, value, _) = pending.remove(at);
            if free.is_some() {
                lines.push(Mark::Local, location, format!("{name} = {};", value.text));
            } else {
                let spare = self.process.spare();
                lines.push(Mark::Local, location, format!("{spare} = {};", value.text));
                pending.push((name, Expr::tight(spare), Set::new()));
            }
        }
        self.process.clear_spares(location, lines);
    }

    fn clear(&mut self, dirty: &Set, live: &Set, location: Location, lines: &mut Lines) {
        for unit in dirty.difference(live) {
            match unit {
                Unit::Variable(variable) => {
                    if let Some(name) = self.scope.variables.get(variable) {
                        lines.push(Mark::Local, location, format!("{name} = 0;"));
                    }
                }
                Unit::Slot(slot) if self.scope.kept.contains(slot) => {}
                Unit::Slot(slot) => {
                    let place = Place { base: Base::Slot(*slot), path: Vec::new() };
                    let spot = self.scope.place(&place);
                    Writer { scope: self.scope, lines, location }.zero(&spot);
                }
            }
        }
    }

    /// A call whose function is more than an expression: its code, here.
    fn call(
        &mut self,
        function: FnId,
        arguments: &[Operand],
        result: Option<Value>,
        to: Option<&Place>,
        location: Location,
        lines: &mut Lines,
    ) {
        let callee = self.process.function_scope(function);
        let body = callee.body;
        let (mut values, mut slots) = (body.blocks[0].parameters.iter(), 0);
        for argument in arguments {
            let mut writer = Writer { scope: self.scope, lines, location };
            match argument {
                Operand::Value(value) => {
                    let parameter = values.next().expect("the verifier counts arguments");
                    if let Some(name) = callee.variable(*parameter) {
                        let text = format!("{name} = {};", self.scope.value(*value).text);
                        writer.line(text);
                    }
                }
                Operand::Place(place) => {
                    let from = self.scope.place(place);
                    writer.demand(&from.demands);
                    let slot = Place { base: Base::Slot(SlotId(slots)), path: Vec::new() };
                    writer.copy(&callee.place(&slot), &from);
                    slots += 1;
                }
            }
        }
        let label = self.process.label("returned");
        let dirty = callee.usage.variables().into_iter().map(Unit::Variable);
        let dirty: Set = dirty.chain((0..body.slots.len() as u32).map(|slot| Unit::Slot(SlotId(slot)))).collect();
        let returns = Returns::To { caller: self.scope, result, place: to, label: label.clone() };
        write(self.process, &callee, BlockId(0), dirty, returns, lines);
        lines.push(Mark::Local, location, format!("{label}: skip;"));
    }

    fn return_to(&mut self, operand: &Operand, location: Location, lines: &mut Lines) {
        let Returns::To { caller, result, place, label } = &self.returns else {
            unreachable!("processes do not return")
        };
        let mut writer = Writer { scope: self.scope, lines, location };
        match operand {
            Operand::Value(value) => {
                if let Some(name) = result.and_then(|result| caller.variable(result)) {
                    let text = format!("{name} = {};", self.scope.value(*value).text);
                    writer.line(text);
                }
            }
            Operand::Place(from) => {
                let from = self.scope.place(from);
                writer.demand(&from.demands);
                if let Some(place) = place {
                    let to = caller.place(place);
                    writer.demand(&to.demands);
                    writer.copy(&to, &from);
                }
            }
        }
        let label = label.clone();
        let everything = self.scope.usage.variables().into_iter().map(Unit::Variable);
        let slots = (0..self.body().slots.len() as u32).map(|slot| Unit::Slot(SlotId(slot)));
        let everything: Set = everything.chain(slots).collect();
        self.clear(&everything, &Set::new(), location, lines);
        lines.push(Mark::Local, location, format!("goto {label};"));
    }
}

/// What a region leaves behind: its own variables and slots.
pub(super) fn written_by(scope: &Scope<'_>, blocks: &[BlockId]) -> Set {
    let mut set = Set::new();
    for id in blocks {
        let block = &scope.body.blocks[id.0 as usize];
        for instruction in &block.instructions {
            let mut access = Access::default();
            access.op(&instruction.op);
            for place in &access.writes {
                if let Base::Slot(slot) = place.base {
                    set.insert(Unit::Slot(slot));
                }
            }
            if let Some(Placement::Variable(variable)) = instruction.result.map(|result| scope.usage.placement(result))
            {
                set.insert(Unit::Variable(variable));
            }
        }
    }
    set
}
