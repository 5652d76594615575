//! A rendezvous inside the one function that holds all processes: an instance at its operation meets one that waits, in
//! place or found by a search. Control goes to the receiver's code with the message in `c_m`. Knows nothing of the
//! environment, but that a waiting `pri alt` is arbitrated first.

use super::continuation::select_instance;
use super::hand_off::{call_receiver, push_self, release_unless_calling};
use super::helpers::Depth;
use super::message::{BindTo, Source, bind_message, dead_message, raise_condition_fault, ready_message, release_moved};
use super::pattern::{MessagePart, conditions, message_parts};
use super::plan::{End, Lookup, Plan, processes_of};
use super::priority::{arbitrate, bypass, may_bypass_any, repeat_search};
use super::ready_list::{push, reopen, trace, trace_run, unqueue};
use super::wait_state::{end_wait, open_condition};
use super::writer::{Scope, Writer, line};
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// The sender of a message.
enum Sender<'a> {
    /// This instance, which a search has found; its program counter is set.
    Found(&'a str),
    /// This instance, at this end.
    Known(&'a str, End),
    /// The instance at this end, which continues when the receiver stops.
    Caller(End),
}

/// The end of a rendezvous: decides which instances join the ready list, and jumps to the receiver's code. `jump` gives
/// the jump to one of its labels.
fn commit(code: &mut Writer<'_, '_>, channel: usize, sender: &Sender<'_>, jump: &dyn Fn(&str) -> String) {
    let plan = code.plan;
    let sender = match sender {
        Sender::Found(instance) => *instance,
        Sender::Known(instance, end) => {
            line!(code, "t->pc[{instance}] = {};", plan.continuation_pc(*end));
            *instance
        }
        Sender::Caller(end) => return call_receiver(code, *end, jump),
    };
    if plan.channels[channel].commit_reopens_guards {
        line!(code, "from = {sender};");
        code.line(&jump("commit"));
        return;
    }
    match plan.program.channels[channel].policy {
        Policy::Receiver => {
            push(code, sender);
            line!(code, "if (--left == 0u) {}", jump("later"));
            code.line(&jump("bind"));
        }
        Policy::Queue => {
            push(code, sender);
            code.line(&jump("later"));
        }
        Policy::Sender => {
            line!(code, "from = {sender};");
            code.line(&jump("later"));
        }
    }
}

/// The instance that runs, as a sender.
fn running_sender<'a>(plan: &Plan<'_>, own: &'a str, end: End) -> Sender<'a> {
    if plan.hand_off.pcs.contains_key(&end) { Sender::Caller(end) } else { Sender::Known(own, end) }
}

/// Compares the program counter of the only possible partner with its waits, and writes what happens at each.
fn in_place(code: &mut Writer<'_, '_>, partners: &[End], mut each: impl FnMut(&mut Writer<'_, '_>, End)) {
    let plan = code.plan;
    let Some(first) = partners.first() else { return };
    let instance = plan.own_id(first.process);
    if let [partner] = partners {
        let test = format!("if (t->pc[{instance}] == {}u) {{", plan.wait_plan(*partner).pc);
        code.block(&test, |code| each(code, *partner));
        return;
    }
    code.open(&format!("switch (t->pc[{instance}]) {{"));
    for partner in partners {
        code.case(&format!("case {}:", plan.wait_plan(*partner).pc), |code| {
            each(code, *partner);
            code.line("break;");
        });
    }
    code.close_switch();
}

/// Raises the fault of a rendezvous whose partner a search has found.
fn raise_search_fault(code: &mut Writer<'_, '_>, number: &str, instance: &str) {
    code.block("if (ESP_UNLIKELY(r_ > 1u)) {", |code| {
        line!(code, "where = {number};");
        line!(code, "t->instance = {instance};");
        code.line("goto faulted;");
    });
}

/// An `in` meets a waiting writer.
pub(crate) fn receive(code: &mut Writer<'_, '_>, end: End, channel: usize) {
    let data = &code.plan.channels[channel];
    if data.writers.is_empty() {
        return;
    }
    match data.writer_lookup {
        Lookup::InPlace => {
            let writers: Vec<End> =
                data.writers.iter().copied().filter(|writer| writer.process != end.process).collect();
            in_place(code, &writers, |code, writer| receive_in_place(code, end, writer, channel));
        }
        Lookup::Search if may_bypass_any(code.plan, end, &data.writers) => {
            repeat_search(code, end, data.writer_words(), |code| receive_by_search(code, end, channel, ", excluded_"));
        }
        Lookup::Search => receive_by_search(code, end, channel, ""),
    }
}

fn receive_in_place(code: &mut Writer<'_, '_>, end: End, writer: End, channel: usize) {
    let plan = code.plan;
    let (name, own) = (plan.branch_name(end), plan.own_id(end.process));
    let (sender, data) = (plan.own_id(writer.process), &plan.channels[channel]);
    let Operation::Out { payload: Payload::Ready(message), .. } = &plan.branch(writer).operation else {
        unreachable!("writers found in place send what they computed on arrival")
    };
    let chosen = |code: &mut Writer<'_, '_>| {
        arbitrate(code, end, &[writer], &sender, &writer.branch.to_string());
        trace(code, "'c'", &sender, &writer.branch.to_string(), &own, &end.branch.to_string());
    };
    code.guarded(open_condition(plan, writer).as_deref(), |code| {
        code.within(Scope::Process(writer.process), |code| {
            ready_message(code, writer, message, &format!("{}_m.", data.name), Source::Parked);
        });
        fault_on_dead_message(code, writer, channel, &sender, &chosen);
        if_matches(code, end, channel, |code| {
            chosen(code);
            raise_condition_fault(code, end);
            code.within(Scope::Process(writer.process), |code| end_wait(code, writer));
            end_wait(code, end);
            let sender = match plan.hand_off.is_only_caller(end.process, writer) {
                true => Sender::Caller(writer),
                false => Sender::Known(&sender, writer),
            };
            commit(code, channel, &sender, &|label: &str| format!("goto {name}_{label};"));
        });
    });
}

fn receive_by_search(code: &mut Writer<'_, '_>, end: End, channel: usize, excluded: &str) {
    let plan = code.plan;
    let (name, own, data) = (plan.branch_name(end), plan.own_id(end.process), &plan.channels[channel]);
    code.open("{");
    line!(code, "{}_view v_;", data.name);
    line!(code, "uint32_t w_, f_ = 0, r_ = 0;");
    line!(code, "w_ = {name}_find(t, {own}, &v_, &f_, &r_{excluded});");
    code.block("if (w_ != 0u) {", |code| {
        code.line("const esp_pid s_ = w_ - 1u;");
        if !excluded.is_empty() {
            bypass(code, end, &data.writers, "s_", "f_");
        }
        arbitrate(code, end, &data.writers, "s_", "f_");
        trace(code, "'c'", "s_", "f_", &own, &end.branch.to_string());
        raise_search_fault(
            code,
            "r_ & ~SENDER_FAULT",
            &format!("(r_ & SENDER_FAULT) != 0u ? s_ : {}", plan.own_operand(end.process)),
        );
        let processes = processes_of(&data.writers);
        for (index, process) in processes.iter().enumerate() {
            let writer = &plan.processes[*process];
            let test = match (index, index + 1 == processes.len()) {
                (0, true) => String::new(),
                (_, true) => "else ".to_string(),
                (0, false) => format!("if (s_ - {}u < {}u) ", writer.base, writer.replicas),
                (_, false) => format!("else if (s_ - {}u < {}u) ", writer.base, writer.replicas),
            };
            line!(code, "{test}{}_sends_{}(t, s_, f_, &v_);", writer.name, data.name);
        }
        if !plan.program.channels[channel].payload.is_empty() {
            line!(code, "{}_m = v_;", data.name);
        }
        end_wait(code, end);
        commit(code, channel, &Sender::Found("s_"), &|label: &str| format!("goto {name}_{label};"));
    });
    code.close("}");
}

/// A message of objects that have no count left matches every reader; chosen, it faults.
fn fault_on_dead_message(
    code: &mut Writer<'_, '_>,
    writer: End,
    channel: usize,
    sender: &str,
    chosen: &dyn Fn(&mut Writer<'_, '_>),
) {
    let message = format!("{}_m", code.plan.channels[channel].name);
    let Some((dead, number)) = dead_message(code, writer, channel, &message, Depth::Direct) else { return };
    code.block(&format!("if (ESP_UNLIKELY({dead})) {{"), |code| {
        chosen(code);
        line!(code, "where = {number};");
        line!(code, "t->instance = {sender};");
        code.line("goto faulted;");
    });
}

/// Writes what happens if the message in `c_m` matches an `in` of the process in scope.
fn if_matches(code: &mut Writer<'_, '_>, end: End, channel: usize, then: impl FnOnce(&mut Writer<'_, '_>)) {
    let plan = code.plan;
    let Operation::In { patterns, condition, .. } = &plan.branch(end).operation else {
        unreachable!("a reader is an `in`")
    };
    let name = &plan.channels[channel].name;
    let source = message_parts(code, channel, &format!("{name}_m"), View::Program);
    let all = conditions(code, patterns, &source);
    let all = (!all.is_empty()).then(|| all.join(" && "));
    code.guarded(all.as_deref(), |code| {
        if condition.is_none() {
            return then(code);
        }
        code.block("{", |code| {
            line!(code, "{name}_view v_ = {name}_m;");
            line!(code, "const uint32_t r_ = {}_if(t, {}, &v_);", plan.branch_name(end), plan.own_id(end.process));
            code.block("if (r_ != 0u) {", then);
        });
    });
}

/// An `out` meets a waiting reader.
pub(crate) fn send(code: &mut Writer<'_, '_>, end: End, channel: usize, payload: &Payload) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    if data.readers.is_empty() {
        return;
    }
    match (data.reader_lookup, payload) {
        (Lookup::InPlace, Payload::Ready(message)) => {
            let readers: Vec<End> =
                data.readers.iter().copied().filter(|reader| reader.process != end.process).collect();
            in_place(code, &readers, |code, reader| send_in_place(code, end, reader, channel, message));
        }
        (Lookup::Search, _) | (Lookup::InPlace, Payload::Region(_)) => {
            let excluded = match (may_bypass_any(plan, end, &data.readers), data.readers_may_be_bypassed) {
                (true, _) => ", excluded_",
                (false, true) => ", 0",
                (false, false) => "",
            };
            if may_bypass_any(plan, end, &data.readers) {
                repeat_search(code, end, data.reader_words(), |code| {
                    send_by_search(code, end, channel, payload, excluded);
                });
            } else {
                send_by_search(code, end, channel, payload, excluded);
            }
        }
    }
}

