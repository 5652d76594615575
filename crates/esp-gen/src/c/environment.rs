//! Branches on the environment and the clock: a message is received, a message is sent, a time has passed. An instance
//! commits them in its own code; for a waiting `pri alt` that a requester preempts, a function does:
//!
//! ```text
//!   P_w4_commit_earlier(t, in, out, now, self, before)
//!                                 commits the first branch before this one that can: 0 none, 1 committed,
//!                                 ESP_SENT committed, and a message was sent, else a fault
//! ```

use super::continuation::{continue_at, continue_in_turn};
use super::functions::Functions;
use super::hand_off::{push_self, release_callers};
use super::helpers::{Depth, Helper};
use super::message::{BindTo, Source, bind_message, dead_message, raise_condition_fault, ready_message, release_moved};
use super::path_call::pause;
use super::pattern::{conditions, message_parts};
use super::plan::{End, Plan};
use super::ready_list::{push, reopen, trace};
use super::wait_state::{clear_blocked, end_wait, open_condition};
use super::writer::{Scope, Writer, line};
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// The code that commits a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Committer {
    /// The instance's own.
    Instance,
    /// The function that a requester calls.
    Function,
}

/// The two ways in which the code of a wait on the environment ends. Many waits share them, so that with optimisation
/// for size the code exists once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EnvironmentExit {
    /// After a commit: the instance joins the ready list.
    Requeue,
    /// Nothing could be committed: it joins the instances that wait for the environment.
    Wait,
}

impl EnvironmentExit {
    /// The macro by which processes use it, and the label of the shared code.
    pub(crate) const NAMES: [(EnvironmentExit, &str, &str); 2] = [
        (EnvironmentExit::Requeue, "REQUEUE", "requeue"),
        (EnvironmentExit::Wait, "AWAIT_ENVIRONMENT", "await_environment"),
    ];
}

/// The code of an exit, for an instance and the program counter at which it continues or waits.
pub(crate) fn environment_exit(code: &mut Writer<'_, '_>, instance: &str, pc: &str, exit: EnvironmentExit) {
    match exit {
        EnvironmentExit::Requeue => {
            line!(code, "waiting_remove(t, {instance});");
            line!(code, "t->pc[{instance}] = (uint{}_t)({pc});", code.plan.pc_bits);
            reopen(code);
            push(code, instance);
            code.line("if (polling) goto poll_next;");
        }
        EnvironmentExit::Wait => {
            code.line("if (polling) goto poll_next;");
            line!(code, "waiting_append(t, {instance});");
            line!(code, "t->pc[{instance}] = (uint{}_t)({pc});", code.plan.pc_bits);
        }
    }
    code.line("goto dispatch;");
}

/// A call of the function that commits an earlier branch.
pub(crate) fn commit_earlier_call(plan: &Plan<'_>, end: End, instance: &str, branch: &str) -> String {
    format!("{}_commit_earlier(IO, now, {instance}, {branch})", plan.wait_name(end.process, end.wait))
}

impl Functions<'_, '_> {
    /// The function by which a requester preempts a waiting `pri alt`, if any can.
    pub(crate) fn commit_earlier(&mut self, process: usize, wait: usize) {
        let plan = self.plan;
        let may_be_preempted = |end| plan.is_internal(plan.branch(end)) && plan.branch_plan(end).may_be_preempted;
        if !plan.ends(process, wait).any(may_be_preempted) {
            return;
        }
        let mut code = self.code(Scope::Region(process));
        self.enter(&mut code, process);
        code.line("(void)in; (void)out; (void)now;");
        let mut timer = 0;
        for end in plan.ends(process, wait) {
            let data = plan.branch(end);
            let before = format!("before > {}u", end.branch);
            let test = match open_condition(plan, end) {
                Some(open) => format!("if ({before} && ({open})) {{"),
                None => format!("if ({before}) {{"),
            };
            match &data.operation {
                Operation::In { .. } | Operation::Out { .. } if plan.is_internal(data) => {}
                Operation::In { channel, .. } => code.block(&test, |code| {
                    receive_from_environment(code, end, channel.0 as usize, Committer::Function);
                }),
                Operation::Out { channel, payload, .. } => code.block(&test, |code| {
                    send_to_environment(code, end, channel.0 as usize, payload, Committer::Function);
                }),
                Operation::After { .. } => {
                    code.block(&test, |code| elapse(code, end, timer, Committer::Function));
                    timer += 1;
                }
            }
        }
        code.line("return 0;");
        let (prefix, name) = (&plan.prefix, plan.wait_name(process, wait));
        let head = format!(
            "static uint32_t {name}_commit_earlier({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out, \
             esp_time now, esp_pid self, uint32_t before)"
        );
        self.add_behind_channel_ends(process, &head, code);
    }
}

