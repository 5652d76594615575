//! Direct hand-off ("Fast Paths in Concurrent Programs", section 2): a receiver that continues is treated like a
//! function that its sender has called. The sender does not join the ready list; when the receiver waits or ends, the
//! sender continues.
//!
//! ```text
//!   read --out--> evener --out--> swap          swap waits at its `in`: evener continues; that waits: read continues
//!   (called)      (called)        (runs)
//! ```
//!
//! A sender that has called has a program counter of its own: it is ready, but not on the list. At any time these
//! senders form a call chain that ends in the running instance. An instance that stops for another reason (its turn is
//! over, it yields, or communicates with an instance outside of the chain or with the environment) first puts the
//! entire chain on the ready list. Every ready instance therefore runs within the bounds of queued hand-off.
//!
//! The plan decides where hand-off is direct: on channels with one sender and one receiver.

use super::plan::{End, Plan};
use super::ready_list::{push, trace_run};
use super::writer::{Writer, line};
use quaject_esp_ir::ir::{Guard, Operation};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Call sites that are compared one by one before the `in` of a receiver; more are left to the table behind it.
const MAX_TESTED_CALL_SITES: usize = 3;

/// A sender hands its message over, to continue when the receiver stops.
pub(crate) fn call_receiver(code: &mut Writer<'_, '_>, sender: End, jump: &dyn Fn(&str) -> String) {
    let plan = code.plan;
    let own = plan.own_id(sender.process);
    code.block("if (--left == 0u) {", |code| {
        line!(code, "t->pc[{own}] = {};", plan.continuation_pc(sender));
        push(code, &own);
        release_callers(code, sender.process);
        code.line(&jump("later"));
    });
    line!(code, "t->pc[{own}] = {};", plan.hand_off.pcs[&sender]);
    code.line(&jump("bind"));
}

/// The running instance joins the ready list, behind its callers.
pub(crate) fn push_self(code: &mut Writer<'_, '_>, process: usize) {
    release_callers(code, process);
    push(code, &code.plan.own_id(process));
}

/// The running sender's callers join the ready list, unless the sender becomes a caller itself.
pub(crate) fn release_unless_calling(code: &mut Writer<'_, '_>, sender: End) {
    if !code.plan.hand_off.pcs.contains_key(&sender) {
        release_callers(code, sender.process);
    }
}

/// The callers of a process join the ready list.
pub(crate) fn release_callers(code: &mut Writer<'_, '_>, process: usize) {
    if code.plan.hand_off.has_callers(process) {
        line!(code, "tail = {}_release(t, tail);", code.plan.processes[process].name);
    }
}

/// The running instance waits or has ended: its caller continues, or the next ready instance.
pub(crate) fn stop(code: &mut Writer<'_, '_>, process: usize) {
    if code.plan.hand_off.has_callers(process) {
        line!(code, "goto {}_stop;", code.plan.processes[process].name);
    } else {
        code.line("goto dispatch;");
    }
}

/// At an `in`, before the search for a writer: if the only possible one has called this process, it does not wait, and
/// continues. Usual call sites are compared one by one, which is faster than the table of [`return_table`].
pub(crate) fn return_early(code: &mut Writer<'_, '_>, process: usize, wait: usize, park: &dyn Fn(&mut Writer<'_, '_>)) {
    let plan = code.plan;
    let [branch] = &plan.wait(process, wait).branches[..] else { return };
    let Operation::In { channel, .. } = &branch.operation else { return };
    if branch.guard != Guard::Open || plan.wait(process, wait).otherwise.is_some() {
        return;
    }
    let writers = &plan.channels[channel.0 as usize].writers;
    let usual =
        writers.iter().copied().filter(|end| plan.hand_off.is_only_caller(process, *end) && plan.is_repeated(*end));
    for end in usual.take(MAX_TESTED_CALL_SITES) {
        let test = format!("if (t->pc[{}] == {}u) {{", plan.own_id(end.process), plan.hand_off.pcs[&end]);
        code.block(&test, |code| {
            park(code);
            continue_caller(code, end);
        });
    }
}

/// A sender that has called continues.
fn continue_caller(code: &mut Writer<'_, '_>, sender: End) {
    let plan = code.plan;
    let own = plan.own_id(sender.process);
    // While it runs, an instance that it calls may call it in turn and compare its program counter.
    if plan.hand_off.is_recursive(sender.process) {
        line!(code, "t->pc[{own}] = {};", plan.continuation_pc(sender));
    }
    trace_run(code, &own);
    line!(code, "goto {}_{};", plan.processes[sender.process].name, plan.branch(sender).then.0);
}

/// The code at which a process stops that may have been called: its caller continues.
pub(crate) fn return_table(code: &mut Writer<'_, '_>, process: usize) {
    let plan = code.plan;
    let callers = plan.hand_off.callers(process);
    if callers.is_empty() {
        return;
    }
    line!(code, "{}_stop:", plan.processes[process].name);
    for (caller, ends) in by_process(callers) {
        code.open(&format!("switch (t->pc[{}]) {{", plan.own_id(caller)));
        for end in ends {
            code.case(&format!("case {}:", plan.hand_off.pcs[&end]), |code| continue_caller(code, end));
        }
        code.close_switch();
    }
    code.line("goto dispatch;");
}

fn by_process(ends: &[End]) -> BTreeMap<usize, Vec<End>> {
    let mut by_process: BTreeMap<usize, Vec<End>> = BTreeMap::new();
    for end in ends {
        by_process.entry(end.process).or_default().push(*end);
    }
    by_process
}

/// The functions that put the call chain behind a process on the ready list, the outermost caller first.
pub(crate) fn release_functions(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    let prefix = &plan.prefix;
    let called: Vec<usize> = plan.hand_off.callers.keys().copied().collect();
    for process in &called {
        let name = &plan.processes[*process].name;
        put(&mut text, &format!("\nstatic uint32_t {name}_release({prefix}_t *t, uint32_t tail);"));
    }
    for process in &called {
        let name = &plan.processes[*process].name;
        put(&mut text, &format!("\nstatic uint32_t {name}_release({prefix}_t *t, uint32_t tail)\n{{"));
        for (caller, ends) in by_process(plan.hand_off.callers(*process)) {
            let own = plan.own_id(caller);
            put(&mut text, &format!("    switch (t->pc[{own}]) {{"));
            for end in ends {
                put(&mut text, &format!("    case {}:", plan.hand_off.pcs[&end]));
                if plan.hand_off.has_callers(caller) {
                    let name = &plan.processes[caller].name;
                    put(&mut text, &format!("        tail = {name}_release(t, tail);"));
                }
                let resume = plan.continuation_pc(end);
                put(
                    &mut text,
                    &format!("        t->ready[tail++ & READY_MASK] = t->pc[{own}] = {resume};\n        break;"),
                );
            }
            put(&mut text, "    default:\n        break;\n    }");
        }
        put(&mut text, "    return tail;\n}");
    }
    text
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}
