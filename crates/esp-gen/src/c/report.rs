//! The report of a program: memory per process and pool, and the fairness bounds of the reference, section 9, as
//! numbers.

use super::Style;
use super::constants::used_constants;
use super::frame::frame_members;
use super::interface;
use super::plan::{Plan, unsigned_bits};
use crate::layout::{View, reference_bytes, structure};
use quaject_esp_ir::ir::{Boundary, Branch};
use std::fmt;

/// Memory and bounds of a program.
#[derive(Clone, Debug)]
pub struct Report {
    /// In order of text.
    pub processes: Vec<ProcessReport>,
    /// Pure functions, in order of text.
    pub functions: Vec<FunctionReport>,
    /// Whether the bytes of code are known.
    pub code: CodeBytes,
    /// The functions that the environment calls.
    pub entries: Vec<EntryReport>,
    /// Whether their stack is known.
    pub stack: StackBytes,
    /// Bytes of each pool, by name.
    pub pools: Vec<(String, u64)>,
    /// Bytes of each constant that is read, by name: they are part of the code, in flash where the machine has some.
    pub constants: Vec<(String, u64)>,
    /// Bytes of the ready list, program counters and blocked bits.
    pub scheduler_bytes: u64,
    /// Instances of the program.
    pub instances: u32,
    /// The number of branches of the longest `alt`.
    pub longest_alt: usize,
    /// The maximal number of instances that may wait to write on one channel.
    pub max_writers: u32,
    /// Whether the program has external channels or times.
    pub polls_environment: bool,
    /// The maximal number of operations of one turn.
    pub turn_operations: u32,
    /// The maximal number of turns between two polls of the environment.
    pub turns_until_poll: u32,
    /// Channels between processes, if direct hand-off is requested: why hand-off on them is not direct.
    pub direct: Vec<(String, Option<&'static str>)>,
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
    /// Bytes of its code, if they were measured.
    pub code_bytes: Option<u64>,
}

/// Code of one pure function that was not compiled into its callers.
#[derive(Clone, Debug)]
pub struct FunctionReport {
    /// Its name in the source.
    pub name: String,
    /// Bytes of its code, if they were measured.
    pub code_bytes: Option<u64>,
}

/// What is known about the size of the code. This crate compiles nothing: its user fills it in.
#[derive(Clone, Debug)]
pub enum CodeBytes {
    /// It was not requested.
    NotRequested,
    /// Nothing; the reason.
    Unknown(String),
    /// All.
    Measured {
        /// The compiler, and its flags.
        compiler: String,
        /// Of the scheduler, the entry points, and code that processes share.
        scheduler_bytes: u64,
    },
}

/// A function of the program that the environment calls.
#[derive(Clone, Debug)]
pub struct EntryReport {
    /// Its name in C.
    pub name: String,
    /// Its stack, if it was measured.
    pub stack: Option<StackUse>,
}

/// The worst case of a function's stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackUse {
    /// Bytes on the deepest chain of calls within the program, the function itself included.
    pub bytes: u64,
    /// Functions outside of the program that it calls, directly or through others, each with the bytes that are in use
    /// at its deepest call.
    pub outside: Vec<(String, u64)>,
}

/// What is known about the stack. This crate compiles nothing: its user fills it in.
#[derive(Clone, Debug)]
pub enum StackBytes {
    /// It was not requested.
    NotRequested,
    /// Nothing; the reason.
    Unknown(String),
    /// That of all entries that the compiler has not left out.
    Measured,
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
            ProcessReport {
                name: process.name.to_string(),
                replicas: process.replicas,
                frame_bytes: structure(&members).0.size,
                code_bytes: None,
            }
        })
        .collect();
    let types = &plan.program.types;
    let pools = types
        .pools()
        .iter()
        .map(|pool| {
            let each = plan.layouts.extent(pool.content, View::Program).size + reference_bytes(pool.capacity) + 4;
            (pool.name.to_string(), each * u64::from(pool.capacity))
        })
        .collect();
    let constants = used_constants(plan.program)
        .into_iter()
        .map(|id| &plan.program.constants[id.0 as usize])
        .map(|constant| (constant.name.to_string(), plan.layouts.extent(constant.ty, View::Program).size))
        .collect();
    let words: u32 = plan.channels.iter().map(|channel| channel.reader_words() + channel.writer_words()).sum();
    let scheduler_bytes = u64::from(plan.pc_bits / 8 * plan.instances)
        + u64::from(unsigned_bits(plan.instances) / 8 * plan.ready_capacity())
        + u64::from(plan.instances)
        + u64::from(4 * words);
    let waits = || plan.waits().map(|(process, wait)| plan.wait(process, wait));
    let is_external = |branch: &Branch| !plan.is_internal(branch);
    let polls_environment = waits().any(|wait| wait.branches.iter().any(is_external));
    let functions = plan.program.functions.iter();
    Report {
        processes,
        functions: functions
            .map(|function| FunctionReport { name: function.name.to_string(), code_bytes: None })
            .collect(),
        code: CodeBytes::NotRequested,
        entries: entry_names(plan).into_iter().map(|name| EntryReport { name, stack: None }).collect(),
        stack: StackBytes::NotRequested,
        pools,
        constants,
        scheduler_bytes,
        instances: plan.instances,
        longest_alt: waits().map(|wait| wait.branches.len()).max().unwrap_or(0),
        max_writers: plan.channels.iter().map(|channel| channel.writer_instances).max().unwrap_or(0),
        polls_environment,
        turn_operations: plan.turns.operations,
        turns_until_poll: plan.turns.until_poll,
        direct: plan.hand_off.channels.iter().map(|(name, why)| (name.clone(), *why)).collect(),
    }
}

