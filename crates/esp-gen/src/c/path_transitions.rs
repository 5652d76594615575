//! Entry and exit of fast paths. A path's code is part of its trigger's code or a function called from there. On entry
//! its members leave their waits and it loads their values from their frames; while it runs values are locals, and
//! slots stay in their frames. On exit every member gets its values back and joins the ready list; the trigger
//! continues.

use super::continuation::select_instance;
use super::path_call::call_path;
use super::plan::{Plan, unsigned_bits};
use super::ready_list::{push, reopen, unqueue};
use super::storage::{ValueStorage, has_cycle_on_path};
use super::wait_state::blocked_bits;
use super::writer::{Scope, Writer, line};
use quaject_esp_ir::ir::*;

/// The C lvalue of a value of another instance, which survives the wait of that.
fn frame_value(code: &Writer<'_, '_>, instance: u32, value: Value) -> String {
    let plan = code.plan;
    let (process, frame) = plan.instance_frame(instance);
    let body = &plan.program.processes[process].body;
    match plan.processes[process].storage.values[value.0 as usize] {
        ValueStorage::Frame(class) => format!("{frame}{}", plan.version(body, class)),
        ValueStorage::Constant(constant) => code.constant(constant, body.values[value.0 as usize].ty),
        ValueStorage::OwnId => instance.to_string(),
        ValueStorage::Local(_) => unreachable!("what a path loads survives waits"),
    }
}

/// Whether a value of a process is stored in a variable.
fn is_stored(plan: &Plan<'_>, process: usize, value: Value) -> bool {
    match plan.processes[process].storage.values[value.0 as usize] {
        ValueStorage::Frame(_) | ValueStorage::Local(_) => true,
        ValueStorage::Constant(_) | ValueStorage::OwnId => false,
    }
}

/// The entry of a path: if the guard holds, members leave their waits and the path runs. If a member is on the ready
/// list, control goes along `later`, else along `otherwise`; `jump` writes the jump along an edge.
pub(crate) fn enter_path(
    code: &mut Writer<'_, '_>,
    process: usize,
    enter: &Enter,
    jump: &mut dyn FnMut(&mut Writer<'_, '_>, &Edge),
) {
    let plan = code.plan;
    let path = &plan.program.paths[enter.path.0 as usize];
    let own = plan.is_array(process).then(|| format!("{} == {}u", plan.own_id(process), path.trigger));
    let tests = own.iter().cloned().chain(path.members.iter().map(|member| is_at_start(plan, member)));
    let tests: Vec<String> = tests.collect();
    let guard = if tests.is_empty() { "true".to_string() } else { tests.join(" && ") };
    code.block(&format!("if ({guard}) {{"), |code| {
        let function = plan.processes[process].paths.iter().position(|function| function.entry == enter.then);
        if function.is_none() {
            load_member_values(code, enter.then);
        }
        path.members.iter().for_each(|member| leave_wait(code, process, path.trigger, member));
        match function {
            Some(function) => call_path(code, process, function),
            None => line!(code, "goto {}_{};", plan.processes[process].name, enter.then.0),
        }
    });
    if_member_is_ready(code, path, own.as_deref(), &mut |code| jump(code, &enter.later));
    jump(code, &enter.otherwise);
}

/// Whether a member waits where the path starts, with an open branch.
fn is_at_start(plan: &Plan<'_>, member: &PathMember) -> String {
    let (process, wait) = plan.member_start(member);
    let (_, frame) = plan.instance_frame(member.instance);
    let test = format!("t->pc[{}] == {}u", member.instance, plan.processes[process].waits[wait].pc);
    let branch = member.start.1;
    match plan.wait(process, wait).branches[branch as usize].guard {
        Guard::Open => test,
        Guard::Value(_) | Guard::Region(_) => {
            format!("{test} && ({frame}open[{}] >> {} & 1u)", branch / 32, branch % 32)
        }
    }
}

/// The maximal number of members that are tested for being ready one by one: for more, a loop takes less code.
const MAX_UNROLLED_TESTS: usize = 2;

