//! The call of a fast path's function by the code of its trigger, and the pauses in which it leaves that function for
//! the caller of the step. The function itself is written by [`super::path_functions`].

use super::plan::{End, PathFunction};
use super::ready_list::push;
use super::writer::{Writer, line};

/// Calls a path's function, after its members have left their waits.
pub(crate) fn call_path(code: &mut Writer<'_, '_>, process: usize, path: usize) {
    let plan = code.plan;
    let data = &plan.processes[process];
    let name = plan.path_name(process, path);
    let function = &data.paths[path];
    let PathFunction { exits, pauses, .. } = function;
    let arguments = function.arguments(&data.storage).into_iter().map(|value| format!(", {}", code.value(value)));
    let arguments: String = arguments.collect();
    let mut resumed = "";
    if !pauses.is_empty() {
        code.line("where = 0;");
        line!(code, "{name}_go:");
        resumed = "&put_, where, ";
    }
    code.line("t->tail = tail;");
    let clock = if function.reads_clock(code.body()) { "now, " } else { "" };
    line!(code, "where = {name}(IO, {clock}{resumed}{}{arguments});", plan.own_id(process));
    code.line("tail = t->tail;");
    code.open("switch (where) {");
    for (number, exit) in exits.iter().enumerate() {
        code.case(&format!("case {}:", number + 1), |code| line!(code, "goto {}_{};", data.name, exit.0));
    }
    if !pauses.is_empty() {
        code.case(&format!("case {}:", exits.len() + 1), |code| code.line("goto again;"));
    }
    code.case("default:", |code| {
        code.line("where = t->fault;");
        code.line("goto faulted;");
    });
    code.close("}");
}

/// The labels at which paused paths are resumed: their functions are called again, with the number of the pause.
pub(crate) fn path_resumptions(code: &mut Writer<'_, '_>, process: usize) {
    let plan = code.plan;
    for (path, function) in plan.processes[process].paths.iter().enumerate() {
        for (number, (block, branch)) in function.pauses.iter().enumerate() {
            line!(code, "{}_w{}_b{branch}_go:", plan.processes[process].name, block.0);
            line!(code, "where = {};", number + 1);
            line!(code, "goto {}_go;", plan.path_name(process, path));
        }
    }
}

/// After a message was sent on a path: the path pauses if the caller of the step accepts no more.
pub(crate) fn pause(code: &mut Writer<'_, '_>, end: End) {
    let plan = code.plan;
    let Some(path) = code.path.map(|path| &plan.processes[end.process].paths[path]) else { return };
    if !path.pauses.contains(&(plan.wait_plan(end).block, end.branch)) {
        return;
    }
    let own = plan.own_id(end.process);
    code.block("if (++*put_ == out->head.limit) {", |code| {
        for value in &plan.branch_plan(end).paused {
            line!(code, "{} = {};", plan.paused_place(end, *value), code.value(*value));
        }
        line!(code, "t->pc[{own}] = {};", plan.continuation_pc(end));
        push(code, &own);
        code.line("t->tail = tail;");
        line!(code, "return {};", path.exits.len() + 1);
    });
}
