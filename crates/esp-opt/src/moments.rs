//! Times as moments: an `after` that counts from arrival becomes one that waits for a moment, which is computed before
//! the wait. A fused process then arrives as often as its members like, and each keeps its time. Knows no products.

use quaject_esp_ir::ir::{
    Body, Instruction, Op, Operation, ProcessId, Program, Terminator, TimeUnit, TypeTable, ValueData,
};
use std::borrow::Cow;

/// The program, in which these processes wait for moments.
pub(crate) fn moments<'p>(program: &'p Program, processes: &[ProcessId]) -> Cow<'p, Program> {
    let mut made = Cow::Borrowed(program);
    for process in processes {
        if has_times(&program.processes[process.0 as usize].body) {
            rewrite(&mut made.to_mut().processes[process.0 as usize].body);
        }
    }
    made
}

fn has_times(body: &Body) -> bool {
    body.blocks.iter().any(|block| match &block.terminator {
        Terminator::Wait(wait) => {
            wait.branches.iter().any(|branch| matches!(branch.operation, Operation::After { .. }))
        }
        _ => false,
    })
}

fn rewrite(body: &mut Body) {
    let Body { values, blocks, .. } = body;
    for block in blocks {
        let Terminator::Wait(wait) = &mut block.terminator else { continue };
        for branch in &mut wait.branches {
            let Operation::After { amount, unit } = &mut branch.operation else { continue };
            let TimeUnit::Nanoseconds(unit_ns) = *unit else { continue };
            let moment = quaject_esp_ir::ir::Value(values.len() as u32);
            values.push(ValueData { ty: TypeTable::I64, name: None });
            let op = Op::Deadline { amount: *amount, unit_ns };
            block.instructions.push(Instruction { result: Some(moment), op, location: branch.location });
            (*amount, *unit) = (moment, TimeUnit::Moment);
        }
    }
}
