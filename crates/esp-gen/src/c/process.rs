//! The code of the processes inside the one function that holds them all (Kumar and Li, "Performance Impact of Using
//! ESP to Implement VMMC Firmware", section IV: process-based, no stacks): blocks become labels, edges become jumps.
//! The code of waits is in [`super::wait`].

use super::control::{write_fault_label, write_switch};
use super::hand_off::{push_self, return_table, stop};
use super::path_call::path_resumptions;
use super::path_transitions::{enter_path, leave_path};
use super::ready_list::reopen;
use super::storage::{SlotStorage, used_slots};
use super::wait::write_wait;
use super::writer::{Scope, Writer, line};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// Writes one process.
pub(crate) fn write_process(code: &mut Writer<'_, '_>, process: usize) {
    code.within(Scope::Process(process), |code| {
        let plan = code.plan;
        let name = &plan.processes[process].name;
        code.unmark();
        line!(code, "");
        line!(code, "/* process {} */", plan.program.processes[process].name);
        line!(code, "{name}_start:");
        write_blocks(code, process, &blocks_of_step(code, process));
        code.unmark();
        write_loop_entries(code, process);
        path_resumptions(code, process);
        return_table(code, process);
        write_fault_label(code, process);
    });
}

/// The blocks of a process that are not in functions of paths.
fn blocks_of_step(code: &Writer<'_, '_>, process: usize) -> Vec<BlockId> {
    let plan = code.plan;
    let main = plan.processes[process].storage.main.iter().copied();
    main.filter(|block| !plan.is_in_path_function(process, *block)).collect()
}

/// Writes blocks of a process.
pub(crate) fn write_blocks(code: &mut Writer<'_, '_>, process: usize, blocks: &[BlockId]) {
    let data = &code.plan.processes[process];
    for (index, id) in blocks.iter().enumerate() {
        let promoting_loop = data.storage.promotion.loop_of(*id);
        code.in_loop(promoting_loop, |code| {
            let block = &code.body().blocks[id.0 as usize];
            line!(code, "{}_{}{}:", data.name, id.0, label_suffix(promoting_loop));
            code.line(";");
            for instruction in &block.instructions {
                code.instruction(instruction);
            }
            terminator(code, process, *id, blocks.get(index + 1).copied());
        });
    }
}

/// The end of a block's label: a block in a loop that promotes values has another label for entries from outside.
fn label_suffix(promoting_loop: Option<usize>) -> &'static str {
    if promoting_loop.is_some() { "_inside" } else { "" }
}

/// The labels at which loops that promote values are entered: these are loaded from the frame.
fn write_loop_entries(code: &mut Writer<'_, '_>, process: usize) {
    let data = &code.plan.processes[process];
    for block in data.storage.promotion.entries() {
        line!(code, "{}_{}:", data.name, block.0);
        for class in data.storage.promotion.loads_at(block) {
            let local = code.process_local(process, class);
            line!(code, "{local} = {};", code.value(class));
        }
        line!(code, "goto {}_{}{};", data.name, block.0, label_suffix(data.storage.promotion.loop_of(block)));
    }
}

/// Declares the locals of a process's code.
pub(crate) fn declare_process(code: &mut Writer<'_, '_>, process: usize) {
    code.within(Scope::Process(process), |code| {
        let plan = code.plan;
        let data = &plan.processes[process];
        if plan.is_array(process) {
            line!(code, "{0}_frame *{0} ESP_UNUSED = &t->{0}[0];", data.name);
            line!(code, "esp_pid {}_self = {};", data.name, data.base);
        }
        let blocks = blocks_of_step(code, process);
        declare_blocks(code, process, &blocks, &BTreeSet::new());
        let slots = used_slots(code.body(), &blocks);
        declare_slots(code, process, &slots);
    });
}

/// Declares the locals that blocks of a process define, but for those that are declared already.
pub(crate) fn declare_blocks(
    code: &mut Writer<'_, '_>,
    process: usize,
    blocks: &[BlockId],
    declared: &BTreeSet<Value>,
) {
    let storage = &code.plan.processes[process].storage;
    let mut classes = BTreeSet::new();
    for block in blocks {
        let block = &code.body().blocks[block.0 as usize];
        let results = block.instructions.iter().filter_map(|instruction| instruction.result);
        let values = block.parameters.iter().copied().chain(results);
        classes.extend(values.filter_map(|value| storage.local(value)));
    }
    for class in storage.promotion.all() {
        line!(code, "{} {} ESP_UNUSED;", code.c_type(code.value_type(class)), code.process_local(process, class));
    }
    for class in classes.difference(declared) {
        line!(code, "{} {} ESP_UNUSED;", code.c_type(code.value_type(*class)), code.value(*class));
    }
}

