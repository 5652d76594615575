//! The dispatch tables: where each program counter continues, and which waits are tried again when the environment is
//! polled.

use super::continuation::select_instance;
use super::ready_list::trace_run;
use super::writer::{Writer, line};
use quaject_esp_ir::ir::*;

/// An entry of the dispatch table.
struct Entry {
    process: usize,
    pc: u32,
    label: String,
}

impl Entry {
    fn write(&self, code: &mut Writer<'_, '_>) {
        let plan = code.plan;
        code.case(&format!("case {}:", self.pc), |code| {
            if plan.features.queues_pcs {
                trace_run(code, &plan.own_id(self.process));
            }
            self.jump(code);
        });
    }

    /// An entry that is not traced, because it is not a choice of the scheduler: the restart of a search in the middle
    /// of a turn, or a retry at quiescence.
    fn write_untraced(&self, code: &mut Writer<'_, '_>) {
        code.case(&format!("case {}:", self.pc), |code| self.jump(code));
    }

    fn jump(&self, code: &mut Writer<'_, '_>) {
        select_instance(code, self.process, "self");
        line!(code, "goto {}_{};", code.plan.processes[self.process].name, self.label);
    }
}

/// The dispatch table: where each program counter continues.
pub(crate) fn dispatch_table(code: &mut Writer<'_, '_>) {
    let plan = code.plan;
    let mut untraced = Vec::new();
    for (process, data) in plan.processes.iter().enumerate() {
        Entry { process, pc: data.start_pc, label: "start".to_string() }.write(code);
        for wait in 0..data.waits.len() {
            continuations(code, process, wait, &mut untraced);
        }
        for (block, pc) in &data.yields {
            let Terminator::Yield(edge) = &plan.program.processes[process].body.blocks[block.0 as usize].terminator
            else {
                unreachable!("yields are planned from their blocks")
            };
            Entry { process, pc: *pc, label: edge.to.0.to_string() }.write(code);
        }
    }
    for (process, data) in plan.processes.iter().enumerate() {
        for (block, pc) in &data.path_resumptions {
            Entry { process, pc: *pc, label: block.0.to_string() }.write(code);
        }
    }
    untraced.iter().for_each(|entry| entry.write_untraced(code));
}

/// The entries of one wait: its branches, `else`, and the search itself.
fn continuations(code: &mut Writer<'_, '_>, process: usize, wait: usize, untraced: &mut Vec<Entry>) {
    let plan = code.plan;
    let data = &plan.processes[process];
    let details = &data.waits[wait];
    for end in plan.ends(process, wait) {
        let branch = plan.branch(end);
        let pauses = data.paths.iter().any(|path| path.pauses.contains(&(details.block, end.branch)));
        if details.is_path_poll && !pauses {
            continue;
        }
        let label = match branch.operation {
            Operation::Out { .. } | Operation::After { .. } if !pauses => branch.then.0.to_string(),
            Operation::In { .. } | Operation::Out { .. } | Operation::After { .. } => {
                format!("w{}_b{}_go", details.block.0, end.branch)
            }
        };
        Entry { process, pc: plan.continuation_pc(end), label }.write(code);
    }
    if let Some(otherwise) = plan.wait(process, wait).otherwise
        && !details.is_path_poll
    {
        Entry { process, pc: plan.otherwise_pc(process, wait), label: otherwise.0.to_string() }.write(code);
    }
    let search = format!("w{}_try", details.block.0);
    if details.may_be_requeued() {
        Entry { process, pc: details.pc, label: search.clone() }.write(code);
    } else if details.retries_at_quiescence {
        untraced.push(Entry { process, pc: details.pc, label: search.clone() });
    }
    untraced.extend(details.retry_pc.map(|pc| Entry { process, pc, label: search }));
}

/// The waits that are tried again when the environment is polled.
pub(crate) fn poll_table(code: &mut Writer<'_, '_>, instance: &str) {
    let plan = code.plan;
    for (process, wait) in plan.waits() {
        let details = &plan.processes[process].waits[wait];
        if details.polls_environment {
            code.case(&format!("case {}:", details.pc), |code| {
                select_instance(code, process, instance);
                line!(code, "goto {}_try;", plan.wait_name(process, wait));
            });
        }
    }
}
