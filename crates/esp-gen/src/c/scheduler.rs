//! The step: the function that holds all processes, with the scheduler around them. The schedule is that of the
//! reference, section 9.
//!
//! ```text
//!   dispatch:     the head of the ready list, or poll, or quiescent
//!   enter:        a turn begins: resume:
//!   resume:       switch (at) to the code of the instance
//!   ..            the processes
//!   carry_on:     the sender continues after a rendezvous (policy `sender`)
//!   poll:         tries the waits on the environment, one by one: poll_next:
//!   again:        left in the middle: the caller accepts no more messages
//!   faulted: finished: quiescent: leave:
//! ```

use super::TraceMode;
use super::dispatch::{dispatch_table, poll_table};
use super::environment::{EnvironmentExit, environment_exit};
use super::faults::Faults;
use super::helpers::Helpers;
use super::owner::{Owner, owner_line};
use super::plan::{Plan, ProcessPlan, WaitPlan};
use super::process::{declare_process, write_process};
use super::ready_list::push;
use super::rendezvous::reader_jump_table;
use super::writer::{Scope, Writer, line};
use quaject_esp_ir::ir::Boundary;

/// The function that holds all processes.
pub(crate) fn step(plan: &Plan<'_>, faults: &Faults, helpers: &Helpers) -> String {
    let prefix = &plan.prefix;
    let mut code = Writer::new(plan, faults, helpers, Scope::Process(0));
    declare(&mut code);
    enter_step(&mut code);
    dispatch(&mut code);
    for index in 0..plan.processes.len() {
        code.text.push_str(&owner_line(Owner::Process(index)));
        write_process(&mut code, index);
    }
    code.text.push_str(&owner_line(Owner::Scheduler));
    code.line("");
    code.line("/* scheduler */");
    (0..plan.channels.len()).for_each(|channel| reader_jump_table(&mut code, channel));
    if plan.features.polls_environment {
        shared_exits(&mut code);
    }
    carry_on(&mut code);
    if plan.features.polls_environment {
        poll(&mut code);
    }
    leave_step(&mut code);
    format!(
        "\nesp_status {prefix}_step({prefix}_t *const t, const {prefix}_input *in, {prefix}_output *out, esp_time \
         now)\n{{\n{}}}\n",
        code.text
    )
}