/// An `after` whose time has passed.
pub(crate) fn elapse(code: &mut Writer<'_, '_>, end: End, timer: usize, committer: Committer) {
    let plan = code.plan;
    let (frame, own) = (plan.frame(end.process), plan.own_id(end.process));
    let pc = plan.continuation_pc(end);
    code.block(&format!("if ({frame}deadline[{timer}] <= now) {{"), |code| {
        end_wait(code, end);
        trace(code, "'a'", &own, &end.branch.to_string(), "0", "0");
        match committer {
            Committer::Instance => {
                code.block("if (polling) {", |code| {
                    line!(code, "t->pc[{own}] = {pc};");
                    push_self(code, end.process);
                    code.line("goto poll_next;");
                });
                continue_in_turn(code, end.process, plan.branch(end).then, pc);
            }
            Committer::Function => {
                line!(code, "t->pc[{own}] = {pc};");
                code.line("return 1;");
            }
        }
    });
}

/// An `in` receives the oldest message of the environment.
pub(crate) fn receive_from_environment(code: &mut Writer<'_, '_>, end: End, channel: usize, committer: Committer) {
    let plan = code.plan;
    let Operation::In { patterns, condition, .. } = &plan.branch(end).operation else {
        unreachable!("a reader is an `in`")
    };
    let data = &plan.channels[channel];
    let own = plan.own_id(end.process);
    code.open("{");
    line!(code, "const {0}_message *const m_ = {0}_peek(IO);", data.name);
    let source = message_parts(code, channel, "m_", View::Environment);
    let mut all = vec!["m_ != NULL".to_string()];
    if data.has_boxes {
        all.push(format!("{}_has_objects(t, m_)", data.name));
    }
    all.extend(conditions(code, patterns, &source));
    code.block(&format!("if ({}) {{", all.join(" && ")), |code| {
        if condition.is_some() {
            line!(code, "const uint32_t r_ = {}_if(t, {own}, m_);", plan.branch_name(end));
        }
        code.guarded(condition.map(|_| "r_ != 0u"), |code| {
            trace(code, "'i'", &own, &end.branch.to_string(), "0", "0");
            raise_condition_fault(code, end);
            bind_message(code, end, patterns, &source, BindTo::Parked);
            line!(code, "{}_drop(IO);", data.name);
            received(code, end, committer);
        });
    });
    code.close("}");
}

/// After a message of the environment was received.
fn received(code: &mut Writer<'_, '_>, end: End, committer: Committer) {
    let plan = code.plan;
    let (own, pc) = (plan.own_id(end.process), plan.continuation_pc(end));
    let is_path_poll = plan.wait_plan(end).is_path_poll;
    match committer {
        Committer::Instance if is_path_poll => {
            end_wait(code, end);
            reopen(code);
            continue_at(code, end.process, plan.branch(end).then);
        }
        Committer::Instance => {
            clear_blocked(code, end);
            release_callers(code, end.process);
            line!(code, "REQUEUE({own}, {pc});");
        }
        Committer::Function => {
            end_wait(code, end);
            if !is_path_poll {
                line!(code, "t->pc[{own}] = {pc};");
            }
            code.line("return 1;");
        }
    }
}

