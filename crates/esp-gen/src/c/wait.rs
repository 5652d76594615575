//! The code of a wait: guards, the search of its branches for one that can commit, and what happens if none can. The
//! schedule is that of the reference, section 9. What a commit does is in [`super::rendezvous`] for partners, in
//! [`super::environment`] for the environment and the clock.
//!
//! ```text
//!   P_w4:            arrival: guards, deadlines
//!   P_w4_try:        the search for a partner; repeated by polls of the environment
//!   (wait)           store pc, join the queues, dispatch the next instance
//!   P_w4_later:      defer to the owner of a `pri alt`: queue behind it, to search again
//!   P_w4_b0_bind:    a message is in c_m: bind its parts, continue          (the receiver continues)
//!   P_w4_b0_later:   park its parts in the frame, join the ready list
//!   P_w4_b0_go:      dispatched again: load them, continue
//! ```

use super::continuation::{continue_at, continue_in_turn};
use super::environment::{Committer, elapse, receive_from_environment, send_by_shared_exit, send_to_environment};
use super::hand_off::{return_early, stop};
use super::plan::{End, Plan, branch_channel};
use super::priority::must_defer_call;
use super::ready_list::{push, reopen, trace};
use super::rendezvous::{receive, receiver_code, send};
use super::wait_state::{blocked_bits, open_condition};
use super::writer::{Writer, line};
use quaject_esp_ir::ir::*;

/// Writes a wait, from the arrival of an instance to its continuations.
pub(crate) fn write_wait(code: &mut Writer<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let details = &plan.processes[process].waits[wait];
    let name = plan.wait_name(process, wait);
    let ends: Vec<End> = plan.ends(process, wait).collect();
    evaluate_guards(code, process, wait);
    start_timers(code, process, wait);
    if details.parks_before_search() {
        ends.iter().for_each(|end| park_payload(code, *end));
    }
    reopen(code);
    line!(code, "{name}_try:");
    code.line(";");
    return_early(code, process, wait, &|code| park(code, process, wait));
    if let Some(channel) = sole_environment_send(plan, process, wait) {
        send_by_shared_exit(code, ends[0], channel);
        return;
    }
    search(code, process, wait);
    if let Some(otherwise) = plan.wait(process, wait).otherwise {
        take_otherwise(code, process, wait, otherwise);
    } else {
        block_instance(code, process, wait);
    }
    if details.may_defer {
        line!(code, "{name}_later:");
        let is_new = format!("if (t->pc[{}] != {}) {{", plan.own_id(process), details.pc);
        code.block(&is_new, |code| park(code, process, wait));
        push(code, &plan.own_id(process));
        code.line("goto dispatch;");
    }
    code.unmark();
    if !details.is_path_poll {
        ends.into_iter().for_each(|end| receiver_code(code, end));
    }
}

/// The deadlines of `after` branches.
fn start_timers(code: &mut Writer<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let frame = plan.frame(process);
    let mut timer = 0;
    for end in plan.ends(process, wait) {
        let Operation::After { amount, unit } = plan.branch(end).operation else { continue };
        let time = match unit {
            TimeUnit::Nanoseconds(unit_ns) => {
                format!("esp_deadline(now, {}, INT64_C({unit_ns}))", code.amount(amount))
            }
            TimeUnit::Absolute => code.value(amount),
        };
        match open_condition(plan, end) {
            Some(open) => line!(code, "{frame}deadline[{timer}] = {open} ? {time} : ESP_NEVER;"),
            None => line!(code, "{frame}deadline[{timer}] = {time};"),
        }
        timer += 1;
    }
}

/// No branch could commit: the instance continues at `else`.
fn take_otherwise(code: &mut Writer<'_, '_>, process: usize, wait: usize, otherwise: BlockId) {
    let plan = code.plan;
    let details = &plan.processes[process].waits[wait];
    if details.may_defer && details.polls_environment {
        code.line("if (polling) goto poll_next;");
    }
    trace(code, "'e'", &plan.own_id(process), "0", "0", "0");
    if details.is_path_poll {
        continue_at(code, process, otherwise);
    } else {
        continue_in_turn(code, process, otherwise, plan.otherwise_pc(process, wait));
    }
}