/// The qualifier of the scheduler's variables. Compilers give a variable one register, or one place in memory, as long
/// as it lives: also within loops that do not use it, which then have too few registers. Where loops promote values,
/// one process alone waits and the scheduler has little to do: there its variables are in memory from the start.
fn variable_qualifier(plan: &Plan<'_>) -> &'static str {
    let promotes = |process: &ProcessPlan| process.storage.promotion.entries().next().is_some();
    if plan.processes.iter().any(promotes) { "ESP_IN_MEMORY " } else { "" }
}

/// The variables of the scheduler and of the processes.
fn declare(code: &mut Writer<'_, '_>) {
    let plan = code.plan;
    let kept = variable_qualifier(plan);
    line!(code, "{kept}uint32_t head = t->head, tail = t->tail, left = 0, at = 0;");
    line!(
        code,
        "{kept}uint32_t self ESP_UNUSED = 0, where = 0, due ESP_UNUSED = t->due, poll_at ESP_UNUSED = 0, poll_after ESP_UNUSED = 0, put_ ESP_UNUSED = 0;"
    );
    line!(code, "{kept}const uint32_t last = head + {}u;", plan.turns.until_leave);
    code.line("esp_pid from ESP_UNUSED = 0, to ESP_UNUSED = 0;");
    line!(code, "{kept}uint32_t to_branch ESP_UNUSED = 0;");
    line!(code, "{kept}bool polling ESP_UNUSED = false;");
    for (index, channel) in plan.program.channels.iter().enumerate() {
        if channel.boundary == Boundary::Internal || plan.channels[index].has_shared_send_exit {
            let name = &plan.channels[index].name;
            line!(code, "{name}_view {name}_m ESP_UNUSED;");
        }
    }
    (0..plan.processes.len()).for_each(|process| declare_process(code, process));
    code.line("");
}

/// Where the step continues that was left in the middle.
fn enter_step(code: &mut Writer<'_, '_>) {
    let features = &code.plan.features;
    code.line("(void)in; (void)now;");
    code.line("if (t->status >= (uint32_t)ESP_DONE) goto leave;");
    code.line("t->status = ESP_AGAIN;");
    if features.polls_environment {
        code.block("if (t->polling != 0u) {", |code| {
            code.line("polling = true;");
            code.line("poll_after = t->poll_at;");
            code.line("t->polling = 0;");
            code.line("goto poll_next;");
        });
    }
    if features.restarts_searches {
        code.block("if (t->requester != 0u) {", |code| {
            code.line("self = t->requester - 1u;");
            code.line("at = t->requester_pc;");
            code.line("left = t->requester_left;");
            code.line("t->requester = 0;");
            code.line("goto resume;");
        });
    }
    code.line("");
}

/// The next turn: the head of the ready list continues.
fn dispatch(code: &mut Writer<'_, '_>) {
    let plan = code.plan;
    let features = &plan.features;
    code.line("dispatch:");
    if features.polls_environment {
        code.line("if (ESP_UNLIKELY(head == tail)) goto poll;");
        code.line("if (ESP_UNLIKELY(head == due)) goto poll;");
        code.line("run:");
    } else {
        code.line("if (head == tail) goto quiescent;");
        code.line("if (ESP_UNLIKELY(head == last)) goto leave;");
    }
    if features.queues_pcs {
        code.line("at = t->ready[head++ & READY_MASK];");
    } else {
        code.line("self = t->ready[head++ & READY_MASK];");
        code.line("at = t->pc[self];");
    }
    if features.reevaluates_guards {
        code.line("t->queued[self] = 0;");
    }
    if features.retries_at_quiescence {
        code.line("t->retry_next = 0;");
    }
    line!(code, "left = {};", plan.turns.operations);
    code.line("enter:");
    match plan.options.trace {
        TraceMode::Callback if features.queues_pcs => {}
        TraceMode::Callback => code.line(if features.reevaluates_guards {
            "if (t->trace && !is_waiting(t, self)) t->trace(t->trace_user, 'r', self, 0, 0, 0);"
        } else {
            "if (t->trace != NULL) t->trace(t->trace_user, 'r', self, 0, 0, 0);"
        }),
        TraceMode::None => {}
    }
    code.line(if has_one_table(plan) { "resume: ESP_UNUSED;" } else { "resume:" });
    code.open("switch (at) {");
    dispatch_table(code);
    if has_one_table(plan) {
        code.if_optimizing_for_size(|code| poll_table(code, "self"));
    }
    code.case("default:", |code| code.line("ESP_UNREACHABLE;"));
    code.close("}");
}

/// Whether one table serves both dispatch and polls where it is compiled for size: no program counter of a wait on the
/// environment is in the dispatch table with another meaning.
fn has_one_table(plan: &Plan<'_>) -> bool {
    let is_dispatched = |wait: &WaitPlan| wait.polls_environment && wait.may_retry();
    plan.features.polls_environment && !plan.processes.iter().flat_map(|process| &process.waits).any(is_dispatched)
}

/// The exits that waits on the environment share where it is compiled for size.
fn shared_exits(code: &mut Writer<'_, '_>) {
    let plan = code.plan;
    code.if_optimizing_for_size(|code| {
        for channel in plan.channels.iter().filter(|channel| channel.has_shared_send_exit) {
            line!(code, "{}_out: ESP_UNUSED;", channel.name);
            line!(code, "if (!{0}_try_send(IO, &{0}_m)) goto await_environment;", channel.name);
            code.line("at++;");
            code.line("goto requeue;");
        }
        for (exit, _, label) in EnvironmentExit::NAMES {
            line!(code, "{label}: ESP_UNUSED;");
            environment_exit(code, "self", "at", exit);
        }
    });
}

/// The sender continues after a rendezvous, within its turn.
fn carry_on(code: &mut Writer<'_, '_>) {
    code.line("carry_on:");
    code.block("if (--left == 0u) {", |code| {
        push(code, "from");
        code.line("goto dispatch;");
    });
    code.line("self = from;");
    code.line("at = t->pc[from];");
    if code.plan.features.reevaluates_guards {
        code.line("if (t->queued[self]) tail = unqueue(t, head, tail, self);");
    }
    code.line("goto enter;");
}

/// Tries the waits on the environment, in order of arrival.
fn poll(code: &mut Writer<'_, '_>) {
    let plan = code.plan;
    code.line("poll:");
    line!(code, "due = head + {}u;", plan.turns.until_poll);
    code.line("polling = true;");
    line!(code, "poll_after = t->waiting_next[{}];", plan.instances);
    code.line("poll_next:");
    code.line("poll_at = poll_after;");
    code.block(&format!("if (poll_at == {}u) {{", plan.instances), |code| {
        code.line("polling = false;");
        code.line("if (head == tail) goto quiescent;");
        code.line("if (ESP_UNLIKELY((int32_t)(head - last) >= 0)) goto leave;");
        code.line("goto run;");
    });
    code.line("poll_after = t->waiting_next[poll_at];");
    if has_one_table(plan) {
        code.line("#ifdef __OPTIMIZE_SIZE__");
        code.line("self = poll_at;");
        code.line("at = t->pc[self];");
        code.line("goto resume;");
        code.line("#else");
    }
    code.open("switch (t->pc[poll_at]) {");
    poll_table(code, "poll_at");
    code.case("default:", |code| code.line("goto poll_next;"));
    code.close("}");
    if has_one_table(plan) {
        code.line("#endif");
    }
}

/// The ends of a step.
fn leave_step(code: &mut Writer<'_, '_>) {
    if code.plan.sans_io() {
        code.line("again:");
        code.line("t->polling = polling;");
        code.line("t->poll_at = poll_after;");
        code.line("goto leave;");
    }
    code.line("faulted:");
    code.line("t->fault = where;");
    code.line("t->status = ESP_FAULT;");
    code.line("goto leave;");
    code.line("finished:");
    code.line("t->status = ESP_DONE;");
    code.line("goto leave;");
    code.line("quiescent:");
    retry_at_quiescence(code);
    code.line("t->status = (uint8_t)quiescence(IO);");
    code.line("leave:");
    code.line("t->head = head;");
    code.line("t->tail = tail;");
    code.line("t->due = due;");
    code.block("if (out != NULL) {", |code| {
        code.line("out->head.wake = t->wake;");
        code.line("out->head.exit_status = t->exit_status;");
    });
    code.line("return (esp_status)t->status;");
}

/// At quiescence: instances whose search may have another result now try again, one by one.
fn retry_at_quiescence(code: &mut Writer<'_, '_>) {
    let plan = code.plan;
    if !plan.features.retries_at_quiescence {
        return;
    }
    code.block(&format!("while (t->retry_next < {}u) {{", plan.instances), |code| {
        code.line("self = t->retry_next++;");
        code.line("at = t->pc[self];");
        code.open("switch (at) {");
        let waits = plan.processes.iter().flat_map(|process| &process.waits);
        for wait in waits.filter(|wait| wait.retries_at_quiescence) {
            line!(code, "case {}:", wait.pc);
        }
        line!(code, "    left = {};", plan.turns.operations);
        code.line("    goto resume;");
        code.close_switch();
    });
}
