//! The picture of a program: its processes and channels as a graph, which `picture` draws.

use crate::describe::type_name;
use crate::picture::{Node, Shape, draw, shortened};
use quaject_esp_syntax::hir::{Boundary, Channel, Direction, Process, ProcessId, Program, Sharing};
use std::fmt::Write;

/// Draws the processes of a program, its channels, and their writers and readers. Yellow pills are external channels.
pub fn graph(program: &Program) -> String {
    let mut nodes = Vec::new();
    for process in &program.processes {
        nodes.push(process_node(process));
    }
    for channel in &program.channels {
        nodes.push(channel_node(program, channel));
    }
    let first_channel = program.processes.len();
    let mut edges = Vec::new();
    for (index, process) in program.processes.iter().enumerate() {
        for site in &process.sites {
            let channel = first_channel + site.channel.0 as usize;
            let edge = match site.direction {
                Direction::In => (channel, index),
                Direction::Out => (index, channel),
            };
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
    }
    draw(&nodes, edges)
}

fn process_node(process: &Process) -> Node {
    let (note, tip) = if process.replicated {
        (format!("{} instances", process.replicas), format!("process {}[{}]", process.name, process.replicas))
    } else {
        (String::new(), format!("process {}", process.name))
    };
    let shape = if process.replicated { Shape::Stack } else { Shape::Box };
    Node { class: "process", shape, label: process.name.to_string(), note, tip }
}

fn channel_node(program: &Program, channel: &Channel) -> Node {
    let name_of = |process: ProcessId| program.processes[process.0 as usize].name.as_str();
    let types: Vec<String> = channel.payload.iter().map(|ty| type_name(&program.types, &name_of, *ty)).collect();
    let note = types.join(", ");
    let mut tip = format!("channel {}({note})", channel.name);
    match channel.boundary {
        Boundary::Internal => {}
        Boundary::ToEnvironment => tip.push_str(" external in"),
        Boundary::FromEnvironment => tip.push_str(" external out"),
    }
    match channel.sharing {
        Sharing::Ports => {}
        Sharing::Shared => tip.push_str(" shared"),
    }
    if let Some(driver) = &channel.driver {
        let _ = write!(tip, " = \"{driver}\"");
    }
    let class = match (channel.boundary, channel.sharing) {
        (Boundary::Internal, Sharing::Ports) => "channel",
        (Boundary::Internal, Sharing::Shared) => "channel shared",
        (Boundary::ToEnvironment | Boundary::FromEnvironment, Sharing::Ports) => "environment",
        (Boundary::ToEnvironment | Boundary::FromEnvironment, Sharing::Shared) => "environment shared",
    };
    Node { class, shape: Shape::Pill, label: channel.name.to_string(), note: shortened(&note), tip }
}