/// Where the values of a message are when its `out` searches for a reader.
fn payload_source(plan: &Plan<'_>, end: End) -> Source {
    if plan.wait_plan(end).parks_before_search() { Source::Parked } else { Source::Local }
}

fn send_in_place(code: &mut Writer<'_, '_>, end: End, reader: End, channel: usize, message: &[Passed]) {
    let plan = code.plan;
    let (own, data) = (plan.own_id(end.process), &plan.channels[channel]);
    let receiver = plan.own_id(reader.process);
    let chosen = |code: &mut Writer<'_, '_>| {
        arbitrate(code, end, &[reader], &receiver, &reader.branch.to_string());
        trace(code, "'c'", &own, &end.branch.to_string(), &receiver, &reader.branch.to_string());
    };
    code.guarded(open_condition(plan, reader).as_deref(), |code| {
        ready_message(code, end, message, &format!("{}_m.", data.name), payload_source(plan, end));
        fault_on_dead_message(code, end, channel, &own, &chosen);
        code.within(Scope::Process(reader.process), |code| {
            if_matches(code, reader, channel, |code| {
                chosen(code);
                raise_condition_fault(code, reader);
                end_wait(code, reader);
                code.within(Scope::Process(end.process), |code| {
                    end_wait(code, end);
                    let name = plan.branch_name(reader);
                    release_unless_calling(code, end);
                    let sender = running_sender(plan, &own, end);
                    commit(code, channel, &sender, &|label: &str| format!("goto {name}_{label};"));
                });
            });
        });
    });
}