/// No branch could commit: the instance waits.
fn block_instance(code: &mut Writer<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let details = &plan.processes[process].waits[wait];
    let (own, pc) = (plan.own_id(process), details.pc);
    if waits_on_environment_only(plan, process, wait) {
        line!(code, "AWAIT_ENVIRONMENT({own}, {pc});");
        return;
    }
    if details.polls_environment {
        code.line("if (polling) goto poll_next;");
    }
    if details.may_retry() {
        line!(code, "if (t->pc[{own}] == {pc}u) goto dispatch;");
    } else if !details.parks_before_search() {
        plan.ends(process, wait).for_each(|end| park_payload(code, end));
    }
    park(code, process, wait);
    stop(code, process);
}

/// Whether an instance that waits there joins the instances that wait for the environment, and nothing else.
fn waits_on_environment_only(plan: &Plan<'_>, process: usize, wait: usize) -> bool {
    let details = &plan.processes[process].waits[wait];
    details.polls_environment
        && !details.may_retry()
        && !details.has_arrival_stamp
        && blocked_bits(plan, process, wait).is_empty()
        && !plan.hand_off.has_callers(process)
}

/// The channel of a wait that does nothing but to send a message to the environment by the shared exit.
fn sole_environment_send(plan: &Plan<'_>, process: usize, wait: usize) -> Option<usize> {
    let data = plan.wait(process, wait);
    let [Branch { operation: Operation::Out { channel, payload: Payload::Ready(_), .. }, guard: Guard::Open, .. }] =
        &data.branches[..]
    else {
        return None;
    };
    let channel = channel.0 as usize;
    let details = &plan.processes[process].waits[wait];
    let is_plain = data.otherwise.is_none()
        && waits_on_environment_only(plan, process, wait)
        && !details.branches[0].may_be_deferred_to
        && !details.may_defer;
    (is_plain && plan.channels[channel].has_shared_send_exit).then_some(channel)
}

/// An instance joins the queues of its wait.
fn park(code: &mut Writer<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let details = &plan.processes[process].waits[wait];
    for (text, bit) in blocked_bits(plan, process, wait) {
        line!(code, "{text} |= {bit};");
    }
    if details.has_arrival_stamp {
        line!(code, "{}stamp = ++t->stamp;", plan.frame(process));
    }
    if details.polls_environment {
        line!(code, "waiting_append(t, {});", plan.own_id(process));
    }
    line!(code, "t->pc[{}] = {};", plan.own_id(process), details.pc);
}

/// Computes the mask of open branches, and faults if none is.
fn evaluate_guards(code: &mut Writer<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let data = plan.wait(process, wait);
    if data.branches.iter().all(|branch| branch.guard == Guard::Open) {
        return;
    }
    let words = data.branches.len().div_ceil(32);
    if plan.processes[process].waits[wait].has_open_mask {
        (0..words).for_each(|word| evaluate_guard_word(code, process, wait, word));
    }
    let may_all_be_closed =
        data.otherwise.is_none() && data.branches.iter().all(|branch| matches!(branch.guard, Guard::Value(_)));
    if may_all_be_closed {
        let frame = plan.frame(process);
        let all: Vec<String> = (0..words).map(|word| format!("{frame}open[{word}] == 0u")).collect();
        let block = plan.processes[process].waits[wait].block;
        let location = code.body().blocks[block.0 as usize].location;
        code.check(&all.join(" && "), Fault::Alt, location);
    }
}

/// Computes one word of the mask of open branches.
fn evaluate_guard_word(code: &mut Writer<'_, '_>, process: usize, wait: usize, word: usize) {
    let plan = code.plan;
    let open = format!("{}open[{word}]", plan.frame(process));
    let mut terms = Vec::new();
    let (mut always_open, mut regions) = (0u32, 0u32);
    for end in plan.ends(process, wait).skip(word * 32).take(32) {
        let bit = end.branch % 32;
        match plan.branch(end).guard {
            Guard::Open => always_open |= 1 << bit,
            Guard::Value(value) => {
                terms.push(format!("((uint32_t)({} ? 1u : 0u) << {bit})", code.value(value)));
            }
            Guard::Region(_) => {
                regions |= 1 << bit;
                let name = plan.branch_name(end);
                code.block("{", |code| {
                    line!(code, "const uint32_t r_ = {name}_guard(t, {});", plan.own_id(process));
                    let raise = code.raise_number("r_");
                    line!(code, "if (ESP_UNLIKELY(r_ > 1u)) {raise}");
                    line!(code, "where = r_;");
                });
                line!(code, "{open} = ({open} & ~ESP_BIT({bit})) | where << {bit};");
            }
        }
    }
    if always_open != 0 || terms.is_empty() {
        terms.push(format!("{always_open}u"));
    }
    if regions != 0 {
        terms.push(format!("({open} & {regions}u)"));
    }
    line!(code, "{open} = {};", terms.join(" | "));
}

