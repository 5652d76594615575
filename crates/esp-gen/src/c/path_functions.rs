//! The code of a fast path as a C function of its own: the one that holds all processes has too many ways for a compiler
//! to keep a path's values in registers. What the path asks the world it asks there, and goes straight on. Where messages
//! go out through the step's arguments it may have to pause, as that was as many as the caller takes at a time: then it
//! puts what it needs beside the frame of the trigger, which goes on there when it is dispatched.
//!
//! ```text
//!   step                                     P_path13(t, in, out, self, values of P that it uses)
//!     P_12:  enter: members leave waits
//!            switch (P_path13(..))   ----->  P_13: ..  the path's blocks
//!              case 1: goto P_4;     <-----    leave: everybody's values into frames; return 1
//!              case 2: goto P_7;     <-----    leave: ..; return 2
//!              case 3: goto again;   <-----    pause: its own values beside the frame; return 3
//!              default: faulted      <-----  P_fault: return 0
//! ```

use super::Style;
use super::analysis::{Home, used_slots};
use super::code::{Code, Owner, Scope, line, owner_line};
use super::functions::{Functions, defined};
use super::paths::come_back_together;
use super::plan::{End, Plan};
use super::process::{declare_blocks, declare_slots, push, resume_pc, write_blocks};
use quaject_esp_ir::access::touched;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// A path's code as a function.
pub(crate) struct PathFunction {
    /// The first block: the target of the entry.
    pub(crate) entry: BlockId,
    /// Its blocks, in ascending order.
    pub(crate) blocks: Vec<BlockId>,
    /// Where the trigger goes on, by the number that is returned, from 1.
    pub(crate) exits: Vec<BlockId>,
    /// Values of the trigger that it uses.
    given: Vec<Value>,
    /// Its blocks that end in asking the world, in ascending order.
    pub(crate) asks: Vec<BlockId>,
    /// Those of them, and their branches, behind which it may have to pause.
    pub(crate) pauses: Vec<(BlockId, usize)>,
}

/// The paths of a body that can be functions: those that wait for nothing, but at most ask the world.
pub(crate) fn path_functions(program: &Program, body: &Body, style: Style) -> Vec<PathFunction> {
    let entries = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Enter(enter) => Some(enter.then),
        _ => None,
    });
    entries.filter_map(|entry| path_function(program, body, entry, style)).collect()
}

fn path_function(program: &Program, body: &Body, entry: BlockId, style: Style) -> Option<PathFunction> {
    let (mut blocks, mut exits) = (BTreeSet::new(), BTreeSet::new());
    let (mut asks, mut pauses) = (Vec::new(), Vec::new());
    let mut work = vec![entry];
    while let Some(block) = work.pop() {
        if !blocks.insert(block) {
            continue;
        }
        let terminator = &body.blocks[block.0 as usize].terminator;
        match terminator {
            Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } | Terminator::Fault(_) => {}
            Terminator::Leave(leave) => {
                exits.insert(leave.trigger.to);
            }
            Terminator::Wait(wait) if asks_world(program, wait) => {
                asks.push(block);
                let sends = |branch: &Branch| matches!(branch.operation, Operation::Out { .. });
                let branches =
                    wait.branches.iter().enumerate().filter(|(_, branch)| style.is_sans_io() && sends(branch));
                pauses.extend(branches.map(|(number, _)| (block, number)));
            }
            Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Enter(_) => return None,
        }
        work.extend(successors(terminator, Regions::Skip));
    }
    let blocks: Vec<BlockId> = blocks.into_iter().collect();
    let own = defined(body, &blocks);
    let given = used_values(body, &blocks).difference(&own).copied().collect();
    asks.sort_unstable();
    pauses.sort_unstable();
    Some(PathFunction { entry, blocks, exits: exits.into_iter().collect(), given, asks, pauses })
}

/// Whether nobody waits at a wait: the world is asked, and the answer may be no.
fn asks_world(program: &Program, wait: &Wait) -> bool {
    let is_outside = |branch: &Branch| match &branch.operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => {
            program.channels[channel.0 as usize].boundary != Boundary::Internal
        }
        Operation::After { .. } => false,
    };
    wait.otherwise.is_some() && wait.branches.iter().all(is_outside)
}

/// The values that some blocks touch.
fn used_values(body: &Body, blocks: &[BlockId]) -> BTreeSet<Value> {
    let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
    blocks.iter().for_each(|block| touched(body, *block, &mut values, &mut slots));
    values
}

