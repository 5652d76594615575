//! A rendezvous inside the one function that holds all processes: an instance at its operation meets one that waits,
//! in place or found by a search; the receiver's code is jumped to with the message in `c_m`. Knows nothing of the
//! world, but that a waiting `pri alt` looks there first.

use super::code::{Code, Lvalue, Scope, line};
use super::direct::{call, push_self, release_unless_calling as release};
use super::helpers::{Depth, Helper};
use super::matching::{
    Source, condition_takes_objects, dead_message, leave, open_condition, payload_takes_objects, processes,
    readers_are_searched, readers_in_place, ready_message, writers_in_place,
};
use super::pattern::{Counting, binds, conditions, keep, parts};
use super::plan::{End, Plan};
use super::priority::{close_search, give_way, open_search, pass_by, passes_by, readers_are_passed_by};
use super::process::{enter, push, reopen, resume_pc, trace};
use crate::layout::View;
use quaject_esp_ir::ir::*;

/// A rendezvous that may change counts in a program whose guards ask for them: the order of the ready list depends on
/// what it opens, so that everything happens at one place, after the message has been taken.
fn is_slow(plan: &Plan<'_>, channel: usize) -> bool {
    plan.retries() && plan.channel_has_boxes(channel)
}

/// Who gives a message.
enum Sender<'a> {
    /// This instance, which a search has found; its program counter is set.
    Found(&'a str),
    /// This instance, at this end.
    Known(&'a str, End),
    /// The one at this end, which goes on when the receiver stops.
    Calls(End),
}

/// Everything alike at the end of a rendezvous: who queues, who goes on with the message in `c_m`.
fn meet(code: &mut Code<'_, '_>, channel: usize, sender: &Sender<'_>, bind: &dyn Fn(&str) -> String) {
    let plan = code.plan;
    if let Sender::Calls(end) = sender {
        call(code, *end, bind);
        return;
    }
    let (sender, sender_pc) = match sender {
        Sender::Found(instance) => (*instance, None),
        Sender::Known(instance, end) => (*instance, Some(resume_pc(plan, *end))),
        Sender::Calls(_) => unreachable!("it was seen to above"),
    };
    let set_pc = |code: &mut Code<'_, '_>| {
        if let Some(pc) = sender_pc {
            line!(code, "t->pc[{sender}] = {pc};");
        }
    };
    if is_slow(plan, channel) {
        set_pc(code);
        line!(code, "from = {sender};");
        code.line(&bind("meet"));
        return;
    }
    match plan.program.channels[channel].policy {
        Policy::Receiver => {
            set_pc(code);
            push(code, sender);
            line!(code, "if (--left == 0) {}", bind("later"));
            code.line(&bind("bind"));
        }
        Policy::Queue => {
            set_pc(code);
            push(code, sender);
            code.line(&bind("later"));
        }
        Policy::Sender => {
            set_pc(code);
            line!(code, "from = {sender};");
            code.line(&bind("later"));
        }
    }
}

/// An `in` meets a waiting writer.
pub(crate) fn receive(code: &mut Code<'_, '_>, end: End, channel: usize) {
    let plan = code.plan;
    let name = plan.branch_name(end);
    let own = plan.own_id(end.process);
    let data = &plan.channels[channel];
    if data.writers.is_empty() {
        return;
    }
    let jump = |how: &str| format!("goto {name}_{how};");
    if !writers_in_place(plan, channel) {
        let passes = passes_by(plan, end, &data.writers);
        if passes {
            open_search(code, data.writer_words());
        }
        let but = if passes { ", but_" } else { "" };
        code.open("{");
        line!(code, "{}_view v_;", data.name);
        line!(code, "uint32_t w_, f_ = 0, r_ = 0;");
        code.open(&format!("if ((w_ = {name}_find(t, {own}, &v_, &f_, &r_{but})) != 0) {{"));
        code.line("const esp_pid s_ = w_ - 1;");
        if passes {
            pass_by(code, end, &data.writers, "s_", "f_");
        }
        give_way(code, end, &data.writers, "s_", "f_");
        trace(code, "'c'", "s_", "f_", &own, &end.branch.to_string());
        code.open("if (ESP_UNLIKELY(r_ > 1)) {");
        code.line("where = r_ & ~SENDER_FAULT;");
        line!(code, "t->instance = r_ & SENDER_FAULT ? s_ : {own};");
        code.line("goto faulted;");
        code.close("}");
        for (index, process) in processes(&data.writers).iter().enumerate() {
            let writer = &plan.processes[*process];
            let last = index + 1 == processes(&data.writers).len();
            let test = match (index, last) {
                (0, true) => String::new(),
                (_, true) => "else ".to_string(),
                (0, false) => format!("if (s_ - {}u < {}u) ", writer.base, writer.replicas),
                (_, false) => format!("else if (s_ - {}u < {}u) ", writer.base, writer.replicas),
            };
            line!(code, "{test}{}_gives_{}(t, s_, f_, &v_);", writer.name, data.name);
        }
        if !plan.program.channels[channel].payload.is_empty() {
            line!(code, "{}_m = v_;", data.name);
        }
        leave(code, end);
        meet(code, channel, &Sender::Found("s_"), &jump);
        code.close("}");
        code.close("}");
        if passes {
            close_search(code, end);
        }
        return;
    }
    let writers: Vec<End> = data.writers.iter().copied().filter(|writer| writer.process != end.process).collect();
    let Some(first) = writers.first() else { return };
    let sender = plan.own_id(first.process);
    let single = writers.len() == 1;
    if !single {
        code.open(&format!("switch (t->pc[{sender}]) {{"));
    }
    for writer in &writers {
        let pc = plan.processes[writer.process].waits[writer.wait].pc;
        if single {
            code.open(&format!("if (t->pc[{sender}] == {pc}) {{"));
        } else {
            line!(code, "case {pc}:");
            code.indent += 1;
        }
        let Operation::Out { payload: Payload::Ready(message), .. } = &plan.branch(*writer).operation else {
            unreachable!("writers found in place send what they computed on arrival")
        };
        code.scope = Scope::Process(writer.process);
        let open = open_condition(plan, *writer);
        if let Some(open) = &open {
            code.open(&format!("if ({open}) {{"));
        }
        ready_message(code, *writer, message, &format!("{}_m.", data.name), Source::Parked);
        code.scope = Scope::Process(end.process);
        refuse_dead(code, *writer, channel, &sender, &mut |code| {
            give_way(code, end, &[*writer], &sender, &writer.branch.to_string());
            trace(code, "'c'", &sender, &writer.branch.to_string(), &own, &end.branch.to_string());
        });
        matched(code, end, channel, &mut |code| {
            give_way(code, end, &[*writer], &sender, &writer.branch.to_string());
            trace(code, "'c'", &sender, &writer.branch.to_string(), &own, &end.branch.to_string());
            raise_chosen(code, end);
            code.scope = Scope::Process(writer.process);
            leave(code, *writer);
            code.scope = Scope::Process(end.process);
            leave(code, end);
            let sender = match plan.direct.is_called_only_by(end.process, *writer) {
                true => Sender::Calls(*writer),
                false => Sender::Known(&sender, *writer),
            };
            meet(code, channel, &sender, &jump);
        });
        if open.is_some() {
            code.close("}");
        }
        if single {
            code.close("}");
        } else {
            code.line("break;");
            code.indent -= 1;
        }
    }
    if !single {
        code.line("default:");
        code.line("    break;");
        code.close("}");
    }
}

/// A message of objects that have no count left matches every reader; chosen, it faults.
fn refuse_dead(
    code: &mut Code<'_, '_>,
    writer: End,
    channel: usize,
    sender: &str,
    chosen: &mut dyn FnMut(&mut Code<'_, '_>),
) {
    let message = format!("{}_m", code.plan.channels[channel].name);
    let Some((dead, number)) = dead_message(code, writer, channel, &message, Depth::Direct) else { return };
    code.open(&format!("if (ESP_UNLIKELY({dead})) {{"));
    chosen(code);
    line!(code, "where = {number};");
    line!(code, "t->instance = {sender};");
    code.line("goto faulted;");
    code.close("}");
}

/// If the message in `c_m` matches an `in`, which is this process's.
fn matched(code: &mut Code<'_, '_>, end: End, channel: usize, then: &mut dyn FnMut(&mut Code<'_, '_>)) {
    let plan = code.plan;
    let Operation::In { patterns, condition, .. } = &plan.branch(end).operation else {
        unreachable!("a reader is an `in`")
    };
    let message = format!("{}_m", plan.channels[channel].name);
    let source = parts(code, channel, &message, View::Program);
    let all = conditions(code, patterns, &source);
    if !all.is_empty() {
        code.open(&format!("if ({}) {{", all.join(" && ")));
    }
    if condition.is_some() {
        code.open("{");
        line!(code, "{}_view v_ = {message};", plan.channels[channel].name);
        line!(code, "const uint32_t r_ = {}_if(t, {}, &v_);", plan.branch_name(end), plan.own_id(end.process));
        code.open("if (r_) {");
    }
    then(code);
    if condition.is_some() {
        code.close("}");
        code.close("}");
    }
    if !all.is_empty() {
        code.close("}");
    }
}

/// A condition that faulted counts as a match; chosen, it faults.
pub(crate) fn raise_chosen(code: &mut Code<'_, '_>, end: End) {
    if let Operation::In { condition: Some(_), .. } = &code.plan.branch(end).operation {
        let raise = code.raise_number("r_");
        line!(code, "if (ESP_UNLIKELY(r_ > 1)) {raise}");
    }
}

/// The instance that runs, as a sender.
fn sender<'a>(plan: &Plan<'_>, own: &'a str, end: End) -> Sender<'a> {
    if plan.direct.pcs.contains_key(&end) { Sender::Calls(end) } else { Sender::Known(own, end) }
}

/// An `out` meets a waiting reader.
pub(crate) fn send(code: &mut Code<'_, '_>, end: End, channel: usize, payload: &Payload) {
    let plan = code.plan;
    let own = plan.own_id(end.process);
    let data = &plan.channels[channel];
    if data.readers.is_empty() {
        return;
    }
    let details = &plan.processes[end.process].waits[end.wait];
    let parked = details.parks_first();
    let fill = |code: &mut Code<'_, '_>, to: &str| match payload {
        Payload::Ready(parts) => {
            ready_message(code, end, parts, to, if parked { Source::Parked } else { Source::Local });
        }
        Payload::Region(_) => unreachable!("a region's payload is computed by its function"),
    };
    if let (true, Payload::Ready(_)) = (readers_in_place(plan, channel), payload) {
        let readers: Vec<End> = data.readers.iter().copied().filter(|reader| reader.process != end.process).collect();
        let Some(first) = readers.first() else { return };
        let reader_id = plan.own_id(first.process);
        let single = readers.len() == 1;
        if !single {
            code.open(&format!("switch (t->pc[{reader_id}]) {{"));
        }
        for reader in &readers {
            let reader_pc = plan.processes[reader.process].waits[reader.wait].pc;
            if single {
                code.open(&format!("if (t->pc[{reader_id}] == {reader_pc}) {{"));
            } else {
                line!(code, "case {reader_pc}:");
                code.indent += 1;
            }
            code.scope = Scope::Process(reader.process);
            let open = open_condition(plan, *reader);
            if let Some(open) = &open {
                code.open(&format!("if ({open}) {{"));
            }
            code.scope = Scope::Process(end.process);
            fill(code, &format!("{}_m.", data.name));
            refuse_dead(code, end, channel, &own, &mut |code| {
                give_way(code, end, &[*reader], &reader_id, &reader.branch.to_string());
                trace(code, "'c'", &own, &end.branch.to_string(), &reader_id, &reader.branch.to_string());
            });
            code.scope = Scope::Process(reader.process);
            matched(code, *reader, channel, &mut |code| {
                give_way(code, end, &[*reader], &reader_id, &reader.branch.to_string());
                trace(code, "'c'", &own, &end.branch.to_string(), &reader_id, &reader.branch.to_string());
                raise_chosen(code, *reader);
                leave(code, *reader);
                code.scope = Scope::Process(end.process);
                leave(code, end);
                let name = plan.branch_name(*reader);
                release(code, end);
                meet(code, channel, &sender(plan, &own, end), &|how: &str| format!("goto {name}_{how};"));
                code.scope = Scope::Process(reader.process);
            });
            if open.is_some() {
                code.close("}");
            }
            code.scope = Scope::Process(end.process);
            if single {
                code.close("}");
            } else {
                code.line("break;");
                code.indent -= 1;
            }
        }
        if !single {
            code.line("default:");
            code.line("    break;");
            code.close("}");
        }
        return;
    }
    // Some reader is found by a search, then its process and branch by a table of jumps.
    let words = data.reader_words();
    let passes = passes_by(plan, end, &data.readers);
    if passes {
        open_search(code, words);
    }
    let but = match (passes, readers_are_passed_by(plan, channel)) {
        (true, _) => ", but_",
        (false, true) => ", 0",
        (false, false) => "",
    };
    if words > 0 {
        let any: Vec<String> = (0..words).map(|word| format!("t->{}_readers[{word}]", data.name)).collect();
        code.open(&format!("if ({}) {{", any.join(" | ")));
    } else {
        code.open("{");
    }
    line!(code, "{}_view v_;", data.name);
    line!(code, "uint32_t f_ = 1, b_to_ = 0, r_ = 0, found_;");
    // What a payload allocates is there while the readers' conditions look at it, and gone afterwards.
    let trial =
        payload_takes_objects(plan, end) || data.readers.iter().any(|reader| condition_takes_objects(plan, *reader));
    match payload {
        Payload::Ready(_) => {
            fill(code, "v_.");
            if let Some((dead, number)) = dead_message(code, end, channel, "v_", Depth::Direct) {
                line!(code, "if (ESP_UNLIKELY({dead})) f_ = {number};");
            }
            if trial {
                code.line("pools_save(t);");
            }
        }
        Payload::Region(_) => {
            if trial {
                code.line("pools_save(t);");
            }
            line!(code, "f_ = {}_payload(t, {own}, &v_);", plan.branch_name(end));
        }
    }
    line!(code, "found_ = {}_find_reader(t, {own}, &v_, f_, &b_to_, &r_{but});", data.name);
    if trial {
        code.line("pools_restore(t);");
    }
    code.open("if (found_) {");
    code.line("to = found_ - 1;");
    code.line("to_branch = b_to_;");
    if passes {
        pass_by(code, end, &data.readers, "to", "b_to_");
    }
    give_way(code, end, &data.readers, "to", "b_to_");
    trace(code, "'c'", &own, &end.branch.to_string(), "to", "b_to_");
    code.open("if (ESP_UNLIKELY(r_ > 1)) {");
    code.line("where = r_;");
    line!(code, "t->instance = f_ > 1 ? {own} : to;");
    code.line("goto faulted;");
    code.close("}");
    if payload_takes_objects(plan, end) {
        line!(code, "(void){}_payload(t, {own}, &v_);", plan.branch_name(end));
    }
    if !plan.program.channels[channel].payload.is_empty() {
        line!(code, "{}_m = v_;", data.name);
    }
    leave(code, end);
    let name = data.name.clone();
    release(code, end);
    meet(code, channel, &sender(plan, &own, end), &|how: &str| format!("goto {name}_{how};"));
    code.close("}");
    code.close("}");
    if passes {
        close_search(code, end);
    }
}

/// Jumps to the code of the reader that a search has found: instance `to`, branch `to_branch`.
pub(crate) fn deliver(code: &mut Code<'_, '_>, channel: usize) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    let searched = readers_are_searched(plan, channel);
    let is_used = !data.readers.is_empty() && !data.writers.is_empty();
    if plan.program.channels[channel].boundary != Boundary::Internal || !searched || !is_used {
        return;
    }
    code.unmark();
    let ways: &[&str] = if is_slow(plan, channel) {
        &["meet"]
    } else {
        match plan.program.channels[channel].policy {
            Policy::Receiver => &["bind", "later"],
            Policy::Sender | Policy::Queue => &["later"],
        }
    };
    for how in ways {
        line!(code, "{}_{how}:", data.name);
        code.open("switch (t->pc[to] + 1u + to_branch) {");
        for end in &data.readers {
            line!(code, "case {}:", resume_pc(plan, *end));
            code.indent += 1;
            code.scope = Scope::Process(end.process);
            enter(code, end.process, "to");
            leave(code, *end);
            line!(code, "goto {}_{how};", plan.branch_name(*end));
            code.indent -= 1;
        }
        code.line("default:");
        code.line("    goto dispatch;");
        code.close("}");
    }
}

