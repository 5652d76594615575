//! Fast paths in C: a path's code is part of its trigger's, so that only the way in and the way out are written here.
//! What it takes of other instances it takes from their frames, where they find it again; slots stay in their frames.
//! Their values are locals while the path runs.

use super::Style;
use super::analysis::{Home, Pins};
use super::code::{Code, Scope, line};
use super::header::{bits, pc_bits};
use super::matching::blocked_bits;
use super::meeting::unqueue;
use super::path_functions::{call, path_functions, shared_slots};
use super::plan::Plan;
use super::process::{enter as enter_instance, push, reopen};
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// What fast paths ask of a process's values and slots.
pub(crate) fn pins(program: &Program, process: usize, style: Style) -> Pins {
    let mut pins = Pins::default();
    let of = |instance: u32| program.process_of(instance).map(|(process, _)| process.0 as usize);
    pins.lent.extend(program.captured_slots(ProcessId(process as u32)));
    // What a function gives back is where both sides find it.
    let body = &program.processes[process].body;
    let functions = path_functions(program, body, style);
    for function in &functions {
        pins.blocks.extend(&function.exits);
        pins.asks.extend(&function.asks);
        pins.pauses.extend(&function.pauses);
    }
    pins.slots.extend(shared_slots(body, &functions));
    for member in program.paths.iter().flat_map(|path| &path.members) {
        if of(member.instance) == Some(process) {
            pins.blocks.insert(member.start.0);
            pins.slots.extend(member.slots.iter().map(|(own, _)| *own));
        }
    }
    for block in program.processes.iter().flat_map(|process| &process.body.blocks) {
        let Terminator::Leave(leave) = &block.terminator else { continue };
        let path = &program.paths[leave.path.0 as usize];
        for (number, resume) in &leave.members {
            if of(path.members[*number as usize].instance) == Some(process) {
                pins.blocks.insert(resume.to);
                pins.resumes.insert(resume.to);
            }
        }
    }
    pins
}

impl Plan<'_> {
    /// Finds what stands for slots of other instances.
    pub(super) fn find_lent(&mut self) {
        for path in &self.program.paths {
            let (trigger, _) = frame_of(self, path.trigger);
            for member in &path.members {
                let (process, frame) = frame_of(self, member.instance);
                for (own, here) in &member.slots {
                    let name = self.frame_member(process, *own);
                    self.processes[trigger].lent.insert(*here, format!("{frame}{name}"));
                }
            }
        }
    }
}

/// The frame of an instance, from everywhere.
pub(crate) fn frame_of(plan: &Plan<'_>, instance: u32) -> (usize, String) {
    let (process, replica) = plan.program.process_of(instance).expect("a verified path names instances");
    let process = process.0 as usize;
    let name = &plan.processes[process].name;
    let frame = if plan.is_array(process) { format!("t->{name}[{replica}].") } else { format!("t->{name}.") };
    (process, frame)
}

/// A value of another instance that survives a wait.
fn value_of(code: &Code<'_, '_>, instance: u32, value: Value) -> String {
    let plan = code.plan;
    let (process, frame) = frame_of(plan, instance);
    let body = &plan.program.processes[process].body;
    match plan.processes[process].homes.values[value.0 as usize] {
        Home::Frame(class) => format!("{frame}{}", plan.version(body, class)),
        Home::Constant(constant) => code.constant(constant, body.values[value.0 as usize].ty),
        Home::OwnId => instance.to_string(),
        Home::Local(_) => unreachable!("what a path takes survives waits"),
    }
}

/// The wait a member starts at.
fn start(plan: &Plan<'_>, member: &PathMember) -> (usize, usize) {
    let (process, _) = frame_of(plan, member.instance);
    let wait = plan.processes[process].waits.iter().position(|wait| wait.block == member.start.0);
    (process, wait.expect("a verified path starts at waits"))
}

