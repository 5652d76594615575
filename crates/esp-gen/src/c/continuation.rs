//! How an instance continues after an operation: at once, or behind others once its turn is over.

use super::hand_off::push_self;
use super::ready_list::trace_run;
use super::writer::{Writer, line};
use quaject_esp_ir::ir::BlockId;

/// After one operation of the turn: continues at the block, or joins the ready list if it was the last.
pub(crate) fn continue_in_turn(code: &mut Writer<'_, '_>, process: usize, block: BlockId, pc: u32) {
    let plan = code.plan;
    code.block("if (--left == 0u) {", |code| {
        line!(code, "t->pc[{}] = {pc};", plan.own_id(process));
        push_self(code, process);
        code.line("goto dispatch;");
    });
    continue_at(code, process, block);
}

/// Continues at the block at once.
pub(crate) fn continue_at(code: &mut Writer<'_, '_>, process: usize, block: BlockId) {
    let plan = code.plan;
    trace_run(code, &plan.own_id(process));
    line!(code, "goto {}_{};", plan.processes[process].name, block.0);
}

/// Makes an instance the running one of its process.
pub(crate) fn select_instance(code: &mut Writer<'_, '_>, process: usize, instance: &str) {
    let plan = code.plan;
    if plan.is_array(process) {
        let data = &plan.processes[process];
        line!(code, "{0} = &t->{0}[{instance} - {1}u];", data.name, data.base);
        line!(code, "{}_self = {instance};", data.name);
    }
}
