//! The code of the processes inside the one function that holds them all: blocks become labels, a rendezvous becomes
//! a jump from one process into another (EV, section IV: process-based, no stacks). The schedule is the reference's
//! section 9.
//!
//! ```text
//!   P_w4:            arrive: guards, deadlines
//!   P_w4_try:        look for a partner; polled waits come back here
//!   (wait)           remember pc and queue, dispatch the next instance
//!   P_w4_b0_bind:    a message is in c_m: keep its parts, go on          (the receiver continues)
//!   P_w4_b0_later:   keep its parts beside the frame, join the ready list
//!   P_w4_b0_go:      dispatched again: fetch them, go on
//! ```

use super::TraceMode;
use super::analysis::{Home, SlotHome};
use super::code::{Code, Lvalue, Scope, line};
use super::helpers::Helper;
use super::matching::{
    Source, blocked_bits, condition_takes_objects, leave, open_condition, payload_takes_objects, processes,
    readers_are_searched, readers_in_place, ready_message, switch, writers_in_place,
};
use super::pattern::{Counting, binds, conditions, keep, parts};
use super::plan::{End, Plan, has_regions};
use crate::layout::{View, has_boxes};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// Operations of one turn.
pub(crate) const TURN_OPERATIONS: u32 = 64;
/// Turns between two looks at the world.
pub(crate) const POLL_TURNS: u32 = 64;
/// Turns of one call of the step, rounded up to the next look at the world: then the caller is asked to step again,
/// so that a program that computes for ever leaves it in control.
pub(crate) const STEP_TURNS: u32 = 16384;

/// Writes one process.
pub(crate) fn write(code: &mut Code<'_, '_>, process: usize) {
    code.scope = Scope::Process(process);
    let plan = code.plan;
    let data = &plan.processes[process];
    let name = &data.name;
    let blocks = data.homes.main.clone();
    code.unmark();
    line!(code, "");
    line!(code, "/* process {} */", plan.program.processes[process].name);
    line!(code, "{name}_start:");
    for (index, id) in blocks.iter().enumerate() {
        let block = &code.body().blocks[id.0 as usize];
        line!(code, "{name}_{}:", id.0);
        code.line(";");
        for instruction in &block.instructions {
            code.instruction(instruction);
        }
        let next = blocks.get(index + 1).copied();
        terminator(code, process, *id, next);
    }
    code.unmark();
    if code.text.contains(&format!("goto {name}_fault;")) {
        line!(code, "{name}_fault:");
        line!(code, "t->instance = {};", plan.own_id(process));
        line!(code, "goto faulted;");
    }
}

/// Names of the locals of a process's code.
pub(crate) fn declare(code: &mut Code<'_, '_>, process: usize) {
    code.scope = Scope::Process(process);
    let plan = code.plan;
    let data = &plan.processes[process];
    let body = code.body();
    if plan.is_array(process) {
        line!(code, "{0}_frame *{0} = &t->{0}[0];", data.name);
        line!(code, "esp_pid {}_self = {};", data.name, data.base);
    }
    let mut classes = BTreeSet::new();
    for block in &data.homes.main {
        let block = &body.blocks[block.0 as usize];
        let results = block.instructions.iter().filter_map(|instruction| instruction.result);
        for value in block.parameters.iter().copied().chain(results) {
            if let Home::Local(class) = data.homes.values[value.0 as usize] {
                classes.insert(class);
            }
        }
    }
    for class in classes {
        line!(code, "{} {} ESP_UNUSED;", code.c_type(code.value_type(class)), code.value(class));
    }
    for (index, home) in data.homes.slots.iter().enumerate() {
        match home {
            SlotHome::Local => {
                let slot = SlotId(index as u32);
                line!(code, "{} {} ESP_UNUSED;", code.c_type(body.slots[index].ty), code.slot(slot));
            }
            SlotHome::Frame => {}
        }
    }
}