/// The entry test.
pub(crate) fn enter(
    code: &mut Code<'_, '_>,
    process: usize,
    enter: &Enter,
    go: &mut dyn FnMut(&mut Code<'_, '_>, &Edge),
) {
    let plan = code.plan;
    let path = &plan.program.paths[enter.path.0 as usize];
    let mut in_place = Vec::new();
    for member in &path.members {
        let (process, wait) = start(plan, member);
        let (_, frame) = frame_of(plan, member.instance);
        let details = &plan.processes[process].waits[wait];
        let mut test = format!("t->pc[{}] == {}", member.instance, details.pc);
        match plan.wait(process, wait).branches[member.start.1 as usize].guard {
            Guard::Open => {}
            Guard::Value(_) | Guard::Region(_) => {
                let branch = member.start.1;
                test = format!("{test} && ({frame}open[{}] >> {} & 1u)", branch / 32, branch % 32);
            }
        }
        in_place.push(test);
    }
    let own = plan.is_array(process).then(|| format!("{} == {}u", plan.own_id(process), path.trigger));
    in_place.splice(0..0, own.clone());
    let all = if in_place.is_empty() { "true".to_string() } else { in_place.join(" && ") };
    code.open(&format!("if ({all}) {{"));
    let function = plan.processes[process].paths.iter().position(|function| function.entry == enter.then);
    if function.is_none() {
        take(code, enter.then);
    }
    path.members.iter().for_each(|member| leave_wait(code, process, path.trigger, member));
    match function {
        Some(function) => call(code, process, function),
        None => line!(code, "goto {}_{};", plan.processes[process].name, enter.then.0),
    }
    code.close("}");
    about_to_come(code, path, own.as_deref(), |code| go(code, &enter.later));
    go(code, &enter.otherwise);
}

/// Up to so many members are asked one after the other whether they are about to run: a loop takes less code for more.
const FEW: usize = 2;

/// What is done if a member is on the ready list: it neither runs nor waits.
fn about_to_come(code: &mut Code<'_, '_>, path: &FastPath, own: Option<&str>, then: impl FnOnce(&mut Code<'_, '_>)) {
    let plan = code.plan;
    let waits: Vec<Vec<u32>> = path
        .members
        .iter()
        .map(|member| plan.processes[frame_of(plan, member.instance).0].waits.iter().map(|wait| wait.pc).collect())
        .collect();
    if path.members.len() <= FEW {
        let is_coming = |(member, waits): (&PathMember, &Vec<u32>)| {
            let at = format!("t->pc[{}]", member.instance);
            let tests = std::iter::once(at.clone()).chain(waits.iter().map(|wait| format!("{at} != {wait}")));
            format!("({})", tests.collect::<Vec<_>>().join(" && "))
        };
        let coming: Vec<String> = path.members.iter().zip(&waits).map(is_coming).collect();
        let coming = if coming.is_empty() { "false".to_string() } else { coming.join(" || ") };
        let test = own.map_or(coming.clone(), |own| format!("{own} && ({coming})"));
        code.open(&format!("if ({test}) {{"));
        then(code);
        code.close("}");
        return;
    }
    code.open(&own.map_or("{".to_string(), |own| format!("if ({own}) {{")));
    let instances: Vec<u32> = path.members.iter().map(|member| member.instance).collect();
    let mut is_wait = vec![0u8; waits.iter().flatten().max().map_or(1, |last| *last as usize / 8 + 1)];
    waits.iter().flatten().for_each(|wait| is_wait[*wait as usize / 8] |= 1 << (wait % 8));
    let list = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(", ");
    line!(code, "static const uint8_t waits[] = {{{}}};", list(&mut is_wait.iter().map(u8::to_string)));
    let first = instances[0];
    let instance = if instances.iter().copied().eq((first..).take(instances.len())) {
        format!("n_ + {first}")
    } else {
        let bits = bits(plan.instances);
        line!(code, "static const uint{bits}_t members[] = {{{}}};", list(&mut instances.iter().map(u32::to_string)));
        "members[n_]".to_string()
    };
    code.line("uint32_t n_;");
    code.open(&format!("for (n_ = 0; n_ < {}u; n_++) {{", instances.len()));
    line!(code, "const uint32_t at_ = t->pc[{instance}];");
    code.open(&format!("if (at_ && !(at_ < {}u && (waits[at_ / 8] >> at_ % 8 & 1u))) {{", is_wait.len() * 8));
    then(code);
    code.close("}");
    code.close("}");
    code.close("}");
}