/// Writes what happens if a member is on the ready list: it neither runs nor waits.
fn if_member_is_ready(
    code: &mut Writer<'_, '_>,
    path: &FastPath,
    own: Option<&str>,
    then: &mut dyn FnMut(&mut Writer<'_, '_>),
) {
    let plan = code.plan;
    let waits_of = |member: &PathMember| -> Vec<u32> {
        plan.processes[plan.instance_frame(member.instance).0].waits.iter().map(|wait| wait.pc).collect()
    };
    let waits: Vec<Vec<u32>> = path.members.iter().map(waits_of).collect();
    if path.members.len() <= MAX_UNROLLED_TESTS {
        let is_ready = |(member, waits): (&PathMember, &Vec<u32>)| {
            let at = format!("t->pc[{}]", member.instance);
            let tests = std::iter::once(at.clone()).chain(waits.iter().map(|wait| format!("{at} != {wait}")));
            format!("({})", tests.collect::<Vec<_>>().join(" && "))
        };
        let ready: Vec<String> = path.members.iter().zip(&waits).map(is_ready).collect();
        let ready = if ready.is_empty() { "false".to_string() } else { ready.join(" || ") };
        let test = own.map_or(ready.clone(), |own| format!("{own} && ({ready})"));
        code.block(&format!("if ({test}) {{"), then);
        return;
    }
    let head = own.map_or("{".to_string(), |own| format!("if ({own}) {{"));
    code.block(&head, |code| loop_over_members(code, path, &waits, then));
}

/// Tests members in a loop, by a table of the program counters of waits.
fn loop_over_members(
    code: &mut Writer<'_, '_>,
    path: &FastPath,
    waits: &[Vec<u32>],
    then: &mut dyn FnMut(&mut Writer<'_, '_>),
) {
    let instances: Vec<u32> = path.members.iter().map(|member| member.instance).collect();
    let mut is_wait = vec![0u8; waits.iter().flatten().max().map_or(1, |last| *last as usize / 8 + 1)];
    waits.iter().flatten().for_each(|wait| is_wait[*wait as usize / 8] |= 1 << (wait % 8));
    let list = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(", ");
    line!(code, "static const uint8_t waits[] = {{{}}};", list(&mut is_wait.iter().map(u8::to_string)));
    let first = instances[0];
    let instance = if instances.iter().copied().eq((first..).take(instances.len())) {
        format!("n_ + {first}")
    } else {
        let bits = unsigned_bits(code.plan.instances);
        line!(code, "static const uint{bits}_t members[] = {{{}}};", list(&mut instances.iter().map(u32::to_string)));
        "members[n_]".to_string()
    };
    code.line("uint32_t n_;");
    code.block(&format!("for (n_ = 0; n_ < {}u; n_++) {{", instances.len()), |code| {
        line!(code, "const uint32_t at_ = t->pc[{instance}];");
        let bits = is_wait.len() * 8;
        code.block(&format!("if (at_ && !(at_ < {bits}u && (waits[at_ / 8u] >> at_ % 8u & 1u))) {{"), then);
    });
}

/// Loads what a path uses of its members, which wait where it starts.
pub(crate) fn load_member_values(code: &mut Writer<'_, '_>, entry: BlockId) {
    let body = code.body();
    let entered = body.blocks.iter().find_map(|block| match &block.terminator {
        Terminator::Enter(enter) if enter.then == entry => Some(enter.path),
        _ => None,
    });
    let path = &code.plan.program.paths[entered.expect("a path is entered").0 as usize];
    let mut parameters = body.blocks[entry.0 as usize].parameters.iter();
    for member in &path.members {
        for value in &member.values {
            let from = frame_value(code, member.instance, *value);
            let to = code.value(*parameters.next().expect("a verified entry has a parameter for each value"));
            line!(code, "{to} = {from};");
        }
    }
}

/// A member leaves its wait.
fn leave_wait(code: &mut Writer<'_, '_>, process: usize, trigger: u32, member: &PathMember) {
    let plan = code.plan;
    let (other, wait) = plan.member_start(member);
    let bits = blocked_bits(plan, other, wait);
    if !bits.is_empty() {
        code.within(Scope::Process(other), |code| {
            select_instance(code, other, &format!("{}u", member.instance));
            for (text, bit) in bits {
                line!(code, "{text} &= ~{bit};");
            }
        });
    }
    if other == process {
        select_instance(code, process, &format!("{trigger}u"));
    }
    if plan.processes[other].waits[wait].polls_environment {
        line!(code, "waiting_remove(t, {});", member.instance);
    }
    // It may be on the ready list nevertheless, to search for partners again.
    if plan.processes[other].waits[wait].may_be_requeued() {
        unqueue(code, &member.instance.to_string());
    }
    line!(code, "t->pc[{}] = 0;", member.instance);
}