/// Joins the ready list.
pub(crate) fn push(code: &mut Code<'_, '_>, instance: &str) {
    if code.plan.retries() {
        line!(code, "if (!t->queued[{instance}]) t->ready[tail++ & READY_MASK] = {instance};");
        line!(code, "t->queued[{instance}] = true;");
    } else {
        let entry = if code.plan.is_direct() { format!("t->pc[{instance}]") } else { instance.to_string() };
        line!(code, "t->ready[tail++ & READY_MASK] = {entry};");
    }
}

/// Evaluates guards that ask for free objects again, if their number may have changed.
fn reopen(code: &mut Code<'_, '_>) {
    if !code.plan.retries() {
        return;
    }
    code.open("if (t->freed) {");
    code.line("t->tail = tail;");
    code.line("if ((where = reopen(t)) != 0) goto faulted;");
    code.line("tail = t->tail;");
    code.close("}");
}

/// A rendezvous that may change counts in a program whose guards ask for them: the order of the ready list depends on
/// what it opens, so that everything happens at one place, after the message has been taken.
fn is_slow(plan: &Plan<'_>, channel: usize) -> bool {
    plan.retries() && plan.channel_has_boxes(channel)
}

fn go(code: &mut Code<'_, '_>, process: usize, edge: &Edge, next: Option<BlockId>) {
    code.edge(edge);
    if next != Some(edge.to) {
        line!(code, "goto {}_{};", code.plan.processes[process].name, edge.to.0);
    }
}

fn terminator(code: &mut Code<'_, '_>, process: usize, id: BlockId, next: Option<BlockId>) {
    let block = &code.body().blocks[id.0 as usize];
    let plan = code.plan;
    let data = &plan.processes[process];
    code.mark(block.location);
    match &block.terminator {
        Terminator::Jump(edge) => go(code, process, edge, next),
        Terminator::Branch { condition, then, otherwise } => {
            code.open(&format!("if ({}) {{", code.value(*condition)));
            go(code, process, then, None);
            code.close("}");
            go(code, process, otherwise, next);
        }
        Terminator::Switch { value, cases, default } => {
            switch(code, *value, cases, default, &mut |code, edge| go(code, process, edge, None));
        }
        Terminator::Yield(edge) => {
            code.edge(edge);
            reopen(code);
            line!(code, "t->pc[{}] = {};", plan.own_id(process), data.yields[&id]);
            push(code, &plan.own_id(process));
            code.line("goto dispatch;");
        }
        Terminator::Exit(value) => {
            line!(code, "t->exit_status = (int32_t)((uint32_t){} & 255u);", code.value(*value));
            code.line("goto finished;");
        }
        Terminator::End => {
            reopen(code);
            line!(code, "t->pc[{}] = 0;", plan.own_id(process));
            code.line("goto dispatch;");
        }
        Terminator::Fault(fault) => {
            let text = code.raise(*fault, block.location);
            code.line(&text);
        }
        Terminator::Wait(_) => {
            let wait = data.waits.iter().position(|wait| wait.block == id).expect("every wait is planned");
            arrive(code, process, wait);
        }
        Terminator::Return(_) | Terminator::Result(_) => {
            unreachable!("the verifier has checked that processes do not return")
        }
    }
}