/// Finds a reader by a search, then its process and branch by a jump table ([`reader_jump_table`]).
fn send_by_search(code: &mut Writer<'_, '_>, end: End, channel: usize, payload: &Payload, excluded: &str) {
    let plan = code.plan;
    let (own, data) = (plan.own_id(end.process), &plan.channels[channel]);
    let words = data.reader_words();
    let any: Vec<String> = (0..words).map(|word| format!("t->{}_readers[{word}]", data.name)).collect();
    let head = if words > 0 { format!("if (({}) != 0u) {{", any.join(" | ")) } else { "{".to_string() };
    code.block(&head, |code| {
        line!(code, "{}_view v_;", data.name);
        line!(code, "uint32_t f_ = 1, b_to_ = 0, r_ = 0, found_;");
        find_reader(code, end, channel, payload, excluded);
        code.block("if (found_ != 0u) {", |code| {
            code.line("to = found_ - 1u;");
            code.line("to_branch = b_to_;");
            if excluded == ", excluded_" {
                bypass(code, end, &data.readers, "to", "b_to_");
            }
            arbitrate(code, end, &data.readers, "to", "b_to_");
            trace(code, "'c'", &own, &end.branch.to_string(), "to", "b_to_");
            raise_search_fault(code, "r_", &format!("f_ > 1u ? {} : to", plan.own_operand(end.process)));
            if plan.branch_plan(end).payload_takes_objects {
                line!(code, "(void){}_payload(t, {own}, &v_);", plan.branch_name(end));
            }
            if !plan.program.channels[channel].payload.is_empty() {
                line!(code, "{}_m = v_;", data.name);
            }
            end_wait(code, end);
            release_unless_calling(code, end);
            let sender = running_sender(plan, &own, end);
            commit(code, channel, &sender, &|label: &str| format!("goto {}_{label};", data.name));
        });
    });
}