/// What a path takes of its members, which are where they start.
pub(crate) fn take(code: &mut Code<'_, '_>, entry: BlockId) {
    let body = code.body();
    let enters = body.blocks.iter().find_map(|block| match &block.terminator {
        Terminator::Enter(enter) if enter.then == entry => Some(enter.path),
        _ => None,
    });
    let path = &code.plan.program.paths[enters.expect("a path is entered").0 as usize];
    let mut parameters = body.blocks[entry.0 as usize].parameters.iter();
    for member in &path.members {
        for value in &member.values {
            let from = value_of(code, member.instance, *value);
            let to = code.value(*parameters.next().expect("a verified entry has a parameter for each value"));
            line!(code, "{to} = {from};");
        }
    }
}

/// A member waits no longer.
fn leave_wait(code: &mut Code<'_, '_>, process: usize, trigger: u32, member: &PathMember) {
    let plan = code.plan;
    let (other, wait) = start(plan, member);
    code.scope = Scope::Process(other);
    let bits = blocked_bits(plan, other, wait);
    if !bits.is_empty() {
        enter_instance(code, other, &format!("{}u", member.instance));
        for (text, bit) in bits {
            line!(code, "{text} &= ~{bit};");
        }
    }
    code.scope = Scope::Process(process);
    if other == process {
        enter_instance(code, process, &format!("{trigger}u"));
    }
    if plan.processes[other].waits[wait].polled {
        line!(code, "waiting_remove(t, {});", member.instance);
    }
    // It may be on the ready list all the same, to look for partners again.
    if plan.processes[other].waits[wait].is_retried() {
        unqueue(code, &member.instance.to_string());
    }
    line!(code, "t->pc[{}] = 0;", member.instance);
}

/// The way out: everybody gets its values, the others join the ready list, the trigger goes on.
pub(crate) fn leave(code: &mut Code<'_, '_>, process: usize, leave: &Leave) {
    let plan = code.plan;
    let path = &plan.program.paths[leave.path.0 as usize];
    for (number, resume) in &leave.members {
        let instance = path.members[*number as usize].instance;
        for (own, becomes) in &resume.values {
            let to = value_of(code, instance, *own);
            let (other, _) = frame_of(plan, instance);
            match plan.processes[other].homes.values[own.0 as usize] {
                Home::Frame(_) | Home::Local(_) => {
                    let from = code.value(*becomes);
                    line!(code, "{to} = {from};");
                }
                Home::Constant(_) | Home::OwnId => {}
            }
        }
    }
    reopen(code);
    let back = leave.members.iter().map(|(number, resume)| {
        let instance = path.members[*number as usize].instance;
        let (other, _) = frame_of(plan, instance);
        (instance, plan.processes[other].resumes[&resume.to])
    });
    let values =
        leave.trigger.values.iter().filter(|(own, _)| match plan.processes[process].homes.values[own.0 as usize] {
            Home::Frame(_) | Home::Local(_) => true,
            Home::Constant(_) | Home::OwnId => false,
        });
    let moves: Vec<(Value, Value)> = values.copied().collect();
    let returned = code.path.map(|function| plan.returned(process, function, leave.trigger.to));
    if come_back_together(plan, leave) {
        let all: Vec<String> = back.map(|(instance, pc)| format!("{instance}, {pc}")).collect();
        let table = format!(
            "static const uint{}_t back[] = {{{}, {}}};",
            back_bits(plan),
            all.join(", "),
            returned.unwrap_or_default()
        );
        let call = format!("come_back(t, back, {})", leave.members.len());
        code.moves(&moves);
        if code.path.is_none_or(|function| plan.holds_tail(process, function)) {
            code.line("t->tail = tail;");
        }
        code.open("{");
        code.line(&table);
        match returned {
            Some(_) => line!(code, "return {call};"),
            None => line!(code, "(void){call};"),
        }
        code.close("}");
        if returned.is_none() {
            code.line("tail = t->tail;");
            line!(code, "goto {}_{};", plan.processes[process].name, leave.trigger.to.0);
        }
        return;
    }
    for (instance, pc) in back {
        line!(code, "t->pc[{instance}] = {pc};");
        push(code, &instance.to_string());
    }
    code.moves(&moves);
    match returned {
        Some(number) => {
            code.line("t->tail = tail;");
            line!(code, "return {number};");
        }
        None => line!(code, "goto {}_{};", plan.processes[process].name, leave.trigger.to.0),
    }
}