/// A wait from the arrival of an instance to its going on.
fn arrive(code: &mut Code<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let data = plan.wait(process, wait);
    let details = &plan.processes[process].waits[wait];
    let name = plan.wait_name(process, wait);
    let frame = plan.frame(process);
    let ends: Vec<End> = (0..data.branches.len()).map(|branch| End { process, wait, branch }).collect();
    guards(code, process, wait);
    let mut timer = 0;
    for (end, branch) in ends.iter().zip(&data.branches) {
        if let Operation::After { amount, unit_ns } = branch.operation {
            let amount = amount_text(code, amount);
            match open_condition(plan, *end) {
                Some(open) => line!(
                    code,
                    "{frame}deadline[{timer}] = {open} ? esp_deadline(now, {amount}, INT64_C({unit_ns})) : ESP_NEVER;"
                ),
                None => {
                    line!(code, "{frame}deadline[{timer}] = esp_deadline(now, {amount}, INT64_C({unit_ns}));");
                }
            }
            timer += 1;
        }
    }
    if details.polled || details.retries {
        ends.iter().for_each(|end| park_payload(code, *end));
    }
    reopen(code);
    if details.polled || details.retries {
        line!(code, "{name}_try:");
        code.line(";");
    }
    search(code, process, wait);
    if let Some(otherwise) = data.otherwise {
        trace(code, "'e'", &plan.own_id(process), "0", "0", "0");
        let pc = details.pc + 1 + data.branches.len() as u32;
        go_on(code, process, otherwise, pc);
    } else {
        if details.polled {
            code.line("if (polling) goto poll_next;");
        }
        if details.retries {
            line!(code, "if (t->pc[{}] == {}) goto dispatch;", plan.own_id(process), details.pc);
        } else if !details.polled {
            ends.iter().for_each(|end| park_payload(code, *end));
        }
        for (text, bit) in blocked_bits(plan, process, wait) {
            line!(code, "{text} |= {bit};");
        }
        if details.stamped {
            line!(code, "{frame}stamp = ++t->stamp;");
        }
        if details.polled {
            line!(code, "waiting_append(t, {});", plan.own_id(process));
        }
        line!(code, "t->pc[{}] = {};", plan.own_id(process), details.pc);
        code.line("goto dispatch;");
    }
    code.unmark();
    for end in ends {
        continuations(code, end);
    }
}

fn amount_text(code: &Code<'_, '_>, amount: Value) -> String {
    let wide = matches!(code.types().get(code.value_type(amount)), Type::Int(IntType::U64));
    let text = code.value(amount);
    if wide {
        format!("({text} > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t){text})")
    } else {
        format!("(int64_t){text}")
    }
}

/// Which branches are open, computed once.
fn guards(code: &mut Code<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let data = plan.wait(process, wait);
    let frame = plan.frame(process);
    let words = data.branches.len().div_ceil(32);
    let guarded = data.branches.iter().any(|branch| branch.guard != Guard::Open);
    if !guarded {
        return;
    }
    let mut never_closed = data.otherwise.is_some();
    if plan.processes[process].waits[wait].masked {
        for word in 0..words {
            let mut terms = Vec::new();
            let mut constant = 0u32;
            for (index, branch) in data.branches.iter().enumerate().skip(word * 32).take(32) {
                match branch.guard {
                    Guard::Open => constant |= 1 << (index % 32),
                    Guard::Value(value) => {
                        terms.push(format!("((uint32_t)({} != 0) << {})", code.value(value), index % 32));
                    }
                    Guard::Region(_) => {
                        let name = plan.branch_name(End { process, wait, branch: index });
                        code.open("{");
                        line!(code, "const uint32_t r_ = {name}_guard(t, {});", plan.own_id(process));
                        let raise = code.raise_number("r_");
                        line!(code, "if (ESP_UNLIKELY(r_ > 1)) {raise}");
                        line!(code, "where = r_;");
                        code.close("}");
                        line!(
                            code,
                            "{frame}open[{word}] = ({frame}open[{word}] & ~(1u << {0})) | where << {0};",
                            index % 32
                        );
                    }
                }
            }
            if constant != 0 || terms.is_empty() {
                terms.push(format!("{constant}u"));
            }
            let regions: u32 = data
                .branches
                .iter()
                .enumerate()
                .skip(word * 32)
                .take(32)
                .filter(|(_, branch)| matches!(branch.guard, Guard::Region(_)))
                .map(|(index, _)| 1u32 << (index % 32))
                .sum();
            if regions != 0 {
                terms.push(format!("({frame}open[{word}] & {regions}u)"));
            }
            line!(code, "{frame}open[{word}] = {};", terms.join(" | "));
        }
    }
    never_closed |= data.branches.iter().any(|branch| !matches!(branch.guard, Guard::Value(_)));
    if !never_closed {
        let all: Vec<String> = (0..words).map(|word| format!("{frame}open[{word}] == 0")).collect();
        let block = plan.processes[process].waits[wait].block;
        let location = code.body().blocks[block.0 as usize].location;
        code.check(&all.join(" && "), Fault::Alt, location);
    }
}

