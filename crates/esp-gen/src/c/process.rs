//! The code of the processes inside the one function that holds them all: blocks become labels, a rendezvous becomes
//! a jump from one process into another (EV, section IV: process-based, no stacks). The schedule is the reference's
//! section 9. What happens at a rendezvous is in `meeting`, at the world's channels in `outside`.
//!
//! ```text
//!   P_w4:            arrive: guards, deadlines
//!   P_w4_try:        look for a partner; polled waits come back here
//!   (wait)           remember pc and queue, dispatch the next instance
//!   P_w4_later:      a `pri alt` it could meet has to look first: queue behind that, to try again
//!   P_w4_b0_bind:    a message is in c_m: keep its parts, go on          (the receiver continues)
//!   P_w4_b0_later:   keep its parts beside the frame, join the ready list
//!   P_w4_b0_go:      dispatched again: fetch them, go on
//! ```

use super::analysis::{Home, SlotHome, used_slots};
use super::code::{Code, Scope, line};
use super::direct::{go_back, push_self, stop, stopped};
use super::functions::switch;
use super::matching::{blocked_bits, open_condition};
use super::meeting::{continuations, receive, send};
use super::outside::{Taker, elapse, is_sent_out, receive_from_world, send_out, send_to_world};
use super::path_functions::go_on_paths;
use super::plan::{End, Plan, branch_channel, has_regions};
use super::priority::held_call;
use super::{TraceMode, paths};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// How long who runs may go on.
pub(crate) struct Turns {
    /// Operations of one turn.
    pub(crate) operations: u32,
    /// Turns between two looks at the world.
    pub(crate) until_poll: u32,
    /// Turns of one call of the step, rounded up to the next look at the world: then the caller is asked to step again,
    /// so that a program that computes for ever leaves it in control.
    pub(crate) until_leave: u32,
}

const QUEUED: Turns = Turns { operations: 64, until_poll: 64, until_leave: 16384 };

/// A turn is that of a chain of processes, and begins a while after it was left. The world is looked at as often.
const DIRECT: Turns = Turns { operations: 1024, until_poll: 4, until_leave: 1024 };