/// The exit of a path: members get their values back and join the ready list, the trigger continues.
pub(crate) fn leave_path(code: &mut Writer<'_, '_>, process: usize, leave: &Leave) {
    let plan = code.plan;
    let path = &plan.program.paths[leave.path.0 as usize];
    for (number, resume) in &leave.members {
        let instance = path.members[*number as usize].instance;
        let (other, _) = plan.instance_frame(instance);
        for (own, becomes) in &resume.values {
            let to = frame_value(code, instance, *own);
            if is_stored(plan, other, *own) {
                let from = code.value(*becomes);
                line!(code, "{to} = {from};");
            }
        }
    }
    reopen(code);
    let resumptions = leave.members.iter().map(|(number, resume)| {
        let instance = path.members[*number as usize].instance;
        let (other, _) = plan.instance_frame(instance);
        (instance, plan.processes[other].path_resumptions[&resume.to])
    });
    let resumptions: Vec<(u32, u32)> = resumptions.collect();
    let values = leave.trigger.values.iter().filter(|(own, _)| is_stored(plan, process, *own));
    let moves: Vec<(Value, Value)> = values.copied().collect();
    if plan.requeues_in_loop(leave) {
        requeue_in_loop(code, process, leave, &resumptions, &moves);
        return;
    }
    for (instance, pc) in resumptions {
        line!(code, "t->pc[{instance}] = {pc};");
        push(code, &instance.to_string());
    }
    code.moves(&moves);
    match code.path.map(|function| plan.processes[process].paths[function].exit_number(leave.trigger.to)) {
        Some(number) => {
            code.line("t->tail = tail;");
            line!(code, "return {number};");
        }
        None => line!(code, "goto {}_{};", plan.processes[process].name, leave.trigger.to.0),
    }
}

/// Puts members on the ready list in a loop, and continues or returns.
fn requeue_in_loop(
    code: &mut Writer<'_, '_>,
    process: usize,
    leave: &Leave,
    resumptions: &[(u32, u32)],
    moves: &[(Value, Value)],
) {
    let plan = code.plan;
    let function = code.path.map(|function| &plan.processes[process].paths[function]);
    let returned = function.map(|function| function.exit_number(leave.trigger.to));
    let all: Vec<String> = resumptions.iter().map(|(instance, pc)| format!("{instance}, {pc}")).collect();
    let call = format!("requeue_members(t, back, {})", leave.members.len());
    code.moves(moves);
    if function.is_none_or(|function| function.holds_tail) {
        code.line("t->tail = tail;");
    }
    code.block("{", |code| {
        let (bits, all) = (table_bits(plan), all.join(", "));
        line!(code, "static const uint{bits}_t back[] = {{{all}, {}}};", returned.unwrap_or_default());
        match returned {
            Some(_) => line!(code, "return {call};"),
            None => line!(code, "(void){call};"),
        }
    });
    if returned.is_none() {
        code.line("tail = t->tail;");
        line!(code, "goto {}_{};", plan.processes[process].name, leave.trigger.to.0);
    }
}

/// Bits of instance numbers, program counters, and what functions of paths return.
fn table_bits(plan: &Plan<'_>) -> u32 {
    let functions = plan.processes.iter().flat_map(|process| &process.paths);
    let exits = functions.map(|function| function.exits.len() as u32).max().unwrap_or_default();
    unsigned_bits(plan.instances.max(exits)).max(plan.pc_bits)
}

/// The loop by which the members of a path join the ready list, if some path uses it.
pub(crate) fn requeue_function(plan: &Plan<'_>) -> String {
    let uses_loop = |block: &Block| match &block.terminator {
        Terminator::Leave(leave) => plan.requeues_in_loop(leave),
        _ => false,
    };
    let bodies = plan.program.processes.iter().map(|process| &process.body);
    let bodies: Vec<&Body> = bodies.filter(|body| body.blocks.iter().any(uses_loop)).collect();
    if bodies.is_empty() {
        return String::new();
    }
    // A path with a loop is left seldom, so that compilers may place its exits elsewhere and make them small.
    let placement = if bodies.into_iter().all(has_cycle_on_path) { "ESP_OUTLINE" } else { "ESP_NOINLINE" };
    let entry = if plan.features.queues_pcs { "back[1]" } else { "back[0]" };
    format!(
        "\n/* `back` has pairs of an instance and the program counter at which it continues; the result is behind them. */\n\
         {placement} uint32_t requeue_members({}_t *t, const uint{}_t *back, uint32_t count)\n{{\n    \
             uint32_t tail = t->tail;\n    \
             for (; count > 0; count--, back += 2) {{\n        \
                 t->pc[back[0]] = back[1];\n        \
                 t->ready[tail++ & READY_MASK] = {entry};\n    \
             }}\n    \
             t->tail = tail;\n    \
             return back[0];\n}}\n",
        plan.prefix,
        table_bits(plan)
    )
}
