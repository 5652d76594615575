//! What a program costs and promises: memory per process, and the fairness bounds of the reference, section 9, in
//! numbers for this program.

use super::header::{bits, frame_members, pc_bits, ready_capacity};
use super::plan::Plan;
use super::process::{POLL_TURNS, TURN_OPERATIONS};
use crate::layout::{View, extent, reference_bytes, structure};
use quaject_esp_ir::ir::{Boundary, Operation};
use std::fmt;

/// Memory and bounds of a program.
#[derive(Clone, Debug)]
pub struct Report {
    /// In order of text.
    pub processes: Vec<ProcessReport>,
    /// Bytes of each pool, by name.
    pub pools: Vec<(String, u64)>,
    /// Bytes of the ready list, program counters and blocked bits.
    pub scheduler_bytes: u64,
    /// Instances of the program.
    pub instances: u32,
    /// Longest alt, in branches.
    pub longest_alt: usize,
    /// Most instances that may wait to write on one channel.
    pub most_writers: u32,
    /// Whether the program has external channels or times.
    pub looks_outside: bool,
}

/// Memory of one process.
#[derive(Clone, Debug)]
pub struct ProcessReport {
    /// Its name in the source.
    pub name: String,
    /// How many instances run.
    pub replicas: u32,
    /// Bytes of one instance's frame.
    pub frame_bytes: u64,
    /// First and last line of its code in the source, and the file; what is compiled from these lines is its code.
    pub lines: (u16, u32, u32),
}

/// Measures a program.
pub(crate) fn make(plan: &Plan<'_>) -> Report {
    let processes = plan
        .program
        .processes
        .iter()
        .enumerate()
        .map(|(index, process)| {
            let members: Vec<_> = frame_members(plan, index).iter().map(|member| member.extent).collect();
            let blocks = process.body.blocks.iter();
            let places = blocks.flat_map(|block| {
                block.instructions.iter().map(|instruction| instruction.location).chain([block.location])
            });
            let lines: Vec<u32> = places
                .filter(|place| place.line != 0 && place.file == process.location.file)
                .map(|place| place.line)
                .collect();
            let last = lines.iter().copied().max().unwrap_or(process.location.line);
            ProcessReport {
                name: process.name.to_string(),
                replicas: process.replicas,
                frame_bytes: structure(&members).0.size,
                lines: (process.location.file, process.location.line, last),
            }
        })
        .collect();
    let types = &plan.program.types;
    let pools = types
        .pools()
        .iter()
        .map(|pool| {
            let each = extent(types, pool.content, View::Program).size + reference_bytes(pool.capacity) + 4;
            (pool.name.to_string(), each * u64::from(pool.capacity))
        })
        .collect();
    let words: u32 = plan.channels.iter().map(|channel| channel.reader_words() + channel.writer_words()).sum();
    let scheduler_bytes = u64::from(pc_bits(plan) / 8 * plan.instances)
        + u64::from(bits(plan.instances) / 8 * ready_capacity(plan))
        + u64::from(plan.instances)
        + u64::from(4 * words);
    let waits = || {
        (0..plan.processes.len())
            .flat_map(|process| (0..plan.processes[process].waits.len()).map(move |wait| plan.wait(process, wait)))
    };
    let looks_outside = waits().any(|wait| {
        wait.branches.iter().any(|branch| match &branch.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. } => {
                plan.program.channels[channel.0 as usize].boundary != Boundary::Internal
            }
            Operation::After { .. } => true,
        })
    });
    Report {
        processes,
        pools,
        scheduler_bytes,
        instances: plan.instances,
        longest_alt: waits().map(|wait| wait.branches.len()).max().unwrap_or(0),
        most_writers: plan.channels.iter().map(|channel| channel.writer_instances).max().unwrap_or(0),
        looks_outside,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory")?;
        for process in &self.processes {
            let total = process.frame_bytes * u64::from(process.replicas);
            match process.replicas {
                1 => writeln!(f, "  process {:<24} {total:>8} bytes", process.name)?,
                replicas => {
                    let name = format!("{}[{replicas}]", process.name);
                    writeln!(f, "  process {name:<24} {total:>8} bytes ({} each)", process.frame_bytes)?;
                }
            }
        }
        for (name, bytes) in &self.pools {
            writeln!(f, "  pool {name:<27} {bytes:>8} bytes")?;
        }
        writeln!(f, "  {:<32} {:>8} bytes", "scheduler", self.scheduler_bytes)?;
        let others = self.instances.saturating_sub(1);
        writeln!(f, "fairness")?;
        writeln!(f, "  a ready instance runs after at most {others} other turns")?;
        writeln!(f, "  a turn has at most {} quanta", TURN_OPERATIONS + 1)?;
        if self.longest_alt > 1 {
            writeln!(
                f,
                "  a branch that can be taken each time its alt runs is taken within {} runs",
                self.longest_alt
            )?;
        }
        if self.most_writers > 1 {
            writeln!(f, "  a writer waits for at most {} others on its port", self.most_writers - 1)?;
        }
        if self.looks_outside {
            writeln!(f, "  an event outside is seen within {POLL_TURNS} turns")?;
        }
        Ok(())
    }
}