/// Ends the giver's counts on what it has moved.
pub(crate) fn release_moved(code: &mut Code<'_, '_>, channel: usize, message: &str) {
    for (index, part) in parts(code, channel, message, View::Program).iter().enumerate() {
        if code.plan.layouts.has_boxes(part.ty) {
            code.open(&format!("if ({message}.moved >> {index} & 1u) {{"));
            code.count(Helper::Release, &Lvalue { text: part.text.clone(), ty: part.ty });
            code.close("}");
        }
    }
}

/// Where received values go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parked {
    /// Beside the frame, if their home is a local.
    Yes,
    /// Home.
    No,
}

pub(crate) fn keep_all(
    code: &mut Code<'_, '_>,
    end: End,
    patterns: &[Pattern],
    message: &[super::pattern::Part],
    parked: Parked,
) {
    let plan = code.plan;
    let then = plan.branch(end).then;
    for (bind, part) in binds(code, patterns, message) {
        let to = match bind {
            Bind::Parameter(index) => {
                let value = code.body().blocks[then.0 as usize].parameters[index as usize];
                let local = plan.parked_parameters(end).contains(&value);
                let text = match (local, parked) {
                    (true, Parked::Yes) => {
                        format!("{}park.{}.p{}", plan.frame(end.process), plan.park_name(end), value.0)
                    }
                    (true, Parked::No) | (false, Parked::Yes | Parked::No) => code.value(value),
                };
                Lvalue { text, ty: code.value_type(value) }
            }
            Bind::Slot(slot) => Lvalue { text: code.slot(slot), ty: code.body().slots[slot.0 as usize].ty },
        };
        if part.view == View::Program
            && let Some(dead) = code.dead(&[Lvalue { text: part.text.clone(), ty: part.ty }], Depth::Direct)
        {
            let branch = plan.branch(end);
            let (Operation::In { channel, .. } | Operation::Out { channel, .. }) = &branch.operation else {
                unreachable!("a message comes on a channel")
            };
            let number = code.faults.number(Fault::Memory, branch.location, Some(*channel));
            let raise = code.raise_number(&number.to_string());
            line!(code, "if (ESP_UNLIKELY({dead})) {raise}");
        }
        keep(code, &to, &part, Counting::Counted);
    }
}

