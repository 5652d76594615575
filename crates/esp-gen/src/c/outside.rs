//! Branches on the world and the clock: a message comes in, goes out, a time has passed. The instance itself takes them
//! in its own code; for a waiting `pri alt` that another instance meets by a later branch, a function beside it does:
//!
//! ```text
//!   P_w4_first(t, in, out, now, self, before)   takes the first branch before this one that can commit outside:
//!                                               0 none, 1 taken, ESP_SENT taken, a message went out, else a fault
//! ```

use super::TraceMode;
use super::code::{Code, line};
use super::direct::{push_self, release};
use super::helpers::{Depth, Helper};
use super::matching::{Source, dead_message, leave, leave_channels, open_condition, ready_message};
use super::meeting::{Parked, keep_all, raise_chosen, release_moved};
use super::path_functions::pause;
use super::pattern::{conditions, parts};
use super::plan::{End, Plan};
use super::process::{go_on, go_straight_on, reopen, resume_pc, trace};
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// In whose code a branch is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taker {
    /// The instance's own.
    Itself,
    /// The function that another instance calls.
    Function,
}

/// A call of the function that takes an earlier branch outside.
pub(crate) fn first_call(plan: &Plan<'_>, end: End, instance: &str, branch: &str) -> String {
    format!("{}_first(IO, now, {instance}, {branch})", plan.wait_name(end.process, end.wait))
}

/// The head of the function that takes an earlier branch of a wait outside.
pub(crate) fn first_head(plan: &Plan<'_>, process: usize, wait: usize) -> String {
    let (prefix, name) = (&plan.prefix, plan.wait_name(process, wait));
    format!(
        "static uint32_t {name}_first({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out, esp_time now, \
         esp_pid self, uint32_t before)"
    )
}

/// Its body, after the frame has been entered.
pub(crate) fn first_body(code: &mut Code<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    code.line("(void)in; (void)out; (void)now;");
    let mut timer = 0;
    for (branch, data) in plan.wait(process, wait).branches.iter().enumerate() {
        let end = End { process, wait, branch };
        let mut tests = vec![format!("before > {branch}")];
        tests.extend(open_condition(plan, end).map(|open| format!("({open})")));
        let test = format!("if ({}) {{", tests.join(" && "));
        match &data.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. }
                if plan.program.channels[channel.0 as usize].boundary == Boundary::Internal => {}
            Operation::In { channel, .. } => {
                code.open(&test);
                receive_from_world(code, end, channel.0 as usize, Taker::Function);
                code.close("}");
            }
            Operation::Out { channel, payload, .. } => {
                code.open(&test);
                send_to_world(code, end, channel.0 as usize, payload, Taker::Function);
                code.close("}");
            }
            Operation::After { .. } => {
                code.open(&test);
                elapse(code, end, timer, Taker::Function);
                code.close("}");
                timer += 1;
            }
        }
    }
    code.line("return 0;");
}

/// An `after` whose time has passed.
pub(crate) fn elapse(code: &mut Code<'_, '_>, end: End, timer: usize, taker: Taker) {
    let plan = code.plan;
    let (frame, own, pc) = (plan.frame(end.process), plan.own_id(end.process), resume_pc(plan, end));
    code.open(&format!("if ({frame}deadline[{timer}] <= now) {{"));
    leave(code, end);
    trace(code, "'a'", &own, &end.branch.to_string(), "0", "0");
    match taker {
        Taker::Itself => {
            code.open("if (polling) {");
            line!(code, "t->pc[{own}] = {pc};");
            push_self(code, end.process);
            code.line("goto poll_next;");
            code.close("}");
            go_on(code, end.process, plan.branch(end).then, pc);
        }
        Taker::Function => {
            line!(code, "t->pc[{own}] = {pc};");
            code.line("return 1;");
        }
    }
    code.close("}");
}

/// An `in` takes the oldest message of the world.
pub(crate) fn receive_from_world(code: &mut Code<'_, '_>, end: End, channel: usize, taker: Taker) {
    let plan = code.plan;
    let Operation::In { patterns, condition, .. } = &plan.branch(end).operation else {
        unreachable!("a reader is an `in`")
    };
    let data = &plan.channels[channel];
    let own = plan.own_id(end.process);
    code.open("{");
    line!(code, "const {0}_message *const m_ = {0}_peek(IO);", data.name);
    let source = parts(code, channel, "m_", View::World);
    let mut all = vec!["m_".to_string()];
    if plan.channel_has_boxes(channel) {
        all.push(format!("{}_fits(t, m_)", data.name));
    }
    all.extend(conditions(code, patterns, &source));
    code.open(&format!("if ({}) {{", all.join(" && ")));
    if condition.is_some() {
        line!(code, "const uint32_t r_ = {}_if(t, {own}, m_);", plan.branch_name(end));
        code.open("if (r_) {");
    }
    trace(code, "'i'", &own, &end.branch.to_string(), "0", "0");
    raise_chosen(code, end);
    keep_all(code, end, patterns, &source, Parked::Yes);
    line!(code, "{}_drop(IO);", data.name);
    match taker {
        Taker::Itself if plan.is_straight(end) => {
            leave(code, end);
            reopen(code);
            go_straight_on(code, end.process, plan.branch(end).then);
        }
        Taker::Itself => {
            leave_channels(code, end);
            release(code, end.process);
            line!(code, "GO_LATER({own}, {});", resume_pc(plan, end));
        }
        Taker::Function => {
            leave(code, end);
            if !plan.is_straight(end) {
                line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
            }
            code.line("return 1;");
        }
    }
    if condition.is_some() {
        code.close("}");
    }
    code.close("}");
    code.close("}");
}

