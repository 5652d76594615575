//! The code of a fast path as a C function of its own: the function that holds all processes has too many edges for a
//! compiler to keep a path's values in registers. A path polls the environment inside its function, without blocking.
//! In the sans-IO style it may have to pause, as the caller of the step accepts no more messages: it then saves its
//! locals in the frame of the trigger and is resumed when that is dispatched.
//!
//! ```text
//!   step                                     P_path13(t, in, out, self, values of P that it uses)
//!     P_12:  enter: members leave waits
//!            switch (P_path13(..))   ----->  P_13: ..  the path's blocks
//!              case 1: goto P_4;     <-----    leave: the values of all members to their frames; return 1
//!              case 2: goto P_7;     <-----    leave: ..; return 2
//!              case 3: goto again;   <-----    pause: its locals to the frame; return 3
//!              default: faulted      <-----  P_fault: return 0
//! ```

use super::control::write_fault_label;
use super::functions::Functions;
use super::path_transitions::load_member_values;
use super::plan::End;
use super::process::{declare_blocks, declare_slots, write_blocks};
use super::storage::used_slots;
use super::writer::{Scope, Writer, line};

/// Restores the locals of a paused path and continues behind the branch at which it paused.
fn resume(code: &mut Writer<'_, '_>, process: usize, path: usize) {
    let plan = code.plan;
    let data = &plan.processes[process];
    code.open("switch (from) {");
    for (number, (block, branch)) in data.paths[path].pauses.iter().enumerate() {
        let end = End { process, wait: data.wait_at(*block), branch: *branch };
        code.case(&format!("case {}:", number + 1), |code| {
            for value in &plan.branch_plan(end).paused {
                line!(code, "{} = {};", code.value(*value), plan.paused_place(end, *value));
            }
            line!(code, "goto {}_{};", data.name, plan.branch(end).then.0);
        });
    }
    code.close_switch();
}

impl Functions<'_, '_> {
    /// Adds the functions of the paths of a process.
    pub(crate) fn paths(&mut self, process: usize) {
        for path in 0..self.plan.processes[process].paths.len() {
            self.path(process, path);
        }
    }

    fn path(&mut self, process: usize, path: usize) {
        let plan = self.plan;
        let data = &plan.processes[process];
        let function = &data.paths[path];
        let mut code = self.code(Scope::Process(process));
        code.path = Some(path);
        self.enter(&mut code, process);
        code.line("(void)in; (void)out;");
        let tail = if function.holds_tail { ", tail = t->tail" } else { "" };
        line!(code, "uint32_t where ESP_UNUSED = 0{tail};");
        let arguments = function.arguments(&data.storage);
        declare_blocks(&mut code, process, &function.blocks, &arguments);
        let slots = used_slots(code.body(), &function.blocks);
        declare_slots(&mut code, process, &slots);
        let pauses = !function.pauses.is_empty();
        if pauses {
            resume(&mut code, process, path);
        }
        load_member_values(&mut code, function.entry);
        line!(code, "goto {}_{};", data.name, function.entry.0);
        write_blocks(&mut code, process, &function.blocks);
        code.unmark();
        write_fault_label(&mut code, process);
        if code.text.contains("goto faulted;") {
            code.line("faulted:");
            code.line("t->fault = where;");
            if function.holds_tail {
                code.line("t->tail = tail;");
            }
            code.line("return 0;");
        }
        let parameters =
            arguments.iter().map(|value| format!(", {} {}", code.c_type(code.value_type(*value)), code.value(*value)));
        let parameters: String = parameters.collect();
        let (state, prefix) = (self.state(), &plan.prefix);
        let paused = if pauses { "uint32_t *put_, uint32_t from, " } else { "" };
        let clock = if function.reads_clock(code.body()) { "esp_time now, " } else { "" };
        let head = format!(
            "ESP_IN_ORDER uint32_t {}({state} *t, const {prefix}_input *in, {prefix}_output *out, {clock}{paused}esp_pid \
             self{parameters})",
            plan.path_name(process, path)
        );
        self.add_behind_channel_ends(process, &head, code);
    }
}