/// Parks the values of a message computed on arrival, so that they survive the wait.
fn park_payload(code: &mut Writer<'_, '_>, end: End) {
    let plan = code.plan;
    for (index, value) in &plan.branch_plan(end).parked_payload {
        let text = code.value(*value);
        line!(code, "{}park.{}.v{index} = {text};", plan.frame(end.process), plan.park_name(end));
    }
}

/// Tries the branches in the order of the alt.
fn search(code: &mut Writer<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let details = &plan.processes[process].waits[wait];
    let mut timer = 0;
    if !details.rotates {
        plan.ends(process, wait).for_each(|end| try_branch(code, end, &mut timer));
        return;
    }
    let count = details.branches.len();
    code.open("{");
    line!(code, "uint32_t b_ = {}next{}, n_;", plan.frame(process), details.block.0);
    code.block(&format!("for (n_ = 0; n_ < {count}u; n_++) {{"), |code| {
        code.open("switch (b_) {");
        for end in plan.ends(process, wait) {
            let is_last = end.branch + 1 == count;
            let head = if is_last { "default:".to_string() } else { format!("case {}:", end.branch) };
            code.case(&head, |code| {
                try_branch(code, end, &mut timer);
                code.line("break;");
            });
        }
        code.close("}");
        line!(code, "b_ = b_ + 1u == {count}u ? 0u : b_ + 1u;");
    });
    code.close("}");
}

/// Tries one branch. While the environment is polled, only branches that it or the clock can change are tried.
fn try_branch(code: &mut Writer<'_, '_>, end: End, timer: &mut usize) {
    let plan = code.plan;
    let branch = plan.branch(end);
    code.mark(branch.location);
    let is_internal = plan.is_internal(branch);
    let mut tests: Vec<String> = Vec::new();
    if is_internal && plan.wait_plan(end).polls_environment {
        tests.push("!polling".to_string());
    }
    if !is_internal && plan.branch_plan(end).may_be_deferred_to {
        let must_defer = must_defer_call(plan, end, &plan.own_id(end.process), &end.branch.to_string());
        tests.push(format!("!(polling && {must_defer})"));
    }
    tests.extend(open_condition(plan, end).map(|open| format!("({open})")));
    let condition = (!tests.is_empty()).then(|| tests.join(" && "));
    let channel = branch_channel(branch).map(|(channel, _)| channel);
    code.guarded(condition.as_deref(), |code| code.on_channel(channel, |code| commit_branch(code, end, timer)));
}

/// Commits a branch if it can.
fn commit_branch(code: &mut Writer<'_, '_>, end: End, timer: &mut usize) {
    let plan = code.plan;
    let boundary = |channel: &ChannelId| plan.program.channels[channel.0 as usize].boundary;
    match &plan.branch(end).operation {
        Operation::In { channel, .. } => match boundary(channel) {
            Boundary::FromEnvironment => receive_from_environment(code, end, channel.0 as usize, Committer::Instance),
            Boundary::Internal | Boundary::ToEnvironment => receive(code, end, channel.0 as usize),
        },
        Operation::Out { channel, payload, .. } => match boundary(channel) {
            Boundary::ToEnvironment => {
                send_to_environment(code, end, channel.0 as usize, payload, Committer::Instance);
            }
            Boundary::Internal | Boundary::FromEnvironment => send(code, end, channel.0 as usize, payload),
        },
        Operation::After { .. } => {
            elapse(code, end, *timer, Committer::Instance);
            *timer += 1;
        }
    }
}