/// Declares the locals and constants that slots are stored in.
pub(crate) fn declare_slots(code: &mut Writer<'_, '_>, process: usize, slots: &BTreeSet<SlotId>) {
    let storage = &code.plan.processes[process].storage;
    for slot in slots {
        let (ty, name) = (code.c_type(code.body().slots[slot.0 as usize].ty), code.slot(*slot));
        match storage.slots[slot.0 as usize] {
            SlotStorage::Local => line!(code, "{ty} {name} ESP_UNUSED;"),
            SlotStorage::Literal => {
                let bytes = &storage.literals[slot];
                let data: Vec<String> = bytes.iter().map(u8::to_string).collect();
                let data = if data.is_empty() { "0".to_string() } else { data.join(", ") };
                line!(code, "static const {ty} {name} ESP_UNUSED = {{ {}, {{ {data} }} }};", bytes.len());
            }
            SlotStorage::Frame | SlotStorage::Captured | SlotStorage::Unused => {}
        }
    }
}

/// Writes the jump along an edge; `next` is the block that follows in the text. Where the edge leaves a loop, promoted
/// values that have changed are stored to the frame.
fn jump_in_process(code: &mut Writer<'_, '_>, process: usize, from: BlockId, edge: &Edge, next: Option<BlockId>) {
    let plan = code.plan;
    let data = &plan.processes[process];
    let promotion = &data.storage.promotion;
    let (from_loop, to_loop) = (promotion.loop_of(from), promotion.loop_of(edge.to));
    if from_loop == to_loop {
        code.edge(edge);
        if next != Some(edge.to) {
            line!(code, "goto {}_{}{};", data.name, edge.to.0, label_suffix(to_loop));
        }
        return;
    }
    if from_loop.is_some() {
        for class in promotion.stores_between(from, edge.to) {
            let local = code.process_local(process, class);
            line!(code, "{}{} = {local};", plan.frame(process), plan.version(code.body(), class));
        }
    }
    code.edge_between(edge, from_loop, None);
    if to_loop.is_some() || next != Some(edge.to) {
        line!(code, "goto {}_{};", data.name, edge.to.0);
    }
}

/// The head of a conditional branch. An edge that stays in a loop is taken more often than one that leaves it.
fn branch_head(condition: &str, then_stays: bool, otherwise_stays: bool) -> String {
    match (then_stays, otherwise_stays) {
        (true, false) => format!("if (ESP_LIKELY({condition})) {{"),
        (false, true) => format!("if (ESP_UNLIKELY({condition})) {{"),
        (true, true) | (false, false) => format!("if ({condition}) {{"),
    }
}

fn terminator(code: &mut Writer<'_, '_>, process: usize, id: BlockId, next: Option<BlockId>) {
    let block = &code.body().blocks[id.0 as usize];
    let plan = code.plan;
    let data = &plan.processes[process];
    code.mark(block.location);
    match &block.terminator {
        Terminator::Jump(edge) => jump_in_process(code, process, id, edge, next),
        Terminator::Branch { condition, then, otherwise } => {
            let stays = |edge: &Edge| data.storage.promotion.stays_inside(id, edge.to);
            let head = branch_head(&code.value(*condition), stays(then), stays(otherwise));
            code.block(&head, |code| jump_in_process(code, process, id, then, None));
            jump_in_process(code, process, id, otherwise, next);
        }
        Terminator::Switch { value, cases, default } => {
            write_switch(code, *value, cases, default, &mut |code, edge| {
                jump_in_process(code, process, id, edge, None)
            });
        }
        Terminator::Yield(edge) => {
            code.edge(edge);
            reopen(code);
            line!(code, "t->pc[{}] = {};", plan.own_id(process), data.yields[&id]);
            push_self(code, process);
            code.line("goto dispatch;");
        }
        Terminator::Enter(enter) => {
            enter_path(code, process, enter, &mut |code, edge| jump_in_process(code, process, id, edge, None));
        }
        Terminator::Leave(leave) => leave_path(code, process, leave),
        Terminator::Exit(value) => {
            line!(code, "t->exit_status = (int32_t)((uint32_t){} & 255u);", code.value(*value));
            code.line("goto finished;");
        }
        Terminator::End => {
            reopen(code);
            line!(code, "t->pc[{}] = 0;", plan.own_id(process));
            stop(code, process);
        }
        Terminator::Fault(fault) => {
            let text = code.raise(*fault, block.location);
            code.line(&text);
        }
        Terminator::Wait(_) => write_wait(code, process, data.wait_at(id)),
        Terminator::Return(_) | Terminator::Result(_) => {
            unreachable!("the verifier has checked that processes do not return")
        }
    }
}
