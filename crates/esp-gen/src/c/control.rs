//! The C text of control flow that processes, regions and pure functions have in common.

use super::writer::{Writer, line};
use quaject_esp_ir::ir::{Edge, Value};

/// A `switch` over a value; `jump` writes the jump along an edge.
pub(crate) fn write_switch(
    code: &mut Writer<'_, '_>,
    value: Value,
    cases: &[(i128, Edge)],
    default: &Edge,
    jump: &mut dyn FnMut(&mut Writer<'_, '_>, &Edge),
) {
    code.open(&format!("switch ({}) {{", code.value(value)));
    for (constant, edge) in cases {
        let text = code.constant(*constant, code.value_type(value));
        code.case(&format!("case {text}:"), |code| jump(code, edge));
    }
    code.case("default:", |code| jump(code, default));
    code.close("}");
}

/// The label at which faults of a process are raised, if the text jumps there.
pub(crate) fn write_fault_label(code: &mut Writer<'_, '_>, process: usize) {
    let plan = code.plan;
    let name = &plan.processes[process].name;
    if code.text.contains(&format!("goto {name}_fault;")) {
        line!(code, "{name}_fault:");
        line!(code, "t->instance = {};", plan.own_id(process));
        code.line("goto faulted;");
    }
}