/// An `out` sends its message to the environment, if that accepts one.
pub(crate) fn send_to_environment(
    code: &mut Writer<'_, '_>,
    end: End,
    channel: usize,
    payload: &Payload,
    committer: Committer,
) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    if let (Payload::Ready(parts), true) = (payload, data.has_shared_send) {
        code.open("{");
        line!(code, "{}_view v_;", data.name);
        fill_view(code, end, channel, parts, "v_.");
        code.block(&format!("if ({}_try_send(IO, &v_)) {{", data.name), |code| sent(code, end, committer));
        code.close("}");
        return;
    }
    code.block(&format!("if ({}_accepts(IO)) {{", data.name), |code| {
        line!(code, "{0}_message *const m_ = {0}_room(IO);", data.name);
        line!(code, "{}_view v_;", data.name);
        trace(code, "'o'", &plan.own_id(end.process), &end.branch.to_string(), "0", "0");
        match payload {
            Payload::Ready(parts) => ready_message(code, end, parts, "v_.", Source::Parked),
            Payload::Region(_) => {
                let own = plan.own_id(end.process);
                line!(code, "const uint32_t r_ = {}_payload(t, {own}, &v_);", plan.branch_name(end));
                let raise = code.raise_number("r_");
                line!(code, "if (ESP_UNLIKELY(r_ > 1u)) {raise}");
            }
        }
        copy_to_environment(code, end, channel);
        line!(code, "{}_send(IO);", data.name);
        release_moved(code, channel, "v_");
        sent(code, end, committer);
    });
}

/// Copies the message in `v_` to `*m_`, in the environment's form.
fn copy_to_environment(code: &mut Writer<'_, '_>, end: End, channel: usize) {
    let plan = code.plan;
    if let Some((dead, number)) = dead_message(code, end, channel, "v_", Depth::Transitive) {
        let raise = code.raise_number(&number.to_string());
        line!(code, "if (ESP_UNLIKELY({dead})) {raise}");
    }
    if plan.program.channels[channel].payload.is_empty() {
        code.line("(void)v_;");
        code.line("m_->unused = 0;");
    }
    let source = message_parts(code, channel, "v_", View::Program);
    for (member, part) in plan.channels[channel].members.iter().zip(&source) {
        if plan.layouts.has_boxes(part.ty) {
            let name = code.helpers.want(plan, Helper::ToEnvironment, part.ty);
            line!(code, "{name}(t, &m_->{member}, &{});", part.text);
        } else {
            line!(code, "m_->{member} = {};", part.text);
        }
    }
}

/// A wait that does nothing but to send a message to the environment, by the exit that such waits share.
pub(crate) fn send_by_shared_exit(code: &mut Writer<'_, '_>, end: End, channel: usize) {
    let plan = code.plan;
    let Operation::Out { payload: Payload::Ready(parts), .. } = &plan.branch(end).operation else {
        unreachable!("its message was computed on arrival")
    };
    let name = &plan.channels[channel].name;
    code.mark(plan.branch(end).location);
    fill_view(code, end, channel, parts, &format!("{name}_m."));
    line!(code, "SEND({name}, {}, {}u);", plan.own_id(end.process), plan.wait_plan(end).pc);
}

/// Fills the view of a message that the channel's own function sends.
fn fill_view(code: &mut Writer<'_, '_>, end: End, channel: usize, parts: &[Passed], to: &str) {
    ready_message(code, end, parts, to, Source::Parked);
    if code.plan.program.channels[channel].payload.is_empty() {
        line!(code, "{to}unused = 0;");
    }
}

/// After a message was sent to the environment.
fn sent(code: &mut Writer<'_, '_>, end: End, committer: Committer) {
    let plan = code.plan;
    let (own, pc) = (plan.own_id(end.process), plan.continuation_pc(end));
    let is_path_poll = plan.wait_plan(end).is_path_poll;
    match committer {
        Committer::Instance if is_path_poll => {
            end_wait(code, end);
            reopen(code);
            pause(code, end);
            continue_at(code, end.process, plan.branch(end).then);
        }
        Committer::Instance if plan.sans_io() => {
            end_wait(code, end);
            line!(code, "t->pc[{own}] = {pc};");
            reopen(code);
            push_self(code, end.process);
            code.line("if (++put_ == out->head.limit) goto again;");
            code.line("if (polling) goto poll_next;");
            code.line("goto dispatch;");
        }
        Committer::Instance => {
            clear_blocked(code, end);
            release_callers(code, end.process);
            line!(code, "REQUEUE({own}, {pc});");
        }
        Committer::Function => {
            end_wait(code, end);
            if !is_path_poll {
                line!(code, "t->pc[{own}] = {pc};");
            }
            code.line("return ESP_SENT;");
        }
    }
}
