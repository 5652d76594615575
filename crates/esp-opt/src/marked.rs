//! The code of instances with places that say whose it is, so that a fault in a fused process is told of the one it was
//! written for, and a replica of its own number. Changes no code.

use quaject_esp_ir::ir::{Body, InstanceId, Location, ProcessId, Program, Terminator};
use std::collections::BTreeMap;

/// The bodies of all replicas of these processes, by instance.
pub(crate) fn marked(program: &Program, processes: &[ProcessId]) -> BTreeMap<u32, Body> {
    let mut bodies = BTreeMap::new();
    for process in processes {
        let (source, first) = (&program.processes[process.0 as usize], program.first_instance(*process));
        bodies.extend((first..first + source.replicas).map(|instance| (instance, mark(source.body.clone(), instance))));
    }
    bodies
}

fn mark(mut body: Body, instance: u32) -> Body {
    let mark = |location: &mut Location| {
        // What stands for no text is told of nobody.
        if location.line > 0 {
            location.member = Some(InstanceId::new(instance));
        }
    };
    for block in &mut body.blocks {
        mark(&mut block.location);
        block.instructions.iter_mut().for_each(|instruction| mark(&mut instruction.location));
        if let Terminator::Wait(wait) = &mut block.terminator {
            wait.branches.iter_mut().for_each(|branch| mark(&mut branch.location));
        }
    }
    body
}