/// The slots that are used both by functions of paths and by other blocks of a body.
pub(crate) fn shared_slots(body: &Body, functions: &[PathFunction]) -> BTreeSet<SlotId> {
    let is_inside = |block: &BlockId| functions.iter().any(|function| function.blocks.contains(block));
    let others: Vec<BlockId> = (0..body.blocks.len() as u32).map(BlockId).filter(|block| !is_inside(block)).collect();
    let outside = used_slots(body, &others);
    let inside = functions.iter().flat_map(|function| used_slots(body, &function.blocks));
    inside.filter(|slot| outside.contains(slot)).collect()
}

impl Plan<'_> {
    /// The block of a wait, and a branch of it.
    fn place(&self, end: End) -> (BlockId, usize) {
        (self.processes[end.process].waits[end.wait].block, end.branch)
    }

    /// Whether a branch only asks the world on a fast path.
    pub(crate) fn is_straight(&self, end: End) -> bool {
        self.processes[end.process].waits[end.wait].is_straight
    }

    /// Locals that a path keeps while it pauses behind a branch.
    pub(crate) fn paused(&self, end: End) -> &[Value] {
        self.processes[end.process].homes.paused.get(&self.place(end)).map_or(&[], |values| &values[..])
    }

    /// Where such a local is kept.
    fn paused_place(&self, end: End, value: Value) -> String {
        format!("{}park.{}.s{}", self.frame(end.process), self.park_name(end), value.0)
    }

    /// Whether a block is in a function of a path.
    pub(crate) fn is_in_path_function(&self, process: usize, block: BlockId) -> bool {
        self.processes[process].paths.iter().any(|path| path.blocks.binary_search(&block).is_ok())
    }

    /// What a path's function returns where the trigger goes on there.
    pub(crate) fn returned(&self, process: usize, path: usize, to: BlockId) -> usize {
        let exits = &self.processes[process].paths[path].exits;
        exits.iter().position(|exit| *exit == to).expect("every end of a path is known") + 1
    }

    /// Whether a path's function holds the end of the ready list itself, as it does not only lengthen it where it is
    /// left by `come_back`.
    pub(crate) fn holds_tail(&self, process: usize, path: usize) -> bool {
        let PathFunction { blocks, asks, .. } = &self.processes[process].paths[path];
        let body = &self.program.processes[process].body;
        let apart = |block: &BlockId| match &body.blocks[block.0 as usize].terminator {
            Terminator::Leave(leave) => !come_back_together(self, leave),
            _ => false,
        };
        !asks.is_empty() || blocks.iter().any(apart)
    }

    fn path_name(&self, process: usize, path: usize) -> String {
        let data = &self.processes[process];
        format!("{}_path{}", data.name, data.paths[path].entry.0)
    }

    /// The values that are handed over, as locals of both sides.
    fn handed(&self, process: usize, path: usize) -> impl Iterator<Item = Value> {
        let data = &self.processes[process];
        let classes: BTreeSet<Value> = data.paths[path]
            .given
            .iter()
            .filter_map(|value| match data.homes.values[value.0 as usize] {
                Home::Local(class) => Some(class),
                Home::Frame(_) | Home::Constant(_) | Home::OwnId => None,
            })
            .collect();
        classes.into_iter()
    }
}

/// The call of a path's function, after its members have left their waits.
pub(crate) fn call(code: &mut Code<'_, '_>, process: usize, path: usize) {
    let plan = code.plan;
    let data = &plan.processes[process];
    let name = plan.path_name(process, path);
    let PathFunction { exits, pauses, .. } = &data.paths[path];
    let given = plan.handed(process, path).map(|value| format!(", {}", code.value(value)));
    let given: String = given.collect();
    let mut paused = "";
    if !pauses.is_empty() {
        code.line("where = 0;");
        line!(code, "{name}_go:");
        paused = "&put_, where, ";
    }
    code.line("t->tail = tail;");
    line!(code, "where = {name}(IO, {paused}{}{given});", plan.own_id(process));
    code.line("tail = t->tail;");
    code.open("switch (where) {");
    for (number, exit) in exits.iter().enumerate() {
        line!(code, "case {}:", number + 1);
        line!(code, "    goto {}_{};", data.name, exit.0);
    }
    if !pauses.is_empty() {
        line!(code, "case {}:", exits.len() + 1);
        code.line("    goto again;");
    }
    code.line("default:");
    code.line("    where = t->fault;");
    code.line("    goto faulted;");
    code.close("}");
}

