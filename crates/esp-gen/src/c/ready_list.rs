//! The ready list: how instances join and leave it, the re-evaluation of guards that depend on free objects, which may
//! put more instances there, and the trace of choices. Knows nothing of channels.

use super::TraceMode;
use super::plan::unsigned_bits;
use super::writer::{Writer, line};

/// An instance joins the ready list.
pub(crate) fn push(code: &mut Writer<'_, '_>, instance: &str) {
    if code.plan.features.reevaluates_guards {
        let entry = ready_entry(code, instance);
        line!(code, "if (!t->queued[{instance}]) t->ready[tail++ & READY_MASK] = {entry};");
        line!(code, "t->queued[{instance}] = 1;");
    } else {
        let entry = match code.plan.features.queues_pcs {
            true => format!("t->pc[{instance}]"),
            false => ready_entry(code, instance),
        };
        line!(code, "t->ready[tail++ & READY_MASK] = {entry};");
    }
}

/// The number of an instance in the type of the ready list's elements.
fn ready_entry(code: &Writer<'_, '_>, instance: &str) -> String {
    match instance.parse::<u32>() {
        Ok(_) => instance.to_string(),
        Err(_) => format!("(uint{}_t){instance}", unsigned_bits(code.plan.instances)),
    }
}

/// An instance that continues at once leaves the ready list, where a reopened guard may have put it.
pub(crate) fn unqueue(code: &mut Writer<'_, '_>, instance: &str) {
    if code.plan.features.reevaluates_guards {
        line!(code, "if (t->queued[{instance}]) tail = unqueue(t, head, tail, {instance});");
    }
}

/// Evaluates guards that depend on free objects again, if the number of these may have changed.
pub(crate) fn reopen(code: &mut Writer<'_, '_>) {
    if !code.plan.features.reevaluates_guards {
        return;
    }
    code.block("if (t->freed != 0u) {", |code| {
        code.line("t->tail = tail;");
        code.line("where = reopen(t);");
        code.line("if (where != 0u) goto faulted;");
        code.line("tail = t->tail;");
    });
}

/// Reports a choice to the trace callback, if there is one.
pub(crate) fn trace(code: &mut Writer<'_, '_>, kind: &str, i: &str, b: &str, j: &str, b2: &str) {
    match code.plan.options.trace {
        TraceMode::Callback => {
            line!(code, "if (t->trace != NULL) t->trace(t->trace_user, {kind}, {i}, {b}, {j}, {b2});")
        }
        TraceMode::None => {}
    }
}

/// Reports that an instance runs.
pub(crate) fn trace_run(code: &mut Writer<'_, '_>, instance: &str) {
    trace(code, "'r'", instance, "0", "0", "0");
}
