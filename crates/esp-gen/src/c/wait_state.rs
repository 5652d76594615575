//! The run-time state of a wait: which branches are open, the blocked bits by which partners find an instance, and how
//! a commit removes them.

use super::plan::{End, Plan};
use super::writer::{Writer, line};
use quaject_esp_ir::ir::*;

/// The condition under which a branch is open, if that can vary. Valid in the process's code and in its functions.
pub(crate) fn open_condition(plan: &Plan<'_>, end: End) -> Option<String> {
    match plan.branch(end).guard {
        Guard::Open => None,
        Guard::Value(_) | Guard::Region(_) => {
            Some(format!("({}open[{}] >> {} & 1u) != 0u", plan.frame(end.process), end.branch / 32, end.branch % 32))
        }
    }
}

/// Ends an instance's wait by a commit to one of its branches.
pub(crate) fn end_wait(code: &mut Writer<'_, '_>, end: End) {
    clear_blocked(code, end);
    let plan = code.plan;
    let wait = plan.wait_plan(end);
    let own = plan.own_id(end.process);
    if wait.polls_environment {
        line!(code, "waiting_remove(t, {own});");
    }
    if wait.may_retry() {
        line!(code, "t->pc[{own}] = 0;");
    }
}

/// The part of [`end_wait`] that concerns channels between instances: the branch at which the next search begins, and
/// the blocked bits.
pub(crate) fn clear_blocked(code: &mut Writer<'_, '_>, end: End) {
    let plan = code.plan;
    let wait = plan.wait_plan(end);
    if wait.rotates {
        let next = (end.branch + 1) % wait.branches.len();
        line!(code, "{}next{} = {next};", plan.frame(end.process), wait.block.0);
    }
    for (text, bit) in blocked_bits(plan, end.process, end.wait) {
        line!(code, "{text} &= ~{bit};");
    }
}

/// The blocked bits of an instance at a wait: words and bits.
pub(crate) fn blocked_bits(plan: &Plan<'_>, process: usize, wait: usize) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for branch in &plan.wait(process, wait).branches {
        let (channel, ends, words, side) = match &branch.operation {
            Operation::In { channel, .. } => {
                let data = &plan.channels[channel.0 as usize];
                (channel, &data.readers, data.reader_words(), "readers")
            }
            Operation::Out { channel, .. } => {
                let data = &plan.channels[channel.0 as usize];
                (channel, &data.writers, data.writer_words(), "writers")
            }
            Operation::After { .. } => continue,
        };
        if words == 0 || plan.program.channels[channel.0 as usize].boundary != Boundary::Internal {
            continue;
        }
        let name = &plan.channels[channel.0 as usize].name;
        let first = plan.first_bit(ends, process);
        let data = &plan.processes[process];
        let entry = if plan.is_array(process) {
            let bit = format!("({}_self + {}u)", data.name, first.wrapping_sub(data.base));
            (format!("t->{name}_{side}[{bit} / 32u]"), format!("ESP_BIT({bit} % 32u)"))
        } else {
            (format!("t->{name}_{side}[{}]", first / 32), format!("ESP_BIT({})", first % 32))
        };
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}