/// From so many members on they join the ready list in a loop, which takes less code than one after the other.
const MANY: usize = 3;

/// Whether members come back in a loop.
pub(crate) fn come_back_together(plan: &Plan<'_>, leave: &Leave) -> bool {
    leave.members.len() >= MANY && !plan.retries()
}

/// Bits of the numbers of instances and places, and of what functions of paths return.
fn back_bits(plan: &Plan<'_>) -> u32 {
    let functions = plan.processes.iter().flat_map(|process| &process.paths);
    let most = functions.map(|function| function.exits.len() as u32).max().unwrap_or_default();
    bits(plan.instances.max(most)).max(pc_bits(plan))
}

/// The loop in which the members of a path join the ready list, if some path is left that way.
pub(crate) fn come_back(plan: &Plan<'_>) -> String {
    let comes_back = |block: &Block| match &block.terminator {
        Terminator::Leave(leave) => come_back_together(plan, leave),
        _ => false,
    };
    let bodies = plan.program.processes.iter().map(|process| &process.body);
    let bodies: Vec<&Body> = bodies.filter(|body| body.blocks.iter().any(comes_back)).collect();
    if bodies.is_empty() {
        return String::new();
    }
    // What has a loop is left seldom, so that compilers may put the ways out elsewhere and make them small.
    let apart = if bodies.into_iter().all(loops_on_path) { "ESP_OUTLINE" } else { "ESP_APART" };
    let entry = if plan.is_direct() { "back[1]" } else { "back[0]" };
    format!(
        "\n/* Instances and the places where they go on; what is returned is behind them. */\n\
         {apart} uint32_t come_back({}_t *t, const uint{}_t *back, uint32_t count)\n{{\n    \
             uint32_t tail = t->tail;\n    \
             for (; count > 0; count--, back += 2) {{\n        \
                 t->pc[back[0]] = back[1];\n        \
                 t->ready[tail++ & READY_MASK] = {entry};\n    \
             }}\n    \
             t->tail = tail;\n    \
             return back[0];\n}}\n",
        plan.prefix,
        back_bits(plan)
    )
}

/// Per block: whether it is code of a path of this body.
pub(crate) fn on_path(body: &Body) -> Vec<bool> {
    let mut on_path = vec![false; body.blocks.len()];
    let entries = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Enter(enter) => Some(enter.then),
        _ => None,
    });
    let mut work: Vec<BlockId> = entries.collect();
    let mut seen = BTreeSet::new();
    while let Some(block) = work.pop() {
        if seen.insert(block) {
            on_path[block.0 as usize] = true;
            work.extend(successors(&body.blocks[block.0 as usize].terminator, Regions::Skip));
        }
    }
    on_path
}

/// Whether the code of paths of a body goes round.
fn loops_on_path(body: &Body) -> bool {
    let on_path = on_path(body);
    // Blocks that only such lead to as have been taken out are taken out, too: loops are left.
    let mut ways = vec![0usize; body.blocks.len()];
    let next = |block: usize| successors(&body.blocks[block].terminator, Regions::Skip);
    let blocks: Vec<usize> = (0..body.blocks.len()).filter(|block| on_path[*block]).collect();
    blocks.iter().flat_map(|block| next(*block)).for_each(|to| ways[to.0 as usize] += 1);
    let mut work: Vec<usize> = blocks.iter().copied().filter(|block| ways[*block] == 0).collect();
    let mut out = 0;
    while let Some(block) = work.pop() {
        out += 1;
        for to in next(block) {
            ways[to.0 as usize] -= 1;
            if ways[to.0 as usize] == 0 {
                work.push(to.0 as usize);
            }
        }
    }
    out < blocks.len()
}
