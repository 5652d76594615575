//! The code of a fast path as a C function of its own: the one that holds all processes has too many ways for a compiler
//! to keep a path's values in registers. A path that asks the world stays inside, where what it asks is at hand.
//!
//! ```text
//!   step                                     P_path13(t, self, values of P that it uses)
//!     P_12:  enter: members leave waits
//!            switch (P_path13(..))   ----->  P_13: ..  the path's blocks
//!              case 1: goto P_4;     <-----    leave: everybody's values into frames; return 1
//!              case 2: goto P_7;     <-----    leave: ..; return 2
//!              default: faulted      <-----  P_fault: return 0
//! ```

use super::analysis::{Home, edges, touched, used_slots};
use super::code::{Code, Scope, line};
use super::functions::{Functions, defined};
use super::plan::Plan;
use super::process::{declare_blocks, declare_slots, write_blocks};
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
}

/// The paths of a body that can be functions: those that do not wait.
pub(crate) fn path_functions(body: &Body) -> Vec<PathFunction> {
    let entries = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Enter(enter) => Some(enter.then),
        _ => None,
    });
    entries.filter_map(|entry| path_function(body, entry)).collect()
}

fn path_function(body: &Body, entry: BlockId) -> Option<PathFunction> {
    let (mut blocks, mut exits) = (BTreeSet::new(), BTreeSet::new());
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
            Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Enter(_) => return None,
        }
        work.extend(edges(terminator).into_iter().map(|edge| edge.to));
    }
    let blocks: Vec<BlockId> = blocks.into_iter().collect();
    let own = defined(body, &blocks);
    let given = used_values(body, &blocks).difference(&own).copied().collect();
    Some(PathFunction { entry, blocks, exits: exits.into_iter().collect(), given })
}

/// The values that some blocks touch.
fn used_values(body: &Body, blocks: &[BlockId]) -> BTreeSet<Value> {
    let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
    blocks.iter().for_each(|block| touched(body, *block, &mut values, &mut slots));
    values
}

/// The slots that are used both by functions of paths and by other blocks of a body.
pub(crate) fn shared_slots(body: &Body) -> BTreeSet<SlotId> {
    let functions = path_functions(body);
    let is_inside = |block: &BlockId| functions.iter().any(|function| function.blocks.contains(block));
    let others: Vec<BlockId> = (0..body.blocks.len() as u32).map(BlockId).filter(|block| !is_inside(block)).collect();
    let outside = used_slots(body, &others);
    let inside = functions.iter().flat_map(|function| used_slots(body, &function.blocks));
    inside.filter(|slot| outside.contains(slot)).collect()
}

impl Plan<'_> {
    /// Whether a block is in a function of a path.
    pub(crate) fn is_in_path_function(&self, process: usize, block: BlockId) -> bool {
        self.processes[process].paths.iter().any(|path| path.blocks.binary_search(&block).is_ok())
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
    let given = plan.handed(process, path).map(|value| format!(", {}", code.value(value)));
    let given: String = given.collect();
    code.line("t->tail = tail;");
    line!(code, "where = {}(t, {}{given});", plan.path_name(process, path), plan.own_id(process));
    code.line("tail = t->tail;");
    code.open("switch (where) {");
    for (number, exit) in data.paths[path].exits.iter().enumerate() {
        line!(code, "case {}:", number + 1);
        line!(code, "    goto {}_{};", data.name, exit.0);
    }
    code.line("default:");
    code.line("    where = t->fault;");
    code.line("    goto faulted;");
    code.close("}");
}

/// The end of a path: the trigger's values are where they were before it.
pub(crate) fn give_back(code: &mut Code<'_, '_>, process: usize, path: usize, to: BlockId) {
    let exits = &code.plan.processes[process].paths[path].exits;
    let number = exits.iter().position(|exit| *exit == to).expect("every end of a path is known");
    code.line("t->tail = tail;");
    line!(code, "return {};", number + 1);
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
        code.line("uint32_t where ESP_UNUSED = 0, tail = t->tail;");
        let given: BTreeSet<Value> = plan.handed(process, path).collect();
        declare_blocks(&mut code, process, &data.paths[path].blocks, &given);
        let slots = used_slots(code.body(), &data.paths[path].blocks);
        declare_slots(&mut code, process, &slots);
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
            code.line("t->tail = tail;");
            code.line("return 0;");
        }
        let parameters =
            given.iter().map(|value| format!(", {} {}", code.c_type(code.value_type(*value)), code.value(*value)));
        let parameters: String = parameters.collect();
        let head = format!(
            "ESP_APART uint32_t {}({} *t, esp_pid self{parameters})",
            plan.path_name(process, path),
            self.state()
        );
        self.add(&head, code);
    }
}