/// Puts the values of a message computed on arrival where they survive the wait.
fn park_payload(code: &mut Code<'_, '_>, end: End) {
    let plan = code.plan;
    let Operation::Out { payload: Payload::Ready(parts), .. } = &plan.branch(end).operation else { return };
    for (index, _) in plan.parked_payload(end) {
        if let Operand::Value(value) = parts[index].operand {
            let text = code.value(value);
            line!(code, "{}park.{}.v{index} = {text};", plan.frame(end.process), plan.park_name(end));
        }
    }
}

/// Tries the branches in the order of the alt.
fn search(code: &mut Code<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let count = plan.wait(process, wait).branches.len();
    let details = &plan.processes[process].waits[wait];
    if !details.rotates {
        let mut timer = 0;
        for branch in 0..count {
            try_branch(code, End { process, wait, branch }, &mut timer);
        }
        return;
    }
    code.open("{");
    line!(code, "uint32_t b_ = {}next{}, n_;", plan.frame(process), details.block.0);
    code.open(&format!("for (n_ = 0; n_ < {count}u; n_++) {{"));
    code.open("switch (b_) {");
    let mut timer = 0;
    for branch in 0..count {
        if branch + 1 == count {
            code.line("default:");
        } else {
            line!(code, "case {branch}:");
        }
        code.indent += 1;
        try_branch(code, End { process, wait, branch }, &mut timer);
        code.line("break;");
        code.indent -= 1;
    }
    code.close("}");
    line!(code, "b_ = b_ + 1 == {count}u ? 0 : b_ + 1;");
    code.close("}");
    code.close("}");
}

fn try_branch(code: &mut Code<'_, '_>, end: End, timer: &mut usize) {
    let plan = code.plan;
    let branch = plan.branch(end);
    code.mark(branch.location);
    let polled = plan.processes[end.process].waits[end.wait].polled;
    let internal = match &branch.operation {
        Operation::In { channel, .. } | Operation::Out { channel, .. } => {
            plan.program.channels[channel.0 as usize].boundary == Boundary::Internal
        }
        Operation::After { .. } => false,
    };
    // What only the world can change is all there is to look at when it is polled.
    let mut tests: Vec<String> = (polled && internal).then(|| "!polling".to_string()).into_iter().collect();
    tests.extend(open_condition(plan, end).map(|open| format!("({open})")));
    let open = (!tests.is_empty()).then(|| tests.join(" && "));
    if let Some(open) = &open {
        code.open(&format!("if ({open}) {{"));
    }
    match &branch.operation {
        Operation::In { channel, .. } => match plan.program.channels[channel.0 as usize].boundary {
            Boundary::FromWorld => receive_from_world(code, end, channel.0 as usize),
            Boundary::Internal | Boundary::ToWorld => receive(code, end, channel.0 as usize),
        },
        Operation::Out { channel, payload, .. } => match plan.program.channels[channel.0 as usize].boundary {
            Boundary::ToWorld => send_to_world(code, end, channel.0 as usize, payload),
            Boundary::Internal | Boundary::FromWorld => send(code, end, channel.0 as usize, payload),
        },
        Operation::After { .. } => {
            let frame = plan.frame(end.process);
            code.open(&format!("if ({frame}deadline[{timer}] <= now) {{"));
            leave(code, end);
            trace(code, "'a'", &plan.own_id(end.process), &end.branch.to_string(), "0", "0");
            let pc = resume_pc(plan, end);
            code.open("if (polling) {");
            line!(code, "t->pc[{}] = {pc};", plan.own_id(end.process));
            push(code, &plan.own_id(end.process));
            code.line("goto poll_next;");
            code.close("}");
            go_on(code, end.process, branch.then, pc);
            code.close("}");
            *timer += 1;
        }
    }
    if open.is_some() {
        code.close("}");
    }
}