/// The functions that the header declares for the environment to call.
fn entry_names(plan: &Plan<'_>) -> Vec<String> {
    let prefix = &plan.prefix;
    let mut names: Vec<String> =
        ["init", "step", "fault", "place", "stuck"].iter().map(|name| format!("{prefix}_{name}")).collect();
    if plan.options.trace.is_callback() {
        names.push(format!("{prefix}_trace"));
    }
    if plan.sans_io() {
        return names;
    }
    for (index, channel) in plan.program.channels.iter().enumerate() {
        let plain = &plan.channels[index].plain;
        let is_posted = matches!(plan.options.style, Style::Post { .. });
        match channel.boundary {
            Boundary::Internal => continue,
            Boundary::FromEnvironment if is_posted => {
                names.extend([format!("{prefix}_post_{plain}"), format!("{prefix}_dropped_{plain}")]);
            }
            Boundary::FromEnvironment => {
                for interface in interface::of_channel(plan, index) {
                    let entries = plan.program.interfaces[interface].entries.iter().map(|entry| entry.name.as_str());
                    let all = std::iter::once("IsReady").chain(entries);
                    names.extend(all.map(|entry| format!("{}{entry}", plan.interfaces[interface])));
                }
            }
            Boundary::ToEnvironment => {}
        }
        names.push(format!("{prefix}_close_{plain}"));
    }
    names
}

impl Report {
    /// The stack of each entry.
    fn stack(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stack {
            StackBytes::NotRequested => return Ok(()),
            StackBytes::Unknown(reason) => return writeln!(f, "stack\n  it is unknown: {reason}"),
            StackBytes::Measured => writeln!(f, "{:<34} {:>8}", "stack", "bytes")?,
        }
        for EntryReport { name, stack } in &self.entries {
            let Some(StackUse { bytes, outside }) = stack else { continue };
            writeln!(f, "  {name:<32} {bytes:>8}")?;
            for (function, bytes) in outside {
                writeln!(f, "    {:<30} {bytes:>8}", format!("when {function} is called"))?;
            }
        }
        Ok(())
    }

    fn memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheduler_code = match &self.code {
            CodeBytes::NotRequested | CodeBytes::Unknown(_) => None,
            CodeBytes::Measured { scheduler_bytes, .. } => Some(*scheduler_bytes),
        };
        writeln!(f, "{:<34} {:>8} {:>8}", "bytes", "RAM", "code")?;
        let mut row = |name: String, ram: Option<u64>, code: Option<u64>, note: String| {
            let ram = ram.map_or(String::new(), |bytes| bytes.to_string());
            let code = code.map_or(String::new(), |bytes| bytes.to_string());
            writeln!(f, "{}", format!("  {name:<32} {ram:>8} {code:>8}{note}").trim_end())
        };
        for process in &self.processes {
            let total = process.frame_bytes * u64::from(process.replicas);
            let (name, note) = match process.replicas {
                1 => (format!("process {}", process.name), String::new()),
                replicas => {
                    (format!("process {}[{replicas}]", process.name), format!("  ({} each)", process.frame_bytes))
                }
            };
            row(name, Some(total), process.code_bytes, note)?;
        }
        for function in self.functions.iter().filter(|function| function.code_bytes.is_some_and(|bytes| bytes > 0)) {
            row(format!("fn {}", function.name), None, function.code_bytes, String::new())?;
        }
        for (name, bytes) in &self.pools {
            row(format!("pool {name}"), Some(*bytes), None, String::new())?;
        }
        for (name, bytes) in &self.constants {
            row(format!("const {name}"), None, Some(*bytes), String::new())?;
        }
        row("scheduler".to_string(), Some(self.scheduler_bytes), scheduler_code, String::new())?;
        match &self.code {
            CodeBytes::NotRequested => Ok(()),
            CodeBytes::Unknown(reason) => writeln!(f, "  code size is unknown: {reason}"),
            CodeBytes::Measured { compiler, .. } => writeln!(f, "  code as compiled by {compiler}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory(f)?;
        self.stack(f)?;
        if !self.direct.is_empty() {
            writeln!(f, "hand-off")?;
        }
        for (channel, why) in &self.direct {
            match why {
                None => writeln!(f, "  {channel}: direct")?,
                Some(why) => writeln!(f, "  {channel}: through the ready list, as {why}")?,
            }
        }
        let others = self.instances.saturating_sub(1);
        writeln!(f, "fairness")?;
        writeln!(f, "  a ready instance runs after at most {others} other turns")?;
        writeln!(f, "  a turn has at most {} quanta", self.turn_operations + 1)?;
        if self.longest_alt > 1 {
            writeln!(
                f,
                "  a branch that can be taken each time its alt runs is taken within {} runs",
                self.longest_alt
            )?;
        }
        if self.max_writers > 1 {
            writeln!(f, "  a writer waits for at most {} others on its port", self.max_writers - 1)?;
        }
        if self.polls_environment {
            writeln!(f, "  an external event is seen within {} turns", self.turns_until_poll)?;
        }
        Ok(())
    }
}