/// Where paths that have paused go on, in the order of their numbers: into the function, which knows where.
pub(crate) fn go_on_paths(code: &mut Code<'_, '_>, process: usize) {
    let plan = code.plan;
    for (path, function) in plan.processes[process].paths.iter().enumerate() {
        for (number, (block, branch)) in function.pauses.iter().enumerate() {
            line!(code, "{}_w{}_b{branch}_go:", plan.processes[process].name, block.0);
            line!(code, "where = {};", number + 1);
            line!(code, "goto {}_go;", plan.path_name(process, path));
        }
    }
}

/// A message has gone out on a path: it pauses if that was as many as the caller takes at a time.
pub(crate) fn pause(code: &mut Code<'_, '_>, end: End) {
    let plan = code.plan;
    let Some(path) = code.path.map(|path| &plan.processes[end.process].paths[path]) else { return };
    if !path.pauses.contains(&plan.place(end)) {
        return;
    }
    let own = plan.own_id(end.process);
    code.open("if (++*put_ == out->head.limit) {");
    for value in plan.paused(end) {
        line!(code, "{} = {};", plan.paused_place(end, *value), code.value(*value));
    }
    line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
    push(code, &own);
    code.line("t->tail = tail;");
    line!(code, "return {};", path.exits.len() + 1);
    code.close("}");
}

/// Goes on where a path has paused.
fn resume(code: &mut Code<'_, '_>, process: usize, path: usize) {
    let plan = code.plan;
    let data = &plan.processes[process];
    code.open("switch (from) {");
    for (number, (block, branch)) in data.paths[path].pauses.iter().enumerate() {
        let wait = data.waits.iter().position(|wait| wait.block == *block).expect("every wait is planned");
        let end = End { process, wait, branch: *branch };
        line!(code, "case {}:", number + 1);
        code.indent += 1;
        for value in plan.paused(end) {
            line!(code, "{} = {};", code.value(*value), plan.paused_place(end, *value));
        }
        line!(code, "goto {}_{};", data.name, plan.branch(end).then.0);
        code.indent -= 1;
    }
    code.line("default:");
    code.line("    break;");
    code.close("}");
}

impl Functions<'_, '_> {
    /// Writes the functions of the paths of a process.
    pub(crate) fn paths(&mut self, process: usize) {
        for path in 0..self.plan.processes[process].paths.len() {
            self.path(process, path);
        }
    }

    fn path(&mut self, process: usize, path: usize) {
        let plan = self.plan;
        let data = &plan.processes[process];
        let mut code = self.code(Scope::Process(process));
        code.path = Some(path);
        self.enter(&mut code, process);
        code.line("(void)in; (void)out;");
        let holds_tail = plan.holds_tail(process, path);
        line!(code, "uint32_t where ESP_UNUSED = 0{};", if holds_tail { ", tail = t->tail" } else { "" });
        let given: BTreeSet<Value> = plan.handed(process, path).collect();
        declare_blocks(&mut code, process, &data.paths[path].blocks, &given);
        let slots = used_slots(code.body(), &data.paths[path].blocks);
        declare_slots(&mut code, process, &slots);
        let pauses = !data.paths[path].pauses.is_empty();
        if pauses {
            resume(&mut code, process, path);
        }
        super::paths::take(&mut code, data.paths[path].entry);
        line!(code, "goto {}_{};", data.name, data.paths[path].entry.0);
        write_blocks(&mut code, process, &data.paths[path].blocks);
        code.unmark();
        if code.text.contains(&format!("goto {}_fault;", data.name)) {
            line!(code, "{}_fault:", data.name);
            line!(code, "t->instance = {};", plan.own_id(process));
            code.line("goto faulted;");
        }
        if code.text.contains("goto faulted;") {
            code.line("faulted:");
            code.line("t->fault = where;");
            if holds_tail {
                code.line("t->tail = tail;");
            }
            code.line("return 0;");
        }
        let parameters =
            given.iter().map(|value| format!(", {} {}", code.c_type(code.value_type(*value)), code.value(*value)));
        let parameters: String = parameters.collect();
        let (state, prefix) = (self.state(), &plan.prefix);
        let paused = if pauses { "uint32_t *put_, uint32_t from, " } else { "" };
        let head = format!(
            "ESP_IN_ORDER uint32_t {}({state} *t, const {prefix}_input *in, {prefix}_output *out, {paused}esp_pid \
             self{parameters})",
            plan.path_name(process, path)
        );
        // Behind the functions by which the world is asked.
        self.outside.push_str(&owner_line(Owner::Process(process)));
        self.outside.push_str(&format!("\n{head}\n{{\n{}}}\n", code.text));
        self.outside.push_str(&owner_line(Owner::Scheduler));
        self.declarations.push_str(&format!("{head};\n"));
    }
}