/// Computes the message in `v_` and searches a reader for it. What a payload allocates exists while the readers'
/// conditions are evaluated, and is undone afterwards.
fn find_reader(code: &mut Writer<'_, '_>, end: End, channel: usize, payload: &Payload, excluded: &str) {
    let plan = code.plan;
    let (own, data) = (plan.own_id(end.process), &plan.channels[channel]);
    let condition_takes_objects = |reader: &End| plan.branch_plan(*reader).condition_takes_objects;
    let is_undone = plan.branch_plan(end).payload_takes_objects || data.readers.iter().any(condition_takes_objects);
    match payload {
        Payload::Ready(parts) => {
            ready_message(code, end, parts, "v_.", payload_source(plan, end));
            if let Some((dead, number)) = dead_message(code, end, channel, "v_", Depth::Direct) {
                line!(code, "if (ESP_UNLIKELY({dead})) f_ = {number};");
            }
            if is_undone {
                code.line("pools_save(t);");
            }
        }
        Payload::Region(_) => {
            if is_undone {
                code.line("pools_save(t);");
            }
            line!(code, "f_ = {}_payload(t, {own}, &v_);", plan.branch_name(end));
        }
    }
    line!(code, "found_ = {}_find_reader(t, {own}, &v_, f_, &b_to_, &r_{excluded});", data.name);
    if is_undone {
        code.line("pools_restore(t);");
    }
}

/// Jumps to the code of the reader that a search has found: instance `to`, branch `to_branch`.
pub(crate) fn reader_jump_table(code: &mut Writer<'_, '_>, channel: usize) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    let is_internal = plan.program.channels[channel].boundary == Boundary::Internal;
    if !is_internal || !data.readers_are_searched || !data.is_connected() {
        return;
    }
    code.unmark();
    let labels: &[&str] = match (data.commit_reopens_guards, plan.program.channels[channel].policy) {
        (true, _) => &["commit"],
        (false, Policy::Receiver) => &["bind", "later"],
        (false, Policy::Sender | Policy::Queue) => &["later"],
    };
    for label in labels {
        line!(code, "{}_{label}:", data.name);
        code.open("switch (t->pc[to] + 1u + to_branch) {");
        for end in &data.readers {
            code.case(&format!("case {}:", plan.continuation_pc(*end)), |code| {
                code.within(Scope::Process(end.process), |code| {
                    select_instance(code, end.process, "to");
                    end_wait(code, *end);
                    line!(code, "goto {}_{label};", plan.branch_name(*end));
                });
            });
        }
        code.case("default:", |code| code.line("goto dispatch;"));
        code.close("}");
    }
}

/// The code of a receiver where the commit may reopen guards: everything that changes counts or the ready list happens
/// here, after the message was bound.
fn commit_and_reopen(code: &mut Writer<'_, '_>, end: End, channel: usize, patterns: &[Pattern]) {
    let plan = code.plan;
    let (name, own) = (plan.branch_name(end), plan.own_id(end.process));
    let message = format!("{}_m", plan.channels[channel].name);
    line!(code, "{name}_commit:");
    code.line(";");
    let source = message_parts(code, channel, &message, View::Program);
    bind_message(code, end, patterns, &source, BindTo::Parked);
    release_moved(code, channel, &message);
    line!(code, "t->pc[{own}] = {};", plan.continuation_pc(end));
    reopen(code);
    match plan.program.channels[channel].policy {
        Policy::Receiver => {
            push(code, "from");
            code.block("if (--left == 0u) {", |code| {
                push(code, &own);
                code.line("goto dispatch;");
            });
            unqueue(code, &own);
            trace_run(code, &own);
            line!(code, "goto {name}_go;");
        }
        Policy::Queue => {
            push(code, "from");
            push(code, &own);
            code.line("goto dispatch;");
        }
        Policy::Sender => {
            push(code, &own);
            code.line("goto carry_on;");
        }
    }
}