/// The turns of a program.
pub(crate) fn turns(plan: &Plan<'_>) -> &'static Turns {
    if plan.direct.pcs.is_empty() { &QUEUED } else { &DIRECT }
}

/// Writes one process.
pub(crate) fn write(code: &mut Code<'_, '_>, process: usize) {
    code.scope = Scope::Process(process);
    let plan = code.plan;
    let data = &plan.processes[process];
    let name = &data.name;
    let blocks: Vec<BlockId> =
        data.homes.main.iter().copied().filter(|block| !plan.is_in_path_function(process, *block)).collect();
    code.unmark();
    line!(code, "");
    line!(code, "/* process {} */", plan.program.processes[process].name);
    line!(code, "{name}_start:");
    write_blocks(code, process, &blocks);
    code.unmark();
    enter_loops(code, process);
    go_on_paths(code, process);
    stopped(code, process);
    if code.text.contains(&format!("goto {name}_fault;")) {
        line!(code, "{name}_fault:");
        line!(code, "t->instance = {};", plan.own_id(process));
        line!(code, "goto faulted;");
    }
}

/// Writes blocks of a process.
pub(crate) fn write_blocks(code: &mut Code<'_, '_>, process: usize, blocks: &[BlockId]) {
    let name = &code.plan.processes[process].name;
    for (index, id) in blocks.iter().enumerate() {
        let block = &code.body().blocks[id.0 as usize];
        code.in_loop = code.plan.processes[process].homes.held.loop_of(*id);
        let inside = if code.in_loop.is_some() { INSIDE } else { "" };
        line!(code, "{name}_{}{inside}:", id.0);
        code.line(";");
        for instruction in &block.instructions {
            code.instruction(instruction);
        }
        let next = blocks.get(index + 1).copied();
        terminator(code, process, *id, next);
    }
    code.in_loop = None;
}

/// What the labels of blocks end in where their loop holds what it needs.
const INSIDE: &str = "_inside";

/// Where loops are entered that hold values of the frame.
fn enter_loops(code: &mut Code<'_, '_>, process: usize) {
    let plan = code.plan;
    let (name, held) = (&plan.processes[process].name, &plan.processes[process].homes.held);
    for block in held.entered() {
        line!(code, "{name}_{}:", block.0);
        for class in held.read_at(block) {
            let local = code.held_name(process, class);
            line!(code, "{local} = {};", code.value(class));
        }
        line!(code, "goto {name}_{}{INSIDE};", block.0);
    }
}

/// Names of the locals that blocks of a process define, but for those that are declared already.
pub(crate) fn declare_blocks(code: &mut Code<'_, '_>, process: usize, blocks: &[BlockId], declared: &BTreeSet<Value>) {
    let homes = &code.plan.processes[process].homes;
    let mut classes = BTreeSet::new();
    for block in blocks {
        let block = &code.body().blocks[block.0 as usize];
        let results = block.instructions.iter().filter_map(|instruction| instruction.result);
        for value in block.parameters.iter().copied().chain(results) {
            if let Home::Local(class) = homes.values[value.0 as usize] {
                classes.insert(class);
            }
        }
    }
    for class in homes.held.all() {
        line!(code, "{} {} ESP_UNUSED;", code.c_type(code.value_type(class)), code.held_name(process, class));
    }
    for class in classes.difference(declared) {
        line!(code, "{} {} ESP_UNUSED;", code.c_type(code.value_type(*class)), code.value(*class));
    }
}

/// Names of the locals of a process's code.
pub(crate) fn declare(code: &mut Code<'_, '_>, process: usize) {
    code.scope = Scope::Process(process);
    let plan = code.plan;
    let data = &plan.processes[process];
    if plan.is_array(process) {
        line!(code, "{0}_frame *{0} ESP_UNUSED = &t->{0}[0];", data.name);
        line!(code, "esp_pid {}_self = {};", data.name, data.base);
    }
    let blocks: Vec<BlockId> =
        data.homes.main.iter().copied().filter(|block| !plan.is_in_path_function(process, *block)).collect();
    declare_blocks(code, process, &blocks, &BTreeSet::new());
    let slots = used_slots(code.body(), &blocks);
    declare_slots(code, process, &slots);
}

/// Names of the locals and constants that stand for slots.
pub(crate) fn declare_slots(code: &mut Code<'_, '_>, process: usize, slots: &BTreeSet<SlotId>) {
    let homes = &code.plan.processes[process].homes;
    for slot in slots {
        let (ty, name) = (code.c_type(code.body().slots[slot.0 as usize].ty), code.slot(*slot));
        match homes.slots[slot.0 as usize] {
            SlotHome::Local => line!(code, "{ty} {name} ESP_UNUSED;"),
            SlotHome::Literal => {
                let bytes = &homes.literals[slot];
                let data: Vec<String> = bytes.iter().map(u8::to_string).collect();
                let data = if data.is_empty() { "0".to_string() } else { data.join(", ") };
                line!(code, "static const {ty} {name} ESP_UNUSED = {{ {}, {{ {data} }} }};", bytes.len());
            }
            SlotHome::Frame | SlotHome::Lent | SlotHome::Unused => {}
        }
    }
}

/// Joins the ready list.
pub(crate) fn push(code: &mut Code<'_, '_>, instance: &str) {
    if code.plan.retries() {
        line!(code, "if (!t->queued[{instance}]) t->ready[tail++ & READY_MASK] = {instance};");
        line!(code, "t->queued[{instance}] = 1;");
    } else {
        let entry = if code.plan.is_direct() { format!("t->pc[{instance}]") } else { instance.to_string() };
        line!(code, "t->ready[tail++ & READY_MASK] = {entry};");
    }
}

/// How an instance joins those that wait for the world alone, and how it goes on after it has met the world: the end of
/// many waits, so that it stands at one place where it is compiled for size.
pub(crate) fn at_the_world(code: &mut Code<'_, '_>, instance: &str, pc: &str, then: AtTheWorld) {
    match then {
        AtTheWorld::GoLater => {
            line!(code, "waiting_remove(t, {instance});");
            line!(code, "t->pc[{instance}] = {pc};");
            reopen(code);
            push(code, instance);
            code.line("if (polling) goto poll_next;");
        }
        AtTheWorld::Await => {
            code.line("if (polling) goto poll_next;");
            line!(code, "waiting_append(t, {instance});");
            line!(code, "t->pc[{instance}] = {pc};");
        }
    }
    code.line("goto dispatch;");
}

/// See [`at_the_world`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtTheWorld {
    /// It joins the ready list.
    GoLater,
    /// It joins those that wait.
    Await,
}