/// An instance that goes on at once is no longer on the ready list, where an opened guard may have put it.
pub(crate) fn unqueue(code: &mut Code<'_, '_>, instance: &str) {
    if code.plan.retries() {
        line!(code, "if (t->queued[{instance}]) tail = unqueue(t, head, tail, {instance});");
    }
}

/// See [`is_slow`].
fn meet_slowly(code: &mut Code<'_, '_>, end: End, channel: usize, patterns: &[Pattern]) {
    let plan = code.plan;
    let (name, own) = (plan.branch_name(end), plan.own_id(end.process));
    let message = format!("{}_m", plan.channels[channel].name);
    line!(code, "{name}_meet:");
    code.line(";");
    let source = parts(code, channel, &message, View::Program);
    keep_all(code, end, patterns, &source, Parked::Yes);
    release_moved(code, channel, &message);
    line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
    reopen(code);
    match plan.program.channels[channel].policy {
        Policy::Receiver => {
            push(code, "from");
            code.open("if (--left == 0) {");
            push(code, &own);
            code.line("goto dispatch;");
            code.close("}");
            unqueue(code, &own);
            trace(code, "'r'", &own, "0", "0", "0");
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

/// Both ways of a receiver that keeps what it has received at the same places, whether it goes on at once or later: of the
/// operations of the turn some are left exactly if it goes on at once.
fn bind_or_queue(
    code: &mut Code<'_, '_>,
    end: End,
    channel: usize,
    patterns: &[Pattern],
    source: &[super::pattern::Part],
) {
    let plan = code.plan;
    let (name, own) = (plan.branch_name(end), plan.own_id(end.process));
    line!(code, "{name}_bind: ESP_UNUSED;");
    line!(code, "{name}_later: ESP_UNUSED;");
    keep_all(code, end, patterns, source, Parked::No);
    release_moved(code, channel, &format!("{}_m", plan.channels[channel].name));
    code.open("if (left == 0) {");
    line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
    push(code, &own);
    code.line("goto dispatch;");
    code.close("}");
    unqueue(code, &own);
    trace(code, "'r'", &own, "0", "0", "0");
    line!(code, "goto {}_{};", plan.processes[end.process].name, plan.branch(end).then.0);
}

/// What a branch does when its message has come, at once or later.
pub(crate) fn continuations(code: &mut Code<'_, '_>, end: End) {
    let plan = code.plan;
    let branch = plan.branch(end);
    let Operation::In { channel, patterns, .. } = &branch.operation else { return };
    let channel = channel.0 as usize;
    let data = &plan.channels[channel];
    let process = &plan.processes[end.process];
    let (name, frame, own) = (plan.branch_name(end), plan.frame(end.process), plan.own_id(end.process));
    let park = plan.park_name(end);
    code.mark(branch.location);
    if plan.program.channels[channel].boundary != Boundary::FromEnvironment && !data.writers.is_empty() {
        let message = format!("{}_m", data.name);
        let source = parts(code, channel, &message, View::Program);
        let alike = plan.parked_parameters(end).is_empty()
            && !is_slow(plan, channel)
            && plan.program.channels[channel].policy == Policy::Receiver;
        if is_slow(plan, channel) {
            meet_slowly(code, end, channel, patterns);
        } else if plan.program.channels[channel].policy == Policy::Receiver {
            if alike {
                code.text.push_str("#ifdef __OPTIMIZE_SIZE__\n");
                bind_or_queue(code, end, channel, patterns, &source);
                code.text.push_str("#else\n");
            }
            line!(code, "{name}_bind:");
            code.line(";");
            keep_all(code, end, patterns, &source, Parked::No);
            release_moved(code, channel, &message);
            unqueue(code, &own);
            trace(code, "'r'", &own, "0", "0", "0");
            line!(code, "goto {}_{};", process.name, branch.then.0);
        }
        if !is_slow(plan, channel) {
            line!(code, "{name}_later:");
            code.line(";");
            keep_all(code, end, patterns, &source, Parked::Yes);
            release_moved(code, channel, &message);
            line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
            push_self(code, end.process);
            match plan.program.channels[channel].policy {
                Policy::Sender => code.line("goto carry_on;"),
                Policy::Receiver | Policy::Queue => code.line("goto dispatch;"),
            }
        }
        if alike {
            code.text.push_str("#endif\n");
        }
    }
    line!(code, "{name}_go:");
    code.line(";");
    for value in plan.parked_parameters(end) {
        line!(code, "{} = {frame}park.{park}.p{};", code.value(value), value.0);
    }
    line!(code, "goto {}_{};", process.name, branch.then.0);
}