/// After one operation of the turn: goes on there, or queues if it was the last.
fn go_on(code: &mut Code<'_, '_>, process: usize, block: BlockId, pc: u32) {
    let plan = code.plan;
    code.open("if (--left == 0) {");
    line!(code, "t->pc[{}] = {pc};", plan.own_id(process));
    push(code, &plan.own_id(process));
    code.line("goto dispatch;");
    code.close("}");
    trace(code, "'r'", &plan.own_id(process), "0", "0", "0");
    line!(code, "goto {}_{};", plan.processes[process].name, block.0);
}

pub(crate) fn resume_pc(plan: &Plan<'_>, end: End) -> u32 {
    plan.processes[end.process].waits[end.wait].pc + 1 + end.branch as u32
}

fn trace(code: &mut Code<'_, '_>, kind: &str, i: &str, b: &str, j: &str, b2: &str) {
    match code.plan.options.trace {
        TraceMode::Callback => line!(code, "if (t->trace) t->trace(t->trace_user, {kind}, {i}, {b}, {j}, {b2});"),
        TraceMode::None => {}
    }
}

/// Everything alike at the end of a rendezvous: who queues, who goes on with the message in `c_m`.
fn meet(code: &mut Code<'_, '_>, channel: usize, sender: &str, sender_pc: Option<u32>, bind: &dyn Fn(&str) -> String) {
    let plan = code.plan;
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
fn receive(code: &mut Code<'_, '_>, end: End, channel: usize) {
    let plan = code.plan;
    let name = plan.branch_name(end);
    let own = plan.own_id(end.process);
    let data = &plan.channels[channel];
    if data.writers.is_empty() {
        return;
    }
    let jump = |how: &str| format!("goto {name}_{how};");
    if !writers_in_place(plan, channel) {
        code.open("{");
        line!(code, "{}_view v_;", data.name);
        line!(code, "uint32_t w_, f_ = 0, r_ = 0;");
        code.open(&format!("if ((w_ = {name}_find(t, {own}, &v_, &f_, &r_)) != 0) {{"));
        code.line("const esp_pid s_ = w_ - 1;");
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
        meet(code, channel, "s_", None, &jump);
        code.close("}");
        code.close("}");
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
        matched(code, end, channel, &mut |code| {
            trace(code, "'c'", &sender, &writer.branch.to_string(), &own, &end.branch.to_string());
            raise_chosen(code, end);
            code.scope = Scope::Process(writer.process);
            leave(code, *writer);
            code.scope = Scope::Process(end.process);
            leave(code, end);
            meet(code, channel, &sender, Some(resume_pc(plan, *writer)), &jump);
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
fn raise_chosen(code: &mut Code<'_, '_>, end: End) {
    if let Operation::In { condition: Some(_), .. } = &code.plan.branch(end).operation {
        let raise = code.raise_number("r_");
        line!(code, "if (ESP_UNLIKELY(r_ > 1)) {raise}");
    }
}

/// An `out` meets a waiting reader.
fn send(code: &mut Code<'_, '_>, end: End, channel: usize, payload: &Payload) {
    let plan = code.plan;
    let own = plan.own_id(end.process);
    let data = &plan.channels[channel];
    if data.readers.is_empty() {
        return;
    }
    let details = &plan.processes[end.process].waits[end.wait];
    let parked = details.polled || details.retries;
    let pc = resume_pc(plan, end);
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
            code.scope = Scope::Process(reader.process);
            matched(code, *reader, channel, &mut |code| {
                trace(code, "'c'", &own, &end.branch.to_string(), &reader_id, &reader.branch.to_string());
                raise_chosen(code, *reader);
                leave(code, *reader);
                code.scope = Scope::Process(end.process);
                leave(code, end);
                let name = plan.branch_name(*reader);
                meet(code, channel, &own, Some(pc), &|how: &str| format!("goto {name}_{how};"));
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
    line!(code, "found_ = {}_find_reader(t, {own}, &v_, f_, &b_to_, &r_);", data.name);
    if trial {
        code.line("pools_restore(t);");
    }
    code.open("if (found_) {");
    code.line("to = found_ - 1;");
    code.line("to_branch = b_to_;");
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
    meet(code, channel, &own, Some(pc), &|how: &str| format!("goto {name}_{how};"));
    code.close("}");
    code.close("}");
}

/// Jumps to the code of the reader that a search has found: instance `to`, branch `to_branch`.
pub(crate) fn deliver(code: &mut Code<'_, '_>, channel: usize) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    let searched = readers_are_searched(plan, channel);
    if plan.program.channels[channel].boundary != Boundary::Internal || !searched || data.readers.is_empty() {
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

/// Makes an instance the running one of its process.
pub(crate) fn enter(code: &mut Code<'_, '_>, process: usize, instance: &str) {
    let plan = code.plan;
    if plan.is_array(process) {
        let data = &plan.processes[process];
        line!(code, "{0} = &t->{0}[{instance} - {1}u];", data.name, data.base);
        line!(code, "{}_self = {instance};", data.name);
    }
}

/// An `in` takes the oldest message of the world.
fn receive_from_world(code: &mut Code<'_, '_>, end: End, channel: usize) {
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
    leave(code, end);
    line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
    reopen(code);
    push(code, &own);
    code.line("if (polling) goto poll_next;");
    code.line("goto dispatch;");
    if condition.is_some() {
        code.close("}");
    }
    code.close("}");
    code.close("}");
}

/// An `out` hands its message to the world.
fn send_to_world(code: &mut Code<'_, '_>, end: End, channel: usize, payload: &Payload) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    let own = plan.own_id(end.process);
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
    if plan.program.channels[channel].payload.is_empty() {
        code.line("(void)v_;");
        code.line("m_->unused = 0;");
    }
    let source = parts(code, channel, "v_", View::Program);
    for (index, part) in source.iter().enumerate() {
        if has_boxes(code.types(), part.ty) {
            let name = code.helpers.want(plan, Helper::ToWorld, part.ty);
            line!(code, "{name}(t, &m_->v{index}, &{});", part.text);
        } else {
            line!(code, "m_->v{index} = {};", part.text);
        }
    }
    line!(code, "{}_send(IO);", data.name);
    release_moved(code, channel, "v_");
    leave(code, end);
    line!(code, "t->pc[{own}] = {};", resume_pc(plan, end));
    reopen(code);
    push(code, &own);
    if plan.sans_io() {
        code.line("if (++put_ == out->head.limit) goto again;");
    }
    code.line("if (polling) goto poll_next;");
    code.line("goto dispatch;");
    code.close("}");
}

/// Ends the giver's counts on what it has moved.
fn release_moved(code: &mut Code<'_, '_>, channel: usize, message: &str) {
    for (index, part) in parts(code, channel, message, View::Program).iter().enumerate() {
        if has_boxes(code.types(), part.ty) {
            code.open(&format!("if ({message}.moved >> {index} & 1u) {{"));
            code.count(Helper::Release, &Lvalue { text: part.text.clone(), ty: part.ty });
            code.close("}");
        }
    }
}

/// Where received values go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parked {
    /// Beside the frame, if their home is a local.
    Yes,
    /// Home.
    No,
}

fn keep_all(code: &mut Code<'_, '_>, end: End, patterns: &[Pattern], message: &[super::pattern::Part], parked: Parked) {
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
        keep(code, &to, &part, Counting::Counted);
    }
}

/// An instance that goes on at once is no longer on the ready list, where an opened guard may have put it.
fn unqueue(code: &mut Code<'_, '_>, instance: &str) {
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

/// What a branch does when its message has come, at once or later.
fn continuations(code: &mut Code<'_, '_>, end: End) {
    let plan = code.plan;
    let branch = plan.branch(end);
    let Operation::In { channel, patterns, .. } = &branch.operation else { return };
    let channel = channel.0 as usize;
    let data = &plan.channels[channel];
    let process = &plan.processes[end.process];
    let (name, frame, own) = (plan.branch_name(end), plan.frame(end.process), plan.own_id(end.process));
    let park = plan.park_name(end);
    code.mark(branch.location);
    if plan.program.channels[channel].boundary != Boundary::FromWorld && !data.writers.is_empty() {
        let message = format!("{}_m", data.name);
        let source = parts(code, channel, &message, View::Program);
        if is_slow(plan, channel) {
            meet_slowly(code, end, channel, patterns);
        } else if plan.program.channels[channel].policy == Policy::Receiver {
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
            push(code, &own);
            match plan.program.channels[channel].policy {
                Policy::Sender => code.line("goto carry_on;"),
                Policy::Receiver | Policy::Queue => code.line("goto dispatch;"),
            }
        }
    }
    line!(code, "{name}_go:");
    code.line(";");
    for value in plan.parked_parameters(end) {
        line!(code, "{} = {frame}park.{park}.p{};", code.value(value), value.0);
    }
    line!(code, "goto {}_{};", process.name, branch.then.0);
}

/// The dispatch table: where each program counter goes on.
pub(crate) fn dispatch(code: &mut Code<'_, '_>) {
    let plan = code.plan;
    for (index, process) in plan.processes.iter().enumerate() {
        let mut case = |pc: u32, label: &str| {
            line!(code, "case {pc}:");
            code.indent += 1;
            if plan.is_direct() {
                trace(code, "'r'", &plan.own_id(index), "0", "0", "0");
            }
            enter(code, index, "self");
            line!(code, "goto {}_{label};", process.name);
            code.indent -= 1;
        };
        case(process.start_pc, "start");
        for (wait_index, wait) in process.waits.iter().enumerate() {
            let data = plan.wait(index, wait_index);
            for (number, branch) in data.branches.iter().enumerate() {
                let label = match branch.operation {
                    Operation::In { .. } => format!("w{}_b{number}_go", wait.block.0),
                    Operation::Out { .. } | Operation::After { .. } => branch.then.0.to_string(),
                };
                case(wait.pc + 1 + number as u32, &label);
            }
            if let Some(otherwise) = data.otherwise {
                case(wait.pc + 1 + data.branches.len() as u32, &otherwise.0.to_string());
            }
            if wait.retries {
                case(wait.pc, &format!("w{}_try", wait.block.0));
            }
        }
        for (block, pc) in &process.yields {
            let Terminator::Yield(edge) = &plan.program.processes[index].body.blocks[block.0 as usize].terminator
            else {
                unreachable!("yields are planned from their blocks")
            };
            case(*pc, &edge.to.0.to_string());
        }
    }
}

/// The instances that are tried again when the world is polled.
pub(crate) fn poll_table(code: &mut Code<'_, '_>) {
    let plan = code.plan;
    for (index, process) in plan.processes.iter().enumerate() {
        for (wait_index, wait) in process.waits.iter().enumerate() {
            if wait.polled {
                line!(code, "case {}:", wait.pc);
                code.indent += 1;
                enter(code, index, "poll_at");
                line!(code, "goto {}_try;", plan.wait_name(index, wait_index));
                code.indent -= 1;
            }
        }
    }
}

/// Whether any wait has regions, whose trial may have to be undone.
pub(crate) fn needs_undo(plan: &Plan<'_>) -> bool {
    !plan.pools.is_empty()
        && (0..plan.processes.len())
            .any(|process| (0..plan.processes[process].waits.len()).any(|wait| has_regions(plan.wait(process, wait))))
}