impl AtTheWorld {
    /// The macro by which processes name it, and the label of the code that is shared.
    pub(crate) const NAMES: [(AtTheWorld, &str, &str); 2] =
        [(AtTheWorld::GoLater, "GO_LATER", "go_later"), (AtTheWorld::Await, "AWAIT_WORLD", "await_world")];
}

/// Evaluates guards that ask for free objects again, if their number may have changed.
pub(crate) fn reopen(code: &mut Code<'_, '_>) {
    if !code.plan.retries() {
        return;
    }
    code.open("if (t->freed) {");
    code.line("t->tail = tail;");
    code.line("if ((where = reopen(t)) != 0) goto faulted;");
    code.line("tail = t->tail;");
    code.close("}");
}

fn go(code: &mut Code<'_, '_>, process: usize, from: BlockId, edge: &Edge, next: Option<BlockId>) {
    let plan = code.plan;
    let data = &plan.processes[process];
    let (from_loop, to_loop) = (data.homes.held.loop_of(from), data.homes.held.loop_of(edge.to));
    if from_loop == to_loop {
        code.edge(edge);
        if next != Some(edge.to) {
            let inside = if to_loop.is_some() { INSIDE } else { "" };
            line!(code, "goto {}_{}{inside};", data.name, edge.to.0);
        }
        return;
    }
    if from_loop.is_some() {
        for class in data.homes.held.written_between(from, edge.to) {
            let local = code.held_name(process, class);
            line!(code, "{}{} = {local};", plan.frame(process), plan.version(code.body(), class));
        }
    }
    code.edge_between(edge, from_loop, None);
    if to_loop.is_some() || next != Some(edge.to) {
        line!(code, "goto {}_{};", data.name, edge.to.0);
    }
}

