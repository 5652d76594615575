//! Relative timeouts become absolute deadlines: an `after` that counts from the arrival at its wait becomes one with a
//! deadline that is computed before the wait. A fused process arrives at its wait again whenever any member makes a
//! step, which must not restart the timeouts of the others. Knows no products.

use quaject_esp_ir::ir::{
    Body, Instruction, Op, Operation, ProcessId, Program, Terminator, TimeUnit, TypeTable, ValueData,
};
use std::borrow::Cow;

/// The program, in which these processes wait for absolute deadlines.
pub(crate) fn use_absolute_deadlines<'p>(program: &'p Program, processes: &[ProcessId]) -> Cow<'p, Program> {
    let mut result = Cow::Borrowed(program);
    for process in processes {
        if has_timeouts(&program.processes[process.0 as usize].body) {
            use_deadlines_in(&mut result.to_mut().processes[process.0 as usize].body);
        }
    }
    result
}

fn has_timeouts(body: &Body) -> bool {
    body.blocks.iter().any(|block| match &block.terminator {
        Terminator::Wait(wait) => {
            wait.branches.iter().any(|branch| matches!(branch.operation, Operation::After { .. }))
        }
        _ => false,
    })
}

fn use_deadlines_in(body: &mut Body) {
    let Body { values, blocks, .. } = body;
    for block in blocks {
        let Terminator::Wait(wait) = &mut block.terminator else { continue };
        for branch in &mut wait.branches {
            let Operation::After { amount, unit } = &mut branch.operation else { continue };
            let TimeUnit::Nanoseconds(unit_ns) = *unit else { continue };
            let deadline = quaject_esp_ir::ir::Value(values.len() as u32);
            values.push(ValueData { ty: TypeTable::I64, name: None });
            let op = Op::Deadline { amount: *amount, unit_ns };
            block.instructions.push(Instruction { result: Some(deadline), op, location: branch.location });
            (*amount, *unit) = (deadline, TimeUnit::Absolute);
        }
    }
}
