//! Labels the locations of a process's code with its instance, so that a fault in a fused process is reported for the
//! member it belongs to, a replica by its number. Changes no code.

use quaject_esp_ir::ir::{Body, InstanceId, Location, ProcessId, Program, Terminator};
use std::collections::BTreeMap;

/// The labelled bodies of all replicas of these processes, by instance.
pub(crate) fn label_instances(program: &Program, processes: &[ProcessId]) -> BTreeMap<u32, Body> {
    let mut bodies = BTreeMap::new();
    for process in processes {
        let (source, first) = (&program.processes[process.0 as usize], program.first_instance(*process));
        let replicas = first..first + source.replicas;
        bodies.extend(replicas.map(|instance| (instance, label_body(source.body.clone(), instance))));
    }
    bodies
}

fn label_body(mut body: Body, instance: u32) -> Body {
    let label = |location: &mut Location| {
        // Generated code without a location belongs to no member.
        if location.line > 0 {
            location.member = Some(InstanceId::new(instance));
        }
    };
    for block in &mut body.blocks {
        label(&mut block.location);
        block.instructions.iter_mut().for_each(|instruction| label(&mut instruction.location));
        if let Terminator::Wait(wait) = &mut block.terminator {
            wait.branches.iter_mut().for_each(|branch| label(&mut branch.location));
        }
    }
    body
}
