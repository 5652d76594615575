//! The settings of a run: engine, drivers, faults to inject, limits. Data only; [`crate::run`](mod@crate::run) and the
//! engines read it.

use crate::binding::Binding;
use crate::clock::Time;
use crate::debug_info::DebugInfo;
use crate::error::{HostCode, HostError};
use crate::fault_injection::FaultPlan;
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;
use std::path::PathBuf;

/// The engine that executes a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The reference interpreter.
    #[default]
    Interpreter,
    /// Generated C, compiled and loaded.
    C,
    /// The reference interpreter, with machine code for the local code of processes.
    Jit,
    /// `Jit` where there is a code generator for this machine and executable memory, else `Interpreter`.
    Best,
}

/// The settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What executes the program.
    pub engine: Engine,
    /// Drivers of external channels.
    pub bindings: Vec<Binding>,
    /// Faults injected into the messages of channels.
    pub faults: Vec<FaultPlan>,
    /// C sources, objects and libraries.
    pub externs: Vec<PathBuf>,
    /// The capture of the frames that drivers carry.
    pub pcap: Option<PathBuf>,
    /// A random scheduler's seed; none: the reference schedule. For the interpreter.
    pub seed: Option<u64>,
    /// Whether arithmetic that loses bits is a fault.
    pub checks: Checks,
    /// The mode of the clock.
    pub time: Time,
    /// The limit on the memory of the program's data.
    pub memory: Memory,
    /// The debuggers and profilers that machine code is registered with.
    pub debug_info: DebugInfo,
}

/// A limit on the memory of a program's data, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory(pub u64);

impl Default for Memory {
    /// The default: with its overhead, a run stays below 50 MB.
    fn default() -> Memory {
        Memory(32 << 20)
    }
}

impl std::str::FromStr for Memory {
    type Err = HostError;

    /// `64M`: a number of bytes, or of K, M or G, each 1024 of the one before.
    fn from_str(text: &str) -> Result<Memory, HostError> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit: Option<u64> = match &text[digits..] {
            "" => Some(1),
            "K" | "k" => Some(1 << 10),
            "M" | "m" => Some(1 << 20),
            "G" | "g" => Some(1 << 30),
            _ => None,
        };
        let bytes = text[..digits].parse::<u64>().ok().zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
        bytes.map(Memory).ok_or_else(|| {
            HostError::usage(HostCode::Argument, format!("`{text}` is no amount of memory"))
                .help("write a number of bytes, or of K, M or G: `64M`")
        })
    }
}

/// Refuses a program whose data exceeds the limit, before a driver is opened.
pub(crate) fn reserve(program: &Program, settings: &Settings) -> Result<(), HostError> {
    let needed = data_bytes(program) as u64;
    if needed <= settings.memory.0 {
        return Ok(());
    }
    let megabytes = needed.div_ceil(1 << 20);
    let cause =
        format!("the program's data takes up to {megabytes} MiB, and a run may take {} MiB", settings.memory.0 >> 20);
    Err(HostError::new(HostCode::Size, cause)
        .help(format!("make its arrays, messages, pools or replicas smaller, or allow it: `--memory {megabytes}M`")))
}