/// The code of a receiver that binds its message to the same storage whether it continues at once or later, which
/// exists once where it is compiled for size: the turn has operations left exactly if the receiver continues at once.
fn bind_or_queue(code: &mut Writer<'_, '_>, end: End, channel: usize, patterns: &[Pattern], source: &[MessagePart]) {
    let plan = code.plan;
    let (name, own) = (plan.branch_name(end), plan.own_id(end.process));
    line!(code, "{name}_bind: ESP_UNUSED;");
    line!(code, "{name}_later: ESP_UNUSED;");
    bind_message(code, end, patterns, source, BindTo::Storage);
    release_moved(code, channel, &format!("{}_m", plan.channels[channel].name));
    code.block("if (left == 0u) {", |code| {
        line!(code, "t->pc[{own}] = {};", plan.continuation_pc(end));
        push(code, &own);
        code.line("goto dispatch;");
    });
    continue_receiver(code, end);
}

/// The receiver continues at once.
fn continue_receiver(code: &mut Writer<'_, '_>, end: End) {
    let plan = code.plan;
    let own = plan.own_id(end.process);
    unqueue(code, &own);
    trace_run(code, &own);
    line!(code, "goto {}_{};", plan.processes[end.process].name, plan.branch(end).then.0);
}

/// The code of a receiver that binds its message and continues at once.
fn bind_and_continue(
    code: &mut Writer<'_, '_>,
    end: End,
    channel: usize,
    patterns: &[Pattern],
    source: &[MessagePart],
) {
    line!(code, "{}_bind:", code.plan.branch_name(end));
    code.line(";");
    bind_message(code, end, patterns, source, BindTo::Storage);
    release_moved(code, channel, &format!("{}_m", code.plan.channels[channel].name));
    continue_receiver(code, end);
}

/// The code of a receiver that parks its message and joins the ready list.
fn park_and_queue(code: &mut Writer<'_, '_>, end: End, channel: usize, patterns: &[Pattern], source: &[MessagePart]) {
    let plan = code.plan;
    line!(code, "{}_later:", plan.branch_name(end));
    code.line(";");
    bind_message(code, end, patterns, source, BindTo::Parked);
    release_moved(code, channel, &format!("{}_m", plan.channels[channel].name));
    line!(code, "t->pc[{}] = {};", plan.own_id(end.process), plan.continuation_pc(end));
    push_self(code, end.process);
    match plan.program.channels[channel].policy {
        Policy::Sender => code.line("goto carry_on;"),
        Policy::Receiver | Policy::Queue => code.line("goto dispatch;"),
    }
}

/// The code of a branch once its message is in `c_m`, and where an instance that was queued with its message continues.
pub(crate) fn receiver_code(code: &mut Writer<'_, '_>, end: End) {
    let plan = code.plan;
    let branch = plan.branch(end);
    let Operation::In { channel, patterns, .. } = &branch.operation else { return };
    let channel = channel.0 as usize;
    let data = &plan.channels[channel];
    code.mark(branch.location);
    if plan.program.channels[channel].boundary != Boundary::FromEnvironment && !data.writers.is_empty() {
        let source = message_parts(code, channel, &format!("{}_m", data.name), View::Program);
        let has_parked = !plan.branch_plan(end).parked_parameters.is_empty();
        match (data.commit_reopens_guards, plan.program.channels[channel].policy) {
            (true, _) => commit_and_reopen(code, end, channel, patterns),
            (false, Policy::Receiver) if has_parked => {
                bind_and_continue(code, end, channel, patterns, &source);
                park_and_queue(code, end, channel, patterns, &source);
            }
            (false, Policy::Receiver) => {
                code.line("#ifdef __OPTIMIZE_SIZE__");
                bind_or_queue(code, end, channel, patterns, &source);
                code.line("#else");
                bind_and_continue(code, end, channel, patterns, &source);
                park_and_queue(code, end, channel, patterns, &source);
                code.line("#endif");
            }
            (false, Policy::Queue | Policy::Sender) => park_and_queue(code, end, channel, patterns, &source),
        }
    }
    line!(code, "{}_go:", plan.branch_name(end));
    code.line(";");
    let (frame, park) = (plan.frame(end.process), plan.park_name(end));
    for value in &plan.branch_plan(end).parked_parameters {
        line!(code, "{} = {frame}park.{park}.p{};", code.value(*value), value.0);
    }
    line!(code, "goto {}_{};", plan.processes[end.process].name, branch.then.0);
}
