//! Direct hand-off ("Fast Paths" 2; the design's rendezvous resolution): a receiver that goes on is like a function that
//! its sender has called. The sender does not join the ready list; when the receiver waits or ends, the sender goes on.
//!
//! ```text
//!   read --out--> evener --out--> swap          swap waits at its `in`: evener goes on; that waits: read goes on
//!   (called)      (called)        (runs)
//! ```
//!
//! A sender that is so called has a program counter of its own, which says that it is ready but not on the list. At any
//! time those senders are a chain, each called the next, that ends in who runs: who runs and stops without the chain
//! (its turn is over, it yields, meets others or the world) puts all of the chain on the ready list first. So everybody
//! who is ready runs within the bounds that hold without this.
//!
//! Only where both ends of a channel are known, one instance each. All else goes by the ready list.

use super::code::{Code, line};
use super::plan::{End, Plan};
use super::process::{push, resume_pc, trace};
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{Boundary, Guard, HandOff, Operation, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Of how many places a sender may have called from, one by one is asked.
const MOST_ASKED: usize = 3;

/// Which senders are gone back to.
#[derive(Default)]
pub(crate) struct Direct {
    /// The program counter of each sender's end while its receiver runs.
    pub(crate) pcs: BTreeMap<End, u32>,
    /// Per process: the ends of those that call it.
    callers: BTreeMap<usize, Vec<End>>,
    /// Channels between processes by name, and why they are none of these.
    pub(crate) channels: Vec<(String, Option<&'static str>)>,
}

impl Direct {
    /// Whether this is one end of the only process that calls the receiver, so that nobody else can have called it.
    pub(crate) fn is_called_only_by(&self, receiver: usize, writer: End) -> bool {
        let processes: BTreeSet<usize> = self.callers(receiver).iter().map(|end| end.process).collect();
        self.pcs.contains_key(&writer) && processes.len() == 1
    }

    /// Whether somebody may have called a process, so that it goes back when it stops.
    pub(crate) fn has_callers(&self, process: usize) -> bool {
        !self.callers(process).is_empty()
    }

    fn callers(&self, process: usize) -> &[End] {
        self.callers.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Whether a process may be among the callers of its own callers.
    fn may_call_itself(&self, process: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut work: Vec<usize> = self.callers(process).iter().map(|end| end.process).collect();
        while let Some(caller) = work.pop() {
            if seen.insert(caller) {
                work.extend(self.callers(caller).iter().map(|end| end.process));
            }
        }
        seen.contains(&process)
    }
}

/// Finds them. `pc` is the first free program counter.
pub(crate) fn direct(plan: &Plan<'_>, mut pc: u32) -> Direct {
    let mut direct = Direct::default();
    match plan.program.hand_off {
        HandOff::Queued => return direct,
        HandOff::Direct => {}
    }
    let whole = whole(plan);
    for (index, channel) in plan.program.channels.iter().enumerate() {
        let data = &plan.channels[index];
        let is_used = !data.readers.is_empty() && !data.writers.is_empty();
        if channel.boundary != Boundary::Internal || !is_used {
            continue;
        }
        let why = whole.or_else(|| own(plan, index));
        direct.channels.push((channel.name.to_string(), why));
        if why.is_some() {
            continue;
        }
        for writer in &data.writers {
            direct.pcs.insert(*writer, pc);
            pc += 1;
            let reader = data.readers[0].process;
            direct.callers.entry(reader).or_default().push(*writer);
        }
    }
    direct
}

/// Why no channel of the program is.
fn whole(plan: &Plan<'_>) -> Option<&'static str> {
    let mut waits = plan.processes.iter().flat_map(|process| &process.waits);
    if !plan.program.paths.is_empty() {
        Some("the program has fast paths, which look at the ready list")
    } else if !plan.is_direct() {
        Some("the program has replicas, or guards that ask for free objects")
    } else if plan.retries_at_quiescence() || plan.resumes() || waits.any(|wait| wait.defers || wait.passes_by) {
        Some("the program has a `pri alt` that others have to ask")
    } else if plan.program.channels.iter().any(|channel| channel.policy != Policy::Receiver) {
        Some("a channel of the program says who goes on")
    } else {
        None
    }
}

/// Why a channel is not.
fn own(plan: &Plan<'_>, channel: usize) -> Option<&'static str> {
    let data = &plan.channels[channel];
    if data.writer_instances != 1 {
        Some("several processes write it")
    } else if data.reader_instances != 1 {
        Some("several processes read it")
    } else {
        None
    }
}

/// A sender hands its message over, to go on when the receiver stops.
pub(crate) fn call(code: &mut Code<'_, '_>, sender: End, bind: &dyn Fn(&str) -> String) {
    let plan = code.plan;
    let own = plan.own_id(sender.process);
    code.open("if (--left == 0) {");
    line!(code, "t->pc[{own}] = {};", resume_pc(plan, sender));
    push(code, &own);
    release(code, sender.process);
    code.line(&bind("later"));
    code.close("}");
    line!(code, "t->pc[{own}] = {};", plan.direct.pcs[&sender]);
    code.line(&bind("bind"));
}

/// The instance that runs joins the ready list, and before it those that have called it.
pub(crate) fn push_self(code: &mut Code<'_, '_>, process: usize) {
    release(code, process);
    push(code, &code.plan.own_id(process));
}

/// The running sender's callers join the ready list, unless it becomes one of them.
pub(crate) fn release_unless_calling(code: &mut Code<'_, '_>, sender: End) {
    if !code.plan.direct.pcs.contains_key(&sender) {
        release(code, sender.process);
    }
}

/// Those that have called a process join the ready list.
pub(crate) fn release(code: &mut Code<'_, '_>, process: usize) {
    if code.plan.direct.has_callers(process) {
        line!(code, "tail = {}_release(t, tail);", code.plan.processes[process].name);
    }
}

/// The instance that runs waits or has ended: who has called it goes on.
pub(crate) fn stop(code: &mut Code<'_, '_>, process: usize) {
    if code.plan.direct.has_callers(process) {
        line!(code, "goto {}_stop;", code.plan.processes[process].name);
    } else {
        code.line("goto dispatch;");
    }
}

/// At an `in`, before it looks for a writer: if the only one has called this process, it is not waiting, and goes on. The
/// places that it mostly calls from are asked for one by one, which is quicker than a table.
pub(crate) fn go_back(code: &mut Code<'_, '_>, process: usize, wait: usize, park: &dyn Fn(&mut Code<'_, '_>)) {
    let plan = code.plan;
    let [branch] = &plan.wait(process, wait).branches[..] else { return };
    let Operation::In { channel, .. } = &branch.operation else { return };
    if branch.guard != Guard::Open || plan.wait(process, wait).otherwise.is_some() {
        return;
    }
    let writers = &plan.channels[channel.0 as usize].writers;
    let mut usual: Vec<End> = writers.iter().copied().filter(|end| plan.direct.pcs.contains_key(end)).collect();
    usual.retain(|end| plan.direct.is_called_only_by(process, *end) && is_repeated(plan, *end));
    usual.truncate(MOST_ASKED);
    for end in usual {
        code.open(&format!("if (t->pc[{}] == {}) {{", plan.own_id(end.process), plan.direct.pcs[&end]));
        park(code);
        go_on(code, end);
        code.close("}");
    }
}

/// A sender that was called goes on.
fn go_on(code: &mut Code<'_, '_>, sender: End) {
    let plan = code.plan;
    let own = plan.own_id(sender.process);
    // While it runs, who runs by its call may call it and ask who has.
    if plan.direct.may_call_itself(sender.process) {
        line!(code, "t->pc[{own}] = {};", resume_pc(plan, sender));
    }
    trace(code, "'r'", &own, "0", "0", "0");
    line!(code, "goto {}_{};", plan.processes[sender.process].name, plan.branch(sender).then.0);
}

/// Whether an operation is in a loop.
fn is_repeated(plan: &Plan<'_>, end: End) -> bool {
    let body = &plan.program.processes[end.process].body;
    let own = plan.processes[end.process].waits[end.wait].block;
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![plan.branch(end).then];
    while let Some(block) = work.pop() {
        if block == own {
            return true;
        }
        if !std::mem::replace(&mut seen[block.0 as usize], true) {
            work.extend(successors(&body.blocks[block.0 as usize].terminator, Regions::Include));
        }
    }
    false
}

/// Where a process goes that has stopped.
pub(crate) fn stopped(code: &mut Code<'_, '_>, process: usize) {
    let plan = code.plan;
    let callers = plan.direct.callers(process);
    if callers.is_empty() {
        return;
    }
    line!(code, "{}_stop:", plan.processes[process].name);
    for (caller, ends) in by_process(callers) {
        code.open(&format!("switch (t->pc[{}]) {{", plan.own_id(caller)));
        for end in ends {
            line!(code, "case {}:", plan.direct.pcs[&end]);
            code.indent += 1;
            go_on(code, end);
            code.indent -= 1;
        }
        code.line("default:");
        code.line("    break;");
        code.close("}");
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

/// The functions that put on the ready list who has called a process, and who has called those.
pub(crate) fn releases(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    let prefix = &plan.prefix;
    let called: Vec<usize> = plan.direct.callers.keys().copied().collect();
    for process in &called {
        let name = &plan.processes[*process].name;
        put(&mut text, &format!("\nstatic uint32_t {name}_release({prefix}_t *t, uint32_t tail);"));
    }
    for process in &called {
        let name = &plan.processes[*process].name;
        put(&mut text, &format!("\nstatic uint32_t {name}_release({prefix}_t *t, uint32_t tail)\n{{"));
        for (caller, ends) in by_process(plan.direct.callers(*process)) {
            let own = plan.own_id(caller);
            put(&mut text, &format!("    switch (t->pc[{own}]) {{"));
            for end in ends {
                put(&mut text, &format!("    case {}:", plan.direct.pcs[&end]));
                if !plan.direct.callers(caller).is_empty() {
                    let name = &plan.processes[caller].name;
                    put(&mut text, &format!("        tail = {name}_release(t, tail);"));
                }
                let resume = resume_pc(plan, end);
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