fn terminator(code: &mut Code<'_, '_>, process: usize, id: BlockId, next: Option<BlockId>) {
    let block = &code.body().blocks[id.0 as usize];
    let plan = code.plan;
    let data = &plan.processes[process];
    code.mark(block.location);
    match &block.terminator {
        Terminator::Jump(edge) => go(code, process, id, edge, next),
        Terminator::Branch { condition, then, otherwise } => {
            let stays = |edge: &Edge| data.homes.held.goes_on(id, edge.to);
            let condition = code.value(*condition);
            // A loop is more often gone on with than left.
            match (stays(then), stays(otherwise)) {
                (true, false) => code.open(&format!("if (ESP_LIKELY({condition})) {{")),
                (false, true) => code.open(&format!("if (ESP_UNLIKELY({condition})) {{")),
                (true, true) | (false, false) => code.open(&format!("if ({condition}) {{")),
            }
            go(code, process, id, then, None);
            code.close("}");
            go(code, process, id, otherwise, next);
        }
        Terminator::Switch { value, cases, default } => {
            switch(code, *value, cases, default, &mut |code, edge| go(code, process, id, edge, None));
        }
        Terminator::Yield(edge) => {
            code.edge(edge);
            reopen(code);
            line!(code, "t->pc[{}] = {};", plan.own_id(process), data.yields[&id]);
            push_self(code, process);
            code.line("goto dispatch;");
        }
        Terminator::Enter(enter) => {
            paths::enter(code, process, enter, &mut |code, edge| go(code, process, id, edge, None))
        }
        Terminator::Leave(leave) => paths::leave(code, process, leave),
        Terminator::Exit(value) => {
            line!(code, "t->exit_status = (int32_t)((uint32_t){} & 255u);", code.value(*value));
            code.line("goto finished;");
        }
        Terminator::End => {
            reopen(code);
            line!(code, "t->pc[{}] = 0;", plan.own_id(process));
            stop(code, process);
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
        if let Operation::After { amount, unit } = branch.operation {
            let time = match unit {
                TimeUnit::Nanoseconds(unit_ns) => {
                    format!("esp_deadline(now, {}, INT64_C({unit_ns}))", code.amount(amount))
                }
                TimeUnit::Moment => code.value(amount),
            };
            match open_condition(plan, *end) {
                Some(open) => line!(code, "{frame}deadline[{timer}] = {open} ? {time} : ESP_NEVER;"),
                None => line!(code, "{frame}deadline[{timer}] = {time};"),
            }
            timer += 1;
        }
    }
    if details.parks_first() {
        ends.iter().for_each(|end| park_payload(code, *end));
    }
    reopen(code);
    line!(code, "{name}_try:");
    code.line(";");
    go_back(code, process, wait, &|code| park(code, process, wait));
    if let Some(channel) = only_sends_out(plan, process, wait) {
        send_out(code, ends[0], channel);
        return;
    }
    search(code, process, wait);
    if let Some(otherwise) = data.otherwise {
        if details.defers && details.polled {
            code.line("if (polling) goto poll_next;");
        }
        trace(code, "'e'", &plan.own_id(process), "0", "0", "0");
        if details.is_straight {
            go_straight_on(code, process, otherwise);
        } else {
            let pc = details.pc + 1 + data.branches.len() as u32;
            go_on(code, process, otherwise, pc);
        }
    } else if awaits_world_alone(plan, process, wait) {
        line!(code, "AWAIT_WORLD({}, {});", plan.own_id(process), details.pc);
    } else {
        if details.polled {
            code.line("if (polling) goto poll_next;");
        }
        if details.stays_tried() {
            line!(code, "if (t->pc[{}] == {}) goto dispatch;", plan.own_id(process), details.pc);
        } else if !details.parks_first() {
            ends.iter().for_each(|end| park_payload(code, *end));
        }
        park(code, process, wait);
        stop(code, process);
    }
    if details.defers {
        line!(code, "{name}_later:");
        code.open(&format!("if (t->pc[{}] != {}) {{", plan.own_id(process), details.pc));
        park(code, process, wait);
        code.close("}");
        push(code, &plan.own_id(process));
        code.line("goto dispatch;");
    }
    code.unmark();
    for end in ends.into_iter().filter(|end| !plan.is_straight(*end)) {
        continuations(code, end);
    }
}

/// Whether an instance that waits there joins those that wait for the world, and nothing else.
fn awaits_world_alone(plan: &Plan<'_>, process: usize, wait: usize) -> bool {
    let details = &plan.processes[process].waits[wait];
    let waits_as_others = details.polled && !details.stays_tried() && !details.stamped;
    waits_as_others && blocked_bits(plan, process, wait).is_empty() && !plan.direct.has_callers(process)
}

/// The channel of a wait that does nothing but send a message to the world.
fn only_sends_out(plan: &Plan<'_>, process: usize, wait: usize) -> Option<usize> {
    let data = plan.wait(process, wait);
    let [Branch { operation: Operation::Out { channel, payload: Payload::Ready(_), .. }, guard: Guard::Open, .. }] =
        &data.branches[..]
    else {
        return None;
    };
    let channel = channel.0 as usize;
    let end = End { process, wait, branch: 0 };
    let alone = data.otherwise.is_none() && awaits_world_alone(plan, process, wait) && !plan.is_held(end);
    (alone && !plan.processes[process].waits[wait].defers && is_sent_out(plan, channel)).then_some(channel)
}

/// An instance becomes one of those that wait.
fn park(code: &mut Code<'_, '_>, process: usize, wait: usize) {
    let plan = code.plan;
    let details = &plan.processes[process].waits[wait];
    for (text, bit) in blocked_bits(plan, process, wait) {
        line!(code, "{text} |= {bit};");
    }
    if details.stamped {
        line!(code, "{}stamp = ++t->stamp;", plan.frame(process));
    }
    if details.polled {
        line!(code, "waiting_append(t, {});", plan.own_id(process));
    }
    line!(code, "t->pc[{}] = {};", plan.own_id(process), details.pc);
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
    if !internal && plan.is_held(end) {
        let held = held_call(plan, end, &plan.own_id(end.process), &end.branch.to_string());
        tests.push(format!("!(polling && {held})"));
    }
    tests.extend(open_condition(plan, end).map(|open| format!("({open})")));
    let open = (!tests.is_empty()).then(|| tests.join(" && "));
    if let Some(open) = &open {
        code.open(&format!("if ({open}) {{"));
    }
    // What faults from here on, faults on the channel.
    code.channel = branch_channel(branch).map(|(channel, _)| channel);
    match &branch.operation {
        Operation::In { channel, .. } => match plan.program.channels[channel.0 as usize].boundary {
            Boundary::FromEnvironment => receive_from_world(code, end, channel.0 as usize, Taker::Itself),
            Boundary::Internal | Boundary::ToEnvironment => receive(code, end, channel.0 as usize),
        },
        Operation::Out { channel, payload, .. } => match plan.program.channels[channel.0 as usize].boundary {
            Boundary::ToEnvironment => send_to_world(code, end, channel.0 as usize, payload, Taker::Itself),
            Boundary::Internal | Boundary::FromEnvironment => send(code, end, channel.0 as usize, payload),
        },
        Operation::After { .. } => {
            elapse(code, end, *timer, Taker::Itself);
            *timer += 1;
        }
    }
    code.channel = None;
    if open.is_some() {
        code.close("}");
    }
}

/// After one operation of the turn: goes on there, or queues if it was the last.
pub(crate) fn go_on(code: &mut Code<'_, '_>, process: usize, block: BlockId, pc: u32) {
    let plan = code.plan;
    code.open("if (--left == 0) {");
    line!(code, "t->pc[{}] = {pc};", plan.own_id(process));
    push_self(code, process);
    code.line("goto dispatch;");
    code.close("}");
    go_straight_on(code, process, block);
}

/// Goes on there at once.
pub(crate) fn go_straight_on(code: &mut Code<'_, '_>, process: usize, block: BlockId) {
    let plan = code.plan;
    trace(code, "'r'", &plan.own_id(process), "0", "0", "0");
    line!(code, "goto {}_{};", plan.processes[process].name, block.0);
}

pub(crate) fn resume_pc(plan: &Plan<'_>, end: End) -> u32 {
    plan.processes[end.process].waits[end.wait].pc + 1 + end.branch as u32
}

pub(crate) fn trace(code: &mut Code<'_, '_>, kind: &str, i: &str, b: &str, j: &str, b2: &str) {
    match code.plan.options.trace {
        TraceMode::Callback => line!(code, "if (t->trace) t->trace(t->trace_user, {kind}, {i}, {b}, {j}, {b2});"),
        TraceMode::None => {}
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

/// The dispatch table: where each program counter goes on.
pub(crate) fn dispatch(code: &mut Code<'_, '_>) {
    let plan = code.plan;
    let mut resumed = Vec::new();
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
                let pauses = process.paths.iter().any(|path| path.pauses.contains(&(wait.block, number)));
                if wait.is_straight && !pauses {
                    continue;
                }
                let label = match branch.operation {
                    _ if pauses => format!("w{}_b{number}_go", wait.block.0),
                    Operation::In { .. } => format!("w{}_b{number}_go", wait.block.0),
                    Operation::Out { .. } | Operation::After { .. } => branch.then.0.to_string(),
                };
                case(wait.pc + 1 + number as u32, &label);
            }
            if let Some(otherwise) = data.otherwise
                && !wait.is_straight
            {
                case(wait.pc + 1 + data.branches.len() as u32, &otherwise.0.to_string());
            }
            if wait.is_retried() {
                case(wait.pc, &format!("w{}_try", wait.block.0));
            }
            if wait.retries_at_quiescence && !wait.is_retried() {
                resumed.push((index, wait.pc, plan.wait_name(index, wait_index)));
            }
            if let Some(pc) = wait.resume_pc {
                resumed.push((index, pc, plan.wait_name(index, wait_index)));
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
    for (index, process) in plan.processes.iter().enumerate() {
        for (block, pc) in &process.resumes {
            line!(code, "case {pc}:");
            code.indent += 1;
            if plan.is_direct() {
                trace(code, "'r'", &plan.own_id(index), "0", "0", "0");
            }
            enter(code, index, "self");
            line!(code, "goto {}_{};", process.name, block.0);
            code.indent -= 1;
        }
    }
    // Nothing is told of the middle of a turn, nor of a look around at rest.
    for (process, pc, wait) in resumed {
        line!(code, "case {pc}:");
        code.indent += 1;
        enter(code, process, "self");
        line!(code, "goto {wait}_try;");
        code.indent -= 1;
    }
}

/// The instances that are tried again when the world is polled.
pub(crate) fn poll_table(code: &mut Code<'_, '_>, instance: &str) {
    let plan = code.plan;
    for (index, process) in plan.processes.iter().enumerate() {
        for (wait_index, wait) in process.waits.iter().enumerate() {
            if wait.polled {
                line!(code, "case {}:", wait.pc);
                code.indent += 1;
                enter(code, index, instance);
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