/// An `out` hands its message to the world.
pub(crate) fn send_to_world(code: &mut Code<'_, '_>, end: End, channel: usize, payload: &Payload, taker: Taker) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    let own = plan.own_id(end.process);
    if let (Payload::Ready(parts), true) = (payload, is_given(plan, channel)) {
        code.open("{");
        line!(code, "{}_view v_;", data.name);
        fill_view(code, end, channel, parts, "v_.");
        code.open(&format!("if ({}_give(IO, &v_)) {{", data.name));
        sent(code, end, taker);
        code.close("}");
        code.close("}");
        return;
    }
    code.open(&format!("if ({}_accepts(IO)) {{", data.name));
    line!(code, "{0}_message *const m_ = {0}_room(IO);", data.name);
    line!(code, "{}_view v_;", data.name);
    trace(code, "'o'", &own, &end.branch.to_string(), "0", "0");
    match payload {
        Payload::Ready(parts) => ready_message(code, end, parts, "v_.", Source::Parked),
        Payload::Region(_) => {
            line!(code, "const uint32_t r_ = {}_payload(t, {own}, &v_);", plan.branch_name(end));
            let raise = code.raise_number("r_");
            line!(code, "if (ESP_UNLIKELY(r_ > 1)) {raise}");
        }
    }
    if let Some((dead, number)) = dead_message(code, end, channel, "v_", Depth::Whole) {
        let raise = code.raise_number(&number.to_string());
        line!(code, "if (ESP_UNLIKELY({dead})) {raise}");
    }
    if plan.program.channels[channel].payload.is_empty() {
        code.line("(void)v_;");
        code.line("m_->unused = 0;");
    }
    let source = parts(code, channel, "v_", View::Program);
    for (index, part) in source.iter().enumerate() {
        if code.plan.layouts.has_boxes(part.ty) {
            let name = code.helpers.want(plan, Helper::ToEnvironment, part.ty);
            line!(code, "{name}(t, &m_->v{index}, &{});", part.text);
        } else {
            line!(code, "m_->v{index} = {};", part.text);
        }
    }
    line!(code, "{}_send(IO);", data.name);
    release_moved(code, channel, "v_");
    sent(code, end, taker);
    code.close("}");
}

/// Whether messages on a channel to the world are handed over by a function of several waits.
pub(crate) fn is_given(plan: &Plan<'_>, channel: usize) -> bool {
    let traced = match plan.options.trace {
        TraceMode::Callback => true,
        TraceMode::None => false,
    };
    !traced && !plan.channel_has_boxes(channel) && plan.channels[channel].writers.len() > 1
}

/// Whether waits that only send on such a channel have their end in common, where it is compiled for size.
pub(crate) fn is_sent_out(plan: &Plan<'_>, channel: usize) -> bool {
    plan.program.channels[channel].boundary == Boundary::ToEnvironment && !plan.sans_io() && is_given(plan, channel)
}

/// A wait that does nothing but send a message to the world.
pub(crate) fn send_out(code: &mut Code<'_, '_>, end: End, channel: usize) {
    let plan = code.plan;
    let Operation::Out { payload: Payload::Ready(parts), .. } = &plan.branch(end).operation else {
        unreachable!("what it sends was computed on arrival")
    };
    let name = &plan.channels[channel].name;
    code.mark(plan.branch(end).location);
    fill_view(code, end, channel, parts, &format!("{name}_m."));
    let pc = plan.processes[end.process].waits[end.wait].pc;
    line!(code, "SEND_OUT({name}, {}, {pc});", plan.own_id(end.process));
}

/// Fills the view of a message that is handed to the world.
fn fill_view(code: &mut Code<'_, '_>, end: End, channel: usize, parts: &[Passed], to: &str) {
    ready_message(code, end, parts, to, Source::Parked);
    if code.plan.program.channels[channel].payload.is_empty() {
        line!(code, "{to}unused = 0;");
    }
}

/// After a message has gone out.
fn sent(code: &mut Code<'_, '_>, end: End, taker: Taker) {
    let plan = code.plan;
    let (own, pc) = (plan.own_id(end.process), resume_pc(plan, end));
    match taker {
        Taker::Itself if plan.is_straight(end) => {
            leave(code, end);
            reopen(code);
            pause(code, end);
            go_straight_on(code, end.process, plan.branch(end).then);
        }
        Taker::Itself if plan.sans_io() => {
            leave(code, end);
            line!(code, "t->pc[{own}] = {pc};");
            reopen(code);
            push_self(code, end.process);
            code.line("if (++put_ == out->head.limit) goto again;");
            code.line("if (polling) goto poll_next;");
            code.line("goto dispatch;");
        }
        Taker::Itself => {
            leave_channels(code, end);
            release(code, end.process);
            line!(code, "GO_LATER({own}, {pc});");
        }
        Taker::Function => {
            leave(code, end);
            if !plan.is_straight(end) {
                line!(code, "t->pc[{own}] = {pc};");
            }
            code.line("return ESP_SENT;");
        }
    }
}
